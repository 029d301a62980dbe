package wire_test

import (
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// Of a frame its known members stay, byte for byte.
func TestFrameKnown(t *testing.T) {
	for name, test := range map[string]struct {
		dialect  string
		framing  wire.Framing
		in, want string
	}{
		"nothing unknown":   {"openai_chat", wire.EventStream, "id: 1\ndata: { \"choices\":[],  \"usage\":{} }\n\n", "id: 1\ndata: { \"choices\":[],  \"usage\":{} }\n\n"},
		"first":             {"openai_chat", wire.EventStream, "data: {\"a\":\"x\", \"choices\":[], \"usage\":{}}\n\n", "data: {\"choices\":[], \"usage\":{}}\n\n"},
		"last, and another": {"openai_chat", wire.EventStream, "id: 1\ndata: {\"a\":{\"b\":[1]},\"choices\":[],\"c\":2}\n\n", "id: 1\ndata: {\"choices\":[]}\n\n"},
		"on several lines":  {"openai_chat", wire.EventStream, "data: {\"choices\":[],\ndata: \"a\":\"x\"}\n\n", "data: {\"choices\":[]}\n\n"},
		"a name":            {"openai_chat", wire.EventStream, "event: x\nid: y\ndata: {\"choices\":[],\ndata: \"usage\":{}}\n\n", "data: {\"choices\":[], \"usage\":{}}\n\n"},
		"a name alone":      {"openai_chat", wire.EventStream, "event: x\n\n", ""},
		"an id alone":       {"openai_chat", wire.EventStream, "id: x\n\n", ""},
		"all":               {"openai_chat", wire.EventStream, "data: {\"a\":\"x\"}\n\n", ""},
		"further down":      {"openai_chat", wire.EventStream, "data: {\"choices\":[{\"index\":0,\"a\":\"x\"}]}\n\n", ""},
		"the wrong type":    {"openai_chat", wire.EventStream, "data: {\"choices\":[],\"id\":{\"a\":\"x\"}}\n\n", ""},
		"an event":          {"anthropic", wire.EventStream, "event: x\ndata: {\"type\":\"x\"}\n\n", ""},
		"a line":            {"ollama_chat", wire.Lines, "{\"model\":\"m\",\"a\":\"x\",\"done\":true}\n", "{\"model\":\"m\",\"done\":true}\n"},
		"an element":        {"gemini_generate", wire.Array, "[{\"usageMetadata\":{},\"a\":\"x\"}\n", "[{\"usageMetadata\":{}}"},
	} {
		t.Run(name, func(t *testing.T) {
			split := wire.NewSplitter(test.framing, 0)
			if err := split.Push([]byte(test.in)); err != nil {
				t.Fatal(err)
			}
			f, ok := split.Next()
			if !ok {
				t.Fatal("no frame")
			}
			d, _ := wire.Named(test.dialect)
			event, err := d.Events().Event(f)
			if err != nil {
				t.Fatal(err)
			}
			known, ok := f.Known(event.Unknown)
			if string(known.Raw) != test.want || ok != (test.want != "") {
				t.Errorf("%v, %q", ok, known.Raw)
			}
			if again, err := d.Events().Event(known); ok && (err != nil || len(again.Unknown) > 0) {
				t.Errorf("it reads as %v, %v", again, err)
			}
		})
	}
}

// A frame is forgiven what JavaScript's and Python's clients pass over, and nothing else.
func TestFrameForgiven(t *testing.T) {
	for data, want := range map[string]string{
		`{"a":1,"b":{"c":"x","c":"y"}}`:               `{"a":1,"b":{"c":"y"}}`,
		"{\"a\":\"x\xff\"}":                           "{\"a\":\"x\ufffd\"}",
		`["\ud800",{"a\u0000":"\u0000x"}]`:            "[\"\ufffd\",{\"a\\u0000\":\"\ufffdx\"}]",
		`{"__proto__":{"a":1},"b":[{"__proto__":2}]}`: `{"b":[{}]}`,
		`{"a":1}{"b":2}`:                              "", `{"a":1,}`: "", `text`: "", ``: "",
	} {
		frame, ok := wire.Frame{Raw: []byte(data), Data: []byte(data)}.Forgiven()
		if ok != (want != "") || string(frame.Data) != want {
			t.Errorf("%q: %t, %q", data, ok, frame.Data)
		}
	}
}
