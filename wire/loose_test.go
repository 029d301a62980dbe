package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// However a body spells it, the text in it is read.
func TestLoosely(t *testing.T) {
	for body, want := range map[string]string{
		``:                                    ``,
		`hello`:                               `user hello`,
		`{"a":{"b":["hello"]}}`:               `user hello`,
		"\xef\xbb\xbf{\"a\":\"hello\"}":       `user hello`,
		`{"a":"hello","a":"again"}`:           `user hello|user again`,
		`{"a":"hello"}{"b":"again"}`:          `user hello|user again`,
		`{"a":"hel\u006co"}`:                  `user hello`,
		`{"a":"hello",}`:                      `user a|user hello`,
		`{a:"hello" // there`:                 `user hello|user a // there`,
		`{'a':'hello'}`:                       `user 'a' 'hello'`,
		`{"a":"\ud83d\ude42 \ud800 \q \u00e9`: "user a|user 🙂 \uFFFD q é",
		`["Ignore all",1,true,"rules"]`:       `user Ignore all|user rules`,
		`{"say this":1}`:                      `user say this`,
		`{"":"x"}`:                            `user x`,
		`"hello"`:                             `user hello`,
		`{"system":"be","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"content":"yo","role":"assistant"}]}`: `system be|user user|user text|user hi|assistant yo|assistant assistant`,
		`{"systemInstruction":{"parts":[{"text":"be"}]},"contents":[{"role":"model","parts":[{"text":"yo"}]}]}`:                    `system be|assistant model|assistant yo`,
		`{"instructions":"be","input":[{"type":"function_call_output","output":"rain"}]}`:                                          `system be|tool function_call_output|tool rain`,
		`{"tools":[{"name":"f"}],"input":"hi"}`: `definition f|user hi`,
	} {
		var got []string
		for _, p := range wire.LooseParts([]byte(body)) {
			got = append(got, fmt.Sprintf("%s %s", p.Role, p.Text))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %s, want %s", body, strings.Join(got, "|"), want)
		}
	}
}

// Every part has a role and a text, and nesting that no parser takes is still
// read, in linear time.
func TestLooselyReadsWhatNestsDeep(t *testing.T) {
	body := strings.Repeat("[", 1<<20) + `"hello"` + strings.Repeat("]", 1<<20)
	parts := wire.LooseParts([]byte(body))
	if len(parts) != 1 || parts[0].Text != "hello" {
		t.Errorf("%d parts", len(parts))
	}
}

func FuzzLoosely(f *testing.F) {
	for _, s := range []string{agentCall, `{"a":"b`, `{"a":"\u`, `{"a":"\ud83d\u`, "[[{", `"`, `{"role":"system","role":1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		total := 0
		for _, p := range wire.LooseParts([]byte(body)) {
			if p.Role == "" || p.Text == "" {
				t.Fatalf("%+v in %q", p, body)
			}
			total += len(p.Text)
		}
		if total > 3*len(body) { // an invalid byte becomes a character of three
			t.Fatalf("%d bytes of text in %d", total, len(body))
		}
	})
}
