package wire_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

// The examples are bodies and streams as the public documentation of each API shows
// them, in testdata/examples/<dialect>/:
//
//	NAME.request.json   the body of a call
//	NAME.response.json  the body of an answer
//	NAME.stream         a streamed answer, byte for byte
//
// Those that are called rare_members are our own. They have what nobody shows and a model reads
// all the same, each with a text that says where it stands.
//
// Beside each lies a golden file, NAME.….read, with what the dialect reads there.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/examples/*/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".read") {
			continue
		}
		name, _ := filepath.Rel("testdata", file)
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := dialect(t, filepath.Base(filepath.Dir(file)))
			golden(t, name+".read", []byte(readExample(t, d, file, body)))
		})
	}
}

// SDKs write the members of a call in orders of their own. What is read is the same, and so is
// which of it is the history.
func TestOrderOfMembers(t *testing.T) {
	files, err := filepath.Glob("testdata/examples/*/*.request.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		root := gjson.ParseBytes(body)
		if !root.IsObject() {
			continue
		}
		var members []string
		root.ForEach(func(name, value gjson.Result) bool {
			members = append(members, name.Raw+":"+value.Raw)
			return true
		})
		slices.Reverse(members)
		d := dialect(t, filepath.Base(filepath.Dir(file)))
		given, err1 := d.Request(body)
		reversed, err2 := d.Request([]byte("{" + strings.Join(members, ",") + "}"))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if want, got := sortedParts(given.Parts), sortedParts(reversed.Parts); want != got || given.Prompt() != reversed.Prompt() {
			t.Errorf("%s:\n%s\nand from the last member to the first:\n%s", file, want, got)
		}
	}
}

// sortedParts says what was read, in no order of the body.
func sortedParts(parts []wire.Part) string {
	var lines []string
	for _, p := range parts {
		lines = append(lines, fmt.Sprintf("%s %d %s %s %q earlier=%t result=%d", p.Path, p.Message, p.Role, p.Kind, p.Text, p.Earlier, p.Result))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func readExample(t *testing.T, d wire.Dialect, file string, body []byte) string {
	t.Helper()
	var out strings.Builder
	switch {
	case strings.HasSuffix(file, ".request.json"):
		r, err := d.Request(body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "model %q, stream %t, structured %t, choices %d, session %q, previous %q\nprompt %q\n",
			r.Model, r.Stream, r.Structured, r.Choices, r.Session, r.Previous, r.Prompt())
		writeParts(&out, r.Parts)
	case strings.HasSuffix(file, ".response.json"):
		r, err := d.Response(body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "id %q, model %q, finish %q\ntext %q\n", r.ID, r.Model, r.Finish, r.Text())
		writeParts(&out, r.Parts)
	case strings.HasSuffix(file, ".stream"):
		events := d.Events()
		for _, f := range split(t, d, body) {
			e, err := events.Event(f)
			if err != nil {
				t.Fatalf("%s: %v", f.Raw, err)
			}
			out.WriteString(describe(e) + "\n")
		}
	default:
		t.Fatalf("%s is no example", file)
	}
	return out.String()
}

// describe lists the members of an event that say something.
func describe(e wire.Event) string {
	var said []string
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			said = append(said, fmt.Sprintf("%s %+v", v.Type().Field(i).Name, v.Field(i)))
		}
	}
	return strings.Join(said, ", ")
}

func writeParts(out *strings.Builder, parts []wire.Part) {
	for _, p := range parts {
		fmt.Fprintf(out, "%d %s %s %s earlier=%t %q\n", p.Message, p.Role, p.Kind, p.Path, p.Earlier, p.Text)
	}
}

// split cuts a stream into its frames, the last one without an end included.
func split(t testing.TB, d wire.Dialect, stream []byte) (frames []wire.Frame) {
	t.Helper()
	s := wire.NewSplitter(d.Framing(), 0)
	if err := s.Push(stream); err != nil {
		t.Fatal(err)
	}
	for f, ok := s.Next(); ok; f, ok = s.Next() {
		frames = append(frames, f)
	}
	if f, ok := s.Last(); ok {
		frames = append(frames, f)
	}
	return frames
}
