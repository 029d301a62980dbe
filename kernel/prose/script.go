package prose

import (
	"strings"
	"unicode"
)

// English reports whether a sentence has a little word of English.
func (s *Sentence) English() bool { return s.traits&little != 0 }

// Lowercase reports whether most words of a sentence are in small letters, which those of
// a record are not.
func (s *Sentence) Lowercase() bool {
	n := 0
	for f := range strings.FieldsSeq(s.Text) {
		f = strings.Trim(f, ".,;:!?'\"()")
		if f != "" && strings.IndexFunc(f, func(c rune) bool { return !unicode.IsLower(c) && c != '\'' && c != '-' }) < 0 {
			n++
		}
	}
	return n*3 >= len(s.Words)*2
}

// ForeignScript reports whether most letters are neither Latin nor marks on such.
func ForeignScript(text string) bool {
	if IsASCII(text) {
		return false
	}
	latin, other := 0, 0
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			latin++
		case c >= 0x370 && unicode.IsLetter(c):
			other++
		}
	}
	return other > 3 && other > latin
}
