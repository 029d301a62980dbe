package bolt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

// What every turn reads does not wait for a batch, nor for another session's.
func TestSessionsAndKeysAreReadBesideABatch(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	must(t, s.PutKey(t.Context(), store.Key{Hash: "h"}))
	if _, err := advance(t.Context(), s, "k0"); err != nil {
		t.Fatal(err)
	}
	release := bolt.Hold(s)
	defer release()
	if got, err := s.Session(t.Context(), "k0"); err != nil || got.Turns != 1 {
		t.Errorf("a session beside a batch: %d turns, %v", got.Turns, err)
	}
	if _, err := s.Session(t.Context(), "k1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no session beside a batch: %v", err)
	}
	if _, err := s.Key(t.Context(), "h"); err != nil {
		t.Errorf("a key beside a batch: %v", err)
	}
}

// When nobody knows whether a commit of the tree succeeded, what the journal had before it says
// nothing any more.
func TestSessionsAfterACommitThatNobodySaw(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	if _, err := advance(t.Context(), s, "k0"); err != nil {
		t.Fatal(err)
	}
	must(t, bolt.EraseUnseen(s, "k0"))
	if got, err := s.Session(t.Context(), "k0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is read as it was before the commit, with %d turns: %v", got.Turns, err)
	}
}

// A session is read as its last turn left it, and never as it was before, while the tree is
// committed a few times, others take their turns, and sessions are erased.
func TestSessionsAreReadAsTheyWereLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	const callers, turns, erasedAfter = 8, 120, 37
	var group sync.WaitGroup
	stop := make(chan struct{})
	for caller := range callers {
		group.Go(func() {
			for turn := range turns {
				key := fmt.Sprintf("k%d of %d", turn/erasedAfter, caller)
				if _, err := advance(t.Context(), s, key); err != nil {
					t.Errorf("turn %d of %s: %v", turn, key, err)
					return
				}
				if got, err := s.Session(t.Context(), key); err != nil || got.Turns != turn%erasedAfter+1 {
					t.Errorf("%s has %d turns after turn %d: %v", key, got.Turns, turn%erasedAfter+1, err)
				}
				if turn%erasedAfter != erasedAfter-1 {
					continue
				}
				if err := s.Erase(t.Context(), key); err != nil {
					t.Errorf("erasing %s: %v", key, err)
				}
				if _, err := s.Session(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s after it was erased: %v", key, err)
				}
			}
		})
	}
	var watcher sync.WaitGroup
	watcher.Go(func() {
		versions := make(map[string]uint64)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			key := fmt.Sprintf("k%d of %d", n/callers%(turns/erasedAfter), n%callers)
			if got, err := s.Session(t.Context(), key); err == nil {
				if got.Version < versions[key] {
					t.Errorf("%s went back from version %d to %d", key, versions[key], got.Version)
				}
				versions[key] = got.Version
			}
		}
	})
	group.Wait()
	close(stop)
	watcher.Wait()
	must(t, s.Close())
	s = open(t, path, bolt.Options{})
	if got, err := s.Session(t.Context(), fmt.Sprintf("k%d of 0", turns/erasedAfter)); err != nil || got.Turns != turns%erasedAfter {
		t.Errorf("after it was opened again: %d turns, %v", got.Turns, err)
	}
}
