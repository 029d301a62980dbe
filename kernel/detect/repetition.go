package detect

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// The sums over a span grow with the root of how often something is repeated, and the model
// has learnt from texts that say a thing once. A page of one log line, of print('hello') or of
// "lol" would be an attack. So what is repeated without anything between is read twice. That
// hides nothing: every word that the text has is there, beside each word that it stands beside.

const (
	// longestUnit is the longest text, in bytes, of which repetitions are found: a line, a
	// sentence or two.
	longestUnit = 512
	// shingle is how many bytes have to be the same before repetitions are looked for.
	shingle = 8
)

// withoutRepetitions returns what is read of a normalised text.
func withoutRepetitions(d *derived) *derived { return unrepeated(unstretched(d)) }

// unrepeated returns a normalised text in which nothing that consists of words or of letters
// beyond ASCII comes more than twice in a row.
func unrepeated(d *derived) *derived {
	s := d.text
	var seen [1 << 10]uint32 // where a shingle began last, by its hash, counted from 1
	var w *rewriter
	done := 0
	tried, failed := 0, 0 // the unit that was looked for last, and up to where in vain
	for i := 0; i+shingle <= len(s); i++ {
		if i%contextInterval == 0 {
			d.checkContext()
		}
		if !beginsWord(s, i) {
			continue
		}
		place := &seen[hashOf(s[i:])]
		unit := i + 1 - int(*place)
		*place = uint32(i + 1)
		if unit > i || unit > longestUnit || unit == tried && i < failed || s[i:i+shingle] != s[i-unit:i-unit+shingle] {
			continue
		}
		end := i + shingle
		for end < len(s) && s[end] == s[end-unit] {
			end++
		}
		if end == len(s) && s[end-unit] == ' ' { // the space behind the last one is trimmed
			end++
		}
		again := (end - i) / unit // how often the unit comes after the first time
		if last := i + again*unit; last < len(s) && !beginsWord(s, last) {
			again-- // the word with which it ends goes on
		}
		if again < 2 || !isWords(s[i:i+unit]) {
			tried, failed = unit, end
			continue
		}
		if w == nil {
			w = rewrite(d)
		}
		w.keepSome(done, i+unit)
		done = min(len(s), i+again*unit)
		w.drop(i + unit)
		i = done - 1
	}
	if w == nil {
		return d
	}
	w.keepSome(done, len(s))
	return w.done()
}

// A word is stretched if at least leastStretched of its letters in a row are at most kindsOfStretched of the
// alphabet's ("nooooooooooo", "lolololololol", "blablablabla"): no language has such a word, and no
// sentence can be said in it. The first and the last keptOfStretched of these letters are read: those
// may belong to a word that stands beside it without a space.
const (
	kindsOfStretched = 3
	leastStretched   = 12
	keptOfStretched  = 4
)

// unstretched returns a text without the middle of stretched words.
func unstretched(d *derived) *derived {
	s := d.text
	var w *rewriter
	done, checked := 0, 0
	for i := 0; i < len(s); {
		if i-checked >= contextInterval {
			d.checkContext()
			checked = i
		}
		end := len(s)
		if space := strings.IndexByte(s[i:], ' '); space >= 0 {
			end = i + space
		}
		for i <= end-leastStretched {
			from, to, n := stretched(s[i:end])
			if n == 0 {
				_, size := utf8.DecodeRuneInString(s[i:])
				i += size
				continue
			}
			if w == nil {
				w = rewrite(d)
			}
			w.keepSome(done, i+from)
			w.drop(i + from)
			done = i + to
			i += n
		}
		i = end + 1
	}
	if w == nil {
		return d
	}
	w.keepSome(done, len(s))
	return w.done()
}

// stretched returns the length of the stretched letters at the front of a text, 0 if there are
// none, and which of them are not read.
func stretched(s string) (from, to, n int) {
	var (
		kinds [kindsOfStretched]rune
		ends  [keptOfStretched]int // of the letters before, in turn
	)
	known, letters := 0, 0
	for n < len(s) {
		c, size := utf8.DecodeRuneInString(s[n:])
		if !letter(c) || ideograph(c) { // of which each is a word
			break
		}
		if !slices.Contains(kinds[:known], c) {
			if known == len(kinds) {
				break
			}
			kinds[known] = c
			known++
		}
		to, ends[letters%len(ends)] = ends[letters%len(ends)], n+size
		n += size
		if letters++; letters == keptOfStretched {
			from = n
		}
	}
	if letters < leastStretched {
		return 0, 0, 0
	}
	return from, to, n
}

// beginsWord reports whether a word, or what stands between words, begins at a place: behind a
// space or, beyond ASCII, wherever no letters of one word meet.
func beginsWord(s string, i int) bool {
	if s[i] < utf8.RuneSelf {
		return i == 0 || s[i-1] == ' '
	}
	if !utf8.RuneStart(s[i]) {
		return false
	}
	if c, _ := utf8.DecodeRuneInString(s[i:]); ideograph(c) || !letter(c) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	return ideograph(before) || !letter(before)
}

// hashOf is the hash of a text's first shingle, in ten bits.
func hashOf(s string) uint64 {
	return binary.LittleEndian.Uint64([]byte(s[:shingle])) * 0x9e3779b97f4a7c15 >> 54
}

// isWords reports whether what is repeated has a space or letters beyond ASCII: what is
// repeated within an ASCII word is left to those who read disguises.
func isWords(s string) bool {
	for i := range len(s) {
		if s[i] == ' ' || s[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}
