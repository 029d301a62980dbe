package storetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/store"
)

func recentIsNewestFirst(t *testing.T, s store.Store) {
	empty, err := s.Recent(t.Context(), "", 10)
	must(t, err)
	if len(empty) != 0 {
		t.Fatalf("an empty store lists %d receipts", len(empty))
	}
	const n = 10
	for i := range n {
		must(t, s.Append(t.Context(), newReceipt(fmt.Sprint("KRN-", i), "", 1)))
	}
	for size := 1; size <= n+1; size++ {
		list := all(t, s, size)
		if len(list) != n {
			t.Fatalf("pages of %d: %d receipts, want %d", size, len(list), n)
		}
		for i, r := range list {
			sameReceipt(t, r, newReceipt(fmt.Sprint("KRN-", n-1-i), "", 1))
		}
	}
	for _, limit := range []int{0, -1} {
		none, err := s.Recent(t.Context(), "", limit)
		must(t, err)
		if len(none) != 0 {
			t.Errorf("limit %d lists %d receipts", limit, len(none))
		}
	}
}

func pagingIsExactDuringCommits(t *testing.T, s store.Store) {
	const n = 60
	for i := range n {
		must(t, s.Append(t.Context(), newReceipt(fmt.Sprint("KRN-old-", i), "", 1)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for c := range 4 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r := newReceipt(fmt.Sprintf("KRN-new-%d-%d", c, i), "", 1)
				if err := s.Append(t.Context(), r); err != nil {
					t.Errorf("appending: %v", err)
					return
				}
			}
		})
	}
	for range 5 {
		var recent, summarised []string
		for _, r := range all(t, s, 7) {
			recent = append(recent, r.ID)
		}
		for _, l := range summaries(t, s, 7) {
			summarised = append(summarised, l.ID)
		}
		listsOldOnce(t, n, recent)
		listsOldOnce(t, n, summarised)
	}
	cancel()
	group.Wait()
}

// listsOldOnce checks that ids are different and have the n old ones in order.
func listsOldOnce(t *testing.T, n int, ids []string) {
	t.Helper()
	old := n
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("%s is listed twice", id)
		}
		seen[id] = true
		if seen[fmt.Sprint("KRN-old-", old-1)] {
			old--
		}
	}
	if old != 0 {
		t.Errorf("%d of the receipts that were there are missing or out of order", old)
	}
}

// Receipts without a summary may be the oldest, those written before there were
// summaries, and stand anywhere else, those of a replica that makes none yet.
func summariesAreThoseOfRecent(t *testing.T, s store.Store) {
	empty, err := s.Summaries(t.Context(), "", 10)
	must(t, err)
	if len(empty) != 0 {
		t.Fatalf("an empty store lists %d summaries", len(empty))
	}
	const pattern = "oo+o++oo++o" // oldest first; + has a summary
	for i, kind := range pattern {
		r := newReceipt(fmt.Sprint("KRN-", i), "", 1)
		if kind == 'o' {
			r.Summary = nil
		}
		must(t, s.Append(t.Context(), r))
	}
	recent := all(t, s, 100)
	for size := 1; size <= len(pattern)+1; size++ {
		list := summaries(t, s, size)
		if len(list) != len(pattern) {
			t.Fatalf("pages of %d: %d summaries, want %d", size, len(list), len(pattern))
		}
		for i, got := range list {
			want := store.Summary{ID: recent[i].ID, Cursor: recent[i].Cursor}
			if pattern[len(pattern)-1-i] == '+' {
				want.JSON = summaryOf(want.ID)
			}
			if got.ID != want.ID || got.Cursor != want.Cursor || (got.JSON == nil) != (want.JSON == nil) || string(got.JSON) != string(want.JSON) {
				t.Errorf("pages of %d: got %q, want %q", size, got, want)
			}
		}
	}
	for i, r := range recent { // either goes on where the other ended
		list, err := s.Summaries(t.Context(), r.Cursor, 1)
		must(t, err)
		if i+1 == len(recent) {
			if len(list) != 0 {
				t.Errorf("after the oldest: %q", list)
			}
		} else if len(list) != 1 || list[0].ID != recent[i+1].ID {
			t.Errorf("after %s: %q", r.ID, list)
		}
	}
	for _, limit := range []int{0, -1} {
		none, err := s.Summaries(t.Context(), "", limit)
		must(t, err)
		if len(none) != 0 {
			t.Errorf("limit %d lists %d summaries", limit, len(none))
		}
	}
}

