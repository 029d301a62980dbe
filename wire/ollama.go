package wire

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"
	"time" //nolint:depguard // writes the time that the caller gives, reads no clock

	"github.com/tidwall/gjson"
)

// ollamaChat is POST /api/chat of Ollama's own API (https://docs.ollama.com/api). Its
// streams have one JSON object a line, and an answer is one choice.
type ollamaChat struct{}

// ollamaGenerate is POST /api/generate, which continues one text.
type ollamaGenerate struct{}

// matchOllama knows the two paths below any base path. The OpenAI-compatible paths of
// an Ollama server are OpenAI's.
func matchOllama(path string, _ *url.URL) Dialect {
	switch {
	case strings.HasSuffix(path, "/api/chat"):
		return ollamaChat{}
	case strings.HasSuffix(path, "/api/generate"):
		return ollamaGenerate{}
	}
	return nil
}

// Name implements [Dialect].
func (ollamaChat) Name() string { return "ollama_chat" }

// Name implements [Dialect].
func (ollamaGenerate) Name() string { return "ollama_generate" }

// Request reads the body of POST /api/chat. A call without messages loads or unloads
// the model and has no prompt.
func (ollamaChat) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	if messages := root.Get("messages"); !messages.IsArray() && messages.Type != gjson.Null {
		return Request{}, invalid("messages is not an array")
	}
	r, err := ollamaCall(root, ollamaChatRequest)
	r.prompt, r.Tools = lastUserText(r.Parts), ollamaTools(root.Get("tools"))
	return r, err
}

// Request reads the body of POST /api/generate. A call without a prompt loads or
// unloads the model.
func (ollamaGenerate) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	prompt := root.Get("prompt")
	if prompt.Type != gjson.String && prompt.Type != gjson.Null {
		return Request{}, invalid("prompt is not a string")
	}
	r, err := ollamaCall(root, ollamaGenerateRequest)
	r.prompt = prompt.Str
	return r, err
}

// ollamaCall reads what both calls have. Answers are streamed unless stream is false.
func ollamaCall(root gjson.Result, body schema) (Request, error) {
	model, stream, err := modelAndStream(root)
	if err != nil {
		return Request{}, err
	}
	format := root.Get("format")
	w := walk{role: Other, toModel: true}
	body(&w, root)
	w.markEarlier()
	w.markContext()
	return Request{
		Model: model, Stream: stream.Type != gjson.False, Choices: 1, Parts: w.parts,
		Structured: format.Type != gjson.Null && format.Raw != `""`,
	}, w.err
}

// Response reads an answer that is not streamed.
func (ollamaChat) Response(body []byte) (Response, error) {
	return ollamaResponse(body, ollamaChatAnswer, ollamaChatSpeech)
}

// Response reads an answer that is not streamed.
func (ollamaGenerate) Response(body []byte) (Response, error) {
	return ollamaResponse(body, ollamaGenerateAnswer, ollamaGenerateSpeech)
}

func ollamaResponse(body []byte, answer schema, speech ollamaSpeech) (Response, error) {
	root, err := parseAnswer(body)
	if err != nil {
		return Response{}, err
	}
	var w walk
	answer(&w, root)
	failed := w.isOnlyError(root)
	if !root.Get("message").IsObject() && !root.Get("response").Exists() && !root.Get("done").IsBool() && !failed {
		return notAnAnswer(root, "it has neither a message nor a response")
	}
	if w.err != nil {
		return Response{}, w.err
	}
	return Response{
		Model: root.Get("model").Str, Finish: root.Get("done_reason").Str, Err: failed, Parts: w.parts, text: joinText(w.parts, Text),
		Calls: speech.calls(root, 0),
	}, nil
}

// Events returns a reader of a stream.
func (ollamaChat) Events() EventReader {
	return &ollamaEvents{line: ollamaChatAnswer, speech: ollamaChatSpeech}
}

// Events returns a reader of a stream.
func (ollamaGenerate) Events() EventReader {
	return &ollamaEvents{line: ollamaGenerateAnswer, speech: ollamaGenerateSpeech}
}

