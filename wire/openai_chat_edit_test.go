package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// editChatStream lets the frames before the first call go and takes calls out of the others.
func editChatStream(t testing.TB, api string, stream []byte, blocked []wire.BlockedCall) ([]byte, error) {
	t.Helper()
	d := dialect(t, api)
	events, writer := d.Events(), d.Stream()
	var sent []byte
	var held []wire.Frame
	for _, f := range split(t, d, stream) {
		e, err := events.Event(f)
		if err != nil {
			t.Fatalf("%s: %v", f.Data, err)
		}
		if len(held) > 0 || len(e.Calls) > 0 {
			held = append(held, f)
			continue
		}
		writer.Sent(f)
		sent = append(sent, f.Raw...)
	}
	out, err := writer.(wire.StreamCallEditor).WithoutCalls(held, blocked)
	return append(sent, out...), err
}

func editWhole(t testing.TB, api string, body []byte, blocked []wire.BlockedCall) ([]byte, error) {
	t.Helper()
	return dialect(t, api).(wire.CallEditor).WithoutCalls(body, blocked)
}

// keysOf are the keys of the calls with these names.
func keysOf(calls []wire.ToolCall, names ...string) (blocked []wire.BlockedCall) {
	for _, c := range calls {
		if slices.Contains(names, c.Name) {
			blocked = append(blocked, wire.BlockedCall{Key: c.Key, Note: "No " + strings.ToUpper(c.Name) + "."})
		}
	}
	return blocked
}

