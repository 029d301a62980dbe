package bolt

import (
	"context"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// tally is what a session adds to the statistics. Out says that it is excluded,
// for good; then it adds nothing and is no longer summed.
type tally struct {
	store.Tally
	Out bool `json:"out,omitempty"`
}

// total is the key of the sum of all. Session keys begin with "s/".
var total = []byte("total")

// Stats reads the sum.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	var sum tally
	err := s.view(ctx, "reading the statistics", func(tx *bbolt.Tx) (err error) {
		sum, err = readTally(tx.Bucket(talliesBucket), total)
		return err
	})
	return sum.Stats(), err
}

// count adds the receipt to its session and to the sum, or takes the session
// out of the sum when the receipt excludes it.
func (c change) count(tallies *bbolt.Bucket) error {
	sum, err := readTally(tallies, total)
	if err != nil {
		return err
	}
	if c.sessionKey == "" {
		if c.excluded {
			return nil
		}
		return writeTally(tallies, total, tally{Tally: sum.Plus(c.tally)})
	}
	key := []byte("s/" + c.sessionKey)
	own, err := readTally(tallies, key)
	if err != nil || own.Out {
		return err
	}
	if c.excluded {
		sum.Tally, own = sum.Minus(own.Tally), tally{Out: true}
	} else {
		sum.Tally, own.Tally = sum.Plus(c.tally), own.Plus(c.tally)
	}
	if err := writeTally(tallies, key, own); err != nil {
		return err
	}
	return writeTally(tallies, total, sum)
}

func readTally(tallies *bbolt.Bucket, key []byte) (tally, error) {
	var t tally
	data := tallies.Get(key)
	if data == nil {
		return t, nil
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("decoding the statistics: %w", err)
	}
	return t, nil
}

func writeTally(tallies *bbolt.Bucket, key []byte, t tally) error {
	data, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encoding the statistics: %w", err)
	}
	return tallies.Put(key, data)
}
