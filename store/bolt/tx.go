package bolt

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/bbolt"
)

// A tx is the open transaction of the tree, in which everything is read and written. What
// is written is also appended to record, as changes for the journal:
//
//	kind    1 byte: put, delete or number
//	bucket  its name
//	key     of a put or a delete
//	value   of a put
//	number  the bucket's sequence number, as a varint
//
// where a name, a key or a value has its length before it, as a varint. Keys and values that
// are handed to it must not be changed afterwards.
type tx struct {
	tree   *bbolt.Tx
	record []byte
	latest []latest // of the changes in record, those that are read alone

	last       tail      // of the log, zero until a receipt is written
	sum        *counters // of all sessions, nil until it is read
	sumChanged bool      // since it was written
}

// The kinds of changes.
const (
	changePut byte = iota + 1
	changeDelete
	changeNumber
)

// A bucket is one of the tree's, in a transaction. See [bbolt.Bucket].
type bucket struct {
	tx   *tx
	name []byte
	tree *bbolt.Bucket
}

// maxKept is the largest record whose memory the next one uses again.
const maxKept = 1 << 20

// emptyRecord returns a record without changes, in the memory of one that is durable.
func emptyRecord(old []byte) []byte {
	if cap(old) < recordHead || cap(old) > maxKept {
		old = make([]byte, recordHead, 8<<10)
	}
	return old[:recordHead]
}

func (t *tx) bucket(name []byte) bucket { return bucket{t, name, t.tree.Bucket(name)} }

func (t *tx) get(bucket, key []byte) []byte { return t.bucket(bucket).get(key) }

func (b bucket) get(key []byte) []byte                             { return b.tree.Get(key) }
func (b bucket) cursor() *bbolt.Cursor                             { return b.tree.Cursor() }
func (b bucket) forEach(visit func(key, value []byte) error) error { return b.tree.ForEach(visit) }
func (b bucket) sequence() uint64                                  { return b.tree.Sequence() }

// fill says how full the bucket's pages become before they are split. Where keys only grow,
// pages need no room for later ones.
func (b bucket) fill(share float64) { b.tree.FillPercent = share }

func (b bucket) put(key, value []byte) error {
	if err := b.tree.Put(key, value); err != nil {
		return err
	}
	b.note(changePut)
	b.tx.record = appendBytes(appendBytes(b.tx.record, key), value)
	b.noteLatest(key, value)
	return nil
}

func (b bucket) delete(key []byte) error {
	if err := b.tree.Delete(key); err != nil {
		return err
	}
	b.note(changeDelete)
	b.tx.record = appendBytes(b.tx.record, key)
	b.noteLatest(key, nil)
	return nil
}

// next counts the bucket's sequence number up.
func (b bucket) next() (uint64, error) {
	number, err := b.tree.NextSequence()
	if err != nil {
		return 0, err
	}
	b.note(changeNumber)
	b.tx.record = binary.AppendUvarint(b.tx.record, number)
	return number, nil
}

func (b bucket) note(kind byte) { b.tx.record = appendBytes(append(b.tx.record, kind), b.name) }

func (b bucket) noteLatest(key, value []byte) {
	if readAlone[string(b.name)] {
		b.tx.latest = append(b.tx.latest, latest{place{string(b.name), string(key)}, value})
	}
}

func appendBytes(to, data []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(data))), data...)
}

// repeat makes the changes of a record in the tree, without noting them. The tree keeps
// parts of changes.
func repeat(tree *bbolt.Tx, changes []byte) error {
	r := reader{rest: changes}
	for len(r.rest) > 0 && !r.cut {
		kind, name := r.byte(), r.bytes()
		b := tree.Bucket(name)
		if r.cut || b == nil {
			return errors.New("a change is of no known bucket")
		}
		var err error
		switch kind {
		case changePut:
			key := r.bytes()
			err = b.Put(key, r.bytes())
		case changeDelete:
			err = b.Delete(r.bytes())
		case changeNumber:
			err = b.SetSequence(r.number())
		default:
			err = errors.New("a change is of no known kind")
		}
		if err != nil {
			return err
		}
	}
	if r.cut {
		return errors.New("a change is cut")
	}
	return nil
}

// A reader takes a record's changes apart.
type reader struct {
	rest []byte
	cut  bool // something was missing
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.cut = true
		return 0
	}
	first := r.rest[0]
	r.rest = r.rest[1:]
	return first
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest, r.cut = nil, true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.rest, r.cut = nil, true
		return nil
	}
	data := r.rest[:n:n]
	r.rest = r.rest[n:]
	return data
}