func TestChatWithoutCalls(t *testing.T) {
	const call = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	other := strings.NewReplacer(`"a"`, `"b"`, `"f"`, `"g"`).Replace(call)
	answer := func(message, rest string) string {
		return `{ "id":"c", "choices":[ {"index":0,"message":` + message + rest + `} ], "usage":{"total_tokens":7} }`
	}
	for name, test := range map[string]struct {
		body, want string // want "": an error
		refusal    bool
	}{
		"all": {
			body: answer(`{"role":"assistant","content":null,"tool_calls":[`+call+`]}`, `,"finish_reason":"tool_calls","logprobs":{"content":[]}`),
			want: answer(`{"role":"assistant","content":"No F."}`, `,"finish_reason":"stop","logprobs":null`),
		},
		"the first": {
			body: answer(`{"role":"assistant","content":"","tool_calls":[ `+call+` , `+other+` ]}`, `,"finish_reason":"tool_calls"`),
			want: answer(`{"role":"assistant","content":"No F.","tool_calls":[ `+other+` ]}`, `,"finish_reason":"tool_calls"`),
		},
		"the last": {
			body: answer(`{"tool_calls":[`+other+` , `+call+` ],"content":"Hm."}`, `,"finish_reason":"tool_calls"`),
			want: answer(`{"tool_calls":[`+other+` ],"content":"Hm.\n\nNo F."}`, `,"finish_reason":"tool_calls"`),
		},
		"two around one": {
			body: answer(`{"tool_calls":[`+call+`,`+other+`,`+call+`],"content":"Hm."}`, ``),
			want: answer(`{"tool_calls":[`+other+`],"content":"Hm.\n\nNo F.\nNo F."}`, ``),
		},
		"nothing but calls": {
			body: answer(`{ "tool_calls":[`+call+`] }`, `,"finish_reason":"length"`),
			want: answer(`{"content":"No F." }`, `,"finish_reason":"length"`),
		},
		"content in parts": {
			body: answer(`{"content":[{"type":"text","text":"Hm."}],"tool_calls":[`+call+`]}`, ``),
			want: answer(`{"content":[{"type":"text","text":"Hm."},{"type":"text","text":"No F."}]}`, ``),
		},
		"legacy": {
			body: answer(`{"content":null,"function_call":{"name":"f","arguments":"{}"}}`, `,"finish_reason":"function_call"`),
			want: answer(`{"content":"No F."}`, `,"finish_reason":"stop"`),
		},
		"legacy beside tools": {
			body: answer(`{"content":null,"function_call":{"name":"f","arguments":"{}"},"tool_calls":[`+other+`]}`, `,"finish_reason":"tool_calls"`),
			want: answer(`{"content":"No F.","tool_calls":[`+other+`]}`, `,"finish_reason":"tool_calls"`),
		},
		"escaped names": {
			body: answer(`{"\u0063ontent":null,"tool\u005fcalls":[`+call+`]}`, `,"finish\u005freason":"tool\u005fcalls"`),
			want: answer(`{"\u0063ontent":"No F."}`, `,"finish\u005freason":"stop"`),
		},
		"in the refusal": {
			body: answer(`{"content":null,"tool_calls":[`+call+`]}`, ``), refusal: true,
			want: answer(`{"refusal":"No F.","content":null}`, ``),
		},
		"the other choice stays": {
			body: `{"choices":[{"message":{"content":"a","tool_calls":[` + other + `]},"finish_reason":"tool_calls","logprobs":{"content":[]}},{"message":{"content":"b","tool_calls":[` + call + `]},"finish_reason":"tool_calls"}]}`,
			want: `{"choices":[{"message":{"content":"a","tool_calls":[` + other + `]},"finish_reason":"tool_calls","logprobs":{"content":[]}},{"message":{"content":"b\n\nNo F."},"finish_reason":"stop"}]}`,
		},
		"Gemini's signature": {
			body: answer(`{"content":"","tool_calls":[`+strings.Replace(call, `{`, `{"extra_content":{"google":{"thought_signature":"x"}},`, 1)+`,`+other+`]}`, ``),
			want: answer(`{"content":"No F.","tool_calls":[`+strings.Replace(other, `{`, `{"extra_content":{"google":{"thought_signature":"x"}},`, 1)+`]}`, ``),
		},
		"content that is none": {body: answer(`{"content":5,"tool_calls":[`+call+`]}`, ``)},
		"read in two ways":     {body: answer(`{"content":5,"content":6,"tool_calls":[`+call+`]}`, ``)},
	} {
		t.Run(name, func(t *testing.T) {
			var blocked []wire.BlockedCall
			if r, err := dialect(t, "openai_chat").Response([]byte(test.body)); err == nil {
				blocked = keysOf(r.Calls, "f")
			}
			if test.refusal {
				blocked[0].Place = wire.OnlyRefusal
			}
			out, err := editWhole(t, "openai_chat", []byte(test.body), blocked)
			if (test.want == "") != errors.Is(err, wire.ErrCalls) || string(out) != test.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, out, test.want)
			}
		})
	}
	body := []byte(answer(`{"tool_calls":[`+call+`]}`, ``))
	if out, err := editWhole(t, "openai_chat", body, nil); err != nil || !bytes.Equal(out, body) {
		t.Errorf("nothing blocked: %s, %v", out, err)
	}
	if out, err := editWhole(t, "openai_chat", body, []wire.BlockedCall{{Key: "another", Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
		t.Errorf("a call that is not there: %s, %v", out, err)
	}
}

func TestChatStreamWithoutCalls(t *testing.T) {
	frame := func(delta, finish string) string {
		return "data: " + chatChunk(0, delta, finish) + "\n\n"
	}
	note := func(text string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` + text + `"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	}
	const usage, done = "data: {\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n", "data: [DONE]\n\n"
	role, hm := frame(`{"role":"assistant","content":""}`, "null"), frame(`{"content":"Hm."}`, "null")
	f, more := chatPieces(chatPiece{0, "a", "f", ""}), chatPieces(chatPiece{0, "", "", "{}"})
	g := func(i int) string {
		return frame(chatPieces(chatPiece{i, "b", "g", ""}), "null") + frame(chatPieces(chatPiece{i, "", "", "{}"}), "null")
	}
	for name, test := range map[string]struct{ stream, want string }{
		"all": {
			role + frame(f, "null") + frame(more, "null") + frame(`{}`, `"tool_calls"`) + usage + done,
			role + note("No F.") + frame(`{}`, `"stop"`) + usage + done,
		},
		"text before": {
			role + hm + frame(f, "null") + frame(more, "null") + frame(`{}`, `"tool_calls"`) + done,
			role + hm + note(`\n\nNo F.`) + frame(`{}`, `"stop"`) + done,
		},
		"text between and behind": {
			frame(f, "null") + hm + frame(more, "null") + hm + frame(`{}`, `"tool_calls"`) + done,
			hm + hm + note(`\n\nNo F.`) + frame(`{}`, `"stop"`) + done,
		},
		"the first": {
			role + frame(f, "null") + frame(more, "null") + g(1) + frame(`{}`, `"tool_calls"`) + done,
			role + g(0) + note("No F.") + frame(`{}`, `"tool_calls"`) + done,
		},
		"the last": {
			role + g(0) + frame(chatPieces(chatPiece{1, "a", "f", "{}"}), "null") + frame(`{}`, `"tool_calls"`) + done,
			role + g(0) + note("No F.") + frame(`{}`, `"tool_calls"`) + done,
		},
		"in one chunk with another": {
			role + frame(chatPieces(chatPiece{0, "a", "f", "{}"}, chatPiece{1, "b", "g", "{}"}), "null") + frame(`{}`, `"tool_calls"`),
			role + frame(chatPieces(chatPiece{0, "b", "g", "{}"}), "null") + note("No F.") + frame(`{}`, `"tool_calls"`),
		},
		"all in one chunk": {
			frame(`{"role":"assistant","content":null,`+chatPieces(chatPiece{0, "a", "f", "{}"})[1:], `"tool_calls"`) + done,
			frame(`{"role":"assistant","content":"No F."}`, `"stop"`) + done,
		},
		"in the last chunk": {
			role + frame(chatPieces(chatPiece{0, "a", "f", "{}"}), `"stop"`) + done,
			role + note("No F.") + frame(`{}`, `"stop"`) + done,
		},
		"text in the last chunk": {
			role + frame(chatPieces(chatPiece{0, "a", "f", "{}"}), `null`) + frame(`{"content":"Hm."}`, `"stop"`) + done,
			role + frame(`{"content":"Hm.\n\nNo F."}`, `"stop"`) + done,
		},
		"no finish reason": {
			role + frame(chatPieces(chatPiece{0, "a", "f", "{}"}), `null`) + done,
			role + note("No F.") + done,
		},
		"no end": {
			role + frame(chatPieces(chatPiece{0, "a", "f", "{}"}), `null`) + ": hi",
			role + ": hi\n\n" + note("No F."),
		},
		"an error": {
			role + frame(chatPieces(chatPiece{0, "a", "f", "{}"}), `null`) + "data: {\"error\":{\"message\":\"m\"}}\n\n",
			role + note("No F.") + "data: {\"error\":{\"message\":\"m\"}}\n\n",
		},
		"legacy": {
			role + frame(`{"function_call":{"name":"f","arguments":""}}`, "null") + frame(`{"function_call":{"arguments":"{}"}}`, "null") + frame(`{}`, `"function_call"`),
			role + note("No F.") + frame(`{}`, `"stop"`),
		},
		"legacy before others": {
			role + frame(`{"function_call":{"name":"g","arguments":"{}"}}`, "null") + frame(f, "null") + g(1) + frame(`{}`, `"tool_calls"`),
			role + frame(`{"function_call":{"name":"g","arguments":"{}"}}`, "null") + g(0) + note("No F.") + frame(`{}`, `"tool_calls"`),
		},
		"numbered 0": {
			role + frame(chatPieces(chatPiece{0, "a", "f", "{}"}, chatPiece{0, "b", "g", "{}"}), "null") + frame(chatPieces(chatPiece{0, "c", "g", "{}"}), "null"),
			role + frame(chatPieces(chatPiece{0, "b", "g", "{}"}), "null") + frame(chatPieces(chatPiece{1, "c", "g", "{}"}), "null") + note("No F."),
		},
		"without an index": {
			role + frame(chatPieces(chatPiece{nil, "a", "f", "{}"}, chatPiece{nil, "b", "g", "{}"}), "null"),
			role + frame(chatPieces(chatPiece{nil, "b", "g", "{}"}), "null") + note("No F."),
		},
		"a padded chunk with other lines": {
			role + "event: message\r\nid: 7\r\ndata: " + strings.Replace(chatChunk(0, `{"content":"Hm.",`+f[1:], "null"), `{"id"`, `{"obfuscation":"xyz","id"`, 1) + "\r\n\r\n",
			role + "event: message\r\nid: 7\r\ndata: " + chatChunk(0, `{"content":"Hm."}`, "null") + "\r\n\r\n" + note(`\n\nNo F.`),
		},
		"a chunk on several lines": {
			role + "data: " + strings.Replace(chatChunk(0, `{"content":"Hm.",`+f[1:], "null"), `,"choices"`, ",\ndata: \"choices\"", 1) + "\n\n",
			role + "data: " + strings.Replace(chatChunk(0, `{"content":"Hm."}`, "null"), `,"choices"`, `, "choices"`, 1) + "\n\n" + note(`\n\nNo F.`),
		},
		"usage in the call's chunk": {
			role + strings.Replace(frame(f, "null"), `{"id"`, `{"usage":{"total_tokens":1},"id"`, 1),
			role + strings.Replace(frame(`{}`, "null"), `{"id"`, `{"usage":{"total_tokens":1},"id"`, 1) + note("No F."),
		},
		"log probabilities": {
			role + frame(f, `null,"logprobs":{"content":[{"token":"f"}]}`) + frame(`{"content":"Hm."}`, `null,"logprobs":{"content":[{"token":"f"}]}`),
			role + frame(`{"content":"Hm."}`, `null,"logprobs":null`) + note(`\n\nNo F.`),
		},
		"Gemini's signature": {
			role + strings.Replace(frame(chatPieces(chatPiece{0, "a", "f", "{}"}), "null"), `"id":"a"`, `"extra_content":{"google":{"thought_signature":"x"}},"id":"a"`, 1) + g(1),
			role + strings.Replace(g(0), `"tool_calls":[{`, `"tool_calls":[{"extra_content":{"google":{"thought_signature":"x"}},`, 1) + note("No F."),
		},
		"Gemini's signature, and two that are blocked": {
			role + strings.Replace(frame(chatPieces(chatPiece{0, "a", "f", "{}"}), "null"), `"id":"a"`, `"extra_content":{"google":{"thought_signature":"x"}},"id":"a"`, 1) + frame(chatPieces(chatPiece{1, "c", "f", "{}"}), "null") + g(2),
			role + strings.Replace(g(0), `"tool_calls":[{`, `"tool_calls":[{"extra_content":{"google":{"thought_signature":"x"}},`, 1) + note(`No F.\nNo F.`),
		},
		"a text, and then nothing": {
			role + frame(`{"content":"Hm."}`, "null") + frame(`{}`, "null") + frame(f, "null") + frame(`{}`, `"tool_calls"`),
			role + frame(`{"content":"Hm."}`, "null") + frame(`{}`, "null") + note(`\n\nNo F.`) + frame(`{}`, `"stop"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls, err := gather(t, "openai_chat", []byte(test.stream))
			if err != nil {
				t.Fatal(err)
			}
			out, err := editChatStream(t, "openai_chat", []byte(test.stream), keysOf(calls, "f"))
			if err != nil || string(out) != test.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, out, test.want)
			}
			if out, err := editChatStream(t, "openai_chat", []byte(test.stream), nil); err != nil || string(out) != test.stream {
				t.Errorf("nothing blocked: %v, got\n%s", err, out)
			}
		})
	}
}

// Where structured output was asked for, clients parse the content.
func TestChatNotesInTheRefusal(t *testing.T) {
	stream := wire.AppendEvent(nil, []byte(chatChunk(0, `{"role":"assistant","content":"{}"}`, "null")))
	stream = wire.AppendEvent(stream, []byte(chatChunk(0, chatPieces(chatPiece{0, "a", "f", "{}"}), "null")))
	stream = wire.AppendEvent(stream, []byte(chatChunk(0, `{}`, `"tool_calls"`)))
	out, err := editChatStream(t, "openai_chat", stream, []wire.BlockedCall{{Key: "0/0/0", Note: "No.", Place: wire.OnlyRefusal}})
	if err != nil {
		t.Fatal(err)
	}
	said := make(map[wire.Kind]string)
	for _, f := range split(t, dialect(t, "openai_chat"), out) {
		for _, d := range event(t, "openai_chat", string(f.Data)).Deltas {
			said[d.Kind] += d.Text
		}
	}
	if said[wire.Text] != "{}" || said[wire.RefusalText] != "No." || len(said) != 2 {
		t.Errorf("%q in\n%s", said, out)
	}
}

// What cannot be edited is refused.
func TestChatStreamsThatCannotBeEdited(t *testing.T) {
	stream := dialect(t, "openai_chat").Stream().(wire.StreamCallEditor)
	frames := func(data ...string) (out []wire.Frame) {
		for _, d := range data {
			out = append(out, wire.Frame{Raw: wire.AppendEvent(nil, []byte(d)), Data: []byte(d)})
		}
		return out
	}
	call := chatChunk(0, chatPieces(chatPiece{0, "a", "f", "{}"}), "null")
	for name, held := range map[string][]wire.Frame{
		"not there":   frames(chatChunk(0, chatPieces(chatPiece{0, "a", "f", "{}"}), "null")),
		"not JSON":    frames(call, `{`),
		"two ways":    frames(call, `{"choices":[],"choices":[]}`),
		"two names":   frames(call, chatChunk(0, chatPieces(chatPiece{0, "a", "g", ""}), "null")),
		"two choices": frames(call, strings.Replace(call, `"index":0`, `"index":"0"`, 1)),
	} {
		key := "0/0/0"
		if name == "not there" {
			key = "1/0/0"
		}
		if out, err := stream.WithoutCalls(held, []wire.BlockedCall{{Key: key, Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

// A plannedAnswer is an answer of several choices, as a stream and as a whole.
type plannedAnswer struct {
	stream, whole []byte
	texts         []string
	finishes      []string
}

// planChat draws an answer.
func planChat(r *rapid.T) (p plannedAnswer) {
	var queues [][]string // the chunks of each choice
	var whole []string
	numbering := rapid.SampledFrom([]string{"dense", "dense", "dense", "zero", "none"}).Draw(r, "numbering")
	for n := range rapid.IntRange(1, 3).Draw(r, "choices") {
		text, calls, legacy := "", []string{}, ""
		queue := []string{chatChunk(n, `{"role":"assistant","content":null}`, "null")}
		say := func() {
			s := rapid.SampledFrom([]string{"Hm. ", "\"é\"\n", "<b>"}).Draw(r, "text")
			text += s
			delta, _ := json.Marshal(map[string]string{"content": s})
			logprobs := rapid.SampledFrom([]string{"null", `null,"logprobs":{"content":[{"token":"x"}]}`}).Draw(r, "logprobs")
			queue = append(queue, chatChunk(n, string(delta), logprobs))
		}
		var open [][]string // the pieces of calls that have begun
		for i := range rapid.IntRange(0, 4).Draw(r, "calls") {
			name, id := fmt.Sprintf("tool_%d_%d_", n, i), fmt.Sprintf("id_%d_%d", n, i)
			arguments := fmt.Sprintf(`{"x":"mark_%d_%d_%s"}`, n, i, rapid.SampledFrom([]string{"}", `\"`, ""}).Draw(r, "mark"))
			var index any = i
			if numbering == "zero" {
				index = 0
			}
			pieces := []string{chatPieces(chatPiece{index, id, name, arguments})}
			switch {
			case numbering == "none":
				pieces[0] = chatPieces(chatPiece{nil, id, name, arguments})
			case numbering == "dense" && rapid.Bool().Draw(r, "pieces"):
				pieces = []string{chatPieces(chatPiece{index, id, name, ""})}
				for _, cut := range cuts(r, arguments) {
					pieces = append(pieces, chatPieces(chatPiece{index, "", "", cut}))
				}
			}
			element, _ := json.Marshal(map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": arguments}})
			calls = append(calls, string(element))
			queue = append(queue, chatChunk(n, pieces[0], "null"))
			open = append(open, pieces[1:])
			if rapid.Bool().Draw(r, "say") {
				say()
			}
			for rapid.IntRange(0, 3).Draw(r, "go on") > 0 {
				queue = goOn(r, n, queue, open)
			}
		}
		for slices.ContainsFunc(open, func(p []string) bool { return len(p) > 0 }) {
			queue = goOn(r, n, queue, open)
		}
		if rapid.IntRange(0, 4).Draw(r, "legacy") == 0 {
			legacy = fmt.Sprintf(`{"name":"tool_%d_9_","arguments":"{\"x\":\"mark_%d_9_\"}"}`, n, n)
			queue = append(queue, chatChunk(n, `{"function_call":`+legacy+`}`, "null"))
		}
		if len(calls) == 0 || rapid.Bool().Draw(r, "text behind") {
			say()
		}
		finish := "stop"
		if len(calls) > 0 {
			finish = rapid.SampledFrom([]string{"tool_calls", "tool_calls", "stop", "length"}).Draw(r, "finish")
		}
		if last := len(queue) - 1; last > 0 && rapid.IntRange(0, 2).Draw(r, "finish with the last") == 0 {
			queue[last] = strings.Replace(queue[last], `"finish_reason":null`, `"finish_reason":"`+finish+`"`, 1)
		} else {
			queue = append(queue, chatChunk(n, `{}`, `"`+finish+`"`))
		}
		content, _ := json.Marshal(text)
		message := `{"role":"assistant","content":` + string(content)
		if len(calls) > 0 {
			message += `,"tool_calls":[` + strings.Join(calls, ", ") + `]`
		}
		if legacy != "" {
			message += `,"function_call":` + legacy
		}
		whole = append(whole, fmt.Sprintf(`{"index":%d,"message":%s},"finish_reason":"%s","logprobs":null}`, n, message, finish))
		queues, p.texts, p.finishes = append(queues, queue), append(p.texts, text), append(p.finishes, finish)
	}
	p.whole = []byte(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[` + strings.Join(whole, ",") + `]}`)
	eol := rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(r, "eol")
	for slices.ContainsFunc(queues, func(q []string) bool { return len(q) > 0 }) {
		i := rapid.IntRange(0, len(queues)-1).Draw(r, "choice")
		if len(queues[i]) == 0 {
			continue
		}
		p.stream = append(p.stream, "data: "+queues[i][0]+eol+eol...)
		queues[i] = queues[i][1:]
		if rapid.IntRange(0, 9).Draw(r, "comment") == 0 {
			p.stream = append(p.stream, ": keep-alive"+eol+eol...)
		}
	}
	p.stream = append(p.stream, `data: {"id":"c","choices":[],"usage":{"total_tokens":1}}`+eol+eol+"data: [DONE]"+eol+eol...)
	return p
}

// goOn sends the next piece of a call that has begun.
func goOn(r *rapid.T, choice int, queue []string, open [][]string) []string {
	i := rapid.IntRange(0, len(open)-1).Draw(r, "open")
	if len(open[i]) > 0 {
		queue = append(queue, chatChunk(choice, open[i][0], "null"))
		open[i] = open[i][1:]
	}
	return queue
}

// readChatStream reads a stream as the strictest client does: chunks of one id, a role and
// an end for each choice, calls numbered in the order of their beginning, nothing behind
// [DONE].
func readChatStream(t testing.TB, stream []byte, dense bool) (calls []wire.ToolCall, texts, finishes map[int]string) {
	t.Helper()
	texts, finishes = make(map[int]string), make(map[int]string)
	roles, numbers := make(map[int]int), make(map[int]int)
	done := false
	for _, f := range split(t, dialect(t, "openai_chat"), stream) {
		if f.Comment {
			continue
		}
		if done {
			t.Fatalf("%s comes behind the end", f.Raw)
		}
		if done = string(f.Data) == "[DONE]"; done {
			continue
		}
		var chunk struct {
			ID      string
			Choices []struct {
				Index int
				Delta *struct {
					Role, Content *string
					ToolCalls     []struct{ Index *int } `json:"tool_calls"`
				}
				FinishReason *string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal(f.Data, &chunk); err != nil || chunk.ID != "c" || chunk.Choices == nil {
			t.Fatalf("%s: %v", f.Raw, err)
		}
		for _, c := range chunk.Choices {
			if c.Delta == nil || finishes[c.Index] != "" {
				t.Fatalf("%s has no delta, or comes behind the end", f.Raw)
			}
			if c.Delta.Role != nil {
				roles[c.Index]++
			}
			if c.Delta.Content != nil {
				texts[c.Index] += *c.Delta.Content
			}
			if c.Delta.ToolCalls != nil && len(c.Delta.ToolCalls) == 0 {
				t.Fatalf("%s: an empty list", f.Raw)
			}
			for _, call := range c.Delta.ToolCalls {
				if dense && call.Index != nil && *call.Index >= numbers[c.Index] {
					if *call.Index > numbers[c.Index] {
						t.Fatalf("%s leaves out a number", f.Raw)
					}
					numbers[c.Index]++
				}
			}
			if c.FinishReason != nil {
				finishes[c.Index] = *c.FinishReason
			}
		}
	}
	for choice := range texts {
		if roles[choice] != 1 || finishes[choice] == "" {
			t.Fatalf("choice %d: %d roles, finish %q in\n%s", choice, roles[choice], finishes[choice], stream)
		}
	}
	calls, err := gather(t, "openai_chat", stream)
	if !done || err != nil {
		t.Fatalf("the stream does not end: %v", err)
	}
	return calls, texts, finishes
}

// Whatever is blocked, exactly the others are left, the text goes on with the notes, the
// reasons fit, and a stream and its whole twin say the same.
func TestChatWithoutAnyCalls(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := planChat(r)
		streamed, err := gather(t, "openai_chat", p.stream)
		whole, wholeErr := dialect(t, "openai_chat").Response(p.whole)
		if err != nil || wholeErr != nil || !slices.Equal(told(streamed), told(whole.Calls)) {
			r.Fatalf("read %q, %v and %q, %v of\n%s", told(streamed), err, told(whole.Calls), wholeErr, p.stream)
		}
		var inStream, inWhole []wire.BlockedCall
		var left []string
		notes, blocked, stays := make(map[int][]string), make(map[int]bool), make(map[int]int)
		for i, c := range streamed {
			if !rapid.Bool().Draw(r, "block") {
				left, stays[c.Choice] = append(left, told(streamed[i:i+1])...), stays[c.Choice]+1
				continue
			}
			note := fmt.Sprintf("Blocked \"%d\".", i)
			notes[c.Choice] = append(notes[c.Choice], note)
			blocked[c.Choice] = true
			inStream, inWhole = append(inStream, wire.BlockedCall{Key: c.Key, Note: note}), append(inWhole, wire.BlockedCall{Key: whole.Calls[i].Key, Note: note})
		}
		out, err := editChatStream(t, "openai_chat", p.stream, inStream)
		if err != nil {
			r.Fatal(err)
		}
		body, err := editWhole(t, "openai_chat", p.whole, inWhole)
		if err != nil {
			r.Fatal(err)
		}
		if len(inStream) == 0 && (!bytes.Equal(out, p.stream) || !bytes.Equal(body, p.whole)) {
			r.Fatalf("nothing is blocked and bytes changed:\n%s\n%s", out, body)
		}
		calls, texts, finishes := readChatStream(t, out, len(inStream) > 0)
		twin, err := dialect(t, "openai_chat").Response(body)
		if err != nil || !slices.Equal(told(calls), left) || !slices.Equal(told(twin.Calls), left) {
			r.Fatalf("left %q and %q, %v, want %q of\n%s\n%s", told(calls), told(twin.Calls), err, left, out, body)
		}
		var choices struct {
			Choices []struct {
				Message struct{ Content string }
				Finish  string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal(body, &choices); err != nil {
			r.Fatal(err)
		}
		for n, c := range choices.Choices {
			want := p.finishes[n]
			if blocked[n] && stays[n] == 0 && want == "tool_calls" {
				want = "stop"
			}
			added, ok := strings.CutPrefix(texts[n], p.texts[n])
			if note := strings.Join(notes[n], "\n"); !ok || strings.TrimPrefix(added, "\n\n") != note || strings.TrimSpace(c.Message.Content) != strings.TrimSpace(p.texts[n]+lead(p.texts[n], note)+note) {
				r.Fatalf("choice %d says %q and %q, want %q and %q", n, texts[n], c.Message.Content, p.texts[n], note)
			}
			if finishes[n] != want || c.Finish != want {
				r.Fatalf("choice %d ends with %s and %s, want %s", n, finishes[n], c.Finish, want)
			}
		}
		for i, c := range streamed {
			mark := strings.NewReplacer("tool_", "mark_").Replace(c.Name)
			gone := !slices.Contains(left, told(streamed[i : i+1])[0])
			for _, b := range [][]byte{out, body} {
				if gone && (bytes.Contains(b, []byte(c.Name)) || bytes.Contains(b, []byte(mark)) || c.ID != "" && bytes.Contains(b, []byte(c.ID))) {
					r.Fatalf("%s is still in\n%s", c.Name, b)
				}
			}
		}
	})
}

func lead(text, note string) string {
	if text == "" || note == "" {
		return ""
	}
	return "\n\n"
}

// FuzzChatWithoutCalls: nothing panics, and what comes out is read again without the
// blocked calls, or the kind of the error is ErrCalls.
func FuzzChatWithoutCalls(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"custom":{"name":"g"}}],"function_call":{}},"finish_reason":"tool_calls"}]}`), uint8(1))
	f.Add([]byte("data: "+chatChunk(0, chatPieces(chatPiece{0, "a", "f", "{"}, chatPiece{1, "b", "g", "{}"}), "null")+"\n\ndata: "+chatChunk(0, chatPieces(chatPiece{0, "", "", "}"}), `"tool_calls"`)+"\n\ndata: [DONE]\n\n"), uint8(2))
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":{}},"delta":{"tool_calls":[{}]}}]}`), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) { fuzzWithoutCalls(t, "openai_chat", data, which) })
}

// fuzzWithoutCalls takes the calls of an answer out whose bits are set, and reads it again.
func fuzzWithoutCalls(t *testing.T, api string, data []byte, which uint8) {
	d := dialect(t, api)
	check := func(calls []wire.ToolCall, edit func([]wire.BlockedCall) ([]byte, error), read func([]byte) ([]wire.ToolCall, error)) {
		var blocked []wire.BlockedCall
		var left []string
		for i, c := range calls {
			if which>>(i%8)&1 == 1 {
				blocked = append(blocked, wire.BlockedCall{Key: c.Key, Note: "No."})
			} else {
				left = append(left, told(calls[i:i+1])...)
			}
		}
		out, err := edit(blocked)
		if err != nil {
			if !errors.Is(err, wire.ErrCalls) {
				t.Fatal(err)
			}
			return
		}
		got, err := read(out)
		if err != nil || !slices.Equal(told(got), left) {
			t.Fatalf("left %q, %v, want %q in\n%s", told(got), err, left, out)
		}
	}
	if whole, err := d.Response(data); err == nil {
		check(whole.Calls,
			func(b []wire.BlockedCall) ([]byte, error) { return editWhole(t, api, data, b) },
			func(out []byte) ([]wire.ToolCall, error) { r, err := d.Response(out); return r.Calls, err })
	}
	read := func(stream []byte) (held []wire.Frame, calls []wire.ToolCall, err error) {
		events := d.Events()
		var g wire.CallGatherer
		for _, f := range split(t, d, stream) {
			e, err := events.Event(f)
			if err == nil {
				err = g.Add(e.Calls)
			}
			if err != nil {
				return nil, nil, err
			}
			if held = append(held, f); len(g.Calls()) == 0 {
				held = held[:0]
			}
		}
		return held, g.Calls(), nil
	}
	held, calls, err := read(data)
	if err != nil {
		return
	}
	check(calls,
		func(b []wire.BlockedCall) ([]byte, error) {
			return d.Stream().(wire.StreamCallEditor).WithoutCalls(held, b)
		},
		func(out []byte) ([]wire.ToolCall, error) { _, calls, err := read(out); return calls, err })
}
