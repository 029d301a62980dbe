package storetest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/store"
)

// nextWithCalls returns a turn of the session with n tool calls. The calls have the id of
// the turn, and the last of them is the session's head.
func nextWithCalls(s store.Session, id string, n int) store.Change {
	c := next(s, id)
	c.Receipt.TurnID = "turn-" + id
	for i := range n {
		call := newReceipt(fmt.Sprintf("TCR-%s-%d", id, i+1), s.Key, c.Receipt.Turn)
		call.Kind, call.TurnID, call.MAfter, call.Intervened = store.KindToolCall, c.Receipt.TurnID, 0.25, i%2 == 0
		call.JSON = fmt.Appendf(nil, `{"prev": %q, "id":%q}`, c.Session.Head, call.ID)
		c.Calls = append(c.Calls, call)
		c.Session.Head = call.ID
	}
	return c
}

// wantListed checks that the store lists these receipts, oldest first, and their
// summaries.
func wantListed(t *testing.T, s store.Store, want ...store.Receipt) {
	t.Helper()
	got, listed := all(t, s, 3), summaries(t, s, 3)
	if len(got) != len(want) || len(listed) != len(want) {
		t.Fatalf("%d receipts and %d summaries, want %d", len(got), len(listed), len(want))
	}
	for i, r := range slices.Backward(got) {
		sameReceipt(t, r, want[len(want)-1-i])
		if listed[i].ID != r.ID || listed[i].Cursor != r.Cursor || string(listed[i].JSON) != string(want[len(want)-1-i].Summary) {
			t.Errorf("the summary of %s is %q", r.ID, listed[i])
		}
	}
}

func callsFollowTheirTurn(t *testing.T, s store.Store) {
	first := nextWithCalls(newSession("k1"), "KRN-1", 3)
	must(t, s.Commit(t.Context(), first))
	session := read(t, s, "k1")
	if session.Head != "TCR-KRN-1-3" || session.Turns != 1 {
		t.Errorf("session %+v", session)
	}
	second := nextWithCalls(session, "KRN-2", 1)
	must(t, s.Commit(t.Context(), second))
	if again := read(t, s, "k1"); again.Version <= session.Version || again.Head != "TCR-KRN-2-1" {
		t.Errorf("session %+v after %+v", again, session)
	}
	written := append(first.Receipts(), second.Receipts()...)
	wantListed(t, s, written...)
	checkChain(t, "TCR-KRN-2-1", all(t, s, 2), 6)
	for _, want := range written {
		got, err := s.Receipt(t.Context(), want.ID)
		must(t, err)
		sameReceipt(t, got, want)
	}
	m := &model{excluded: map[string]bool{}}
	for _, r := range written {
		m.add(r, false)
	}
	m.check(t, s)

	most := nextWithCalls(newSession("k2"), "KRN-3", store.MaxCalls)
	must(t, s.Commit(t.Context(), most))
	if got := len(all(t, s, 100)); got != 6+1+store.MaxCalls {
		t.Errorf("%d receipts", got)
	}
}

func repeatedCommitAddsNoCall(t *testing.T, s store.Store) {
	first := nextWithCalls(newSession("k1"), "KRN-1", 2)
	must(t, s.Commit(t.Context(), first))
	before := read(t, s, "k1")
	must(t, s.Commit(t.Context(), first))
	must(t, s.Commit(t.Context(), nextWithCalls(before, "KRN-1", 4))) // the same id, a newer version and more calls
	must(t, s.Append(t.Context(), first.Receipts()...))
	if after := read(t, s, "k1"); !reflect.DeepEqual(after, before) {
		t.Errorf("a repeated commit changed the session: got %+v, want %+v", after, before)
	}
	wantListed(t, s, first.Receipts()...)

	// A call that is there already is not written twice.
	call := nextWithCalls(before, "KRN-2", 2)
	must(t, s.Append(t.Context(), call.Calls[0]))
	must(t, s.Commit(t.Context(), call))
	wantListed(t, s, append(first.Receipts(), call.Calls[0], call.Receipt, call.Calls[1])...)
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != 6 {
		t.Errorf("statistics count %d receipts, want 6", stats.TotalReceipts)
	}
}

