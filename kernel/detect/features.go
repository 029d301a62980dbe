package detect

import (
	"slices"
	"unicode/utf8"
)

// Features are hashed into buckets ("hashing trick", Weinberger et al. 2009):
// words and pairs of words come first, then character n-grams, then groups of
// words and pairs of groups (see [Lexicon]).
const (
	WordBuckets  = 1 << 15
	gramBuckets  = 3 << 15
	groupBuckets = 1 << 16
	// Buckets is how many there are.
	Buckets = WordBuckets + gramBuckets + groupBuckets
	// SpelledBuckets come first and hold what is spelled: words, pairs and
	// n-grams. The rest holds groups.
	SpelledBuckets = WordBuckets + gramBuckets
)

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

func wordBucket(h uint32) uint32  { return mix32(h) % WordBuckets }
func gramBucket(h uint32) uint32  { return WordBuckets + mix32(h)%gramBuckets }
func groupBucket(h uint32) uint32 { return SpelledBuckets + mix32(h*0x9e3779b1)%groupBuckets }

// Scanner walks the words of a normalised text. It allocates nothing.
type Scanner struct {
	lexicon *Lexicon
	text    string // after the word
	plain   string // the word, if it stands in the text as it is and is ASCII; else it is in word
	n       int    // length of the word
	hash    uint32 // of the word
	entry   int32  // of the word in the lexicon, or -1

	previous     uint32    // hash of the word before
	groups       [3]uint32 // of the word and of the two before; 0 is none
	word         [maxWord + 2]rune
	features     [5 + (maxGram-minGram+1)*(maxWord+2)]uint32
	pairs        [3]uint32
	subwordSpace [maxWord + 2]uint32
}

// NewScanner returns a scanner over a text from [Normalise].
func NewScanner(normal string, l *Lexicon) *Scanner { return &Scanner{text: normal, lexicon: l} }

// Next goes to the next word; it is false at the end of the text.
func (s *Scanner) Next() bool {
	if !s.readPlain() {
		s.plain = ""
		s.n = s.read()
		if s.n == 0 {
			return false
		}
		s.hash = hashRunes(s.bordered())
	}
	s.entry = s.lexicon.find(s.hash)
	return true
}

// bordered returns the letters of the word between its borders.
func (s *Scanner) bordered() []rune {
	for i, c := range []byte(s.plain) {
		s.word[i+1] = rune(c)
	}
	s.word[0], s.word[s.n+1] = border, border
	return s.word[:s.n+2]
}

// Entry is the place of the word in the lexicon, or -1.
func (s *Scanner) Entry() int32 { return s.entry }

// Word returns the word as it stands in a lexicon.
func (s *Scanner) Word() string { return string(s.bordered()[1 : s.n+1]) }

// Features returns what the word adds, valid until the next call, and to be
// called once a word: the word, the pair it forms with the word before it, its
// character n-grams, its group, and the pairs its group forms with those of the
// two words before.
func (s *Scanner) Features() []uint32 {
	pairs := s.joined()
	out := slices.Insert(s.alone(), 1, pairs[0]) // training adds them up in this order
	return slices.Insert(out, 3, pairs[1:]...)
}

// alone returns those of the Features that the word has wherever it stands. It is to be
// called after joined.
func (s *Scanner) alone() []uint32 {
	out := append(s.features[:0], wordBucket(s.hash))
	if g := s.groups[0]; g != 0 {
		out = append(out, groupBucket(g))
	}
	word := s.bordered()
	for i := range word {
		h := fnvBasis
		for j := i; j < len(word) && j < i+maxGram; j++ {
			h = (h ^ uint32(word[j])) * fnvPrime //nolint:gosec // G115: a decoded rune is not negative
			if j-i+1 >= minGram {
				out = append(out, gramBucket(h))
			}
		}
	}
	return out
}

// joined returns the others: the pairs with the words before. It is to be called once a word.
func (s *Scanner) joined() []uint32 {
	out := append(s.pairs[:0], wordBucket(s.hash^s.previous*31))
	s.previous = s.hash
	s.groups[2], s.groups[1], s.groups[0] = s.groups[1], s.groups[0], s.lexicon.group(s.entry)
	if g := s.groups[0]; g != 0 {
		for back, before := range s.groups[1:] {
			if before != 0 {
				out = append(out, groupBucket(g+before*4099+uint32(back+1)<<24))
			}
		}
	}
	return out
}

// Subwords returns the buckets of the word's 4-grams (of its 3-gram, if it is
// that short), of which the vector of a word outside the lexicon is made. They
// are valid until the next call.
func (s *Scanner) Subwords() []uint32 {
	word := s.bordered()
	size := min(subword, len(word))
	out := s.subwordSpace[:0]
	for i := 0; i+size <= len(word); i++ {
		out = append(out, mix32(hashRunes(word[i:i+size]))%SubwordBuckets)
	}
	return out
}

const (
	subword = 4
	// SubwordBuckets is how many buckets [Scanner.Subwords] has.
	SubwordBuckets = 1 << 14
)

// readPlain reads the next word as read does if it is ASCII and no apostrophe, other
// script or cut is in it or ends it: most words are so.
func (s *Scanner) readPlain() bool {
	text, from := s.text, 0
	for from < len(text) && plainBytes[text[from]] == parts {
		from++
	}
	end, hash := from, fnvStep(fnvBasis, border)
	for stop := min(len(text), from+maxWord); end < stop && plainBytes[text[end]] == spells; end++ {
		hash = fnvStep(hash, text[end])
	}
	if end == from || end-from == maxWord || end < len(text) && (text[end] >= utf8.RuneSelf || text[end] == '\'') {
		return false
	}
	s.plain, s.n, s.hash = text[from:end], end-from, fnvStep(hash, border)
	s.text = text[min(end+1, len(text)):]
	return true
}

// plainBytes says what a byte is to readPlain: of a word, between words, or not ASCII.
var plainBytes = func() (table [256]uint8) {
	for c := range rune(utf8.RuneSelf) {
		table[c] = parts
		if letter(c) {
			table[c] = spells
		}
	}
	return table
}()

const (
	parts uint8 = iota + 1
	spells
)

// read puts the next word into s.word[1:] and returns its length.
func (s *Scanner) read() (n int) {
	for i := 0; i < len(s.text); {
		r, size := rune(s.text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s.text[i:])
		}
		switch {
		case r >= utf8.RuneSelf && ideograph(r):
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

func hashRunes(word []rune) uint32 {
	h := fnvBasis
	for _, r := range word {
		h = (h ^ uint32(r)) * fnvPrime //nolint:gosec // G115: a decoded rune is not negative
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
