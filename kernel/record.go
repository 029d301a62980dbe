package kernel

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/go-json-experiment/json"
)

// The prefixes of receipt ids.
const (
	PrefixText = "KRN-" // governed text
	PrefixTool = "TCR-" // a decided tool call
)

// An id has 32 hex digits of the hash, 128 bits, which is enough to name a receipt.
// What holds a chain together is a link ([Receipt.Link]), which has all 64.
const (
	idDigits = 32
	idLength = len(PrefixText) + idDigits
	blankID  = PrefixText + "00000000000000000000000000000000"
)

// Canonical returns the canonical JSON (RFC 8785) of the record without its id:
// members sorted, no space, numbers in their shortest form, -0 written 0. A
// number that is not finite, an integer beyond 2^53 or a text that is not UTF-8
// is an error that wraps [ErrReceipt].
func (r Receipt) Canonical() ([]byte, error) {
	text, err := r.JSON()
	if err != nil {
		return nil, err
	}
	before, after := aroundID(text, r.ID)
	return slices.Concat(before, after), nil
}

// JSON returns the canonical JSON of the whole record. Errors are those of
// [Receipt.Canonical].
func (r Receipt) JSON() ([]byte, error) {
	text, err := canonical(receiptShape, &r)
	if err != nil {
		return nil, fmt.Errorf("encoding a receipt: %w: %w", ErrReceipt, err)
	}
	return text, nil
}

// aroundID returns what stands before and after the member id in a canonical
// record. In canonical JSON its name occurs nowhere else: no other member has
// that name, and a text would have its quotes escaped.
func aroundID(record []byte, id string) (before, after []byte) {
	before, after, _ = bytes.Cut(record, []byte(`"id":`))
	length := len(`"",`) + len(id)
	if plain(id) < len(id) {
		text, _ := appendText(nil, id)
		length = len(text) + len(",")
	}
	return before, after[length:]
}

// Seal sets the id: the prefix, [PrefixTool] for a tool call and [PrefixText]
// for anything else, and the first 32 upper-case hex digits of the SHA-256 of
// [Receipt.Canonical]. Any later change to the receipt breaks the seal. Seal
// returns the sealed record, as [Receipt.JSON] would.
func (r *Receipt) Seal() ([]byte, error) {
	old := r.ID
	r.ID = blankID // the record is encoded once, with room for the id
	record, err := r.JSON()
	if err != nil {
		r.ID = old
		return nil, fmt.Errorf("sealing a receipt: %w", err)
	}
	before, _ := aroundID(record, blankID)
	r.setID(r.linkIn(record))
	copy(record[len(before)+len(`"id":"`):], r.ID)
	return record, nil
}

// setID takes the id from the link.
func (r *Receipt) setID(link string) { r.ID, r.link = IDOf(link), link }

// Link returns what the next receipt of the session names this one by (Prev): the
// prefix and all 64 upper-case hex digits of the SHA-256 of [Receipt.Canonical], of
// which the id has the first 32. It is "" if the record has no canonical form. Of a
// record whose id is wrong it is the link that the record should have.
func (r Receipt) Link() string {
	if r.link != "" && IDOf(r.link) == r.ID {
		return r.link
	}
	link, err := r.computeLink()
	if err != nil {
		return ""
	}
	return link
}

// AnswersTo reports whether a link leads to the receipt: whether it is [Receipt.Link] or,
// as in receipts that were written before links had all digits, the id.
func (r Receipt) AnswersTo(link string) bool {
	return link != "" && (link == r.ID || link == r.Link())
}

// IDOf returns the id of the receipt that a link leads to. An id is its own.
func IDOf(link string) string { return link[:min(len(link), idLength)] }

// prefix follows from the record, so that it is covered by the hash as well.
func (r Receipt) prefix() string {
	if r.Tool != "" {
		return PrefixTool
	}
	return PrefixText
}

// CheckID returns an error that wraps [ErrReceiptID] unless the id is the one
// that [Receipt.Seal] gives the record.
func (r Receipt) CheckID() error {
	link, err := r.computeLink()
	if err != nil {
		return fmt.Errorf("checking a receipt's id: %w", errors.Join(ErrReceiptID, err))
	}
	if r.ID != IDOf(link) {
		return ErrReceiptID
	}
	return nil
}

func (r Receipt) computeLink() (string, error) {
	text, err := r.JSON()
	if err != nil {
		return "", err
	}
	return r.linkIn(text), nil
}

// linkIn computes the link from the canonical record.
func (r *Receipt) linkIn(record []byte) string {
	before, after := aroundID(record, r.ID)
	h := sha256.New()
	h.Write(before)
	h.Write(after)
	return r.linkOf(h)
}

// hashesIn computes the link from the canonical record, and the SHA-256 of all of it. What
// stands before the id is read once for both.
func (r *Receipt) hashesIn(record []byte) (link string, sum [sha256.Size]byte) {
	before, after := aroundID(record, r.ID)
	h := sha256.New()
	h.Write(before)
	if state, ok := h.(hash.Cloner); ok { // it is, in this standard library
		if whole, err := state.Clone(); err == nil {
			_, _ = whole.Write(record[len(before):]) // a hash never fails
			whole.Sum(sum[:0])
			h.Write(after)
			return r.linkOf(h), sum
		}
	}
	return r.linkIn(record), sha256.Sum256(record)
}

// linkOf returns the link of a record that was hashed without its id.
func (r *Receipt) linkOf(h hash.Hash) string {
	var sum [sha256.Size]byte
	var room [linkLength]byte
	link := append(room[:0], r.prefix()...)
	for _, b := range h.Sum(sum[:0]) {
		link = append(link, upperHex[b>>4], upperHex[b&15])
	}
	return string(link)
}

const (
	upperHex   = "0123456789ABCDEF"
	linkLength = len(PrefixText) + 64 // two digits for each byte of the hash
)

// ParseReceipt reads a record. It refuses, with an error that wraps
// [ErrReceipt], everything that is not one JSON object with a receipt's members
// only: unknown or duplicate names, values of another type, bad UTF-8, trailing
// data. It accepts other spellings of the same record (space, member order);
// only canonical bytes are what [Receipt.JSON] gives back.
func ParseReceipt(b []byte) (Receipt, error) {
	var r Receipt
	if readCanonical(receiptShape, string(b), &r) {
		return r, nil
	}
	return decodeReceipt(b)
}

// decodeReceipt reads a record in any spelling.
func decodeReceipt(b []byte) (Receipt, error) {
	var r Receipt
	if err := json.Unmarshal(b, &r, json.RejectUnknownMembers(true)); err != nil {
		return Receipt{}, fmt.Errorf("parsing a receipt: %w: %s", ErrReceipt, describeJSONError(err))
	}
	return r, nil
}

// describeJSONError says what is wrong with a record by the names of this
// package's own members. It never quotes the data, nor a name from the data.
func describeJSONError(err error) string {
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return "it has an unknown member"
	case errors.As(err, &semantic):
		return "it has an unfit value at " + string(semantic.JSONPointer)
	}
	return "it is not well-formed"
}
