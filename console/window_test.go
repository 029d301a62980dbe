package console_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// inBubble runs a test on a clock that moves only when nothing else does. What is still
// running at its end is a failure.
func inBubble(t *testing.T, test func(t *testing.T, l *list, w *console.Window)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &list{}
		w := console.NewWindow(l, time.Now)
		defer w.Close()
		test(t, l, w)
	})
}

func turns(t *testing.T, w *console.Window, last time.Duration) (n int, err error) {
	t.Helper()
	now := time.Now()
	c, err := w.Counts(t.Context(), console.Span{From: now.Add(-last).UnixMilli(), To: now.UnixMilli() + 1000}, 86_400_000)
	for _, some := range c.Turns {
		n += some
	}
	return n, err
}

// A window reads nothing until somebody asks, and nothing any more five minutes after the
// last one left.
func TestWindowLivesWithItsReaders(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		l.add(entry(t, answered(time.Now().UnixMilli())))
		time.Sleep(time.Hour)
		if l.questions() != 0 {
			t.Fatal("it reads without a reader")
		}
		for range 2 { // it begins anew
			if n, err := turns(t, w, 10*time.Hour); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(6 * time.Minute)
			asked := l.questions()
			if asked < 290 {
				t.Errorf("%d questions in five minutes", asked)
			}
			time.Sleep(time.Hour)
			if l.questions() != asked {
				t.Error("it reads on without a reader")
			}
		}
		f, err := w.Follow(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		asked := l.questions()
		if time.Sleep(time.Hour); l.questions() < asked+3500 {
			t.Error("it does not read for a follower")
		}
		f.Close()
		time.Sleep(6 * time.Minute)
		asked = l.questions()
		if time.Sleep(time.Hour); l.questions() != asked {
			t.Error("it reads on without a follower")
		}
	})
}

// A store that stops is an error for the readers and loses no receipt when it returns.
func TestStoreThatStopsAndReturns(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		l.add(entry(t, answered(time.Now().UnixMilli())))
		f, err := w.Follow(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		l.set(errDown)
		if news, err := f.Next(t.Context()); err != nil || !news.Health {
			t.Fatal(news, err)
		}
		for _, ask := range []func() error{
			func() error { _, err := turns(t, w, time.Hour); return err },
			func() error {
				_, err := w.Coverage(t.Context(), console.Span{From: 1, To: 2})
				return err
			},
			func() error { _, err := w.State(t.Context()); return err },
			func() error {
				_, err := w.Receipts(t.Context(), console.Filter{Span: allTime, Show: console.ShowNotable}, "", 5)
				return err
			},
			func() error {
				_, err := w.Receipts(t.Context(), console.Filter{Span: allTime}, "", 5)
				return err
			},
		} {
			if err := ask(); !errors.Is(err, errDown) {
				t.Errorf("while it is down: %v", err)
			}
		}
		var written []store.Receipt
		for range 700 { // more than a page
			written = append(written, entry(t, answered(time.Now().UnixMilli())))
		}
		l.add(written...)
		l.set(nil)
		for health := false; len(written) > 0; {
			news, err := f.Next(t.Context())
			if err != nil || news.Resync {
				t.Fatal(news, err)
			}
			health = health || news.Health
			for _, r := range news.Rows {
				if r.ID != written[0].ID {
					t.Fatal("a row is lost or doubled")
				}
				if written = written[1:]; !health {
					t.Error("rows came before the news that the store is back")
				}
			}
		}
		if n, err := turns(t, w, time.Hour); n != 701 || err != nil {
			t.Error(n, err)
		}
	})
}

var allTime = console.Span{From: 0, To: console.MaxTime}

// Two replicas write at once; followers get each row once, in the order of the store, also
// when they go on behind a row that they have.
func TestFollowersGetEachRowOnce(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			w := newWindow(t, s)
			first, err := w.Follow(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			wrote := make(chan error)
			for range 2 {
				go func() {
					var err error
					for range 150 {
						err = errors.Join(err, s.Append(t.Context(), entry(t, answered(time.Now().UnixMilli()))))
					}
					wrote <- err
				}()
			}
			got := follow(t, first, 300)
			if err := errors.Join(<-wrote, <-wrote); err != nil {
				t.Fatal(err)
			}
			listed, err := s.Recent(t.Context(), "", 1000)
			if err != nil || len(listed) != 300 {
				t.Fatal(len(listed), err)
			}
			slices.Reverse(listed)
			for i, r := range listed {
				if got[i].ID != r.ID || got[i].Cursor != r.Cursor {
					t.Fatalf("row %d is %s, want %s", i, got[i].ID, r.ID)
				}
			}
			again, err := w.Follow(t.Context(), got[99].Cursor)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if rest := follow(t, again, 200); rest[0].ID != got[100].ID || rest[199].ID != got[299].ID {
				t.Error("the rows behind a cursor are others")
			}
		})
	}
}

