package caddymodule

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/store"
)

// engines holds what outlives a configuration, keyed by the store's identity,
// so that a reload which keeps the store keeps the open file, the locks and
// the cached lists.
var engines = caddy.NewUsagePool()

// openTimeout bounds opening a store.
const openTimeout = 5 * time.Second

// An engine is an open store and the in-process state that belongs to it. It
// is safe for concurrent use. Every user holds one reference in the pool: each
// configuration, and each request in flight, since a request may outlive the
// configuration it began under.
type engine struct {
	key        string
	store      store.Store
	locks      *sessionLocks
	benchmarks benchmarkCache
	health     *healthLog
}

// acquireEngine opens the store, or takes another reference to it.
func acquireEngine(opener StoreOpener, logger *zap.Logger) (*engine, error) {
	key := opener.StoreKey()
	value, _, err := engines.LoadOrNew(key, func() (caddy.Destructor, error) {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		s, err := opener.OpenStore(ctx)
		if err != nil {
			return nil, fmt.Errorf("opening the store: %w", err)
		}
		return &engine{key: key, store: s, locks: newSessionLocks(), health: &healthLog{logger: logger}}, nil
	})
	if err != nil {
		return nil, err
	}
	return value.(*engine), nil
}

// retain takes a reference for a holder of another reference.
func (e *engine) retain() { engines.LoadOrStore(e.key, e) }

// release gives one reference back; the last one closes the store.
func (e *engine) release() error {
	_, err := engines.Delete(e.key)
	return err
}

// Destruct closes the store. The pool calls it.
func (e *engine) Destruct() error { return e.store.Close() }

// sessionLocks serialises the commits of one session in this process, so that
// the version conflicts of the store are left for other replicas. Two sessions
// share a lock now and then; that costs a wait and nothing else.
type sessionLocks struct {
	seed maphash.Seed
	held [256]chan struct{} // full while it is held; who waits comes in turn
}

func newSessionLocks() *sessionLocks {
	l := &sessionLocks{seed: maphash.MakeSeed()}
	for i := range l.held {
		l.held[i] = make(chan struct{}, 1)
	}
	return l
}

// lock waits as long as ctx lets it.
func (l *sessionLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	held := l.held[maphash.String(l.seed, key)%uint64(len(l.held))]
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a session: %w", ctx.Err())
	}
}

// healthLog writes one line when the store fails and one when it is back,
// never one a request.
type healthLog struct {
	logger *zap.Logger
	mu     sync.Mutex
	down   bool
}

// record notes the outcome of a store operation and reports whether the state
// changed. The error itself is not logged: a driver's text may name addresses
// and users.
func (h *healthLog) record(err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if down := err != nil; down != h.down {
		h.down, changed = down, true
	}
	if changed && h.down {
		h.logger.Error("the store is failing; governed requests are answered with an error until it is back")
	}
	if changed && !h.down {
		h.logger.Info("the store is back")
	}
	return changed
}
