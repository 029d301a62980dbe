package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"sync"
)

// A textHash is the SHA-256 of texts. It reads them piece by piece, because a hash takes
// bytes only, and those of a conversation would be a copy of all of it.
type textHash struct {
	hash.Hash
	piece [256]byte
}

// textHashes are for the digests of messages, of which a turn makes many.
var textHashes = sync.Pool{New: func() any { return &textHash{Hash: sha256.New()} }}

// digestOf returns a digest of what write adds.
func digestOf(size int, write func(h *textHash)) string {
	h := textHashes.Get().(*textHash) //nolint:forcetypeassert // nothing else is put there
	defer textHashes.Put(h)
	h.Reset()
	write(h)
	return h.digest(size)
}

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
func (h *textHash) digest(size int) string {
	sum := h.Sum(h.piece[:0])
	return string(hex.AppendEncode(h.piece[len(sum):len(sum)], sum[:size]))
}
