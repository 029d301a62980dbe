package toolcall

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// plainText is a text in the characters that a keyboard writes: what looks like a
// space is one, what looks like nothing is nothing, and a letter of another
// alphabet within a Latin word is the Latin letter that it looks like. No honest
// command, query or path mixes them, and some programs on the way normalise.
func plainText(text string) string {
	if isASCII(text) {
		return text
	}
	text = strings.Map(func(c rune) rune {
		switch {
		case c < 0x80 || c >= 0x3400 && c < 0xd800: // CJK and Hangul have none of what follows
			return c
		case unicode.Is(unicode.Zs, c) || c == '\u2028' || c == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Variation_Selector, c) || c == '\u034f' || c == '\u115f' || c == '\u3164':
			return -1
		case c >= 0xff01 && c <= 0xff5e:
			return c - 0xff01 + '!'
		case c >= 0x1d400 && c <= 0x1d7ff || c >= 0x2460 && c <= 0x24ff:
			if plain := []rune(norm.NFKC.String(string(c))); len(plain) == 1 {
				return plain[0]
			}
		}
		return c
	}, text)
	return latin(text)
}

// plainText remembers the last text: several readers ask for the same one.
func (r *reading) plainText(text string) string {
	if r.lastText != text {
		r.lastText, r.lastPlain = text, plainText(text)
	}
	return r.lastPlain
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// latin puts the words right that mix the Latin alphabet with another.
func latin(text string) string {
	if !strings.ContainsFunc(text, besideLatin) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(c rune) bool { return !unicode.IsLetter(c) })
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		if mixes(word) {
			word = lookalikes.Replace(word)
		}
		b.WriteString(word)
		if end == len(text) {
			break
		}
		next := strings.IndexFunc(text[end:], unicode.IsLetter)
		if next < 0 {
			next = len(text) - end
		}
		b.WriteString(text[end : end+next])
		text = text[end+next:]
	}
	return b.String()
}

func mixes(word string) bool {
	plain, other := false, false
	for _, c := range word {
		plain = plain || c < 0x80
		other = other || besideLatin(c)
	}
	return plain && other
}

// besideLatin reports whether a letter is of an alphabet that has some which are drawn as
// Latin ones.
func besideLatin(c rune) bool {
	return c >= 0x370 && unicode.In(c, unicode.Cyrillic, unicode.Greek, unicode.Armenian)
}

// lookalikes are the letters that are drawn as Latin ones (Unicode TR 39).
var lookalikes = strings.NewReplacer(
	"\u0430", "a", "\u0435", "e", "\u043e", "o", "\u0440", "p", "\u0441", "c", "\u0445", "x", "\u0443", "y", "\u0456", "i", "\u0458", "j",
	"\u0455", "s", "\u0501", "d", "\u04bb", "h", "\u051b", "q", "\u051d", "w", "\u0475", "v", "\u043c", "m", "\u0442", "t", "\u043a", "k", "\u043d", "h", "\u0432", "b", "\u0433", "r",
	"\u0410", "A", "\u0412", "B", "\u0415", "E", "\u041a", "K", "\u041c", "M", "\u041d", "H", "\u041e", "O", "\u0420", "P", "\u0421", "C", "\u0422", "T", "\u0425", "X", "\u0406", "I", "\u0405", "S", "\u0408", "J",
	"\u03bf", "o", "\u03b1", "a", "\u03c1", "p", "\u03bd", "v", "\u03b9", "i", "\u03ba", "k", "\u03c5", "u", "\u03c4", "t",
	"\u0391", "A", "\u0392", "B", "\u0395", "E", "\u0396", "Z", "\u0397", "H", "\u0399", "I", "\u039a", "K", "\u039c", "M", "\u039d", "N", "\u039f", "O", "\u03a1", "P", "\u03a4", "T", "\u03a5", "Y", "\u03a7", "X",
	"\u0585", "o", "\u057d", "u", "\u0570", "h", "\u0578", "n",
)
