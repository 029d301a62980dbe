package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// What the readers of OpenAI's APIs have in common.

// openaiRequest reads what every call has. Some servers take 2.0 for 2.
func openaiRequest(root gjson.Result, body schema) (Request, error) {
	r := Request{Choices: 1}
	model, stream, err := modelAndStream(root)
	if err != nil {
		return Request{}, err
	}
	if n := root.Get("n"); n.Type != gjson.Null {
		choices, err := strconv.Atoi(n.Raw)
		if err != nil || choices < 1 || choices > MaxChoices {
			return Request{}, invalid("n is not an integer from 1 to %d", MaxChoices)
		}
		r.Choices = choices
	}
	w := walk{role: Other, toModel: true}
	body(&w, root)
	w.markEarlier()
	w.markContext()
	r.Model, r.Stream, r.Parts = model, stream.Bool(), w.parts
	r.TellsUsage = root.Get("stream_options.include_usage").Bool()
	return r, w.err
}

// lastUserText joins the text of the last user message that has text. What a tool
// returned, and what the application put there, may stand in the same message.
func lastUserText(parts []Part) string {
	for i, p := range slices.Backward(parts) {
		if p.Role != User || p.Kind != Text || p.Context {
			continue
		}
		said := parts[:i+1]
		said = said[slices.IndexFunc(said, func(q Part) bool { return q.Message == p.Message }):]
		said = slices.DeleteFunc(slices.Clone(said), func(q Part) bool { return q.Role != User || q.Context }) // results of tools
		return joinText(said, Text)
	}
	return ""
}

// openaiResponse reads a whole answer, and returns its choices too.
func openaiResponse(body []byte, answer schema) (r Response, choices gjson.Result, err error) {
	root, err := parseAnswer(body)
	if err != nil {
		return Response{}, choices, err
	}
	var w walk
	answer(&w, root)
	failed := w.isOnlyError(root)
	if choices = root.Get("choices"); !choices.IsArray() && !failed {
		r, err = notAnAnswer(root, "choices is not an array")
		return r, gjson.Result{}, err
	}
	if w.err != nil {
		return Response{}, gjson.Result{}, w.err
	}
	var first []Part
	for _, p := range w.parts {
		if strings.HasPrefix(p.Path, "choices.0.") {
			first = append(first, p)
		}
	}
	return Response{
		ID: root.Get("id").Str, Model: root.Get("model").Str, Finish: choices.Get("0.finish_reason").Str,
		Err: failed, Parts: w.parts, text: shownText(first),
	}, choices, nil
}

// openaiEvents reads the frames of a stream, each of which stands for itself but for the
// calls.
type openaiEvents struct {
	chunk schema
	calls chatCalls
	last  template
}

// Rest implements [EventReader].
func (r *openaiEvents) Rest() EventReader { return &openaiEvents{chunk: r.chunk} }

// Event reads one frame of a stream. The event field is not part of the API; its
// SDKs read the data whatever it says.
func (r *openaiEvents) Event(f Frame) (Event, error) {
	switch {
	case f.Comment:
		return Event{}, nil
	case bytes.HasPrefix(f.Data, doneData): // as a prefix, it ends every client: by its rule or by an exception
		return Event{Done: true}, nil
	case len(f.Data) == 0:
		return Event{Unknown: []string{"event"}}, nil
	}
	if e, ok := r.last.read(f); ok {
		return e, nil
	}
	root, err := parseAnswer(f.Data)
	if err != nil {
		return Event{}, err
	}
	var w walk
	if r.chunk(&w, root); w.err != nil {
		return Event{}, w.err
	}
	e := Event{ID: root.Get("id").Str, Err: isError(root.Get("error"))}
	if f.Event != "" && f.Event != "message" {
		e.Unknown = append(e.Unknown, "event")
	}
	choices := root.Get("choices")
	countTokens(w.parts, f.Data)
	if e.addChoices(choices, w.parts); w.called || slices.ContainsFunc(e.Unknown, isMessage) {
		for _, piece := range r.calls.read(choices) {
			e.Calls = append(e.Calls, piece.CallDelta)
		}
	}
	r.last.learn(f, &w, e)
	return e, nil
}

// addChoices turns the parts of a chunk into deltas of the choices that they
// belong to. A choice is named by its index, not by its place in the chunk.
func (e *Event) addChoices(choices gjson.Result, parts []Part) {
	var indexes []int
	choices.ForEach(func(_, choice gjson.Result) bool {
		index, ok := choiceIndex(choice.Get("index"))
		if !ok {
			e.Unknown = append(e.Unknown, "choices."+strconv.Itoa(len(indexes))+".index")
		}
		if reason := choice.Get("finish_reason").Str; reason != "" {
			e.Finish, e.Finished = cmp.Or(e.Finish, reason), append(e.Finished, index)
		}
		indexes = append(indexes, index)
		return true
	})
	for _, p := range parts {
		choice := 0
		if rest, ok := strings.CutPrefix(p.Path, "choices."); ok && p.Kind != Unknown { // an error has no choice
			place, _, _ := strings.Cut(rest, ".")
			at, _ := strconv.Atoi(place)
			choice = indexes[at]
		}
		e.add(p, choice)
	}
}

// isMessage reports whether an unknown member of a chunk is the message that a choice of
// a whole answer has.
func isMessage(path string) bool { return strings.HasSuffix(path, messageName) }

var messageName = pathName("message")
