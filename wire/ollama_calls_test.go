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

func TestOllamaCalls(t *testing.T) {
	for calls, want := range map[string][]string{
		`[{"id":"a","function":{"index":3,"name":"f","arguments":{"x": 1}}},{"function":{"name":"g"}}]`: {`0 a f({"x": 1})`, `0  g()`},
		`[{"function":{"name":"f","arguments":"{\"x\":1}"}}]`:                                           {`0  f({"x":1})`},
		`[{}]`:    {`0  ()`},
		`[]`:      nil,
		`null`:    nil,
		`"calls"`: nil,
	} {
		for api, body := range map[string]string{
			"ollama_chat":     `{"message":{"content":"","tool_calls":` + calls + `},"done":true}`,
			"ollama_generate": `{"response":"","tool_calls":` + calls + `,"done":true}`,
		} {
			whole, err := dialect(t, api).Response([]byte(body))
			if err != nil || !slices.Equal(told(whole.Calls), want) {
				t.Errorf("%s: got %q, %v", body, told(whole.Calls), err)
			}
			streamed, err := gather(t, api, []byte(body+"\n"))
			if err != nil || !slices.Equal(told(streamed), want) {
				t.Errorf("%s: got %q, %v", body, told(streamed), err)
			}
		}
	}
	for _, odd := range []string{`{"name":["f"],"arguments":{}}`, `{"name":"f","arguments":["{}"]}`, `{"name":"f","arguments":1}`} {
		whole, err := dialect(t, "ollama").Response([]byte(`{"message":{"tool_calls":[{"function":` + odd + `}]}}`))
		if err != nil || len(whole.Calls) != 1 || !whole.Calls[0].Unclear {
			t.Errorf("%s: %+v, %v", odd, whole.Calls, err)
		}
	}
}

func TestOllamaWithoutCalls(t *testing.T) {
	const f, g = `{"function":{"name":"f","arguments":{"x":1}}}`, `{"id":"b","function":{"index":1,"name":"g","arguments":{}}}`
	for _, test := range []struct{ api, body, want string }{
		{
			"ollama_chat", `{"model":"m", "message":{"role":"assistant","content":"","tool_calls":[` + f + `]}, "done":true,"done_reason":"stop","logprobs":[{"token":"f"}]}`,
			`{"model":"m", "message":{"role":"assistant","content":"No F."}, "done":true,"done_reason":"stop","logprobs":null}`,
		},
		{
			"ollama_chat", `{"message":{"content":"Hm.","thinking":"f?","tool_calls":[` + f + `, ` + g + `]},"done":true}`,
			`{"message":{"content":"Hm.\n\nNo F.","thinking":"f?","tool_calls":[` + g + `]},"done":true}`,
		},
		{"ollama_chat", `{"message":{"tool_calls":[` + f + `]}}`, `{"message":{"content":"No F."}}`},
		{"ollama_generate", `{"tool_calls":[` + f + `],"response":"Hm.","done":true}`, `{"response":"Hm.\n\nNo F.","done":true}`},
		{"ollama_chat", `{"message":{"content":{},"tool_calls":[` + f + `]}}`, ``},
	} {
		whole, err := dialect(t, test.api).Response([]byte(test.body))
		if err != nil {
			t.Fatal(err)
		}
		out, err := editWhole(t, test.api, []byte(test.body), keysOf(whole.Calls, "f"))
		if (test.want == "") != errors.Is(err, wire.ErrCalls) || string(out) != test.want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, out, test.want)
		}
		if out, err := editWhole(t, test.api, []byte(test.body), nil); err != nil || string(out) != test.body {
			t.Errorf("nothing blocked: %s, %v", out, err)
		}
		for _, body := range []string{test.body, `{"message":`} {
			if out, err := editWhole(t, test.api, []byte(body), []wire.BlockedCall{{Key: "5", Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
				t.Errorf("a call that is not there: %s, %v", out, err)
			}
		}
	}
}

