package kernel

import "regexp"

var (
	receiptID = regexp.MustCompile(`^(KRN|TCR)-[0-9A-F]{32}$`)
	traceID   = regexp.MustCompile(`^[0-9a-f]{32}$`)
	hex256    = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// IsReceiptID reports whether s has the form of a [Receipt]'s id.
func IsReceiptID(s string) bool { return receiptID.MatchString(s) }

// IsHex256 reports whether s is 256 bits in lower-case hex: the form of a SHA-256, such as
// a policy's ([Policy.Hash]), a setup's (Receipt.Setup) or that of the log's previous
// record, and of an opening ([CommitmentKey]).
func IsHex256(s string) bool { return hex256.MatchString(s) }
