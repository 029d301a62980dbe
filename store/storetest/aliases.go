package storetest

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/store"
)

// with returns the change with aliases.
func with(c store.Change, aliases ...string) store.Change {
	c.Aliases = aliases
	return c
}

// derived is a turn that follows a session that was read, under a key of its own,
// as the turns of a resent conversation do.
func derived(from store.Session, key, id string) store.Change {
	from.Key, from.Version = key, 0
	return next(from, id)
}

// read returns the session that the key leads to.
func read(t *testing.T, s store.Store, key string) store.Session {
	t.Helper()
	session, err := s.Session(t.Context(), key)
	must(t, err)
	return session
}

// wantGone checks that no key leads anywhere.
func wantGone(t *testing.T, s store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		_, err := s.Session(t.Context(), key)
		wantKind(t, "reading "+key, err, store.ErrNotFound)
	}
}

func aliasesLeadToTheSession(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), with(next(newSession("k1"), "KRN-1"), "a1", "a2")))
	first := read(t, s, "k1")
	if first.Key != "k1" || first.Family != "KRN-1" {
		t.Errorf("key %q, family %q", first.Key, first.Family)
	}
	must(t, s.Commit(t.Context(), with(next(first, "KRN-2"), "a3")))
	second := read(t, s, "k1")
	for _, alias := range []string{"a1", "a2", "a3"} {
		if got := read(t, s, alias); !reflect.DeepEqual(got, second) {
			t.Errorf("%s leads to %+v, want %+v", alias, got, second)
		}
	}
	// An alias that is given again leads to where it was given last.
	must(t, s.Commit(t.Context(), with(next(newSession("k2"), "KRN-3"), "a1")))
	if got := read(t, s, "a1"); got.Key != "k2" {
		t.Errorf("a1 leads to %s", got.Key)
	}
	if got := read(t, s, "a2"); got.Key != "k1" {
		t.Errorf("a2 leads to %s", got.Key)
	}
	// As many as a change may have.
	var many []string
	for i := range store.MaxAliases {
		many = append(many, fmt.Sprint("m", i))
	}
	must(t, s.Commit(t.Context(), with(next(newSession("k3"), "KRN-4"), many...)))
	for _, alias := range many {
		if got := read(t, s, alias); got.Key != "k3" {
			t.Errorf("%s leads to %s", alias, got.Key)
		}
	}
	for name, bad := range map[string][]string{"empty": {"b", ""}, "its own key": {"k4"}, "too many": append(many, "one more")} {
		wantKind(t, name, s.Commit(t.Context(), with(next(newSession("k4"), "KRN-5"), bad...)), store.ErrInvalid)
	}
	wantGone(t, s, "k4", "b", "one more")
}

func aliasesAreAtomic(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), next(newSession("k1"), "KRN-1")))
	wantKind(t, "commit of a session as new",
		s.Commit(t.Context(), with(next(newSession("k1"), "KRN-2"), "a1")), store.ErrConflict)
	wantGone(t, s, "a1")

	// Of many that race for one version, one wins, and only its alias is there.
	start := read(t, s, "k1")
	const racers = 16
	won := make([]bool, racers)
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() {
			won[i] = s.Commit(t.Context(), with(next(start, fmt.Sprint("KRN-r", i)), fmt.Sprint("r", i))) == nil
		})
	}
	group.Wait()
	winners := 0
	for i := range racers {
		_, err := s.Session(t.Context(), fmt.Sprint("r", i))
		if (err == nil) != won[i] {
			t.Errorf("racer %d won: %v, its alias: %v", i, won[i], err)
		}
		if won[i] {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%d winners", winners)
	}

	// A repeated commit changes no alias, like all else.
	must(t, s.Commit(t.Context(), with(next(newSession("k2"), "KRN-3"), "a2")))
	must(t, s.Commit(t.Context(), with(next(newSession("k3"), "KRN-4"), "a2")))
	must(t, s.Commit(t.Context(), with(next(newSession("k2"), "KRN-3"), "a2")))
	if got := read(t, s, "a2"); got.Key != "k3" {
		t.Errorf("a2 leads to %s", got.Key)
	}
}

