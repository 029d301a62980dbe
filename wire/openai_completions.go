package wire

import "github.com/tidwall/gjson"

// completions is OpenAI's legacy completions API
// (https://platform.openai.com/docs/api-reference/completions).
type completions struct{}

// completionsRequest is the body of POST /v1/completions. Of the prompt's four
// forms the two of token ids cannot be read.
var completionsRequest = object(members{
	"prompt": as(User, anyOf{text: text(Text), list: completionsPrompts}.read),
	"suffix": as(User, text(Text)),
	"stop":   stopSequences,

	"model": scalar, "stream": scalar, "n": scalar, "best_of": scalar, "echo": scalar, "seed": scalar, "user": scalar,
	"logprobs": scalar, "max_tokens": scalar, "temperature": scalar, "top_p": scalar,
	"frequency_penalty": scalar, "presence_penalty": scalar,

	"logit_bias": opaque, "stream_options": opaque,
})

// completionsPrompts is a list of texts, one text in token ids or a list of
// such texts.
func completionsPrompts(w *walk, v gjson.Result) {
	if isTokens(v) {
		w.add(Tokens, "", v)
		return
	}
	list(completionsPromptOf)(w, v)
}

func completionsPromptOf(w *walk, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		text(Text)(w, v)
	case isTokens(v):
		w.add(Tokens, "", v)
	default:
		unknown(w, v)
	}
}

// isTokens reports whether a value is a list of numbers.
func isTokens(v gjson.Result) bool {
	tokens := false
	if v.IsArray() {
		v.ForEach(func(_, id gjson.Result) bool {
			tokens = id.Type == gjson.Number
			return tokens
		})
	}
	return tokens
}

// completionsAnswer is the body of an answer as well as the data of a frame.
var completionsAnswer = object(chatAnswer(members{
	"index": scalar, "finish_reason": scalar, "logprobs": media(Logprobs), "text": text(Text),
	"content_filter_results": opaque, "content_filter_offsets": opaque,
}))

// Name implements [Dialect].
func (completions) Name() string { return "openai_completions" }

// Request reads the body of POST /v1/completions.
func (completions) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	r, err := openaiRequest(root, completionsRequest)
	if err != nil {
		return Request{}, err
	}
	if r.Choices *= promptCount(root.Get("prompt")); r.Choices > MaxChoices {
		return Request{}, invalid("it asks for more than %d choices", MaxChoices)
	}
	r.prompt = completionsPrompt(r.Parts)
	return r, nil
}

// promptCount is how many texts are to be continued; each has its choices.
func promptCount(prompt gjson.Result) int {
	if !prompt.IsArray() || isTokens(prompt) {
		return 1
	}
	return max(1, int(prompt.Get("#").Int()))
}

// completionsPrompt joins the prompts, without the suffix.
func completionsPrompt(parts []Part) string {
	var prompts []Part
	for _, p := range parts {
		if p.Role == User && p.Path != "suffix" {
			prompts = append(prompts, p)
		}
	}
	return joinText(prompts, Text)
}

// Response reads an answer that is not streamed.
func (completions) Response(body []byte) (Response, error) {
	r, _, err := openaiResponse(body, completionsAnswer)
	return r, err
}

// Events returns a reader of a stream.
func (completions) Events() EventReader { return &openaiEvents{chunk: completionsAnswer} }

// Framing returns the framing of streams.
func (completions) Framing() Framing { return EventStream }

// Refusal is a completed answer. The API has no refusal of its own, so the text
// is the answer, whatever Place says.
func (completions) Refusal(r Refusal) []byte {
	body := openaiHead("cmpl-", "text_completion", r)
	body.Usage = &openaiUsage{}
	for i := range refusalChoices(r) {
		body.Choices = append(body.Choices, openaiChoice{Index: i, Text: &r.Text, FinishReason: &finishStop})
	}
	return encode(body)
}

// Stream returns a writer for the end of a stream.
func (completions) Stream() StreamWriter {
	return &openaiStream{object: "text_completion", prefix: "cmpl-", refusal: completionsRefusalStream}
}

// completionsRefusalStream is Refusal in frames.
func completionsRefusalStream(head openaiBody, r Refusal, _ bool) []byte {
	return openaiRefusalStream(head,
		openaiChoice{Text: &r.Text},
		openaiChoice{Text: new(string), FinishReason: &finishStop}, r)
}

// Error is the body of an HTTP error.
func (completions) Error(e Error) []byte { return openaiError(e) }

// Interface guard
var _ Dialect = completions{}
