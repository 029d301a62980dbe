package caddymodule_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A script says what happens to one request; leave ends its client.
type script struct {
	model    func(w http.ResponseWriter, r *http.Request, leave func()) error
	store    func(s *site, leave func()) (at string, do func()) // what happens at a store operation
	body     string
	counted  bool
	outcome  string // of the receipt, "" for none
	streamed bool   // only where tokens leave before the end
}

func thinks(_ http.ResponseWriter, r *http.Request, leave func()) error {
	leave()
	<-r.Context().Done()
	return r.Context().Err()
}

func answers(w http.ResponseWriter, r *http.Request, _ func()) error {
	return twoArms("Paris.", "Paris.")(w, r)
}

func fails(w http.ResponseWriter, _ *http.Request, _ func()) error {
	w.WriteHeader(http.StatusBadGateway)
	return nil
}

// begins streams enough that tokens leave, and then does as end says.
func begins(end func(w http.ResponseWriter, r *http.Request, leave func()) error) func(http.ResponseWriter, *http.Request, func()) error {
	return func(w http.ResponseWriter, r *http.Request, leave func()) error {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 20 {
			if _, err := io.WriteString(w, delta("Paris is the capital of France and a city on the Seine. ")); err != nil {
				return err
			}
		}
		return end(w, r, leave)
	}
}

func breaksOff(http.ResponseWriter, *http.Request, func()) error { panic(http.ErrAbortHandler) }

func whenCommitting(do func(s *site, leave func())) func(*site, func()) (string, func()) {
	return func(s *site, leave func()) (string, func()) { return "Commit", func() { do(s, leave) } }
}

// A run is given back when we or the provider failed and the client is still
// there. Who hangs up after the model was asked has had a call made for them:
// otherwise hanging up would be a way to use a plan of three runs forty times.
func TestLeavingKeepsTheRunCounted(t *testing.T) {
	refused := `{"prompt":"` + attack + `","session_id":"s"}`
	for name, c := range map[string]script{
		"answered":                               {model: answers, counted: true, outcome: "answered"},
		"leaves while the model thinks":          {model: thinks, counted: true, outcome: "client_gone"},
		"leaves after tokens":                    {model: begins(thinks), counted: true, outcome: "client_gone", streamed: true},
		"leaves while the turn is committed":     {model: answers, store: whenCommitting(func(_ *site, leave func()) { leave() }), counted: true, outcome: "answered"},
		"leaves while the store breaks":          {model: answers, store: whenCommitting(func(s *site, leave func()) { leave(); s.breakStore() }), counted: true},
		"leaves a failing model, the store down": {model: thinks, store: whenCommitting(func(s *site, _ func()) { s.breakStore() }), counted: true},
		"leaves before the model is asked": {
			model: answers, store: func(_ *site, leave func()) (string, func()) { return "Session", leave },
			counted: false,
		},
		"leaves a refused prompt": {model: thinks, body: refused, counted: true, outcome: "client_gone"},
		"the store breaks":        {model: answers, store: whenCommitting(func(s *site, _ func()) { s.breakStore() }), counted: false},
		"the provider fails":      {model: fails, counted: false, outcome: "provider_failed"},
		"the provider breaks off": {model: begins(breaksOff), counted: false, outcome: "aborted", streamed: true},
	} {
		for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
			if c.streamed && path == "/lex/govern" {
				continue
			}
			t.Run(name+path, func(t *testing.T) { c.run(t, path) })
		}
	}
}

func (c script) run(t *testing.T, path string) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var done atomic.Bool
	s, key := planSiteWith(t, `{"baseline":"always"}`, 1, func(w http.ResponseWriter, r *http.Request) error {
		if done.Load() {
			return answers(w, r, nil)
		}
		return c.model(w, r, leave)
	})
	if c.store != nil {
		at, do := c.store(s, leave)
		storeHooks.Store(s.path, func(operation string) {
			if operation == at {
				do()
			}
		})
	}
	if c.body == "" {
		c.body = question
	}
	s.keyed(ctx, path, c.body, key)
	storeHooks.Delete(s.path)
	s.mendStore()
	done.Store(true)
	if list := s.receipts(); len(list) > 0 && list[0]["outcome"] != c.outcome || (len(list) > 0) != (c.outcome != "") {
		t.Errorf("want the outcome %q, receipts %v", c.outcome, list)
	}
	if w := s.keyed(t.Context(), path, question, key); (w.Code == http.StatusTooManyRequests) != c.counted {
		t.Errorf("counted should be %v, the next request is answered %d %.60s", c.counted, w.Code, w.Body)
	}
}

// keyed sends a request of a client that may leave.
func (s *site) keyed(ctx context.Context, path, body, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://site.test"+path, strings.NewReader(body))
	r.Header.Set("X-Lex-Api-Key", key)
	w := httptest.NewRecorder()
	s.serve(w, r)
	return w
}

// A plan of three runs makes three turns' calls to the model, however many
// clients hang up.
func TestHangingUpBuysNoCalls(t *testing.T) {
	var calls atomic.Int32
	var leave context.CancelFunc
	s, key := planSite(t, 3, func(_ http.ResponseWriter, r *http.Request) error {
		calls.Add(1)
		leave()
		<-r.Context().Done()
		return r.Context().Err()
	})
	for i := range 40 {
		var ctx context.Context
		ctx, leave = context.WithCancel(t.Context())
		s.keyed(ctx, []string{"/lex/govern", "/lex/govern/stream", "/v1/chat/completions"}[i%3], []string{question, question, chatQuestion}[i%3], key)
		leave()
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls to the model", n)
	}
}

// A model that takes longer than we wait has failed; its client has not left.
func TestOurTimeoutIsTheProvidersFailure(t *testing.T) {
	for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
		s := newSite(t, `{"timeout":1000000}`, func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		})
		w := s.post(path, question)
		if receipt := s.receipts()[0]; w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"provider_exhausted"`) || receipt["outcome"] != "provider_failed" {
			t.Errorf("%s: %d %s, outcome %v", path, w.Code, w.Body, receipt["outcome"])
		}
	}
}

// Nothing goes to the model for a client that leaves while a guard is asked about its prompt,
// and the receipt says so.
func TestLeavingWhileAGuardIsAsked(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": chatQuestion, "/lex/govern": question, "/lex/govern/stream": question,
		"/of/no/dialect": `{"asked":"What is the capital of France, and how many people live there?"}`, "/resembling": chatQuestion,
	} {
		ctx, leave := context.WithCancel(t.Context())
		t.Cleanup(leave)
		guard := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			leave()
			<-r.Context().Done()
		}))
		t.Cleanup(guard.Close)
		asked := false
		s := newSiteWith(t, `{}`, map[string]any{"guards": []any{map[string]any{"name": "g", "kind": "chat", "model": "m", "base_url": guard.URL, "api_key": "k", "ask": "always"}}}, func(w http.ResponseWriter, r *http.Request) error {
			asked = true
			return answers(w, r, nil)
		})
		r := httptest.NewRequest(http.MethodPost, "http://site.test"+path, strings.NewReader(body)).WithContext(ctx)
		s.serve(nobodyReads{httptest.NewRecorder()}, r)
		for _, receipt := range s.turns() {
			if sent := receipt["coverage"].(map[string]any)["bytes_forwarded"]; sent != 0.0 || receipt["outcome"] != "client_gone" || asked {
				t.Errorf("%s: %v, %v bytes were forwarded, asked %v", path, receipt["outcome"], sent, asked)
			}
		}
		if n := len(s.turns()); n != 1 {
			t.Errorf("%s: %d receipts", path, n)
		}
	}
}
