package detect

import "sync/atomic"

// What the letters of a word add to a text takes some thirty look-ups in large tables. It is
// the same wherever the word stands, and most of every text is made of the same few thousand
// words. So it is remembered of the words of the lexicon, of each when it is first read. It
// follows from the word alone: what is remembered changes no result, whoever read it first.

// maxRemembered is how many letters a word may have.
const maxRemembered = 15

// memory holds what is remembered of the words, by their entries. It is safe for concurrent
// use.
type memory[T any] []atomic.Pointer[memorised[T]]

// memorised is what is remembered of a word, and the word: another one may have its hash.
type memorised[T any] struct {
	what T
	word [maxRemembered]byte
	n    uint8
}

func newMemory[T any](l *Lexicon) memory[T] {
	return make(memory[T], len(l.hashes))
}

// of returns what is remembered of the scanner's word, or nil.
func (m memory[T]) of(s *Scanner) *T {
	if uint(s.entry) >= uint(len(m)) { //nolint:gosec // G115: -1 becomes larger than any length
		return nil
	}
	known := m[s.entry].Load()
	if known == nil || string(known.word[:known.n]) != s.plain {
		return nil
	}
	return &known.what
}

// keep remembers something of the scanner's word, if it is one of those and has no other
// one in its place.
func (m memory[T]) keep(s *Scanner, what T) {
	if n := len(s.plain); 0 <= s.entry && int(s.entry) < len(m) && 0 < n && n <= maxRemembered && m[s.entry].Load() == nil {
		known := &memorised[T]{what: what, n: uint8(n)}
		copy(known.word[:], s.plain)
		m[s.entry].Store(known)
	}
}
