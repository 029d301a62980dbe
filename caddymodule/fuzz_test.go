package caddymodule_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever the body, the answer is one of the interface's, in JSON.
func FuzzGovern(f *testing.F) {
	for _, seed := range []string{
		question, `{}`, `[]`, ``, `{"prompt":`, `{"prompt":"a","session_id":"s","turn":1e400}`,
		`{"prompt":"\u0000","session_id":"s"}`, "{\"prompt\":\"\xff\"}", strings.Repeat("[", 5000),
		`{"prompt":"a","PROMPT":"b","session_id":"s"}`, `{"prompt":"` + attack + `","session_id":"s","turn":7,"identity_mode":"none"}`,
	} {
		f.Add(seed)
	}
	s := newSite(f, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	f.Fuzz(func(t *testing.T, body string) {
		s.t = t
		w := s.post("/lex/govern", body)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("not JSON: %q", w.Body)
		}
	})
}

// What reaches the model is what came in, to the byte, and only if it can be
// read.
func FuzzIntercept(f *testing.F) {
	for _, seed := range []string{
		chatQuestion, chatStreamed, chatAttack, `{}`, `{"messages":[]}`, `{"messages":[{}]}`, `{"messages":{"a":1}}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"},7,null]}],"tools":[{"x":1}]}`,
		`{"messages":[{"role":"wizard","content":"a"}],"n":99999,"stream":true}`,
	} {
		f.Add(seed)
	}
	seen := new(recorder)
	s := newSite(f, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("application/json", completion("Paris."))(w, r)
	})
	f.Fuzz(func(t *testing.T, body string) {
		s.t = t
		before := seen.count.Load()
		w := s.post("/v1/chat/completions", body)
		forwarded := seen.count.Load() > before
		if forwarded && (string(seen.requests[len(seen.requests)-1].body) != body || !utf8.ValidString(body) || !json.Valid([]byte(body))) {
			t.Fatalf("the model saw %q for %q", seen.requests[len(seen.requests)-1].body, body)
		}
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%d %s for %q", w.Code, w.Body, body)
		}
		if turn := w.Header().Get("X-Lex-Turn"); turn != "" {
			if record := s.send(http.MethodGet, "/audits/turn/"+turn, ""); record.Body.Len() == 0 || record.Body.Len() > maxReceipt {
				t.Fatalf("a receipt of %d bytes for %q", record.Body.Len(), body)
			}
		}
	})
}
