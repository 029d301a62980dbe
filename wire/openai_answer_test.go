package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

func TestChatResponse(t *testing.T) {
	r, err := dialect(t, "openai").Response([]byte(`{
		"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-x", "usage": {"total_tokens": 1}, "service_tier": "auto",
		"prompt_filter_results": [], "x_vendor": {"text": "?"},
		"choices": [
			{"index": 0, "finish_reason": "tool_calls", "logprobs": {"content": []}, "message": {
				"role": "assistant", "content": "Paris.", "refusal": null, "reasoning_content": "hm",
				"annotations": [{"type": "url_citation", "url_citation": {"title": "T", "url": "https://x.test"}}],
				"audio": {"id": "a", "data": "AA", "transcript": "Spoken.", "expires_at": 1},
				"tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}]}},
			{"index": 1, "finish_reason": "stop", "logprobs": null, "message": {"role": "assistant", "content": null, "refusal": "No."}}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "gpt-x" || r.Finish != "tool_calls" || r.Text() != "Paris.Spoken." {
		t.Errorf("model %q, finish %q, text %q", r.Model, r.Finish, r.Text())
	}
	compare(t, lines(r.Parts), []string{
		`unknown sha256:7b5dcdef6c94b138`,
		`logprobs choices.0.logprobs`,
		`text choices.0.message.content Paris.`,
		`reasoning choices.0.message.reasoning_content hm`,
		"annotation choices.0.message.annotations type\nurl_citation\nurl_citation\ntitle\nT\nurl\nhttps://x.test",
		`audio choices.0.message.audio.data`,
		`text choices.0.message.audio.transcript Spoken.`,
		`name choices.0.message.tool_calls.0.function.name f`,
		`tool_call choices.0.message.tool_calls.0.function.arguments {`,
		`refusal choices.1.message.refusal No.`,
	})
}

// The calls of a whole answer, of each choice by its place.
func TestChatResponseCalls(t *testing.T) {
	r, err := dialect(t, "openai").Response([]byte(`{"choices": [
		{"index": 5, "message": {"function_call": {"name": "old", "arguments": "{}"}, "tool_calls": [
			{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}, {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "DROP"}}, 5]}},
		{"message": {"content": "none", "tool_calls": null}},
		{"message": {"tool_calls": [{"function": {"name": "g", "arguments": {"y": [2]}}}]}}]}`))
	if want := []string{`0 a f({"x":1})`, `0 b sql(DROP)`, `0  old({})`, `2  g({"y": [2]})`}; err != nil || !slices.Equal(told(r.Calls), want) {
		t.Errorf("%q, %v", told(r.Calls), err)
	}
	for i, c := range r.Calls {
		if c.Unclear || c.Free != (i == 1) || slices.ContainsFunc(r.Calls[:i], func(d wire.ToolCall) bool { return c.Key == d.Key }) {
			t.Errorf("%+v", c)
		}
	}
	for _, odd := range []string{`"function": {"name": 5}`, `"function": {"name": "f", "arguments": ["{}"]}`, `"function": {"name": "f"}, "custom": {"name": "g"}`} {
		r, err := dialect(t, "openai").Response([]byte(`{"choices":[{"message":{"tool_calls":[{` + odd + `}]}}]}`))
		if err != nil || len(r.Calls) != 1 || !r.Calls[0].Unclear {
			t.Errorf("%s: %+v, %v", odd, r.Calls, err)
		}
	}
}

func TestCompletionsResponse(t *testing.T) {
	r, err := dialect(t, "openai_completions").Response([]byte(
		`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[` +
			`{"index":0,"text":"Once","finish_reason":"length","logprobs":null},{"index":1,"text":"Twice","finish_reason":"stop","logprobs":{}}]}`))
	if err != nil || r.Text() != "Once" || r.Finish != "length" || r.Model != "m" {
		t.Errorf("%+v, %v", r, err)
	}
	compare(t, lines(r.Parts), []string{`text choices.0.text Once`, `text choices.1.text Twice`, `logprobs choices.1.logprobs`})
}

// A whole answer that is nothing but an error says so, in each dialect as its providers write
// it. Beside an answer it is none, and what stands beside it is never taken for read.
func TestWholeErrors(t *testing.T) {
	type answer struct{ failure, answered string } // the members of each
	const openai = `"error":{"message":"The model is overloaded.","type":"server_error","code":502}`
	for api, a := range map[string]answer{
		"openai":             {openai, `"choices":[{"index":0,"message":{"content":"Paris."}}]`},
		"openai_completions": {openai, `"choices":[{"index":0,"text":"Paris."}]`},
		"anthropic":          {`"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"`, ""},
		"gemini":             {`"error":{"code":503,"message":"Overloaded.","status":"UNAVAILABLE"}`, `"candidates":[{"content":{"parts":[{"text":"Paris."}]}}]`},
		"ollama_chat":        {`"error":"model runner has stopped"`, `"message":{"content":"Paris."},"done":true`},
		"ollama_generate":    {`"error":"model runner has stopped"`, `"response":"Paris.","done":true`},
		"openai_responses":   {openai, ""},
	} {
		d := dialect(t, api)
		r, err := d.Response([]byte(`{` + a.failure + `}`))
		if err != nil || !r.Err || len(r.Calls) > 0 || r.Text() != "" || len(r.Parts) != 1 || r.Parts[0].Kind != wire.Annotation {
			t.Errorf("%s: %+v, %v", api, r, err)
		}
		r, err = d.Response([]byte(`{` + a.failure + `,"note":"Paris."}`))
		if !errors.Is(err, wire.ErrInvalid) || !r.Err || len(r.Parts) > 0 {
			t.Errorf("%s, and a note: %+v, %v", api, r, err)
		}
		for _, nothing := range []string{`null`, `{}`, `""`, `false`} {
			if r, err := d.Response([]byte(`{"error":` + nothing + `}`)); !errors.Is(err, wire.ErrInvalid) || r.Err {
				t.Errorf("%s, the error %s: %+v, %v", api, nothing, r, err)
			}
		}
		if a.answered == "" {
			continue
		}
		if r, err := d.Response([]byte(`{` + a.failure + `,` + a.answered + `}`)); err != nil || r.Err || r.Text() != "Paris." {
			t.Errorf("%s, and an answer: %+v, %v", api, r, err)
		}
	}
	for body, failed := range map[string]bool{
		`{"error":{"message":"no"},"choices":[]}`: true, `{"error":{"message":"no"},"choices":null}`: true,
		`{"error":{"message":"no"},"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"error"}]}`: true,
		`{"error":{"message":"no"},"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}`:  false,
		`{"error":{"message":"no"},"choices":[{"message":{"reasoning_content":"Hm."}}]}`:                                           false,
		`{"error":{"message":"no"},"choices":[{"message":{"shown":"Paris."}}]}`:                                                    false,
	} {
		if r, err := dialect(t, "openai").Response([]byte(body)); err != nil || r.Err != failed {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
	if r, err := dialect(t, "openai").Response([]byte(`{"error":{"message":"no"},"choices":{"0":{"message":{"content":"Paris."}}}}`)); err == nil || !r.Err {
		t.Errorf("choices that JavaScript reads: %+v, %v", r, err)
	}
}

func TestInvalidResponses(t *testing.T) {
	for _, body := range []string{
		``, `<html>canary</html>`, `[]`, `{}`, `{"error":{"message":"canary"},"text":"canary"}`, `{"choices":{}}`, `{"choices":[]}x`,
		`{"choices":[{"message":{"content":"a","content":"canary"}}]}`, `{"choices":[{"message":{"content":"a","Content":"canary"}}]}`,
		`{"choices":[{"message":{"content":"\ud800"}}]}`,
	} {
		for _, api := range []string{"openai", "openai_completions"} {
			r, err := dialect(t, api).Response([]byte(body))
			if api == "openai_completions" && strings.Contains(body, `"Content"`) {
				continue // message is not a member there, so nothing in it is
			}
			if !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %s: %+v, %v", api, body, r, err)
			}
		}
	}
}

// event reads one frame that carries the data.
func event(t *testing.T, api, data string) wire.Event {
	t.Helper()
	frames, _ := decode(t, string(wire.AppendEvent(nil, []byte(data))))
	e, err := dialect(t, api).Events().Event(frames[0])
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return withoutParts(e)
}

// withoutParts leaves out the parts of texts, which TestParts compares.
func withoutParts(e wire.Event) wire.Event {
	for i := range e.Deltas {
		e.Deltas[i].Part = ""
	}
	return e
}

// Clients put the pieces of one part together. The pieces of a part have one name, whatever
// event they come in, and those of another have another.
func TestParts(t *testing.T) {
	for _, test := range []struct{ api, piece, same, other string }{
		{"openai", `{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":0,"delta":{"content":"b","role":"assistant"}}]}`, `{"choices":[{"index":0,"delta":{"refusal":"b"}}]}`},
		{"anthropic", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`, `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"b"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}`},
		{"anthropic", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`, `{"type":"message_start","message":{"content":[{"type":"text","text":""},{"type":"text","text":"b"}]}}`, `{"type":"message_start","message":{"content":[{"type":"text","text":"b"}]}}`},
		{"gemini", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":""},{"text":"b"}]}}]}`, `{"candidates":[{"index":0},{"index":0,"content":{"parts":[{"text":"b"}]}}]}`},
		{"openai_responses", `{"type":"response.output_text.delta","output_index":1,"content_index":2,"delta":"a"}`, `{"type":"response.content_part.added","output_index":1,"content_index":2,"part":{"type":"output_text","text":"b"}}`, `{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"b"}`},
		{"openai_responses", `{"type":"response.output_text.delta","output_index":1,"content_index":2,"delta":"a"}`, `{"type":"response.output_text.delta","output_index":1,"content_index":2,"delta":"b","logprobs":[]}`, `{"type":"response.output_text.delta","output_index":0,"content_index":2,"delta":"b"}`},
	} {
		part := func(data string) string {
			frames, _ := decode(t, "event: "+gjson.Get(data, "type").Str+"\n"+string(wire.AppendEvent(nil, []byte(data))))
			e, err := dialect(t, test.api).Events().Event(frames[0])
			if err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			for _, d := range e.Deltas {
				if d.IsText() && d.Text != "" {
					return string(d.Kind) + " " + d.Part
				}
			}
			t.Fatalf("%s brings no text: %+v", data, e)
			return ""
		}
		if got := part(test.piece); got != part(test.same) || got == part(test.other) {
			t.Errorf("%s: %q, with the same part %q, with another %q", test.piece, got, part(test.same), part(test.other))
		}
	}
}

func TestEvents(t *testing.T) {
	const chat, completions = "openai", "openai_completions"
	type delta = wire.Delta
	for _, test := range []struct {
		api, data string
		want      wire.Event
	}{
		{chat, `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, wire.Event{}},
		{chat, `{"choices":[{"index":0,"delta":{"content":"Par"},"logprobs":null,"finish_reason":null}],"obfuscation":"xx"}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "Par"}}}},
		{chat, `{"choices":[{"index":0,"delta":{"refusal":"No"}}]}`, wire.Event{Deltas: []delta{{Kind: wire.RefusalText, Text: "No"}}}},
		{chat, `{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`, wire.Event{Deltas: []delta{{Kind: wire.Reasoning, Text: "hm"}}}},
		{
			chat, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{\""}}]}}]}`,
			wire.Event{Deltas: []delta{{Kind: wire.Name, Text: "f", Called: true}, {Kind: wire.Arguments, Text: `{"`, Called: true}}, Calls: []wire.CallDelta{{}}},
		},
		{
			chat, `{"x":1,"choices":[{"delta":{"content":"b"},"index":1},{"index":0,"delta":{"content":"a","y":1},"logprobs":{"content":[]}}]}`,
			wire.Event{
				Deltas:  []delta{{Choice: 1, Kind: wire.Text, Text: "b"}, {Kind: wire.Text, Text: "a"}, {Kind: wire.Logprobs}},
				Unknown: []string{"sha256:2d711642b726b044", "choices.1.delta.sha256:a1fce4363854ff88"},
			},
		},
		{
			chat, `{"choices":[{"index":-1,"delta":{"content":"a"}},{"index":128,"delta":{"content":"b"}},{"index":"2","delta":{"content":"c"}},{"delta":{"content":"d"}}]}`,
			wire.Event{
				Deltas:  []delta{{Kind: wire.Text, Text: "a"}, {Kind: wire.Text, Text: "b"}, {Kind: wire.Text, Text: "c"}, {Kind: wire.Text, Text: "d"}},
				Unknown: []string{"choices.0.index", "choices.1.index", "choices.2.index"},
			},
		},
		{chat, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}`, wire.Event{Finish: "tool_calls"}},
		{chat, `{"choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"stop"}]}`, wire.Event{Finish: "stop", Deltas: []delta{{Kind: wire.Text, Text: "!"}}}},
		{chat, `{"choices":[],"usage":{"total_tokens":1}}`, wire.Event{}},
		{chat, `{"choices":[],"prompt_filter_results":[{}]}`, wire.Event{}},
		{chat, `{"choices":[5],"extra":"x"}`, wire.Event{Unknown: []string{"choices.0", "sha256:c8dee78f8c7b466c"}}},
		{chat, `{"choices":{"0":{}}}`, wire.Event{Unknown: []string{"choices"}}},
		{chat, `{"error":{"message":"m"}}`, wire.Event{Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "message\nm"}}}},
		{chat, `{"error":"m"}`, wire.Event{Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "m"}}}},
		{chat, `{"error":{}}`, wire.Event{}}, // Python reads on
		{chat, `{"error":null,"choices":[]}`, wire.Event{}},
		{chat, `{"error":{"code":1},"choices":[{"index":0,"delta":{"content":"x"}}]}`, wire.Event{Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "code"}, {Kind: wire.Text, Text: "x"}}}},
		{chat, `[DONE]`, wire.Event{Done: true}},
		{chat, `[DONE] `, wire.Event{Done: true}},
		{completions, `{"id":"c","object":"text_completion","choices":[{"index":1,"text":"On","logprobs":null,"finish_reason":null}]}`, wire.Event{Deltas: []delta{{Choice: 1, Kind: wire.Text, Text: "On"}}}},
		{completions, `{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`, wire.Event{Finish: "length"}},
		{completions, `{"choices":[{"index":0,"delta":{"content":"x"}}]}`, wire.Event{Unknown: []string{"choices.0.sha256:4f4a9410ffcdf895"}}},
	} {
		got := event(t, test.api, test.data)
		if !slices.Equal(got.Deltas, test.want.Deltas) || !slices.Equal(sorted(got.Unknown), sorted(test.want.Unknown)) ||
			got.Finish != test.want.Finish || got.Done != test.want.Done || got.Err != test.want.Err || len(got.Calls) > 0 != (len(test.want.Calls) > 0) {
			t.Errorf("%s\n got %+v\nwant %+v", test.data, got, test.want)
		}
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// Frames that are no plain data line.
func TestEventFrames(t *testing.T) {
	d := dialect(t, "openai")
	for in, want := range map[string]wire.Event{
		": ping\n\n": {},
		"\n":         {},
		"event: message\ndata: {\"choices\":[]}\n\n": {},
		"event: text\ndata: {\"choices\":[]}\n\n":    {Unknown: []string{"event"}},

		"event: text\n\n":                    {Unknown: []string{"event"}},
		"data: {\"choices\":\ndata: []}\n\n": {},
	} {
		frames, _ := decode(t, in)
		got, err := d.Events().Event(frames[0])
		if err != nil || !slices.Equal(got.Unknown, want.Unknown) || got.Done || got.Err || len(got.Deltas) > 0 {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
	for _, data := range []string{`canary`, `{"choices":[{"delta":{"content":"a","content":"canary"}}]}`, `{"Choices":[]}`, `{}{}`} {
		_, err := d.Events().Event(wire.Frame{Data: []byte(data)})
		if !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// FuzzEvent: nothing panics, and every choice of a delta is in range.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"text":"b"}]}`))
	f.Add([]byte(`{"x":{},"choices":[[],{"index":7,"delta":{"tool_calls":[{}]},"finish_reason":5}],"error":[]}`))
	f.Add([]byte(`[DONE]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, api := range []string{"openai", "openai_completions"} {
			e, err := dialect(t, api).Events().Event(wire.Frame{Data: data})
			if err != nil && !errors.Is(err, wire.ErrInvalid) {
				t.Fatal(err)
			}
			for _, d := range e.Deltas {
				if d.Choice < 0 || d.Choice >= wire.MaxChoices {
					t.Fatalf("choice %d", d.Choice)
				}
			}
		}
	})
}

func TestAsk(t *testing.T) {
	d := dialect(t, "openai")
	asker, ok := d.(wire.Asker)
	if !ok {
		t.Fatal("the dialect cannot ask")
	}
	for name, test := range map[string]struct {
		ask  wire.Ask
		want string
	}{
		"prompt": {wire.Ask{Prompt: "Hi \"you\"\n<b>"}, `{"messages":[{"role":"user","content":"Hi \"you\"\n<b>"}]}`},
		"all": {
			wire.Ask{Model: "m", System: "s", History: []wire.Message{{Role: wire.User, Text: "a"}, {Role: wire.Assistant, Text: "b"}}, Prompt: "c", Stream: true},
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}],"stream":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := asker.Ask(test.ask)
			if got := nameOf(wire.Match(&url.URL{Path: call.Path})); got != d.Name() {
				t.Errorf("path %q is %q", call.Path, got)
			}
			if !sameJSON(t, call.Body, test.want) {
				t.Errorf("got %s, want %s", call.Body, test.want)
			}
			r, err := d.Request(call.Body)
			if err != nil || r.Prompt() != test.ask.Prompt || r.Model != test.ask.Model || r.Stream != test.ask.Stream {
				t.Errorf("read back as %+v, %v", r, err)
			}
		})
	}
}

func sameJSON(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// BenchmarkEvent reads frames that differ in their text alone, and some that differ in
// other ways, so that each is parsed.
func BenchmarkEvent(b *testing.B) {
	const frame = `{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" %s"},"finish_reason":null}]}`
	d := dialect(b, "openai")
	for name, frames := range map[string][]wire.Frame{
		"text":   {{Data: fmt.Appendf(nil, frame, 1, "Paris")}, {Data: fmt.Appendf(nil, frame, 1, "in spring")}},
		"parsed": {{Data: fmt.Appendf(nil, frame, 1, "Paris")}, {Data: fmt.Appendf(nil, frame, 2, "in spring")}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			events, stream := d.Events(), d.Stream()
			for i := 0; b.Loop(); i++ {
				f := frames[i%2]
				stream.Sent(f)
				if e, err := events.Event(f); err != nil || len(e.Deltas) != 1 {
					b.Fatal(e, err)
				}
			}
		})
	}
}

// Older Go SDKs take every blank line for the end of an event, and fail on one without data.
func TestOpenAINotesAreNoEvents(t *testing.T) {
	for _, name := range []string{"openai_chat", "openai_completions", "openai_responses"} {
		d := dialect(t, name)
		w, event := d.Stream(), []byte(`{"a":1}`)
		frames := split(t, d, wire.AppendEvent(append(w.KeepAlive(), w.Note("x: y")...), event))
		if len(frames) != 1 || !bytes.Equal(frames[0].Data, event) || !bytes.HasPrefix(frames[0].Raw, []byte(": keep-alive\n: x: y\n")) {
			t.Errorf("%s: %+v", name, frames)
		}
	}
}
