package wire_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// Every part's raw value stands where Start and Bytes say.
func TestPartsKnowTheirPlace(t *testing.T) {
	for _, body := range []string{agentCall, " \n" + agentCall + "\n"} {
		r, err := dialect(t, "openai").Request([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts {
			raw := body[p.Start : p.Start+p.Bytes]
			if !json.Valid([]byte(raw)) || (p.Kind == wire.Text && !strings.HasPrefix(raw, `"`) && p.Path != "web_search_options.user_location") {
				t.Errorf("%s stands at %q", p.Path, raw)
			}
		}
	}
}

// The newest turn is what follows the last answer that something follows.
func TestTheNewestTurn(t *testing.T) {
	for roles, want := range map[string]string{ // E: earlier, n: newest
		"user":                          "n",
		"system user":                   "nn",
		"user assistant user":           "EEn",
		"user assistant":                "nE", // a prefill
		"user assistant user assistant": "EEnE",
		"user assistant tool":           "EEn",
		"user assistant user user":      "EEnn",
		"assistant user":                "En",
		"assistant":                     "E",
		"system user assistant system user assistant assistant": "EEEnnEE",
	} {
		var messages []map[string]string
		for i, role := range strings.Fields(roles) {
			messages = append(messages, map[string]string{"role": role, "content": string(rune('a' + i))})
		}
		body, _ := json.Marshal(map[string]any{"model": "m", "messages": messages, "tools": []any{}})
		r, err := dialect(t, "openai").Request(body)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for i, p := range r.Parts {
			if p.Message != i+1 {
				t.Errorf("%s: part %d is of message %d", roles, i, p.Message)
			}
			got.WriteByte("nE"[b2i(p.Earlier)])
		}
		if got.String() != want {
			t.Errorf("%s: %s, want %s", roles, got.String(), want)
		}
	}
	empty := `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":""},{"role":"user","content":"b"}]}`
	r, err := dialect(t, "openai").Request([]byte(empty))
	if err != nil || len(r.Parts) != 2 || !r.Parts[0].Earlier || r.Parts[1].Earlier {
		t.Errorf("an answer without text: %+v, %v", r.Parts, err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What is left is the same request with other words in the replaced places.
func TestRedact(t *testing.T) {
	d := dialect(t, "openai")
	before, err := d.Request([]byte(agentCall))
	if err != nil {
		t.Fatal(err)
	}
	var texts []int
	for i, p := range before.Parts {
		if p.Text != "" {
			texts = append(texts, i)
		}
	}
	for range 300 {
		var chosen []wire.Part
		at := make(map[int]bool)
		for _, i := range texts {
			if rand.IntN(3) == 0 {
				chosen, at[i] = append(chosen, before.Parts[i]), true
			}
		}
		rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		out := wire.Redact([]byte(agentCall), chosen, `removed "here"`)
		after, err := d.Request(out)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		checkRedacted(t, before, after, at, out)
	}
}

// All bytes outside the replaced values stay.
func TestRedactTouchesNothingElse(t *testing.T) {
	body := ` {"model" : "m","messages":[ {"role":"user" ,"content":"caf\u00e9"}, {"role":"assistant","content":[{"type":"text","text":"é"}],` +
		`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}x"}}]},{"role":"user","content":"b"} ],"n":1e0 }` + "\n"
	body = strings.Replace(body, "1e0", "1", 1)
	r, err := dialect(t, "openai").Request([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	got := string(wire.Redact([]byte(body), r.Parts[:4], "gone"))
	want := strings.NewReplacer(`"caf\u00e9"`, `"gone"`, `"é"`, `"gone"`, `"name":"f"`, `"name":"redacted"`, `"{}x"`, `"{\"redacted\":\"gone\"}"`).Replace(body)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// checkRedacted compares part by part; an emptied list or object is no part.
func checkRedacted(t *testing.T, before, after wire.Request, at map[int]bool, out []byte) {
	t.Helper()
	byPath := make(map[string]wire.Part)
	for _, p := range after.Parts {
		byPath[p.Path] = p
	}
	for i, p := range before.Parts {
		got, there := byPath[p.Path]
		switch {
		case !at[i]:
			got.Start = p.Start
			if !reflect.DeepEqual(got, p) {
				t.Fatalf("%s became %+v in %s", p.Path, got, out)
			}
		case there && got.Text == p.Text:
			t.Fatalf("%s still says %q", p.Path, p.Text)
		case there && got.Kind == wire.Arguments && !json.Valid([]byte(strings.ReplaceAll(got.Text, "\n", " "))) && !strings.Contains(got.Text, "redacted"):
			t.Fatalf("arguments became %q", got.Text)
		}
	}
}

// An attachment is replaced together with the block that it stands in, by what the API takes
// in its place, whatever else of the block is replaced.
func TestRedactAttachments(t *testing.T) {
	for name, test := range map[string]struct{ dialect, body, want string }{
		"file by two names": {
			"openai_responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"AAAA","file_id":"f"}]}]}`,
			`{"model":"m","input":[{"role":"user","content":[{"text":"gone","type":"input_text"}]}]}`,
		},
		"image of a program": {
			"openai_responses", `{"model":"m","input":[{"type":"code_interpreter_call","id":"c","code":"x","container_id":"d","outputs":[{"type":"image","url":"u"}]}]}`,
			`{"model":"m","input":[{"type":"code_interpreter_call","id":"c","code":"{\"redacted\":\"gone\"}","container_id":"d","outputs":[{"logs":"gone","type":"logs"}]}]}`,
		},
		"image that the provider made": {
			"openai_responses", `{"model":"m","input":[{"type":"image_generation_call","id":"i","status":"completed","result":"AAAA","revised_prompt":"x"}]}`,
			`{"model":"m","input":[{"content":"gone","role":"assistant","type":"message"}]}`,
		},
		"screenshot": {
			"openai_responses", `{"model":"m","input":[{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"u"}}]}`,
			`{"model":"m","input":[{"type":"computer_call_output","call_id":"c","output":{"image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==","type":"computer_screenshot"}}]}`,
		},
		"spoken answer": {
			"openai", `{"model":"m","messages":[{"role":"assistant","content":null,"audio":{"id":"a","data":"AAAA","transcript":"x"}}]}`,
			`{"model":"m","messages":[{"role":"assistant","content":null,"audio":{"id":"a","data":"","transcript":"gone"}}]}`,
		},
		"upload": {
			"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}]}`,
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"text":"gone","type":"text"}]}]}`,
		},
		"files of a program": {
			"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"t","content":{"type":"code_execution_result","stdout":"","stderr":"","return_code":0,"content":[{"type":"code_execution_output","file_id":"f"},{"type":"code_execution_output","file_id":"g"}]}}]}]}`,
			`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"t","content":{"type":"code_execution_result","stdout":"","stderr":"","return_code":0,"content":[]}}]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := dialect(t, test.dialect)
			r, err := d.Request([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			got := wire.Redact([]byte(test.body), r.Parts, "gone")
			if string(got) != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if _, err := d.Request(got); err != nil {
				t.Error(err)
			}
		})
	}
}