// ollamaEvents reads the lines of a stream, each of which stands for itself.
type ollamaEvents struct {
	line   schema
	speech ollamaSpeech
	calls  int // so far
	last   template
}

// Rest implements [EventReader].
func (r *ollamaEvents) Rest() EventReader { return &ollamaEvents{line: r.line, speech: r.speech} }

// Event implements [EventReader]. A line that cannot be read says all the same whether
// it ends the answer: some client may read it.
func (r *ollamaEvents) Event(f Frame) (Event, error) {
	if f.Comment {
		return Event{}, nil
	}
	if e, ok := r.last.read(f); ok {
		return e, nil
	}
	var w walk
	root, err := parseAnswer(f.Data)
	if err == nil {
		r.line(&w, root)
		err = w.err
	}
	if err != nil {
		root = gjson.ParseBytes(bytes.ToValidUTF8(f.Data, []byte("\uFFFD")))
	}
	e := Event{Done: ollamaEnds(root)}
	if e.Done {
		e.Finish, e.Finished = root.Get("done_reason").Str, []int{0}
	}
	if err != nil {
		return e, err
	}
	e.Err = isError(root.Get("error"))
	countTokens(w.parts, f.Data)
	for _, p := range w.parts {
		e.add(p, 0)
	}
	if w.called {
		for _, call := range r.speech.calls(root, r.calls) {
			e.Calls = append(e.Calls, CallDelta{ToolCall: call, Whole: true})
		}
		r.calls += len(e.Calls)
	}
	r.last.learn(f, &w, e)
	return e, nil
}

// ollamaEnds reports whether some client stops reading behind a line. The JavaScript
// SDK does if done has any value that JavaScript takes for true, or if status is
// success (src/utils.ts and AbortableAsyncIterator of ollama-js). The others read on.
func ollamaEnds(line gjson.Result) (ends bool) {
	line.ForEach(func(name, value gjson.Result) bool {
		switch {
		case strings.EqualFold(name.Str, "done"):
			ends = ends || value.Type == gjson.True || value.Type == gjson.JSON ||
				value.Type == gjson.Number && value.Num != 0 || value.Str != ""
		case strings.EqualFold(name.Str, "status"):
			ends = ends || value.Str == "success"
		}
		return true
	})
	return ends
}

// Framing returns the framing of streams.
func (ollamaChat) Framing() Framing { return Lines }

// Framing returns the framing of streams.
func (ollamaGenerate) Framing() Framing { return Lines }

// ollamaLine is a whole answer or a line of a stream.
type ollamaLine struct {
	Model     string      `json:"model"`
	CreatedAt string      `json:"created_at,omitzero"`
	Message   *ollamaSaid `json:"message,omitzero"`
	Response  *string     `json:"response,omitzero"`
	Done      bool        `json:"done"`
	*ollamaEnd
}

type ollamaSaid struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ollamaEnd is what the last line has besides.
type ollamaEnd struct {
	DoneReason         string `json:"done_reason"`
	TotalDuration      int64  `json:"total_duration"`
	LoadDuration       int64  `json:"load_duration"`
	PromptEvalCount    int64  `json:"prompt_eval_count"`
	PromptEvalDuration int64  `json:"prompt_eval_duration"`
	EvalCount          int64  `json:"eval_count"`
	EvalDuration       int64  `json:"eval_duration"`
}

// ollamaSay makes a line of a call that says a text.
type ollamaSay func(text string) ollamaLine

func ollamaChatSays(text string) ollamaLine {
	return ollamaLine{Message: &ollamaSaid{"assistant", text}}
}

func ollamaGenerateSays(text string) ollamaLine { return ollamaLine{Response: &text} }

// Refusal is a completed answer. The API has no refusal of its own, so the text is the
// answer, whatever Place says.
func (ollamaChat) Refusal(r Refusal) []byte { return ollamaRefusal(r, ollamaChatSays) }

