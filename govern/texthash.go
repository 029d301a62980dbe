package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
)

// A textHash is the SHA-256 of texts. It reads them piece by piece, because a hash takes
// bytes only, and those of a conversation would be a copy of all of it.
type textHash struct {
	hash.Hash
	piece [256]byte
}

func newTextHash() *textHash { return &textHash{Hash: sha256.New()} }

// write adds a text.
func (h *textHash) write(text string) {
	for len(text) > 0 {
		n := copy(h.piece[:], text)
		_, _ = h.Write(h.piece[:n]) // a hash never fails
		text = text[n:]
	}
}

// writePart adds a role and a text with their lengths, so that different sequences never
// give the same bytes.
func (h *textHash) writePart(role, text string) {
	h.writeSized(role)
	h.writeSized(text)
}

func (h *textHash) writeSized(text string) {
	_, _ = h.Write(append(strconv.AppendInt(h.piece[:0], int64(len(text)), 10), ':'))
	h.write(text)
}

// digest returns the first bytes of the hash, in lower-case hex.
func (h *textHash) digest(size int) string { return hex.EncodeToString(h.Sum(h.piece[:0])[:size]) }
