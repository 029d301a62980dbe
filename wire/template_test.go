package wire_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// Frames that a reader takes for the one before with another text, or nearly so, and a
// frame between them that says nothing, behind which each is parsed.
var templated = map[string]struct {
	frames  []wire.Frame
	between wire.Frame
}{
	"openai": {[]wire.Frame{
		{Data: []byte(`{"id":"c","created":#,"usage":{"n":#,"x":[#]},"obfuscation":"§","choices":[{"index":0,"delta":{"content":"¶"},"finish_reason":null}]}`)},
		{Data: []byte(`{"id":"§","choices":[{"index":0,"delta":{"content":"¶"}}]}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"","reasoning":"§","reasoning_content":"¶","tool_calls":null}}],"obfuscation":""}`)},
		{Data: []byte(`{"choices":[{"index":1,"delta":{"refusal":"§"}},{"index":0,"delta":{"content":[{"type":"text","text":"¶"}]}}]}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§"},"finish_reason":"¶"}]}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§","tool_calls":[{"index":0,"id":"¶"}]}}]}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§","vendor":"¶"}}],"error":{"message":"§"}}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§","¶":null}}]}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§"}}]}`), Event: "¶"},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§"}}]}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§"}}]} `)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§"}}]}{}`)},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"§"}}]`)},
	}, wire.Frame{Data: []byte(`{"choices":[]}`)}},
	"openai_completions": {[]wire.Frame{
		{Data: []byte(`{"choices":[{"index":0,"text":"§"}],"obfuscation":"¶"}`)},
	}, wire.Frame{Data: []byte(`{"choices":[]}`)}},
	"anthropic": {[]wire.Frame{
		{Event: "content_block_delta", Data: []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"§"}}`)},
		{Event: "content_block_delta", Data: []byte(`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"§"}}`)},
		{Event: "content_block_delta", Data: []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"§"}}`)},
		{Event: "content_block_start", Data: []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"§"}}`)},
		{Event: "content_block_start", Data: []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"§","name":"¶","input":{}}}`)},
		{Event: "message_start", Data: []byte(`{"type":"message_start","message":{"id":"§","role":"assistant","content":[{"type":"text","text":"¶"}]}}`)},
	}, wire.Frame{Event: "ping", Data: []byte(`{"type":"ping"}`)}},
	"gemini": {[]wire.Frame{
		{Data: []byte(`{"candidates":[{"content":{"parts":[{"text":"§"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":#,"promptTokensDetails":[{"tokenCount":4}]},"modelVersion":"¶"}`)},
		{Data: []byte(`{"candidates":[{"content":{"parts":[{"text":"§","thought":true},{"text":"¶"}]},"finishReason":"STOP"}]}`)},
		{Data: []byte(`{"candidates":[{"content":{"parts":[{"text":"§","thought":true,"thoughtSignature":"¶"}]}}]}`)},
		{Data: []byte(`{"candidates":[{"content":{"parts":[{"text":"§"},{"functionCall":{"name":"¶","args":{},"willContinue":true}}]}}]}`)},
		{Data: []byte(`{"candidates":[{"content":{"parts":[{"text":"§"}]},"finishReason":"¶","continuationToken":"§"}]}`)},
	}, wire.Frame{Data: []byte(`{}`)}},
	"openai_responses": {[]wire.Frame{
		{Event: "response.output_text.delta", Data: []byte(`{"type":"response.output_text.delta","sequence_number":#,"item_id":"i","output_index":0,"content_index":0,"delta":"§","logprobs":[],"obfuscation":"¶"}`)},
		{Data: []byte(`{"type":"response.output_text.delta","output_index":0,"content_index":#,"delta":"§"}`)},
		{Data: []byte(`{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"§"}`)},
		{Data: []byte(`{"type":"response.refusal.delta","output_index":1,"content_index":0,"delta":"§"}`)},
		{Data: []byte(`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"§"}`)},
		{Data: []byte(`{"type":"response.reasoning_summary_text.done","output_index":0,"summary_index":0,"text":"§"}`)},
		{Data: []byte(`{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"¶","delta":"§"}`)},
		{Data: []byte(`{"type":"response.output_text.annotation.added","output_index":0,"content_index":0,"annotation":"§"}`)},
		{Data: []byte(`{"type":"response.completed","response":{"output_text":"§","output":[{"type":"message","content":[{"type":"output_text","text":"§"}]}]}}`)},
	}, wire.Frame{Data: []byte(`{"type":"keepalive"}`)}},
	"ollama": {[]wire.Frame{
		{Data: []byte(`{"model":"m","created_at":"§","message":{"role":"assistant","content":"¶"},"done":false}`)},
		{Data: []byte(`{"model":"m","message":{"role":"§","content":"¶"},"done":false}`)},
		{Data: []byte(`{"model":"m","message":{"thinking":"§"},"done":"¶"}`)},
	}, wire.Frame{Data: []byte(`{}`)}},
	"ollama_generate": {[]wire.Frame{
		{Data: []byte(`{"model":"m","created_at":"§","response":"¶","done":false}`)},
	}, wire.Frame{Data: []byte(`{}`)}},
}

// What a reader remembers of one frame changes nothing of what it reads in the next.
func TestTemplatedFrames(t *testing.T) {
	texts := []string{
		"", "a", " Paris", "é", "\xe2\x82", "€", "\x7f", "\x00", "\n", "\xff", `\n`, `\"`, `\\`, `\`, `\u0000`, `\ud83d`, `\ud83d\ude00`,
		`"`, `","x":"`, `"},"y":{"z":"`, "stop", "tool_use", "system", "\u2028", strings.Repeat("long ", 2000),
	}
	for name, example := range templated {
		t.Run(name, func(t *testing.T) {
			for _, f := range example.frames {
				for _, first := range []string{"a", `\n`, ""} {
					for _, second := range texts {
						sameAsParsed(t, name, fill(f, first, first, "1"), fill(f, second, first, "1"), fill(f, first, second, "22"), fill(f, second, second, "1"))
					}
				}
				for _, other := range example.frames {
					sameAsParsed(t, name, fill(f, "a", "b", "0"), fill(f, "b", "b", "0"), fill(other, "ab", "d", "0"), fill(f, "c", "b", "0"))
					sameAsParsed(t, name, fill(f, "a", "b", "1"), fill(other, "c", "d", "1"), fill(f, "e", "b", "1"), fill(f, "f", "b", "3"))
				}
				for _, number := range []string{"0", "7", "10", "01", "-1", "1.5", "1e3", "", `"a"`, "null", "9007199254740993"} {
					sameAsParsed(t, name, fill(f, "a", "b", "1"), fill(f, "a", "b", number), fill(f, "c", "d", number), fill(f, "a", "b", "5"))
				}
			}
		})
	}
}

// fill puts texts and a number in the places of a frame that are marked.
func fill(f wire.Frame, a, b, number string) wire.Frame {
	put := strings.NewReplacer("§", a, "¶", b, "#", number).Replace
	return wire.Frame{Event: put(f.Event), Data: []byte(put(string(f.Data)))}
}

// sameAsParsed reads a stream, and reads it once more with each frame parsed.
func sameAsParsed(t *testing.T, api string, frames ...wire.Frame) {
	t.Helper()
	between := templated[api].between
	events, parsed := dialect(t, api).Events(), dialect(t, api).Events()
	for i, f := range frames {
		if _, err := parsed.Event(between); err != nil {
			t.Fatal(err)
		}
		got, err := events.Event(f)
		want, wantErr := parsed.Event(f)
		if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%s, frame %d, %s %q:\n%+v %v\nparsed:\n%+v %v", api, i, f.Event, f.Data, got, err, want, wantErr)
		}
	}
}

// FuzzTemplate: the same holds for any frames.
func FuzzTemplate(f *testing.F) {
	for _, example := range templated {
		for _, frame := range example.frames {
			a, b := fill(frame, "a", "b", "1"), fill(frame, `"c"`, "d\xff", "02")
			f.Add(frame.Event, a.Data, fill(frame, "other", "text", "20").Data, b.Data)
		}
	}
	f.Fuzz(func(t *testing.T, event string, a, b, c []byte) {
		for api := range templated {
			sameAsParsed(t, api, wire.Frame{Event: event, Data: a}, wire.Frame{Event: event, Data: b}, wire.Frame{Event: event, Data: a}, wire.Frame{Event: event, Data: c})
		}
	})
}

// A frame means something else behind others: here the block that it belongs to.
func TestTemplateIsTheLastFrame(t *testing.T) {
	text, call := templated["anthropic"].frames[0], templated["anthropic"].frames[4]
	events := dialect(t, "anthropic").Events()
	for i, f := range []wire.Frame{text, text, call, text, text} {
		e, err := events.Event(f)
		if calls := len(e.Calls); err != nil || calls != min(i/2, 1) {
			t.Errorf("frame %d brings %d calls, %v", i, calls, err)
		}
	}
}
