package caddymodule_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Whatever becomes of a turn, its answer names it from the first byte on, and
// the name leads to the receipt.
func TestTurnLeadsToItsReceipt(t *testing.T) {
	plain, streamed := answering("application/json", completion("Paris.")), answering("text/event-stream", stream("Paris", "."))
	failing := answering("text/html", "<h1>no</h1>")
	pretender := func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("X-Lex-Turn", strings.Repeat("A", 26))
		return plain(w, r)
	}
	for name, c := range map[string]struct {
		model             func(http.ResponseWriter, *http.Request) error
		path, body, given string // given is the receipt's outcome
	}{
		"plain":            {plain, "/v1/chat/completions", chatQuestion, "answered"},
		"streamed":         {streamed, "/v1/chat/completions", chatStreamed, "answered"},
		"refused":          {plain, "/v1/chat/completions", chatAttack, "refused"},
		"refused stream":   {plain, "/v1/chat/completions", strings.Replace(chatAttack, `{`, `{"stream":true,`, 1), "refused"},
		"failed":           {brokenOff, "/v1/chat/completions", chatQuestion, "provider_failed"},
		"pretender":        {pretender, "/v1/chat/completions", chatQuestion, "answered"},
		"elsewhere":        {plain, "/v2/other", chatQuestion, "answered"},
		"unknown":          {plain, "/v2/other", "some words", "answered"},
		"govern":           {plain, "/lex/govern", question, "answered"},
		"govern refused":   {plain, "/lex/govern", `{"prompt":"` + attack + `","session_id":"s"}`, "refused"},
		"govern failed":    {failing, "/lex/govern", question, "provider_failed"},
		"govern stream":    {streamed, "/lex/govern/stream", question, "answered"},
		"govern no stream": {failing, "/lex/govern/stream", question, "provider_failed"},
		"tool":             {plain, "/lex/tools/check", destructiveCall, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `{"baseline":"never"}`, c.model)
			w := s.post(c.path, c.body)
			turns := w.Header().Values("X-Lex-Turn")
			if len(turns) != 1 {
				t.Fatalf("turns %q: %d %s", turns, w.Code, w.Body)
			}
			receipt := s.receipts()[0]
			nonce, _, _ := strings.Cut(receipt["nonce"].(string), ".") // of a tool call there is more
			if nonce != turns[0] || receipt["outcome"] != c.given {
				t.Errorf("turn %s, receipt %v", turns[0], receipt)
			}
			if got := s.get("/audits/turn/" + turns[0]); got["id"] != receipt["id"] || got["id"] == nil {
				t.Errorf("the turn leads to %v", got)
			}
		})
	}
}

// brokenOff is a model whose connection fails before it answers.
func brokenOff(http.ResponseWriter, *http.Request) error { return io.ErrUnexpectedEOF }

// Before the receipt is durable the turn leads nowhere, and where it could not
// be written the answer still tells which turn has none.
func TestTurnWithoutAReceipt(t *testing.T) {
	var s *site
	var mu sync.Mutex
	asked := ""
	look := func(w http.ResponseWriter, r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		asked = w.Header().Get("X-Lex-Turn")
		return answering("application/json", completion("Paris."))(w, r)
	}
	s = newSite(t, `{"baseline":"never"}`, look)
	for _, path := range []string{"/v1/chat/completions", "/lex/govern", "/lex/govern/stream"} {
		s.breakStore()
		body := question
		if path == "/v1/chat/completions" {
			body = chatQuestion
		}
		w := s.post(path, body)
		s.mendStore()
		turn := w.Header().Get("X-Lex-Turn")
		if w.Code < 500 || turn == "" {
			t.Errorf("%s: %d, turn %q", path, w.Code, turn)
		}
		if got := s.send(http.MethodGet, "/audits/turn/"+turn, ""); got.Code != http.StatusNotFound {
			t.Errorf("%s: a turn without receipt leads to %d %s", path, got.Code, got.Body)
		}
	}
	for _, id := range []string{"", "x", strings.Repeat("A", 26), strings.Repeat("a", 26), strings.Repeat("A", 4096)} {
		if got := s.send(http.MethodGet, "/audits/turn/"+id, ""); got.Code != http.StatusNotFound {
			t.Errorf("turn %q: %d", id, got.Code)
		}
	}
	if asked != "" {
		t.Errorf("the model was told of turn %q", asked)
	}
}

// Turns that are computed anew because another one of the session was faster
// keep the id that their clients were told.
func TestTurnOutlivesConflicts(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	var group sync.WaitGroup
	var turns sync.Map
	for range 16 {
		group.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(chatQuestion))
			r.Header.Set("X-Lex-Session", "one")
			w := httptest.NewRecorder()
			s.serve(w, r)
			turns.Store(w.Header().Get("X-Lex-Turn"), w.Header().Get("X-Lex-Receipt-Id"))
		})
	}
	group.Wait()
	seen := 0
	turns.Range(func(turn, id any) bool {
		seen++
		if got := s.get("/audits/turn/" + turn.(string)); got["id"] != id {
			t.Errorf("turn %v leads to %v, its answer named %v", turn, got["id"], id)
		}
		return true
	})
	if seen != 16 {
		t.Errorf("%d turns", seen)
	}
}

// Who wants no headers gets none, and the mode that changes nothing adds none.
func TestTurnIsToldAsConfigured(t *testing.T) {
	for _, config := range []string{`{"headers":"none"}`, `{"mode":"observe"}`} {
		s := newSite(t, config, answering("application/json", completion("Paris.")))
		for path, body := range map[string]string{"/v1/chat/completions": chatQuestion, "/lex/govern": question, "/lex/govern/stream": question} {
			if w := s.post(path, body); w.Header().Get("X-Lex-Turn") != "" {
				t.Errorf("%s %s: %v", config, path, w.Header())
			}
		}
	}
}
