package caddymodule_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// planSite is a site with a plan of few runs, and a key of it.
func planSite(t *testing.T, runs int, model caddyhttp.HandlerFunc) (s *site, key string) {
	t.Helper()
	return planSiteWith(t, `{"baseline":"never"}`, runs, model)
}

func planSiteWith(t *testing.T, config string, runs int, model caddyhttp.HandlerFunc) (s *site, key string) {
	t.Helper()
	t.Setenv("LEX_TEST_ADMIN", password)
	million := map[string]any{"requests": 1_000_000, "window": 60e9}
	s = newSiteWith(t, config, map[string]any{"limits": map[string]any{
		"anonymous": million, "keyed": million,
		"plans": map[string]any{"small": map[string]any{"requests": runs, "window": 30 * 86400e9}},
	}}, model)
	return s, newKey(s, `{"name":"app","plan":"small"}`)
}

func newKey(s *site, body string) string {
	s.t.Helper()
	w := s.send(http.MethodPost, "/admin/keys", body, asAdmin, password)
	var made struct{ Key string }
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
		s.t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	return made.Key
}

// Of 64 requests at the edge of the quota exactly as many pass as runs are left,
// wherever they are sent.
func TestPlanIsExactAtItsEdge(t *testing.T) {
	const runs = 10
	s, key := planSite(t, runs, answering("application/json", completion("Paris.")))
	var passed, exhausted atomic.Int32
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			path, body := "/lex/govern", question
			switch i % 4 {
			case 1:
				path = "/lex/govern/stream"
			case 2:
				path, body = "/lex/tools/check", harmlessCall
			case 3:
				path, body = "/v1/chat/completions", chatQuestion
			}
			w := s.post(path, body, "X-Lex-Api-Key", key)
			switch {
			case w.Code == http.StatusOK:
				passed.Add(1)
			case w.Code == http.StatusTooManyRequests && strings.Contains(w.Body.String(), `"plan_exhausted"`):
				exhausted.Add(1)
				if w.Header().Get("Retry-After") != "2592000" {
					t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
				}
				// Some SDKs would sleep until then.
				if stops := w.Header().Get("X-Should-Retry") == "false"; stops != strings.HasPrefix(path, "/v1/") {
					t.Errorf("%s: X-Should-Retry is %q", path, w.Header().Get("X-Should-Retry"))
				}
			default:
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if passed.Load() != runs || exhausted.Load() != 64-runs {
		t.Errorf("%d passed and %d were exhausted", passed.Load(), exhausted.Load())
	}
}

// A run is counted after every check, and given back when we fail.
func TestRunsOfFailedRequestsAreGivenBack(t *testing.T) {
	var down atomic.Bool
	s, key := planSite(t, 2, func(w http.ResponseWriter, r *http.Request) error {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		return answering("application/json", completion("Paris."))(w, r)
	})
	send := func(path, body string, want int) {
		t.Helper()
		if w := s.post(path, body, "X-Lex-Api-Key", key); w.Code != want {
			t.Fatalf("%s %.60s: %d %s", path, body, w.Code, w.Body)
		}
	}
	for range 5 {
		send("/lex/govern", `{"prompt":"a"}`, http.StatusBadRequest)
		send("/lex/tools/check", `{"session_id":"s"}`, http.StatusBadRequest)
		send("/v1/chat/completions", `{`, http.StatusBadRequest)
	}
	down.Store(true)
	for range 5 {
		send("/lex/govern", question, http.StatusInternalServerError)
		send("/lex/govern/stream", question, http.StatusInternalServerError)
		send("/v1/chat/completions", chatQuestion, http.StatusBadGateway)
	}
	s.breakStore()
	for range 5 {
		send("/lex/govern", question, http.StatusInternalServerError)
		send("/lex/tools/check", harmlessCall, http.StatusInternalServerError)
		send("/v1/chat/completions", chatQuestion, http.StatusServiceUnavailable)
		send("/v1/images/generations", `{"size":"big"}`, http.StatusServiceUnavailable)
		send("/v1/anything", `{"size":"big"}`, http.StatusInternalServerError)
	}
	s.mendStore()
	down.Store(false)
	send("/lex/govern", question, http.StatusOK)
	send("/lex/govern", `{"prompt":"`+attack+`","session_id":"s"}`, http.StatusOK) // a refusal is an answer
	send("/lex/govern", question, http.StatusTooManyRequests)
}

func TestPlansAndKeys(t *testing.T) {
	s, _ := planSite(t, 1, answering("application/json", completion("Paris.")))
	unlimited := newKey(s, `{"name":"free"}`)
	for range 3 {
		if w := s.post("/lex/govern", question, "X-Lex-Api-Key", unlimited); w.Code != http.StatusOK {
			t.Errorf("a key without a plan: %d %s", w.Code, w.Body)
		}
	}
	for range 2 { // each key has its own runs
		key := newKey(s, `{"name":"b","plan":"small"}`)
		if w := s.post("/lex/govern", question, "X-Lex-Api-Key", key); w.Code != http.StatusOK {
			t.Errorf("a key's first run: %d %s", w.Code, w.Body)
		}
	}
	if w := s.send(http.MethodPost, "/admin/keys", `{"name":"a","plan":"gold"}`, asAdmin, password); !strings.Contains(w.Body.String(), "invalid_plan") {
		t.Errorf("an unknown plan: %s", w.Body)
	}
}
