package detect

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Term is a word or phrase and the concept it belongs to. It may belong to more than one,
// and stands once for each then.
type Term struct {
	Text    string // of any language
	Concept int    // index of [Requests.Concepts]
}

// Terms finds terms in texts. It is a hash table: a slot is the hash of a term, and the
// concept; or the hash of a term's beginning, so that a search for something longer goes
// on only where there is something. Two terms of one hash would be taken for each other,
// which one in a hundred thousand is.
type Terms struct {
	slots []byte // slotSize bytes each

	// taken is a set of the first bits of the hashes. Most of what is looked up is no
	// term, and a search in the table passes some slots of others before it ends.
	taken []uint64
	shift int
}

const (
	slotSize = 5 // four of the hash, one of what it is: 0 nothing, goesOn, or a concept + 1
	goesOn   = 255

	minTerm, maxTerm = 2, 24 // characters, without spaces between ideographs
)

// A search looks whether terms go on after so many characters.
var depths = [...]int{3, 6, 10}

// NewTerms makes the table. Terms of less than two characters are left out, and longer ones
// than 24 are cut.
func NewTerms(list []Term) Terms {
	type entry struct {
		hash uint32
		what byte
	}
	entries := map[entry]bool{}
	for _, t := range list {
		letters, _ := lettersOf(Normalise(t.Text))
		letters = letters[:min(maxTerm, len(letters))]
		h := fnvBasis
		for i, r := range letters {
			h = (h ^ uint32(r)) * fnvPrime //nolint:gosec // G115: a decoded rune is not negative
			for _, n := range depths {
				if i+1 == n && len(letters) > n {
					entries[entry{h, goesOn}] = true
				}
			}
		}
		if len(letters) >= minTerm {
			entries[entry{h, byte(t.Concept + 1)}] = true //nolint:gosec // G115: at most maxConcepts
		}
	}
	out := Terms{slots: make([]byte, (1+len(entries)*3/2)*slotSize)} // a third is free, so that chains are short
	inOrder := func(a, b entry) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.what, b.what)) }
	for _, e := range slices.SortedFunc(maps.Keys(entries), inOrder) {
		at := out.first(e.hash)
		for ; out.slots[at+4] != 0; at = out.next(at) {
		}
		binary.LittleEndian.PutUint32(out.slots[at:], e.hash)
		out.slots[at+4] = e.what
	}
	return newTerms(out.slots)
}

// newTerms returns the terms of a table.
func newTerms(slots []byte) Terms {
	width := max(6, bits.Len32(uint32(len(slots)))) //nolint:gosec // G115: a model is far smaller. That is more than five bits for a slot
	t := Terms{slots, make([]uint64, 1<<(width-6)), 32 - width}
	for slot := range slices.Chunk(slots, slotSize) {
		if slot[4] != 0 {
			at := mix32(binary.LittleEndian.Uint32(slot)) >> t.shift
			t.taken[at/64] |= 1 << (at % 64)
		}
	}
	return t
}

// first is where the slot begins at which the search for a hash begins: the hash as a share
// of the table (Lemire 2019, "Fast random integer generation in an interval").
func (t *Terms) first(hash uint32) int {
	return int(uint64(mix32(hash))*uint64(len(t.slots)/slotSize)>>32) * slotSize
}

// next is the slot after one, round the table.
func (t *Terms) next(at int) int {
	if at += slotSize; at < len(t.slots) {
		return at
	}
	return 0
}

// look returns the concepts of a hash, and whether longer terms begin so.
func (t *Terms) look(hash uint32) (concepts uint64, longer bool) {
	if at := mix32(hash) >> t.shift; t.taken[at/64]>>(at%64)&1 == 0 {
		return 0, false
	}
	for at := t.first(hash); ; at = t.next(at) {
		slot := t.slots[at : at+slotSize]
		switch what := slot[4]; {
		case what == 0:
			return concepts, longer
		case binary.LittleEndian.Uint32(slot) != hash:
		case what == goesOn:
			longer = true
		default:
			concepts |= 1 << (what - 1)
		}
	}
}

// find returns the concepts that begin in each word of a normalised text. A term begins at
// the beginning of a word, and the word may have an ending of five letters more, if
// the term has four. In scripts without spaces, or whose words grow at the front, it begins
// and ends anywhere.
func (t *Terms) find(normal *derived) []uint64 {
	letters, words := lettersOf(normal.text)
	out := make([]uint64, len(words))
	if len(t.slots) == 0 {
		return out
	}
	word := -1
	for i, r := range letters {
		begins := word+1 < len(words) && words[word+1] == i
		if begins {
			if word++; word%contextIntervalWords == 0 {
				normal.checkContext()
			}
		}
		if r == ' ' || !begins && grows(r) {
			continue
		}
		concepts, _ := t.from(letters, termStart(i))
		out[word] |= concepts
	}
	return out
}

// termBeginning is a place where terms may begin, and the hash of the letters that were read
// from there: none, or those of a word.
type termBeginning struct {
	at, read int
	hash     uint32
}

func termStart(at int) termBeginning { return termBeginning{at: at, hash: fnvBasis} }