func follow(t *testing.T, f *console.Follower, n int) (rows []console.Row) {
	t.Helper()
	for len(rows) < n {
		news, err := f.Next(t.Context())
		if err != nil || news.Resync {
			t.Fatal(news.Resync, err)
		}
		rows = append(rows, news.Rows...)
	}
	return rows
}

// A follower that does not read costs nothing, and is told how many rows it missed.
func TestFollowerThatDoesNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		f, err := w.Follow(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		const written = 5000
		for range written / 100 {
			for range 100 {
				l.add(entry(t, answered(time.Now().UnixMilli())))
			}
			time.Sleep(2 * time.Second)
		}
		news, err := f.Next(t.Context())
		if err != nil || !news.Resync || news.Missed == nil || *news.Missed < 1000 {
			t.Fatal(news, err)
		}
		if rest := follow(t, f, written-*news.Missed); rest[len(rest)-1].Cursor != fmt.Sprint(written) {
			t.Error("missed and told rows are not all that were written")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if news, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(news, err)
		}
		if lost, err := w.Follow(t.Context(), "another list's"); err != nil {
			t.Error(err)
		} else if news, err := lost.Next(t.Context()); err != nil || !news.Resync || news.Missed != nil {
			t.Error(news, err)
		} else {
			lost.Close()
		}
	})
}

// Closing tells followers, and answers nobody any more.
func TestClosedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := console.NewWindow(&list{}, time.Now)
		f, err := w.Follow(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error)
		go func() {
			_, err := f.Next(t.Context())
			f.Close()
			told <- err
		}()
		synctest.Wait()
		w.Close()
		w.Close()
		if err := <-told; !errors.Is(err, console.ErrClosed) || !errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
		if _, err := w.State(t.Context()); !errors.Is(err, console.ErrClosed) {
			t.Error(err)
		}
		if _, err := w.Follow(t.Context(), ""); !errors.Is(err, console.ErrClosed) {
			t.Error(err)
		}
	})
}

// Behind very many new receipts, and where the store was replaced by another, the window
// begins anew and says so.
func TestWindowBeginsAnew(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, l *list){
		"very many": func(t *testing.T, l *list) {
			one := entry(t, answered(time.Now().UnixMilli()))
			l.add(slices.Repeat([]store.Receipt{one}, 25_000)...)
		},
		"another store": func(t *testing.T, l *list) {
			l.entries = nil
			l.add(entry(t, answered(time.Now().UnixMilli())))
			l.entries[0].Cursor, l.entries[0].Seq = "77", 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *list, w *console.Window) {
				l.add(entry(t, answered(time.Now().UnixMilli())))
				f, err := w.Follow(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				change(t, l)
				if news, err := f.Next(t.Context()); err != nil || !news.Resync || news.Missed != nil {
					t.Fatal(news, err)
				}
				time.Sleep(time.Minute)
				if n, err := turns(t, w, time.Hour); n != len(l.entries) || err != nil {
					t.Errorf("%d turns of %d: %v", n, len(l.entries), err)
				}
			})
		})
	}
}

// Where the store lost its newest receipts, because it was emptied or an older copy of it took
// over, the window begins anew with what is there now, however long the new log is.
func TestWindowFollowsAStoreThatLostReceipts(t *testing.T) {
	for kept := range 4 {
		for added := range 6 {
			t.Run(fmt.Sprintf("%d of 3 kept, %d added", kept, added), func(t *testing.T) {
				inBubble(t, func(t *testing.T, l *list, w *console.Window) {
					some := func(n int) {
						for range n {
							l.add(entry(t, answered(time.Now().UnixMilli())))
						}
					}
					some(3)
					f, err := w.Follow(t.Context(), "")
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					l.keep(kept)
					some(added)
					if kept < 3 {
						soon, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if news, err := f.Next(soon); err != nil || !news.Resync || news.Missed != nil {
							t.Fatal(news, err)
						}
					} else {
						follow(t, f, added)
					}
					time.Sleep(2 * time.Second)
					if n, err := turns(t, w, time.Hour); n != kept+added || err != nil {
						t.Errorf("%d turns of %d: %v", n, kept+added, err)
					}
					some(2) // and it goes on from there
					for i, r := range follow(t, f, 2) {
						if want := l.entries[kept+added+i]; r.ID != want.ID {
							t.Errorf("row %d is another", i)
						}
					}
				})
			})
		}
	}
}

