package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// A chatPiece is an element of delta.tool_calls; an empty member is left out.
type chatPiece struct {
	index           any
	id, name, input string
}

func (p chatPiece) json() string {
	piece, function := map[string]any{}, map[string]any{}
	for name, v := range map[string]any{"index": p.index, "id": p.id} {
		if v != nil && v != "" {
			piece[name] = v
		}
	}
	for name, v := range map[string]string{"name": p.name, "arguments": p.input} {
		if v != "" {
			function[name] = v
		}
	}
	piece["function"] = function
	out, _ := json.Marshal(piece)
	return string(out)
}

// chatChunk is a chunk with one choice.
func chatChunk(choice int, delta, finish string) string {
	return fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":%d,"delta":%s,"finish_reason":%s}]}`, choice, delta, finish)
}

func chatPieces(pieces ...chatPiece) string {
	var list []string
	for _, p := range pieces {
		list = append(list, p.json())
	}
	return `{"tool_calls":[` + strings.Join(list, ",") + `]}`
}

// gather reads the calls of a stream.
func gather(t testing.TB, api string, stream []byte) ([]wire.ToolCall, error) {
	t.Helper()
	d := dialect(t, api)
	events := d.Events()
	var g wire.CallGatherer
	for _, f := range split(t, d, stream) {
		e, err := events.Event(f)
		if err != nil {
			t.Fatalf("%s: %v", f.Data, err)
		}
		if err := g.Add(e.Calls); err != nil {
			return nil, err
		}
	}
	return g.Calls(), nil
}

// told is what a call does.
func told(calls []wire.ToolCall) (out []string) {
	for _, c := range calls {
		out = append(out, fmt.Sprintf("%d %s %s(%s)", c.Choice, c.ID, c.Name, c.Arguments))
	}
	return out
}

