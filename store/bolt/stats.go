package bolt

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// counters are what a session adds to the statistics, or the sum of all
// sessions. Out says that the session is excluded for good; then it adds nothing.
type counters struct {
	store.Counters
	Out bool `json:"out,omitzero"`
}

// totalKey is the key of the sum of all. Session keys begin with "s/".
var totalKey = []byte("total")

// Stats reads the sum.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	var sum counters
	err := s.view(ctx, "reading the statistics", func(tx *bbolt.Tx) (err error) {
		sum, err = readCounters(tx.Bucket(countersBucket), totalKey)
		return err
	})
	return sum.Stats(), err
}

// count adds the receipt to its session and to the sum, or takes the session
// out of the sum when the receipt excludes it.
func (c encodedReceipt) count(stored *bbolt.Bucket) error {
	sum, err := readCounters(stored, totalKey)
	if err != nil {
		return err
	}
	if c.sessionKey == "" {
		if c.excluded {
			return nil
		}
		return writeCounters(stored, totalKey, counters{Counters: sum.Plus(c.counters)})
	}
	key := []byte("s/" + c.sessionKey)
	own, err := readCounters(stored, key)
	if err != nil || own.Out {
		return err
	}
	if c.excluded {
		sum.Counters, own = sum.Minus(own.Counters), counters{Out: true}
	} else {
		sum.Counters, own.Counters = sum.Plus(c.counters), own.Plus(c.counters)
	}
	if err := writeCounters(stored, key, own); err != nil {
		return err
	}
	return writeCounters(stored, totalKey, sum)
}

// countersSize is the length of stored counters: three numbers of eight bytes, big-endian,
// and whether the session is out. Older versions stored JSON.
const countersSize = 3*8 + 1

func readCounters(stored *bbolt.Bucket, key []byte) (counters, error) {
	var t counters
	data := stored.Get(key)
	switch {
	case data == nil:
		return t, nil
	case len(data) == countersSize:
		for i, n := range []*int64{&t.Receipts, &t.Interventions, &t.Margin} {
			*n = int64(binary.BigEndian.Uint64(data[8*i:])) //nolint:gosec // the same 64 bits
		}
		t.Out = data[countersSize-1] != 0
		return t, nil
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("decoding the statistics: %w", err)
	}
	return t, nil
}

func writeCounters(stored *bbolt.Bucket, key []byte, t counters) error {
	data := make([]byte, 0, countersSize)
	for _, n := range []int64{t.Receipts, t.Interventions, t.Margin} {
		data = binary.BigEndian.AppendUint64(data, uint64(n)) //nolint:gosec // the same 64 bits
	}
	if t.Out {
		data = append(data, 1)
	} else {
		data = append(data, 0)
	}
	return stored.Put(key, data)
}
