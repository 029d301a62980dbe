package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/store"
)

// counters are what a session or a conversation adds to the statistics, or the sum of all sessions. Out says
// that the session is excluded for good; then it adds nothing.
type counters struct {
	store.Counters
	Out bool `json:"out,omitzero"`

	levels []levelCount // in ascending order of their places, none of them 0
}

// A levelCount is the number of turns of one level.
type levelCount struct {
	place uint16 // [store.Level.Place]
	turns uint64
}

// addLevel adds turns of a level. Sums wrap around, so that -n takes n away.
func (t *counters) addLevel(place uint16, turns uint64) {
	i, found := slices.BinarySearchFunc(t.levels, place, func(l levelCount, place uint16) int { return cmp.Compare(l.place, place) })
	if !found {
		t.levels = slices.Insert(t.levels, i, levelCount{place: place})
	}
	if t.levels[i].turns += turns; t.levels[i].turns == 0 {
		t.levels = slices.Delete(t.levels, i, i+1)
	}
}

// The keys of the sum of all, and of the time of its first level. Session keys begin with
// "s/".
var (
	totalKey = []byte("total")
	sinceKey = []byte("total/since")
)

// Stats reads the sum.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	var stats store.Stats
	err := s.view(ctx, "reading the statistics", func(tx *tx) error {
		stored := tx.bucket(countersBucket)
		sum, err := tx.readSum()
		if err != nil {
			return err
		}
		stats = sum.Stats()
		for _, l := range sum.levels {
			stats.AddLevel(store.LevelOf(l.place), int64(l.turns)) //nolint:gosec // G115: no count of turns is that large
		}
		if since := stored.get(sinceKey); len(since) == 8 {
			stats.LevelsSince = int64(binary.BigEndian.Uint64(since)) //nolint:gosec // the same 64 bits
		}
		return nil
	})
	return stats, err
}

// count adds the receipt to its session or conversation and to the sum, or takes that out of the sum
// when the receipt excludes it.
func (c encodedReceipt) count(tx *tx) error {
	stored := tx.bucket(countersBucket)
	sum, err := tx.readSum()
	if err != nil {
		return err
	}
	key, own := []byte(nil), counters{}
	if c.sessionKey != "" {
		if key, own, err = c.readOwn(tx); err != nil {
			return err
		}
	}
	switch {
	case own.Out, c.excluded && c.sessionKey == "":
		return nil
	case c.excluded:
		sum.Counters = sum.Minus(own.Counters)
		for _, l := range own.levels {
			sum.addLevel(l.place, -l.turns)
		}
		own = counters{Out: true}
	default:
		if err := c.addTo(stored, sum, &own); err != nil {
			return err
		}
	}
	tx.sumChanged = true
	if c.sessionKey != "" {
		return writeCounters(stored, key, own)
	}
	return nil
}

// readSum returns the sum of all sessions, as the transaction has it.
func (t *tx) readSum() (*counters, error) {
	if t.sum == nil {
		sum, err := readCounters(t.bucket(countersBucket), totalKey)
		if err != nil {
			return nil, err
		}
		t.sum = &sum
	}
	return t.sum, nil
}

// writeSum writes the sum once for all receipts of a batch.
func (t *tx) writeSum() error {
	if !t.sumChanged {
		return nil
	}
	t.sumChanged = false
	return writeCounters(t.bucket(countersBucket), totalKey, *t.sum)
}

// readOwn reads the counters of the receipt's session, and returns the key under which they
// are written from now on. They stand in one place: with those of sessions that began at the
// same time, so that these share pages. From elsewhere they are moved there: those of a
// receipt that came before its session, of a session that was erased, and of older files.
// Those of a conversation stand under the name of its family, for good.
func (c encodedReceipt) readOwn(tx *tx) (key []byte, own counters, err error) {
	stored, family := tx.bucket(countersBucket), c.family
	if c.conversation != "" {
		key = countersKey(tx, c.conversation, c.conversation)
		own, err = readCounters(stored, key)
		return key, own, err
	}
	key = countersKey(tx, family, c.sessionKey)
	if stored.get(key) == nil || family == "" {
		before := ""
		if data := tx.bucket(sessionsBucket).get([]byte(c.sessionKey)); data != nil {
			if before, err = familyOf(data); err != nil {
				return nil, own, err
			}
		}
		key = countersKey(tx, cmp.Or(family, before), c.sessionKey)
		for _, place := range [][]byte{countersKey(tx, before, c.sessionKey), countersKey(tx, "", c.sessionKey)} {
			if err := moveCounters(stored, place, key); err != nil {
				return nil, own, err
			}
		}
	}
	own, err = readCounters(stored, key)
	return key, own, err
}

