package wire_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// contexts returns the texts of a call that an application put there, and its prompt.
func contexts(t *testing.T, path, body string) (texts []string, prompt string) {
	t.Helper()
	d, ok := wire.Match(&url.URL{Path: path})
	if !ok {
		t.Fatalf("no dialect on %s", path)
	}
	call, err := d.Request([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, p := range call.Parts {
		if p.Context {
			texts = append(texts, p.Text)
		}
	}
	return texts, call.Prompt()
}

// What an application puts beside the user's words is known in every dialect, in whichever part
// or message it stands, in the newest turn and in the history, and is no part of the prompt.
func TestContextInEveryDialect(t *testing.T) {
	const env, rules = `<env kind=\"os\">\nIt is Monday.\n</env>\n`, `<rules-of_2>Be brief.</rules-of_2>`
	for name, c := range map[string]struct{ path, body string }{
		"chat, parts":        {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"ENV"},{"type":"text","text":"List it"},{"type":"text","text":"RULES"}]}]}`},
		"chat, messages":     {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"ENV"},{"role":"system","content":"Hi"},{"role":"user","content":"RULES"},{"role":"user","content":"List it"}]}`},
		"chat, history":      {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"ENV"},{"role":"user","content":"RULES"},{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"},{"role":"user","content":"List it"}]}`},
		"anthropic":          {"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"ENV"},{"type":"text","text":"RULES"},{"type":"text","text":"List it"}]}]}`},
		"anthropic, results": {"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"List it"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"ls","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a.txt"},{"type":"text","text":"ENV"},{"type":"text","text":"RULES"}]}]}`},
		"responses":          {"/v1/responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"ENV"},{"type":"input_text","text":"RULES"}]},{"role":"user","content":"List it"}]}`},
		"gemini":             {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"ENV"},{"text":"RULES"},{"text":"List it"}]}]}`},
		"ollama":             {"/api/chat", `{"model":"m","messages":[{"role":"user","content":"ENV"},{"role":"user","content":"RULES"},{"role":"user","content":"List it"}]}`},
	} {
		found, prompt := contexts(t, c.path, strings.NewReplacer("ENV", env, "RULES", rules).Replace(c.body))
		slices.Sort(found)
		var first string
		if err := json.Unmarshal([]byte(`"`+env+`"`), &first); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(found, []string{first, rules}) || prompt != "List it" {
			t.Errorf("%s: %q, prompt %q", name, found, prompt)
		}
	}
}

// Only a whole element beside something else is context: what the user sends alone, and what
// stands between elements, is the user's own.
func TestContextIsAWholeElement(t *testing.T) {
	for text, want := range map[string]bool{
		"<a>x</a>":                        true,
		" \n<a-b_1 c='d'>x</a-b_1>\n\t":   true,
		"<a>x<a>y</a>z</a>":               true,
		"<a>x<b>y</c></a>":                true, // nobody parses it
		"<a>1 < 2</a>":                    true,
		"# A file\n\n<a>x</a>":            true,
		"#\n<a>x</a>":                     true,
		"# A\n# B\n<a>x</a>":              false,
		"# A <a>x</a>":                    false,
		"# Do it.":                        false,
		"<a></a>":                         true,
		"<a>x</a> Do it. <a>y</a>":        false,
		"<a>x</a>Do it.":                  false,
		"Look: <a>x</a>":                  false,
		"<a>x</a><b>y</b>":                false,
		"<a>x":                            false,
		"<a>x</b>":                        false,
		"<a>x<a>y</a>":                    false,
		"<aa>x</a>":                       false,
		"<a>x</a >":                       false,
		"</a>x</a>":                       false,
		"<>x</>":                          false,
		"<!-- x -->":                      false,
		"<ä>x</ä>":                        false,
		"a</a>":                           false,
		"<a":                              false,
		"<":                               false,
		"List it":                         false,
		strings.Repeat("<a>", 9) + "</a>": false,
	} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := contexts(t, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":`+string(quoted)+`},{"type":"text","text":"Go on."}]}]}`)
		if (len(found) == 1) != want {
			t.Errorf("%q: %q", text, found)
		}
	}
	for name, messages := range map[string]string{
		"alone":                 `{"role":"user","content":"<a>x</a>"}`,
		"with a blank":          `{"role":"user","content":"<a>x</a>"},{"role":"user","content":" \n"}`,
		"with another":          `{"role":"user","content":"<a>x</a>"},{"role":"user","content":"<b>y</b>"}`,
		"with instructions":     `{"role":"system","content":"Be brief."},{"role":"user","content":"<a>x</a>"}`,
		"after an answer":       `{"role":"user","content":"Hi"},{"role":"assistant","content":"Hi"},{"role":"user","content":"<a>x</a>"}`,
		"of the assistant":      `{"role":"user","content":"Hi"},{"role":"assistant","content":"<a>x</a>"},{"role":"user","content":"Hi"}`,
		"beside an image":       `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aaaa"}},{"type":"text","text":"<a>x</a>"}]}`,
		"of an unknown speaker": `{"role":"robot","content":"<a>x</a>"},{"role":"user","content":"Hi"}`,
	} {
		if found, _ := contexts(t, "/v1/chat/completions", `{"model":"m","messages":[`+messages+`]}`); len(found) > 0 {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// A text of many openings is read once.
func BenchmarkContext(b *testing.B) {
	body, err := json.Marshal(map[string]any{"model": "m", "messages": []map[string]string{
		{"role": "user", "content": strings.Repeat("<a>", 100_000) + strings.Repeat("</a>", 100_000)}, {"role": "user", "content": "Go on."},
	}})
	if err != nil {
		b.Fatal(err)
	}
	d, _ := wire.Named("openai_chat")
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := d.Request(body); err != nil {
			b.Fatal(err)
		}
	}
}
