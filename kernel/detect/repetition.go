package detect

import (
	"encoding/binary"
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
