package wire

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// What the writers of OpenAI's APIs have in common.

// openaiBody is a whole answer or one chunk of either API.
type openaiBody struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []openaiChoice `json:"choices"`
	Usage   *openaiUsage   `json:"usage,omitzero"`

	// Null in whole answers of chat, where OpenRouter's SDK throws if it is absent, and absent
	// in chunks, where that SDK throws if it is null.
	SystemFingerprint jsontext.Value `json:"system_fingerprint,omitzero"`
}

// openaiChoice has one of Message (chat), Delta (chat, streamed) and Text
// (completions).
type openaiChoice struct {
	Index        int       `json:"index"`
	Message      any       `json:"message,omitzero"`
	Delta        any       `json:"delta,omitzero"`
	Text         *string   `json:"text,omitzero"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

type openaiMessage struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	Refusal *string `json:"refusal"`
}

type openaiUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// place sets the members of a message or delta in which a refusal stands.
func (r Refusal) place() (content, refusal *string) {
	if r.Place != OnlyRefusal {
		content = &r.Text
	}
	if r.Place != OnlyContent {
		refusal = &r.Text
	}
	return content, refusal
}

var (
	finishStop = "stop"
	doneData   = []byte("[DONE]")
)

func openaiHead(prefix, object string, r Refusal) openaiBody {
	return openaiBody{ID: prefix + r.ID, Object: object, Created: r.Created, Model: r.Model}
}

// refusalChoices is how many choices are to be answered.
func refusalChoices(r Refusal) int { return min(max(r.Choices, 1), MaxChoices) }

// openaiRefusalStream sends each choice's text and end, and then the stream's.
func openaiRefusalStream(body openaiBody, refusal, end openaiChoice, r Refusal) []byte {
	var out []byte
	for i := range refusalChoices(r) {
		refusal.Index, end.Index = i, i
		for _, choice := range []openaiChoice{refusal, end} {
			body.Choices = []openaiChoice{choice}
			out = AppendEvent(out, encode(body))
		}
	}
	if r.TellsUsage {
		body.Choices, body.Usage = []openaiChoice{}, &openaiUsage{}
		out = AppendEvent(out, encode(body))
	}
	return AppendEvent(out, doneData)
}

// An openaiStream ends the streams of either API.
type openaiStream struct {
	object  string // what a chunk calls itself
	prefix  string // of the ids of the API
	refusal func(head openaiBody, r Refusal, begun bool) []byte
	begun   bool
	hasID   bool   // see Frame.HasID
	chunk   []byte // the first that was sent
}

// Sent implements [StreamWriter].
func (s *openaiStream) Sent(f Frame) {
	s.begun = true
	s.hasID = s.hasID || f.HasID
	if s.chunk == nil && !f.Comment {
		s.chunk = f.Data
	}
}

// Refusal implements [Ender]. The chunks of a stream have one id; the accumulator of
// the Go SDK takes no other.
func (s *openaiStream) Refusal(r Refusal) []byte {
	head := openaiHead(s.prefix, s.object, r)
	chunk := gjson.ParseBytes(s.chunk)
	head.ID, head.Model = cmp.Or(chunk.Get("id").Str, head.ID), cmp.Or(chunk.Get("model").Str, head.Model)
	head.Created = cmp.Or(chunk.Get("created").Int(), head.Created)
	return s.refusal(head, r, s.begun)
}

// Error ends a stream that failed: SDKs raise it and do not retry. There
// is no [DONE] behind it, nothing may look like a clean end.
func (s *openaiStream) Error(e Error) []byte { return AppendEvent(nil, openaiError(e)) }

// KeepAlive implements [Filler].
func (s *openaiStream) KeepAlive() []byte { return s.Note("keep-alive") }

// Note implements [Filler]. It is a line of the frame behind it: a blank line of its own would
// be an event without data to older Go SDKs, which fail on it.
func (s *openaiStream) Note(text string) []byte {
	if s.hasID {
		return nil
	}
	return append(append([]byte(": "), text...), '\n')
}

func openaiError(e Error) []byte {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	return encode(struct {
		Error body `json:"error"`
	}{body{Message: e.Message, Type: openaiErrorType(e.Status), Code: e.Code}})
}

// openaiErrorType is the word for a status. It matters in streams, which have
// no status any more: there some clients read from the word whether to retry.
func openaiErrorType(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 403:
		return "permission_error"
	case status == 429:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}
