package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-lex/lex/model"
)

// moody is a judge's server that does with an answer what the answer says. It closes its
// connections, as flaky does.
type moody struct {
	*httptest.Server
	asked   atomic.Int32
	hanging atomic.Int32
	release chan struct{}
}

func newMoody(t *testing.T) *moody {
	t.Helper()
	m := &moody{release: make(chan struct{})}
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		w.Header().Set("Connection", "close")
		var q chatRequest
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &q)
		switch said := q.Messages[1].Content; {
		case strings.Contains(said, "FAIL"):
			w.WriteHeader(http.StatusInternalServerError)
			return
		case strings.Contains(said, "PAUSE"):
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		case strings.Contains(said, "DECLINE"):
			_, _ = io.WriteString(w, chatAnswer("I'm sorry, I can't help with that."))
			return
		case strings.Contains(said, "HANG"):
			m.hanging.Add(1)
			defer m.hanging.Add(-1)
			select {
			case <-m.release:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, chatAnswer(judgementNone))
	}))
	m.Config.SetKeepAlivesEnabled(false)
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// judge asks as a namespace and tells why there was no judgement.
func (m *moody) judge(t *testing.T, timeout time.Duration) func(ctx context.Context, namespace, answer string) model.Failure {
	t.Helper()
	return m.observed(t, timeout, nil)
}

// observed is judge with an observer.
func (m *moody) observed(t *testing.T, timeout time.Duration, o model.Observer) func(ctx context.Context, namespace, answer string) model.Failure {
	t.Helper()
	j, err := model.NewJudge(model.Config{BaseURL: m.URL, Model: "gpt", Timeout: timeout}, o)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, namespace, answer string) model.Failure {
		_, err := j.Judge(ctx, namespace, "p", answer)
		return model.Why(err)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	for t.Context().Err() == nil {
		if met() {
			return
		}
		runtime.Gosched()
	}
	t.Fatal("never: " + what)
}

// The failures of one caller keep that caller from asking, and nobody else.
func TestBreakerIsFair(t *testing.T) {
	for _, mood := range []string{"FAIL", "DECLINE"} {
		m := newMoody(t)
		ask := m.judge(t, time.Minute)
		for range 12 {
			ask(t.Context(), "key:a", mood)
		}
		asked := m.asked.Load()
		if why := ask(t.Context(), "key:a", "fine"); why != model.BreakerOpen || asked >= 12 || asked != m.asked.Load() {
			t.Errorf("%s: %q after %d requests", mood, why, asked)
		}
		if why := ask(t.Context(), "key:b", "fine"); why != "" {
			t.Errorf("%s: another caller: %q", mood, why)
		}
	}
}

// Answers that are no judgements can be brought about by a text, so no number of
// callers who send such texts keeps another from asking.
func TestUnusableAnswersAreTheCallersOwn(t *testing.T) {
	m := newMoody(t)
	ask := m.judge(t, time.Minute)
	for i := range 20 {
		ask(t.Context(), fmt.Sprint("key:", i), "DECLINE")
	}
	if why := ask(t.Context(), "key:x", "fine"); why != "" {
		t.Errorf("%q", why)
	}
}

// When nobody succeeds the breaker opens for all, also for those who have not
// asked yet.
func TestBreakerOfAll(t *testing.T) {
	m := newMoody(t)
	ask := m.judge(t, time.Minute)
	for i := range 4 {
		for range 3 {
			ask(t.Context(), fmt.Sprint("key:", i), "FAIL")
		}
	}
	if why := ask(t.Context(), "key:x", "fine"); why != "" {
		t.Fatalf("four callers with failures stopped a fifth: %q", why)
	}
	for i := range 5 {
		ask(t.Context(), fmt.Sprint("key:y", i), "FAIL")
	}
	asked := m.asked.Load()
	if why := ask(t.Context(), "key:z", "fine"); why != model.BreakerOpen || m.asked.Load() != asked {
		t.Errorf("after five callers in a row that failed: %q", why)
	}
}