// The id makes a receipt and its summary one: neither a second write of it, with
// whatever summary, nor a turn that came too late adds any.
func repeatedWritesAddNoSummary(t *testing.T, s store.Store) {
	appended, bare, turn := newReceipt("TCR-1", "k1", 1), newReceipt("TCR-2", "k1", 1), next(newSession("k1"), "KRN-3")
	bare.Summary = nil
	late := next(newSession("k1"), "KRN-4")
	for range 3 {
		must(t, s.Append(t.Context(), appended))
		must(t, s.Append(t.Context(), bare))
		must(t, s.Commit(t.Context(), turn))
		must(t, s.Append(t.Context(), turn.Receipt))
		wantKind(t, "a turn that came too late", s.Commit(t.Context(), late), store.ErrConflict)
		appended.Summary, bare.Summary, turn.Receipt.Summary = []byte("another"), []byte("another"), nil
	}
	list := summaries(t, s, 2)
	if len(list) != 3 {
		t.Fatalf("%d summaries, want 3: %q", len(list), list)
	}
	for i, want := range []string{string(summaryOf("KRN-3")), "", string(summaryOf("TCR-1"))} {
		if string(list[i].JSON) != want {
			t.Errorf("summary of %s: %q, want %q", list[i].ID, list[i].JSON, want)
		}
	}
}

// A page of summaries takes less memory than one of the records that it leaves
// where they are, those of receipts without a summary too.
func summariesLeaveRecordsAlone(t *testing.T, s store.Store) {
	const n, size = 8, 1 << 20
	for i := range n {
		r := newReceipt(fmt.Sprint("KRN-", i), "", 1)
		r.JSON = bytes.Repeat([]byte("x"), size)
		if i%2 == 0 {
			r.Summary = nil
		}
		must(t, s.Append(t.Context(), r))
	}
	summaries(t, s, n) // so that no connection is made below
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list := summaries(t, s, n)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; len(list) != n || took >= size/2 {
		t.Errorf("%d summaries took %d bytes, of receipts of %d", len(list), took, size)
	}
}

func foreignCursorsAreNotFound(t *testing.T, s store.Store) {
	must(t, s.Append(t.Context(), newReceipt("KRN-1", "", 1)))
	for _, cursor := range []string{"x", "1-", "-1", "1-2-3", " ", "(1-1", "+", "99999999999999999999999"} {
		_, err := s.Recent(t.Context(), cursor, 5)
		wantKind(t, "cursor "+cursor, err, store.ErrNotFound)
		for _, limit := range []int{5, 0} {
			_, err = s.Summaries(t.Context(), cursor, limit)
			wantKind(t, "summaries, cursor "+cursor, err, store.ErrNotFound)
		}
	}
}

func receiptByID(t *testing.T, s store.Store) {
	want := newReceipt("TCR-1", "", 0)
	want.Kind, want.Intervened, want.MAfter, want.SessionID = store.KindToolCall, false, 0, ""
	must(t, s.Append(t.Context(), want))
	must(t, s.Append(t.Context(), newReceipt("KRN-2", "k1", 1)))
	got, err := s.Receipt(t.Context(), "TCR-1")
	must(t, err)
	sameReceipt(t, got, want)
	for _, id := range []string{"TCR-2", "", "tcr-1", "TCR-1 "} {
		_, err := s.Receipt(t.Context(), id)
		wantKind(t, "unknown id", err, store.ErrNotFound)
	}
	older, err := s.Recent(t.Context(), got.Cursor, 5)
	must(t, err)
	if len(older) != 0 {
		t.Errorf("the first receipt's cursor lists %d older ones", len(older))
	}
}

func receiptOfATurn(t *testing.T, s store.Store) {
	appended := newReceipt("TCR-1", "", 0)
	appended.TurnID = "turn-1"
	must(t, s.Append(t.Context(), appended))
	must(t, s.Append(t.Context(), newReceipt("KRN-2", "", 1))) // nobody was told of its turn
	turn := next(newSession("k1"), "KRN-3")
	turn.Receipt.TurnID = "turn-3"
	lost := next(newSession("k1"), "KRN-4")
	lost.Receipt.TurnID = "turn-4"
	must(t, s.Commit(t.Context(), turn))
	wantKind(t, "a turn that came too late", s.Commit(t.Context(), lost), store.ErrConflict)
	for _, want := range []store.Receipt{appended, turn.Receipt} {
		got, err := s.ReceiptOfTurn(t.Context(), want.TurnID)
		must(t, err)
		sameReceipt(t, got, want)
	}
	for _, id := range []string{"", "turn-2", "turn-4", "KRN-2", "TURN-1", "turn-1 "} {
		_, err := s.ReceiptOfTurn(t.Context(), id)
		wantKind(t, "turn "+id, err, store.ErrNotFound)
	}
}

func appendIsIdempotent(t *testing.T, s store.Store) {
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			if err := s.Append(t.Context(), newReceipt(fmt.Sprint("TCR-", i%4), "k1", 1)); err != nil {
				t.Errorf("appending: %v", err)
			}
		})
	}
	group.Wait()
	if got := len(all(t, s, 10)); got != 4 {
		t.Errorf("%d receipts, want 4", got)
	}
	_, err := s.Session(t.Context(), "k1")
	wantKind(t, "session of an appended receipt", err, store.ErrNotFound)
}
