package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store"
)

func limitIsExactUnderContention(t *testing.T, s store.Store) {
	const callers, callsEach, limit = 64, 4, 100
	for _, window := range []time.Duration{time.Minute, 720 * time.Hour} {
		subject := "subject of " + window.String()
		var allowed atomic.Int64
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for range callsEach {
					a, err := s.Consume(t.Context(), subject, "", limit, window)
					if err != nil {
						t.Errorf("taking: %v", err)
						return
					}
					checkAllowance(t, a, limit, window)
					if a.Allowed {
						allowed.Add(1)
					}
				}
			})
		}
		group.Wait()
		if got := allowed.Load(); got != limit {
			t.Errorf("window of %v: %d of %d requests were allowed, want %d", window, got, callers*callsEach, limit)
		}
		other, err := s.Consume(t.Context(), "other "+subject, "", limit, window)
		must(t, err)
		if !other.Allowed || other.Remaining != limit-1 {
			t.Errorf("another subject's first request: %+v", other)
		}
	}
}

func checkAllowance(t *testing.T, a store.Allowance, limit int, window time.Duration) {
	t.Helper()
	if a.Limit != limit || a.Remaining < 0 || a.Remaining >= limit || !a.Allowed && a.Remaining != 0 ||
		a.Reset <= 0 || a.Reset > window {
		t.Errorf("allowance %+v of a limit of %d in %v", a, limit, window)
	}
}

func windowEndsAndBeginsAnew(t *testing.T, s store.Store) {
	const window = 50 * time.Millisecond
	for round := range 3 {
		a, err := s.Consume(t.Context(), "subject", "", 1, window)
		for left := window; err == nil && !a.Allowed; { // until the window has ended
			if a.Reset > left || a.Reset <= 0 {
				t.Fatalf("round %d: the window ends in %v, before it was in %v", round, a.Reset, left)
			}
			left = a.Reset
			a, err = s.Consume(t.Context(), "subject", "", 1, window)
		}
		must(t, err)
		if a.Remaining != 0 || a.Reset <= 0 || a.Reset > window {
			t.Errorf("round %d: %+v", round, a)
		}
	}
	// Using one's window to the end does not lengthen it.
	long := time.Hour / 2
	first, err := s.Consume(t.Context(), "long", "", 2, long)
	must(t, err)
	second, err := s.Consume(t.Context(), "long", "", 2, 2*long)
	must(t, err)
	if second.Reset > first.Reset {
		t.Errorf("the second request moved the window's end from %v to %v", first.Reset, second.Reset)
	}
}

func windowIsCutToAShorterLength(t *testing.T, s store.Store) {
	const limit, short = 2, 30 * time.Second
	for _, long := range []time.Duration{time.Minute, 24 * time.Hour} {
		for _, counted := range []int{1, limit} {
			subject := fmt.Sprint(counted, " in ", long)
			runs := 0
			consume := func(limit int, window time.Duration, want bool) store.Allowance {
				t.Helper()
				runs++
				a, err := s.Consume(t.Context(), subject, fmt.Sprint("run ", runs), limit, window)
				must(t, err)
				if a.Allowed != want {
					t.Fatalf("%s: %+v, want allowed %v", subject, a, want)
				}
				return a
			}
			for range counted {
				consume(limit, long, true)
			}
			// What was counted may have been counted just now, so it goes on to count.
			a := consume(limit, short, counted < limit)
			checkAllowance(t, a, limit, short)
			consume(limit, short, false)
			// The end has moved for good, and a longer length does not move it back.
			if again := consume(limit, long, false); again.Reset > a.Reset {
				t.Errorf("%s: the end moved back from %v to %v", subject, a.Reset, again.Reset)
			}
			must(t, s.Refund(t.Context(), subject, "run 1")) // which was counted before
			checkAllowance(t, consume(limit, short, true), limit, short)
			// A request that nothing is allowed cuts the window too.
			if a := consume(0, short/2, false); a.Reset > short/2 {
				t.Errorf("%s: cut by a limit of 0 it ends in %v, want %v", subject, a.Reset, short/2)
			}
		}
	}
	// It ends then.
	_, err := s.Consume(t.Context(), "ends", "", 1, 24*time.Hour)
	must(t, err)
	for left := 50 * time.Millisecond; ; {
		a, err := s.Consume(t.Context(), "ends", "", 1, 50*time.Millisecond)
		must(t, err)
		if a.Allowed {
			break
		}
		if a.Reset > left || a.Reset <= 0 {
			t.Fatalf("the window ends in %v, before it was in %v", a.Reset, left)
		}
		left = a.Reset
	}
}

func limitOfNothingAllowsNothing(t *testing.T, s store.Store) {
	for range 2 {
		a, err := s.Consume(t.Context(), "subject", "", 0, time.Minute)
		must(t, err)
		if a.Allowed || a.Remaining != 0 || a.Reset <= 0 {
			t.Errorf("limit 0: %+v", a)
		}
	}
	for _, limit := range []int{3, 1} { // a lower limit holds for what was counted before
		a, err := s.Consume(t.Context(), "subject", "", limit, time.Minute)
		must(t, err)
		if a.Allowed != (limit == 3) {
			t.Errorf("limit %d: %+v", limit, a)
		}
	}
}

