package wire

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// MaxFrame is the default limit of one frame, in bytes. One frame may carry
// megabytes of inline data, so lines have no limit of their own.
const MaxFrame = 16 << 20

// ErrFrameTooLarge is returned for a frame over the limit.
var ErrFrameTooLarge = errors.New("event stream frame too large")

// A Frame is one event of a stream with the bytes it came in.
type Frame struct {
	// Raw is the frame as it came, with what ends it. The Raws of a stream and the
	// rest, one after the other, are the stream.
	Raw   []byte
	Event string // the last event: field of an event stream; in Amazon's, the type of the message
	Data  []byte // the frame's JSON; may share Raw's memory
	// Stray are the lines of a frame of an event stream that are none of its fields, or that
	// have a line end within that only some clients know. Some clients read them all the same:
	// Google's Python SDK takes them for JSON. In Amazon's encoding they are the headers that no
	// client knows.
	Stray []byte
	// Comment marks a frame without any field, which clients skip.
	Comment bool
	// HasID marks a frame of an event stream with an id: or retry: field. Behind one,
	// the Python SDK of OpenAI fails on comments.
	HasID bool

	amazon *amazonMessage // of a frame in Amazon's encoding; nil in the others
}

// withData returns the bytes of a frame with other data. All else in it stays, unless the
// data stands on several lines of an event stream. These become one, which changes no JSON.
func (f Frame) withData(data []byte) []byte {
	if f.amazon != nil {
		return f.amazon.withPayload(data)
	}
	if bytes.Count(f.Raw, f.Data) == 1 {
		return bytes.Replace(f.Raw, f.Data, data, 1)
	}
	var out []byte
	if f.Event != "" {
		out = append(out, "event: "+f.Event+"\n"...)
	}
	return AppendEvent(out, bytes.ReplaceAll(data, []byte("\n"), []byte(" ")))
}

// Known returns a frame without what its dialect does not know, given what [Event.Unknown]
// says of it: members of its data, or the name of the event, with which all but the data goes.
// Every other byte stays. It reports false if more than that is unknown, or nothing is known.
func (f Frame) Known(unknown []string) (Frame, bool) {
	if len(unknown) == 0 {
		return f, true
	}
	named, gone := f.Event != "" && slices.Contains(unknown, "event"), 0
	var c changes
	left := c.drop(gjson.ParseBytes(f.Data), func(name string, _ int) bool {
		is := slices.Contains(unknown, pathName(name))
		if is {
			gone++
		}
		return is
	})
	if named {
		gone++
	}
	if gone < len(unknown) || left == 0 || named && f.amazon != nil { // of Amazon's messages the name tells what the data is
		return Frame{}, false
	}
	data := c.apply(f.Data)
	if named {
		f.Event, f.Raw = "", AppendEvent(nil, bytes.ReplaceAll(data, []byte("\n"), []byte(" ")))
	} else {
		f.Raw = f.withData(data)
	}
	f.Data = data
	return f, true
}

// Forgiven returns a frame with its data as lenient clients read it: of a member that occurs
// twice the last one counts, and a mark stands in the place of bytes that are no UTF-8, of half a
// surrogate pair and of NULs. A member that JavaScript gives to the object around it is left out.
// It reports false for what is no JSON even so.
func (f Frame) Forgiven() (Frame, bool) {
	var value any
	err := json.Unmarshal(f.Data, &value, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return Frame{}, false
	}
	f.Data = encode(forgive(value))
	return f, true
}

func forgive(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, "\x00", "\uFFFD")
	case []any:
		for i := range v {
			v[i] = forgive(v[i])
		}
	case map[string]any:
		delete(v, prototype)
		for name := range v {
			v[name] = forgive(v[name])
		}
	}
	return value
}

// appendRaw appends the bytes of frames.
func appendRaw(dst []byte, frames []Frame) []byte {
	for _, f := range frames {
		dst = append(dst, f.Raw...)
	}
	return dst
}

// A Framing is how a streamed answer is cut into frames.
type Framing string

// The framings.
const (
	EventStream  Framing = "text/event-stream"                  // WHATWG HTML, section 9.2
	Lines        Framing = "application/x-ndjson"               // one JSON value a line
	Array        Framing = "application/json"                   // one JSON array, sent element by element
	AmazonStream Framing = "application/vnd.amazon.eventstream" // Amazon's event stream encoding, which is binary
)

// ContentType is the media type of a stream with this framing, as a header.
func (f Framing) ContentType() string {
	if f == EventStream {
		return "text/event-stream; charset=utf-8"
	}
	return string(f)
}

// A Splitter cuts a stream into frames. It takes the bytes in any pieces; where the
// pieces are cut makes no difference to the frames. It is not safe for concurrent use.
type Splitter interface {
	// Push takes the next bytes and copies them. After ErrFrameTooLarge or ErrFrame it reads
	// no further; Next still returns the frames before that one.
	Push(p []byte) error
	// Next returns the next complete frame. Its bytes stay valid.
	Next() (Frame, bool)
	// Last returns the frame that the stream ended in, if it has no end of its own. It
	// is the last call but for Ended.
	Last() (Frame, bool)
	// Ended returns that frame as it can be sent on, with the end that it lacks, so that
	// something can follow. It reports false if the stream broke off within the frame, or
	// within what all frames stand in.
	Ended(last Frame) (Frame, bool)
}

// NewSplitter returns a splitter for streams with a framing. Limit bounds one frame,
// in bytes; 0 means [MaxFrame].
func NewSplitter(f Framing, limit int) Splitter {
	if limit <= 0 {
		limit = MaxFrame
	}
	switch f {
	case Array:
		return &arraySplitter{limit: limit, value: -1}
	case Lines:
		return &lineSplitter{limit: limit}
	case AmazonStream:
		return &amazonSplitter{limit: limit}
	}
	return &eventSplitter{limit: limit}
}

// A frameQueue holds the frames that a splitter has cut and nobody has taken yet.
type frameQueue struct {
	frames []Frame
	next   int // the first frame not yet taken
}

// usuallyCut is how many frames of a word each are cut at a time.
const usuallyCut = 8

func (q *frameQueue) add(f Frame) {
	if q.frames == nil {
		q.frames = make([]Frame, 0, usuallyCut)
	}
	q.frames = append(q.frames, f)
}

// Next implements [Splitter].
func (q *frameQueue) Next() (Frame, bool) {
	if q.next == len(q.frames) {
		return Frame{}, false
	}
	f := q.frames[q.next]
	q.frames[q.next] = Frame{} // its bytes can be freed
	if q.next++; q.next == len(q.frames) {
		q.frames, q.next = q.frames[:0], 0
	}
	return f, true
}
