package detect

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	minBlob  = 16 // characters of base64, base32 or hexadecimal
	minText  = 8  // bytes that a blob must decode to
	minCodes = 8  // numbers in a row that may be the codes of characters
)

var alphanumeric = bytesOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")

// decode opens blobs that hold readable text: base64 in both alphabets, padded
// or not, in one line or many; base32; numbers in base 2, 8, 10 or 16 that are
// codes of characters, together or set apart. It returns d when there is none.
func decode(d *derived) *derived {
	o := blobs{from: d}
	return replaceAll(d, &alphanumeric, &o.seen, o.replace)
}

// blobs remembers how far it looked for runs and for blocks of lines, so that
// nothing is looked at twice.
type blobs struct {
	from                *derived
	seen, blocks        int
	inflated            int // bytes
	unpackings, guesses int
}

func (o *blobs) replace(s string, i int) (string, int) {
	end := run(s, i)
	if end-i >= minBlob {
		if text, to := o.long(s, i, end); to > i {
			return text, to
		}
	}
	o.seen = end
	if hexDigit(s[i]) >= 0 {
		return o.codes(s, i)
	}
	return "", i
}

// run returns the end of the characters of base64 from s[i], padding aside.
func run(s string, i int) int {
	for i < len(s) && alphanumeric[s[i]] {
		i++
	}
	return i
}

// long decodes a run of s, or the block of lines that begins with it.
func (o *blobs) long(s string, i, end int) (string, int) {
	if text, to := o.block(s, i, end); text != "" {
		return text, to
	}
	if text := o.text(s[i:end]); text != "" {
		return text, padded(s, end)
	}
	return "", i
}

// block decodes the lines that begin with the run s[i:end], unless an earlier
// run tried them.
func (o *blobs) block(s string, i, end int) (string, int) {
	if i < o.blocks {
		return "", i
	}
	o.blocks = lines(s, i, end)
	if o.blocks == end {
		return "", i
	}
	joined := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, s[i:o.blocks])
	if text := o.text(joined); text != "" {
		return text, padded(s, o.blocks)
	}
	return "", i
}

// lines returns the end of a block of base64 in lines of one length, the last
// of which may be shorter unless it is a word, that begins with the run
// s[i:end].
func lines(s string, i, end int) int {
	width := end - i
	for {
		next := end
		for next < len(s) && next < end+4 && (s[next] == '\n' || s[next] == '\r' || s[next] == ' ') {
			next++
		}
		to := run(s, next)
		if next == end || to == next || to-next > width || !strings.ContainsAny(s[end:next], "\n\r") {
			return end
		}
		if to-next < width && !oddCase(s[next:to]) && padded(s, to) == to {
			return end
		}
		end = to
		if to-next < width {
			return end
		}
	}
}

func padded(s string, end int) int {
	for n := 0; n < 6 && end < len(s) && s[end] == '='; n++ {
		end++
	}
	return end
}

// text returns the text that a run of alphanumeric characters encodes, or "".
func (o *blobs) text(blob string) string {
	for _, try := range []func(string) string{binaryText, hexText, base32Text, o.base64Text, hiddenBase64, base58Text} {
		o.from.checkContext()
		if text := try(blob); text != "" {
			return text
		}
	}
	return ""
}

func binaryText(blob string) string {
	if len(blob)%8 != 0 || strings.Trim(blob, "01") != "" {
		return ""
	}
	var out []byte
	for i := 0; i < len(blob); i += 8 {
		b, _ := number(blob[i:i+8], 2)
		out = append(out, byte(b)) //nolint:gosec // G115: eight binary digits
	}
	return text(out)
}

func hexText(blob string) string {
	out := make([]byte, 0, len(blob)/2)
	for i := 0; i < len(blob); i += 2 {
		b, ok := hexByte(blob, i)
		if !ok {
			return ""
		}
		out = append(out, b)
	}
	return text(out)
}

func base32Text(blob string) string {
	upper := strings.ToUpper(blob)
	if strings.Trim(upper, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return ""
	}
	upper = upper[:len(upper)-[8]int{0, 1, 0, 1, 0, 0, 1, 0}[len(upper)%8]]
	out, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(upper)
	if err != nil {
		return ""
	}
	return text(out)
}

var urlAlphabet = strings.NewReplacer("-", "+", "_", "/")

// base64Text decodes a run; where the whole is no text it looks for text in
// it, from each of the four places at which a group can begin.
func (o *blobs) base64Text(blob string) string {
	blob = urlAlphabet.Replace(blob)
	for start := range 4 {
		o.from.checkContext()
		part := blob[start:]
		if len(part)%4 == 1 {
			part = part[:len(part)-1]
		}
		out, err := base64.RawStdEncoding.DecodeString(part)
		if err != nil {
			return ""
		}
		if start == 0 {
			if found := text(out); found != "" {
				return found
			}
			if found := o.inflate(out); found != "" {
				return found
			}
		}
		o.from.checkContext()
		if found := stretches(out); found != "" {
			return found
		}
	}
	return ""
}

// text returns decoded bytes if they are readable: UTF-8, or UTF-16 of Latin
// letters as PowerShell writes it, without control characters, most of it
// letters, digits and spaces. Of JSON, markup and code half is enough if three
// words stand in it; the parts of a JWT have fewer. Fifteen random bytes pass once
// in some hundred thousand times, and then score like noise.
func text(b []byte) string {
	if bytes.Count(b, []byte{0})*5 >= len(b)*2 {
		b = bytes.ReplaceAll(b, []byte{0}, nil)
	}
	if len(b) < minText || !utf8.Valid(b) || !readable(b) {
		return ""
	}
	return string(b)
}

func readable(b []byte) bool {
	var all, plain, spaces int
	for _, r := range string(b) {
		all++
		if r == ' ' {
			spaces++
		}
		switch {
		case unicode.IsControl(r) && !unicode.IsSpace(r), unicode.In(r, unicode.Co, unicode.Cs):
			return false
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSpace(r) || strings.ContainsRune("%\\&;#.-/", r) || 0x2800 <= r && r < 0x2900:
			plain++
		}
	}
	return all >= minText && (plain*10 >= all*8 || plain*2 >= all && spaces >= 2)
}

// minStretch is the shortest text that is found within other bytes.
const minStretch = 16

// stretches returns the readable ASCII text within other bytes: parts of words
// with spaces between them.
func stretches(b []byte) string {
	var out []byte
	for i := 0; i < len(b); {
		end := i
		for end < len(b) && (' ' <= b[end] && b[end] < 0x7f || b[end] == '\n') {
			end++
		}
		if part := b[i:end]; len(part) >= minStretch && bytes.Count(part, []byte{' '})*minStretch >= len(part) && readable(part) {
			out = append(append(out, part...), ' ')
		}
		i = end + 1
	}
	return string(out)
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
