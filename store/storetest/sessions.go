package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

func commitIsReadBack(t *testing.T, s store.Store) {
	var last uint64
	session := newSession("k1")
	for i := range 3 {
		turn := next(session, fmt.Sprintf("KRN-%d", i))
		turn.Session.Eval = i == 2
		must(t, s.Commit(t.Context(), turn))
		got, err := s.Session(t.Context(), "k1")
		must(t, err)
		if got.Version <= last {
			t.Fatalf("version %d after %d: it must grow", got.Version, last)
		}
		last = got.Version
		want := turn.Session
		want.Version, want.Family = got.Version, "KRN-0"
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("session:\n got %+v\nwant %+v", got, want)
		}
		r, err := s.Receipt(t.Context(), turn.Receipt.ID)
		must(t, err)
		sameReceipt(t, r, turn.Receipt)
		session = got
	}
}

func newSessionIsNotFound(t *testing.T, s store.Store) {
	_, err := s.Session(t.Context(), "nobody")
	wantKind(t, "reading a new session", err, store.ErrNotFound)
}

func staleVersionConflicts(t *testing.T, s store.Store) {
	fresh := newSession("k1")
	must(t, s.Commit(t.Context(), next(fresh, "KRN-1")))
	first, err := s.Session(t.Context(), "k1")
	must(t, err)
	must(t, s.Commit(t.Context(), next(first, "KRN-2")))
	second, err := s.Session(t.Context(), "k1")
	must(t, err)

	wantKind(t, "commit on a stale version", s.Commit(t.Context(), next(first, "KRN-3")), store.ErrConflict)
	wantKind(t, "commit of a session as new", s.Commit(t.Context(), next(fresh, "KRN-4")), store.ErrConflict)
	unknown := newSession("k2")
	unknown.Version = second.Version
	wantKind(t, "commit on a version of no session", s.Commit(t.Context(), next(unknown, "KRN-5")), store.ErrConflict)

	after, err := s.Session(t.Context(), "k1")
	must(t, err)
	if !reflect.DeepEqual(after, second) {
		t.Errorf("a conflict changed the session: got %+v, want %+v", after, second)
	}
	for _, id := range []string{"KRN-3", "KRN-4", "KRN-5"} {
		_, err := s.Receipt(t.Context(), id)
		wantKind(t, "receipt of a conflict", err, store.ErrNotFound)
	}
	if got := len(all(t, s, 100)); got != 2 {
		t.Errorf("%d receipts, want 2", got)
	}
}

// A commit whose answer was lost is sent again, when the session may already be
// at a later version.
func repeatedCommitAddsNothing(t *testing.T, s store.Store) {
	first := next(newSession("k1"), "KRN-1")
	must(t, s.Commit(t.Context(), first))
	must(t, s.Commit(t.Context(), first))
	read, err := s.Session(t.Context(), "k1")
	must(t, err)
	must(t, s.Commit(t.Context(), next(read, "KRN-2")))
	before, err := s.Session(t.Context(), "k1")
	must(t, err)

	must(t, s.Commit(t.Context(), first))
	must(t, s.Commit(t.Context(), next(before, "KRN-1"))) // same id, newer version
	must(t, s.Append(t.Context(), first.Receipt))
	after, err := s.Session(t.Context(), "k1")
	must(t, err)
	if !reflect.DeepEqual(after, before) {
		t.Errorf("a repeated commit changed the session: got %+v, want %+v", after, before)
	}
	if got := len(all(t, s, 100)); got != 2 {
		t.Errorf("%d receipts, want 2", got)
	}
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != 2 {
		t.Errorf("statistics count %d receipts, want 2", stats.TotalReceipts)
	}
}

