package kernel

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"unsafe"
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
	r, _, err := OpenInPlace(bytes.Clone(record))
	return r, err
}

// OpenInPlace is [OpenReceipt] for whoever reads many records: the texts of the receipt
// are parts of the record's memory, which must not change while the receipt is used. It
// also returns the SHA-256 of the record, by which the log names it.
func OpenInPlace(record []byte) (Receipt, [sha256.Size]byte, error) {
	var r Receipt
	//nolint:gosec // G103: the caller leaves the memory as it is
	if readCanonical(receiptShape, unsafe.String(unsafe.SliceData(record), len(record)), &r) {
		link, sum := r.hashesIn(record)
		if r.ID != IDOf(link) {
			return r, sum, ErrReceiptID
		}
		r.link = link
		return r, sum, nil
	}
	r, err := openOtherForm(record)
	return r, sha256.Sum256(record), err
}

// openOtherForm says what is wrong with a record that is not canonical.
func openOtherForm(record []byte) (Receipt, error) {
	r, err := decodeReceipt(record)
	if err != nil {
		return Receipt{}, err
	}
	link, err := r.computeLink()
	if err != nil {
		return Receipt{}, err
	}
	if r.ID != IDOf(link) {
		return r, ErrReceiptID
	}
	return Receipt{}, fmt.Errorf("opening a receipt: %w: its values are those that were sealed, but it was written anew in another form; verify the bytes as they were served", ErrReceipt)
}
