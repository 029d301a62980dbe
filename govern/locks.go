package govern

import (
	"context"
	"fmt"
	"hash/maphash"
)

// Locks serialise the commits of one session in this process, so that only other
// replicas cause version conflicts in the store. Two sessions may share a lock; that
// only costs a wait. Locks are safe for concurrent use.
type Locks struct {
	seed maphash.Seed
	held [256]chan struct{} // full while the lock is held; waiters are served in order
}

// NewLocks returns free locks.
func NewLocks() *Locks {
	l := &Locks{seed: maphash.MakeSeed()}
	for i := range l.held {
		l.held[i] = make(chan struct{}, 1)
	}
	return l
}

// Lock waits for the key's lock until ctx ends. The caller calls unlock once.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	held := l.held[maphash.String(l.seed, key)%uint64(len(l.held))]
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a session: %w", ctx.Err())
	}
}
