package kernel

import (
	"bytes"
	"crypto/sha256"
	"fmt"
)

// OpenReceipt reads a record as it was stored and checks its seal over these
// very bytes: a single other bit anywhere is an error. It wraps [ErrReceipt]
// when the bytes are not the canonical form of a receipt, whatever they say, and
// [ErrReceiptID] when they are not what the id was made of; the receipt is
// returned beside the latter.
//
// The seal shows that the record is whole. Whether its outputs follow from its
// inputs is for [Kernel.Replay] to say, whether it stands where it was written
// for [Chain].
func OpenReceipt(record []byte) (Receipt, error) {
	var r Receipt
	if scanReceipt(record, &r) && r.sealed(record) {
		return r, nil
	}
	r, err := ParseReceipt(record)
	if err != nil {
		return Receipt{}, err
	}
	if r.sealed(record) {
		return r, nil
	}
	if err := r.CheckID(); err != nil {
		return r, err
	}
	return Receipt{}, fmt.Errorf("opening a receipt: %w: its values are those that were sealed, but it was written anew in another form; verify the bytes as they were served", ErrReceipt)
}

// sealed reports whether the record without its id hashes to the id. It is true
// for canonical bytes only, since nothing else was ever hashed; so the costly
// encoding is for those that are not.
func (r *Receipt) sealed(record []byte) bool {
	member := []byte(`,"id":"` + r.ID + `"`) // "id" is neither the first nor the last member
	before, after, found := bytes.Cut(record, member)
	if !found {
		return false
	}
	h := sha256.New()
	h.Write(before)
	h.Write(after)
	var sum [sha256.Size]byte
	return r.ID == r.prefix()+digits(h.Sum(sum[:0]))
}
