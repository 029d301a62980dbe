package kernel

import (
	"crypto/sha256"
	"hash"
	"sync"
)

// A keyedHash makes HMAC-SHA256 (RFC 2104), as crypto/hmac does, which makes two hashes and
// their saved states for each key. Here a key is for one message, each receipt has six of
// them, and one hash does for all.
type keyedHash struct {
	hash.Hash
	pad [sha256.BlockSize]byte
	sum [sha256.Size]byte
}

var keyedHashes = sync.Pool{New: func() any { return &keyedHash{Hash: sha256.New()} }}

// keyedHashOf returns the HMAC-SHA256 of a message, which comes in parts.
func keyedHashOf(key []byte, message ...[]byte) [sha256.Size]byte {
	if len(key) > sha256.BlockSize {
		short := sha256.Sum256(key)
		key = short[:]
	}
	h := keyedHashes.Get().(*keyedHash) //nolint:forcetypeassert // nothing else is put there
	defer keyedHashes.Put(h)
	h.begin(key, 0x36)
	for _, part := range message {
		_, _ = h.Write(part) // a hash never fails
	}
	h.Sum(h.sum[:0])
	h.begin(key, 0x5c)
	_, _ = h.Write(h.sum[:])
	h.Sum(h.sum[:0])
	sum := h.sum
	clear(h.pad[:]) // no key is kept, and a sum may be one
	clear(h.sum[:])
	return sum
}

// begin begins one of the two hashes of RFC 2104.
func (h *keyedHash) begin(key []byte, mask byte) {
	clear(h.pad[copy(h.pad[:], key):])
	for i := range h.pad {
		h.pad[i] ^= mask
	}
	h.Reset()
	_, _ = h.Write(h.pad[:])
}

// DeriveKey returns 32 bytes of HKDF-SHA256 (RFC 5869) of a secret.
func DeriveKey(secret []byte, salt, info string) []byte {
	extracted := keyedHashOf([]byte(salt), secret)
	key := keyedHashOf(extracted[:], []byte(info), []byte{1}) // the first block of the output is all of it
	return key[:]
}
