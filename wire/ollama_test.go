package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

const ollamaAgentCall = `{
	"model": "llama3", "stream": false, "think": "high", "keep_alive": "5m", "truncate": true, "shift": false, "logprobs": true, "top_logprobs": 2,
	"options": {"temperature": 0.20, "stop": ["END", ""], "num_ctx": 1024},
	"format": {"type": "object", "properties": {"city": {"description": "a \u0043ity"}}},
	"messages": [
		{"role": "SYSTEM", "content": "Be brief."},
		{"role": "user", "content": "Weather?", "images": ["AA", "BB"]},
		{"role": "assistant", "content": "", "thinking": "hm", "images": null, "tool_calls": [
			{"id": "c1", "type": "function", "function": {"index": 0, "name": "weather", "arguments": {"city": "K\u00f6ln"}}},
			{"function": {"name": "odd", "arguments": "{\"a\":1}"}}
		]},
		{"role": "Tool", "tool_name": "weather", "tool_call_id": "c1", "content": "rain"},
		{"role": "assistant", "content": "It rains."},
		{"role": "user", "content": "And tomorrow?"},
		{"role": "user", "content": "", "images": ["CC"]}
	],
	"tools": [{"type": "function", "items": {"x": "I"}, "function": {"name": "weather", "description": "Says it",
		"parameters": {"type": "object", "properties": {"city": {"description": "The city"}}}}}]
}`

func TestOllamaChatRequest(t *testing.T) {
	r, err := dialect(t, "ollama").Request([]byte(ollamaAgentCall))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "llama3" || r.Stream || !r.Structured || r.Choices != 1 || r.Prompt() != "And tomorrow?" {
		t.Errorf("read as %+v", r)
	}
	compareTools(t, r.Tools, []wire.ToolDefinition{
		{Name: "weather", Description: "Says it", Schema: []byte(`{"type": "object", "properties": {"city": {"description": "The city"}}}`)},
	})
	compare(t, lines(r.Parts), []string{
		`other text options.stop.0 END`,
		"definition schema format type\nobject\nproperties\ncity\ndescription\na City",
		`system text messages.0.content Be brief.`,
		`user text messages.1.content Weather?`,
		`user image messages.1.images.0`,
		`user image messages.1.images.1`,
		`assistant reasoning messages.2.thinking hm`,
		`assistant name messages.2.tool_calls.0.function.name weather`,
		"assistant tool_call messages.2.tool_calls.0.function.arguments city\nKöln",
		`assistant name messages.2.tool_calls.1.function.name odd`,
		`assistant tool_call messages.2.tool_calls.1.function.arguments {"a":1}`,
		`tool name messages.3.tool_name weather`,
		`tool text messages.3.content rain`,
		`assistant text messages.4.content It rains.`,
		`user text messages.5.content And tomorrow?`,
		`user image messages.6.images.0`,
		"definition schema tools.0.items x\nI",
		`definition name tools.0.function.name weather`,
		`definition text tools.0.function.description Says it`,
		"definition schema tools.0.function.parameters type\nobject\nproperties\ncity\ndescription\nThe city",
	})
	for _, p := range r.Parts {
		if want := p.Message > 0 && p.Message <= 5; p.Earlier != want {
			t.Errorf("%s: earlier %v", p.Path, p.Earlier)
		}
	}
}

func TestOllamaGenerateRequest(t *testing.T) {
	r, err := dialect(t, "ollama_generate").Request([]byte(`{
		"model": "llama3", "prompt": "Once", "suffix": "the end", "system": "Be brief.", "template": "{{ .Prompt }}", "context": [1, 2],
		"images": ["AA"], "raw": true, "stream": true, "format": "json", "width": 512, "height": 512, "steps": 4, "options": {"stop": "x"}}`))
	if err != nil || r.Model != "llama3" || !r.Stream || !r.Structured || r.Prompt() != "Once" {
		t.Errorf("read as %+v, %v", r, err)
	}
	compare(t, lines(r.Parts), []string{
		`user text prompt Once`,
		`user text suffix the end`,
		`system text system Be brief.`,
		`definition text template {{ .Prompt }}`,
		`other tokens context`,
		`user image images.0`,
		`other text options.stop x`,
	})
}