// A turn counts once however many pieces it has, and a long text that takes too
// long says nothing of the provider.
func TestBreakerCountsTurns(t *testing.T) {
	long := strings.Repeat("word ", model.MaxJudged/5)
	m := newMoody(t)
	ask := m.judge(t, time.Minute)
	for range 4 {
		if why := ask(t.Context(), "key:a", strings.ReplaceAll(long, "word", "FAIL")); why != model.ServerError {
			t.Fatal(why)
		}
	}
	if why := ask(t.Context(), "key:a", "fine"); why != "" {
		t.Errorf("%q after four turns that failed", why)
	}
	hurried := m.judge(t, 20*time.Millisecond)
	for range 8 {
		if why := hurried(t.Context(), "key:a", strings.ReplaceAll(long, "word", "HANG")); why != model.Timeout {
			t.Fatal(why)
		}
	}
	for range 5 {
		if why := hurried(t.Context(), "key:a", "HANG"); why != model.Timeout {
			t.Errorf("%q: long texts opened the breaker", why)
		}
	}
	if why := hurried(t.Context(), "key:a", "HANG"); why != model.BreakerOpen {
		t.Errorf("%q after five short texts that took too long", why)
	}
}

// A caller who floods waits behind himself: half of the slots stay free for
// others, no more than so many wait, and who waits in vain is told so.
func TestFloodsWaitBehindThemselves(t *testing.T) {
	m := newMoody(t)
	ask := m.judge(t, time.Hour)
	var flood sync.WaitGroup
	var done, busy atomic.Int32
	begin := func(namespace string, n int) {
		for range n {
			flood.Go(func() {
				switch why := ask(t.Context(), namespace, "HANG"); why {
				case "":
					done.Add(1)
				case model.Busy:
					busy.Add(1)
				default:
					t.Errorf("flooding: %q", why)
				}
			})
		}
	}
	begin("key:a", 64+256+9)
	until(t, "64 on their way and 9 turned away", func() bool { return m.hanging.Load() == 64 && busy.Load() == 9 })
	for range 3 {
		if why := ask(t.Context(), "key:b", "fine"); why != "" {
			t.Errorf("another caller: %q", why)
		}
	}
	begin("key:c", 60)
	until(t, "32 more", func() bool { return m.hanging.Load() == 96 })
	if why := ask(t.Context(), "key:b", "fine"); why != "" {
		t.Errorf("another caller between two that flood: %q", why)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	late, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if one, other := ask(gone, "key:c", "fine"), ask(late, "key:c", "fine"); one != model.Cancelled || other != model.Busy {
		t.Errorf("waiting in vain: %q and %q", one, other)
	}
	close(m.release)
	flood.Wait()
	if done.Load() != 64+256+60 {
		t.Errorf("%d of those who waited were answered", done.Load())
	}
	for _, namespace := range []string{"key:a", "key:b", "key:c"} { // no slot is lost, no breaker open
		if why := ask(t.Context(), namespace, "fine"); why != "" {
			t.Errorf("%s afterwards: %q", namespace, why)
		}
	}
}

// Embedder and judge have slots and a breaker of their own each, and the
// embedder is as fair.
func TestEmbedderIsFair(t *testing.T) {
	p := newProvider(t)
	e := openAI(t, p.URL)
	p.vector = func(text string) any {
		if strings.Contains(text, "nothing") {
			return []float64{0, 0}
		}
		return embed(text)
	}
	for range 12 {
		_, _ = e.Threat(t.Context(), "key:a", "nothing")
	}
	if _, err := e.Threat(t.Context(), "key:a", "fine"); model.Why(err) != model.BreakerOpen {
		t.Errorf("twelve unusable answers in a row: %v", err)
	}
	if _, err := e.Threat(t.Context(), "key:b", "fine"); err != nil {
		t.Errorf("another caller: %v", err)
	}
}
