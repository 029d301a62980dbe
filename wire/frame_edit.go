package wire

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

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

// byKey returns blocked calls by key.
func byKey(blocked []BlockedCall) (map[string]BlockedCall, error) {
	out := make(map[string]BlockedCall, len(blocked))
	for _, b := range blocked {
		if b.Note == "" {
			return nil, fmt.Errorf("%w: a note is empty", ErrCalls)
		}
		out[b.Key] = b
	}
	return out, nil
}

func errNoSuchCall() error { return fmt.Errorf("%w: a blocked call is not there", ErrCalls) }
