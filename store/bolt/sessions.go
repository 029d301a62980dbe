package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// versionSize is the length of the version before a stored session.
const versionSize = 8

// Session returns the session as last committed.
func (s *Store) Session(ctx context.Context, key string) (store.Session, error) {
	var found store.Session
	err := s.view(ctx, "reading a session", func(tx *bbolt.Tx) (err error) {
		own, data := lookUp(tx, key)
		if data == nil {
			return store.ErrNotFound
		}
		found, err = store.DecodeSession(string(own), version(data), data[versionSize:])
		return err
	})
	return found, err
}

// lookUp returns the stored session that a key leads to, with its own key.
func lookUp(tx *bbolt.Tx, key string) (own, data []byte) {
	sessions := tx.Bucket(sessionsBucket)
	own = []byte(key)
	if data = sessions.Get(own); data == nil {
		if own = tx.Bucket(aliasesBucket).Get(own); own != nil {
			data = sessions.Get(own)
		}
	}
	return own, data
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
	encoded, err := encodeForWriting(change.Receipts(), change.Excluded())
	if err != nil {
		return err
	}
	next, existing := change.WithFamily()
	state, err := store.EncodeSession(next)
	if err != nil {
		return err
	}
	for i := range encoded {
		encoded[i].family = next.Family
	}
	t := turn{
		encodedReceipt: encoded[0], calls: encoded[1:], read: next.Version, derived: existing, aliases: slices.Clone(change.Aliases),
		session: append(make([]byte, versionSize, versionSize+len(state)), state...),
	}
	return s.writes.Do(ctx, func(tx *bbolt.Tx) error { return t.commit(tx, &s.last) })
}

// A turn is a change that is about to be written.
type turn struct {
	encodedReceipt
	calls   []encodedReceipt // of its answer
	session []byte           // encoded, with room for its version
	read    uint64           // the version that was read
	derived bool             // the family must be there
	aliases []string
}

// commit looks for the receipt's id, then compares the version and looks for the
// family, then writes. The new version is the receipt's sequence number, which no
// other change of any session has or had.
func (t turn) commit(tx *bbolt.Tx, last *tail) error {
	if t.known(tx) {
		return nil
	}
	sessions, key := tx.Bucket(sessionsBucket), []byte(t.sessionKey)
	if version(sessions.Get(key)) != t.read {
		return fmt.Errorf("committing a turn: %w", store.ErrConflict)
	}
	if t.derived && !hasMembers(tx, t.family) {
		return fmt.Errorf("committing a turn of an erased family: %w", store.ErrConflict)
	}
	sequence, err := t.write(tx, last)
	if err != nil {
		return err
	}
	if err := writeUnknown(tx, last, t.calls); err != nil {
		return err
	}
	binary.BigEndian.PutUint64(t.session, sequence)
	if err := sessions.Put(key, t.session); err != nil {
		return err
	}
	return t.putNames(tx)
}

// putNames writes the aliases, and notes in the family all names of the session.
func (t turn) putNames(tx *bbolt.Tx) error {
	families, aliases, place := tx.Bucket(familiesBucket), tx.Bucket(aliasesBucket), familyPlaces(tx, t.family)[0]
	for _, name := range append(t.aliases, t.sessionKey) {
		if err := putNew(families, memberKey(place, name), nil); err != nil {
			return err
		}
		if name == t.sessionKey {
			continue
		}
		if err := putNew(aliases, []byte(name), []byte(t.sessionKey)); err != nil {
			return err
		}
	}
	return nil
}

// putNew puts what is not there yet: to put the same again would copy the page.
func putNew(b *bbolt.Bucket, key, value []byte) error {
	if old := b.Get(key); old != nil && bytes.Equal(old, value) {
		return nil
	}
	return b.Put(key, value)
}

// familyPlaces returns what the keys of a family's members begin with. Families stand in
// the order in which they began, by the sequence number of their first receipt, so that
// those of one time share pages. Older versions put them under the receipt's id.
func familyPlaces(tx *bbolt.Tx, family string) [][]byte {
	older := []byte(family + "\x00")
	if first := tx.Bucket(idsBucket).Get([]byte(family)); first != nil {
		return [][]byte{first, older}
	}
	return [][]byte{older}
}

func memberKey(place []byte, name string) []byte { return append(slices.Clip(place), name...) }

// hasMembers reports whether a family is there.
func hasMembers(tx *bbolt.Tx, family string) bool {
	members := tx.Bucket(familiesBucket).Cursor()
	return slices.ContainsFunc(familyPlaces(tx, family), func(place []byte) bool {
		key, _ := members.Seek(place)
		return bytes.HasPrefix(key, place)
	})
}

// Erase takes the sessions of the family out of the tree, with all their names.
func (s *Store) Erase(ctx context.Context, key string) error {
	return s.writes.Do(ctx, func(tx *bbolt.Tx) error {
		own, data := lookUp(tx, key)
		if data == nil {
			return nil
		}
		family, err := familyOf(data)
		if err != nil || family == "" { // stored before there were families
			return errors.Join(err, tx.Bucket(sessionsBucket).Delete(own))
		}
		return eraseFamily(tx, family)
	})
}

// eraseFamily deletes what the names of the family lead to. A name may lead
// elsewhere by now: then only the note of it goes.
func eraseFamily(tx *bbolt.Tx, family string) error {
	sessions, aliases, families := tx.Bucket(sessionsBucket), tx.Bucket(aliasesBucket), tx.Bucket(familiesBucket)
	var members, names [][]byte
	cursor := families.Cursor()
	for _, place := range familyPlaces(tx, family) {
		for k, _ := cursor.Seek(place); bytes.HasPrefix(k, place); k, _ = cursor.Next() {
			members = append(members, bytes.Clone(k))
			names = append(names, members[len(members)-1][len(place):])
		}
	}
	inFamily := func(key []byte) (bool, error) {
		data := sessions.Get(key)
		if data == nil {
			return false, nil
		}
		of, err := familyOf(data)
		return of == family, err
	}
	// The aliases go first, because the sessions tell which of them are the family's.
	for _, name := range names {
		of := aliases.Get(name)
		if of == nil {
			continue
		}
		ours, err := inFamily(of)
		if err != nil {
			return err
		}
		if ours {
			if err := aliases.Delete(name); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		ours, err := inFamily(name)
		if err != nil {
			return err
		}
		if ours {
			if err := sessions.Delete(name); err != nil {
				return err
			}
			// The statistics know the session on.
			if err := moveCounters(tx.Bucket(countersBucket), countersKey(tx, family, string(name)), countersKey(tx, "", string(name))); err != nil {
				return err
			}
		}
	}
	for _, member := range members {
		if err := families.Delete(member); err != nil {
			return err
		}
	}
	return nil
}

// familyOf returns the family of a stored session.
func familyOf(data []byte) (string, error) {
	s, err := store.DecodeSession("", version(data), data[versionSize:])
	return s.Family, err
}
