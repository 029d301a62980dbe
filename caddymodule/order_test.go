package caddymodule_test

import (
	"fmt"
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
	if w := s.postFrom("198.51.100.7", "/lex/govern", question); w.Code != http.StatusOK {
		t.Errorf("another address: %d", w.Code)
	}
	if w := s.send(http.MethodGet, "/audits/recent", ""); w.Code != http.StatusOK {
		t.Errorf("reading is counted on its own: %d", w.Code)
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

// What is addressed to Lex does not go upstream, wherever it was sent.
func TestLexHeadersDoNotGoUpstream(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	seen := new(recorder)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("application/json", completion("Paris."))(w, r)
	})
	key := newKey(s, `{"name":"app"}`)
	for _, path := range []string{"/admin/keys/x/y", "/ADMIN/KEYS", "//admin/keys", "/v1/chat/completions"} {
		s.send(http.MethodPost, path, chatQuestion, "Authorization", "bearer  "+key, asAdmin, password)
	}
	s.send(http.MethodGet, "/elsewhere", "", "Authorization", "Bearer "+key)
	if len(seen.requests) != 5 {
		t.Fatalf("%d requests reached the model", len(seen.requests))
	}
	for _, r := range seen.requests {
		if r.header.Get("Authorization") != "" || r.header.Get(asAdmin) != "" {
			t.Errorf("%s: the provider saw %v", r.path, r.header)
		}
	}
}

// Whether an Authorization is a secret of ours cannot be seen behind us: there
// is no limit to how many are tried.
func TestNoOracleInAuthorization(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	seen := new(recorder)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("application/json", completion("Paris."))(w, r)
	})
	for _, secret := range []string{password, "wrong"} {
		s.send(http.MethodPost, "/v1/chat/completions", chatQuestion, "Authorization", "Bearer "+secret)
		s.send(http.MethodPost, "/v1/elsewhere", `{"a":"b"}`, "Authorization", "Bearer "+secret)
		s.send(http.MethodGet, "/elsewhere", "", "Authorization", "Bearer "+secret)
	}
	if len(seen.requests) != 6 {
		t.Fatalf("%d requests reached the model", len(seen.requests))
	}
	for i, r := range seen.requests {
		if want := "Bearer " + map[bool]string{true: password, false: "wrong"}[i < 3]; r.header.Get("Authorization") != want {
			t.Errorf("%s: the provider saw %q, want %q", r.path, r.header.Get("Authorization"), want)
		}
	}
}

// The secret of evaluation sessions is tried ten times a minute, like those of
// the administration and together with them; what is beyond is no evaluation,
// and no error.
func TestEvaluationIsBehindTheGate(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": strings.Replace(chatQuestion, "France", "country s", 1),
		"/lex/govern":          question,
		"/lex/tools/check":     harmlessCall,
	} {
		t.Run(path, func(t *testing.T) {
			s, n := benchSite(t), 0
			counted := func() float64 { return s.get("/stats")["total_receipts"].(float64) }
			must := func(secret string, counts bool) {
				t.Helper()
				before := counted()
				n++ // a session of evaluation stays one
				session := strings.NewReplacer(`"s"`, fmt.Sprintf(`"s%d"`, n), "country s", fmt.Sprint("country ", n)).Replace(body)
				if w := s.post(path, session, "X-Lex-Eval", "1", "X-Lex-Bench-Secret", secret); w.Code != http.StatusOK {
					t.Fatalf("%q: %d %s", secret, w.Code, w.Body)
				}
				if got := counted() > before; got != counts {
					t.Errorf("%q: counted in the statistics: %v, want %v", secret, got, counts)
				}
			}
			must("battery staple", false)
			must(password, false)
			for range 9 {
				must("wrong", true)
			}
			must("battery staple", false)
			if w := s.send(http.MethodGet, "/admin/keys", "", asAdmin, "wrong"); w.Code != http.StatusUnauthorized {
				t.Errorf("the tenth try: %d", w.Code)
			}
			must("battery staple", true) // nobody listens any more
			if w := s.send(http.MethodGet, "/admin/keys", "", asAdmin, password); w.Code != http.StatusTooManyRequests {
				t.Errorf("the administration after ten tries: %d", w.Code)
			}
		})
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