func conflictsWriteNoCall(t *testing.T, s store.Store) {
	first := nextWithCalls(newSession("k1"), "KRN-1", 2)
	must(t, s.Commit(t.Context(), first))
	old := read(t, s, "k1")
	wantKind(t, "a turn that came too late", s.Commit(t.Context(), nextWithCalls(newSession("k1"), "KRN-2", 2)), store.ErrConflict)
	must(t, s.Erase(t.Context(), "k1"))
	late := nextWithCalls(old, "KRN-3", 2)
	wantKind(t, "a turn of an erased session", s.Commit(t.Context(), late), store.ErrConflict)
	late.Session.Key, late.Session.Version, late.Receipt.SessionKey = "k2", 0, "k2"
	for i := range late.Calls {
		late.Calls[i].SessionKey = "k2"
	}
	wantKind(t, "a turn of an erased family", s.Commit(t.Context(), late), store.ErrConflict)
	wantGone(t, s, "k1", "k2")

	// The receipts of an erased session stay, those of its calls, too.
	wantListed(t, s, first.Receipts()...)
	for _, id := range []string{"turn-KRN-2", "turn-KRN-3"} {
		_, err := s.ReceiptOfTurn(t.Context(), id)
		wantKind(t, id, err, store.ErrNotFound)
	}
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != 3 {
		t.Errorf("statistics count %d receipts, want 3", stats.TotalReceipts)
	}
}

func invalidCallsAreRefused(t *testing.T, s store.Store) {
	for name, spoil := range map[string]func(*store.Change){
		"too many":         func(c *store.Change) { *c = nextWithCalls(newSession("k1"), "KRN-1", store.MaxCalls+1) },
		"another session":  func(c *store.Change) { c.Calls[1].SessionKey = "k2" },
		"no session":       func(c *store.Change) { c.Calls[1].SessionKey = "" },
		"a text":           func(c *store.Change) { c.Calls[1].Kind = store.KindText },
		"no id":            func(c *store.Change) { c.Calls[1].ID = "" },
		"no record":        func(c *store.Change) { c.Calls[2].JSON = nil },
		"margin NaN":       func(c *store.Change) { c.Calls[2].MAfter = math.NaN() },
		"the turn's id":    func(c *store.Change) { c.Calls[2].ID = c.Receipt.ID },
		"another call's":   func(c *store.Change) { c.Calls[2].ID = c.Calls[0].ID },
		"an invalid turn":  func(c *store.Change) { c.Receipt.JSON = nil },
		"state not finite": func(c *store.Change) { c.Session.State.CUSUM = math.Inf(1) },
	} {
		c := nextWithCalls(newSession("k1"), "KRN-1", 3)
		spoil(&c)
		wantKind(t, name, s.Commit(t.Context(), c), store.ErrInvalid)
	}
	wantListed(t, s)
	wantGone(t, s, "k1")
}

