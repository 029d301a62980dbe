package bolt

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// EraseUnseen erases a session by a commit of the tree that succeeds and is taken for a failed one.
func EraseUnseen(s *Store, key string) error {
	_ = s.mu.lock(context.Background())
	defer s.mu.unlock()
	if err := s.begin(); err != nil {
		return err
	}
	own, data := lookUp(s.tx, key)
	if data == nil {
		return store.ErrNotFound
	}
	if err := s.tx.bucket(sessionsBucket).delete(own); err != nil {
		return err
	}
	next := epochOf(s.tx.tree).next()
	if err := s.tx.tree.Bucket(journalBucket).Put(epochKey, next[:]); err != nil {
		return err
	}
	defer func() { s.tx = nil }()
	return errors.Join(s.tx.tree.Commit(), s.files.note())
}

// Hold begins what looks to others like a batch that is being written, until it is released.
func Hold(s *Store) (release func()) {
	_ = s.mu.lock(context.Background())
	return s.mu.unlock
}

// ReadAfter reads every page of the tree after meanwhile has run: between the check of the files
// and the first look at a page.
func ReadAfter(s *Store, meanwhile func()) error {
	_ = s.mu.lock(context.Background())
	defer s.mu.unlock()
	if err := s.begin(); err != nil {
		return err
	}
	meanwhile()
	return guarded(func() error {
		return s.tx.tree.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
}
