package storetest

import (
	"context"
	"fmt"
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
		old := n
		seen := map[string]bool{}
		for _, r := range all(t, s, 7) {
			if seen[r.ID] {
				t.Errorf("%s is listed twice", r.ID)
			}
			seen[r.ID] = true
			if seen[fmt.Sprint("KRN-old-", old-1)] {
				old--
			}
		}
		if old != 0 {
			t.Errorf("%d of the receipts that were there are missing or out of order", old)
		}
	}
	cancel()
	group.Wait()
}

func foreignCursorsAreNotFound(t *testing.T, s store.Store) {
	must(t, s.Append(t.Context(), newReceipt("KRN-1", "", 1)))
	for _, cursor := range []string{"x", "1-", "-1", "1-2-3", " ", "(1-1", "+", "99999999999999999999999"} {
		_, err := s.Recent(t.Context(), cursor, 5)
		wantKind(t, "cursor "+cursor, err, store.ErrNotFound)
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