// The window reads back so far and no further, and says from when on it is whole.
func TestWindowReadsBackSoFar(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		now := time.Now()
		old := entry(t, answered(now.Add(-20*time.Hour).UnixMilli()))
		flagged := answered(now.Add(-time.Hour).UnixMilli())
		flagged.Refused, flagged.Outcome = true, kernel.Refused
		refused := entry(t, flagged)
		l.add(slices.Repeat([]store.Receipt{old}, 100)...)
		l.add(slices.Repeat([]store.Receipt{refused}, 205_000)...)
		if _, err := w.State(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		state, err := w.State(t.Context())
		if err != nil || state.Rows != state.Limit {
			t.Fatal(state, err)
		}
		if since := time.UnixMilli(state.Since); since.Before(now.Add(-58*time.Minute)) || since.After(now.Add(-57*time.Minute)) {
			t.Errorf("whole since %v", now.Sub(since))
		}
		if n, _ := turns(t, w, 23*time.Hour); n < 200_000 || n > 200_999 {
			t.Errorf("%d receipts were read", n)
		}
		// What memory no longer has comes from the store.
		list, err := w.Receipts(t.Context(), console.Filter{Span: allTime, Show: console.Refused}, fmt.Sprint(190_000), 10)
		if err != nil || len(list.Receipts) != 10 || list.Receipts[0].Cursor != "189999" {
			t.Error(list, err)
		}
	})
}

// What is older than the window comes from the store, each row once.
func TestOlderRowsComeFromTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		for i := range 3000 {
			r := answered(time.Now().Add(-30*time.Hour + time.Duration(i)*25*time.Second).UnixMilli())
			if i%100 == 0 {
				r.Refused, r.Outcome = true, kernel.Refused
			}
			l.add(entry(t, r))
		}
		filter := console.Filter{Span: allTime, Show: console.Refused}
		seen := make(map[string]bool)
		for before, next := "", new(string); next != nil; {
			page, err := w.Receipts(t.Context(), filter, before, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Receipts {
				if seen[r.ID] {
					t.Fatal("a row comes twice")
				}
				seen[r.ID] = true
			}
			if next = page.Next; next != nil {
				before = *next
			}
		}
		state, err := w.State(t.Context())
		if len(seen) != 30 || state.Rows >= 30 || err != nil {
			t.Errorf("%d rows, %d of them in memory: %v", len(seen), state.Rows, err)
		}
	})
}

// A receipt that the store itself cannot read ends the way back, and nothing else.
func TestDamagedReceipt(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		now := time.Now()
		for i := range 2000 {
			l.add(entry(t, answered(now.Add(time.Duration(i-2000)*time.Second).UnixMilli())))
		}
		l.damaged = "5"
		f, err := w.Follow(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		time.Sleep(time.Minute)
		l.add(entry(t, answered(time.Now().UnixMilli())))
		if rows := follow(t, f, 1); rows[0].Cursor != "2001" {
			t.Error(rows)
		}
		n, err := turns(t, w, time.Hour)
		state, err2 := w.State(t.Context())
		if n < 1700 || n > 2000 || errors.Join(err, err2) != nil || state.Since < now.Add(-2000*time.Second).UnixMilli() {
			t.Error(n, state, err, err2)
		}
	})
}

// Counters are kept for a day.
func TestWindowForgets(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		f, err := w.Follow(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for range 30 {
			l.add(entry(t, answered(time.Now().UnixMilli())))
			time.Sleep(time.Hour)
		}
		n, err := turns(t, w, 40*time.Hour)
		state, err2 := w.State(t.Context())
		if n < 23 || n > 25 || errors.Join(err, err2) != nil || time.Since(time.UnixMilli(state.Since)) > 24*time.Hour {
			t.Error(n, state, err, err2)
		}
	})
}

