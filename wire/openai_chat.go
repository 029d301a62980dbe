package wire

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// chat is OpenAI's chat completions API.
type chat struct{}

// Name implements [Dialect].
func (chat) Name() string { return "openai_chat" }

// Request reads the body of POST /v1/chat/completions.
func (chat) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	if !root.Get("messages").IsArray() {
		return Request{}, invalid("messages is not an array")
	}
	r, err := openaiRequest(root, chatRequest)
	if err != nil {
		return Request{}, err
	}
	if format := root.Get("response_format"); format.IsObject() {
		r.Structured = format.Get("type").Str != "text"
	}
	r.Kept = root.Get("store").Type == gjson.True
	r.prompt, r.Tools, r.Session = lastUserText(r.Parts), chatTools(root), root.Get("metadata.session_id").Str
	return r, nil
}

// Response reads an answer that is not streamed.
func (chat) Response(body []byte) (Response, error) {
	r, choices, err := openaiResponse(body, chatResponse)
	if mayHaveChatCalls(body) {
		r.Calls = chatResponseCalls(choices)
	}
	return r, err
}

// Events returns a reader of a stream.
func (chat) Events() EventReader { return &openaiEvents{chunk: chatChunk} }

// Framing returns the framing of streams.
func (chat) Framing() Framing { return EventStream }

// Refusal is a completed answer with a refusal, which is how the API itself
// declines. The finish reason is stop: the SDKs' helpers throw on content_filter.
func (chat) Refusal(r Refusal) []byte {
	message := openaiMessage{Role: "assistant"}
	message.Content, message.Refusal = r.place()
	body := openaiHead("chatcmpl-", "chat.completion", r)
	body.Usage, body.SystemFingerprint = &openaiUsage{}, jsontext.Value("null")
	for i := range refusalChoices(r) {
		body.Choices = append(body.Choices, openaiChoice{Index: i, Message: message, FinishReason: &finishStop})
	}
	return encode(body)
}

// Stream returns a writer for the end of a stream.
func (chat) Stream() StreamWriter {
	return &chatStream{openaiStream: openaiStream{object: "chat.completion.chunk", prefix: "chatcmpl-", refusal: chatRefusalStream}}
}

// chatRefusalStream is Refusal in frames. In a stream already begun the role is
// left out: the Python SDK's helper would append it to the one it has. In any
// other the JavaScript SDK's helper throws without it.
func chatRefusalStream(head openaiBody, r Refusal, begun bool) []byte {
	return openaiRefusalStream(head,
		openaiChoice{Delta: chatRefusalDelta(r, begun)},
		openaiChoice{Delta: map[string]any{}, FinishReason: &finishStop}, r)
}

func chatRefusalDelta(r Refusal, begun bool) map[string]any {
	delta := make(map[string]any)
	content, refusal := r.place()
	if !begun {
		delta["role"], delta["content"] = "assistant", content
	}
	if content != nil {
		delta["content"] = content
	}
	if refusal != nil {
		delta["refusal"] = refusal
	}
	return delta
}

// Error is the body of an HTTP error.
func (chat) Error(e Error) []byte { return openaiError(e) }

// Ask makes the call that asks a model.
func (chat) Ask(a Ask) Call {
	call := struct {
		Model    string         `json:"model,omitzero"`
		Messages []askedMessage `json:"messages"`
		Stream   bool           `json:"stream,omitzero"`
	}{Model: a.Model, Messages: a.messagesWithSystem(), Stream: a.Stream}
	return Call{Path: "/v1/chat/completions", Body: encode(call)}
}

// Authorize returns the header of an API key.
func (chat) Authorize(key string) (name, value string) { return "Authorization", "Bearer " + key }

// Interface guards
var (
	_ Dialect    = chat{}
	_ Asker      = chat{}
	_ CallEditor = chat{}
)
