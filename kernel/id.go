package kernel

import "regexp"

var (
	receiptID = regexp.MustCompile(`^(KRN|TCR)-[0-9A-F]{32}$`)
	digest256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// IsReceiptID reports whether s has the form of a [Receipt]'s id.
func IsReceiptID(s string) bool { return receiptID.MatchString(s) }

// IsPolicyHash reports whether s has the form of a policy's hash ([Policy.Hash]).
func IsPolicyHash(s string) bool { return digest256.MatchString(s) }

// IsSetupHash reports whether s has the form of a setup's hash (Receipt.Setup).
func IsSetupHash(s string) bool { return digest256.MatchString(s) }

// IsOpening reports whether s has the form of an opening ([CommitmentKey]).
func IsOpening(s string) bool { return digest256.MatchString(s) }
