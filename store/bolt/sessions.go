package bolt

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// versionSize is the length of the version before a stored session.
const versionSize = 8

// Session returns the session as last committed.
func (s *Store) Session(ctx context.Context, key string) (store.Session, error) {
	var found store.Session
	err := s.view(ctx, "reading a session", func(tx *bbolt.Tx) (err error) {
		data := tx.Bucket(sessionsBucket).Get([]byte(key))
		if data == nil {
			return store.ErrNotFound
		}
		found, err = store.DecodeSession(key, version(data), data[versionSize:])
		return err
	})
	return found, err
}

// version returns the version of a stored session, 0 when there is none.
func version(data []byte) uint64 {
	if data == nil {
		return 0
	}
	return binary.BigEndian.Uint64(data)
}

// Commit makes the change durable with the next batch.
func (s *Store) Commit(ctx context.Context, change store.Change) error {
	if err := change.Validate(); err != nil {
		return err
	}
	c, err := encodeForWriting(change.Receipt, change.Excluded())
	if err != nil {
		return err
	}
	state, err := store.EncodeSession(change.Session)
	if err != nil {
		return err
	}
	session := append(make([]byte, versionSize, versionSize+len(state)), state...)
	read := change.Session.Version
	return s.writes.Do(ctx, func(tx *bbolt.Tx) error { return c.commit(tx, session, read) })
}

// commit looks for the receipt's id, then compares the version, then writes.
// The new version is the receipt's sequence number, which no other change of
// any session has or had.
func (c encodedReceipt) commit(tx *bbolt.Tx, session []byte, read uint64) error {
	if c.known(tx) {
		return nil
	}
	sessions, key := tx.Bucket(sessionsBucket), []byte(c.sessionKey)
	if version(sessions.Get(key)) != read {
		return fmt.Errorf("committing a turn: %w", store.ErrConflict)
	}
	sequence, err := c.write(tx)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint64(session, sequence)
	return sessions.Put(key, session)
}

// Erase takes the session out of the tree.
func (s *Store) Erase(ctx context.Context, key string) error {
	return s.writes.Do(ctx, func(tx *bbolt.Tx) error {
		return tx.Bucket(sessionsBucket).Delete([]byte(key))
	})
}
