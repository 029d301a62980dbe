package bolt

import (
	"context"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// A recent has what the journal has and the tree has not: the sessions, their other names and
// the keys that were put or deleted since the last commit. A reader looks there, and behind it in the
// tree as it was committed, of which any number of readers see one state while another is made.
// So what each turn reads waits neither for a batch nor for its sync. Its zero value goes with no
// tree.
type recent struct {
	mu      sync.RWMutex
	tree    int // the transaction that made the tree which the changes go on from
	changes map[place][]byte
}

// A place is a key of a bucket.
type place struct{ bucket, key string }

// readAlone are the buckets that are read this way.
var readAlone = map[string]bool{string(sessionsBucket): true, string(aliasesBucket): true, string(keysBucket): true}

// A latest change is one that a transaction has made and that is not durable yet; nil deletes.
type latest struct {
	place
	value []byte
}

// add takes in changes that are durable now.
func (r *recent) add(changes []latest) {
	if len(changes) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		r.changes[c.place] = c.value
	}
}

// begin empties it when a transaction has made a tree.
func (r *recent) begin(tree int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tree, r.changes = tree, make(map[place][]byte)
}

// A moment reads what is durable at one time. What it returns is valid until the reading ends.
type moment struct {
	recent *recent
	tree   *bbolt.Tx
}

func (m moment) get(bucket, key []byte) []byte {
	if value, ok := m.recent.changes[place{string(bucket), string(key)}]; ok {
		return value
	}
	return m.tree.Bucket(bucket).Get(key)
}

// A getter reads the value of a key, nil if there is none.
type getter interface {
	get(bucket, key []byte) []byte
}

// lookAt reads from the buckets of readAlone without waiting for a batch. Only if the tree is
// being committed at this moment, or nobody knows whether it was, it waits as every other reader does.
func (s *Store) lookAt(ctx context.Context, doing string, read func(getter) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if s.closed.Load() {
		return fmt.Errorf("%s: closed: %w", doing, store.ErrUnavailable)
	}
	if done, err := s.lookNow(read); done {
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		return nil
	}
	return s.view(ctx, doing, func(tx *tx) error { return read(tx) })
}

// lookNow reads if the tree is the one that the changes go on from.
func (s *Store) lookNow(read func(getter) error) (done bool, err error) {
	s.recent.mu.RLock()
	defer s.recent.mu.RUnlock()
	if s.files.checkSize() != nil {
		return false, nil // the other way tells what is wrong
	}
	tree, err := s.db.Begin(false)
	if err != nil {
		return false, nil // as above
	}
	defer func() { _ = tree.Rollback() }() // nothing was changed
	if tree.ID() != s.recent.tree {
		return false, nil
	}
	return true, guarded(func() error { return read(moment{&s.recent, tree}) })
}
