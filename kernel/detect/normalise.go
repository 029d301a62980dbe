package detect

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normalise maps a text to the form that every rule and feature reads: NFKC
// (Unicode Standard Annex 15), lower case, accents and other attached marks
// stripped, lookalike letters replaced by the Latin letter they imitate,
// invisible characters removed, runs of white space collapsed to one space and
// trimmed. Invalid UTF-8 becomes U+FFFD.
//
// It is idempotent, linear in time, and its result is at most eleven times as
// long as its input (the largest NFKC expansion, U+FDFA).
func Normalise(s string) string {
	if isNormal(s) {
		return s
	}
	if isASCII(s) {
		return foldASCII(s)
	}
	return foldUnicode(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isNormal recognises the ASCII texts that Normalise leaves alone, so that
// they cost no allocation.
func isNormal(s string) bool {
	gap := true // a space may not come first, nor after a space
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' || c == ' ' && gap {
			return false
		}
		gap = c == ' '
	}
	return len(s) == 0 || !gap
}

func foldASCII(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ' ' || '\t' <= c && c <= '\r':
			out = appendGap(out)
		case c < ' ' || c == 0x7f:
		case 'A' <= c && c <= 'Z':
			out = append(out, c+'a'-'A')
		default:
			out = append(out, c)
		}
	}
	return string(trimGap(out))
}

func foldUnicode(s string) string {
	decomposed := norm.NFKD.AppendString(make([]byte, 0, len(s)+len(s)/2), strings.ToValidUTF8(s, "\uFFFD"))
	out := make([]byte, 0, len(decomposed))
	for i := 0; i < len(decomposed); {
		r, size := utf8.DecodeRune(decomposed[i:])
		switch {
		case unicode.IsSpace(r) || r == '\u2028' || r == '\u2029':
			out = appendGap(out)
		case invisible(r) || attached(r, decomposed[i:i+size]):
		default:
			out = utf8.AppendRune(out, skeleton(unicode.ToLower(r)))
		}
		i += size
	}
	return string(norm.NFKC.Bytes(trimGap(out)))
}

func appendGap(out []byte) []byte {
	if len(out) == 0 || out[len(out)-1] == ' ' {
		return out
	}
	return append(out, ' ')
}

func trimGap(out []byte) []byte {
	if n := len(out); n > 0 && out[n-1] == ' ' {
		return out[:n-1]
	}
	return out
}

// invisible reports controls and the characters that a reader does not see:
// zero-width and bidirectional controls, fillers, tags, variation selectors
// (Unicode property Default_Ignorable_Code_Point, UAX 44).
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// attached reports the marks that decorate a letter: accents, overlays, points
// of Hebrew and Arabic, enclosing marks. Vowel signs, viramas and voicing marks
// of other scripts are letters in their own right and stay. The numbers are
// canonical combining classes (UAX 44, table 15).
func attached(r rune, raw []byte) bool {
	if r < 0x300 || !unicode.In(r, unicode.Mn, unicode.Me) {
		return false
	}
	class := norm.NFD.Properties(raw).CCC()
	return unicode.Is(unicode.Me, r) || class == 1 || 10 <= class && class <= 36 || class >= 200
}
