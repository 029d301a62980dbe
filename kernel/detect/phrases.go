package detect

// A phraseTree holds a list of phrases and finds all of them that begin at a byte of a
// text in one walk, however long the list is: each step takes one byte of the text and
// the node reached so far. Most walks end at their first byte. A text is read from each
// of its places, which is linear in its length, since no walk is longer than the longest
// phrase.
type phraseTree struct {
	column [256]uint8 // of a byte in next; column 0 is for the bytes of no phrase
	width  int
	next   []uint16 // by node and column: the node after it, or 0. Node 0 is the root.
	phrase []int16  // by node: the phrase that ends there, or noPhrase
}

const noPhrase = -1

// newPhraseTree numbers the phrases of the lists through. A phrase that is listed twice
// has the first number.
func newPhraseTree(lists ...[]string) *phraseTree {
	t := &phraseTree{width: 1}
	for _, list := range lists {
		for _, p := range list {
			for i := range len(p) {
				if t.column[p[i]] == 0 {
					t.column[p[i]] = uint8(t.width) //nolint:gosec // G115: at most 256 bytes, of which UTF-8 has no 0xff
					t.width++
				}
			}
		}
	}
	t.addNode()
	number := int16(0)
	for _, list := range lists {
		for _, p := range list {
			t.add(p, number)
			number++
		}
	}
	return t
}

func (t *phraseTree) addNode() uint16 {
	t.next = append(t.next, make([]uint16, t.width)...)
	t.phrase = append(t.phrase, noPhrase)
	return uint16(len(t.phrase) - 1) //nolint:gosec // G115: all phrases together have a few thousand bytes
}

func (t *phraseTree) add(p string, number int16) {
	node := uint16(0)
	for i := range len(p) {
		at := int(node)*t.width + int(t.column[p[i]])
		if t.next[at] == 0 {
			added := t.addNode()
			t.next[at] = added
		}
		node = t.next[at]
	}
	if t.phrase[node] == noPhrase {
		t.phrase[node] = number
	}
}

// step goes from a node on by one byte. It returns 0 where no phrase goes on.
func (t *phraseTree) step(node uint16, c byte) uint16 {
	return t.next[int(node)*t.width+int(t.column[c])]
}

// in reports whether a text contains a phrase.
func (t *phraseTree) in(s []byte) bool {
	for i := range len(s) {
		node := uint16(0)
		for j := i; j < len(s); j++ {
			if node = t.step(node, s[j]); node == 0 {
				break
			}
			if t.phrase[node] != noPhrase {
				return true
			}
		}
	}
	return false
}

// maxPhrases is how many phrases a phraseSet has room for.
const maxPhrases = 256

// A phraseSet is a set of the phrases of one tree.
type phraseSet [maxPhrases / 64]uint64

// add reports whether a phrase is new to the set.
func (s *phraseSet) add(phrase int) bool {
	word, bit := phrase/64, uint64(1)<<(phrase%64)
	if s[word]&bit != 0 {
		return false
	}
	s[word] |= bit
	return true
}
