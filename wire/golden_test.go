package wire_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata. The files are what the official
// SDKs were seen to read without an exception; a change needs that again.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

const declined = "I can't help with that. <b>\"é\"</b>"

func TestRefusals(t *testing.T) {
	for _, api := range []string{"openai_chat", "openai_completions"} {
		for name, r := range map[string]wire.Refusal{
			"refusal":            {Choices: 1, Place: wire.OnlyRefusal},
			"refusal_content":    {Place: wire.OnlyContent},
			"refusal_two":        {Choices: 2, Place: wire.OnlyRefusal},
			"refusal_everywhere": {},
			"refusal_usage":      {TellsUsage: true},
		} {
			r.ID, r.Model, r.Text, r.Created = "KRN-1", "gpt-x", declined, 1700000000
			d := dialect(t, api)
			golden(t, api+"_"+name+".json", d.Refusal(r))
			golden(t, api+"_"+name+".sse", d.Stream().Refusal(r))
			golden(t, api+"_"+name+"_begun.sse", refusalStream(d, r, true))
			checkRefusal(t, d, r)
		}
	}
}

// refusalStream is a refusal as the rest of a stream that has begun, or as a whole one.
func refusalStream(d wire.Dialect, r wire.Refusal, begun bool) []byte {
	stream := d.Stream()
	if begun {
		stream.Sent(wire.Frame{Raw: []byte("data: {}\n\n"), Data: []byte("{}")})
	}
	return stream.Refusal(r)
}

// checkRefusal reads a refusal back: what we write, our own reader and every
// client understand in the same way.
func checkRefusal(t *testing.T, d wire.Dialect, r wire.Refusal) {
	t.Helper()
	kinds := []wire.Kind{wire.Text, wire.RefusalText}
	switch {
	case r.Place == wire.OnlyContent || d.Name() == "openai_completions":
		kinds = kinds[:1]
	case r.Place == wire.OnlyRefusal:
		kinds = kinds[1:]
	}
	whole, err := d.Response(d.Refusal(r))
	if err != nil || whole.Finish != "stop" || whole.Text() != r.Text || whole.Model != r.Model || len(whole.Parts) != max(1, r.Choices)*len(kinds) {
		t.Errorf("%s: %+v, %v", d.Name(), whole, err)
	}
	for _, begun := range []bool{false, true} {
		text, finishes := make(map[int]map[wire.Kind]string), 0
		frames, rest := decode(t, string(refusalStream(d, r, begun)))
		for i, f := range frames {
			e, err := d.Events().Event(f)
			if err != nil || e.Err || len(e.Unknown) > 0 || e.Done != (i == len(frames)-1) {
				t.Fatalf("%s: frame %s: %+v, %v", d.Name(), f.Raw, e, err)
			}
			for _, delta := range e.Deltas {
				if text[delta.Choice] == nil {
					text[delta.Choice] = make(map[wire.Kind]string)
				}
				text[delta.Choice][delta.Kind] += delta.Text
			}
			if e.Finish != "" {
				finishes++
			}
		}
		want := make(map[wire.Kind]string)
		for _, kind := range kinds {
			want[kind] = r.Text
		}
		if rest != "" || finishes != max(1, r.Choices) || len(text) != finishes || !maps.Equal(text[0], want) {
			t.Errorf("%s: %d finishes, texts %v, rest %q", d.Name(), finishes, text, rest)
		}
	}
}

// OpenRouter's SDK throws at a whole answer without a fingerprint, and at a chunk whose
// fingerprint is null.
func TestChatRefusalsHaveAFingerprintWhereClientsNeedOne(t *testing.T) {
	d := dialect(t, "openai_chat")
	if v := gjson.GetBytes(d.Refusal(wire.Refusal{Text: declined}), "system_fingerprint"); v.Raw != "null" {
		t.Errorf("whole: %q", v.Raw)
	}
	if out := d.Stream().Refusal(wire.Refusal{Text: declined}); bytes.Contains(out, []byte("system_fingerprint")) {
		t.Errorf("streamed: %s", out)
	}
}

// However many choices are asked for, a refusal stays small.
func TestRefusalIsBounded(t *testing.T) {
	for _, api := range []string{"openai_chat", "openai_completions"} {
		out := dialect(t, api).Refusal(wire.Refusal{Text: "no", Choices: 1 << 30})
		r, err := dialect(t, api).Response(out)
		if err != nil || len(r.Parts) != wire.MaxChoices*map[string]int{"openai_chat": 2, "openai_completions": 1}[api] {
			t.Errorf("%s: %d choices, %v", api, len(r.Parts), err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, api := range []string{"openai_chat", "openai_completions"} {
		d := dialect(t, api)
		e := wire.Error{Status: 403, Code: "policy_refusal", Message: declined}
		golden(t, api+"_error.json", d.Error(e))
		golden(t, api+"_error.sse", d.Stream().Error(e))
		for status, want := range map[int]string{
			400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "invalid_request_error",
			413: "invalid_request_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error",
		} {
			if out := string(d.Error(wire.Error{Status: status})); !strings.Contains(out, `"type":"`+want+`"`) {
				t.Errorf("%d gives %s", status, out)
			}
		}
		frames, rest := decode(t, string(d.Stream().Error(e)))
		if got, err := d.Events().Event(frames[0]); err != nil || len(frames) != 1 || rest != "" || !got.Err || got.Done {
			t.Errorf("read back as %+v, %v", got, err)
		}
	}
}

// The rest of a stream has the id of its beginning: the Go SDK's accumulator takes no
// chunk with another.
func TestRefusalsKeepTheStreamsID(t *testing.T) {
	for api, object := range map[string]string{"openai_chat": "chat.completion.chunk", "openai_completions": "text_completion"} {
		d := dialect(t, api)
		stream := d.Stream()
		stream.Sent(wire.Frame{Raw: []byte(": hello\n\n"), Comment: true})
		for _, data := range []string{`{"id":"c-1","created":17,"model":"m-2","choices":[]}`, `{"id":"c-2","choices":[]}`} {
			stream.Sent(wire.Frame{Raw: wire.AppendEvent(nil, []byte(data)), Data: []byte(data)})
		}
		for _, f := range split(t, d, stream.Refusal(wire.Refusal{ID: "KRN-1", Model: "m", Text: declined, Created: 18})) {
			if text := string(f.Data); text != "[DONE]" && !strings.HasPrefix(text, `{"id":"c-1","object":"`+object+`","created":17,"model":"m-2"`) {
				t.Errorf("%s: %s", api, text)
			}
		}
	}
}
