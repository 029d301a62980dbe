package kernel

import (
	"bytes"
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
	if r, sealed := scanReceipt(record); sealed {
		return r, nil
	}
	r, err := ParseReceipt(record)
	if err != nil {
		return Receipt{}, err
	}
	if err := r.CheckID(); err != nil {
		return r, err
	}
	if text, err := r.JSON(); err != nil || !bytes.Equal(text, record) {
		return Receipt{}, fmt.Errorf("opening a receipt: %w: its values are those that were sealed, but it was written anew in another form; verify the bytes as they were served", ErrReceipt)
	}
	return r, nil
}
