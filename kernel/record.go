package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The prefixes of receipt ids.
const (
	PrefixText = "KRN-" // governed text
	PrefixTool = "TCR-" // a decided tool call
)

// idDigits is how many hex digits of the hash stand in an id: 128 bits.
const idDigits = 32

// maxInteger is the largest integer that every JSON reader keeps exactly (RFC
// 8785 reads numbers as IEEE 754 doubles).
const maxInteger = 1 << 53

// Canonical returns the canonical JSON (RFC 8785) of the record without its id:
// members sorted, no space, numbers in their shortest form, -0 written 0. A
// number that is not finite, an integer beyond 2^53 or a text that is not UTF-8
// is an error that wraps [ErrReceipt].
func (r Receipt) Canonical() ([]byte, error) {
	type body struct { // an outer member hides the embedded one of the same name
		Receipt
		ID string `json:"id,omitempty"`
	}
	return canonical(r, body{Receipt: r})
}

// JSON returns the canonical JSON of the whole record. Errors are those of
// [Receipt.Canonical].
func (r Receipt) JSON() ([]byte, error) { return canonical(r, r) }

// canonical encodes shape, which is r or r without its id.
func canonical(r Receipt, shape any) ([]byte, error) {
	for _, n := range []int64{int64(r.Turn), r.Timestamp, int64(r.Coverage.BytesInspected), int64(r.Coverage.BytesForwarded)} {
		if n > maxInteger || n < -maxInteger {
			return nil, fmt.Errorf("encoding a receipt: %w: an integer is beyond 2^53", ErrReceipt)
		}
	}
	text, err := json.Marshal(shape)
	if err == nil {
		err = (*jsontext.Value)(&text).Canonicalize()
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a receipt: %w: %s", ErrReceipt, where(err))
	}
	return text, nil
}

// Seal sets the id: the prefix, [PrefixTool] for a tool call and [PrefixText]
// for anything else, and the first 32 upper-case hex digits of the SHA-256 of
// [Receipt.Canonical]. Any later change to the receipt breaks the seal.
func (r *Receipt) Seal() error {
	digest, err := r.digest()
	if err != nil {
		return fmt.Errorf("sealing a receipt: %w", err)
	}
	r.ID = r.prefix() + digest
	return nil
}

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
	digest, err := r.digest()
	if err != nil {
		return fmt.Errorf("checking a receipt's id: %w", errors.Join(ErrReceiptID, err))
	}
	if r.ID != r.prefix()+digest {
		return ErrReceiptID
	}
	return nil
}

func (r Receipt) digest() (string, error) {
	text, err := r.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return digits(sum[:]), nil
}

// digits are those of an id, from the hash of its record.
func digits(sum []byte) string {
	return strings.ToUpper(hex.EncodeToString(sum[:idDigits/2]))
}

// ParseReceipt reads a record. It refuses, with an error that wraps
// [ErrReceipt], everything that is not one JSON object with a receipt's members
// only: unknown or duplicate names, values of another type, bad UTF-8, trailing
// data. It accepts other spellings of the same record (space, member order);
// only canonical bytes are what [Receipt.JSON] gives back.
func ParseReceipt(b []byte) (Receipt, error) {
	var r Receipt
	if err := json.Unmarshal(b, &r, json.RejectUnknownMembers(true)); err != nil {
		return Receipt{}, fmt.Errorf("parsing a receipt: %w: %s", ErrReceipt, where(err))
	}
	return r, nil
}

// where names the place of a JSON error by the names of this package's members,
// never the data that stood there nor a name that somebody else chose.
func where(err error) string {
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return "it has an unknown member"
	case errors.As(err, &semantic):
		return "it has an unfit value at " + string(semantic.JSONPointer)
	}
	return "it is not well-formed"
}