// countersKey returns where the counters of a session of a family stand, and of a session
// of none.
func countersKey(tx *tx, family, session string) []byte {
	var first []byte
	if family != "" {
		first = tx.bucket(idsBucket).get([]byte(family)) // see familyPlaces
	}
	return slices.Concat([]byte("s/"), first, []byte(session))
}

// moveCounters moves counters to another key, if there are some.
func moveCounters(stored bucket, from, to []byte) error {
	data := stored.get(from)
	if data == nil || bytes.Equal(from, to) {
		return nil
	}
	if err := stored.put(to, bytes.Clone(data)); err != nil {
		return err
	}
	return stored.delete(from)
}

// addTo adds the receipt to the sum and to its session.
func (c encodedReceipt) addTo(stored bucket, sum, own *counters) error {
	sum.Counters, own.Counters = sum.Plus(c.counters), own.Plus(c.counters)
	if !c.level.Counted() {
		return nil
	}
	if len(sum.levels) == 0 && stored.get(sinceKey) == nil {
		if err := stored.put(sinceKey, binary.BigEndian.AppendUint64(nil, uint64(c.timestamp))); err != nil { //nolint:gosec // the same 64 bits
			return err
		}
	}
	sum.addLevel(c.level.Place(), 1)
	own.addLevel(c.level.Place(), 1)
	return nil
}

// countersSize is the length of stored counters without levels: three numbers of eight
// bytes, big-endian, and whether the session is out. Each level follows in two bytes for its
// place and a varint. Older versions stored no levels, and before that JSON.
const countersSize = 3*8 + 1

func readCounters(stored bucket, key []byte) (counters, error) {
	var t counters
	data := stored.get(key)
	switch {
	case data == nil:
		return t, nil
	case bytes.HasPrefix(data, []byte{'{'}):
		if err := json.Unmarshal(data, &t); err != nil {
			return t, fmt.Errorf("decoding the statistics: %w", err)
		}
		return t, nil
	case len(data) < countersSize:
		return t, errors.New("decoding the statistics: they are cut")
	}
	for i, n := range []*int64{&t.Receipts, &t.Interventions, &t.Margin} {
		*n = int64(binary.BigEndian.Uint64(data[8*i:])) //nolint:gosec // the same 64 bits
	}
	t.Out = data[countersSize-1] != 0
	data = data[countersSize:]
	t.levels = make([]levelCount, 0, len(data)/3+1)
	for len(data) > 0 {
		if len(data) < 3 {
			return t, errors.New("decoding the statistics: a level is cut")
		}
		turns, size := binary.Uvarint(data[2:])
		if size <= 0 {
			return t, errors.New("decoding the statistics: a level is cut")
		}
		t.levels = append(t.levels, levelCount{binary.BigEndian.Uint16(data), turns})
		data = data[2+size:]
	}
	return t, nil
}

func writeCounters(stored bucket, key []byte, t counters) error {
	data := make([]byte, 0, countersSize+(2+binary.MaxVarintLen32)*len(t.levels))
	for _, n := range []int64{t.Receipts, t.Interventions, t.Margin} {
		data = binary.BigEndian.AppendUint64(data, uint64(n)) //nolint:gosec // the same 64 bits
	}
	if t.Out {
		data = append(data, 1)
	} else {
		data = append(data, 0)
	}
	for _, l := range t.levels {
		data = binary.AppendUvarint(binary.BigEndian.AppendUint16(data, l.place), l.turns)
	}
	return stored.put(key, data)
}
