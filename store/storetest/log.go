package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/store"
)

// Log returns the whole log of the store, and checks that it is one: the numbers are
// 1, 2, 3 and so on, and each receipt has the hash of the record before it.
func Log(t testing.TB, s store.Store) []store.Receipt {
	t.Helper()
	var log []store.Receipt
	prev := ""
	for after := uint64(0); ; {
		page, err := s.Log(t.Context(), after, 17)
		if err != nil {
			t.Fatalf("reading the log after %d: %v", after, err)
		}
		if len(page) == 0 {
			return log
		}
		for _, r := range page {
			if after++; r.Seq != after || r.LogPrev != prev {
				t.Fatalf("%s has the number %d and the link %q, want %d and %q", r.ID, r.Seq, r.LogPrev, after, prev)
			}
			sum := sha256.Sum256(r.JSON)
			prev = hex.EncodeToString(sum[:])
		}
		log = append(log, page...)
	}
}

// wantLog checks that these receipts are the whole log, and that they have their places
// there wherever they are read.
func wantLog(t *testing.T, s store.Store, ids ...string) {
	t.Helper()
	log := Log(t, s)
	var got []string
	for _, r := range log {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, ids) {
		t.Fatalf("the log has %v, want %v", got, ids)
	}
	for i, r := range slices.Backward(all(t, s, 5)) {
		want := log[len(log)-1-i]
		byID, err := s.Receipt(t.Context(), want.ID)
		must(t, err)
		for _, r := range []store.Receipt{r, byID} {
			if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", want) {
				t.Errorf("%s is read as %+v, in the log as %+v", want.ID, r, want)
			}
		}
	}
}

func receiptsAreNumbered(t *testing.T, s store.Store) {
	wantLog(t, s)
	first := nextWithCalls(newSession("k1"), "KRN-1", 2)
	first.Receipt.Seq, first.Receipt.LogPrev = 7, "what the caller says" // the store decides
	must(t, s.Commit(t.Context(), first))
	must(t, s.Append(t.Context(), newReceipt("TCR-2", "", 1), newReceipt("KRN-3", "k2", 1)))
	must(t, s.Commit(t.Context(), nextWithCalls(read(t, s, "k1"), "KRN-4", 1)))
	must(t, s.Commit(t.Context(), next(newSession("k3"), "KRN-5")))
	want := []string{"KRN-1", "TCR-KRN-1-1", "TCR-KRN-1-2", "TCR-2", "KRN-3", "KRN-4", "TCR-KRN-4-1", "KRN-5"}
	wantLog(t, s, want...)
	r, err := s.ReceiptOfTurn(t.Context(), "turn-KRN-4")
	must(t, err)
	if r.Seq != 6 || len(r.LogPrev) != 64 {
		t.Errorf("the receipt of a turn has the number %d and the link %q", r.Seq, r.LogPrev)
	}
	must(t, s.Erase(t.Context(), "k1")) // receipts stay, and so do their places
	wantLog(t, s, want...)
}

// What writes nothing takes no number, and what it comes with leaves no gap.
func refusedWritesTakeNoNumber(t *testing.T, s store.Store) {
	first := nextWithCalls(newSession("k1"), "KRN-1", 2)
	must(t, s.Commit(t.Context(), first))
	for range 3 {
		must(t, s.Commit(t.Context(), first))
		must(t, s.Append(t.Context(), first.Receipts()...))
		wantKind(t, "a turn that came too late", s.Commit(t.Context(), nextWithCalls(newSession("k1"), "KRN-2", 2)), store.ErrConflict)
		broken := nextWithCalls(newSession("k4"), "KRN-3", 2)
		broken.Calls[1].JSON = nil
		wantKind(t, "an invalid call", s.Commit(t.Context(), broken), store.ErrInvalid)
		orphan := next(newSession("k5"), "KRN-4")
		orphan.Session.Family = "nobody"
		wantKind(t, "a turn of no family", s.Commit(t.Context(), orphan), store.ErrConflict)
	}
	second := nextWithCalls(read(t, s, "k1"), "KRN-5", 2)
	must(t, s.Append(t.Context(), second.Calls[1])) // it is there before its turn
	must(t, s.Commit(t.Context(), second))
	must(t, s.Append(t.Context(), first.Receipt, newReceipt("KRN-6", "", 1), first.Calls[0]))
	wantLog(t, s, "KRN-1", "TCR-KRN-1-1", "TCR-KRN-1-2", "TCR-KRN-5-2", "KRN-5", "TCR-KRN-5-1", "KRN-6")
}