func oneCommitterWinsEachVersion(t *testing.T, s store.Store) {
	const committers, turnsEach = 8, 5
	var mu sync.Mutex
	winners := map[uint64]string{}
	var group sync.WaitGroup
	for c := range committers {
		group.Go(func() {
			for i := range turnsEach {
				id := fmt.Sprintf("KRN-%d-%d", c, i)
				version, err := commitUntilDone(t, s, "k1", id)
				if err != nil {
					t.Errorf("committing %s: %v", id, err)
					return
				}
				mu.Lock()
				if other, taken := winners[version]; taken {
					t.Errorf("%s and %s both won on version %d", id, other, version)
				}
				winners[version] = id
				mu.Unlock()
			}
		})
	}
	group.Wait()
	session, err := s.Session(t.Context(), "k1")
	must(t, err)
	if session.Turns != committers*turnsEach {
		t.Errorf("session has %d turns, want %d", session.Turns, committers*turnsEach)
	}
	checkChain(t, session.Head, all(t, s, 7), committers*turnsEach)
}

// commitUntilDone commits one turn and returns the version it was computed on.
func commitUntilDone(t *testing.T, s store.Store, key, id string) (uint64, error) {
	for {
		session, err := s.Session(t.Context(), key)
		if errors.Is(err, store.ErrNotFound) {
			session, err = newSession(key), nil
		}
		if err != nil {
			return 0, err
		}
		if err := s.Commit(t.Context(), next(session, id)); !errors.Is(err, store.ErrConflict) {
			return session.Version, err
		}
	}
}

// checkChain follows the records from the session's head back to its first.
func checkChain(t *testing.T, head string, newestFirst []store.Receipt, length int) {
	t.Helper()
	if len(newestFirst) != length {
		t.Fatalf("%d receipts, want %d", len(newestFirst), length)
	}
	for _, r := range newestFirst {
		if r.ID != head {
			t.Fatalf("the chain says %s, the listing has %s", head, r.ID)
		}
		var record struct {
			Prev string `json:"prev"`
		}
		must(t, json.Unmarshal(r.JSON, &record))
		head = record.Prev
	}
	if head != "" {
		t.Errorf("the first receipt follows %s", head)
	}
}

func manySessionsCommitAtOnce(t *testing.T, s store.Store) {
	const sessions, turnsEach = 64, 4
	var group sync.WaitGroup
	for c := range sessions {
		group.Go(func() {
			for i := range turnsEach {
				version, err := commitUntilDone(t, s, fmt.Sprintf("k%d", c), fmt.Sprintf("KRN-%d-%d", c, i))
				if err != nil || (i == 0) != (version == 0) {
					t.Errorf("turn %d of session %d on version %d: %v", i, c, version, err)
				}
			}
		})
	}
	group.Wait()
	chains := map[string][]store.Receipt{}
	for _, r := range all(t, s, 50) {
		chains[r.SessionKey] = append(chains[r.SessionKey], r)
	}
	for c := range sessions {
		session, err := s.Session(t.Context(), fmt.Sprintf("k%d", c))
		must(t, err)
		checkChain(t, session.Head, chains[session.Key], turnsEach)
	}
}

func commitKeepsNoReference(t *testing.T, s store.Store) {
	turn := next(newSession("k1"), "KRN-1")
	want := next(newSession("k1"), "KRN-1")
	must(t, s.Commit(t.Context(), turn))
	clear(turn.Receipt.JSON)
	clear(turn.Receipt.Summary)
	clear(turn.Session.Secret)
	clear(turn.Session.Centre)
	for range 2 { // what the store returns is the caller's to change, too
		r, err := s.Receipt(t.Context(), "KRN-1")
		must(t, err)
		sameReceipt(t, r, want.Receipt)
		clear(r.JSON)
		listed := summaries(t, s, 10)
		if len(listed) != 1 || string(listed[0].JSON) != string(want.Receipt.Summary) {
			t.Errorf("summaries changed with the caller's memory: %q", listed)
		}
		clear(listed[0].JSON)
		session, err := s.Session(t.Context(), "k1")
		must(t, err)
		if !reflect.DeepEqual(session.Secret, want.Session.Secret) || !reflect.DeepEqual(session.Centre, want.Session.Centre) {
			t.Errorf("session changed with the caller's memory: %+v", session)
		}
		clear(session.Secret)
		clear(session.Centre)
	}
}

