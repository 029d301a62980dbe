package wire_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// decode pushes an input cut into pieces and returns its frames and the rest.
func decode(t testing.TB, pieces ...string) (frames []wire.Frame, rest string) {
	t.Helper()
	d := wire.NewSplitter(wire.EventStream, 0)
	for _, p := range pieces {
		if err := d.Push([]byte(p)); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, taken(d)...)
	}
	last, _ := d.Last()
	return frames, string(last.Raw)
}

func taken(d wire.Splitter) (frames []wire.Frame) {
	for f, ok := d.Next(); ok; f, ok = d.Next() {
		frames = append(frames, f)
	}
	return frames
}

func TestSSEFrames(t *testing.T) {
	type frame struct {
		raw, event, data string
		comment          bool
	}
	for name, test := range map[string]struct {
		in   string
		want []frame
		rest string
	}{
		"one":          {"data: {}\n\n", []frame{{raw: "data: {}\n\n", data: "{}"}}, ""},
		"CRLF":         {"data: a\r\n\r\ndata: b\r\n\r\n", []frame{{raw: "data: a\r\n\r\n", data: "a"}, {raw: "data: b\r\n\r\n", data: "b"}}, ""},
		"CR":           {"data: a\r\rdata: b\r\r", []frame{{raw: "data: a\r\r", data: "a"}, {raw: "data: b\r\r", data: "b"}}, ""},
		"mixed":        {"data: a\r\n\ndata: b\n\r\n", []frame{{raw: "data: a\r\n\n", data: "a"}, {raw: "data: b\n\r\n", data: "b"}}, ""},
		"late LF":      {"data: a\r\r\ndata: b\n\n", []frame{{raw: "data: a\r\r", data: "a"}, {raw: "\n", comment: true}, {raw: "data: b\n\n", data: "b"}}, ""},
		"mark":         {"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []frame{{raw: "\xef\xbb\xbfdata: a\n\n", data: "a"}, {raw: "\xef\xbb\xbfdata: b\n\n"}}, ""},
		"lines":        {"data: a\ndata\ndata:b\ndata:  c\n\n", []frame{{raw: "data: a\ndata\ndata:b\ndata:  c\n\n", data: "a\n\nb\n c"}}, ""},
		"event":        {"event: x\nid: 1\nevent:message\ndata: {}\nretry: 5\n\n", []frame{{raw: "event: x\nid: 1\nevent:message\ndata: {}\nretry: 5\n\n", event: "message", data: "{}"}}, ""},
		"comment":      {": ping\n\n", []frame{{raw: ": ping\n\n", comment: true}}, ""},
		"both":         {": ping\ndata: a\n\n", []frame{{raw: ": ping\ndata: a\n\n", data: "a"}}, ""},
		"blank":        {"\n\ndata: a\n\n", []frame{{raw: "\n", comment: true}, {raw: "\n", comment: true}, {raw: "data: a\n\n", data: "a"}}, ""},
		"field case":   {"Data: a\n\n", []frame{{raw: "Data: a\n\n"}}, ""},
		"unfinished":   {"data: a\n\ndata: b\n", []frame{{raw: "data: a\n\n", data: "a"}}, "data: b\n"},
		"maybe a CRLF": {"data: a\r\n\r", nil, "data: a\r\n\r"},
	} {
		t.Run(name, func(t *testing.T) {
			frames, rest := decode(t, test.in)
			if rest != test.rest {
				t.Errorf("rest %q, want %q", rest, test.rest)
			}
			var got []frame
			for _, f := range frames {
				got = append(got, frame{string(f.Raw), f.Event, string(f.Data), f.Comment})
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("frame %d is %+v, want %+v", i, got[i], test.want[i])
				}
			}
		})
	}
}

// streams draws bytes in which everything that matters to framing is likely.
func streams() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"\n", "\r", "\r\n", "\n\n", "\r\r", "data", "data:", "data: {}", "event: x", ":", ": c", "id: 1", " ", "\xef\xbb\xbf", "\xef", "ü", "\x00", "\u2028",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 30), func(s []string) string { return strings.Join(s, "") })
}

// cuts draws a division of a string into pieces.
func cuts(t *rapid.T, s string) (pieces []string) {
	for len(s) > 0 {
		n := rapid.IntRange(1, len(s)).Draw(t, "cut")
		pieces = append(pieces, s[:n])
		s = s[n:]
	}
	return pieces
}

func TestSSESplitsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := streams().Draw(r, "in")
		checkSplit(t, in, cuts(r, in))
	})
}

// checkSplit compares a stream in pieces with the whole and with the standard.
func checkSplit(t testing.TB, in string, pieces []string) {
	t.Helper()
	whole, rest := decode(t, in)
	split, splitRest := decode(t, pieces...)
	if len(whole) != len(split) || rest != splitRest {
		t.Fatalf("%q as %q: %d frames and %q, whole %d and %q", in, pieces, len(split), splitRest, len(whole), rest)
	}
	var all strings.Builder
	for i, f := range whole {
		all.Write(f.Raw)
		g := split[i]
		if !bytes.Equal(f.Raw, g.Raw) || f.Event != g.Event || !bytes.Equal(f.Data, g.Data) || f.Comment != g.Comment {
			t.Fatalf("%q as %q: frame %d is %+v, whole %+v", in, pieces, i, g, f)
		}
	}
	if all.String()+rest != in {
		t.Fatalf("%q became %q and %q", in, all.String(), rest)
	}
	checkStandard(t, in+":") // the colon tells a CR from half a CRLF
}

var lineEnd = regexp.MustCompile("\r\n|\r|\n")

// checkStandard compares the events with those of a literal reading of the
// standard, line by line.
func checkStandard(t testing.TB, in string) {
	t.Helper()
	var want, got []string
	var event string
	var data []string
	lines := lineEnd.Split(strings.TrimPrefix(in, "\ufeff"), -1)
	for _, line := range lines[:len(lines)-1] {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if d := strings.Join(data, "\n"); d != "" {
				want = append(want, event+"|"+d)
			}
			event, data = "", nil
		case name == "data":
			data = append(data, value)
		case name == "event":
			event = value
		}
	}
	frames, _ := decode(t, in)
	for _, f := range frames {
		if len(f.Data) > 0 {
			got = append(got, f.Event+"|"+string(f.Data))
		}
	}
	if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
		t.Fatalf("%q gave %q, the standard says %q", in, got, want)
	}
}

func FuzzSSE(f *testing.F) {
	f.Add("data: {}\n\ndata: [DONE]\n\n", uint8(3))
	f.Add("\xef\xbb\xbfevent: x\r\ndata: a\r\ndata: b\r\n\r\n: c\r\n\r\n", uint8(1))
	f.Add("data: a\r\r\ndata\n\r", uint8(2))
	f.Fuzz(func(t *testing.T, in string, size uint8) {
		var pieces []string
		n := int(size)%16 + 1
		for s := in; len(s) > 0; {
			k := min(n, len(s))
			pieces, s = append(pieces, s[:k]), s[k:]
		}
		checkSplit(t, in, pieces)
	})
}

func TestSSELimit(t *testing.T) {
	in := "data: short\n\ndata: " + strings.Repeat("x", 100) + "\n\n"
	for limit, fits := range map[int]bool{107: false, 108: true, 50: false, 13: false} {
		for _, size := range []int{1, 7, len(in)} {
			d := wire.NewSplitter(wire.EventStream, limit)
			var err error
			for i := 0; i < len(in) && err == nil; i += size {
				err = d.Push([]byte(in[i:min(i+size, len(in))]))
			}
			frames := taken(d)
			if fits != (err == nil) || (err != nil && !errors.Is(err, wire.ErrFrameTooLarge)) {
				t.Errorf("limit %d, pieces of %d: %v", limit, size, err)
			}
			if want := 1; len(frames) < want || string(frames[0].Data) != "short" {
				t.Errorf("limit %d, pieces of %d: the first frame is lost", limit, size)
			}
			if !fits && (len(frames) != 1 || d.Push([]byte("\n\n")) == nil) {
				t.Errorf("limit %d, pieces of %d: it read on", limit, size)
			}
		}
	}
}

