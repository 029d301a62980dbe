package caddymodule_test

import (
	"net/http"
	"strings"
	"testing"
)

// orderSite allows three requests and has a key whose plan is used up.
func orderSite(t *testing.T) (s *site, key string) {
	t.Helper()
	t.Setenv("LEX_TEST_ADMIN", password)
	s = newSiteWith(t, `{"baseline":"never"}`, map[string]any{"limits": map[string]any{
		"anonymous": map[string]any{"requests": 3, "window": 60e9},
		"keyed":     map[string]any{"requests": 100, "window": 60e9},
		"plans":     map[string]any{"one": map[string]any{"requests": 1, "window": 86400e9}},
	}}, answering("application/json", completion("Paris.")))
	key = newKey(s, `{"name":"app","plan":"one"}`)
	if w := s.post("/lex/govern", question, "X-Lex-Api-Key", key); w.Code != http.StatusOK {
		t.Fatalf("the plan's run: %d %s", w.Code, w.Body)
	}
	return s, key
}

// Of several faults the first in the interface's order answers:
// route, method, key, rate, body size, JSON, prompt, session_id, turn,
// identity_mode, plan run.
func TestOrderOfChecks(t *testing.T) {
	s, key := orderSite(t)
	large := `{"prompt":` + strings.Repeat(" ", 128<<10)
	steps := []struct{ method, body, key, code string }{
		{http.MethodPut, large, "unknown", "method_not_allowed"},
		{http.MethodPost, large, "unknown", "invalid_api_key"},
		{http.MethodPost, large, key, "body_too_large"},
		{http.MethodPost, `{"session_id":7,"turn":0,"identity_mode":0,`, key, "invalid_json"},
		{http.MethodPost, `{"session_id":7,"turn":0,"identity_mode":0}`, key, "missing_prompt"},
		{http.MethodPost, `{"prompt":7,"session_id":7,"turn":0,"identity_mode":0}`, key, "invalid_type"},
		{http.MethodPost, `{"prompt":"` + strings.Repeat("a", 8001) + `","turn":0,"identity_mode":0}`, key, "prompt_too_long"},
		{http.MethodPost, `{"prompt":"a","turn":0,"identity_mode":0}`, key, "missing_session_id"},
		{http.MethodPost, `{"prompt":"a","session_id":"a\u0001","turn":0,"identity_mode":0}`, key, "invalid_session_id"},
		{http.MethodPost, `{"prompt":"a","session_id":"s","turn":0,"identity_mode":0}`, key, "invalid_turn"},
		{http.MethodPost, `{"prompt":"a","session_id":"s","turn":1,"identity_mode":0}`, key, "invalid_identity_mode"},
		{http.MethodPost, question, key, "plan_exhausted"},
	}
	for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
		for _, c := range steps {
			w := s.send(c.method, path, c.body, "X-Lex-Api-Key", c.key)
			if !strings.Contains(w.Body.String(), `"code":"`+c.code+`"`) {
				t.Errorf("%s %s %.60s: want %s, got %d %s", c.method, path, c.body, c.code, w.Code, w.Body)
			}
		}
	}
}

// A request counts against the rate once its key was checked, whatever comes of
// it; what never got so far does not.
func TestWhatCountsAgainstTheRate(t *testing.T) {
	s, _ := orderSite(t)
	for range 5 {
		s.send(http.MethodPut, "/lex/govern", question)
		s.post("/lex/govern", question, "X-Lex-Api-Key", "unknown")
		s.send(http.MethodGet, "/stats", "")
	}
	for i, c := range []struct{ path, body, left string }{
		{"/lex/govern", `{`, "2"}, {"/lex/tools/check", harmlessCall, "1"}, {"/lex/govern/stream", question, "0"},
	} {
		if w := s.post(c.path, c.body); w.Header().Get("X-RateLimit-Remaining") != c.left || w.Header().Get("X-RateLimit-Limit") != "3" {
			t.Errorf("request %d: %d %v", i+1, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/lex/govern", "/lex/govern/stream", "/lex/tools/check"} {
		w := s.post(path, `{`)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "60" || w.Header().Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if w := s.from("198.51.100.7", http.MethodPost, "/lex/govern", question); w.Code != http.StatusOK {
		t.Errorf("another address: %d", w.Code)
	}
	if w := s.send(http.MethodGet, "/audits/recent", ""); w.Code != http.StatusOK {
		t.Errorf("reading is not limited: %d", w.Code)
	}
}

// A key that names a plan which is not configured any more has no runs.
func TestPlanThatIsGone(t *testing.T) {
	s, key := orderSite(t)
	gone := newSiteWith(t, `{"baseline":"never"}`, map[string]any{
		"store": map[string]any{"engine": "faulty", "path": s.path},
	}, answering("application/json", completion("Paris.")))
	w := gone.post("/lex/govern", question, "X-Lex-Api-Key", key)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"code":"plan_unavailable"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A secret of ours that was sent to a path which is not ours stays here.
func TestSecretsDoNotGoUpstream(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	seen := new(recorder)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("application/json", completion("Paris."))(w, r)
	})
	for _, path := range []string{"/admin/keys/x/y", "/ADMIN/KEYS", "//admin/keys", "/v1/chat/completions"} {
		s.send(http.MethodPost, path, chatQuestion, "Authorization", "Bearer "+password, asAdmin, password)
	}
	s.send(http.MethodGet, "/elsewhere", "", "Authorization", "Bearer "+password)
	if len(seen.requests) != 5 {
		t.Fatalf("%d requests reached the model", len(seen.requests))
	}
	for _, r := range seen.requests {
		if r.header.Get("Authorization") != "" || r.header.Get(asAdmin) != "" {
			t.Errorf("%s: the provider saw %v", r.path, r.header)
		}
	}
}

// Many right secrets at once are no attack; a burst of wrong ones gets no more
// guesses than one after the other.
func TestConcurrentSecrets(t *testing.T) {
	s := adminSite(t)
	each := func(secret string) map[int]int {
		codes, done := make(map[int]int), make(chan int)
		for range 64 {
			go func() { done <- s.send(http.MethodGet, "/admin/keys", "", asAdmin, secret).Code }()
		}
		for range 64 {
			codes[<-done]++
		}
		return codes
	}
	if codes := each(password); codes[http.StatusOK] != 64 {
		t.Errorf("right secrets: %v", codes)
	}
	if codes := each("wrong"); codes[http.StatusUnauthorized] != 10 || codes[http.StatusTooManyRequests] != 54 {
		t.Errorf("wrong secrets: %v", codes)
	}
}
