package wire

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// A template is the last frame that a reader has parsed, if nothing but text came in it.
// Most frames of a stream are the one before with another text, and need not be parsed:
// JSON in which a string stands in place of another, or a number in place of another,
// is as valid as before, and reads the same but for this value. So a frame that differs
// from the template in its free values alone brings the same deltas with other texts.
//
// It is for frames whose event depends on nothing before, and behind which a reader is the
// same however often they come. The zero value is a template of no frame.
type template struct {
	frame   Frame // its name and its data
	free    []freeValue
	event   Event
	brought []Delta // by the frame that was read last
}

// A freeValue may be another in the next frame: a string or a whole number.
type freeValue struct {
	from, to int // the digits, or what stands between the quotes
	number   bool
	delta    int // whose text it is, or unread
}

// unread marks a value that no reader of an event uses.
const unread = -1

// maxTemplate bounds the frames that are kept, in bytes. In a longer one what is new is
// most of it.
const maxTemplate = chunk

// unreadScalar accepts what scalar does. No reader of an event uses the value.
func unreadScalar(w *walk, v gjson.Result) {
	scalar(w, v)
	switch {
	case v.Type == gjson.String:
		w.unread = append(w.unread, freeValue{from: v.Index + 1, to: endOf(v) - 1, delta: unread})
	case v.Type == gjson.Number && wholeNumber([]byte(v.Raw)) == len(v.Raw):
		w.unread = append(w.unread, freeValue{from: v.Index, to: endOf(v), number: true, delta: unread})
	}
}

// unreadObject accepts any value. No reader of an event uses the members of an object.
func unreadObject(w *walk, v gjson.Result) {
	if v.IsObject() {
		v.ForEach(func(_, member gjson.Result) bool {
			if !member.IsObject() && !member.IsArray() {
				unreadScalar(w, member)
			}
			return true
		})
	}
}

// learn makes a template of a frame that was parsed and walked, if it is one.
func (t *template) learn(f Frame, w *walk, e Event) {
	if len(e.Deltas) == 0 || len(e.Deltas) != len(w.parts) || len(e.Calls)+len(e.Unknown)+len(e.Finished) > 0 || len(f.Data) > maxTemplate {
		return
	}
	free := t.free[:0]
	free = append(free, w.unread...)
	for i, p := range w.parts {
		if f.Data[p.Start] != '"' || p.Kind != Text && p.Kind != RefusalText && p.Kind != Reasoning {
			return
		}
		free = append(free, freeValue{from: p.Start + 1, to: p.Start + p.Bytes - 1, delta: i})
	}
	slices.SortFunc(free, func(a, b freeValue) int { return cmp.Compare(a.from, b.from) })
	t.free, t.event = free, e
	t.frame = Frame{Event: f.Event, Data: append(t.frame.Data[:0], f.Data...)}
}

// read reads a frame that is like the template. It reports false for any other, and then
// there is no template until the next is learned.
func (t *template) read(f Frame) (Event, bool) {
	if len(t.free) == 0 || f.Event != t.frame.Event {
		return t.forget()
	}
	e := t.event
	t.brought = append(t.brought[:0], e.Deltas...)
	e.Deltas = t.brought
	rest, at := f.Data, 0
	for _, v := range t.free {
		behind, ok := bytes.CutPrefix(rest, t.frame.Data[at:v.from])
		if !ok {
			return t.forget()
		}
		text, n := v.read(f.Data[len(f.Data)-len(behind)-1:])
		switch {
		case n < 0, n == 0 && v.delta != unread: // an empty text is no delta
			return t.forget()
		case v.delta != unread:
			e.Deltas[v.delta].Text = string(text)
		}
		rest, at = behind[n:], v.to
	}
	if !bytes.Equal(rest, t.frame.Data[at:]) {
		return t.forget()
	}
	return e, true
}

func (t *template) forget() (Event, bool) {
	t.free = t.free[:0]
	return Event{}, false
}

// read reads the value that stands behind the first byte of b. It returns the text of a
// string, and how many bytes the value has, without quotes, or -1 if it is not valid.
func (v freeValue) read(b []byte) (text []byte, n int) {
	if v.number {
		return nil, wholeNumber(b[1:])
	}
	end := closingQuote(b, 0)
	switch {
	case end == len(b):
		return nil, -1
	case isUnescaped(b[1:end]):
		return b[1:end], end - 1
	}
	text, err := jsontext.AppendUnquote(nil, b[:end+1])
	if err != nil || bytes.IndexByte(text, 0) >= 0 { // as in parse
		return nil, -1
	}
	return text, end - 1
}

// isUnescaped reports whether text may stand in a string as it is.
func isUnescaped(text []byte) bool {
	return utf8.Valid(text) && !slices.ContainsFunc(text, func(c byte) bool { return c < ' ' || c == '\\' })
}

// wholeNumber returns how many digits b begins with, or -1 if they are no number of JSON.
func wholeNumber(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	if n == 0 || n > 1 && b[0] == '0' {
		return -1
	}
	return n
}
