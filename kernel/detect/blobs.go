package detect

import (
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	minBase64 = 20 // characters: fifteen bytes, below that words collide with data
	minHex    = 16 // digits: eight bytes
)

// base64Texts returns the readable texts among the base64 runs of raw, in both
// alphabets, padded or not.
func base64Texts(raw string) (out []string) {
	for run := range runs(bounded(raw), base64Char, minBase64) {
		run = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(run, "="))
		run = run[:len(run)/4*4+[4]int{0, 0, 2, 3}[len(run)%4]]
		decoded, err := base64.RawStdEncoding.DecodeString(run)
		if err == nil && readable(decoded) {
			out = append(out, string(decoded))
		}
	}
	return out
}

func base64Char(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("+/-_=", c) >= 0
}

// hexTexts returns the readable texts among the hexadecimal runs of raw:
// "49676e", "49 67 6e", "\x49\x67\x6e", "0x49 0x67".
func hexTexts(raw string) (out []string) {
	raw = bounded(raw)
	if strings.Contains(raw, `\x`) || strings.Contains(raw, "0x") {
		raw = strings.NewReplacer(`\x`, " ", "0x", " ").Replace(raw)
	}
	for run := range runs(raw, hexOrSpace, minHex) {
		if decoded := hexBytes(run); len(decoded) >= minHex/2 && readable(decoded) {
			out = append(out, string(decoded))
		}
	}
	return out
}

func hexOrSpace(c byte) bool { return hexDigit(c) >= 0 || c == ' ' }

// hexBytes decodes the pairs of digits of a run and nothing when a digit
// stands alone, as in a table of numbers.
func hexBytes(run string) (out []byte) {
	for i := 0; i < len(run); {
		if run[i] == ' ' {
			i++
			continue
		}
		if i+1 == len(run) || run[i+1] == ' ' {
			return nil
		}
		out = append(out, byte(hexDigit(run[i])<<4|hexDigit(run[i+1])))
		i += 2
	}
	return out
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// runs yields the longest runs of characters in class of at least n bytes.
func runs(s string, class func(byte) bool, n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for start := 0; start < len(s); {
			end := start
			for end < len(s) && class(s[end]) {
				end++
			}
			if end-start >= n && !yield(s[start:end]) {
				return
			}
			start = end + 1
		}
	}
}

// readable tells text from the bytes that chance decodes to: valid UTF-8
// without control characters, most of it letters, digits and spaces. Fifteen
// random bytes pass about once in a million times, and then score like noise.
func readable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	var all, plain int
	for _, r := range string(b) {
		all++
		switch {
		case unicode.IsControl(r) && !unicode.IsSpace(r):
			return false
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSpace(r) || r == '%':
			plain++
		}
	}
	return all >= 8 && plain*10 >= all*8
}