func ownSessionsWinOverAliases(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), with(next(newSession("k1"), "KRN-1"), "k2")))
	must(t, s.Commit(t.Context(), next(newSession("k2"), "KRN-2")))
	must(t, s.Commit(t.Context(), with(next(newSession("k3"), "KRN-3"), "k2")))
	if got := read(t, s, "k2"); got.Key != "k2" || got.Head != "KRN-2" {
		t.Errorf("k2 leads to %+v", got)
	}
}

func eraseForgetsTheFamily(t *testing.T, s store.Store) {
	for i, by := range []string{"k1", "k2", "k3", "a1", "a2"} {
		id := func(n int) string { return fmt.Sprintf("KRN-%d-%d", i, n) }
		must(t, s.Commit(t.Context(), with(next(newSession("k1"), id(1)), "a1")))
		must(t, s.Commit(t.Context(), with(derived(read(t, s, "a1"), "k2", id(2)), "a2")))
		must(t, s.Commit(t.Context(), derived(read(t, s, "k1"), "k3", id(3)))) // another branch
		before, err := s.Stats(t.Context())
		must(t, err)
		must(t, s.Erase(t.Context(), by))
		wantGone(t, s, "k1", "k2", "k3", "a1", "a2")
		for n := range 3 {
			if _, err := s.Receipt(t.Context(), id(n+1)); err != nil {
				t.Errorf("by %s: %v", by, err)
			}
		}
		if after, err := s.Stats(t.Context()); err != nil || !reflect.DeepEqual(after, before) {
			t.Errorf("by %s: statistics %+v, before %+v: %v", by, after, before, err)
		}
	}
}

// Turns that were computed from an erased session must not bring its secret back,
// whatever their key.
func erasedFamiliesNeverComeBack(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), next(newSession("k1"), "KRN-1")))
	old := read(t, s, "k1")
	must(t, s.Commit(t.Context(), derived(old, "k2", "KRN-2")))
	must(t, s.Erase(t.Context(), "k2"))
	wantKind(t, "a turn under a new key", s.Commit(t.Context(), with(derived(old, "k3", "KRN-3"), "a3")), store.ErrConflict)
	wantGone(t, s, "k1", "k2", "k3", "a3")
	must(t, s.Commit(t.Context(), next(newSession("k1"), "KRN-4")))
	wantKind(t, "after the session began anew", s.Commit(t.Context(), derived(old, "k3", "KRN-5")), store.ErrConflict)

	// Among racing turns and an erasure nothing of the family is left behind the
	// last of them.
	session := read(t, s, "k1")
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			change := with(derived(session, fmt.Sprint("r", i), fmt.Sprint("KRN-r", i)), fmt.Sprint("ra", i))
			_ = s.Commit(t.Context(), change) // it may come too late
		})
	}
	group.Go(func() {
		if err := s.Erase(t.Context(), "k1"); err != nil {
			t.Errorf("erasing: %v", err)
		}
	})
	group.Wait()
	wantGone(t, s, "k1")
	for i := range 16 {
		wantGone(t, s, fmt.Sprint("r", i), fmt.Sprint("ra", i))
	}
}

func eraseLeavesOtherFamilies(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), with(next(newSession("k1"), "KRN-1"), "shared", "k2")))
	must(t, s.Commit(t.Context(), with(next(newSession("k2"), "KRN-2"), "shared")))
	must(t, s.Commit(t.Context(), next(newSession(strings.Repeat("k", 64)), "KRN-3")))
	must(t, s.Erase(t.Context(), "k1"))
	wantGone(t, s, "k1")
	if got := read(t, s, "shared"); got.Key != "k2" {
		t.Errorf("shared leads to %s", got.Key)
	}
	if got := read(t, s, "k2"); got.Head != "KRN-2" {
		t.Errorf("k2 is %+v", got)
	}
	must(t, s.Erase(t.Context(), "shared"))
	wantGone(t, s, "k2", "shared")
	read(t, s, strings.Repeat("k", 64))
}