func TestChatStreamCalls(t *testing.T) {
	for name, test := range map[string]struct {
		deltas []string
		want   []string // nil: unclear
	}{
		"pieces, parallel, text between": {
			[]string{
				chatPieces(chatPiece{0, "a", "f", ""}), chatPieces(chatPiece{0, "", "", `{"x":`}), `{"content":"Hm."}`,
				chatPieces(chatPiece{1, "b", "g", ""}), chatPieces(chatPiece{0, "", "", `1}`}, chatPiece{1, "", "", `{}`}), `{"content":"!"}`,
			},
			[]string{`0 a f({"x":1})`, `0 b g({})`},
		},
		"whole, in one chunk": {
			[]string{chatPieces(chatPiece{0, "a", "f", `{"x":1}`}, chatPiece{1, "b", "g", `{"y":2}`})},
			[]string{`0 a f({"x":1})`, `0 b g({"y":2})`},
		},
		"the id again and again":    {[]string{chatPieces(chatPiece{0, "a", "f", "{"}), chatPieces(chatPiece{0, "a", "", "}"})}, []string{`0 a f({})`}},
		"the id late":               {[]string{chatPieces(chatPiece{0, "", "f", "{"}), chatPieces(chatPiece{0, "a", "", "}"})}, []string{`0 a f({})`}},
		"the name late":             {[]string{chatPieces(chatPiece{0, "a", "", ""}), chatPieces(chatPiece{0, "", "f", "{}"})}, []string{`0 a f({})`}},
		"space behind":              {[]string{chatPieces(chatPiece{0, "a", "f", "{} \n"}), chatPieces(chatPiece{0, "", "", " "})}, []string{"0 a f({} \n )"}},
		"braces in strings":         {[]string{chatPieces(chatPiece{0, "a", "f", `{"x":"}\"}`}), chatPieces(chatPiece{0, "", "", `\\"}`})}, []string{`0 a f({"x":"}\"}\\"})`}},
		"without an index":          {[]string{chatPieces(chatPiece{nil, "a", "f", `{"x":`}), chatPieces(chatPiece{nil, "", "", `1}`})}, []string{`0 a f({"x":1})`}},
		"Gemini: without an index":  {[]string{chatPieces(chatPiece{nil, "a", "f", `{"x":1}`}, chatPiece{nil, "b", "g", `{}`}), chatPieces(chatPiece{nil, "", "g", `{}`})}, []string{`0 a f({"x":1})`, `0 b g({})`, `0  g({})`}},
		"Ollama: all numbered 0":    {[]string{chatPieces(chatPiece{0, "a", "f", `{"x":1}`}), chatPieces(chatPiece{0, "b", "f", `{"x":2}`})}, []string{`0 a f({"x":1})`, `0 b f({"x":2})`}},
		"Bedrock: numbered from 1":  {[]string{chatPieces(chatPiece{1, "a", "f", ""}), chatPieces(chatPiece{1, "", "", `{}`}), chatPieces(chatPiece{2, "b", "g", `{}`})}, []string{`0 a f({})`, `0 b g({})`}},
		"an object as arguments":    {[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}}]}`}, []string{`0 a f({"x": 1})`}},
		"a custom tool":             {[]string{`{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":"DROP"}}]}`, `{"tool_calls":[{"index":0,"custom":{"input":" {} x"}}]}`}, []string{`0 a sql(DROP {} x)`}},
		"legacy":                    {[]string{`{"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{}"}}`}, []string{`0  f({})`}},
		"legacy beside tools":       {[]string{`{"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"index":0,"id":"a","function":{"name":"g","arguments":"{}"}}]}`}, []string{`0 a g({})`, `0  f({})`}},
		"nothing but an id":         {[]string{`{"tool_calls":[{"index":0,"id":"a"}]}`}, []string{`0 a ()`}},
		"escaped names":             {[]string{`{"tool\u005fcalls":[{"index":0,"\u0069d":"a","function":{"n\u0061me":"f","arguments":"\u007b}"}}]}`}, []string{`0 a f({})`}},
		"no calls":                  {[]string{`{"tool_calls":[],"function_call":null}`, `{"tool_calls":null}`}, []string{}},
		"the name again":            {[]string{chatPieces(chatPiece{0, "a", "f", "{"}), chatPieces(chatPiece{0, "", "f", "}"})}, nil},
		"another name":              {[]string{chatPieces(chatPiece{0, "a", "f", "{"}), chatPieces(chatPiece{0, "", "g", "}"})}, nil},
		"another id":                {[]string{chatPieces(chatPiece{0, "a", "f", "{"}), chatPieces(chatPiece{0, "b", "", "}"})}, nil},
		"another call, unfinished":  {[]string{chatPieces(chatPiece{0, "a", "f", "{"}), chatPieces(chatPiece{0, "b", "g", "{}"})}, nil},
		"another call of nothing":   {[]string{chatPieces(chatPiece{0, "a", "f", "{}"}), chatPieces(chatPiece{0, "b", "g", ""})}, nil},
		"arguments behind the end":  {[]string{chatPieces(chatPiece{0, "a", "f", "{}"}), chatPieces(chatPiece{0, "", "", `{"x":1}`})}, nil},
		"0 behind 1":                {[]string{chatPieces(chatPiece{1, "a", "f", "{}"}), chatPieces(chatPiece{0, "b", "g", `{}`})}, nil},
		"no index behind 1":         {[]string{chatPieces(chatPiece{0, "a", "f", "{"}, chatPiece{1, "b", "g", "{"}), chatPieces(chatPiece{nil, "", "", `}`})}, nil},
		"interleaved with a gap":    {[]string{chatPieces(chatPiece{1, "a", "f", ""}, chatPiece{2, "b", "g", ""}), chatPieces(chatPiece{1, "", "", `{}`})}, nil},
		"1 behind two of 0":         {[]string{chatPieces(chatPiece{0, "a", "f", "{}"}, chatPiece{0, "b", "g", "{}"}), chatPieces(chatPiece{1, "c", "h", `{}`})}, nil},
		"index -1":                  {[]string{chatPieces(chatPiece{-1, "a", "f", "{}"})}, nil},
		"index 1.5":                 {[]string{chatPieces(chatPiece{1.5, "a", "f", "{}"})}, nil},
		"index in quotes":           {[]string{chatPieces(chatPiece{"0", "a", "f", "{}"})}, nil},
		"index of any size":         {[]string{chatPieces(chatPiece{1 << 40, "a", "f", "{}"})}, nil},
		"a name that is none":       {[]string{`{"tool_calls":[{"index":0,"function":{"name":["f"],"arguments":"{}"}}]}`}, nil},
		"arguments that are a list": {[]string{`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":["{}"]}}]}`}, nil},
		"a function and a custom":   {[]string{`{"tool_calls":[{"index":0,"function":{"name":"f"},"custom":{"name":"g"}}]}`}, nil},
		"a function, then a custom": {[]string{`{"tool_calls":[{"index":0,"function":{"name":"f"}}]}`, `{"tool_calls":[{"index":0,"custom":{"input":"x"}}]}`}, nil},
		"a message in a chunk":      {[]string{`{},"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var stream []byte
			for _, delta := range test.deltas {
				stream = wire.AppendEvent(stream, []byte(chatChunk(0, delta, "null")))
			}
			calls, err := gather(t, "openai_chat", stream)
			switch {
			case test.want == nil && !errors.Is(err, wire.ErrCalls):
				t.Errorf("read as %q, %v", told(calls), err)
			case test.want != nil && (err != nil || !slices.Equal(told(calls), test.want)):
				t.Errorf("got %q, %v", told(calls), err)
			}
			for _, c := range calls {
				if c.Free != (c.Name == "sql") {
					t.Errorf("%s: free is %v", c.Name, c.Free)
				}
			}
		})
	}
}

// Choices have calls of their own.
func TestChatStreamCallsOfChoices(t *testing.T) {
	var stream []byte
	for _, data := range []string{
		chatChunk(1, chatPieces(chatPiece{0, "b", "g", ""}), "null"), chatChunk(0, chatPieces(chatPiece{0, "a", "f", "{"}), "null"),
		chatChunk(1, chatPieces(chatPiece{0, "", "", "{}"}), `"tool_calls"`), chatChunk(0, chatPieces(chatPiece{0, "", "", "}"}), `"tool_calls"`),
		`[DONE]`,
	} {
		stream = wire.AppendEvent(stream, []byte(data))
	}
	calls, err := gather(t, "openai_chat", stream)
	if want := []string{`0 a f({})`, `1 b g({})`}; err != nil || !slices.Equal(told(calls), want) || calls[0].Key == calls[1].Key {
		t.Errorf("got %q, %v", told(calls), err)
	}
	odd := wire.AppendEvent(nil, []byte(strings.Replace(chatChunk(7, chatPieces(chatPiece{0, "a", "f", "{}"}), "null"), `"index":7`, `"index":-7`, 1)))
	if calls, err := gather(t, "openai_chat", odd); !errors.Is(err, wire.ErrCalls) {
		t.Errorf("got %q, %v", told(calls), err)
	}
}

// Whatever pieces a server sends, what a client would run of them is among the calls that
// are read, or the stream is unclear. The clients assemble as their sources do.
func TestChatStreamCallsAreWhatClientsRun(t *testing.T) {
	piece := rapid.Custom(func(r *rapid.T) chatPiece {
		return chatPiece{
			rapid.SampledFrom([]any{nil, 0, 0, 0, 1, 1, 2}).Draw(r, "index"),
			rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(r, "id"),
			rapid.SampledFrom([]string{"", "", "f", "g"}).Draw(r, "name"),
			rapid.SampledFrom([]string{"", "{}", `{"x":`, `1}`, `{"x":2}`, " "}).Draw(r, "arguments"),
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		frames := rapid.SliceOfN(rapid.SliceOfN(piece, 1, 3), 1, 5).Draw(r, "frames")
		var stream []byte
		for _, pieces := range frames {
			stream = wire.AppendEvent(stream, []byte(chatChunk(0, chatPieces(pieces...), "null")))
		}
		calls, err := gather(t, "openai_chat", stream)
		if err != nil {
			return // unclear
		}
		read := make(map[string]bool)
		for _, c := range calls {
			read[c.Name+strings.TrimSpace(c.Arguments)] = true
		}
		for client, assemble := range chatClients {
			for _, c := range assemble(frames) {
				var object map[string]any
				if c.name == "" || json.Unmarshal([]byte(c.input), &object) != nil {
					continue // it cannot be run
				}
				if !read[c.name+strings.TrimSpace(c.input)] {
					r.Fatalf("%s runs %s(%s) of %v, read %q", client, c.name, c.input, frames, told(calls))
				}
			}
		}
	})
}

// chatClients assemble the pieces of calls. A call that a client loses or throws away is
// not among what it returns.
var chatClients = map[string]func(frames [][]chatPiece) []chatPiece{
	"openai-node": func(frames [][]chatPiece) []chatPiece { // ChatCompletionStream
		return byIndex(frames, func(c *chatPiece, p chatPiece) {
			if p.name != "" {
				c.name = p.name
			}
			c.input += p.input
		}, func(p chatPiece, _ int) int {
			if p.index == nil {
				return -1
			}
			return p.index.(int)
		})
	},
	"openai-go": func(frames [][]chatPiece) []chatPiece { // ChatCompletionAccumulator
		return byIndex(frames, together, func(p chatPiece, _ int) int { i, _ := p.index.(int); return i })
	},
	"by place": func(frames [][]chatPiece) []chatPiece {
		return byIndex(frames, together, func(p chatPiece, at int) int {
			if p.index == nil {
				return at
			}
			return p.index.(int)
		})
	},
	"first name": func(frames [][]chatPiece) []chatPiece {
		return byIndex(frames, func(c *chatPiece, p chatPiece) {
			if c.name == "" {
				c.name = p.name
			}
			c.input += p.input
		}, func(p chatPiece, _ int) int { i, _ := p.index.(int); return i })
	},
	"openai-python": pythonHelper,
	"langchain":     langChain,
	"ai-sdk":        func(frames [][]chatPiece) []chatPiece { return aiSDK(frames, 0) },
	"openrouter":    func(frames [][]chatPiece) []chatPiece { return aiSDK(frames, -1) },
}

func together(c *chatPiece, p chatPiece) { c.name += p.name; c.input += p.input }

func byIndex(frames [][]chatPiece, add func(*chatPiece, chatPiece), index func(chatPiece, int) int) (calls []chatPiece) {
	found := make(map[int]*chatPiece)
	for _, pieces := range frames {
		for at, p := range pieces {
			i := index(p, at)
			if found[i] == nil {
				found[i] = new(chatPiece)
			}
			add(found[i], p)
		}
	}
	for i, c := range found {
		if i >= 0 {
			calls = append(calls, *c)
		}
	}
	return calls
}

// pythonHelper is accumulate_delta: the first list is taken as it is, then an index is a
// place in it. It throws without an index.
func pythonHelper(frames [][]chatPiece) (calls []chatPiece) {
	for n, pieces := range frames {
		if n == 0 {
			calls = append(calls, pieces...)
			continue
		}
		for _, p := range pieces {
			i, ok := p.index.(int)
			if !ok {
				return nil
			}
			if i >= len(calls) {
				calls = append(calls, p)
				continue
			}
			together(&calls[i], p)
		}
	}
	return calls
}

// langChain is merge_lists: pieces without an index are dropped, those with one go to the
// first call with the same index whose id does not differ.
func langChain(frames [][]chatPiece) (calls []chatPiece) {
	for _, p := range slices.Concat(frames...) {
		if p.index == nil {
			continue
		}
		i := slices.IndexFunc(calls, func(c chatPiece) bool {
			return c.index == p.index && (c.id == "" || p.id == "" || c.id == p.id)
		})
		if i < 0 {
			calls = append(calls, p)
			continue
		}
		if together(&calls[i], p); calls[i].id == "" {
			calls[i].id = p.id
		}
	}
	return calls
}

// aiSDK is the openai-compatible provider of the AI SDK: a piece without an index belongs
// behind the last call, or to it; a call needs a name at once, and it is run as soon as
// its arguments are JSON.
func aiSDK(frames [][]chatPiece, last int) (run []chatPiece) {
	calls := make(map[int]*chatPiece)
	length := 0
	for _, p := range slices.Concat(frames...) {
		i, ok := p.index.(int)
		if !ok {
			i = length + last
		}
		c := calls[i]
		switch {
		case c == nil && p.name == "":
			return run // it throws
		case c == nil:
			c = &chatPiece{name: p.name}
			calls[i], length = c, max(length, i+1)
		case c.index == true: // has run
			continue
		}
		if c.input += p.input; json.Valid([]byte(c.input)) {
			c.index = true
			run = append(run, *c)
		}
	}
	for _, c := range calls {
		if c.index != true {
			run = append(run, *c)
		}
	}
	return run
}
