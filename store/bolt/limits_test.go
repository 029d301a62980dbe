package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

// clock is a clock that a test turns.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// consume counts one of two requests and returns what is left of the window.
func consume(t *testing.T, s *bolt.Store, subject string, window time.Duration, want bool) time.Duration {
	t.Helper()
	a, err := s.Consume(t.Context(), subject, "", 2, window)
	must(t, err)
	if a.Allowed != want {
		t.Fatalf("%s: %+v, want allowed %v", subject, a, want)
	}
	return a.Reset
}

func TestWindowFollowsTheClock(t *testing.T) {
	c := newClock()
	s := open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{Now: c.Now})
	for _, window := range []time.Duration{20 * time.Second, time.Minute, 720 * time.Hour} {
		subject := window.String()
		if got := consume(t, s, subject, window, true); got != window {
			t.Errorf("a new window of %v ends in %v", window, got)
		}
		c.Advance(window / 4)
		consume(t, s, subject, window, true)
		c.Advance(window/2 - time.Nanosecond)
		if got, want := consume(t, s, subject, window, false), window/4+time.Nanosecond; got != want {
			t.Errorf("the window ends in %v, want %v", got, want)
		}
		c.Advance(window/4 + time.Nanosecond) // the very end belongs to the next window
		if got := consume(t, s, subject, window, true); got != window {
			t.Errorf("the next window ends in %v, want %v", got, window)
		}
	}
}

func TestLastingWindowSurvivesRestart(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "lex.db")
	const month, minute = 720 * time.Hour, time.Minute
	restart := func(s *bolt.Store) *bolt.Store {
		if s != nil {
			must(t, s.Close())
		}
		return open(t, path, bolt.Options{Now: c.Now})
	}
	s, runs := restart(nil), 0
	run := func(subject string, window time.Duration, want bool) {
		t.Helper()
		runs++
		a, err := s.Consume(t.Context(), subject, fmt.Sprint("run ", runs), 2, window)
		must(t, err)
		if a.Allowed != want {
			t.Fatalf("%s: %+v, want allowed %v", subject, a, want)
		}
	}
	consume(t, s, "plan", month, true)
	run("plan", month, true)
	run("brief plan", minute, true)
	run("brief plan", minute, true)
	consume(t, s, "rate", minute, true)
	consume(t, s, "rate", minute, true)
	c.Advance(time.Second)

	s = restart(s)
	if got, want := consume(t, s, "plan", month, false), month-time.Second; got != want {
		t.Errorf("the month ends in %v, want %v", got, want)
	}
	consume(t, s, "rate", minute, true) // rates begin anew when they are brief
	run("brief plan", minute, false)
	must(t, s.Refund(t.Context(), "plan", "run 1")) // which was counted by another process
	consume(t, s, "plan", month, false)
	c.Advance(minute)
	run("brief plan", minute, true)
	run("brief plan", minute, true)

	s = restart(s)
	run("brief plan", minute, false)
	c.Advance(month)

	s = restart(s)
	consume(t, s, "plan", month, true)
	run("plan", month, true)
	consume(t, s, "plan", month, false)
	must(t, s.Refund(t.Context(), "plan", fmt.Sprint("run ", runs)))

	s = restart(s)
	consume(t, s, "plan", month, true) // the request that was refunded
	consume(t, s, "plan", month, false)
	c.Advance(month)

	s = restart(s)
	if got := consume(t, s, "plan", month, true); got != month {
		t.Errorf("after the month a new one ends in %v, want %v", got, month)
	}
}

// A lasting window that began while the clock was ahead is read from the file when it is right again.
func TestWindowOfAClockThatWasAhead(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "lex.db")
	const window = 2 * time.Hour
	restart := func(s *bolt.Store) *bolt.Store {
		must(t, s.Close())
		return open(t, path, bolt.Options{Now: c.Now})
	}
	c.Advance(365 * 24 * time.Hour)
	s := open(t, path, bolt.Options{Now: c.Now})
	consume(t, s, "plan", window, true)
	consume(t, s, "plan", window, true)
	c.Advance(-365 * 24 * time.Hour)

	s = restart(s)
	if got := consume(t, s, "plan", window, false); got != window {
		t.Errorf("the window ends in %v, want %v", got, window)
	}
	c.Advance(window / 2)
	s = restart(s) // which is not to begin the wait anew
	if got := consume(t, s, "plan", window, false); got != window/2 {
		t.Errorf("after a restart the window ends in %v, want %v", got, window/2)
	}
	c.Advance(window / 2)
	if got := consume(t, s, "plan", window, true); got != window {
		t.Errorf("the next window ends in %v, want %v", got, window)
	}
}

// A request whose count cannot be saved is not counted, and it can be sent again under its name.
func TestCountsThatCannotBeSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	const month = 720 * time.Hour
	want := func(run string, remaining int) {
		t.Helper()
		a, err := s.Consume(t.Context(), "plan", run, 3, month)
		must(t, err)
		if !a.Allowed || a.Remaining != remaining {
			t.Errorf("%q: %+v, want %d remaining", run, a, remaining)
		}
	}
	want("first", 2)
	must(t, os.Rename(path, path+".away"))
	for _, run := range []string{"", "second", "second", "first"} {
		a, err := s.Consume(t.Context(), "plan", run, 3, month)
		if fails := run != "first"; (err != nil) != fails || fails && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%q without the file: %+v, %v", run, a, err) // the first one is saved already
		}
	}
	must(t, os.Rename(path+".away", path))
	want("second", 1)
	want("first", 1)
	want("second", 1)
	want("third", 0)
}
