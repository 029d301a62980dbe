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
	w := walk{role: Other}
	body(&w, root)
	w.markEarlier()
	r.Model, r.Stream, r.Parts = model, stream.Bool(), w.parts
	return r, w.err
}

// lastUserText joins the text of the last user message that has text. What a tool
// returned may stand in the same message.
func lastUserText(parts []Part) string {
	for i, p := range slices.Backward(parts) {
		if p.Role != User || p.Kind != Text {
			continue
		}
		said := parts[:i+1]
		said = said[slices.IndexFunc(said, func(q Part) bool { return q.Message == p.Message }):]
		said = slices.DeleteFunc(slices.Clone(said), func(q Part) bool { return q.Role != User }) // results of tools
		return joinText(said, Text)
	}
	return ""
}

// openaiResponse reads a whole answer.
func openaiResponse(body []byte, answer schema) (Response, error) {
	root, err := parse(body)
	if err != nil {
		return Response{}, err
	}
	if !root.Get("choices").IsArray() {
		return Response{}, invalid("choices is not an array")
	}
	var w walk
	if answer(&w, root); w.err != nil {
		return Response{}, w.err
	}
	var first []Part
	for _, p := range w.parts {
		if strings.HasPrefix(p.Path, "choices.0.") {
			first = append(first, p)
		}
	}
	return Response{
		Model: root.Get("model").Str, Finish: root.Get("choices.0.finish_reason").Str,
		Parts: w.parts, text: shownText(first),
	}, nil
}

// openaiEvents reads the frames of a stream, each of which stands for itself.
type openaiEvents schema

// Fork implements [EventReader].
func (chunk openaiEvents) Fork() EventReader { return chunk }

// Event reads one frame of a stream. The event field is not part of the API; its
// SDKs read the data whatever it says.
func (chunk openaiEvents) Event(f Frame) (Event, error) {
	switch {
	case f.Comment:
		return Event{}, nil
	case bytes.HasPrefix(f.Data, doneData): // as a prefix, it ends every client: by its rule or by an exception
		return Event{Done: true}, nil
	case len(f.Data) == 0:
		return Event{Unknown: []string{"event"}}, nil
	}
	root, err := parse(f.Data)
	if err != nil {
		return Event{}, err
	}
	var w walk
	if chunk(&w, root); w.err != nil {
		return Event{}, w.err
	}
	e := Event{Err: isError(root.Get("error"))}
	if f.Event != "" && f.Event != "message" {
		e.Unknown = append(e.Unknown, "event")
	}
	e.addChoices(root.Get("choices"), w.parts)
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
		if p.Kind != Unknown && isChatCall(p.Path) {
			e.Calls = append(e.Calls, CallDelta{})
		}
		choice := 0
		if rest, ok := strings.CutPrefix(p.Path, "choices."); ok && p.Kind != Unknown { // an error has no choice
			place, _, _ := strings.Cut(rest, ".")
			at, _ := strconv.Atoi(place)
			choice = indexes[at]
		}
		e.add(p, choice)
	}
}

// isChatCall reports whether a part of a choice belongs to a call. Clients exist that
// run one as soon as its arguments are whole JSON, before the finish reason comes.
func isChatCall(path string) bool {
	return strings.Contains(path, ".tool_calls.") || strings.Contains(path, ".function_call.")
}