// from returns the concepts of the terms that begin at a place and end after what was read
// of it, and whether it read all letters that there are and that a term can have.
func (t *Terms) from(letters []rune, begun termBeginning) (found uint64, open bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	i, h := begun.at, begun.hash
	anywhere := !grows(letters[i])
	left := 0 // how many letters of the word follow
	for n := begun.read; n < min(len(letters)-i, maxTerm); {
		r := letters[i+n]
		n++
		h = (h ^ uint32(r)) * fnvPrime //nolint:gosec // G115: a decoded rune is not negative
		left--
		if !anywhere && left < 0 && r != ' ' {
			left = lettersLeft(letters[i+n:])
		}
		ends := r != ' ' && n >= minTerm && (anywhere || left <= 0 || n >= 4 && left <= longestEnding)
		depth := n == depths[0] || n == depths[1] || n == depths[2]
		if !ends && !depth {
			continue // spare the look
		}
		concepts, longer := t.look(h)
		if ends {
			found |= concepts
		}
		if depth && !longer {
			return found, false
		}
	}
	return found, true
}

const longestEnding = 5

// A termSearch finds the terms that do not end in the word in which they begin, while the
// words of some pieces come.
type termSearch struct {
	terms   *Terms
	spans   []requestSpan // of the pieces, which get the concepts
	letters []rune        // of the last words, as lettersOf gives them
	begun   bool
	apart   bool       // the last word is an ideograph
	open    []openTerm // where terms may begin that are still to be looked for
}

type openTerm struct {
	termBeginning
	piece int
}

// searchedLetters is about how many letters are searched at once.
const searchedLetters = 512

// termSearches are kept between texts, for each takes some kilobytes.
var termSearches = sync.Pool{New: func() any {
	return &termSearch{letters: make([]rune, 0, searchedLetters+maxWord), open: make([]openTerm, 0, searchedLetters/4)}
}}

// newTermSearch returns a search; put it back into termSearches.
func newTermSearch() *termSearch {
	q := termSearches.Get().(*termSearch) //nolint:forcetypeassert // it has nothing else
	*q = termSearch{letters: q.letters[:0], open: q.open[:0]}
	return q
}

// farthest is how many letters from says everything about the terms at the first one.
const farthest = maxTerm + longestEnding + 2

// add goes on by the scanner's word, of which w says whether longer terms begin with it.
func (q *termSearch) add(s *Scanner, w *requestWord, piece int) {
	if len(q.letters) > searchedLetters {
		q.look(len(q.letters) - farthest)
	}
	at := q.follow(s)
	switch {
	case s.plain == "":
		for i, r := range q.letters[at:] {
			if i == 0 || !grows(r) {
				q.open = append(q.open, openTerm{termStart(at + i), piece})
			}
		}
	case w.open:
		q.open = append(q.open, openTerm{termBeginning{at, s.n, w.hash}, piece})
	}
}

// follow appends the letters of the scanner's word and returns where they begin.
func (q *termSearch) follow(s *Scanner) (at int) {
	word := s.bordered()[1 : s.n+1]
	alone := s.n == 1 && ideograph(word[0])
	if q.begun && (!q.apart || !alone) {
		q.letters = append(q.letters, ' ')
	}
	q.begun, q.apart = true, alone
	q.letters = append(q.letters, word...)
	return len(q.letters) - len(word)
}

// end looks for the rest, for which terms of the last piece may end behind it, and makes the
// search ready for other pieces.
func (q *termSearch) end(s *Scanner) {
	all := len(q.letters)
	for len(q.open) > 0 && len(q.letters) < all+farthest && s.Next() {
		q.follow(s)
	}
	q.look(all)
	q.letters, q.begun = q.letters[:0], false
}

// look looks for the terms that begin in letters[:end], and forgets these.
func (q *termSearch) look(end int) {
	n := 0
	for ; n < len(q.open) && q.open[n].at < end; n++ {
		concepts, _ := q.terms.from(q.letters, q.open[n].termBeginning)
		q.spans[q.open[n].piece].concepts |= concepts
	}
	q.open = slices.Delete(q.open, 0, n)
	q.letters = slices.Delete(q.letters, 0, end)
	for i := range q.open {
		q.open[i].at -= end
	}
}

// lettersLeft is how many letters come before a space or the end.
func lettersLeft(rest []rune) int {
	if n := slices.Index(rest, ' '); n >= 0 {
		return n
	}
	return len(rest)
}

// grows reports the letters of scripts whose words stand apart and grow at the end:
// Latin, Greek and Cyrillic.
func grows(r rune) bool {
	return r < utf8.RuneSelf && r != ' ' || unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

// lettersOf returns the letters of a normalised text with a space between words, none between
// ideographs, and where each word begins.
func lettersOf(normal string) (letters []rune, words []int) {
	letters, words = make([]rune, 0, utf8.RuneCountInString(normal)), make([]int, 0, len(normal)/4)
	s := NewScanner(normal, nil)
	apart := false
	for s.Next() {
		word := s.bordered()[1 : s.n+1]
		alone := len(word) == 1 && ideograph(word[0])
		if len(words) > 0 && (!apart || !alone) {
			letters = append(letters, ' ')
		}
		apart = alone
		words = append(words, len(letters))
		letters = append(letters, word...)
	}
	return letters, words
}