// What decides how the answer is read.
func TestOllamaSwitches(t *testing.T) {
	for body, want := range map[string]wire.Request{
		`{}`:                {Stream: true},
		`{"stream":null}`:   {Stream: true},
		`{"stream":true}`:   {Stream: true},
		`{"stream":false}`:  {},
		`{"format":null}`:   {Stream: true},
		`{"format":""}`:     {Stream: true},
		`{"format":"json"}`: {Stream: true, Structured: true},
		`{"format":{}}`:     {Stream: true, Structured: true},
		`{"model":"m","keep_alive":0,"messages":[],"prompt":""}`: {Stream: true, Model: "m"},
	} {
		for _, api := range []string{"ollama_chat", "ollama_generate"} {
			r, err := dialect(t, api).Request([]byte(body))
			if err != nil || r.Stream != want.Stream || r.Structured != want.Structured || r.Model != want.Model || r.Choices != 1 || r.Prompt() != "" {
				t.Errorf("%s: %s: %+v, %v", api, body, r, err)
			}
		}
	}
	for _, test := range [][2]string{
		{"ollama_chat", `{"messages":{"role":"user","content":"canary"}}`},
		{"ollama_chat", `{"messages":"canary"}`},
		{"ollama_chat", `{"messages":["canary"]}`},
		{"ollama_chat", `{"stream":"canary"}`},
		{"ollama_chat", `{"stream":1}`},
		{"ollama_chat", `{"model":["canary"]}`},
		{"ollama_chat", `{"messages":[{"role":"user","content":"a","Content":"canary"}]}`},
		{"ollama_chat", `{"messages":[],"messages":["canary"]}`},
		{"ollama_chat", `{"messages":[{"content":"a\u0000canary"}]}`},
		{"ollama_chat", `{"messages":[]}{"messages":["canary"]}`},
		{"ollama_generate", `{"prompt":["canary"]}`},
		{"ollama_generate", `{"prompt":"a","PROMPT":"canary"}`},
		{"ollama_generate", `{"prompt":"a","stream":"true"}`},
		{"ollama_generate", `[]`},
	} {
		if _, err := dialect(t, test[0]).Request([]byte(test[1])); !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", test[1], err)
		}
	}
}

