package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// amazonMessage is a message with headers of text, which are given as names and values.
func amazonMessage(t testing.TB, payload string, headers ...string) string {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, eventstream.Header{Name: headers[i], Value: eventstream.StringValue(headers[i+1])})
	}
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// amazonEvent is an event as Bedrock sends it, and amazonChunk one with an event of a model's own.
func amazonEvent(t testing.TB, name, payload string) string {
	t.Helper()
	return amazonMessage(t, payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

func amazonChunk(t testing.TB, data string) string {
	t.Helper()
	return amazonEvent(t, "chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(data))+`","p":"abcdE1"}`)
}

func amazonException(t testing.TB, name, payload string) string {
	t.Helper()
	return amazonMessage(t, payload, ":exception-type", name, ":content-type", "application/json", ":message-type", "exception")
}

// cutAmazon pushes a stream in pieces and returns its frames and the splitter's error.
func cutAmazon(pieces ...string) (frames []wire.Frame, rest string, err error) {
	s := wire.NewSplitter(wire.AmazonStream, 0)
	for _, p := range pieces {
		err = s.Push([]byte(p))
	}
	for f, ok := s.Next(); ok; f, ok = s.Next() {
		frames = append(frames, f)
	}
	if f, ok := s.Last(); ok {
		rest = string(f.Raw)
	}
	return frames, rest, err
}

func TestAmazonFrames(t *testing.T) {
	for name, test := range map[string]struct{ in, event, data, stray string }{
		"an event":         {amazonEvent(t, "messageStart", `{"role":"assistant"}`), "messageStart", `{"role":"assistant"}`, ""},
		"without payload":  {amazonEvent(t, "messageStart", ""), "messageStart", "", ""},
		"no header":        {amazonMessage(t, `{}`), "", `{}`, ":message-type: "},
		"a chunk":          {amazonChunk(t, `{"type":"ping"}`), "", `{"type":"ping"}`, ""},
		"an empty chunk":   {amazonEvent(t, "chunk", `{"bytes":""}`), "", "", ""},
		"no chunk":         {amazonEvent(t, "chunk", `{"bytes":"???"}`), "chunk", `{"bytes":"???"}`, ""},
		"a chunk and more": {amazonEvent(t, "chunk", `{"bytes":"e30=","note":"I am DAN","p":"so to say"}`), "", "{}", `"note": "I am DAN"` + "\n" + `"p": "so to say"`},
		"an exception":     {amazonException(t, "throttlingException", `{"message":"slow down"}`), "throttlingException", `{"message":"slow down"}`, ""},
		"an error":         {amazonMessage(t, "", ":message-type", "error", ":error-code", "E", ":error-message", "No."), "error", `{"code":"E","message":"No."}`, ""},
		"an error's body":  {amazonMessage(t, "more", ":message-type", "error", ":error-code", "E"), "error", `{"code":"E","message":""}`, "more"},
		"another type":     {amazonMessage(t, `{}`, ":message-type", "note", ":event-type", "x"), "x", `{}`, ":message-type: note"},
		"another header":   {amazonMessage(t, `{}`, ":message-type", "event", ":event-type", "x", "note", "I am DAN"), "x", `{}`, "note: I am DAN"},
	} {
		frames, rest, err := cutAmazon(test.in)
		if err != nil || rest != "" || len(frames) != 1 {
			t.Errorf("%s: %d frames, %q, %v", name, len(frames), rest, err)
			continue
		}
		if f := frames[0]; string(f.Raw) != test.in || f.Event != test.event || string(f.Data) != test.data || string(f.Stray) != test.stray || f.Comment {
			t.Errorf("%s: event %q, data %s, stray %q", name, f.Event, f.Data, f.Stray)
		}
	}
}

// A header that is no text has no meaning that clients know of.
func TestAmazonHeadersOfOtherTypes(t *testing.T) {
	var out bytes.Buffer
	err := eventstream.NewEncoder().Encode(&out, eventstream.Message{Headers: eventstream.Headers{
		{Name: ":message-type", Value: eventstream.StringValue("event")},
		{Name: ":event-type", Value: eventstream.BytesValue("messageStart")},
		{Name: "n", Value: eventstream.Int32Value(7)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	frames, _, err := cutAmazon(out.String())
	if err != nil || len(frames) != 1 || frames[0].Event != "" || string(frames[0].Stray) != ":event-type: messageStart\nn: 7" {
		t.Errorf("%+v, %v", frames, err)
	}
}

// Behind a message that cannot be read nobody knows where the next one begins.
func TestAmazonBrokenMessages(t *testing.T) {
	whole := amazonEvent(t, "messageStart", `{"role":"assistant"}`)
	flip := func(at int) string { b := []byte(whole); b[at] ^= 1; return string(b) }
	lengths := func(total, headers uint32) string {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, total), headers)
		return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
	}
	for name, broken := range map[string]string{
		"the length":           flip(0),
		"the headers' length":  flip(7),
		"the first checksum":   flip(8),
		"a header":             flip(14),
		"the payload":          flip(len(whole) - 6),
		"the last checksum":    flip(len(whole) - 1),
		"too short":            lengths(15, 0),
		"headers too long":     lengths(20, 5),
		"JSON":                 `{"output":{"message":{}}}`,
		"an event stream":      "data: {\"a\":\"b\"}\n\n",
		"too large, and whole": lengths(wire.MaxFrame+1, 0),
	} {
		frames, _, err := cutAmazon(whole + broken + whole)
		if len(frames) != 1 || !errors.Is(err, wire.ErrFrame) && !errors.Is(err, wire.ErrFrameTooLarge) {
			t.Errorf("%s: %d frames, %v", name, len(frames), err)
		}
	}
	// One that breaks off is no frame, whatever is there of it.
	for n := range len(whole) {
		s := wire.NewSplitter(wire.AmazonStream, 0)
		if err := s.Push([]byte(whole + whole[:n])); err != nil {
			t.Fatal(err)
		}
		s.Next()
		last, ok := s.Last()
		if ok != (n > 0) || string(last.Raw) != whole[:n] {
			t.Errorf("cut behind %d bytes: %q", n, last.Raw)
		}
		if _, ended := s.Ended(last); ok && ended {
			t.Errorf("cut behind %d bytes it has an end", n)
		}
	}
}

// Where the pieces of a stream are cut makes no difference.
func TestAmazonPieces(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var stream string
		for range rapid.IntRange(0, 8).Draw(r, "messages") {
			stream += amazonEvent(t, "contentBlockDelta", `{"delta":{"text":"`+strings.Repeat("x", rapid.IntRange(0, 3000).Draw(r, "text"))+`"}}`)
		}
		whole, _, err := cutAmazon(stream)
		if err != nil {
			r.Fatal(err)
		}
		var pieces []string
		for rest := stream; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(r, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		cut, rest, err := cutAmazon(pieces...)
		same := func(a, b wire.Frame) bool { return bytes.Equal(a.Raw, b.Raw) && bytes.Equal(a.Data, b.Data) }
		if err != nil || rest != "" || !slices.EqualFunc(whole, cut, same) {
			r.Errorf("%d frames, %q, %v", len(cut), rest, err)
		}
	})
}

func FuzzAmazon(f *testing.F) {
	f.Add([]byte(amazonEvent(f, "messageStart", `{"role":"assistant"}`) + amazonChunk(f, `{}`)))
	f.Add([]byte(amazonException(f, "throttlingException", `{"message":"x"}`)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames, rest, err := cutAmazon(string(stream))
		read := 0
		for _, frame := range frames {
			read += len(frame.Raw)
			for _, d := range []wire.Dialect{dialect(t, "bedrock"), bedrockAt(t, "/model/anthropic.c/invoke-with-response-stream")} {
				_, _ = d.Events().Event(frame)
			}
		}
		if !bytes.HasPrefix(stream, appendFrames(frames)) || err == nil && read+len(rest) != len(stream) {
			t.Errorf("%d frames of %d bytes and %d more, %v", len(frames), read, len(rest), err)
		}
	})
}

func appendFrames(frames []wire.Frame) (out []byte) {
	for _, f := range frames {
		out = append(out, f.Raw...)
	}
	return out
}
