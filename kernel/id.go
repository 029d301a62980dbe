package kernel

import "regexp"

var (
	receiptID  = regexp.MustCompile(`^(KRN|TCR)-[0-9A-F]{32}$`)
	policyHash = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// IsReceiptID reports whether s has the form of a [Receipt]'s id.
func IsReceiptID(s string) bool { return receiptID.MatchString(s) }

// IsPolicyHash reports whether s has the form of a policy's hash ([Policy.Hash]).
func IsPolicyHash(s string) bool { return policyHash.MatchString(s) }
