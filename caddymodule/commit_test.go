package caddymodule_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/store"
)

// troubles are what metrics say of failures of ours.
func troubles(t *testing.T) map[string]float64 {
	t.Helper()
	return map[string]float64{
		"store":     metric(t, "lex_store_errors_total"),
		"internal":  metric(t, "lex_internal_errors_total"),
		"input":     metric(t, "lex_internal_errors_total", "kind", "kernel_input", "operation", "session"),
		"failed":    metric(t, "lex_requests_total", "outcome", "failed"),
		"cancelled": metric(t, "lex_requests_total", "outcome", "left"),
	}
}

func rise(t *testing.T, before map[string]float64) map[string]float64 {
	t.Helper()
	after := troubles(t)
	for name := range after {
		after[name] -= before[name]
	}
	return after
}

// nobodyReads is the writer of a caller who left, whose answer is not looked at.
type nobodyReads struct{ http.ResponseWriter }

// A caller who leaves is no failure of the store, wherever it happens.
func TestCallersWhoLeaveAreNoFailure(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	before := troubles(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, call := range []struct{ method, path, body string }{
		{http.MethodPost, "/lex/govern", question},
		{http.MethodPost, "/lex/govern/stream", question},
		{http.MethodPost, "/lex/tools/check", `{"session_id":"s","tool":{"name":"ls"}}`},
		{http.MethodPost, "/v1/chat/completions", chatQuestion},
		{http.MethodPost, "/v1/other", "a text"},
		{http.MethodPost, "/audits/verify", `{"receipt_id":"KRN-00000000000000000000000000000000"}`},
		{http.MethodGet, "/audits/recent", ""},
		{http.MethodGet, "/stats", ""},
		{http.MethodGet, "/benchmarks", ""},
	} {
		for range 20 { // some are left alone before they reach the store
			r := httptest.NewRequest(call.method, "http://site.test"+call.path, strings.NewReader(call.body)).WithContext(gone)
			s.serve(nobodyReads{httptest.NewRecorder()}, r)
		}
	}
	if got := rise(t, before); got["store"] != 0 || got["internal"] != 0 || got["failed"] != 0 {
		t.Errorf("counted %v", got)
	}
}

// A fault of the kernel is counted as one: the store did what it was asked.
func TestKernelErrorsAreNoFailureOfTheStore(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	s.meddle(func(ctx context.Context, t store.Change, commit func(context.Context, store.Change) error) error {
		t.Session.State.CUSUM = -1 // which no step leaves
		return commit(ctx, t)
	})
	govern(s, question)
	before := troubles(t)
	w := s.post("/lex/govern", question)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "governor_unavailable") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := rise(t, before); got["store"] != 0 || got["internal"] != 1 || got["input"] != 1 || got["failed"] != 1 {
		t.Errorf("counted %v", got)
	}
}

// A commit whose answer is late or lost is repeated once, so that a store that
// is merely slow does not keep a receipt of an answer that nobody got. If both are
// lost, nobody can tell whether the receipt is there, and the answer is not sent.
func TestLateCommits(t *testing.T) {
	written := func(ctx context.Context, t store.Change, commit func(context.Context, store.Change) error) error {
		if err := commit(ctx, t); err != nil {
			return err
		}
		<-ctx.Done()
		return fmt.Errorf("writing: %w", ctx.Err())
	}
	unwritten := func(ctx context.Context, _ store.Change, _ func(context.Context, store.Change) error) error {
		<-ctx.Done()
		return fmt.Errorf("writing: %w", ctx.Err())
	}
	lost := func(ctx context.Context, t store.Change, commit func(context.Context, store.Change) error) error {
		if err := commit(ctx, t); err != nil {
			return err
		}
		return fmt.Errorf("committing: %w: timed out", store.ErrUnavailable)
	}
	for name, test := range map[string]struct {
		tries    []meddler
		took     time.Duration
		ok       bool
		receipts int
	}{
		"written late":      {[]meddler{written}, 5 * time.Second, true, 1},
		"never written":     {[]meddler{unwritten}, 5 * time.Second, true, 1},
		"answer lost":       {[]meddler{lost}, 0, true, 1},
		"lost twice":        {[]meddler{lost, lost}, 0, false, 1},
		"late twice":        {[]meddler{unwritten, unwritten}, 10 * time.Second, false, 0},
		"asked three times": {[]meddler{unwritten, unwritten, unwritten}, 10 * time.Second, false, 0},
	} {
		for path, body := range map[string]string{"/lex/govern": question, "/v1/chat/completions": chatQuestion} {
			t.Run(name+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
					var asked atomic.Int32
					s.meddle(func(ctx context.Context, turn store.Change, commit func(context.Context, store.Change) error) error {
						if n := int(asked.Add(1)); n <= len(test.tries) {
							return test.tries[n-1](ctx, turn, commit)
						}
						return commit(ctx, turn)
					})
					before, began := troubles(t), time.Now()
					w := s.post(path, body)
					if took := time.Since(began).Truncate(time.Second); took != test.took || (w.Code == http.StatusOK) != test.ok {
						t.Errorf("%d after %v: %s", w.Code, took, w.Body)
					}
					if n := len(s.receipts()); n != test.receipts {
						t.Errorf("%d receipts", n)
					}
					if got := rise(t, before); (got["store"] == 1) == test.ok || got["internal"] != 0 {
						t.Errorf("counted %v", got)
					}
				})
			})
		}
	}
}

// Who waits for another turn of the session waits no longer than for the store.
func TestWaitingForASessionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
		hung, mend := make(chan struct{}), make(chan struct{})
		s.meddle(func(ctx context.Context, turn store.Change, commit func(context.Context, store.Change) error) error {
			close(hung)
			<-mend // whatever its context says
			return commit(context.WithoutCancel(ctx), turn)
		})
		var first sync.WaitGroup
		first.Go(func() {
			if w := s.post("/lex/govern", question); w.Code != http.StatusOK {
				t.Errorf("the first: %d %s", w.Code, w.Body)
			}
		})
		<-hung
		began := time.Now()
		w := s.post("/lex/govern", question)
		if took := time.Since(began).Truncate(time.Second); took != 5*time.Second || w.Code != http.StatusInternalServerError {
			t.Errorf("%d after %v: %s", w.Code, took, w.Body)
		}
		close(mend)
		first.Wait()
		if n := len(s.receipts()); n != 1 {
			t.Errorf("%d receipts", n)
		}
	})
}
