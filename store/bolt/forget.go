package bolt

import (
	"bytes"
	"slices"
	"time"

	"github.com/caddy-lex/lex/store"
)

// A conversation without a session header leaves a session with every turn, so a store that
// forgot none would grow for ever. What nobody has used for [store.SessionLife] is forgotten
// during the turns of others: the first batch after each commit of the tree also looks at some
// members of the families. Families stand in the order in which they began, so a round through
// those that are old enough is short, and needs neither a timer nor an index of times.

const (
	// mostLookedAt is how many members a batch looks at. A commit takes in two hundred turns or
	// so, with a name or two each, so that what is forgotten keeps up with what comes.
	mostLookedAt = 400
	// roundEvery is the least time between the beginnings of two rounds: each looks again at
	// what lives on.
	roundEvery = time.Hour
	// clockIsSet is the beginning of 2020, in Unix milliseconds. Times before it are those of a
	// clock that was not set yet, and tell no age.
	clockIsSet = 1_577_836_800_000
)

// A round is the walk through the families.
type round struct {
	due   bool      // the next batch goes on with it
	next  []byte    // the member to go on from; nil when the round is over
	again time.Time // when the next one may begin
}

// A member is a name of a session, as its family notes it.
type member struct {
	place   []byte // of the family
	name    []byte
	givenAt []byte // of an alias, the sequence number of the turn that gave it; older versions left it empty
}

// forget is a write that takes out members whose life is over.
func (s *Store) forget(tx *tx) error {
	now := s.now()
	if s.round.next == nil {
		if now.Before(s.round.again) {
			return nil
		}
		s.round.next, s.round.again = []byte{0}, now.Add(roundEvery)
	}
	// The round goes on behind them even if this fails, so that a damaged page is in nobody's way.
	var over []member
	over, s.round.next = lookForOld(tx, s.round.next, now)
	for _, m := range over {
		if err := m.forget(tx); err != nil {
			return err
		}
	}
	return nil
}

// lookForOld returns those of the members from a key on whose life is over now, and the key to go
// on from, nil at the end.
func lookForOld(tx *tx, from []byte, now time.Time) (over []member, next []byte) {
	before := now.Add(-store.SessionLife).UnixMilli()
	cursor := tx.bucket(familiesBucket).cursor()
	var place []byte
	key, givenAt := cursor.Seek(from)
	for looked := 0; key != nil; looked++ {
		if looked == mostLookedAt {
			return over, bytes.Clone(key)
		}
		if place == nil || !bytes.HasPrefix(key, place) {
			if place = placeOf(key); isNumber(place) {
				// A time to come is of a clock that was ahead, and says nothing of the families behind it.
				if began := timeOf(tx, place); began >= before && began <= now.UnixMilli() {
					key, givenAt = cursor.Seek([]byte{1}) // those are younger, but for those that older versions wrote
					continue
				}
			}
		}
		m := member{place, bytes.Clone(key[len(place):]), bytes.Clone(givenAt)}
		if used, known := m.usedAt(tx); known && used < before {
			over = append(over, m)
		}
		key, givenAt = cursor.Next()
	}
	return over, nil
}

// placeOf returns what the keys of a member's family begin with, see familyPlaces.
func placeOf(key []byte) []byte {
	end := bytes.IndexByte(key, 0) + 1
	if isNumber(key) {
		end = 8
	}
	return bytes.Clone(key[:min(end, len(key))])
}

// isNumber tells a sequence number from the id of a receipt: no log is so long that the first
// byte of its numbers is not 0.
func isNumber(place []byte) bool { return place[0] == 0 }

// timeOf returns when the receipt with a sequence number was made, in Unix milliseconds, or 0.
func timeOf(tx *tx, sequence []byte) int64 {
	data := tx.bucket(receiptsBucket).get(sequence)
	if data == nil {
		return 0
	}
	h, _ := decodeFields(data)
	return h.Timestamp
}

// usedAt returns when the name was used last: its own session, or an alias by the turn that gave
// it. What leads nowhere was never used.
func (m member) usedAt(tx *tx) (used int64, known bool) {
	_, data := lookUp(tx, string(m.name))
	at := keyOf(version(data))
	switch {
	case data == nil:
		return 0, true
	case len(m.givenAt) > 0:
		at = m.givenAt
	}
	used = timeOf(tx, at)
	return used, used >= clockIsSet
}

// forget takes out what the name leads to if that is of the member's family, and the note of it.
// The statistics know a session on.
func (m member) forget(tx *tx) error {
	sessions, aliases := tx.bucket(sessionsBucket), tx.bucket(aliasesBucket)
	switch family, ours := m.familyOf(tx, sessions.get(m.name)); {
	case ours:
		if err := sessions.delete(m.name); err != nil {
			return err
		}
		if err := moveCounters(tx.bucket(countersBucket), countersKey(tx, family, string(m.name)), countersKey(tx, "", string(m.name))); err != nil {
			return err
		}
	case family == "" && sessions.get(m.name) != nil:
		return nil // it is damaged, and Erase finds it by the note
	}
	if of := aliases.get(m.name); of != nil {
		data := sessions.get(of)
		if _, ours := m.familyOf(tx, data); ours || data == nil {
			if err := aliases.delete(m.name); err != nil {
				return err
			}
		}
	}
	return tx.bucket(familiesBucket).delete(slices.Concat(m.place, m.name))
}

// familyOf returns the family of a stored session, and whether it is the member's.
func (m member) familyOf(tx *tx, data []byte) (family string, ours bool) {
	if data == nil {
		return "", false
	}
	family, err := familyOf(data)
	return family, err == nil && slices.ContainsFunc(familyPlaces(tx, family), func(place []byte) bool { return bytes.Equal(place, m.place) })
}
