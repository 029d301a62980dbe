package wire

import (
	"strings"

	"github.com/tidwall/gjson"
)

// What the dialect of Bedrock's Converse API writes. An answer that declines looks as one does in
// which a guardrail of Bedrock's own has intervened.

// converseDeclined is why such an answer ends.
const converseDeclined = "guardrail_intervened"

type converseText struct {
	Text string `json:"text"`
}

// converseFields are the fields that only one model has. They have room for a refusal where
// clients parse the content.
type converseFields struct {
	Refusal string `json:"refusal"`
}

type converseUsage struct {
	Input  int `json:"inputTokens"`
	Output int `json:"outputTokens"`
	Total  int `json:"totalTokens"`
}

type converseMetrics struct {
	Latency int `json:"latencyMs"`
}

// A converseEnd is why an answer ends.
type converseEnd struct {
	Reason string          `json:"stopReason"`
	Fields *converseFields `json:"additionalModelResponseFields,omitzero"`
}

type converseDelta struct {
	Delta converseText `json:"delta"`
	Index int          `json:"contentBlockIndex"`
}

type converseIndex struct {
	Index int `json:"contentBlockIndex"`
}

// Framing returns the framing of streams.
func (converse) Framing() Framing { return AmazonStream }

// Refusal is a completed answer that declines, or an ordinary one for [OnlyContent]. Its text stands in the
// content for [OnlyRefusal] too, as that of Bedrock's own guardrails does where JSON was asked for. No
// answer of Bedrock is without content, so programs take the first block unseen, and those in Go
// would panic.
func (converse) Refusal(r Refusal) []byte {
	type said struct {
		Role    string         `json:"role"`
		Content []converseText `json:"content"`
	}
	type output struct {
		Message said `json:"message"`
	}
	end := converseStop(r)
	return encode(struct {
		Output  output          `json:"output"`
		Reason  string          `json:"stopReason"`
		Usage   converseUsage   `json:"usage"`
		Metrics converseMetrics `json:"metrics"`
		Fields  *converseFields `json:"additionalModelResponseFields,omitzero"`
	}{Output: output{said{"assistant", []converseText{{r.Text}}}}, Reason: end.Reason, Fields: end.Fields})
}

// converseStop is why an answer with a refusal ends. A refusal that clients do not look for in the
// content stands there.
func converseStop(r Refusal) converseEnd {
	switch r.Place {
	case OnlyContent:
		return converseEnd{Reason: "end_turn"}
	case OnlyRefusal:
		return converseEnd{converseDeclined, &converseFields{r.Text}}
	}
	return converseEnd{Reason: converseDeclined}
}

// Error is the body of an HTTP error. The AWS SDKs look for the name of the exception in __type if
// no header has it (https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html).
func (converse) Error(e Error) []byte {
	return encode(map[string]string{"__type": bedrockException(e.Status), "message": e.Message})
}

// bedrockException is the API's word for a status.
func bedrockException(status int) string {
	switch {
	case status == 401 || status == 403:
		return "AccessDeniedException"
	case status == 404:
		return "ResourceNotFoundException"
	case status == 429:
		return "ThrottlingException"
	case status == 503:
		return "ServiceUnavailableException"
	case status >= 500:
		return "InternalServerException"
	}
	return "ValidationException"
}

// Stream returns a writer for the end of a stream.
func (converse) Stream() StreamWriter { return new(converseStream) }

// A converseStream follows the blocks of a stream.
type converseStream struct {
	begun   bool // messageStart was sent
	next    int  // the number of a block that has not begun
	open    bool // the one before it has not ended
	calls   bool // and is a call that the client runs
	stopped bool // messageStop was sent, so no block may follow
}

// Sent implements [StreamWriter].
func (s *converseStream) Sent(f Frame) {
	index, _ := blockNumber(gjson.ParseBytes(f.Data))
	switch f.Event {
	case "messageStart":
		s.begun = true
	case "contentBlockStart":
		s.next, s.open = max(s.next, index+1), true
		s.calls = gjson.GetBytes(f.Data, "start.toolUse").Exists()
	case "contentBlockDelta": // blocks of text have no start
		s.calls = s.calls && index < s.next
		s.next, s.open = max(s.next, index+1), true
	case "contentBlockStop":
		s.open = false
	case "messageStop":
		s.stopped = true
	}
}

// Refusal implements [Ender]. A call that has begun is not ended: some clients run it then.
func (s *converseStream) Refusal(r Refusal) []byte {
	if s.stopped {
		return nil
	}
	var out []byte
	if !s.begun {
		out = appendAmazonEvent(out, "messageStart", map[string]string{"role": "assistant"})
	}
	running := s.open && s.calls
	if s.open && !running {
		out = appendAmazonEvent(out, "contentBlockStop", converseIndex{s.next - 1})
	}
	if running {
		r.Place = OnlyRefusal
	} else {
		out = appendAmazonEvent(out, "contentBlockDelta", converseDelta{converseText{r.Text}, s.next})
		out = appendAmazonEvent(out, "contentBlockStop", converseIndex{s.next})
	}
	out = appendAmazonEvent(out, "messageStop", converseStop(r))
	return appendAmazonEvent(out, "metadata", struct {
		Usage   converseUsage   `json:"usage"`
		Metrics converseMetrics `json:"metrics"`
	}{})
}

// Error implements [Ender]: clients raise an exception.
func (s *converseStream) Error(e Error) []byte { return appendBedrockException(nil, e) }

// appendBedrockException appends the end of a stream that failed. Streams have fewer exceptions
// than HTTP errors, and those begin with a small letter.
func appendBedrockException(dst []byte, e Error) []byte {
	name := "validationException"
	switch kind := bedrockException(e.Status); kind {
	case "ThrottlingException", "ServiceUnavailableException", "InternalServerException":
		name = strings.ToLower(kind[:1]) + kind[1:]
	}
	return appendAmazon(dst, amazonException, name, encode(map[string]string{"message": e.Message}))
}

// appendAmazonEvent appends an event with a value.
func appendAmazonEvent(dst []byte, name string, value any) []byte {
	return appendAmazon(dst, amazonEvent, name, encode(value))
}

// KeepAlive implements [Filler]. The API has no event that says nothing, and clients take one of
// an unknown type for a newer version of the API.
func (s *converseStream) KeepAlive() []byte { return nil }

// Note implements [Filler].
func (s *converseStream) Note(string) []byte { return nil }
