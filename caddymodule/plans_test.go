package caddymodule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/store/bolt"
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

// A store that fails during the request owes the run, and also one of which nobody knows
// whether it counted it. It gets both back when it is well again, or at the latest when it is
// closed.
func TestRunsThatTheStoreOwesAreGivenBack(t *testing.T) {
	for name, fail := range map[string]func(s *site, key string){
		"the store fails during the request": func(s *site, key string) {
			s.model = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				s.breakStore()
				countless.Store(s.path, true)
				return answering("application/json", completion("Paris."))(w, r)
			})
			for _, path := range []string{"/v1/chat/completions", "/lex/govern"} {
				body := map[bool]string{true: question, false: chatQuestion}[path == "/lex/govern"]
				if w := s.post(path, body, "X-Lex-Api-Key", key); w.Code < 500 {
					t.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
				s.mendStore()
				countless.Delete(s.path)
			}
		},
		"the count's answer is lost": func(s *site, key string) {
			countless.Store(s.path, true)
			for range 2 {
				if w := s.post("/v1/chat/completions", chatQuestion, "X-Lex-Api-Key", key); w.Code != http.StatusServiceUnavailable {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := answering("application/json", completion("Paris."))
			s, key := planSite(t, 2, answer)
			fail(s, key)
			s.mendStore()
			countless.Delete(s.path)
			s.model = answer
			for range 2 {
				for w := s.post("/lex/govern", question, "X-Lex-Api-Key", key); w.Code != http.StatusOK; w = s.post("/lex/govern", question, "X-Lex-Api-Key", key) {
					if w.Code != http.StatusTooManyRequests || t.Context().Err() != nil {
						t.Fatalf("%d %s", w.Code, w.Body)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			if w := s.post("/lex/govern", question, "X-Lex-Api-Key", key); w.Code != http.StatusTooManyRequests {
				t.Errorf("a run too many was given back: %d %s", w.Code, w.Body)
			}

			s, key = planSite(t, 2, answer)
			fail(s, key)
			s.mendStore()
			countless.Delete(s.path)
			s.stop()
			db, err := bolt.Open(s.path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			keys, err := db.Keys(t.Context())
			if err != nil || len(keys) != 1 {
				t.Fatalf("%v %v", keys, err)
			}
			if n, err := db.Consumed(t.Context(), "plan:"+keys[0].ID); n != 0 || err != nil {
				t.Errorf("after the stop %d runs are counted (%v)", n, err)
			}
		})
	}
}

// What the provider failed costs no run, wherever it was asked and however far its answer
// came. A mistake in what the client sent, a refusal and a client that hung up cost one.
func TestRunsThatTheProviderFailedAreGivenBack(t *testing.T) {
	const unknownPath, embeddings, messages = "/v1/anything", "/v1/embeddings", "/v1/messages"
	status := func(status int) answerTo {
		return func(w http.ResponseWriter, _ *http.Request, _ func()) error {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, err := io.WriteString(w, `{"error":{"message":"no","type":"no"}}`)
			return err
		}
	}
	says := func(contentType string, pieces ...string) answerTo {
		return func(w http.ResponseWriter, r *http.Request, _ func()) error {
			return answering(contentType, strings.Join(pieces, ""))(w, r)
		}
	}
	breaksOffBehind := func(pieces ...string) answerTo {
		return func(w http.ResponseWriter, r *http.Request, leave func()) error {
			_ = says("text/event-stream", pieces...)(w, r, leave)
			panic(http.ErrAbortHandler)
		}
	}
	leavesAnd := func(then answerTo) answerTo {
		return func(w http.ResponseWriter, r *http.Request, leave func()) error {
			leave()
			return then(w, r, leave)
		}
	}
	const sse = "text/event-stream"
	paris := chunk("", map[int]string{0: "Paris."})
	failed := strings.Replace(reply(said("msg_1", "Paris")), `"status":"completed"`, `"status":"failed"`, 1)
	type failure struct {
		path, body string
		answer     answerTo
		counted    bool
	}
	cases := map[string]failure{
		"broken off before its beginning":    {"/v1/chat/completions", chatStreamed, breaksOffBehind(": hello\n\n"), false},
		"broken off behind a text":           {"/v1/chat/completions", chatStreamed, breaksOffBehind(paris), false},
		"without its end":                    {"/v1/chat/completions", chatStreamed, says(sse, paris), false},
		"an error as its first frame":        {"/v1/chat/completions", chatStreamed, says(sse, `data: {"error":{"message":"no"}}`+"\n\n"), false},
		"an error behind a text":             {"/v1/chat/completions", chatStreamed, says(sse, paris, `data: {"error":{"message":"no"}}`+"\n\n"), false},
		"an error event":                     {messages, strings.Replace(chatStreamed, "{", `{"max_tokens":9,`, 1), says(sse, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n"), false},
		"an error as a whole answer":         {"/v1/chat/completions", chatQuestion, says("application/json", `{"error":{"message":"no"}}`), false},
		"an error and a note":                {"/v1/chat/completions", chatQuestion, says("application/json", `{"error":{"message":"no"},"note":"later"}`), false},
		"an error of Ollama":                 {"/api/chat", strings.Replace(chatQuestion, "{", `{"stream":false,`, 1), says("application/json", `{"error":"no"}`), false},
		"an error of Anthropic":              {messages, strings.Replace(chatQuestion, "{", `{"max_tokens":9,`, 1), says("application/json", `{"type":"error","error":{"type":"overloaded_error","message":"no"}}`), false},
		"status failed":                      {"/v1/responses", replyQuestion, says("application/json", failed), false},
		"status failed in a stream":          {"/v1/responses", replyStreamed, says(sse, "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":0,\"response\":"+failed+"}\n\n"), false},
		"an unknown endpoint breaks off":     {unknownPath, `{"size":"big"}`, breaksOffBehind(`{"half":`), false},
		"an unknown endpoint is not reached": {unknownPath, `{"size":"big"}`, func(http.ResponseWriter, *http.Request, func()) error { return errors.New("no route") }, false},
		"a foreign chat endpoint":            {"/gateway/ask", chatQuestion, status(500), false},

		"answered":                             {"/v1/chat/completions", chatQuestion, says("application/json", completion("Paris.")), true},
		"refused":                              {"/v1/chat/completions", chatQuestion, says("application/json", completion(capitulation)), true},
		"refused in a stream that broke off":   {"/v1/chat/completions", chatStreamed, breaksOffBehind(chunk("", map[int]string{0: capitulation})), true},
		"an unknown endpoint answers":          {unknownPath, `{"size":"big"}`, says("application/json", `{}`), true},
		"the client left, and 500":             {"/v1/chat/completions", chatQuestion, leavesAnd(status(500)), true},
		"the client left, and a broken stream": {"/v1/chat/completions", chatStreamed, leavesAnd(breaksOffBehind(paris)), true},
		"the client left an unknown endpoint":  {unknownPath, `{"size":"big"}`, leavesAnd(breaksOffBehind(`{"half":`)), true},
		"the client left before any answer":    {unknownPath, `{"size":"big"}`, leavesAnd(status(500)), true},
	}
	for code, counted := range map[int]bool{
		500: false, 502: false, 503: false, 529: false, 401: false, 402: false, 403: false, 408: false, 429: false,
		400: true, 404: true, 413: true, 422: true,
	} {
		for path, body := range map[string]string{
			"/v1/chat/completions": chatQuestion, embeddings: `{"model":"m","input":"hello you"}`, unknownPath: `{"size":"big"}`,
			messages: strings.Replace(chatQuestion, "{", `{"max_tokens":9,`, 1), "/v1/responses": replyQuestion,
		} {
			cases[fmt.Sprintf("%d to %s", code, path)] = failure{path, body, status(code), counted}
		}
		// What /lex/govern sends is not the client's.
		cases[fmt.Sprintf("%d to /lex/govern", code)] = failure{"/lex/govern", question, status(code), false}
	}
	for _, unknown := range []string{"inspect", "pass"} {
		var answer answerTo
		var leave func()
		s, _ := planSiteWith(t, `{"baseline":"never","unknown":"`+unknown+`"}`, 1, func(w http.ResponseWriter, r *http.Request) error {
			return answer(w, r, leave)
		})
		s.left = []error{} // unknown pass leaves them to Caddy
		for name, c := range cases {
			key := newKey(s, `{"name":"a","plan":"small"}`)
			for attempt := range 3 {
				var ctx context.Context
				ctx, leave = context.WithCancel(t.Context())
				answer = c.answer
				w := s.keyed(ctx, c.path, c.body, key)
				leave()
				exhausted := strings.Contains(w.Body.String(), `"plan_exhausted"`)
				if want := c.counted && attempt > 0; exhausted != want {
					t.Errorf("unknown %s, %s, attempt %d: exhausted should be %v: %d %.200s", unknown, name, attempt, want, w.Code, w.Body)
				}
			}
		}
	}
}

// A failed answer of the provider is none, whatever text it has.
func TestAFailedResponseIsNoAnswer(t *testing.T) {
	failed := strings.Replace(reply(said("msg_1", "Paris")), `"status":"completed"`, `"status":"failed"`, 1)
	s, key := planSiteWith(t, `{"baseline":"never","upstream_dialect":"openai_responses"}`, 1, answering("application/json", failed))
	for range 3 {
		if w := s.post("/lex/govern", question, "X-Lex-Api-Key", key); !strings.Contains(w.Body.String(), `"provider_exhausted"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// An answerTo is what a model does with a request; leave ends its client.
type answerTo func(w http.ResponseWriter, r *http.Request, leave func()) error

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
