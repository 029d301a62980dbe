package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

func TestCallGatherer(t *testing.T) {
	type call = wire.ToolCall
	piece := func(key, arguments string) wire.CallDelta {
		return wire.CallDelta{ToolCall: call{Key: key, Arguments: arguments}}
	}
	whole := func(key, arguments string) wire.CallDelta {
		return wire.CallDelta{ToolCall: call{Key: key, Arguments: arguments}, Whole: true}
	}
	for name, test := range map[string]struct {
		deltas []wire.CallDelta
		want   []call // nil: an error
	}{
		"none": {nil, []call{}},
		"pieces": {
			[]wire.CallDelta{{ToolCall: call{Key: "0", ID: "a", Name: "f"}}, piece("0", `{"x"`), piece("0", ``), piece("0", `:1}`)},
			[]call{{Key: "0", ID: "a", Name: "f", Arguments: `{"x":1}`}},
		},
		"the id and the name come late": {
			[]wire.CallDelta{piece("0", "{"), {ToolCall: call{Key: "0", Name: "f"}}, {ToolCall: call{Key: "0", ID: "a", Free: true}}, piece("0", "}")},
			[]call{{Key: "0", ID: "a", Name: "f", Arguments: "{}", Free: true}},
		},
		"interleaved, by choice": {
			[]wire.CallDelta{
				{ToolCall: call{Key: "b", Choice: 1, Name: "g"}},
				{ToolCall: call{Key: "a", Name: "f"}},
				{ToolCall: call{Key: "c", Choice: 1}},
				{ToolCall: call{Key: "b", Choice: 1, Arguments: "1"}},
				piece("a", "2"),
			},
			[]call{{Key: "a", Name: "f", Arguments: "2"}, {Key: "b", Choice: 1, Name: "g", Arguments: "1"}, {Key: "c", Choice: 1}},
		},
		"whole":                   {[]wire.CallDelta{whole("0", "{}")}, []call{{Key: "0", Arguments: "{}"}}},
		"pieces and their whole":  {[]wire.CallDelta{piece("0", "{"), piece("0", "}"), whole("0", "{}"), whole("0", "{}")}, []call{{Key: "0", Arguments: "{}"}}},
		"told again in the same":  {[]wire.CallDelta{{ToolCall: call{Key: "0", ID: "a", Name: "f"}}, {ToolCall: call{Key: "0", ID: "a", Name: "f"}}}, []call{{Key: "0", ID: "a", Name: "f"}}},
		"a whole of nothing":      {[]wire.CallDelta{piece("0", "{}"), whole("0", "")}, nil},
		"another whole":           {[]wire.CallDelta{piece("0", "{"), whole("0", "{}")}, nil},
		"a second whole":          {[]wire.CallDelta{whole("0", "{}"), whole("0", "[]")}, nil},
		"on behind the whole":     {[]wire.CallDelta{whole("0", "{}"), piece("0", " ")}, nil},
		"on behind a whole of ''": {[]wire.CallDelta{whole("0", ""), piece("0", "{}")}, nil},
		"two names":               {[]wire.CallDelta{{ToolCall: call{Key: "0", Name: "f"}}, {ToolCall: call{Key: "0", Name: "g"}}}, nil},
		"two ids":                 {[]wire.CallDelta{{ToolCall: call{Key: "0", ID: "f"}}, {ToolCall: call{Key: "0", ID: "g"}}}, nil},
		"unclear":                 {[]wire.CallDelta{{ToolCall: call{Key: "0", Unclear: true}}}, nil},
		"two choices":             {[]wire.CallDelta{{ToolCall: call{Key: "0"}}, {ToolCall: call{Key: "0", Choice: 1}}}, nil},
		"too large":               {[]wire.CallDelta{piece("0", strings.Repeat("x", 9<<20)), piece("1", strings.Repeat("x", 9<<20))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var g wire.CallGatherer
			err := g.Add(test.deltas)
			switch {
			case test.want == nil && (!errors.Is(err, wire.ErrCalls) || strings.Contains(err.Error(), "{")):
				t.Errorf("%v, %+v", err, g.Calls())
			case test.want != nil && (err != nil || !slices.Equal(g.Calls(), test.want)):
				t.Errorf("got %+v, %v", g.Calls(), err)
			}
		})
	}
}

