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
		texts, _ := wire.LooseParts([]byte(body))
		for _, p := range texts {
			got = append(got, fmt.Sprintf("%s %s", p.Role, p.Text))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %s, want %s", body, strings.Join(got, "|"), want)
		}
	}
}

// What JSON only refers to, and tokens, are parts of their kinds.
func TestLooselyListsWhatIsNotThere(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":"Hello there","id":"x","url":"https://a.example"}`:                          ``,
		`{"content":[{"type":"image_url","image_url":{"url":"https://a.example/i.png","detail":"low"}}]}`: `image`,
		`{"content":[{"type":"input_image","image_url":"https://a.example/i.png"}]}`:                      `image`,
		`{"image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`:                                      ``,
		`{"content":[{"type":"image","source":{"type":"url","url":"https://a.example/i.png"}}]}`:          `file`,
		`{"content":[{"type":"document","source":{"type":"file","file_id":"f1"}}]}`:                       `file`,
		`{"parts":[{"fileData":{"mimeType":"image/png","fileUri":"gs://b/i.png"}}]}`:                      `file`,
		`{"input_file_id":"file-1","endpoint":"/v1/chat/completions"}`:                                    `file`,
		`{"file_ids":["a","b"],"attachments":[{"file_id":"c","tools":[]}]}`:                               `file|file|file`,
		`{"previous_response_id":"resp_1","conversation":{"id":"conv_1"}}`:                                `stored|stored`,
		`{"input":[{"type":"image","uri":"https://a.example/i.png"},{"type":"image","uri":"i"}]}`:         `file`,
		`{"images":["https://a.example/i.png","a cat"],"image":"a dog","document":"gs://b/d.pdf"}`:        `image|file`,
		`{"prompt":{"id":"pmpt_1","version":"2","variables":{"city":"Paris"}},"id":"x"}`:                  `stored`,
		`{"conversation":null,"previous_response_id":""}`:                                                 ``,
		`{"cachedContent":"cachedContents/1"}`:                                                            `stored`,
		`{"input":[1,2,3],"note":"Hello there"}`:                                                          `tokens`,
		`{"input":[[1,2],[3]],"dimensions":[1]}`:                                                          `tokens|tokens`,
		`{"input":[1,"two"],"prompt":[],"context":[{"a":[1]}]}`:                                           ``,
		`{"logit_bias":{"50256":-100},"embedding":[0.1,0.2],"source":"web"}`:                              ``,
		`[1,2]`: ``,
	} {
		var got []string
		_, silent := wire.LooseParts([]byte(body))
		for _, p := range silent {
			got = append(got, string(p.Kind))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %v, want %s", body, got, want)
		}
	}
}

// A body of single letters is read to its end, and makes no more parts than memory has room for.
func TestLooselyGathersManyTexts(t *testing.T) {
	const many = 300_000
	said := strings.Repeat(`"a",`, many) + `"the end"`
	ids := strings.Repeat(`{"file_id":"f"},`, many) + `{"image_url":"i"},{"file_id":"f"}`
	for body, size := range map[string]int{
		"[" + said + "]":             2 * many,
		`{"x":[` + said + `],"y":1}`: 2 * many,
		"[" + said + ",]":            2 * many, // no JSON
		"[" + ids + `,"the end"]`:    2 * many,
	} {
		texts, silent := wire.LooseParts([]byte(body))
		last := texts[len(texts)-1]
		read, listed := 0, make(map[wire.Kind]int)
		for _, p := range texts {
			read += len(p.Text)
		}
		for _, p := range silent {
			listed[p.Kind] += p.Bytes
		}
		if len(texts) > many || len(silent) > many || !strings.Contains(last.Text, "the end") || read < many || read > size {
			t.Errorf("%.20s: %d and %d parts, %d bytes read, ending in %.20q", body, len(texts), len(silent), read, last.Text)
		}
		if len(silent) > 0 && (listed[wire.File] != many+1 || listed[wire.Image] != 1) {
			t.Errorf("%.20s: listed %v", body, listed)
		}
	}
}

// Every part has a role and a text, and nesting that no parser takes is still
// read, in linear time.
func TestLooselyReadsWhatNestsDeep(t *testing.T) {
	body := strings.Repeat("[", 1<<20) + `"hello"` + strings.Repeat("]", 1<<20)
	parts, _ := wire.LooseParts([]byte(body))
	if len(parts) != 1 || parts[0].Text != "hello" {
		t.Errorf("%d parts", len(parts))
	}
}

func FuzzLoosely(f *testing.F) {
	for _, s := range []string{agentCall, `{"a":"b`, `{"a":"\u`, `{"a":"\ud83d\u`, "[[{", `"`, `{"role":"system","role":1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		texts, silent := wire.LooseParts([]byte(body))
		total := 0
		for _, p := range texts {
			if p.Role == "" || p.Text == "" {
				t.Fatalf("%+v in %q", p, body)
			}
			total += len(p.Text)
		}
		if total > 3*len(body) { // an invalid byte becomes a character of three
			t.Fatalf("%d bytes of text in %d", total, len(body))
		}
		size := 0
		for _, p := range silent {
			if size += p.Bytes; p.Text != "" || p.Kind == "" {
				t.Fatalf("%+v in %q", p, body)
			}
		}
		if size > 3*len(body) {
			t.Fatalf("%d bytes of references in %d", size, len(body))
		}
	})
}
