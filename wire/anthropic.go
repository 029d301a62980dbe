package wire

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	"github.com/tidwall/gjson"
)

// anthropic is Anthropic's Messages API.
type anthropic struct {
	streamed bool // the address asks for a stream, as Vertex's :streamRawPredict does
}

// Name implements [Dialect].
func (anthropic) Name() string { return "anthropic_messages" }

// matchAnthropic knows the API at its own address and where clouds serve it with the
// same bodies.
func matchAnthropic(p string, _ *url.URL) Dialect {
	dir, last := path.Split(p)
	dir = path.Clean(dir)
	switch {
	case strings.HasSuffix(p, "/v1/messages"):
		return anthropic{}
	case strings.HasSuffix(dir, "/publishers/anthropic/models"):
		model, method, _ := strings.Cut(last, ":")
		if model == "count-tokens" && method == "rawpredict" {
			return nil // it names no model
		}
		if method == "rawpredict" || method == "streamrawpredict" {
			return anthropic{streamed: method == "streamrawpredict"}
		}
	}
	return nil
}

// resemblesAnthropic reports whether a body with messages has what no other API has.
func resemblesAnthropic(root gjson.Result) (found bool) {
	root.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "anthropic_version":
			found = true
		case "system":
			found = value.Type == gjson.String || value.IsArray()
		case "tools":
			value.ForEach(func(_, tool gjson.Result) bool { found = tool.Get("input_schema").Exists(); return !found })
		case "messages":
			value.ForEach(func(_, message gjson.Result) bool { found = hasAnthropicBlock(message.Get("content")); return !found })
		}
		return !found
	})
	return found
}

func hasAnthropicBlock(content gjson.Result) (found bool) {
	content.ForEach(func(_, block gjson.Result) bool {
		switch block.Get("type").Str {
		case "tool_use", "tool_result", "server_tool_use", "thinking", "redacted_thinking", "document", "image":
			found = true
		}
		return !found
	})
	return found
}

// Request reads the body of POST /v1/messages.
func (d anthropic) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	if !root.Get("messages").IsArray() {
		return Request{}, invalid("messages is not an array")
	}
	model, stream, err := modelAndStream(root)
	if err != nil {
		return Request{}, err
	}
	w := walk{role: Other, toModel: true}
	if anthropicRequest(&w, root); w.err != nil {
		return Request{}, w.err
	}
	w.markEarlier()
	w.markContext()
	r := Request{
		Model: model, Stream: stream.Bool() || d.streamed, Choices: 1, Parts: w.parts, prompt: lastUserText(w.parts),
		Structured: root.Get("output_config.format").IsObject() || root.Get("output_format").IsObject(),
		Session:    root.Get("metadata.session_id").Str,
		Tools:      anthropicTools(body, root),
	}
	thread := root.Get("thread")
	if r.Kept = thread.IsObject(); thread.Get("type").Str == "continue" {
		r.Previous = thread.Get("previous_message_id").Str
		r.HistoryPath = "thread.previous_message_id"
	}
	return r, nil
}

// Response reads an answer that is not streamed.
func (anthropic) Response(body []byte) (Response, error) {
	root, err := parseAnswer(body)
	if err != nil {
		return Response{}, err
	}
	if !root.Get("content").IsArray() {
		var w walk
		if anthropicEvent(&w, root); w.isOnlyError(root) {
			return Response{Err: true, Parts: w.parts}, nil
		}
		return notAnAnswer(root, "content is not an array")
	}
	var w walk
	if w.inMessage("", root, anthropicAnswer); w.err != nil {
		return Response{}, w.err
	}
	r := Response{
		ID: root.Get("id").Str, Model: root.Get("model").Str, Finish: root.Get("stop_reason").Str,
		Parts: w.parts, text: shownText(w.parts),
	}
	positions, blocks := clientCalls(root.Get("content"))
	for i, position := range positions {
		r.Calls = append(r.Calls, anthropicWholeCall(position, blocks[i]))
	}
	return r, nil
}

