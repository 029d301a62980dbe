package kernel

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unsafe"
)

// Committed names a text that a receipt commits to.
type Committed string

// The texts that a receipt can commit to.
const (
	CommittedPrompt    Committed = "prompt"    // what was asked
	CommittedOutput    Committed = "output"    // what the client got
	CommittedArguments Committed = "arguments" // of a tool call
)

// Commit returns the commitment to a text under a key: 64 lower-case hex digits of
// HMAC-SHA256 (RFC 2104). A plain hash would let anyone guess a short prompt; with a
// random key of at least 32 bytes nobody can without the key, and destroying the key
// makes the commitment say nothing at all.
func Commit(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(unsafe.Slice(unsafe.StringData(text), len(text))) //nolint:gosec // G103: a hash only reads
	return hex.EncodeToString(mac.Sum(nil))
}

// CommitmentKey returns the key of one commitment of one receipt: 32 bytes of HKDF-SHA256
// (RFC 5869) of the session's secret, with the bytes of the receipt's nonce as salt and
// "lex/1 " and the name of the text as info. In lower-case hex it is the commitment's
// opening. Whoever is given it can check this text of this receipt and no other, and
// learns nothing of the secret.
func CommitmentKey(secret []byte, nonce string, of Committed) []byte {
	key, err := hkdf.Key(sha256.New, secret, []byte(nonce), "lex/1 "+string(of), sha256.Size)
	if err != nil {
		panic(fmt.Sprintf("deriving 32 bytes: %v", err)) // only longer outputs fail
	}
	return key
}

// Opens reports whether a text is the one that a commitment was made to, by its opening:
// the commitment's key, as 64 lower-case hex digits.
func Opens(opening, text, commitment string) bool {
	key, err := hex.DecodeString(opening)
	if err != nil || !IsHex256(opening) {
		return false
	}
	return hmac.Equal([]byte(Commit(key, text)), []byte(commitment))
}

// Commitment returns the receipt's commitment to a text, "" when there was no such text.
func (r *Receipt) Commitment(of Committed) string {
	switch of {
	case CommittedPrompt:
		return r.PromptCommitment
	case CommittedOutput:
		return r.OutputCommitment
	case CommittedArguments:
		return r.ArgumentsCommitment
	}
	return ""
}

// CommitsTo reports whether a text is the one that the receipt commits to, by its
// session's secret. Receipts without a setup are from before each commitment had a key
// of its own; their key is the secret.
func (r *Receipt) CommitsTo(text string, of Committed, secret []byte) bool {
	commitment := r.Commitment(of)
	if r.Setup == "" && hmac.Equal([]byte(Commit(secret, text)), []byte(commitment)) {
		return true
	}
	return hmac.Equal([]byte(Commit(CommitmentKey(secret, r.Nonce, of), text)), []byte(commitment))
}
