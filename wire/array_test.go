package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// cutArray pushes a JSON array in pieces and returns its frames, the last one included.
func cutArray(t testing.TB, pieces ...string) (frames []wire.Frame) {
	t.Helper()
	s := wire.NewSplitter(wire.Array, 0)
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

func TestArrayFrames(t *testing.T) {
	type frame struct {
		raw, data string // no data: a comment
	}
	for name, test := range map[string]struct {
		in   string
		want []frame
	}{
		"Google's":         {"[{\n  \"a\": 1\n}\r\n,\r\n{\"b\":2}\r\n]\r\n", []frame{{"[{\n  \"a\": 1\n}", "{\n  \"a\": 1\n}"}, {"\r\n,\r\n{\"b\":2}", `{"b":2}`}, {"\r\n]", "]"}, {"\r\n", ""}}},
		"compact":          {`[{},{}]`, []frame{{`[{}`, `{}`}, {`,{}`, `{}`}, {`]`, `]`}}},
		"empty":            {`[]`, []frame{{`[]`, `]`}}},
		"nothing":          {``, nil},
		"white space":      {" \t\r\n", []frame{{" \t\r\n", ""}}},
		"brackets in text": {`[{"a":"}]\"}],{[\\"},{"b":["]",{}]}]`, []frame{{`[{"a":"}]\"}],{[\\"}`, `{"a":"}]\"}],{[\\"}`}, {`,{"b":["]",{}]}`, `{"b":["]",{}]}`}, {`]`, `]`}}},
		"other values":     {`[1, "a,]", null,[[2]],true]`, []frame{{`[1`, `1`}, {`, "a,]"`, `"a,]"`}, {`, null`, `null`}, {`,[[2]]`, `[[2]]`}, {`,true`, `true`}, {`]`, `]`}}},
		"an object":        {"{\"error\":{}}\n", []frame{{`{"error":{}}`, `{"error":{}}`}, {"\n", ""}}},
		"a mark":           {"\xef\xbb\xbf[{}]", []frame{{"\xef\xbb\xbf", "\xef\xbb\xbf"}, {"[{}", `{}`}, {`]`, `]`}}},
		"no commas":        {`[{}{}1{}"x"]`, []frame{{`[{}`, `{}`}, {`{}`, `{}`}, {`1`, `1`}, {`{}`, `{}`}, {`"x"`, `"x"`}, {`]`, `]`}}},
		"two arrays":       {`[{}][{}]`, []frame{{`[{}`, `{}`}, {`]`, `]`}, {`[{}`, `{}`}, {`]`, `]`}}},
		"a tail":           {`[{}] x`, []frame{{`[{}`, `{}`}, {`]`, `]`}, {` x`, `x`}}},
		"cut in a text":    {`[{},{"a":"b`, []frame{{`[{}`, `{}`}, {`,{"a":"b`, `{"a":"b`}}},
		"cut behind":       {"[{}\r\n,\r\n", []frame{{`[{}`, `{}`}, {"\r\n,\r\n", ""}}},
		"too many ends":    {`}]`, []frame{{`}`, `}`}, {`]`, `]`}}},
	} {
		var got []frame
		for _, f := range cutArray(t, test.in) {
			if f.Comment != (len(f.Data) == 0) {
				t.Errorf("%s: %+v", name, f)
			}
			got = append(got, frame{string(f.Raw), string(f.Data)})
		}
		if len(got) != len(test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
			continue
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%s: frame %d is %q, want %q", name, i, got[i], test.want[i])
			}
		}
	}
}

