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

// openaiRequest reads what every call has. A value of the wrong type is an
// error where it decides how the answer is read: some servers take "true" for
// true and 2.0 for 2.
func openaiRequest(root gjson.Result, body schema) (Request, error) {
	r := Request{Choices: 1}
	model, stream, n := root.Get("model"), root.Get("stream"), root.Get("n")
	switch {
	case model.Type != gjson.String && model.Type != gjson.Null:
		return Request{}, invalid("model is not a string")
	case !stream.IsBool() && stream.Type != gjson.Null:
		return Request{}, invalid("stream is not a boolean")
	}
	if n.Type != gjson.Null {
		choices, err := strconv.Atoi(n.Raw)
		if err != nil || choices < 1 || choices > MaxChoices {
			return Request{}, invalid("n is not an integer from 1 to %d", MaxChoices)
		}
		r.Choices = choices
	}
	w := walk{role: Other}
	body(&w, root)
	w.markEarlier()
	r.Model, r.Stream, r.Parts = model.Str, stream.Bool(), w.parts
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

// joinText joins the texts of the parts of some kinds.
func joinText(parts []Part, kinds ...Kind) string {
	var texts []string
	for _, p := range parts {
		if slices.Contains(kinds, p.Kind) {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "")
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
	seen := joinText(first, Text)
	if seen == "" {
		seen = joinText(first, RefusalText)
	}
	return Response{
		Model: root.Get("model").Str, Finish: root.Get("choices.0.finish_reason").Str,
		Parts: w.parts, text: seen,
	}, nil
}

// openaiEvents reads the frames of a stream, each of which stands for itself.
type openaiEvents schema

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

// isError reports whether every SDK takes an error member for an error. What
// only some do must not count: the others read on.
func isError(v gjson.Result) bool {
	switch v.Type {
	case gjson.JSON:
		found := false
		v.ForEach(func(_, _ gjson.Result) bool { found = true; return false })
		return found
	case gjson.String:
		return v.Str != ""
	case gjson.Number:
		return v.Num != 0
	}
	return v.Type == gjson.True
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
		e.add(indexes, p)
	}
}

func (e *Event) add(indexes []int, p Part) {
	if p.Kind == Unknown {
		e.Unknown = append(e.Unknown, p.Path)
		return
	}
	e.Calls = e.Calls || isChatCall(p.Path)
	d := Delta{Kind: p.Kind, Text: p.Text}
	if rest, ok := strings.CutPrefix(p.Path, "choices."); ok { // an error has no choice
		place, _, _ := strings.Cut(rest, ".")
		at, _ := strconv.Atoi(place)
		d.Choice = indexes[at]
	}
	e.Deltas = append(e.Deltas, d)
}

// isChatCall reports whether a part of a choice belongs to a call. Clients exist that
// run one as soon as its arguments are whole JSON, before the finish reason comes.
func isChatCall(path string) bool {
	return strings.Contains(path, ".tool_calls.") || strings.Contains(path, ".function_call.")
}

// choiceIndex reads a choice's index. One that cannot be counts as the first,
// so that its text is read all the same.
func choiceIndex(v gjson.Result) (int, bool) {
	if !v.Exists() {
		return 0, true
	}
	i, err := strconv.Atoi(v.Raw)
	if err != nil || i < 0 || i >= MaxChoices {
		return 0, false
	}
	return i, true
}
