package toolcall

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/caddy-lex/lex/kernel/prose"
)

// plainText is a text in the characters that a keyboard writes: what looks like a
// space is one, what looks like nothing is nothing, and a letter of another
// alphabet within a Latin word is the Latin letter that it looks like. No honest
// command, query or path mixes them, and some programs on the way normalise.
func plainText(text string) string {
	if prose.IsASCII(text) {
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
			word = prose.LatinOf(word)
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

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func alphanumeric(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