// What the dialect does not know is listed, wherever it stands.
func TestOllamaUnknown(t *testing.T) {
	r, err := dialect(t, "ollama_chat").Request([]byte(`{"messages":[
		{"role":"ghost","content":"a"},{"content":[{"type":"text","text":"b"}],"images":"x"},{"role":"user","images":[{"url":"c"}],"extra":{"d":"e"}},
		{"role":"assistant","tool_calls":[{"function":5,"x":1}]}], "options":{"new":1}, "format":"yaml", "tools":{}, "prompt":"f"}`))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, lines(r.Parts), []string{
		`other unknown messages.0.role`, `other text messages.0.content a`,
		`other unknown messages.1.content`, `other unknown messages.1.images`,
		`user unknown messages.2.images.0`, `user unknown messages.2.sha256:c8dee78f8c7b466c`,
		`assistant unknown messages.3.tool_calls.0.function`, `assistant unknown messages.3.tool_calls.0.sha256:2d711642b726b044`,
		`other unknown options.sha256:11507a0e2f5e69d5`, `definition unknown format`, `definition unknown tools`, `other unknown sha256:cf07194ee232eb53`,
	})
	g, err := dialect(t, "ollama_generate").Request([]byte(`{"prompt":"a","messages":[{"content":"b"}],"context":"c","images":[1],"template":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"context", "images.0", "template"} {
		if !slices.ContainsFunc(g.Parts, func(p wire.Part) bool { return p.Path == path && p.Kind == wire.Unknown }) {
			t.Errorf("%s is not unknown: %v", path, lines(g.Parts))
		}
	}
	if len(g.Parts) != 5 {
		t.Errorf("%v", lines(g.Parts))
	}
}

// What is left is the same request with other words in the replaced places.
func TestOllamaRedact(t *testing.T) {
	d := dialect(t, "ollama")
	before, err := d.Request([]byte(ollamaAgentCall))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range before.Parts {
		if p.Text == "" || !p.Earlier {
			continue
		}
		out := wire.Redact([]byte(ollamaAgentCall), []wire.Part{p}, "gone")
		after, err := d.Request(out)
		if err != nil || len(after.Parts) != len(before.Parts) {
			t.Fatalf("%s: %v\n%s", p.Path, err, out)
		}
		if got := after.Parts[i]; !strings.Contains(got.Text, "gone") && got.Text != "redacted" || got.Path != p.Path || got.Kind != p.Kind {
			t.Errorf("%s became %+v", p.Path, got)
		}
		want := ollamaAgentCall[:p.Start] + string(out[p.Start:p.Start+len(out)-len(ollamaAgentCall)+p.Bytes]) + ollamaAgentCall[p.Start+p.Bytes:]
		if string(out) != want {
			t.Errorf("%s: other bytes changed:\n%s", p.Path, out)
		}
	}
}

func TestOllamaResponses(t *testing.T) {
	r, err := dialect(t, "ollama").Response([]byte(`{"model":"m","remote_model":"r","remote_host":"h","created_at":"t","x":"?","done":true,"done_reason":"length","total_duration":1,
		"logprobs":[{"token":"a"}],"_debug_info":{"rendered_template":"the prompt","image_count":1},
		"message":{"role":"assistant","content":"Paris.","thinking":"hm","images":["AA"],"tool_calls":[{"function":{"name":"f","arguments":{"a":"b"}}}]}}`))
	if err != nil || r.Model != "m" || r.Finish != "length" || r.Text() != "Paris." || r.ID != "" {
		t.Errorf("%+v, %v", r, err)
	}
	compare(t, lines(r.Parts), []string{
		`unknown sha256:2d711642b726b044`, `logprobs logprobs`, "annotation _debug_info rendered_template\nthe prompt\nimage_count",
		`text message.content Paris.`, `reasoning message.thinking hm`, `image message.images.0`,
		`name message.tool_calls.0.function.name f`, "tool_call message.tool_calls.0.function.arguments a\nb",
	})
	r, err = dialect(t, "ollama_generate").Response([]byte(`{"model":"m","response":"Paris.","thinking":"hm","context":[1],"image":"AA","completed":1,"total":2,"done":true,
		"tool_calls":[{"function":{"name":"f","arguments":{}}}]}`))
	if err != nil || r.Text() != "Paris." {
		t.Errorf("%+v, %v", r, err)
	}
	compare(t, lines(r.Parts), []string{`text response Paris.`, `reasoning thinking hm`, `tokens context`, `image image`, `name tool_calls.0.function.name f`})
	for _, p := range r.Parts {
		if p.Message != 1 {
			t.Errorf("%s belongs to choice %d", p.Path, p.Message)
		}
	}
	for _, body := range []string{``, `<html>canary</html>`, `{}`, `{"error":"canary","text":"canary"}`, `{"done":"canary"}`, `{"message":"canary"}`, `{"done":true}{}`, `{"done":true,"Done":"canary"}`} {
		for _, api := range []string{"ollama_chat", "ollama_generate"} {
			if r, err := dialect(t, api).Response([]byte(body)); !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %s: %+v, %v", api, body, r, err)
			}
		}
	}
}

func TestOllamaEvents(t *testing.T) {
	type delta = wire.Delta
	first := []int{0}
	for _, test := range []struct {
		api, line string
		want      wire.Event
		invalid   bool
	}{
		{"ollama_chat", `{"message":{"role":"assistant","content":"Par"},"done":false}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "Par"}}}, false},
		{"ollama_chat", `{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}`, wire.Event{Deltas: []delta{{Kind: wire.Reasoning, Text: "hm"}}}, false},
		{"ollama_chat", `{"message":{"content":"!"},"done":true,"done_reason":"stop"}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "!"}}, Finish: "stop", Finished: first, Done: true}, false},
		{"ollama_chat", `{"done":true}`, wire.Event{Finished: first, Done: true}, false},
		{"ollama_generate", `{"response":"Par","thinking":"hm","done":false}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "Par"}, {Kind: wire.Reasoning, Text: "hm"}}}, false},
		{"ollama_generate", `{"message":{"content":"x"},"y":1}`, wire.Event{Unknown: []string{"sha256:ab530a13e4591498", "sha256:a1fce4363854ff88"}}, false},
		// The JavaScript SDK stops at whatever JavaScript takes for true.
		{"ollama_chat", `{"done":1}`, wire.Event{Finished: first, Done: true}, false},
		{"ollama_chat", `{"done":"false"}`, wire.Event{Finished: first, Done: true}, false},
		{"ollama_chat", `{"done":{}}`, wire.Event{Finished: first, Done: true, Unknown: []string{"done"}}, false},
		{"ollama_chat", `{"done":0}`, wire.Event{}, false},
		{"ollama_chat", `{"done":null}`, wire.Event{}, false},
		{"ollama_chat", `{"status":"success"}`, wire.Event{Finished: first, Done: true, Unknown: []string{"sha256:073c1634c496cdb6"}}, false},
		// Every client raises an error with a text; only some raise an empty one.
		{"ollama_chat", `{"error":"m"}`, wire.Event{Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "m"}}}, false},
		{"ollama_chat", `{"error":{"message":"m"}}`, wire.Event{Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "message\nm"}}}, false},
		{"ollama_chat", `{"error":null}`, wire.Event{}, false},
		{"ollama_chat", `{"error":""}`, wire.Event{}, false},
		{"ollama_chat", ` `, wire.Event{}, false},
		// Lines that two readers would read differently end for some reader.
		{"ollama_chat", `canary`, wire.Event{}, true},
		{"ollama_chat", `[{"done":true}]`, wire.Event{}, true},
		{"ollama_chat", `{"message":{"content":"a"},"done":false}{"done":true}`, wire.Event{Finished: first, Done: true}, true},
		{"ollama_chat", `{"message":{"content":"` + "\xff" + `"},"done":true}`, wire.Event{Finished: first, Done: true}, true},
		{"ollama_chat", `{"done":true,"done":false}`, wire.Event{Finished: first, Done: true}, true},
		{"ollama_chat", `{"done":false,"done":true}`, wire.Event{Finished: first, Done: true}, true},
		{"ollama_chat", `{"message":{"Content":"canary"},"Done":true}`, wire.Event{Finished: first, Done: true}, true},
	} {
		frame := splitLines(t, test.line)[0]
		got, err := dialect(t, test.api).Events().Event(frame)
		if test.invalid != errors.Is(err, wire.ErrInvalid) || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", test.line, err)
		}
		if !reflect.DeepEqual(withoutParts(got), test.want) {
			t.Errorf("%s\n got %+v\nwant %+v", test.line, got, test.want)
		}
	}
}