// What clients of a stream throw away, and others show, are its lines without data that hold words.
func TestAside(t *testing.T) {
	for in, want := range map[string]string{
		"data: hello there\n\n": "",
		": how to do it\n\n":    ": how to do it",
		"id: how to do it\nretry: do this\nevent: and that\n\n":   "id: how to do it\nretry: do this\nevent: and that",
		"event: message_start\nid: 7\nretry: 10\ndata: {}\n\n":    "",
		": one more word\rdata: {}\r\n: and another word\r\n\r\n": ": one more word\n: and another word",
		":\n: \nother: some words here\n\n":                       "",
	} {
		if got := string((wire.Frame{Raw: []byte(in)}).Aside()); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// The frame that a stream ends in can be sent on if only its end is missing, and something
// can follow it.
func TestLastFramesAreEnded(t *testing.T) {
	for _, test := range []struct {
		framing  wire.Framing
		in, want string // want is "" for a frame that is cut
	}{
		{wire.EventStream, "data: {}", "data: {}\n\n"},
		{wire.EventStream, "event: x\ndata: {}\n", "event: x\ndata: {}\n\n"},
		{wire.EventStream, "data: {}\r\n\r\ndata: {}", "data: {}\r\n\r\n"},
		{wire.EventStream, "data: {}\r\n", "data: {}\r\n\r\n"},
		{wire.EventStream, "data: {}\r\n\r", "data: {}\r\n\r\n\r\n"},
		{wire.EventStream, "data: {}\r", "data: {}\r\n\n"},
		{wire.EventStream, "data: [DONE]", "data: [DONE]\n\n"},
		{wire.EventStream, ": pin", ": pin\n\n"},
		{wire.EventStream, "data: [DON", ""},
		{wire.EventStream, `data: {"a":`, ""},
		{wire.EventStream, "data:", ""},
		{wire.EventStream, "dat", ""},
		{wire.EventStream, "event: x\n", ""},
		{wire.EventStream, "data: {}\neven", ""},
		{wire.Lines, `{"done":true}`, `{"done":true}`},
		{wire.Lines, " ", " "},
		{wire.Lines, `{"done":tru`, ""},
		{wire.Array, "[{},", ""},
		{wire.Array, "[{}", ""},
		{wire.Array, "[{}\r\n", ""},
		{wire.Array, "[", ""},
		{wire.Array, "[{}][{}", ""},
		{wire.Array, "{}\r\n", "\r\n"},
		{wire.Array, "[{}]\r\n", "\r\n"},
		{wire.Array, `[{},{"a":`, ""},
	} {
		s := wire.NewSplitter(test.framing, 0)
		if err := s.Push([]byte(test.in)); err != nil {
			t.Fatal(err)
		}
		taken(s)
		last, ok := s.Last()
		if !ok {
			t.Fatalf("%q has no last frame", test.in)
		}
		if got, whole := s.Ended(last); whole != (test.want != "") || whole && string(got.Raw) != test.want {
			t.Errorf("%q: %q, %v", test.in, got.Raw, whole)
		}
	}
}

// The frame that a stream ends in is read up to the limit of the splitter, not up to the
// usual one: whole answers are split too, and may be larger.
func TestSSELastFrameOfAnySize(t *testing.T) {
	in := "data: " + strings.Repeat("x", wire.MaxFrame)
	d := wire.NewSplitter(wire.EventStream, len(in))
	if err := d.Push([]byte(in)); err != nil {
		t.Fatal(err)
	}
	if f, ok := d.Last(); !ok || len(f.Data) != wire.MaxFrame || string(f.Raw) != in {
		t.Errorf("read %d bytes of %d", len(f.Data), wire.MaxFrame)
	}
}

// Frames stay as they are while the stream goes on, and a frame of megabytes
// in small pieces is no trouble.
func TestSSEFramesKeepTheirBytes(t *testing.T) {
	var in []byte
	for i := range 200 {
		in = wire.AppendEvent(in, bytes.Repeat([]byte{'a' + byte(i%26)}, i*7))
	}
	in = wire.AppendEvent(in, bytes.Repeat([]byte{'z'}, 5<<20))
	d := wire.NewSplitter(wire.EventStream, 0)
	var frames []wire.Frame
	for piece := range bytesIn(in, 1000) {
		if err := d.Push(piece); err != nil {
			t.Fatal(err)
		}
		clear(piece) // the decoder has its own copy
		frames = append(frames, taken(d)...)
	}
	if len(frames) != 201 || len(frames[200].Data) != 5<<20 {
		t.Fatalf("%d frames", len(frames))
	}
	for i, f := range frames[:200] {
		if want := strings.Repeat(string(rune('a'+i%26)), i*7); string(f.Data) != want || string(f.Raw) != "data: "+want+"\n\n" {
			t.Fatalf("frame %d changed to %q", i, f.Raw)
		}
	}
}

// bytesIn yields copies of consecutive pieces.
func bytesIn(b []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(b); i += size {
			if !yield(bytes.Clone(b[i:min(i+size, len(b))])) {
				return
			}
		}
	}
}

func TestAppend(t *testing.T) {
	out := wire.AppendComment(wire.AppendEvent(nil, []byte(`{"a":1}`)), "ping")
	if string(out) != "data: {\"a\":1}\n\n: ping\n\n" {
		t.Errorf("%q", out)
	}
	frames, _ := decode(t, string(out))
	if len(frames) != 2 || string(frames[0].Data) != `{"a":1}` || !frames[1].Comment {
		t.Errorf("read back as %+v", frames)
	}
}

// BenchmarkSSE reads streams as they come: an event or a buffer at a time, and
// the worst case, a stream of CRs, where looking for the next LF in each line
// would be quadratic.
func BenchmarkSSE(b *testing.B) {
	event := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" Paris"},"finish_reason":null}]}` + "\n\n"
	for _, bench := range []struct {
		name, in string
		size     int
	}{
		{"event", strings.Repeat(event, 1000), len(event)},
		{"4KiB", strings.Repeat(event, 1000), 4 << 10},
		{"CR", strings.Repeat("\r", 32<<10), 32 << 10},
	} {
		b.Run(bench.name, func(b *testing.B) {
			in := []byte(bench.in)
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				d := wire.NewSplitter(wire.EventStream, 0)
				for i := 0; i < len(in); i += bench.size {
					if err := d.Push(in[i:min(i+bench.size, len(in))]); err != nil {
						b.Fatal(err)
					}
					for ok := true; ok; _, ok = d.Next() {
					}
				}
			}
		})
	}
}

// Lines that are no fields are kept beside the data: some clients read them.
func TestStrayLines(t *testing.T) {
	for in, want := range map[string]string{
		"data: a\n\n": "",
		": c\nid: 1\nretry: 2\nevent: e\ndata\n\n":     "",
		"{\"a\":\n[1]}\n\n":                            "{\"a\":\n[1]}",
		"Data: a\r data: b\rdata: c\rx\r\r":            "Data: a\n data: b\nx",
		"\xef\xbb\xbfdata: a\n\xef\xbb\xbfdata: b\n\n": "\xef\xbb\xbfdata: b",
		// Clients in Python cut lines where nobody else does.
		": {\u2028data: b\u2028\n\n":           ": {\u2028data: b\u2028",
		":\u2029x\ndata: a\n\n":                ":\u2029x",
		"id: 1\u0085data: b\ndata: a\n\n":      "id: 1\u0085data: b",
		"id: 1\x85data: b\ndata: a\n\n":        "id: 1\x85data: b",
		"retry: 1\vdata: b\n\n":                "retry: 1\vdata: b",
		"event: e\fdata: b\n: \x1cdata: c\n\n": "event: e\fdata: b\n: \x1cdata: c",
		": \x1d\n\n":                           ": \x1d", ":\x1e\n\n": ":\x1e",
		"data: [DONE]\u2028data: b\n\n":        "data: [DONE]\u2028data: b",
		"data: {\"a\":\"b\u2028\u0085c\"}\n\n": "", // JSON that is cut there is no JSON
		": Grüße, 東京\nid: é\n\n":               "",
	} {
		frames, _ := decode(t, in)
		if len(frames) != 1 || string(frames[0].Stray) != want || want != "" && frames[0].Comment {
			t.Errorf("%q: %+v", in, frames)
		}
	}
}

// Comments under a name are taken out of a frame, and the rest of it stays a frame.
func TestWithoutComments(t *testing.T) {
	for raw, want := range map[string]string{
		"data: a\n\n":                                    "data: a\n\n",
		": ping\n\n":                                     ": ping\n\n",
		": x-lex-receipt-id: KRN-1\n\n":                  "\n",
		":X-LEX-Receipt-Id: KRN-1\r\n\r\n":               "\r\n",
		"data: a\n:  x-lex-turn: 1\ndata: b\n\n":         "data: a\ndata: b\n\n",
		"data: a\r\n: x-lex-turn: 1\r\ndata: b\r\n\r\n":  "data: a\r\ndata: b\r\n\r\n",
		"data: a\r: x-lex-turn: 1\rdata: b\r\r":          "data: a\rdata: b\r\r",
		"data: : x-lex-turn: 1\n: x-lexicon is fine\n\n": "data: : x-lex-turn: 1\n: x-lexicon is fine\n\n",
	} {
		if got := string(wire.Frame{Raw: []byte(raw)}.WithoutComments("x-lex-").Raw); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}
