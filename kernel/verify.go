package kernel

import (
	"bytes"
	"fmt"
)

// OpenReceipt reads a record as it was stored and checks its seal over these
// very bytes: a change of a single bit anywhere is an error. The error wraps
// [ErrReceiptID] when the values are not what the id was made of; the receipt is
// then returned beside it. It wraps [ErrReceipt] when the bytes are no receipt,
// or hold sealed values in another form than the canonical one.
//
// The seal shows that the record is whole. [Kernel.Replay] tells whether its
// outputs follow from its inputs, and [Chain] whether it stands where it was
// written.
func OpenReceipt(record []byte) (Receipt, error) {
	var r Receipt
	canonical := record
	if !receiptShape.read(string(record), &r) {
		var err error
		if r, err = decodeReceipt(record); err != nil {
			return Receipt{}, err
		}
		if canonical, err = r.JSON(); err != nil {
			return Receipt{}, err
		}
	}
	link := r.linkIn(canonical)
	if r.ID != IDOf(link) {
		return r, ErrReceiptID
	}
	if !bytes.Equal(canonical, record) {
		return Receipt{}, fmt.Errorf("opening a receipt: %w: its values are those that were sealed, but it was written anew in another form; verify the bytes as they were served", ErrReceipt)
	}
	r.link = link
	return r, nil
}