func invalidTurnsAreRefused(t *testing.T, s store.Store) {
	for name, spoil := range map[string]func(*store.Change){
		"no id":            func(t *store.Change) { t.Receipt.ID = "" },
		"no record":        func(t *store.Change) { t.Receipt.JSON = nil },
		"other kind":       func(t *store.Change) { t.Receipt.Kind = "ABC" },
		"negative turn":    func(t *store.Change) { t.Receipt.Turn = -1 },
		"margin NaN":       func(t *store.Change) { t.Receipt.MAfter = math.NaN() },
		"level above 100":  func(t *store.Change) { t.Receipt.Level = store.Level{AttackType: kernel.NoAttack, At: 101} },
		"level below 0":    func(t *store.Change) { t.Receipt.Level = store.Level{AttackType: kernel.NoAttack, At: -1} },
		"level of no type": func(t *store.Change) { t.Receipt.Level = store.Level{At: 1} },
		"margin above 1":   func(t *store.Change) { t.Receipt.MAfter = 1.01 },
		"other session":    func(t *store.Change) { t.Receipt.SessionKey = "k2" },
		"no session":       func(t *store.Change) { t.Receipt.SessionKey, t.Session.Key = "", "" },
		"state not finite": func(t *store.Change) { t.Session.State.CUSUM = math.Inf(1) },
	} {
		turn := next(newSession("k1"), "KRN-1")
		spoil(&turn)
		wantKind(t, name, s.Commit(t.Context(), turn), store.ErrInvalid)
	}
	wantKind(t, "receipt without id", s.Append(t.Context(), store.Receipt{}), store.ErrInvalid)
	wantKind(t, "key without hash", s.PutKey(t.Context(), store.Key{ID: "1"}), store.ErrInvalid)
	if got := all(t, s, 10); len(got) != 0 {
		t.Errorf("invalid turns left receipts: %+v", got)
	}
}

func eraseForgetsTheSessionOnly(t *testing.T, s store.Store) {
	turn, other := next(newSession("k1"), "KRN-1"), next(newSession("k2"), "KRN-2")
	must(t, s.Commit(t.Context(), turn))
	must(t, s.Commit(t.Context(), other))
	before, err := s.Stats(t.Context())
	must(t, err)

	must(t, s.Erase(t.Context(), "k1"))
	must(t, s.Erase(t.Context(), "k1"))
	must(t, s.Erase(t.Context(), "never seen"))
	_, err = s.Session(t.Context(), "k1")
	wantKind(t, "reading an erased session", err, store.ErrNotFound)
	_, err = s.Session(t.Context(), "k2")
	must(t, err)
	r, err := s.Receipt(t.Context(), "KRN-1")
	must(t, err)
	sameReceipt(t, r, turn.Receipt)
	after, err := s.Stats(t.Context())
	must(t, err)
	if !reflect.DeepEqual(after, before) {
		t.Errorf("erasing changed the statistics: %+v, before %+v", after, before)
	}
}

// A turn that was computed before the session was erased must not be committed
// on the session that took its place: it would bring back what was erased.
func erasedVersionsNeverComeBack(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), next(newSession("k1"), "KRN-1")))
	old, err := s.Session(t.Context(), "k1")
	must(t, err)
	must(t, s.Erase(t.Context(), "k1"))
	wantKind(t, "commit on an erased session", s.Commit(t.Context(), next(old, "KRN-2")), store.ErrConflict)
	must(t, s.Commit(t.Context(), next(newSession("k1"), "KRN-3")))
	wantKind(t, "commit on the session before", s.Commit(t.Context(), next(old, "KRN-4")), store.ErrConflict)
}
