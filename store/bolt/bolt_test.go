package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	})
}

// open opens a store that is closed with the test.
func open(t testing.TB, path string, opts bolt.Options) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(path, opts)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}
