package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-lex/lex/store"
)

// versionSize is the length of the version before a stored session.
const versionSize = 8

// Session returns the session as its last turn left it.
func (s *Store) Session(ctx context.Context, key string) (store.Session, error) {
	var found store.Session
	err := s.lookAt(ctx, "reading a session", func(from getter) (err error) {
		own, data := lookUp(from, key)
		if data == nil {
			return store.ErrNotFound
		}
		found, err = store.DecodeSession(string(own), version(data), data[versionSize:])
		return err
	})
	return found, err
}

// lookUp returns the stored session that a key leads to, with its own key.
func lookUp(from getter, key string) (own, data []byte) {
	own = []byte(key)
	if data = from.get(sessionsBucket, own); data == nil {
		if own = from.get(aliasesBucket, own); own != nil {
			data = from.get(sessionsBucket, own)
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
	return s.writes.Do(ctx, t.commit)
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
func (t turn) commit(tx *tx) error {
	if t.known(tx) {
		return nil
	}
	sessions, key := tx.bucket(sessionsBucket), []byte(t.sessionKey)
	if version(sessions.get(key)) != t.read {
		return fmt.Errorf("committing a turn: %w", store.ErrConflict)
	}
	if t.derived && !hasMembers(tx, t.family) {
		return fmt.Errorf("committing a turn of an erased family: %w", store.ErrConflict)
	}
	sequence, err := t.write(tx)
	if err != nil {
		return err
	}
	if err := writeUnknown(tx, t.calls); err != nil {
		return err
	}
	binary.BigEndian.PutUint64(t.session, sequence)
	if err := sessions.put(key, t.session); err != nil {
		return err
	}
	return t.putNames(tx, keyOf(sequence))
}

// putNames writes the aliases, and notes in the family all names of the session, those of the
// aliases with the number of the turn, which tells how old they are.
func (t turn) putNames(tx *tx, sequence []byte) error {
	families, aliases, place := tx.bucket(familiesBucket), tx.bucket(aliasesBucket), familyPlaces(tx, t.family)[0]
	for _, alias := range t.aliases {
		if alias == t.sessionKey {
			continue
		}
		givenAt := sequence
		if tx.bucket(sessionsBucket).get([]byte(alias)) != nil {
			givenAt = nil // the name lives as long as its own session, which wins
		}
		if err := putNew(families, memberKey(place, alias), givenAt); err != nil {
			return err
		}
		if err := putNew(aliases, []byte(alias), []byte(t.sessionKey)); err != nil {
			return err
		}
	}
	return putNew(families, memberKey(place, t.sessionKey), nil)
}

// putNew puts what is not there yet: to put the same again would copy the page.
func putNew(b bucket, key, value []byte) error {
	if old := b.get(key); old != nil && bytes.Equal(old, value) {
		return nil
	}
	return b.put(key, value)
}

// familyPlaces returns what the keys of a family's members begin with. Families stand in
// the order in which they began, by the sequence number of their first receipt, so that
// those of one time share pages. Older versions put them under the receipt's id.
func familyPlaces(tx *tx, family string) [][]byte {
	older := []byte(family + "\x00")
	if first := tx.bucket(idsBucket).get([]byte(family)); first != nil {
		return [][]byte{first, older}
	}
	return [][]byte{older}
}

func memberKey(place []byte, name string) []byte { return append(slices.Clip(place), name...) }

// hasMembers reports whether a family is there.
func hasMembers(tx *tx, family string) bool {
	members := tx.bucket(familiesBucket).cursor()
	return slices.ContainsFunc(familyPlaces(tx, family), func(place []byte) bool {
		key, _ := members.Seek(place)
		return bytes.HasPrefix(key, place)
	})
}

// Erase takes the sessions of the family out of the tree, with all their names.
func (s *Store) Erase(ctx context.Context, key string) error {
	return s.writes.Do(ctx, func(tx *tx) error {
		own, data := lookUp(tx, key)
		if data == nil {
			return nil
		}
		family, err := familyOf(data)
		if err != nil || family == "" { // stored before there were families
			return errors.Join(err, tx.bucket(sessionsBucket).delete(own))
		}
		return eraseFamily(tx, family)
	})
}

// eraseFamily deletes what the names of the family lead to. A name may lead
// elsewhere by now: then only the note of it goes.
func eraseFamily(tx *tx, family string) error {
	sessions, aliases, families := tx.bucket(sessionsBucket), tx.bucket(aliasesBucket), tx.bucket(familiesBucket)
	var members, names [][]byte
	cursor := families.cursor()
	for _, place := range familyPlaces(tx, family) {
		for k, _ := cursor.Seek(place); bytes.HasPrefix(k, place); k, _ = cursor.Next() {
			members = append(members, bytes.Clone(k))
			names = append(names, members[len(members)-1][len(place):])
		}
	}
	inFamily := func(key []byte) (bool, error) {
		data := sessions.get(key)
		if data == nil {
			return false, nil
		}
		of, err := familyOf(data)
		return of == family, err
	}
	// The aliases go first, because the sessions tell which of them are the family's.
	for _, name := range names {
		of := aliases.get(name)
		if of == nil {
			continue
		}
		ours, err := inFamily(of)
		if err != nil {
			return err
		}
		if ours {
			if err := aliases.delete(name); err != nil {
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
			if err := sessions.delete(name); err != nil {
				return err
			}
			// The statistics know the session on.
			if err := moveCounters(tx.bucket(countersBucket), countersKey(tx, family, string(name)), countersKey(tx, "", string(name))); err != nil {
				return err
			}
		}
	}
	for _, member := range members {
		if err := families.delete(member); err != nil {
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
