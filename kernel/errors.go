package kernel

import "errors"

// The kinds of errors of this package, for errors.Is. No error holds text of a
// prompt or an output.
var (
	// ErrPolicy: a constant of a policy breaks a rule; the error names it.
	ErrPolicy = errors.New("invalid policy")
	// ErrInput: a number is not finite or out of its range, or a word is not
	// one of its kind; the error names the field.
	ErrInput = errors.New("invalid kernel input")
	// ErrReceipt: a record is not a receipt, or cannot be one.
	ErrReceipt = errors.New("invalid receipt")
	// ErrReceiptID: a receipt's id is not the hash of its record.
	ErrReceiptID = errors.New("receipt id does not match its record")
	// ErrReplay: a receipt's outputs do not follow from its inputs.
	ErrReplay = errors.New("receipt does not replay")
	// ErrChain: a receipt does not follow from the one before it.
	ErrChain = errors.New("broken chain of receipts")
	// ErrPolicyMismatch: a receipt was made under another policy than the one
	// that replays it, so nothing can be said.
	ErrPolicyMismatch = errors.New("receipt of another policy")
)