// Refusal is a completed answer.
func (ollamaGenerate) Refusal(r Refusal) []byte { return ollamaRefusal(r, ollamaGenerateSays) }

func ollamaRefusal(r Refusal, say ollamaSay) []byte {
	line := say(r.Text)
	line.Model, line.CreatedAt = r.Model, time.Unix(r.Created, 0).UTC().Format(time.RFC3339)
	line.Done, line.ollamaEnd = true, &ollamaEnd{DoneReason: "stop"}
	return encode(line)
}

// Error is the body of an HTTP error.
func (ollamaChat) Error(e Error) []byte { return ollamaError(e) }

// Error is the body of an HTTP error.
func (ollamaGenerate) Error(e Error) []byte { return ollamaError(e) }

func ollamaError(e Error) []byte { return encode(map[string]string{"error": e.Message}) }

// Stream returns a writer for the end of a stream.
func (ollamaChat) Stream() StreamWriter {
	return &ollamaStream{say: ollamaChatSays, speech: ollamaChatSpeech}
}

// Stream returns a writer for the end of a stream.
func (ollamaGenerate) Stream() StreamWriter {
	return &ollamaStream{say: ollamaGenerateSays, speech: ollamaGenerateSpeech}
}

// An ollamaStream ends the streams of either call. Lines stand for themselves, so a
// refusal is the same whatever was sent before.
type ollamaStream struct {
	say            ollamaSay
	speech         ollamaSpeech
	model, created string // of the first line
	begun, spoken  bool   // lines were sent; text was
	open           bool   // the last line has no LF
}

// Sent implements [StreamWriter].
func (s *ollamaStream) Sent(f Frame) {
	s.open = !bytes.HasSuffix(f.Raw, []byte("\n"))
	if !s.spoken && !f.Comment {
		s.spoken = s.speech.of(gjson.ParseBytes(f.Data)).Get(s.speech.text).Str != ""
	}
	if s.begun || f.Comment {
		return
	}
	head := gjson.GetManyBytes(f.Data, "model", "created_at")
	s.begun, s.model, s.created = true, head[0].Str, head[1].Str
}

// line ends the line that is open, and appends one.
func (s *ollamaStream) line(data []byte) []byte {
	var out []byte
	if s.open {
		out = append(out, '\n')
	}
	return append(append(out, data...), '\n')
}

// Refusal implements [Ender].
func (s *ollamaStream) Refusal(r Refusal) []byte {
	r.Model = cmp.Or(s.model, r.Model)
	return s.line(ollamaRefusal(r, s.say))
}

// Error implements [Ender]. Every client raises a line with an error.
func (s *ollamaStream) Error(e Error) []byte { return s.line(ollamaError(e)) }

// KeepAlive implements [Filler]: a line that says nothing. The Python SDK fails on a
// blank one.
func (s *ollamaStream) KeepAlive() []byte {
	if s.open {
		return nil
	}
	line := s.say("")
	line.Model, line.CreatedAt = s.model, s.created
	return s.line(encode(line))
}

// Note implements [Filler]. Every line is part of the answer, so there is no place for
// a note.
func (s *ollamaStream) Note(string) []byte { return nil }

// Ask makes the call that asks a model.
func (ollamaChat) Ask(a Ask) Call {
	call := struct {
		Model    string         `json:"model"`
		Messages []askedMessage `json:"messages"`
		Stream   bool           `json:"stream"` // absent means true
	}{Model: a.Model, Messages: a.messagesWithSystem(), Stream: a.Stream}
	return Call{Path: "/api/chat", Body: encode(call)}
}

// Authorize returns the header of an API key, which Ollama's cloud wants and a local
// server ignores.
func (ollamaChat) Authorize(key string) (name, value string) {
	return "Authorization", "Bearer " + key
}

// Interface guards
var (
	_ Dialect    = ollamaChat{}
	_ Asker      = ollamaChat{}
	_ CallEditor = ollamaChat{}
	_ Dialect    = ollamaGenerate{}
	_ CallEditor = ollamaGenerate{}
)
