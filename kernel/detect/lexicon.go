package detect

// Lexicon is the words that the model knows by themselves. Each belongs to a
// group of words of like meaning. It is immutable and safe for concurrent use;
// the zero value and nil know no word.
type Lexicon struct {
	hashes []uint32 // of the entries
	groups []uint16
	slots  []slot // open addressing
}

// maxEntries bounds a lexicon, and with it the memory of a model.
const maxEntries = 1 << 17

// NewLexicon makes a lexicon of normalised words and the groups they belong to.
// Of two words with one hash the first is found.
func NewLexicon(words []string, groups []uint16) *Lexicon {
	hashes := make([]uint32, len(words))
	for i, w := range words {
		hashes[i] = hashRunes(append(append([]rune{border}, []rune(w)...), border))
	}
	return newLexicon(hashes, groups)
}

func newLexicon(hashes []uint32, groups []uint16) *Lexicon {
	size := 1024
	for size < 2*len(hashes) {
		size *= 2
	}
	l := &Lexicon{hashes: hashes, groups: groups, slots: make([]slot, size)}
	for entry, h := range hashes {
		if at := l.slot(h); at.place == 0 {
			*at = slot{h, int32(entry) + 1}
		}
	}
	return l
}

// slot has the hash of a word beside its entry: to look a word up takes one place in
// memory, in most cases.
type slot struct {
	hash  uint32
	place int32 // entry+1, or 0 in a free slot
}

// slot is where a hash stands, or the free place where it would.
func (l *Lexicon) slot(hash uint32) *slot {
	mask := len(l.slots) - 1
	for i := int(mix32(hash)) & mask; ; i = (i + 1) & mask {
		if s := &l.slots[i]; s.hash == hash || s.place == 0 {
			return s
		}
	}
}

// find returns the entry of a word's hash, or -1.
func (l *Lexicon) find(hash uint32) int32 {
	if l == nil || len(l.slots) == 0 {
		return -1
	}
	return l.slot(hash).place - 1
}

// group numbers the group of an entry from 1; 0 is none.
func (l *Lexicon) group(entry int32) uint32 {
	if entry < 0 {
		return 0
	}
	return uint32(l.groups[entry]) + 1
}
