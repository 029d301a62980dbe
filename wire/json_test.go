package wire_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

func TestCheckJSON(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, good := range []string{`{}`, ` [1, "a", null] `, `"text"`, `0`, `{"a":{"b":[]}}`, `"\ud83d\ude00"`, nested(wire.MaxDepth), `"` + nested(2*wire.MaxDepth) + `"`} {
		if err := wire.CheckJSON([]byte(good)); err != nil {
			t.Errorf("%.40s: %v", good, err)
		}
	}
	for name, bad := range map[string]string{
		"nothing":            "",
		"white space":        " \n",
		"cut":                `{"canary":`,
		"two values":         `{}{}`,
		"trailing text":      `{} canary`,
		"duplicate":          `{"canary":1,"canary":2}`,
		"duplicate, escaped": `{"canary":1,"c\u0061nary":2}`,
		"duplicate, nested":  `{"a":[{"canary":1,"canary":2}]}`,
		"lone surrogate":     `"canary\ud800"`,
		"not UTF-8":          "\"canary\xff\"",
		"byte order mark":    "\uFEFF{}",
		"comment":            `{} // canary`,
		"single quotes":      `{'canary':1}`,
		"NUL":                "\"canary\x00\"",
		"too deep":           nested(wire.MaxDepth + 1),
	} {
		err := wire.CheckJSON([]byte(bad))
		if !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error quotes the body: %v", name, err)
		}
	}
}

func TestEndsEarly(t *testing.T) {
	for body, want := range map[string]bool{
		`{"a":`: true, `[{"a":"b`: true, ` {"a":1`: true, `{`: true, "\n[1,": true,
		``: false, ` `: false, `{}`: false, `{"a":1}x`: false, `{]`: false, `"a`: false, `tru`: false, `{"a":1,"a":`: false, `text {`: false,
	} {
		if got := wire.EndsEarly([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}

// Object.assign with a member named __proto__ gives the object its members, and so some clients
// in JavaScript put answers together. Nobody may read such an answer as if it were not there.
func TestAnswersThatSetAPrototype(t *testing.T) {
	for name, whole := range map[string]string{
		"openai_chat":        `{"choices":[{"index":0,"message":{"role":"assistant",PROTO"content":"x"}}]}`,
		"openai_completions": `{"choices":[{"index":0,PROTO"text":"x"}]}`,
		"openai_responses":   `{"object":"response","output":[{"type":"message",PROTO"role":"assistant","content":[]}]}`,
		"anthropic_messages": `{"type":"message","role":"assistant","content":[{"type":"text",PROTO"text":"x"}]}`,
		"gemini":             `{PROTO"candidates":[]}`,
		"ollama_chat":        `{"message":{"role":"assistant",PROTO"content":"x"},"done":true}`,
		"ollama_generate":    `{"response":"x",PROTO"done":true}`,
		"mcp":                `{"jsonrpc":"2.0","id":1,"result":{PROTO"content":[]}}`,
	} {
		d, ok := wire.Named(name)
		if !ok {
			t.Fatal(name)
		}
		for member, sets := range map[string]bool{
			``:                                 false,
			`"x":{"y":"__proto__"},`:           false,
			`"x":"\"__proto__\": \u00e9",`:     false,
			`"__proto__":{"content":"y"},`:     true,
			`"x":{"__proto__":null},`:          true,
			`"\u005f_proto__":{"x":"y"},`:      true,
			`"__p\u0072oto__" :{"x":"y"},`:     true,
			`"x":[0,{"y":[{"__proto__":1}]}],`: true,
		} {
			body := []byte(strings.Replace(whole, "PROTO", member, 1))
			_, err := d.Response(body)
			if errors.Is(err, wire.ErrInvalid) != sets {
				t.Errorf("%s, %s: %v", name, body, err)
			}
			event, err := d.Events().Event(wire.Frame{Raw: body, Data: body})
			if unread := err != nil || name == "mcp" && slices.Contains(event.Unknown, "frame"); unread != sets { // MCP's is read loosely
				t.Errorf("%s, frame %s: %v, unknown %v", name, body, err, event.Unknown)
			}
		}
	}
}