// ollamaStreamText reads a stream as the strictest client does: each line is one JSON
// object with the members of its call, nothing comes behind the end, and there is one.
func ollamaStreamText(t testing.TB, api string, stream []byte) (text string, failed bool) {
	t.Helper()
	rest, found := bytes.CutSuffix(stream, []byte("\n"))
	if !found {
		t.Fatalf("the last line does not end: %q", stream)
	}
	done := false
	for line := range bytes.SplitSeq(rest, []byte("\n")) {
		var got struct {
			Error    *string
			Message  *struct{ Role, Content string }
			Response *string
			Done     *bool
		}
		d := json.NewDecoder(bytes.NewReader(line))
		if err := d.Decode(&got); err != nil || d.More() {
			t.Fatalf("line %q: %v", line, err)
		}
		switch {
		case done || failed:
			t.Fatalf("%q comes behind the end", line)
		case got.Error != nil:
			failed = *got.Error != ""
		case got.Done == nil || (api == "ollama_chat") != (got.Message != nil) || (api == "ollama_generate") != (got.Response != nil):
			t.Fatalf("%q is no line of %s", line, api)
		case got.Message != nil:
			text, done = text+got.Message.Content, *got.Done
		default:
			text, done = text+*got.Response, *got.Done
		}
	}
	if done == failed {
		t.Fatalf("the stream does not end: %s", stream)
	}
	return text, failed
}

