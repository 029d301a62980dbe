package detect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A question behind a page of something else stands in a window with the end of that page, which
// weakens it. So the readers of [Languages] are also asked about each sentence by itself, and
// about smaller windows, of two blocks. The heads are not: they take too many
// sentences of ordinary texts for attacks.

// shortestSentence is how many words a sentence has at least; what is shorter is read with the
// next one. Of "What would you say to the robbers?" by itself nobody knows enough, and in code
// every line would be one.
const shortestSentence = 6

// longestSentence is a window's length: longer ones are read by their windows.
const longestSentence = WindowBlocks * BlockWords

// sentences finds where the sentences of a text end: at the marks that end sentences, and where
// a line ended in the text that was normalised.
type sentences struct {
	text  *derived
	lines *derived // a text before, the first one that has lines; nil: none has
}

func newSentences(normal *derived) sentences {
	s := sentences{text: normal, lines: normal}
	for s.lines != nil && strings.IndexByte(s.lines.text, '\n') < 0 {
		if s.lines.mirror {
			s.lines = nil
			break
		}
		s.lines = s.lines.up
	}
	return s
}

// end reports whether a sentence ends between two words. The first one ends at i, or one
// character before.
func (s *sentences) end(i int) bool {
	text := s.text.text
	if i < len(text) && text[i-1] == ' ' && plainBytes[text[i]] == spells { // as between most words
		return s.lineEnds(i-1, i)
	}
	from := i
	if last, size := utf8.DecodeLastRuneInString(text[:i]); !letter(last) {
		from -= size
	} else if isMark(last) {
		return true // danda is a letter to the scanner
	}
	for at, c := range text[from:] {
		switch {
		case c == '.': // but in "3.5" or "example.com"
			if next, _ := utf8.DecodeRuneInString(text[from+at+1:]); !letter(next) {
				return true
			}
		case isMark(c):
			return true
		case letter(c):
			return s.lineEnds(from, from+at)
		}
	}
	return true
}

// isMark reports the marks that end a sentence wherever they stand.
func isMark(c rune) bool {
	switch c {
	case '!', '?', '。', '।', '؟', '۔':
		return true
	}
	return false
}

// lineEnds reports whether a line ended in what became text[from:to], or in what was left out
// before the letter there. What comes from a text whose letters stood elsewhere has no lines.
func (s *sentences) lineEnds(from, to int) bool {
	if s.lines == nil {
		return false
	}
	to++
	for d := s.text; d != s.lines; d = d.up {
		from, to = d.before(from, to)
	}
	for _, c := range s.lines.text[from:min(to, from+widestGap)] {
		switch {
		case c == '\n':
			return true
		case unicode.IsLetter(c), unicode.IsDigit(c):
			return false
		}
	}
	return false
}

// widestGap is how many bytes between two words are searched for the end of a line.
const widestGap = 64
