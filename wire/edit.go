package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// An edit replaces the bytes of a body from start to end.
type edit struct {
	start, end int
	text       []byte
}

// replace is the edit of a value.
func replace(v gjson.Result, text []byte) edit { return edit{v.Index, v.Index + len(v.Raw), text} }

// edited returns the body with its edits, which do not overlap, done. Every other byte
// stays, and the body itself is not changed.
func edited(body []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return body
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	from := 0
	for _, s := range edits {
		out = append(append(out, body[from:s.start]...), s.text...)
		from = s.end
	}
	return append(out, body[from:]...)
}

// withData returns the bytes of a frame with other data. All else in it stays, unless the
// data had several lines.
func (f Frame) withData(data []byte) []byte {
	if bytes.Count(f.Raw, f.Data) == 1 {
		return bytes.Replace(f.Raw, f.Data, data, 1)
	}
	var out []byte
	if f.Event != "" {
		out = append(out, "event: "+f.Event+"\n"...)
	}
	one := jsontext.Value(bytes.Clone(data))
	if err := one.Compact(); err != nil {
		panic(fmt.Errorf("writing data that was read as JSON before: %w", err))
	}
	return AppendEvent(out, one)
}

// appendRaw appends the bytes of frames.
func appendRaw(dst []byte, frames []Frame) []byte {
	for _, f := range frames {
		dst = append(dst, f.Raw...)
	}
	return dst
}

// notesOf returns the notes of blocked calls by key.
func notesOf(blocked []BlockedCall) (map[string]string, error) {
	notes := make(map[string]string, len(blocked))
	for _, b := range blocked {
		if b.Note == "" {
			return nil, fmt.Errorf("%w: a note is empty", ErrCalls)
		}
		notes[b.Key] = b.Note
	}
	return notes, nil
}

func errNoSuchCall() error { return fmt.Errorf("%w: a blocked call is not there", ErrCalls) }
