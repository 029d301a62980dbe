package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// What the readers of several dialects have in common.

// modelAndStream reads the two members that most calls have. A value of the wrong type
// is an error, because it decides how the answer is read, and some servers take "true"
// for true.
func modelAndStream(root gjson.Result) (model string, stream gjson.Result, err error) {
	name, stream := root.Get("model"), root.Get("stream")
	switch {
	case name.Type != gjson.String && name.Type != gjson.Null:
		err = invalid("model is not a string")
	case !stream.IsBool() && stream.Type != gjson.Null:
		err = invalid("stream is not a boolean")
	}
	return name.Str, stream, err
}

// shownText is what a reader sees of the parts of a choice: its content or, where there
// is none because the model declined, its refusal.
func shownText(parts []Part) string {
	return cmp.Or(joinText(parts, Text), joinText(parts, RefusalText))
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

// isOnlyError reports whether a whole answer is nothing but the provider's report of an
// error. Beside an answer it is none: clients read the answer. Nor is it beside anything that
// is not known, which some client may read.
func (w *walk) isOnlyError(root gjson.Result) bool {
	beside := func(p Part) bool { return p.Kind != Annotation }
	return w.err == nil && isError(root.Get("error")) && !slices.ContainsFunc(w.parts, beside)
}

// notAnAnswer is what is read of JSON that is no answer of the dialect.
func notAnAnswer(root gjson.Result, why string) (Response, error) {
	return Response{Err: isError(root.Get("error"))}, invalid("%s", why)
}

// add adds a part of a frame to what the frame brings to a choice.
func (e *Event) add(p Part, choice int) {
	if p.Kind == Unknown {
		e.Unknown = append(e.Unknown, p.Path)
		return
	}
	e.addSilent(p)
	d := Delta{Choice: choice, Kind: p.Kind, Text: p.Text, Called: p.Called, Ahead: p.tokens}
	if d.IsText() || d.Kind == Reasoning && d.Text != "" {
		d.Part = p.Path
	}
	e.Deltas = append(e.Deltas, d)
}

// addSilent notes the size of a part without text.
func (e *Event) addSilent(p Part) {
	if p.Text != "" || p.Called {
		return
	}
	if e.Silent == nil {
		e.Silent = make(map[Kind]int)
	}
	e.Silent[p.Kind] += p.Bytes
}

// markCalled marks the input of calls in a frame that brings nothing of other calls.
func (e *Event) markCalled() {
	for i := range e.Deltas {
		if d := &e.Deltas[i]; len(e.Calls) > 0 && (d.Kind == Arguments || d.Kind == Name) {
			d.Called = true
		}
	}
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

// elements calls a function for each element of an array.
func elements(array gjson.Result, with func(at int, v gjson.Result)) {
	if !array.IsArray() {
		return
	}
	at := 0
	array.ForEach(func(_, v gjson.Result) bool {
		with(at, v)
		at++
		return true
	})
}

// toolDefinition reads the description of a tool.
func toolDefinition(v, schema gjson.Result) ToolDefinition {
	return ToolDefinition{Name: v.Get("name").Str, Description: v.Get("description").Str, Schema: schemaText(schema)}
}

// schemaText is the schema of a tool as it was written; nil if there is none. One that is
// no schema is kept, so that what checks arguments can say that it did not.
func schemaText(v gjson.Result) []byte {
	if v.Type == gjson.Null {
		return nil
	}
	return []byte(v.Raw)
}