// ollamaLongStream is a stream as a thinking model with tools sends it.
func ollamaLongStream(api string) []byte {
	var out bytes.Buffer
	line := func(text, thinking, rest string) {
		said := fmt.Sprintf(`"message":{"role":"assistant","content":%q,"thinking":%q}`, text, thinking)
		if api == "ollama_generate" {
			said = fmt.Sprintf(`"response":%q,"thinking":%q`, text, thinking)
		}
		fmt.Fprintf(&out, `{"model":"llama3.2:1b","created_at":"2025-07-07T20:22:19.1Z",%s,"done":%s}`+"\n", said, rest)
	}
	line("", "The user asks ", "false")
	line("", "for a city.", "false")
	if api == "ollama_chat" {
		out.WriteString(`{"model":"llama3.2:1b","created_at":"2025-07-07T20:22:19.1Z","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":"b"}}}]},"done":false}` + "\n")
	}
	for _, piece := range []string{"The capital ", "of France ", "is Paris", ".\n", "Größe 🙂"} {
		line(piece, "", "false")
	}
	line("", "", `true,"done_reason":"stop","total_duration":1,"eval_count":2`)
	return out.Bytes()
}

// Wherever a stream ends in words of ours, the client reads what it has and the rest.
func TestOllamaStreamsEndAnywhere(t *testing.T) {
	for _, api := range []string{"ollama_chat", "ollama_generate"} {
		d := dialect(t, api)
		frames := split(t, d, ollamaLongStream(api))
		for n := range frames {
			for _, open := range []bool{false, true} {
				stream, events := d.Stream(), d.Events()
				var sent []byte
				said := ""
				for i, f := range frames[:n] {
					if open && i == n-1 {
						f.Raw = bytes.TrimSuffix(f.Raw, []byte("\n"))
					}
					stream.Sent(f)
					sent = append(sent, f.Raw...)
					e, err := events.Event(f)
					if err != nil {
						t.Fatal(err)
					}
					for _, delta := range e.Deltas {
						if delta.IsText() {
							said += delta.Text
						}
					}
				}
				if alive := stream.KeepAlive(); alive != nil {
					sent = append(append(sent, alive...), alive...)
				} else if !open {
					t.Errorf("%s: no keep-alive after %d frames", api, n)
				}
				r := wire.Refusal{Model: "asked", Text: declined, Created: 1700000000}
				text, failed := ollamaStreamText(t, api, slices.Concat(sent, stream.Refusal(r)))
				if failed || text != said+declined {
					t.Errorf("%s after %d frames: %q", api, n, text)
				}
				if _, failed := ollamaStreamText(t, api, slices.Concat(sent, stream.Error(wire.Error{Status: 502, Message: "broken"}))); !failed {
					t.Errorf("%s after %d frames: the error looks like an end", api, n)
				}
				if model := []string{"llama3.2:1b", "asked"}[b2i(n == 0)]; !strings.Contains(string(stream.Refusal(r)), `"model":"`+model+`"`) {
					t.Errorf("%s after %d frames: %s", api, n, stream.Refusal(r))
				}
				if stream.Note("x") != nil {
					t.Error("a note would be read as a line")
				}
			}
		}
	}
}

func TestOllamaRefusals(t *testing.T) {
	for _, api := range []string{"ollama_chat", "ollama_generate"} {
		d := dialect(t, api)
		for _, place := range []wire.Place{"", wire.OnlyContent, wire.OnlyRefusal} {
			r := wire.Refusal{ID: "KRN-1", Model: "llama3", Text: declined, Created: 1700000000, Choices: 3, Place: place}
			golden(t, api+"_refusal.json", d.Refusal(r))
			golden(t, api+"_refusal.ndjson", d.Stream().Refusal(r))
			whole, err := d.Response(d.Refusal(r))
			if err != nil || whole.Text() != declined || whole.Finish != "stop" || whole.Model != "llama3" || len(whole.Parts) != 1 {
				t.Errorf("%s: %+v, %v", api, whole, err)
			}
			frames := split(t, d, d.Stream().Refusal(r))
			e, err := d.Events().Event(frames[0])
			if err != nil || len(frames) != 1 || !e.Done || e.Finish != "stop" || len(e.Unknown) > 0 || !slices.Equal(withoutParts(e).Deltas, []wire.Delta{{Kind: wire.Text, Text: declined}}) {
				t.Errorf("%s: %+v, %v", api, e, err)
			}
		}
		e := wire.Error{Status: 403, Code: "policy_refusal", Message: declined}
		golden(t, api+"_error.json", d.Error(e))
		if d.Framing().ContentType() != "application/x-ndjson" {
			t.Errorf("%s is framed as %s", api, d.Framing())
		}
	}
}

