package detect

// A word that comes again and again says no more each time, as retrieval has long known
// (term-frequency saturation: Robertson and Zaragoza, The Probabilistic Relevance Framework,
// 2009). Sixty lines that begin with "assert" or "GET", or a song, would add up to an attack
// of which no line has anything. So of a word only the first few in a window count. Most
// sentences have no word so often. The pairs that it forms with its neighbours always count.

// mostRecent is how often a word counts within the length of a window.
const mostRecent = 3

// mostLookedBack is how many words back a word still counts.
const mostLookedBack = WindowBlocks * BlockWords

// recentWords are the words of the last window's length, by their hashes.
type recentWords struct {
	words [mostLookedBack]uint32
	slots [1 << 8]uint8 // how many of them there are with these last eight bits
	seen  int           // words that were ever added
}

// add adds the next word, and reports whether it came often enough just before.
func (r *recentWords) add(word uint32) (often bool) {
	slot := &r.slots[uint8(word)] //nolint:gosec // G115: the last eight bits
	often = *slot >= mostRecent && r.count(word) >= mostRecent
	place := &r.words[r.seen%len(r.words)]
	if r.seen >= len(r.words) {
		r.slots[uint8(*place)]-- //nolint:gosec // G115: as above
	}
	*slot++
	*place = word
	r.seen++
	return often
}

func (r *recentWords) count(word uint32) (n int) {
	for _, w := range r.words[:min(r.seen, len(r.words))] {
		if w == word {
			n++
		}
	}
	return n
}