// Whoever reads while others commit sees each turn with all of its calls, or nothing of
// it, and nothing of another turn in between.
func turnsAreListedWhole(t *testing.T, s store.Store) {
	const sessions, turnsEach = 8, 6
	var group sync.WaitGroup
	for c := range sessions {
		group.Go(func() {
			session := newSession(fmt.Sprint("k", c))
			for i := range turnsEach {
				change := nextWithCalls(session, fmt.Sprintf("KRN-%d-%d", c, i), (c+i)%4)
				if err := s.Commit(t.Context(), change); err != nil {
					t.Errorf("committing: %v", err)
					return
				}
				session, _ = s.Session(t.Context(), session.Key)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for reading := true; reading; {
		wantWholeTurns(t, s)
		select {
		case <-done:
			reading = false
		default:
		}
	}
	if turns := wantWholeTurns(t, s); turns != sessions*turnsEach {
		t.Errorf("%d turns, want %d", turns, sessions*turnsEach)
	}
	for c := range sessions {
		chain := slices.DeleteFunc(all(t, s, 50), func(r store.Receipt) bool { return r.SessionKey != fmt.Sprint("k", c) })
		checkChain(t, read(t, s, fmt.Sprint("k", c)).Head, chain, len(chain))
	}
}

// wantWholeTurns checks one moment of the listing and returns how many turns it has.
func wantWholeTurns(t *testing.T, s store.Store) (turns int) {
	t.Helper()
	list, err := s.Recent(t.Context(), "", 10_000)
	must(t, err)
	var above []string // the calls above a turn, the last one first
	for _, r := range list {
		if r.Kind == store.KindToolCall {
			above = append(above, r.ID)
			continue
		}
		turns++
		var c, i int
		_, err := fmt.Sscanf(r.ID, "KRN-%d-%d", &c, &i)
		must(t, err)
		var want []string
		for n := (c + i) % 4; n > 0; n-- {
			want = append(want, fmt.Sprintf("TCR-%s-%d", r.ID, n))
		}
		if !slices.Equal(above, want) {
			t.Errorf("above %s stand %v, want %v", r.ID, above, want)
		}
		above = nil
	}
	if len(above) > 0 {
		t.Errorf("the oldest receipts are calls without a turn: %v", above)
	}
	return turns
}

func appendIsAllOrNone(t *testing.T, s store.Store) {
	receipts := nextWithCalls(newSession("k1"), "KRN-1", 3).Receipts()
	must(t, s.Append(t.Context()))
	broken := slices.Clone(receipts)
	broken[3].JSON = nil
	wantKind(t, "one of several is invalid", s.Append(t.Context(), broken...), store.ErrInvalid)
	many := nextWithCalls(newSession("k1"), "KRN-2", store.MaxCalls+1).Receipts()
	wantKind(t, "too many", s.Append(t.Context(), many...), store.ErrInvalid)
	wantListed(t, s)

	must(t, s.Append(t.Context(), receipts[1]))
	must(t, s.Append(t.Context(), receipts...)) // those that are missing
	must(t, s.Append(t.Context(), receipts...))
	must(t, s.Append(t.Context(), receipts[2], receipts[2]))
	wantListed(t, s, receipts[1], receipts[0], receipts[2], receipts[3])
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != 4 {
		t.Errorf("statistics count %d receipts, want 4", stats.TotalReceipts)
	}
	wantGone(t, s, "k1")

	must(t, s.Append(t.Context(), many[:1+store.MaxCalls]...))
	if got := len(all(t, s, 100)); got != 5+store.MaxCalls {
		t.Errorf("%d receipts", got)
	}
}

func turnsOwnReceiptComesFirst(t *testing.T, s store.Store) {
	want := func(turnID, id string) {
		t.Helper()
		r, err := s.ReceiptOfTurn(t.Context(), turnID)
		must(t, err)
		if r.ID != id {
			t.Errorf("%s leads to %s, want %s", turnID, r.ID, id)
		}
	}
	turn := nextWithCalls(newSession("k1"), "KRN-1", 2)
	must(t, s.Commit(t.Context(), turn))
	want("turn-KRN-1", "KRN-1")

	call := func(id, turnID string) store.Receipt {
		r := newReceipt(id, "", 1)
		r.Kind, r.TurnID = store.KindToolCall, turnID
		return r
	}
	lone := next(newSession("k2"), "TCR-2") // of a call that is checked on its own
	lone.Receipt.Kind, lone.Receipt.TurnID = store.KindToolCall, "turn-2"
	must(t, s.Commit(t.Context(), lone))
	want("turn-2", "TCR-2")
	must(t, s.Append(t.Context(), call("TCR-3", "turn-2"), call("TCR-4", "turn-KRN-1")))
	want("turn-2", "TCR-2")
	want("turn-KRN-1", "KRN-1")

	text := newReceipt("KRN-5", "", 1)
	text.TurnID = "turn-2"
	must(t, s.Append(t.Context(), call("TCR-5", "turn-5"), text, call("TCR-6", "turn-2")))
	want("turn-2", "KRN-5")
	want("turn-5", "TCR-5")
}

// A session that is taken out of the statistics takes its calls with it.
func excludedSessionsTakeTheirCalls(t *testing.T, s store.Store) {
	total := func() int {
		t.Helper()
		stats, err := s.Stats(t.Context())
		must(t, err)
		return stats.TotalReceipts
	}
	must(t, s.Commit(t.Context(), nextWithCalls(newSession("k1"), "KRN-1", 2)))
	must(t, s.Commit(t.Context(), nextWithCalls(newSession("k2"), "KRN-2", 2)))
	if got := total(); got != 6 {
		t.Fatalf("%d receipts count, want 6", got)
	}
	eval := nextWithCalls(read(t, s, "k1"), "KRN-3", 2)
	eval.Session.Eval = true
	must(t, s.Commit(t.Context(), eval))
	if got := total(); got != 3 {
		t.Errorf("%d receipts count after one session was taken out, want 3", got)
	}
	long := nextWithCalls(read(t, s, "k2"), "KRN-4", 3)
	long.Calls[1].Turn = store.MaxCountedTurn + 1
	must(t, s.Commit(t.Context(), long))
	if got := total(); got != 0 {
		t.Errorf("%d receipts count after both were taken out, want 0", got)
	}
	alone := newReceipt("TCR-5", "", store.MaxCountedTurn+1) // takes nothing but itself out
	must(t, s.Append(t.Context(), alone, newReceipt("KRN-6", "", 1), newReceipt("KRN-7", "", 1)))
	if got := total(); got != 2 {
		t.Errorf("%d receipts of no session count, want 2", got)
	}
}

func commitKeepsNoReferenceToCalls(t *testing.T, s store.Store) {
	change, want := nextWithCalls(newSession("k1"), "KRN-1", 2), nextWithCalls(newSession("k1"), "KRN-1", 2)
	must(t, s.Commit(t.Context(), change))
	for _, r := range change.Calls {
		clear(r.JSON)
		clear(r.Summary)
	}
	change.Calls[0] = store.Receipt{}
	wantListed(t, s, want.Receipts()...)
}
