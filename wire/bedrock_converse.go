package wire

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/tidwall/gjson"
)

// converse is Amazon Bedrock's Converse API. The model, and whether the answer is streamed, stand
// in the address.
type converse struct {
	model  string // "" if there is no address
	stream bool
}

// resemblesConverse reports whether a body with messages has content in blocks without a type,
// which no other API has.
func resemblesConverse(root gjson.Result) (found bool) {
	elements(root.Get("messages"), func(_ int, message gjson.Result) {
		elements(message.Get("content"), func(_ int, block gjson.Result) {
			untyped := block.IsObject() && !block.Get("type").Exists()
			found = found || untyped && holds(gjson.Parse("["+block.Raw+"]"), "text", "image", "document", "toolUse", "toolResult")
		})
	})
	return found
}

// Name implements [Dialect].
func (converse) Name() string { return "bedrock_converse" }

// Request reads the body of a call. A call to a stored prompt may have no messages.
func (d converse) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	if messages := root.Get("messages"); !messages.IsArray() && (messages.Type != gjson.Null || !root.Get("promptVariables").IsObject()) {
		return Request{}, invalid("messages is not an array")
	}
	w := walk{role: Other, toModel: true}
	if converseRequest(&w, root); w.err != nil {
		return Request{}, w.err
	}
	w.markEarlier()
	w.markContext()
	return Request{
		Model: d.model, Stream: d.stream, Choices: 1, Parts: w.parts, prompt: lastUserText(w.parts),
		Structured: root.Get("outputConfig.textFormat").IsObject(),
		Tools:      converseTools(root),
	}, nil
}

// Response reads an answer that is not streamed.
func (converse) Response(body []byte) (Response, error) {
	root, err := parseAnswer(body)
	if err != nil {
		return Response{}, err
	}
	var w walk
	if !root.Get("output.message.content").IsArray() {
		failed := isError(root.Get("message")) || isError(root.Get("Message"))
		beside := func(p Part) bool { return p.Kind != Annotation }
		if converseFailure(&w, root); w.err == nil && failed && !slices.ContainsFunc(w.parts, beside) {
			return Response{Err: true, Parts: w.parts}, nil
		}
		return notAnAnswer(root, "output.message.content is not an array")
	}
	if converseAnswer(&w, root); w.err != nil {
		return Response{}, w.err
	}
	r := Response{Finish: root.Get("stopReason").Str, Parts: w.parts, text: shownText(w.parts)}
	elements(root.Get("output.message.content"), func(at int, block gjson.Result) {
		if call := block.Get("toolUse"); call.Type != gjson.Null {
			r.Calls = append(r.Calls, converseWholeCall(at, block))
		}
	})
	return r, nil
}

// Events returns a reader of a stream.
func (converse) Events() EventReader { return new(converseReader) }

// converseReader reads the events of a stream, each of which brings only what is new.
type converseReader struct {
	calls   converseCalls
	stopped bool // messageStop came
}

// Rest implements [EventReader].
func (s *converseReader) Rest() EventReader {
	return &converseReader{calls: s.calls.rest(), stopped: s.stopped && len(s.calls.begun) == 0}
}

// Event reads one event of a stream. The answer is complete with messageStop, but behind it
// comes the metadata, in which Bedrock's guardrails may quote the answer.
func (s *converseReader) Event(f Frame) (Event, error) {
	read, ok := converseEvents[f.Event]
	switch {
	case f.Comment:
		return Event{}, nil
	case f.failed():
		return failedEvent(f)
	case !ok:
		return Event{}, invalid("an event has an unknown type")
	}
	root, err := parseAnswer(f.Data)
	if err != nil {
		return Event{}, err
	}
	var w walk
	if read(&w, root); w.err != nil {
		return Event{}, w.err
	}
	var e Event
	for _, p := range w.parts {
		e.add(p, 0)
	}
	for i := range e.Deltas { // clients join the texts of a block
		if d := &e.Deltas[i]; d.Part != "" {
			d.Part = root.Get("contentBlockIndex").Raw
		}
	}
	e.Piece = root.Get("delta.toolResult").Exists()
	e.Calls = s.calls.read(f.Event, root)
	switch f.Event {
	case "messageStop":
		e.Finish, e.MayEnd = root.Get("stopReason").Str, true
		s.stopped = true
	case "metadata":
		e.Done = s.stopped
	}
	e.markCalled()
	return e, nil
}

// failedEvent reads an exception or an error, which every client raises.
func failedEvent(f Frame) (Event, error) {
	root, err := parseAnswer(f.Data)
	if err != nil {
		return Event{Err: true}, err
	}
	return Event{Err: true, Deltas: []Delta{{Kind: Annotation, Text: gather(root.Raw)}}}, nil
}

// Ask makes the call that asks a model.
func (d converse) Ask(a Ask) Call {
	type block struct {
		Text string `json:"text"`
	}
	type said struct {
		Role    Role    `json:"role"`
		Content []block `json:"content"`
	}
	var call struct {
		System   []block `json:"system,omitzero"`
		Messages []said  `json:"messages"`
	}
	if a.System != "" {
		call.System = []block{{a.System}}
	}
	for _, m := range slices.Concat(a.History, []Message{{User, a.Prompt}}) {
		call.Messages = append(call.Messages, said{m.Role, []block{{m.Text}}})
	}
	method := "/converse"
	if a.Stream {
		method = "/converse-stream"
	}
	return Call{Path: "/model/" + url.PathEscape(cmp.Or(a.Model, d.model)) + method, Body: encode(call)}
}

// Authorize returns the header of an API key of Bedrock.
func (converse) Authorize(key string) (name, value string) { return "Authorization", "Bearer " + key }

// Interface guards
var (
	_ Dialect    = converse{}
	_ Asker      = converse{}
	_ CallEditor = converse{}
)
