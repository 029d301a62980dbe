package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/store"
)

// sharedStores holds what outlives a configuration, keyed by the store's identity,
// so that a reload which keeps the store keeps the open file, the locks and
// the cached lists.
var sharedStores = caddy.NewUsagePool()

// openTimeout bounds opening a store.
const openTimeout = 5 * time.Second

// A sharedStore is an open store and the in-process state that belongs to it. It
// is safe for concurrent use. Every user holds one reference in the pool: each
// configuration, and each request in flight, since a request may outlive the
// configuration it began under.
type sharedStore struct {
	key        string // in the pool; empty if it is in none, and never closed
	store      store.Store
	locks      *govern.Locks
	benchmarks benchmarkCache
	health     *healthLog
	refunds    *refunds
	window     *console.Window
}

func newSharedStore(key string, s store.Store) *sharedStore {
	return &sharedStore{key: key, store: s, locks: govern.NewLocks(), health: new(healthLog), refunds: newRefunds(s), window: console.NewWindow(s, time.Now)}
}

// acquireStore opens the store, or takes another reference to it.
func acquireStore(opener StoreOpener, logger *zap.Logger) (*sharedStore, error) {
	key := opener.StoreKey()
	for {
		value, _, err := sharedStores.LoadOrNew(key, func() (caddy.Destructor, error) {
			ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
			defer cancel()
			s, err := opener.OpenStore(ctx)
			if err != nil {
				return nil, fmt.Errorf("opening the store: %w", err)
			}
			return newSharedStore(key, measured(s)), nil
		})
		if errors.Is(err, errStoreClosed) {
			continue // a late request of another configuration looked for it just now
		}
		if err != nil {
			return nil, err
		}
		e, ok := value.(*sharedStore)
		if !ok {
			return nil, fmt.Errorf("the pool of stores holds a %T", value)
		}
		e.health.loggers.join(logger)
		return e, nil
	}
}

// leave is release for a configuration, whose logger goes with it.
func (s *sharedStore) leave(logger *zap.Logger) error {
	s.health.loggers.leave(logger)
	return s.release()
}

// errStoreClosed says that nobody holds the store any more, or that it was opened anew since.
var errStoreClosed = errors.New("the store is closed")

// retain takes another reference, or returns errStoreClosed.
func (s *sharedStore) retain() error {
	if s.key == "" {
		return nil
	}
	open, _, err := sharedStores.LoadOrNew(s.key, func() (caddy.Destructor, error) { return nil, errStoreClosed })
	if err == nil && open != s {
		err = errors.Join(errStoreClosed, s.release())
	}
	return err
}

// release gives one reference back; the last one closes the store.
func (s *sharedStore) release() error {
	if s.key == "" {
		return nil
	}
	_, err := sharedStores.Delete(s.key)
	return err
}

// Destruct closes the store. The pool calls it.
func (s *sharedStore) Destruct() error {
	s.refunds.close()
	s.window.Close()
	return s.store.Close()
}

// healthLog writes one line when the store fails and one when it is back,
// never one a request.
type healthLog struct {
	loggers loggers
	mu      sync.Mutex
	outage  outage
}

// record notes the outcome of a store operation and reports whether the state
// changed. The line has the error, which by the contract of [store.Store] holds no
// prompt, no credential and no address.
func (h *healthLog) record(err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch changed = h.outage.note(err != nil); {
	case changed && err != nil:
		h.loggers.current().Warn("the store is failing; governed requests are answered with an error until it is back", zap.String("cause", err.Error()))
	case changed:
		h.loggers.current().Warn("the store is back")
	}
	return changed
}

// loggers are those of the configurations that share something. The last one to
// join is in force, until it leaves: a reload starts the new configuration
// before it stops the old one, and takes back one that failed.
type loggers struct {
	mu     sync.Mutex
	joined []*zap.Logger
}

func (l *loggers) join(logger *zap.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined = append(l.joined, logger)
}

func (l *loggers) leave(logger *zap.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.joined, logger); i >= 0 {
		l.joined = slices.Delete(l.joined, i, i+1)
	}
}

// current returns the logger in force. What outlives all configurations is not
// logged: their logs are closed.
func (l *loggers) current() *zap.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.joined) == 0 {
		return zap.NewNop()
	}
	return l.joined[len(l.joined)-1]
}
