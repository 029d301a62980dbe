package kernel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Commit returns the commitment to a text under a session's key: 64 lower-case
// hex digits of HMAC-SHA256 (RFC 2104). A plain hash would let anyone guess a
// short prompt; with a random key of at least 32 bytes nobody can without the
// key, and destroying the key makes the commitment say nothing at all.
func Commit(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}
