package wire

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// responses is OpenAI's Responses API.
type responses struct {
	hosted responsesHosted // in the answer to a call
}

// Name implements [Dialect].
func (responses) Name() string { return "openai_responses" }

// matchResponses knows /v1/responses under any base path, Azure's /openai/responses and
// a bare /responses. Other paths that end so are too common to claim.
func matchResponses(path string) bool {
	return path == "/responses" || strings.HasSuffix(path, "/v1/responses") || strings.HasSuffix(path, "/openai/responses")
}

// Request reads the body of POST /v1/responses.
func (responses) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	if err := checkResponses(root); err != nil {
		return Request{}, err
	}
	r, err := openaiRequest(root, responsesRequest)
	if err != nil {
		return Request{}, err
	}
	r.Choices = 1
	r.Structured = isStructured(root)
	r.Previous = root.Get("previous_response_id").Str
	r.PreviousOurs = strings.HasPrefix(r.Previous, responsesOwn)
	conversation := root.Get("conversation")
	r.Session = cmp.Or(conversation.Str, conversation.Get("id").Str, root.Get("metadata.session_id").Str)
	r.Kept = root.Get("store").Type != gjson.False
	switch {
	case r.Previous != "":
		r.HistoryPath = "previous_response_id"
	case conversation.Str != "":
		r.HistoryPath = "conversation"
	case conversation.Get("id").Str != "":
		r.HistoryPath = "conversation.id"
	}
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Kind == ToolResult {
			p.Kind = Text
		}
	}
	r.prompt = responsesPrompt(r.Parts)
	r.Tools, r.hosted = responsesTools(root), responsesHostedBy(root)
	return r, nil
}

// Answering implements [AnswerReader].
func (responses) Answering(r Request) Dialect { return responses{hosted: r.hosted} }

// checkResponses refuses values of the wrong type where they decide what is asked, or
// what the call goes on from.
func checkResponses(root gjson.Result) error {
	input, background := root.Get("input"), root.Get("background")
	previous, conversation := root.Get("previous_response_id"), root.Get("conversation")
	switch {
	case input.Type != gjson.String && input.Type != gjson.Null && !input.IsArray():
		return invalid("input is neither a string nor an array")
	case background.Type != gjson.Null && !background.IsBool():
		return invalid("background is not a boolean")
	case previous.Type != gjson.String && previous.Type != gjson.Null:
		return invalid("previous_response_id is not a string")
	case conversation.IsObject() && conversation.Get("id").Type == gjson.String:
	case conversation.Type != gjson.String && conversation.Type != gjson.Null:
		return invalid("conversation is neither a string nor an object with an id")
	}
	return nil
}

// isStructured reports whether the answer must be JSON, by the request or by a later
// change of its settings.
func isStructured(root gjson.Result) bool {
	found := wantsJSON(root)
	root.Get("input").ForEach(func(_, item gjson.Result) bool {
		found = found || item.Get("type").Str == "configuration_update" && wantsJSON(item)
		return !found
	})
	return found
}

func wantsJSON(settings gjson.Result) bool {
	format := settings.Get("text.format.type").Str
	return format != "" && format != "text"
}

// responsesPrompt is the last user message that has text. The variables of a template
// are the prompt only where nothing else is.
func responsesPrompt(parts []Part) string {
	var said []Part
	for _, p := range parts {
		if !strings.HasPrefix(p.Path, "prompt.") {
			said = append(said, p)
		}
	}
	return cmp.Or(lastUserText(said), lastUserText(parts))
}

// Response reads an answer that is not streamed, or that was kept and is fetched later.
func (d responses) Response(body []byte) (Response, error) {
	root, err := parseAnswer(body)
	if err != nil {
		return Response{}, err
	}
	w := walk{hosted: d.hosted}
	responsesAnswer(&w, root)
	if !root.Get("output").IsArray() && !w.isOnlyError(root) {
		return notAnAnswer(root, "output is not an array")
	}
	if w.err != nil {
		return Response{}, w.err
	}
	status := root.Get("status").Str
	r := Response{
		ID: root.Get("id").Str, Model: root.Get("model").Str, Finish: responsesFinish(root),
		Err:     status == "failed" || isError(root.Get("error")),
		Pending: status == "queued" || status == "in_progress", Structured: wantsJSON(root),
	}
	for _, p := range w.parts {
		p.Role = ""
		if strings.HasPrefix(p.Path, "output.") {
			p.Message = 1
			r.Parts = append(r.Parts, p)
		}
	}
	said := joinText(r.Parts, Text)
	for _, p := range w.parts {
		p.Role = ""
		switch {
		case strings.HasPrefix(p.Path, "output."):
		case p.Path != "output_text":
			r.Parts = append(r.Parts, p)
		case p.Text != said: // not the copy that it should be
			p.Message = 1
			r.Parts = append(r.Parts, p)
			said += p.Text
		}
	}
	r.text = cmp.Or(said, joinText(r.Parts, RefusalText))
	for i, item := range root.Get("output").Array() {
		if d.hosted.runByClient(item) {
			r.Calls = append(r.Calls, responsesCallOf(item, strconv.Itoa(i)))
		}
	}
	return r, nil
}

