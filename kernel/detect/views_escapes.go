package detect

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape opens percent escapes, HTML entities, backslash escapes, U+0041,
// quoted-printable, UTF-7, character codes and joined literals of programs, and
// removes tags and comments from words. It returns d when there are none.
func unescape(d *derived) *derived {
	return replaceAll(d, &escapes, new(int), escape)
}

// escapes are the bytes at which an escape can begin.
var escapes = bytesOf("%&\\=<Uu+/\"'Cc(")

func bytesOf(s string) (set [256]bool) {
	for i := range len(s) {
		set[s[i]] = true
	}
	return set
}

// replaceAll asks at every byte of d in the set, from left to right, for a
// replacement of s[i:end], and returns d when there is none,
// which end == i says. It passes over what stands before seen, which replace may move.
func replaceAll(d *derived, starts *[256]bool, seen *int, replace func(s string, i int) (text string, end int)) *derived {
	var w *rewriter
	s, kept, asked := d.text, 0, 0
	for i := 0; ; {
		i = max(i, *seen)
		for i < len(s) && !starts[s[i]] {
			i++
		}
		if i >= len(s) {
			break
		}
		if i-asked >= contextInterval {
			d.checkContext()
			asked = i
		}
		text, end := replace(s, i)
		if end == i {
			i++
			continue
		}
		if w == nil {
			w = rewrite(d)
		}
		w.keepSome(kept, i)
		w.put(text, i, end)
		i, kept = end, end
	}
	if w == nil {
		return d
	}
	w.keepSome(kept, len(s))
	return w.done()
}

// escape decodes the escape that begins at s[i], if one does: then end > i.
func escape(s string, i int) (text string, end int) {
	switch s[i] {
	case '%':
		return byteEscapes(s, i, "%", 1)
	case '=':
		return byteEscapes(s, i, "=", 3)
	case '&':
		return entity(s, i)
	case '\\':
		return backslash(s, i)
	case 'U', 'u':
		return codePoints(s, i)
	case '<':
		return tag(s, i)
	case '+':
		if text, end = plusForSpace(s, i); end == i {
			return utf7(s, i)
		}
		return text, end
	case '/':
		return comment(s, i)
	case '"', '\'':
		return literalEnd(s, i)
	case 'C', 'c':
		return call(s, i)
	}
	return "", i
}

// byteEscapes decodes a run of at least n bytes written as sign and two
// hexadecimal digits. What is not UTF-8 becomes U+FFFD later, so that one bad
// byte does not hide the others.
func byteEscapes(s string, i int, sign string, n int) (string, int) {
	var buf [64]byte
	out, end := buf[:0], i
	for strings.HasPrefix(s[end:], sign) {
		b, ok := hexByte(s, end+len(sign))
		if !ok {
			break
		}
		out = append(out, b)
		end += len(sign) + 2
	}
	if len(out) < n {
		return "", i
	}
	return string(out), end
}

func hexByte(s string, i int) (byte, bool) {
	if i+2 > len(s) {
		return 0, false
	}
	hi, lo := hexDigit(s[i]), hexDigit(s[i+1])
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0 //nolint:gosec // G115: digits are below 16, and the caller drops the byte of others
}

// backslash decodes the escapes of JSON, Go, C, Python, JavaScript and CSS that
// stand for a character, and those for white space.
func backslash(s string, i int) (string, int) {
	if i+1 == len(s) {
		return "", i
	}
	switch s[i+1] {
	case 'n', 'r', 't':
		return "\n", i + 2
	case '"', '\'', '/':
		return s[i+1 : i+2], i + 2
	case '\\': // an escape that was escaped, however often
		end := i + 2
		for end < len(s) && s[end] == '\\' {
			end++
		}
		return `\`, end
	case 'x':
		return byteEscapes(s, i, `\x`, 1)
	case 'u', 'U':
		return unicodeEscapes(s, i)
	}
	return octalEscapes(s, i)
}

// unicodeEscapes decodes a run of \uXXXX, \u{X} and \UXXXXXXXX.
func unicodeEscapes(s string, i int) (string, int) {
	var units []uint16
	end := i
	for {
		r, next := unicodeEscape(s, end)
		if next == end {
			break
		}
		if r < 0x10000 {
			units = append(units, uint16(r)) //nolint:gosec // G115: below 0x10000, and not negative
		} else {
			units = utf16.AppendRune(units, r)
		}
		end = next
	}
	if end == i {
		return "", i
	}
	return string(utf16.Decode(units)), end
}

func unicodeEscape(s string, i int) (rune, int) {
	if !strings.HasPrefix(s[i:], `\u`) && !strings.HasPrefix(s[i:], `\U`) {
		return 0, i
	}
	from, n := i+2, 4
	if s[i+1] == 'U' {
		n = 8
	}
	after := 0
	if from < len(s) && s[from] == '{' {
		from, n, after = from+1, max(0, strings.IndexByte(s[from:min(len(s), from+10)], '}')-1), 1
	}
	if n == 0 || from+n > len(s) {
		return 0, i
	}
	r, err := strconv.ParseUint(s[from:from+n], 16, 32)
	if err != nil || r > utf8.MaxRune {
		return 0, i
	}
	return rune(r), from + n + after
}

// octalEscapes decodes a run of backslashes with three octal digits.
func octalEscapes(s string, i int) (string, int) {
	var out []byte
	end := i
	for end+4 <= len(s) && s[end] == '\\' {
		b, err := strconv.ParseUint(s[end+1:end+4], 8, 8)
		if err != nil {
			break
		}
		out = append(out, byte(b))
		end += 4
	}
	if len(out) == 0 {
		return "", i
	}
	return string(out), end
}

// codePoints decodes a run of "U+0069", set apart by spaces or not.
func codePoints(s string, i int) (string, int) {
	var out []rune
	end := i
	for next := i; next+6 <= len(s) && s[next]|0x20 == 'u' && s[next+1] == '+'; {
		r, err := strconv.ParseUint(s[next+2:next+6], 16, 16)
		if err != nil {
			break
		}
		out = append(out, rune(r))
		end = next + 6
		next = end
		for next < len(s) && next < end+2 && (s[next] == ' ' || s[next] == ',') {
			next++
		}
	}
	if len(out) < 4 {
		return "", i
	}
	return string(out), end
}

func asciiAlnum(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}
