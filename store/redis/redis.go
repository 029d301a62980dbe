package redis

import (
	"context"
	"errors"

	"github.com/caddy-lex/lex/store"
)

// Options adjusts a store. The zero value is right for production.
type Options struct{}

// Store is a [store.Store] in Redis.
type Store struct{ store.Store }

// Open connects to the server.
func Open(ctx context.Context, urls []string, opts Options) (*Store, error) {
	return nil, errors.New("opening: not yet")
}
