package caddymodule_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// A told is what an answer tells of its commitments.
type told struct {
	ReceiptID string            `json:"receipt_id"`
	Output    string            `json:"governed_output"`
	Openings  map[string]string `json:"openings"`
}

// tellsOf asks and returns what the answer, or the last event of the stream, tells.
func tellsOf(s *site, path, body string) (t told) {
	s.t.Helper()
	w := s.send(http.MethodPost, path, body)
	frames := strings.Split(strings.TrimSpace(w.Body.String()), "\n\n")
	if err := json.Unmarshal([]byte(strings.TrimPrefix(frames[len(frames)-1], "data: ")), &t); err != nil || w.Code != http.StatusOK {
		s.t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	return t
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The caller gets the openings with the answer, and whoever is shown one can compare the
// text of that turn: without a key, and also when the session is erased.
func TestTheCallerGetsTheOpenings(t *testing.T) {
	s := adminSite(t)
	refused := `{"prompt":"` + attack + `","session_id":"s"}`
	for name, c := range map[string]struct{ path, body, prompt string }{
		"whole":            {"/lex/govern", question, "What is the capital of France?"},
		"streamed":         {"/lex/govern/stream", question, "What is the capital of France?"},
		"refused":          {"/lex/govern", refused, attack},
		"streamed refusal": {"/lex/govern/stream", refused, attack},
	} {
		t.Run(name, func(t *testing.T) {
			got := tellsOf(s, c.path, c.body)
			ask := map[string]any{"receipt_id": got.ReceiptID, "prompt": c.prompt, "output": got.Output, "openings": got.Openings}
			if v := s.verify(jsonOf(t, ask)); !v.Valid || !strings.HasSuffix(v.outcomes(), " prompt_commitment+ output_commitment+") {
				t.Errorf("%+v", v)
			}
			ask["output"] = "Rome."
			if v := s.verify(jsonOf(t, ask)); v.Valid || !strings.HasSuffix(v.outcomes(), " prompt_commitment+ output_commitment-") {
				t.Errorf("another text: %+v", v)
			}
			ask["openings"] = map[string]any{"prompt": got.Openings["prompt"], "output": nil}
			if w := s.send(http.MethodPost, "/audits/verify", jsonOf(t, ask)); w.Code != http.StatusUnauthorized {
				t.Errorf("a text without its opening: %d %s", w.Code, w.Body)
			}
			delete(ask, "output")
			if v := s.verify(jsonOf(t, ask)); !v.Valid || !strings.HasSuffix(v.outcomes(), " prompt_commitment+") {
				t.Errorf("one text alone: %+v", v)
			}
			ask["openings"] = map[string]any{"prompt": got.Openings["output"]}
			if v := s.verify(jsonOf(t, ask)); v.Valid || !strings.HasSuffix(v.outcomes(), " prompt_commitment-") {
				t.Errorf("the opening of another text: %+v", v)
			}
		})
	}
	taken := tellsOf(s, "/lex/govern", question)
	if w := s.send(http.MethodDelete, "/admin/sessions/"+sessionKeyOf(local, "s"), "", asAdmin, password); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	ask := map[string]any{"receipt_id": taken.ReceiptID, "prompt": "What is the capital of France?", "openings": taken.Openings}
	if v := s.verify(jsonOf(t, ask)); !v.Valid || !strings.HasSuffix(v.outcomes(), " prompt_commitment+") {
		t.Errorf("after the erasure: %+v", v)
	}
}

// The answer about a tool call has the opening of its arguments.
func TestToolCallsHaveAnOpening(t *testing.T) {
	s := adminSite(t)
	got := tellsOf(s, "/lex/tools/check", `{"session_id":"s","tool":{"name":"read_file","arguments":{"path":"notes.txt"}}}`)
	for arguments, want := range map[string]string{`{"path":"notes.txt"}`: "arguments_commitment+", `{"path":"other.txt"}`: "arguments_commitment-"} {
		ask := jsonOf(t, map[string]any{"receipt_id": got.ReceiptID, "arguments": arguments, "openings": got.Openings})
		if v := s.verify(ask); !strings.HasSuffix(v.outcomes(), " "+want) {
			t.Errorf("%s: %+v", arguments, v)
		}
	}
	if none := tellsOf(s, "/lex/tools/check", `{"session_id":"s","tool":{"name":"now"}}`); none.Openings["arguments"] != "" {
		t.Errorf("no arguments: %v", none.Openings)
	}
}