func refundedRequestsCanBeConsumed(t *testing.T, s store.Store) {
	for _, window := range []time.Duration{time.Minute, 720 * time.Hour} {
		subject := window.String()
		consume := func(run string, want bool) store.Allowance {
			t.Helper()
			a, err := s.Consume(t.Context(), subject, run, 2, window)
			must(t, err)
			if a.Allowed != want {
				t.Fatalf("window of %v, run %s: %+v, want allowed %v", window, run, a, want)
			}
			return a
		}
		refund := func(run string) {
			t.Helper()
			for range 3 { // an answer may be lost
				must(t, s.Refund(t.Context(), subject, run))
			}
		}
		first := consume("a", true)
		consume("b", true)
		consume("c", false)
		refund("a")
		if again := consume("d", true); again.Reset > first.Reset {
			t.Errorf("a refund moved the window's end from %v to %v", first.Reset, again.Reset)
		}
		consume("e", false)
		refund("b")
		refund("d")
		if a := consume("f", true); a.Reset > first.Reset {
			t.Errorf("an empty window began anew: it ends in %v, before in %v", a.Reset, first.Reset)
		}
		consume("g", true)
		consume("h", false)
		refund("h") // never counted
		refund("never sent")
		consume("i", false)

		subject += ", without names"
		consume("", true)
		refund("never sent")
		if used, err := s.Consumed(t.Context(), subject); err != nil || used != 1 {
			t.Errorf("window of %v: %d are counted (%v), and the one that was refunded was none of them", window, used, err)
		}
	}
}

// namedRequestsAreCountedOnce sends requests again, as who has not seen the answer would, and
// refunds them before they come.
func namedRequestsAreCountedOnce(t *testing.T, s store.Store) {
	for _, window := range []time.Duration{time.Minute, 720 * time.Hour} {
		subject := window.String()
		consume := func(run string, allowed bool, counted int) {
			t.Helper()
			a, err := s.Consume(t.Context(), subject, run, 9, window)
			must(t, err)
			n, err := s.Consumed(t.Context(), subject)
			must(t, err)
			if a.Allowed != allowed || n != counted || a.Remaining != 9-counted || a.Reset <= 0 || a.Reset > window {
				t.Errorf("window of %v, run %s: %+v and %d are counted, want allowed %v and %d", window, run, a, n, allowed, counted)
			}
		}
		consume("a", true, 1)
		consume("a", true, 1)
		consume("b", true, 2)
		must(t, s.Refund(t.Context(), subject, "a"))
		consume("a", false, 1) // late
		must(t, s.Refund(t.Context(), subject, "c"))
		consume("c", false, 1) // later than its refund
		consume("", true, 2)
		consume("", true, 3)
		other, err := s.Consume(t.Context(), "other "+subject, "b", 9, window)
		must(t, err)
		if !other.Allowed || other.Remaining != 8 {
			t.Errorf("another subject's run of the same name: %+v", other)
		}
		must(t, s.Refund(t.Context(), "other "+subject, "b"))
		consume("d", true, 4)
	}
}

// refundsAreForTheirWindow refunds a request when its window has ended and the next one has
// begun.
func refundsAreForTheirWindow(t *testing.T, s store.Store) {
	const brief = 50 * time.Millisecond
	for _, began := range []time.Duration{brief, 24 * time.Hour} { // which is cut
		subject := began.String()
		consume := func(run string, window time.Duration) bool {
			t.Helper()
			a, err := s.Consume(t.Context(), subject, run, 1, window)
			must(t, err)
			return a.Allowed
		}
		if !consume("old", began) {
			t.Fatal("the first request was not allowed")
		}
		consume("cuts", brief)
		start := time.Now()
		for n := 0; !consume(fmt.Sprint("new ", n), time.Minute); n++ { // until the window has ended
			if time.Since(start) > time.Minute {
				t.Fatal("the window does not end")
			}
		}
		must(t, s.Refund(t.Context(), subject, "old"))
		if n, err := s.Consumed(t.Context(), subject); err != nil || n != 1 || consume("another", time.Minute) {
			t.Errorf("window of %v: a refund from the window before took the count to %d (%v)", began, n, err)
		}
	}
}

func consumedReadsTheCountOnly(t *testing.T, s store.Store) {
	want := func(subject string, want int) {
		t.Helper()
		for range 2 { // looking changes nothing
			got, err := s.Consumed(t.Context(), subject)
			must(t, err)
			if got != want {
				t.Fatalf("%s: %d requests are counted, want %d", subject, got, want)
			}
		}
	}
	want("subject", 0)
	for i := range 5 {
		_, err := s.Consume(t.Context(), "subject", fmt.Sprint(i), 3, time.Minute)
		must(t, err)
		want("subject", min(i+1, 3))
	}
	want("another", 0)
	must(t, s.Refund(t.Context(), "subject", "1"))
	want("subject", 2)
	a, err := s.Consume(t.Context(), "short", "", 1, 20*time.Millisecond)
	must(t, err)
	for left := a.Reset; left > 0; { // until the window has ended
		n, err := s.Consumed(t.Context(), "short")
		must(t, err)
		if n == 0 {
			return
		}
		again, err := s.Consume(t.Context(), "short", "", 1, 20*time.Millisecond)
		must(t, err)
		if again.Allowed {
			return // it ended in between
		}
		left = again.Reset
	}
}
