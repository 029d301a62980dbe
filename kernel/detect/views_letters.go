package detect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// minApart is how many single letters in a row were set apart on purpose.
const minApart = 4

// unspace joins letters that are held apart, by one kind of space or by signs
// ("i g n o r e", "i.g-n.o*r.e"), and returns d when no four letters stand so. Where the
// separator is a space, two of them or more end the word.
func unspace(d *derived) *derived {
	s := d.text
	if !setApart(s) {
		return d
	}
	w, kept, asked := rewrite(d), 0, 0
	var by separation // of the first run; shorter ones must have the same
	for i := 0; i < len(s); {
		if i-asked >= contextInterval {
			d.checkContext()
			asked = i
		}
		run := spacedWord(s, i)
		word := run.letters >= minApart && strings.ContainsFunc(s[i:run.end], unicode.IsLetter) // a row of digits is none
		if !word && (run.letters < 2 || run.by != by) {
			i = run.next
			continue
		}
		w.keepSome(kept, i)
		joinLetters(w, s, i, run.end)
		i, kept = run.end, run.end
		if by == 0 {
			by = run.by
		}
	}
	if by == 0 {
		return d
	}
	w.keepSome(kept, len(s))
	return w.done()
}

// joinLetters keeps every other character of s[i:end].
func joinLetters(w *rewriter, s string, i, end int) {
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
	for i := 0; i < len(s); {
		letter, size := traits[s[i]]&(aLetter|aDigit) != 0, 1
		if s[i] >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			letter = isLetter(r)
		}
		i += size
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

// separation is how letters are held apart.
type separation int

const (
	bySpace separation = iota + 1
	bySign
)

func separationOf(r rune) separation {
	if unicode.IsSpace(r) {
		return bySpace
	}
	return bySign
}

// apart is a run of single letters.
type apart struct {
	end, letters int
	by           separation // when there are two letters or more
	next         int        // where to look on when the run is too short
}

// spacedWord returns the run of single letters that starts at i; it has no
// letters when a sign or a longer word starts there.
func spacedWord(s string, i int) apart {
	r, size := utf8.DecodeRuneInString(s[i:])
	run := apart{end: i + size, next: i + size}
	if !isLetter(r) {
		return run
	}
	var first rune
	for run.letters = 1; ; run.letters++ {
		sign, a := utf8.DecodeRuneInString(s[run.end:])
		letter, b := utf8.DecodeRuneInString(s[run.end+a:])
		switch {
		case a > 0 && isLetter(sign):
			return run.giveBack(s, i)
		case !isLetter(letter) || b == 0:
			return run.settled()
		case run.letters == 1:
			first, run.by = sign, separationOf(sign)
		case sign != first && (run.by == bySpace || separationOf(sign) == bySpace):
			return run.settled()
		}
		run.end += a + b
	}
}

// settled lets a long run that is no word be stepped over at once.
func (run apart) settled() apart {
	if run.letters >= minApart {
		run.next = run.end
	}
	return run
}

// giveBack gives up the last letter of a run, because another follows it: it
// begins a longer word. When it is the only one the word is stepped over.
func (run apart) giveBack(s string, i int) apart {
	if run.letters > 1 {
		_, last := utf8.DecodeLastRuneInString(s[i:run.end])
		_, sign := utf8.DecodeLastRuneInString(s[i : run.end-last])
		run.end -= last + sign
		run.letters--
		return run.settled()
	}
	for run.letters = 0; run.end < len(s); {
		r, n := utf8.DecodeRuneInString(s[run.end:])
		if !isLetter(r) {
			break
		}
		run.end += n
	}
	run.next = run.end
	return run
}

// isLetter tells what words are made of from what parts them.
func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiAlnum(byte(r)) //nolint:gosec // G115: below utf8.RuneSelf
	}
	return letter(r) && (r < firstPicture || r > lastPicture)
}

// The planes of emoji and other pictures.
const firstPicture, lastPicture = 0x1f000, 0x1ffff

const (
	// minSplit is how many words hold signs when that is meant.
	minSplit = 4
	// minMarked is the same for signs that words never hold: marks of emphasis.
	minMarked = 2
)

// unsplit removes signs inside words ("ign-ore all prev*ious"), and returns
// nil unless a third of the words, and four at least, have some, or two have
// marks of emphasis.
func unsplit(d *derived) *derived {
	words, split, marked := 0, 0, 0
	for word := range strings.FieldsSeq(d.text) {
		words++
		if from, to := signsAt(word, 0); from > 0 && len(word) < 4*maxWord {
			split++
			if strings.ContainsAny(word[from:to], "*~`^|") || to-from > 1 && word[from] == '_' {
				marked++
			}
		}
	}
	if marked < minMarked && (split < minSplit || split*3 < words) {
		return nil
	}
	w := rewrite(d)
	for i := 0; ; {
		from, to := signsAt(d.text, i)
		if from < 0 {
			w.keepSome(i, len(d.text))
			return unframed(w.done())
		}
		w.keep(i, from)
		w.drop(from)
		i = to
	}
}

// unframed takes emphasis off the borders of words.
func unframed(d *derived) *derived {
	if !strings.ContainsAny(d.text, "*~`_") {
		return d
	}
	w := rewrite(d)
	for i := range len(d.text) {
		if strings.IndexByte("*~`_", d.text[i]) >= 0 {
			w.drop(i)
			continue
		}
		w.keep(i, i+1)
	}
	return w.done()
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

// unjoin reads underscores and pictures as spaces where they join three words
// or more. It returns nil when there are none such.
func unjoin(d *derived) *derived {
	s, last := d.text, -maxWord // where the joint before stands
	for i := 1; i+1 < len(s); i++ {
		n := joint(s[i:])
		if s[i] == ' ' {
			last = -maxWord
		}
		if n > 0 && i+n < len(s) && asciiLetter(s[i-1]) && asciiLetter(s[i+n]) {
			if i-last < maxWord {
				return partJoints(d)
			}
			last = i
		}
		i += max(n-1, 0) // behind the pictures, of which each would look at the rest again
	}
	return nil
}

// joint returns the length of the underscore or of the pictures that s begins
// with. The planes of pictures are what begins with F0 9F in UTF-8.
func joint(s string) (n int) {
	if s[0] == '_' {
		return 1
	}
	for n+4 <= len(s) && s[n] == 0xf0 && s[n+1] == 0x9f {
		n += 4
	}
	return n
}

func partJoints(d *derived) *derived {
	w := rewrite(d)
	for i := 0; i < len(d.text); {
		if n := joint(d.text[i:]); n > 0 {
			w.put(" ", i, i+n)
			i += n
			continue
		}
		w.keep(i, i+1)
		i++
	}
	return w.done()
}

func asciiLetter(c byte) bool { return 'a' <= c && c <= 'z' }
