package model_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/model"
)

// flaky is a judge's server whose health a test sets. It closes its connections,
// so that nothing of a client waits for the network when a bubble's clock moves.
type flaky struct {
	*httptest.Server
	code       atomic.Int32 // 0: healthy
	retryAfter atomic.Value // string
	asked      atomic.Int32
}

func newFlaky(t *testing.T) *flaky {
	t.Helper()
	f := new(flaky)
	f.retryAfter.Store("")
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		w.Header().Set("Connection", "close")
		if code := f.code.Load(); code != 0 {
			w.Header().Set("Retry-After", f.retryAfter.Load().(string))
			w.WriteHeader(int(code))
			return
		}
		body(chatAnswer(judgementNone))(w, r)
	}))
	f.Config.SetKeepAlivesEnabled(false)
	f.Start()
	t.Cleanup(f.Close)
	return f
}

func (f *flaky) judge(t *testing.T, o model.Observer) func() model.Failure {
	t.Helper()
	ask := clients["judge"](model.Config{BaseURL: f.URL, Timeout: time.Hour}, o)
	return func() model.Failure { return model.Why(ask(t.Context())) }
}

// After five failures in a row nobody is asked for a while; then one call
// decides whether it goes on.
func TestBreaker(t *testing.T) {
	f, seen := newFlaky(t), new(observer)
	synctest.Test(t, func(t *testing.T) {
		ask := f.judge(t, seen)
		f.code.Store(500)
		for range 5 {
			if why := ask(); why != model.ServerError {
				t.Fatal(why)
			}
		}
		if seen.why != model.ServerError {
			t.Errorf("opened by %q", seen.why)
		}
		if why := ask(); why != model.BreakerOpen || f.asked.Load() != 5 {
			t.Errorf("%q after %d requests", why, f.asked.Load())
		}
		time.Sleep(16 * time.Second)
		if why := ask(); why != model.ServerError {
			t.Errorf("%q: nobody looked again", why)
		}
		if why := ask(); why != model.BreakerOpen {
			t.Errorf("%q after a failed look", why)
		}
		f.code.Store(0)
		time.Sleep(16 * time.Second)
		for range 2 {
			if why := ask(); why != "" {
				t.Errorf("%q after the recovery", why)
			}
		}
	})
	if !slices.Equal(seen.breakers, []bool{true, false}) {
		t.Errorf("told %v", seen.breakers)
	}
}

// A provider that asks for a pause gets it, at once and in full, up to a bound.
func TestRetryAfter(t *testing.T) {
	for name, test := range map[string]struct {
		code   int32
		header string
		pause  time.Duration
	}{
		"seconds":     {429, "30", 30 * time.Second},
		"overloaded":  {503, "7", 7 * time.Second},
		"a date":      {429, "date", 40 * time.Second},
		"a long time": {429, "86400", 5 * time.Minute},
		"a far date":  {429, "Fri, 01 Jan 2100 00:00:00 GMT", 5 * time.Minute},
		"garbage":     {429, "soon", 0},
		"negative":    {429, "-5", 0},
		"the past":    {429, "Fri, 01 Jan 1999 00:00:00 GMT", 0},
		"other code":  {500, "30", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlaky(t)
			synctest.Test(t, func(t *testing.T) {
				ask := f.judge(t, nil)
				f.code.Store(test.code)
				f.retryAfter.Store(test.header)
				if test.header == "date" {
					f.retryAfter.Store(time.Now().Add(test.pause).UTC().Format(http.TimeFormat))
				}
				ask()
				f.code.Store(0)
				if test.pause > 0 {
					time.Sleep(test.pause - time.Second)
					if why := ask(); why != model.BreakerOpen {
						t.Errorf("%q within the pause", why)
					}
					time.Sleep(2 * time.Second)
				}
				if why := ask(); why != "" {
					t.Errorf("%q after the pause", why)
				}
			})
		})
	}
}

