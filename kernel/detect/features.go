package detect

import "unicode/utf8"

// Buckets is the number of rows of the model: features are hashed into them
// ("hashing trick", Weinberger et al. 2009).
const Buckets = 1 << 17

// WordBuckets come first and hold words and pairs of words; character n-grams
// share the rest.
const WordBuckets = Buckets / 4

const (
	minGram, maxGram = 3, 5 // character n-grams, within a word and its borders
	maxWord          = 48   // longer words are cut: they are data or evasion
	border           = ' '  // stands before and after each word
)

// FNV-1a, 32 bit, over code points instead of bytes, with a final mix
// because only the low bits choose the bucket.
const (
	fnvBasis uint32 = 2166136261
	fnvPrime uint32 = 16777619
)

func mix32(h uint32) uint32 {
	h ^= h >> 15
	h *= 0x2c1b3c6d
	return h ^ h>>12
}

func wordBucket(h uint32) uint32 { return mix32(h) % WordBuckets }

func gramBucket(h uint32) uint32 { return WordBuckets + mix32(h)%(Buckets-WordBuckets) }

// Scanner walks the words of a normalised text and hashes the features that
// each word adds: the word, the pair it forms with the word before it, and its
// character n-grams. It allocates nothing.
type Scanner struct {
	text     string
	previous uint32 // hash of the word before
	word     [maxWord + 2]rune
	features [2 + (maxGram-minGram+1)*(maxWord+2)]uint32
}

// NewScanner returns a scanner over a text from [Normalise].
func NewScanner(normal string) *Scanner { return &Scanner{text: normal} }

// Next returns the features of the next word, valid until the next call, and
// false at the end of the text.
func (s *Scanner) Next() ([]uint32, bool) {
	n := s.read()
	if n == 0 {
		return nil, false
	}
	word := s.word[:n+2]
	word[0], word[n+1] = border, border

	whole := hashRunes(fnvBasis, word)
	out := append(s.features[:0], wordBucket(whole), wordBucket(whole^s.previous*31))
	s.previous = whole
	for i := range word {
		h := fnvBasis
		for j := i; j < len(word) && j < i+maxGram; j++ {
			h = (h ^ uint32(word[j])) * fnvPrime
			if j-i+1 >= minGram {
				out = append(out, gramBucket(h))
			}
		}
	}
	return out, true
}

// read puts the next word into s.word[1:] and returns its length.
func (s *Scanner) read() (n int) {
	for i := 0; i < len(s.text); {
		r, size := rune(s.text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s.text[i:])
		}
		switch {
		case ideograph(r):
			if n > 0 { // the word ends before it
				s.text = s.text[i:]
				return n
			}
			s.word[1] = r
			s.text = s.text[i+size:]
			return 1
		case letter(r):
			n++
			s.word[n] = r
			if n == maxWord {
				s.text = s.text[i+size:]
				return n
			}
		case r == '\'' && n > 0: // don't and dont are one word
		case n > 0:
			s.text = s.text[i+size:]
			return n
		}
		i += size
	}
	s.text = ""
	return n
}

func hashRunes(h uint32, word []rune) uint32 {
	for _, r := range word {
		h = (h ^ uint32(r)) * fnvPrime
	}
	return h
}

// letter reports what words are made of. Outside ASCII that is everything but
// punctuation and symbols, so that no script falls through.
func letter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_'
	}
	punctuation := r < 0xc0 || 0x2000 <= r && r <= 0x2bff || 0x3000 <= r && r <= 0x303f || 0xff00 <= r && r <= 0xff0f
	return !punctuation && r != utf8.RuneError
}

// ideograph reports the characters of scripts without spaces in which one
// character is close to one word: Han and kana.
func ideograph(r rune) bool {
	return 0x3040 <= r && r <= 0x30ff || 0x3400 <= r && r <= 0x4dbf || 0x4e00 <= r && r <= 0x9fff || 0xf900 <= r && r <= 0xfaff || 0x20000 <= r && r <= 0x3ffff
}