func TestOllamaStreamWithoutCalls(t *testing.T) {
	line := func(message, rest string) string {
		return `{"model":"m","created_at":"t","message":{"role":"assistant",` + message + `},"done":` + rest + "}\n"
	}
	const f, g = `{"function":{"name":"f","arguments":{"x":1}}}`, `{"function":{"name":"g","arguments":{}}}`
	end := line(`"content":""`, `true,"done_reason":"stop","eval_count":2`)
	for name, test := range map[string]struct{ stream, want string }{
		"all": {
			line(`"content":"","thinking":"hm"`, "false") + line(`"content":"","tool_calls":[`+f+`]`, "false") + end,
			line(`"content":"","thinking":"hm"`, "false") + line(`"content":""`, "false") + line(`"content":"No F."`, "false") + end,
		},
		"text before, behind a call that stays": {
			line(`"content":"Hm."`, "false") + line(`"content":"","tool_calls":[`+g+`,`+f+`]`, "false") + line(`"content":"","tool_calls":[`+f+`]`, "false") + end,
			line(`"content":"Hm."`, "false") + line(`"content":"","tool_calls":[`+g+`]`, "false") + line(`"content":""`, "false") + line(`"content":"\n\nNo F.\nNo F."`, "false") + end,
		},
		"text behind": {
			line(`"content":"","tool_calls":[`+f+`]`, "false") + line(`"content":"Hm."`, "false") + end,
			line(`"content":""`, "false") + line(`"content":"Hm."`, "false") + line(`"content":"\n\nNo F."`, "false") + end,
		},
		"on the last line": {line(`"content":"","tool_calls":[`+f+`]`, "true"), line(`"content":"No F."`, "false") + line(`"content":""`, "true")},
		"text on the last line": {
			line(`"content":"Hm.","tool_calls":[`+f+`]`, `true,"logprobs":[{"token":"f"}]`),
			line(`"content":"Hm.\n\nNo F."`, `true,"logprobs":null`),
		},
		"no end": {
			line(`"content":"","tool_calls":[`+f+`]`, "false") + "\r\n" + strings.TrimSuffix(line(`"content":"Hm."`, "false"), "\n"),
			line(`"content":""`, "false") + "\r\n" + line(`"content":"Hm."`, "false") + line(`"content":"\n\nNo F."`, "false"),
		},
		"an error": {
			line(`"content":"","tool_calls":[`+f+`]`, "false") + `{"error":"m"}` + "\n",
			line(`"content":""`, "false") + line(`"content":"No F."`, "false") + `{"error":"m"}` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls, err := gather(t, "ollama_chat", []byte(test.stream))
			if err != nil {
				t.Fatal(err)
			}
			out, err := editChatStream(t, "ollama_chat", []byte(test.stream), keysOf(calls, "f"))
			if err != nil || string(out) != test.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, out, test.want)
			}
			if out, err := editChatStream(t, "ollama_chat", []byte(test.stream), nil); err != nil || string(out) != test.stream {
				t.Errorf("nothing blocked: %v, got\n%s", err, out)
			}
			if out, err := editChatStream(t, "ollama_chat", []byte(test.stream), []wire.BlockedCall{{Key: "9", Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
				t.Errorf("a call that is not there: %s, %v", out, err)
			}
		})
	}
	out, err := editChatStream(t, "ollama_chat", []byte(line(`"content":"","tool_calls":[`+f+`]`, "false")+end), []wire.BlockedCall{{Key: "0", Note: "No."}, {Key: "x", Note: "No."}})
	if !errors.Is(err, wire.ErrCalls) {
		t.Errorf("%s, %v", out, err)
	}
	held := []wire.Frame{{Raw: []byte("{\n"), Data: []byte("{")}}
	if out, err := dialect(t, "ollama").Stream().(wire.StreamCallEditor).WithoutCalls(held, []wire.BlockedCall{{Key: "0", Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
		t.Errorf("%s, %v", out, err)
	}
}

// Whatever is blocked, exactly the others are left, the text goes on with the notes, and
// a stream and its whole twin say the same.
func TestOllamaWithoutAnyCalls(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		api := rapid.SampledFrom([]string{"ollama_chat", "ollama_generate"}).Draw(r, "api")
		answer := func(text string, calls []string, rest string) string {
			said, _ := json.Marshal(text)
			list := ""
			if len(calls) > 0 {
				list = `,"tool_calls":[` + strings.Join(calls, ", ") + `]`
			}
			if api == "ollama_generate" {
				return `{"model":"m","created_at":"t","response":` + string(said) + list + `,"done":` + rest + `}`
			}
			return `{"model":"m","created_at":"t","message":{"role":"assistant","content":` + string(said) + list + `},"done":` + rest + `}`
		}
		var stream []byte
		text, all := "", []string{}
		lines := rapid.IntRange(1, 5).Draw(r, "lines")
		for n := range lines {
			var calls []string
			for i := range rapid.IntRange(0, 3).Draw(r, "calls") {
				calls = append(calls, fmt.Sprintf(`{"id":"id_%d_%d_","function":{"name":"tool_%d_%d_","arguments":{"x":"mark_%d_%d_"}}}`, n, i, n, i, n, i))
			}
			said := rapid.SampledFrom([]string{"", "", "Hm. ", "\"é\"\n"}).Draw(r, "text")
			rest := "false"
			if n == lines-1 {
				rest = `true,"done_reason":"stop"`
			}
			text, all = text+said, append(all, calls...)
			stream = append(stream, answer(said, calls, rest)+"\n"...)
		}
		body := []byte(answer(text, all, `true,"done_reason":"stop"`))
		calls, err := gather(t, api, stream)
		whole, wholeErr := dialect(t, api).Response(body)
		if err != nil || wholeErr != nil || !slices.Equal(told(calls), told(whole.Calls)) {
			r.Fatalf("read %q, %v and %q, %v", told(calls), err, told(whole.Calls), wholeErr)
		}
		var blocked []wire.BlockedCall
		var left, notes []string
		for i, c := range calls {
			if !rapid.Bool().Draw(r, "block") {
				left = append(left, told(calls[i:i+1])...)
				continue
			}
			notes = append(notes, fmt.Sprintf("Blocked \"%d\".", i))
			blocked = append(blocked, wire.BlockedCall{Key: c.Key, Note: notes[len(notes)-1]})
		}
		out, err := editChatStream(t, api, stream, blocked)
		if err != nil {
			r.Fatal(err)
		}
		edited, err := editWhole(t, api, body, blocked)
		if err != nil {
			r.Fatal(err)
		}
		if len(blocked) == 0 && (!bytes.Equal(out, stream) || !bytes.Equal(edited, body)) {
			r.Fatalf("nothing is blocked and bytes changed:\n%s\n%s", out, edited)
		}
		want := text + lead(text, strings.Join(notes, "")) + strings.Join(notes, "\n")
		said, _ := ollamaStreamText(t, api, out)
		after, err := gather(t, api, out)
		twin, wholeErr := dialect(t, api).Response(edited)
		if err != nil || wholeErr != nil || !slices.Equal(told(after), left) || !slices.Equal(told(twin.Calls), left) || said != want || twin.Text() != want {
			r.Fatalf("left %q saying %q and %q saying %q, want %q saying %q", told(after), said, told(twin.Calls), twin.Text(), left, want)
		}
		for i, c := range calls {
			for _, b := range [][]byte{out, edited} {
				gone := !slices.Contains(left, told(calls[i : i+1])[0])
				if gone && (bytes.Contains(b, []byte(c.Name)) || bytes.Contains(b, []byte(strings.Replace(c.Name, "tool", "mark", 1)))) {
					r.Fatalf("%s is still in\n%s", c.Name, b)
				}
			}
		}
	})
}

// FuzzOllamaWithoutCalls: nothing panics, and what comes out is read again without the
// blocked calls, or the kind of the error is ErrCalls.
func FuzzOllamaWithoutCalls(f *testing.F) {
	f.Add([]byte(`{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"id":"b"}]},"done":true}`), uint8(1))
	f.Add([]byte(`{"tool_calls":[{"function":{"name":"f"}}],"done":false}`+"\n"+`{"tool_calls":[{}],"response":"x","done":true}`), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		fuzzWithoutCalls(t, "ollama_chat", data, which)
		fuzzWithoutCalls(t, "ollama_generate", data, which)
	})
}