func logIsOldestFirst(t *testing.T, s store.Store) {
	const n = 10
	for i := range n {
		must(t, s.Append(t.Context(), newReceipt(fmt.Sprint("KRN-", i+1), "k1", 1)))
	}
	for _, c := range []struct {
		after       uint64
		limit       int
		first, last uint64 // 0 when there are none
	}{
		{0, 1, 1, 1},
		{0, 3, 1, 3},
		{0, n, 1, n},
		{0, n + 1, 1, n},
		{3, 1, 4, 4},
		{3, 100, 4, n},
		{n - 1, 5, n, n},
		{n, 5, 0, 0},
		{n + 1, 5, 0, 0},
		{math.MaxInt64, 5, 0, 0},
		{math.MaxUint64 - 1, 5, 0, 0},
		{math.MaxUint64, 5, 0, 0},
		{0, 0, 0, 0},
		{0, -1, 0, 0},
		{5, 0, 0, 0},
	} {
		page, err := s.Log(t.Context(), c.after, c.limit)
		must(t, err)
		want := 0
		if c.first > 0 {
			want = int(c.last - c.first + 1)
		}
		if len(page) != want {
			t.Errorf("%d after %d: got %d, want %d", c.limit, c.after, len(page), want)
			continue
		}
		for i, r := range page {
			want := newReceipt(fmt.Sprint("KRN-", r.Seq), "k1", 1)
			if sameReceipt(t, r, want); r.Seq != c.first+uint64(i) {
				t.Errorf("%d after %d: entry %d has the number %d", c.limit, c.after, i, r.Seq)
			}
			clear(r.JSON) // it is the caller's
		}
	}
	Log(t, s)
}

// However many write at once, there is one log, the calls of a turn follow it, and who
// reads meanwhile sees it grow.
func logIsOneOfAll(t *testing.T, s store.Store) {
	const sessions, turnsEach = 16, 5
	var group sync.WaitGroup
	for c := range sessions {
		group.Go(func() {
			session := newSession(fmt.Sprint("k", c))
			for i := range turnsEach {
				change := nextWithCalls(session, fmt.Sprintf("KRN-%d-%d", c, i), (c+i)%3)
				late := next(newSession(session.Key), fmt.Sprintf("KRN-late-%d-%d", c, i))
				if err := s.Commit(t.Context(), change); err != nil {
					t.Errorf("committing: %v", err)
					return
				}
				wantKind(t, "a turn that came too late", s.Commit(t.Context(), late), store.ErrConflict)
				session, _ = s.Session(t.Context(), session.Key)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for length, writing := 0, true; writing; {
		grown := len(Log(t, s))
		if grown < length {
			t.Errorf("the log had %d receipts and has %d", length, grown)
		}
		length = grown
		select {
		case <-done:
			writing = false
		default:
		}
	}

	log, want := Log(t, s), 0
	for c := range sessions {
		for i := range turnsEach {
			want += 1 + (c+i)%3
		}
	}
	if len(log) != want {
		t.Fatalf("the log has %d receipts, want %d", len(log), want)
	}
	for i, r := range log {
		if r.Kind == store.KindToolCall && (log[i-1].TurnID != r.TurnID || log[i-1].SessionKey != r.SessionKey) {
			t.Errorf("%s follows %s of another turn", r.ID, log[i-1].ID)
		}
	}
}