// Events returns a reader of a stream.
func (anthropic) Events() EventReader { return new(anthropicEvents) }

// anthropicEvents reads the frames of a stream, each of which brings only what is new.
type anthropicEvents struct {
	calls anthropicCalls
	last  template
}

// Rest implements [EventReader].
func (s *anthropicEvents) Rest() EventReader { return &anthropicEvents{calls: s.calls.rest()} }

// nameBlocks makes the content block, whose index a frame may have, the part of each text.
func (e *Event) nameBlocks(index gjson.Result) {
	for i := range e.Deltas {
		d := &e.Deltas[i]
		if rest, ok := strings.CutPrefix(d.Part, "message.content."); ok { // the blocks that the first frame has
			d.Part, _, _ = strings.Cut(rest, ".")
		} else if d.Part != "" {
			d.Part = index.Raw
		}
	}
}

// Event reads one frame of a stream. The official SDKs go by the event field and others
// by the type in the data. Both say the same in an honest stream, so a frame in which
// they differ is read, but not known.
func (s *anthropicEvents) Event(f Frame) (Event, error) {
	switch {
	case f.Comment:
		return Event{}, nil
	case len(f.Data) == 0 && f.Event == "ping":
		return Event{}, nil
	case len(f.Data) == 0:
		return Event{Unknown: []string{"event"}}, nil
	}
	if e, ok := s.last.read(f); ok {
		return e, nil
	}
	root, err := parseAnswer(f.Data)
	if err != nil {
		return Event{}, err
	}
	var e Event
	name := root.Get("type").Str
	if name != f.Event {
		e.Unknown = append(e.Unknown, "event")
	}
	if !root.Get("type").Exists() && f.Event != "" { // some SDKs put it in, others skip the frame
		root, name = withType(root, f.Event), f.Event
		s.calls.unclear = true
	}
	var w walk
	if anthropicEvent(&w, root); w.err != nil {
		return Event{}, w.err
	}
	for _, p := range w.parts {
		p.Path = cmp.Or(p.Path, "frame") // one of another type has no path
		e.add(p, 0)
	}
	e.nameBlocks(root.Get("index"))
	e.Calls = s.calls.read(f, name, root)
	switch name {
	case "content_block_delta": // it begins no block
		s.last.learn(f, &w, e)
	case "message_start":
		e.ID = root.Get("message.id").Str
	case "message_delta":
		if e.Finish = root.Get("delta.stop_reason").Str; e.Finish != "" {
			e.Finished, e.Ending = []int{0}, true
		}
	case "message_stop":
		e.Done = true
	case "error":
		e.Err = f.Event == "error" // else some clients read on
	}
	e.markCalled()
	return e, nil
}

// withType is an object with a type.
func withType(root gjson.Result, name string) gjson.Result {
	members := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(root.Raw), "{"))
	if members != "}" {
		members = "," + members
	}
	return gjson.Parse(`{"type":` + string(encode(name)) + members)
}

// Ask makes the call that asks a model. The API demands a limit of the answer's length;
// ours is one that every model of the API allows.
func (anthropic) Ask(a Ask) Call {
	call := struct {
		Model     string         `json:"model,omitzero"`
		MaxTokens int            `json:"max_tokens"`
		System    string         `json:"system,omitzero"`
		Messages  []askedMessage `json:"messages"`
		Stream    bool           `json:"stream,omitzero"`
	}{Model: a.Model, MaxTokens: 4096, System: a.System, Messages: a.messages(), Stream: a.Stream}
	return Call{
		Path: "/v1/messages", Header: map[string]string{"anthropic-version": "2023-06-01"}, Body: encode(call),
	}
}

// Authorize returns the header of an API key.
func (anthropic) Authorize(key string) (name, value string) { return "x-api-key", key }

// Interface guards
var (
	_ Dialect = anthropic{}
	_ Asker   = anthropic{}
)
