package detect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// minApart is how many single letters in a row were set apart on purpose.
const minApart = 4

// unspace joins letters that one separator holds apart ("i g n o r e",
// "i.g.n.o.r.e"), and returns d when no four letters stand so. Where the
// separator is a space, two of them or more end the word.
func unspace(d *derived) *derived {
	s := d.text
	if !setApart(s) {
		return d
	}
	w, kept, found := rewrite(d), 0, false
	for i := 0; i < len(s); {
		end, letters := spacedWord(s, i)
		word := letters >= minApart && strings.ContainsFunc(s[i:end], unicode.IsLetter) // a row of digits is none
		if !word && (!found || letters < 2) {
			i = end
			continue
		}
		w.keepSome(kept, i)
		joinLetters(w, s, i, end)
		i, kept, found = end, end, true
	}
	if !found {
		return d
	}
	w.keepSome(kept, len(s))
	return w.done()
}

// joinLetters keeps every other character of s[i:end].
func joinLetters(w *draft, s string, i, end int) {
	for letter := true; i < end; letter = !letter {
		_, size := utf8.DecodeRuneInString(s[i:])
		if letter {
			w.keep(i, i+size)
		} else {
			w.drop(i)
		}
		i += size
	}
}

// setApart reports whether letters may stand in a row with one character
// between each two. It spares ordinary texts what follows.
func setApart(s string) bool {
	run, before := 0, false // how long letters and others have taken turns
	for _, r := range s {
		letter := isLetter(r)
		if letter == before {
			run = 0
		}
		if run++; run >= 2*minApart-1 {
			return true
		}
		before = letter
	}
	return false
}

// spacedWord returns the end of the run of single letters that starts at i
// and how many they are, or the end of the character or word at i and 0.
func spacedWord(s string, i int) (end, letters int) {
	r, size := utf8.DecodeRuneInString(s[i:])
	if !isLetter(r) {
		return i + size, 0
	}
	end = i + size
	var separator rune
	for letters = 1; ; letters++ {
		apart, a := utf8.DecodeRuneInString(s[end:])
		if a == 0 {
			return end, letters
		}
		if isLetter(apart) {
			break
		}
		next, b := utf8.DecodeRuneInString(s[end+a:])
		if !isLetter(next) || letters > 1 && apart != separator {
			return end, letters
		}
		separator = apart
		end += a + b
	}
	// The last letter begins a longer word: it belongs there.
	return back(s, i, end, size, letters)
}

// back gives up the last letter of a run, which a letter follows, or steps
// over the word when it is the only one.
func back(s string, i, end, size, letters int) (int, int) {
	if letters > 1 {
		_, last := utf8.DecodeLastRuneInString(s[i:end])
		_, apart := utf8.DecodeLastRuneInString(s[i : end-last])
		return end - last - apart, letters - 1
	}
	end = i + size
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if !isLetter(r) {
			break
		}
		end += n
	}
	return end, 0
}

// isLetter tells what words are made of from what parts them.
func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r != '_' && (letter(r|0x20) || '0' <= r && r <= '9') && r != '@'
	}
	return letter(r)
}

// minSplit is how many words hold signs when that is meant.
const minSplit = 4

// unsplit removes signs inside words ("ign-ore all prev*ious"), and returns
// nil unless a third of the words, and four at least, have some.
func unsplit(d *derived) *derived {
	words, split := 0, 0
	for word := range strings.FieldsSeq(d.text) {
		words++
		if from, _ := signsAt(word, 0); from > 0 && len(word) < maxWord {
			split++
		}
	}
	if split < minSplit || split*3 < words {
		return nil
	}
	w := rewrite(d)
	for i := 0; ; {
		from, to := signsAt(d.text, i)
		if from < 0 {
			w.keepSome(i, len(d.text))
			return w.done()
		}
		w.keep(i, from)
		w.drop(from)
		i = to
	}
}

// signsAt returns the range of the first one to three signs after s[i] that
// stand between two ASCII letters, or -1.
func signsAt(s string, i int) (from, to int) {
	for from = i + 1; from+1 < len(s); from++ {
		if !asciiLetter(s[from-1]) || !splitting[s[from]] {
			continue
		}
		to = from + 1
		for to < len(s) && to < from+3 && splitting[s[to]] {
			to++
		}
		if to < len(s) && asciiLetter(s[to]) {
			return from, to
		}
	}
	return -1, -1
}

var splitting = bytesOf("-_.*|~^\\`#")

// unjoin reads underscores as spaces where they join three words or more. It
// returns nil when there are none such.
func unjoin(d *derived) *derived {
	s, last, joined := d.text, -maxWord, false // where the underscore before stands
	for i := 1; i+1 < len(s) && !joined; i++ {
		switch {
		case s[i] == ' ':
			last = -maxWord
		case s[i] == '_' && asciiLetter(s[i-1]) && asciiLetter(s[i+1]):
			joined = i-last < maxWord
			last = i
		}
	}
	if !joined {
		return nil
	}
	return &derived{text: strings.ReplaceAll(d.text, "_", " "), up: d}
}

func asciiLetter(c byte) bool { return 'a' <= c && c <= 'z' }