// Lists are what a scan finds, whatever the filter and however they are cut into pages.
func TestReceiptsEqualAScan(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			rnd := rand.New(rand.NewPCG(5, 6))
			now := time.Now().UnixMilli()
			var written []store.Receipt
			ended := make(map[string]int64)
			for range 1400 {
				r := someReceipt(rnd, now)
				r.Timestamp = max(r.Timestamp, now-7_200_000)
				e := entry(t, r)
				written, ended[e.ID] = append(written, e), e.Timestamp+rnd.Int64N(120_000)
			}
			slices.SortFunc(written, func(a, b store.Receipt) int { return cmp.Compare(ended[a.ID], ended[b.ID]) })
			write(t, s, written)
			w := newWindow(t, s)
			untilWhole(t, w, now-7_200_000)
			all, err := w.Receipts(t.Context(), console.Filter{Span: allTime}, "", console.MaxListed)
			if err != nil || len(all.Receipts) != 1000 || all.Next == nil || !all.Complete {
				t.Fatal(len(all.Receipts), err)
			}
			rest, err := w.Receipts(t.Context(), console.Filter{Span: allTime}, *all.Next, console.MaxListed)
			if err != nil || len(rest.Receipts) != 400 || rest.Next != nil || !rest.Complete {
				t.Fatal(len(rest.Receipts), err)
			}
			rows := slices.Concat(all.Receipts, rest.Receipts)
			for _, f := range []console.Filter{
				{Span: allTime, Show: console.ShowNotable},
				{Span: allTime, Show: console.Refused},
				{Span: allTime, Show: console.WouldRefuse, Mode: "observe"},
				{Span: allTime, Show: console.Uninspected, Gap: console.GapWhole},
				{Span: allTime, Show: console.Failed, Endpoint: "unknown"},
				{Span: allTime, Show: console.Corrected, SessionID: "</script>"},
				{Span: allTime, Reason: "destructive_command"},
				{Span: allTime, Reason: "slow_drip", AttackType: "identity"},
				{Span: allTime, MinSeverity: 0.5},
				{Span: allTime, SessionID: "nobody"},
				{Span: console.Span{From: now - 3_600_000, To: now - 1_800_000}, Show: console.ShowNotable},
				{Span: console.Span{From: now - 3_600_000, To: now - 1_800_000}},
			} {
				var want, got []string
				for _, r := range rows {
					if f.Matches(&r) {
						want = append(want, r.ID)
					}
				}
				for before, next := "", new(string); next != nil; {
					page, err := w.Receipts(t.Context(), f, before, 1+rnd.IntN(40))
					if err != nil || !page.Complete {
						t.Fatal(page.Complete, err)
					}
					for _, r := range page.Receipts {
						got = append(got, r.ID)
					}
					if next = page.Next; next != nil {
						before = *next
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%+v: %d rows, want %d", f, len(got), len(want))
				}
			}
			if _, err := w.Receipts(t.Context(), console.Filter{Span: allTime}, "nowhere", 5); !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		})
	}
}

// A search gives up after so many rows and says where to go on; it ends where the span has
// ended for good.
func TestSearchesEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		at := time.Now().Add(-48 * time.Hour)
		one, wanted := entry(t, answered(at.UnixMilli())), answered(at.Add(-time.Hour).UnixMilli())
		wanted.SessionID = "wanted"
		l.add(entry(t, wanted))
		l.add(slices.Repeat([]store.Receipt{one}, 30_000)...)
		filter := console.Filter{Span: allTime, SessionID: "wanted"}
		first, err := w.Receipts(t.Context(), filter, "", 10)
		if err != nil || first.Complete || first.Next == nil || len(first.Receipts) != 0 || first.Scanned < 20_000 || first.Scanned > 20_300 {
			t.Fatal(first, err)
		}
		second, err := w.Receipts(t.Context(), filter, *first.Next, 10)
		if err != nil || !second.Complete || second.Next != nil || len(second.Receipts) != 1 {
			t.Fatal(second, err)
		}
		filter = console.Filter{Span: console.Span{From: time.Now().UnixMilli(), To: console.MaxTime}}
		if none, err := w.Receipts(t.Context(), filter, "", 10); err != nil || !none.Complete || none.Next != nil || none.Scanned > 1 {
			t.Error(none, err)
		}
	})
}
