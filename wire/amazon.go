package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// ErrFrame is returned for bytes that are no frame. Nobody knows where the next one begins.
var ErrFrame = errors.New("event stream frame that cannot be read")

// An amazonSplitter splits a stream in Amazon's event stream encoding
// (https://smithy.io/2.0/aws/amazon-eventstream.html). A frame is one message: its length and
// that of its headers, a checksum of the two, the headers, the payload and a checksum of it all.
// Every client verifies the checksums, and none reads on behind one that is wrong.
type amazonSplitter struct {
	frameQueue
	limit int // of one frame, in bytes

	buf   []byte // what frames are cut from; never written again where a frame is
	start int    // of the unfinished frame
	err   error
}

// The first part of a message, which has a checksum of its own, and the least that one has.
const (
	amazonPrelude = 12
	amazonLeast   = amazonPrelude + 4
)

// Push implements [Splitter].
func (s *amazonSplitter) Push(p []byte) error {
	for len(p) > 0 && s.err == nil {
		n := fitting(s.buf, p)
		s.buf, s.start = appendUncut(s.buf[s.start:], p[:n]), 0
		for s.err == nil && s.cut() {
		}
		p = p[n:]
	}
	return s.err
}

// cut cuts one frame off, if a whole one is there.
func (s *amazonSplitter) cut() bool {
	rest := s.buf[s.start:]
	if len(rest) < amazonPrelude {
		return false
	}
	size := int(binary.BigEndian.Uint32(rest))
	headers := int(binary.BigEndian.Uint32(rest[4:]))
	switch {
	case crc32.ChecksumIEEE(rest[:8]) != binary.BigEndian.Uint32(rest[8:]), size < amazonLeast, headers > size-amazonLeast:
		s.err = fmt.Errorf("reading the lengths of a message: %w", ErrFrame)
		return false
	case size > s.limit:
		s.err = fmt.Errorf("reading a message of %d bytes: %w", size, ErrFrameTooLarge)
		return false
	case len(rest) < size:
		return false
	}
	raw := rest[:size:size]
	m, err := eventstream.NewDecoder().Decode(bytes.NewReader(raw), nil)
	if err != nil {
		s.err = fmt.Errorf("reading a message: %w", ErrFrame)
		return false
	}
	s.start += size
	s.add(amazonFrame(raw, m))
	return true
}

// Last implements [Splitter]. Every message has its own end, so what is left is cut.
func (s *amazonSplitter) Last() (Frame, bool) {
	rest := s.buf[s.start:]
	return Frame{Raw: bytes.Clone(rest)}, len(rest) > 0
}

// Ended implements [Splitter].
func (s *amazonSplitter) Ended(last Frame) (Frame, bool) { return last, false }

// An amazonMessage is what makes a frame one of Amazon's: its headers, and how its payload is wrapped.
type amazonMessage struct {
	headers eventstream.Headers
	// chunk: the payload is an object with the frame's JSON in base64, as in Bedrock's
	// InvokeModelWithResponseStream, which passes on what a model writes.
	chunk bool
	// failure: the message is an exception or an error, which clients raise.
	failure bool
}

// The headers of a message and their values.
const (
	amazonMessageType   = ":message-type"
	amazonEventType     = ":event-type"
	amazonExceptionType = ":exception-type"
	amazonContentType   = ":content-type"
	amazonErrorCode     = ":error-code"
	amazonErrorMessage  = ":error-message"

	amazonEvent     = "event"
	amazonException = "exception"
	amazonError     = "error"
	amazonChunk     = "chunk"
)

// amazonFrame reads a message. Its name is that of the event or of the exception. Of a message
// type that is none of the three the clients in Python read an event and the others fail.
func amazonFrame(raw []byte, m eventstream.Message) Frame {
	f := Frame{Raw: raw, Data: m.Payload, amazon: &amazonMessage{headers: m.Headers}}
	known := make(map[string]string)
	for _, h := range m.Headers {
		value, isText := h.Value.Get().(string)
		switch h.Name {
		case amazonMessageType, amazonEventType, amazonExceptionType, amazonContentType, amazonErrorCode, amazonErrorMessage:
			if isText {
				known[h.Name] = value
				continue
			}
		}
		if raw, isBytes := h.Value.Get().([]byte); isBytes {
			value = string(raw)
		} else if !isText {
			value = fmt.Sprint(h.Value.Get())
		}
		f.addStray(h.Name + ": " + value)
	}
	switch kind := known[amazonMessageType]; kind {
	case amazonException:
		f.Event, f.amazon.failure = known[amazonExceptionType], true
	case amazonError:
		f.Event, f.amazon.failure = amazonError, true
		if len(m.Payload) > 0 {
			f.addStray(string(m.Payload))
		}
		f.Data = encode(map[string]string{"code": known[amazonErrorCode], "message": known[amazonErrorMessage]})
	default:
		f.Event = known[amazonEventType]
		if kind != amazonEvent {
			f.addStray(amazonMessageType + ": " + kind)
		}
		f.unwrap()
	}
	return f
}

// unwrap takes the JSON out of a chunk. One that nobody can decode stays as it is.
func (f *Frame) unwrap() {
	if f.Event != amazonChunk || !gjson.ValidBytes(f.Data) {
		return
	}
	payload := gjson.ParseBytes(f.Data)
	inner, err := base64.StdEncoding.DecodeString(payload.Get("bytes").Str)
	if err != nil || !payload.IsObject() {
		return
	}
	payload.ForEach(func(name, value gjson.Result) bool {
		if name.Str != "bytes" && (name.Str != padding || !isPadding(value)) {
			f.addStray(name.Raw + ": " + value.Raw)
		}
		return true
	})
	f.Event, f.Data, f.amazon.chunk = "", inner, true
}

// padding is the member that Bedrock fills with letters and digits, so that the size of a message
// does not tell that of its text.
const padding = "p"

func isPadding(v gjson.Result) bool {
	return v.Type == gjson.String && !bytes.ContainsFunc([]byte(v.Str), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}

func (f *Frame) addStray(line string) {
	if len(f.Stray) > 0 {
		f.Stray = append(f.Stray, '\n')
	}
	f.Stray = append(f.Stray, line...)
}

// failed reports whether a frame is an exception or an error.
func (f Frame) failed() bool { return f.amazon != nil && f.amazon.failure }

// withPayload returns the bytes of a message with the same headers and another payload.
func (m *amazonMessage) withPayload(data []byte) []byte {
	if m.chunk {
		data = encode(map[string]string{"bytes": base64.StdEncoding.EncodeToString(data)})
	}
	return appendMessage(nil, m.headers, data)
}

// appendMessage appends a message. The encoder fails only for headers that are too long to be
// encoded; ours are constants, and others were decoded.
func appendMessage(dst []byte, headers eventstream.Headers, payload []byte) []byte {
	var out bytes.Buffer
	_ = eventstream.NewEncoder().Encode(&out, eventstream.Message{Headers: headers, Payload: payload})
	return append(dst, out.Bytes()...)
}

// appendAmazon appends an event, or an exception.
func appendAmazon(dst []byte, kind, name string, payload []byte) []byte {
	typed := amazonEventType
	if kind == amazonException {
		typed = amazonExceptionType
	}
	return appendMessage(dst, eventstream.Headers{
		{Name: typed, Value: eventstream.StringValue(name)},
		{Name: amazonContentType, Value: eventstream.StringValue("application/json")},
		{Name: amazonMessageType, Value: eventstream.StringValue(kind)},
	}, payload)
}

// Interface guard
var _ Splitter = (*amazonSplitter)(nil)