// A stream cannot make us remember any number of calls.
func TestCallGathererIsBounded(t *testing.T) {
	type call = wire.ToolCall
	var g wire.CallGatherer
	for i := range 16 << 10 {
		if err := g.Add([]wire.CallDelta{{ToolCall: call{Key: strconv.Itoa(i)}}}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := g.Add([]wire.CallDelta{{ToolCall: call{Key: "one more"}}}); !errors.Is(err, wire.ErrCalls) {
		t.Error(err)
	}
}

// However calls are cut and mixed, the same calls come out.
func TestCallGathererOnAnyOrder(t *testing.T) {
	type call = wire.ToolCall
	rapid.Check(t, func(r *rapid.T) {
		var rest [][]wire.CallDelta
		var want []call
		for i := range rapid.IntRange(0, 5).Draw(r, "calls") {
			c := call{
				Key: fmt.Sprint(i), Choice: rapid.IntRange(0, 2).Draw(r, "choice"), ID: fmt.Sprint("id", i),
				Name: "f", Arguments: rapid.StringN(0, 20, -1).Draw(r, "arguments"),
			}
			want = append(want, c)
			pieces := []wire.CallDelta{{ToolCall: call{Key: c.Key, Choice: c.Choice, ID: c.ID, Name: c.Name}}}
			for _, s := range cuts(r, c.Arguments) {
				pieces = append(pieces, wire.CallDelta{ToolCall: call{Key: c.Key, Choice: c.Choice, Arguments: s}})
			}
			if rapid.Bool().Draw(r, "whole") {
				pieces = append(pieces, wire.CallDelta{ToolCall: c, Whole: true})
			}
			rest = append(rest, pieces)
		}
		var g wire.CallGatherer
		begun := make(map[string]int)
		for slices.ContainsFunc(rest, func(p []wire.CallDelta) bool { return len(p) > 0 }) {
			i := rapid.IntRange(0, len(rest)-1).Draw(r, "next")
			if len(rest[i]) == 0 {
				continue
			}
			d := rest[i][0]
			rest[i] = rest[i][1:]
			if _, ok := begun[d.Key]; !ok {
				begun[d.Key] = len(begun)
			}
			if err := g.Add([]wire.CallDelta{d}); err != nil {
				r.Fatal(err)
			}
		}
		slices.SortFunc(want, func(a, b call) int {
			if a.Choice != b.Choice {
				return a.Choice - b.Choice
			}
			return begun[a.Key] - begun[b.Key]
		})
		if got := g.Calls(); !slices.Equal(got, want) {
			r.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// What stands in the place of a tool's schema is kept also if it is none: the receipt says
// then that arguments were not checked against it.
func TestSchemasThatAreNone(t *testing.T) {
	for name, body := range map[string]string{
		"openai":           `{"messages":[],"tools":[{"type":"function","function":{"name":"a","parameters":7}}],"functions":[{"name":"b","parameters":[]}]}`,
		"openai_responses": `{"input":"hi","tools":[{"type":"function","name":"a","parameters":7},{"name":"b","input_schema":[]}]}`,
		"anthropic":        `{"messages":[],"tools":[{"name":"a","input_schema":7},{"name":"b","input_schema":[]}]}`,
		"gemini":           `{"contents":[],"tools":[{"functionDeclarations":[{"name":"a","parameters":7},{"name":"b","parametersJsonSchema":[]}]}]}`,
		"ollama":           `{"messages":[],"tools":[{"type":"function","function":{"name":"a","parameters":7}},{"type":"function","function":{"name":"b","parameters":[]}}]}`,
	} {
		r, err := dialect(t, name).Request([]byte(body))
		if err != nil {
			t.Fatal(name, err)
		}
		if want := []wire.ToolDefinition{{Name: "a", Schema: []byte("7")}, {Name: "b", Schema: []byte("[]")}}; !reflect.DeepEqual(r.Tools, want) {
			t.Errorf("%s: %+v", name, r.Tools)
		}
	}
}
