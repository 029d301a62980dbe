// Package cache keeps tide tables on disk between two runs.
package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// ErrStale says that a table is older than the caller allows.
var ErrStale = errors.New("cache: table is stale")

// A Store is a folder of tables. It is safe for concurrent use.
type Store struct {
	dir    string
	client *http.Client
	token  string // sent as a bearer token, if it is not empty
}

// Get returns the table of a port. It asks the server if the file is missing, and
// overwrites what is there. You must not change the slice that it returns.
func (s *Store) Get(ctx context.Context, port string, oldest time.Duration) ([]byte, error) {
	name := filepath.Join(s.dir, port+".json")
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s.fetch(ctx, port)
	case err != nil:
		return nil, fmt.Errorf("cache: %w", err)
	case time.Since(info.ModTime()) > oldest:
		return nil, ErrStale
	}
	return os.ReadFile(name)
}

// Forget deletes every table. It ignores files that somebody else has put there.
func (s *Store) Forget() error {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
