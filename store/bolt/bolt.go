package bolt

import (
	"errors"
	"time"

	"github.com/caddy-lex/lex/store"
)

// Options adjusts a store. The zero value is right for production.
type Options struct {
	// Now is the clock of the limits' windows. Default: time.Now.
	Now func() time.Time
}

// Store is a [store.Store] in one file.
type Store struct{ store.Store }

// Open opens the file, and creates it when it is not there.
func Open(path string, opts Options) (*Store, error) { return nil, errors.New("opening: not yet") }