// arrays draws bytes in which everything that matters to the splitter is likely.
func arrays() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"[", "]", "{", "}", ",", `"`, `\`, `"a"`, `{"a":"]"}`, `{"text":"x"}`, "1", "null", " ", "\r\n", "\xef\xbb\xbf", "ü", "\x00",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 30), func(s []string) string { return strings.Join(s, "") })
}

func TestArraySplitsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := arrays().Draw(r, "in")
		checkArray(t, in, cuts(r, in))
	})
}

// checkArray compares an array in pieces with the whole: nothing is lost, and where
// the JSON is good the frames are its elements.
func checkArray(t testing.TB, in string, pieces []string) {
	t.Helper()
	whole, split := cutArray(t, in), cutArray(t, pieces...)
	if len(whole) != len(split) {
		t.Fatalf("%q as %q: %d frames, whole %d", in, pieces, len(split), len(whole))
	}
	var all strings.Builder
	var data []string
	for i, f := range whole {
		all.Write(f.Raw)
		if g := split[i]; !bytes.Equal(f.Raw, g.Raw) || !bytes.Equal(f.Data, g.Data) || f.Comment != g.Comment {
			t.Fatalf("%q as %q: frame %d is %+v, whole %+v", in, pieces, i, g, f)
		}
		if !bytes.Contains(f.Raw, f.Data) || f.Comment && strings.Trim(string(f.Raw), " \t\r\n,[") != "" {
			t.Fatalf("%q: frame %+v", in, f)
		}
		if !f.Comment && string(f.Data) != "]" {
			data = append(data, string(f.Data))
		}
	}
	if all.String() != in {
		t.Fatalf("%q is %q in frames", in, all.String())
	}
	var want []json.RawMessage
	if json.Unmarshal([]byte(in), &want) != nil || want == nil {
		return
	}
	if len(data) != len(want) {
		t.Fatalf("%q has %d elements, read %q", in, len(want), data)
	}
	for i := range want {
		if data[i] != string(want[i]) {
			t.Fatalf("element %d of %q is %q", i, in, data[i])
		}
	}
}

func FuzzArray(f *testing.F) {
	f.Add("[{\"a\": 1}\r\n,\r\n{\"b\":\"]\"}\r\n]\r\n", uint16(3))
	f.Add(`[1,"\"",[[]]]`, uint16(1))
	f.Fuzz(func(t *testing.T, in string, n uint16) {
		var pieces []string
		for rest := in; rest != ""; {
			at := min(len(rest), 1+int(n)%7)
			pieces, rest = append(pieces, rest[:at]), rest[at:]
		}
		checkArray(t, in, pieces)
	})
}

// An element over the limit ends the reading, and those before it are still there.
func TestArrayLimit(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", 100) + `"}`
	for _, in := range []string{`[{},` + large + `]`, `[{},` + large[:90]} {
		s := wire.NewSplitter(wire.Array, 64)
		if err := s.Push([]byte(in)); !errors.Is(err, wire.ErrFrameTooLarge) {
			t.Errorf("%v", err)
		}
		if f, ok := s.Next(); !ok || string(f.Data) != "{}" {
			t.Errorf("the first frame is %q", f.Raw)
		}
		if _, ok := s.Next(); ok {
			t.Error("there is another")
		}
		if err := s.Push([]byte("{}")); !errors.Is(err, wire.ErrFrameTooLarge) {
			t.Errorf("later: %v", err)
		}
	}
	s := wire.NewSplitter(wire.Array, len(large)+1)
	if err := s.Push([]byte("[" + large + "," + large + "]")); err != nil {
		t.Errorf("within the limit: %v", err)
	}
}

// Frames stay as they are while more comes.
func TestArrayFramesStayValid(t *testing.T) {
	s := wire.NewSplitter(wire.Array, 0)
	var frames []wire.Frame
	var want []string
	for i := range 200 {
		element := `,{"n":"` + strings.Repeat(string(rune('a'+i%26)), i) + `"}`
		for _, b := range []byte(element) {
			if err := s.Push([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		f, ok := s.Next()
		if !ok {
			t.Fatalf("element %d is not there", i)
		}
		frames, want = append(frames, f), append(want, element)
	}
	for i, f := range frames {
		if string(f.Raw) != want[i] {
			t.Errorf("frame %d became %q", i, f.Raw)
		}
	}
}