func TestOllamaAsk(t *testing.T) {
	asker := dialect(t, "ollama").(wire.Asker)
	call := asker.Ask(wire.Ask{
		Model: "m", System: "s", Prompt: "c",
		History: []wire.Message{{Role: wire.User, Text: "a"}, {Role: wire.Assistant, Text: "b"}},
	})
	want := `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}],"stream":false}`
	if !sameJSON(t, call.Body, want) || nameOf(wire.Match(&url.URL{Path: call.Path})) != "ollama_chat" {
		t.Errorf("%s %s", call.Path, call.Body)
	}
	for _, stream := range []bool{false, true} {
		r, err := dialect(t, "ollama").Request(asker.Ask(wire.Ask{Model: "m", Prompt: "hi", Stream: stream}).Body)
		if err != nil || r.Stream != stream || r.Prompt() != "hi" {
			t.Errorf("read back as %+v, %v", r, err)
		}
	}
	if name, value := asker.Authorize("k"); name != "Authorization" || value != "Bearer k" {
		t.Errorf("%s: %s", name, value)
	}
	if names := wire.AskerNames(); !slices.IsSorted(names) || !slices.Contains(names, "ollama") || !slices.Contains(names, "openai") || slices.Contains(names, "ollama_generate") {
		t.Errorf("these ask: %v", names)
	}
}

// Any split of a stream gives the same events.
func TestOllamaSplitsMakeNoDifference(t *testing.T) {
	stream := string(ollamaLongStream("ollama_chat"))
	read := func(frames []wire.Frame) (out []wire.Event) {
		events := dialect(t, "ollama").Events()
		for _, f := range frames {
			e, err := events.Event(f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e)
		}
		return out
	}
	want := read(splitLines(t, stream))
	rapid.Check(t, func(r *rapid.T) {
		if got := read(splitLines(t, cuts(r, stream)...)); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v", got)
		}
	})
}

// FuzzOllama: nothing panics, what is read of a request stands where it says, and a
// whole answer and a stream of it in one line say the same.
func FuzzOllama(f *testing.F) {
	f.Add([]byte(ollamaAgentCall))
	for _, file := range []string{"ollama_chat/tools.response.json", "ollama_generate/suffix.response.json", "ollama_chat/thinking.stream"} {
		body, err := os.ReadFile("testdata/examples/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"done":[],"status":"success","error":{},"message":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, api := range []string{"ollama_chat", "ollama_generate"} {
			d := dialect(t, api)
			if r, err := d.Request(body); err == nil {
				for _, p := range r.Parts {
					if !json.Valid(body[p.Start : p.Start+p.Bytes]) {
						t.Fatalf("%s stands at %q", p.Path, body[p.Start:p.Start+p.Bytes])
					}
				}
			} else if !errors.Is(err, wire.ErrInvalid) {
				t.Fatal(err)
			}
			whole, err := d.Response(body)
			for _, frame := range split(t, d, body) {
				if _, err := d.Events().Event(frame); err != nil && !errors.Is(err, wire.ErrInvalid) {
					t.Fatal(err)
				}
			}
			if err != nil {
				continue
			}
			e, err := d.Events().Event(wire.Frame{Data: body})
			if err != nil {
				t.Fatalf("a whole answer cannot be a line: %v", err)
			}
			text := ""
			for _, delta := range e.Deltas {
				if delta.IsText() {
					text += delta.Text
				}
			}
			if text != whole.Text() {
				t.Fatalf("whole %q, as a line %q", whole.Text(), text)
			}
		}
	})
}

func BenchmarkOllamaEvent(b *testing.B) {
	d := dialect(b, "ollama")
	frame := split(b, d, []byte(`{"model":"llama3.2","created_at":"2023-08-04T08:52:19.385406455-07:00","message":{"role":"assistant","content":" Paris"},"done":false}`+"\n"))[0]
	events, stream := d.Events(), d.Stream()
	b.ReportAllocs()
	b.SetBytes(int64(len(frame.Raw)))
	for b.Loop() {
		if e, err := events.Event(frame); err != nil || len(e.Deltas) != 1 {
			b.Fatal(e, err)
		}
		stream.Sent(frame)
	}
}
