package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// splitLines pushes pieces and returns the frames, the last one without an end
// included.
func splitLines(t testing.TB, pieces ...string) (frames []wire.Frame) {
	t.Helper()
	s := wire.NewSplitter(wire.Lines, 0)
	for _, p := range pieces {
		if err := s.Push([]byte(p)); err != nil {
			t.Fatal(err)
		}
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			frames = append(frames, f)
		}
	}
	if f, ok := s.Last(); ok {
		frames = append(frames, f)
	}
	return frames
}

func TestLines(t *testing.T) {
	type line struct {
		raw, data string
		comment   bool
	}
	for in, want := range map[string][]line{
		"":                         nil,
		"{}\n":                     {{"{}\n", "{}", false}},
		"{}\r\n[1]\n":              {{"{}\r\n", "{}", false}, {"[1]\n", "[1]", false}},
		"{}\n\n \t\n\r\n{}":        {{"{}\n", "{}", false}, {"\n", "", true}, {" \t\n", " \t", true}, {"\r\n", "", true}, {"{}", "{}", false}},
		"{}\r{}\n":                 {{"{}\r{}\n", "{}\r{}", false}},
		"\xef\xbb\xbf{}\n":         {{"\xef\xbb\xbf{}\n", "{}", false}},
		"{}\n\xef\xbb\xbf{}\n":     {{"{}\n", "{}", false}, {"\xef\xbb\xbf{}\n", "\xef\xbb\xbf{}", false}},
		"{\"a\":\"\u2028\u0085\"}": {{"{\"a\":\"\u2028\u0085\"}", "{\"a\":\"\u2028\u0085\"}", false}},
	} {
		var got []line
		for _, f := range splitLines(t, in) {
			got = append(got, line{string(f.Raw), string(f.Data), f.Comment})
		}
		if len(got) != len(want) {
			t.Errorf("%q: %+v, want %+v", in, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: line %d is %+v, want %+v", in, i, got[i], want[i])
			}
		}
	}
}

// Where the network cuts a stream makes no difference, and the frames are the stream.
func TestLineSplitsMakeNoDifference(t *testing.T) {
	piece := rapid.SampledFrom([]string{"\n", "\r\n", "\r", "{}", `{"a":"b"}`, " ", "\xef\xbb\xbf", "\xef", "ü", "\x00"})
	rapid.Check(t, func(r *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(r, "in"), "")
		whole, pieces := splitLines(t, in), splitLines(t, cuts(r, in)...)
		if len(whole) != len(pieces) {
			t.Fatalf("%q: %d and %d frames", in, len(whole), len(pieces))
		}
		var all bytes.Buffer
		for i, f := range whole {
			all.Write(f.Raw)
			if g := pieces[i]; !bytes.Equal(f.Raw, g.Raw) || !bytes.Equal(f.Data, g.Data) || f.Comment != g.Comment {
				t.Fatalf("%q: frame %d is %+v and %+v", in, i, f, g)
			}
		}
		if all.String() != in {
			t.Fatalf("%q came out as %q", in, all.String())
		}
	})
}

// A line has no limit but the frame's. What came whole before a larger one is read.
func TestLineLimit(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	if frames := splitLines(t, long+"\n"); len(frames) != 1 || string(frames[0].Data) != long {
		t.Errorf("%d frames", len(frames))
	}
	for line, fits := range map[string]bool{"0123456\n": true, "01234567\n": false} {
		if err := wire.NewSplitter(wire.Lines, 8).Push([]byte(line)); fits != (err == nil) {
			t.Errorf("%q of 8 bytes at most: %v", line, err)
		}
	}
	for _, pieces := range [][]string{{"{}\n0123456789\n{}\n"}, {"{}\n0123", "456789"}} {
		s := wire.NewSplitter(wire.Lines, 8)
		var err error
		for _, p := range pieces {
			err = s.Push([]byte(p))
		}
		if !errors.Is(err, wire.ErrFrameTooLarge) || !errors.Is(s.Push([]byte("{}\n")), wire.ErrFrameTooLarge) {
			t.Errorf("%q: %v", pieces, err)
		}
		if f, ok := s.Next(); !ok || string(f.Data) != "{}" {
			t.Errorf("%q: the line before is %+v", pieces, f)
		}
		if f, ok := s.Next(); ok {
			t.Errorf("%q: read on with %q", pieces, f.Raw)
		}
		if f, ok := s.Last(); ok {
			t.Errorf("%q: ended with %q", pieces, f.Raw)
		}
	}
}

// Frames stay valid while later bytes come.
func TestLinesKeepTheirBytes(t *testing.T) {
	s := wire.NewSplitter(wire.Lines, 0)
	var frames []wire.Frame
	for range 3000 {
		if err := s.Push([]byte(`{"a":1}` + "\n" + `{"b"`)); err != nil {
			t.Fatal(err)
		}
		if err := s.Push([]byte(":2}\n")); err != nil {
			t.Fatal(err)
		}
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			frames = append(frames, f)
		}
	}
	for i, f := range frames {
		if want := []string{`{"a":1}`, `{"b":2}`}[i%2]; string(f.Data) != want || string(f.Raw) != want+"\n" {
			t.Fatalf("line %d of %d became %q", i, len(frames), f.Raw)
		}
	}
}

func BenchmarkLines(b *testing.B) {
	line := []byte(`{"model":"llama3.2","created_at":"2023-08-04T08:52:19.385406455-07:00","message":{"role":"assistant","content":"The"},"done":false}` + "\n")
	s := wire.NewSplitter(wire.Lines, 0)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if err := s.Push(line); err != nil {
			b.Fatal(err)
		}
		if _, ok := s.Next(); !ok {
			b.Fatal("no line")
		}
	}
}
