package detect

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// plainPrefix returns the length of the longest prefix of s that clean leaves
// alone and that can be seen to be so at a glance.
func plainPrefix(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if !cleanByte(c) {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !plain(r) {
			return i
		}
		i += size
	}
	return len(s)
}

// plain lists ranges of characters that are their own NFKC form, visible, and
// carry no attached mark: most text outside ASCII is made of them.
func plain(r rune) bool {
	switch {
	case r < 0x410:
		return false
	case r <= 0x44f:
		return r != 0x419 && r != 0x439 // Cyrillic, without short i
	case 0x5d0 <= r && r <= 0x5ea, 0x627 <= r && r <= 0x63a, 0x641 <= r && r <= 0x64a:
		return true // Hebrew, Arabic
	case 0x905 <= r && r <= 0x928, 0x92a <= r && r <= 0x930, 0x93e <= r && r <= 0x94d:
		return true // Devanagari
	case 0xe01 <= r && r <= 0xe30:
		return true // Thai
	case 0x3041 <= r && r <= 0x3096, 0x30a1 <= r && r <= 0x30fc:
		return true // kana
	case 0x3400 <= r && r <= 0x4dbf, 0x4e00 <= r && r <= 0x9fff, 0xac00 <= r && r <= 0xd7a3:
		return true // Han, Hangul
	}
	return r == 0x3001 || r == 0x3002
}

// invisible reports controls and the characters that a reader does not see:
// zero-width and bidirectional controls, fillers, tags, variation selectors
// (Unicode property Default_Ignorable_Code_Point, UAX 44), and the stroke that
// only stretches Arabic words. White space is not asked for.
func invisible(r rune) bool {
	switch {
	case r < 0xad:
		return r < ' ' || 0x7f <= r && r < 0xa0
	case 0x3400 <= r && r <= 0xd7ff && r != 0x3164:
		return false
	}
	return r == 0x640 || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// attached reports the marks that decorate a letter: accents, overlays, points
// of Hebrew and Arabic, enclosing marks. Vowel signs, viramas and voicing marks
// of other scripts are letters in their own right and stay. The numbers are
// canonical combining classes (UAX 44, table 15).
func attached(r rune, known norm.Properties) bool {
	class := known.CCC()
	return class == 1 || 10 <= class && class <= 36 || class >= 200 || r >= 0x300 && unicode.Is(unicode.Me, r)
}