// Of the pauses that answers to calls at the same time ask for, the longest holds.
func TestTheLongestPauseHolds(t *testing.T) {
	var asked atomic.Int32
	both, first := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		pause := "30"
		if asked.Add(1) == 2 {
			close(both)
			<-first
			pause = "1"
		}
		<-both
		w.Header().Set("Retry-After", pause)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	synctest.Test(t, func(t *testing.T) {
		ask := (&flaky{Server: server}).judge(t, nil)
		done := make(chan model.Failure)
		for range 2 {
			go func() { done <- ask() }()
		}
		<-done
		close(first)
		<-done
		time.Sleep(10 * time.Second)
		if why := ask(); why != model.BreakerOpen {
			t.Errorf("%q within the longer pause", why)
		}
	})
}

// Nobody can open the breaker with requests that are bad by themselves.
func TestBadRequestsDoNotOpenTheBreaker(t *testing.T) {
	f, seen := newFlaky(t), new(observer)
	ask := f.judge(t, seen)
	f.code.Store(400)
	for range 20 {
		if why := ask(); why != model.Rejected {
			t.Fatal(why)
		}
	}
	f.code.Store(0)
	if why := ask(); why != "" || len(seen.breakers) != 0 {
		t.Errorf("%q, breaker %v", why, seen.breakers)
	}
}

// An answer to a question that was asked before the breaker opened closes nothing: nobody
// who was kept back may ask again.
func TestAnswersFromBeforeCloseNothing(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(ask func(namespace, said string))
		wait time.Duration
	}{
		"of one caller": {func(ask func(namespace, said string)) {
			for range 5 {
				ask("key:a", "FAIL")
			}
		}, 16 * time.Second},
		"of all": {func(ask func(namespace, said string)) {
			for i := range 5 {
				ask(fmt.Sprint("key:", i), "FAIL")
			}
		}, 16 * time.Second},
		"a pause": {func(ask func(namespace, said string)) { ask("key:b", "PAUSE") }, 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m, seen := newMoody(t), new(observer)
			synctest.Test(t, func(t *testing.T) {
				judge := m.observed(t, time.Hour, seen)
				ask := func(namespace, said string) model.Failure { return judge(t.Context(), namespace, said) }
				var slow sync.WaitGroup
				slow.Go(func() {
					if why := ask("key:a", "HANG"); why != "" {
						t.Errorf("the slow question: %q", why)
					}
				})
				until(t, "the slow question is asked", func() bool { return m.hanging.Load() == 1 })
				test.fail(func(namespace, said string) { ask(namespace, said) })
				close(m.release)
				slow.Wait()
				if why := ask("key:a", "fine"); why != model.BreakerOpen || !slices.Equal(seen.told(), []bool{true}) {
					t.Errorf("%q, told %v after the slow answer", why, seen.told())
				}
				time.Sleep(test.wait)
				if why := ask("key:a", "fine"); why != "" || !slices.Equal(seen.told(), []bool{true, false}) {
					t.Errorf("%q, told %v after an answer", why, seen.told())
				}
			})
		})
	}
}

// The breaker is open while any caller is kept back, though others are answered, and one
// who does not come back keeps it open no longer than it is kept back.
func TestBreakerOfOneCaller(t *testing.T) {
	m, seen := newMoody(t), new(observer)
	synctest.Test(t, func(t *testing.T) {
		judge := m.observed(t, time.Hour, seen)
		ask := func(namespace, said string) model.Failure { return judge(t.Context(), namespace, said) }
		for range 3 { // the caller looks again twice, and is kept back again
			for range 5 {
				ask("key:a", "DECLINE")
			}
			if why := ask("key:b", "fine"); why != "" || !slices.Equal(seen.told(), []bool{true}) {
				t.Errorf("%q, told %v while a caller is kept back", why, seen.told())
			}
			time.Sleep(16 * time.Second)
		}
		if why := ask("key:b", "fine"); why != "" || !slices.Equal(seen.told(), []bool{true, false}) {
			t.Errorf("%q, told %v afterwards", why, seen.told())
		}
	})
}