// responsesFinish is why an answer ended.
func responsesFinish(response gjson.Result) string {
	return cmp.Or(response.Get("incomplete_details.reason").Str, response.Get("status").Str)
}

// Framing returns the framing of streams.
func (responses) Framing() Framing { return EventStream }

// responsesOwn begins the ids of the answers that we write. The provider does not know
// them, see [Request.HistoryPath].
const (
	responsesOwn     = "resp_lex_"
	responsesOwnItem = "msg_lex_"
)

// responsesBody is an answer of ours. Clients read members without looking whether they
// are there, so it has all that the SDKs require.
type responsesBody struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	CreatedAt         int64             `json:"created_at"`
	CompletedAt       *int64            `json:"completed_at"`
	Status            string            `json:"status"`
	Background        bool              `json:"background"`
	Error             *struct{}         `json:"error"`
	IncompleteDetails *struct{}         `json:"incomplete_details"`
	Instructions      *string           `json:"instructions"`
	MaxOutputTokens   *int              `json:"max_output_tokens"`
	Metadata          map[string]string `json:"metadata"`
	Model             string            `json:"model"`
	Output            []responsesOutput `json:"output"`
	ParallelToolCalls bool              `json:"parallel_tool_calls"`
	Previous          *string           `json:"previous_response_id"`
	Store             bool              `json:"store"`
	Temperature       *float64          `json:"temperature"`
	ToolChoice        string            `json:"tool_choice"`
	Tools             []struct{}        `json:"tools"`
	TopP              *float64          `json:"top_p"`
	Truncation        string            `json:"truncation"`
	Usage             *responsesUsage   `json:"usage"`
}

// responsesOutput is a message of ours.
type responsesOutput struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

// responsesUsage counts nothing, in all the members that clients read.
type responsesUsage struct {
	InputTokens        int            `json:"input_tokens"`
	InputTokensDetails map[string]int `json:"input_tokens_details"`
	OutputTokens       int            `json:"output_tokens"`
	OutputDetails      map[string]int `json:"output_tokens_details"`
	TotalTokens        int            `json:"total_tokens"`
}

func noUsage() *responsesUsage {
	return &responsesUsage{
		InputTokensDetails: map[string]int{"cached_tokens": 0}, OutputDetails: map[string]int{"reasoning_tokens": 0},
	}
}

// responsesTextPart and responsesRefusalPart are the parts of a message.
type (
	responsesTextPart struct {
		Type        string           `json:"type"`
		Annotations []jsontext.Value `json:"annotations"`
		Logprobs    []struct{}       `json:"logprobs"`
		Text        string           `json:"text"`
	}
	responsesRefusalPart struct {
		Type    string `json:"type"`
		Refusal string `json:"refusal"`
	}
)

// part is the part of a message in which a refusal stands. The API has one of its own,
// but OpenAI's agents throw at it, LangChain.js and the Codex CLI show nothing of it, and
// beside a text the AI SDK shows both. So it is a text, which all of them show once,
// unless the content is not to have it.
func (r Refusal) part(text string) any {
	if r.Place == OnlyRefusal {
		return responsesRefusalPart{Type: "refusal", Refusal: text}
	}
	return responsesTextPart{Type: "output_text", Text: text}
}

func (r Refusal) responsesMessage(status string, content ...any) responsesOutput {
	return responsesOutput{ID: responsesOwnItem + r.ID, Type: "message", Status: status, Role: "assistant", Content: content}
}

// responsesBegun is the answer as it begins.
func responsesBegun(r Refusal) responsesBody {
	return responsesBody{
		ID: responsesOwn + r.ID, Object: "response", CreatedAt: r.Created, Status: "in_progress", Model: r.Model,
		ParallelToolCalls: true, ToolChoice: "auto", Truncation: "disabled",
	}
}

// Refusal is a completed answer with one message. The status is completed: incomplete
// makes the Python SDK's helper throw.
func (responses) Refusal(r Refusal) []byte {
	body := responsesBegun(r)
	body.Status, body.CompletedAt, body.Usage = "completed", &r.Created, noUsage()
	body.Output = []responsesOutput{r.responsesMessage("completed", r.part(r.Text))}
	return encode(body)
}

// Error is the body of an HTTP error.
func (responses) Error(e Error) []byte { return openaiError(e) }

// Ask makes the call that asks a model. The provider is to keep nothing of it.
func (responses) Ask(a Ask) Call {
	call := struct {
		Model        string         `json:"model,omitzero"`
		Instructions string         `json:"instructions,omitzero"`
		Input        []askedMessage `json:"input"`
		Store        bool           `json:"store"`
		Stream       bool           `json:"stream,omitzero"`
	}{Model: a.Model, Instructions: a.System, Input: a.messages(), Stream: a.Stream}
	return Call{Path: "/v1/responses", Body: encode(call)}
}

// Authorize returns the header of an API key.
func (responses) Authorize(key string) (name, value string) { return "Authorization", "Bearer " + key }

// Interface guards
var (
	_ Dialect      = responses{}
	_ AnswerReader = responses{}
	_ Asker        = responses{}
)
