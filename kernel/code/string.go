package code

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
)

// Strings returns the string literals of a program, escapes undone, as
// nearly as most languages agree on them; neighbours joined by + are one.
func Strings(text string) []string {
	var out []string
	var joined strings.Builder // the last one, while neighbours may join it
	for i := 0; i < len(text); i++ {
		q := text[i]
		if q != '"' && q != '\'' && q != '`' {
			continue
		}
		mark := text[i : i+1]
		if strings.HasPrefix(text[i:], strings.Repeat(mark, 3)) {
			mark = text[i : i+3]
		}
		value, end := StringFrom(text, i+len(mark), mark)
		if plus := strings.TrimRight(text[:i], " \t\n"); len(out) > 0 && strings.HasSuffix(plus, "+") && endsLiteral(plus) {
			joined.WriteString(value)
		} else {
			out = append(out, "")
			joined.Reset()
			joined.WriteString(value)
		}
		out[len(out)-1] = joined.String()
		i = end
	}
	return out
}

func endsLiteral(s string) bool {
	s = strings.TrimRight(strings.TrimSuffix(s, "+"), " \t\n")
	return s != "" && strings.ContainsRune("\"'`", rune(s[len(s)-1]))
}

// StringFrom reads a literal from behind its opening mark up to the closing one, escapes
// undone, and returns the index of the last byte that it has read.
func StringFrom(text string, i int, mark string) (string, int) {
	var b strings.Builder
	for i < len(text) {
		switch {
		case strings.HasPrefix(text[i:], mark):
			return b.String(), i + len(mark) - 1
		case text[i] == '\\' && i+1 < len(text):
			i++
			if c, end, byCode := byteByCode(text, i); byCode {
				b.WriteByte(c)
				i = end
			} else if c := text[i]; c == 'n' || c == 't' || c == 'r' {
				b.WriteByte(' ')
			} else {
				b.WriteByte(c)
			}
		default:
			b.WriteByte(text[i])
		}
		i++
	}
	return b.String(), len(text)
}

// byteByCode reads \x72, \u0072 and \162 after the backslash, and returns the index
// of their last byte.
func byteByCode(text string, i int) (c byte, end int, ok bool) {
	digits, base, from := 3, 8, i
	switch text[i] {
	case 'x':
		digits, base, from = 2, 16, i+1
	case 'u':
		digits, base, from = 4, 16, i+1
	}
	if from+digits > len(text) {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(text[from:from+digits], base, 16)
	if err != nil || n > 126 || n < 9 {
		return 0, 0, false
	}
	return byte(n), from + digits - 1, true
}

// Spelled is the text that a list of character codes spells, or nothing.
func Spelled(list string) string {
	var b strings.Builder
	for n := range strings.SplitSeq(list, ",") {
		c, err := strconv.Atoi(strings.TrimSpace(n))
		if err != nil || c < 9 || c > 126 {
			return ""
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// maxDecoded bounds the literals that are decoded.
const maxDecoded = 1 << 13

// Decoded are the texts that a literal holds in base64, hexadecimal digits or
// rot13.
func Decoded(l string) []string {
	var out []string
	if len(l) < 4 || len(l) > maxDecoded {
		return nil
	}
	if raw, err := hex.DecodeString(l); err == nil {
		out = append(out, string(raw))
	}
	if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(l, "=")); err == nil && Printable(raw) {
		out = append(out, string(raw))
	}
	return append(out, prose.ROT13(l))
}

// Printable reports whether there is something, and all of it is ASCII text.
func Printable(raw []byte) bool {
	for _, c := range raw {
		if c < 9 || c > 126 {
			return false
		}
	}
	return len(raw) > 0
}
