package detect

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync"
)

// More ways to hide a text in a run of letters and digits. Noise decodes to
// something in many of them, so each result must be language.

// hiddenBase64 decodes base64 that went through rot13, is written backwards, or
// is cut by hyphens and underscores, and hexadecimal written backwards.
func hiddenBase64(blob string) string {
	if found := languageIn(hexBytes(mirrored(blob))); found != "" {
		return found
	}
	for _, turn := range []func(string) string{rot13, mirrored, unhyphened} {
		turned := turn(blob)
		if turned == blob {
			continue
		}
		if out := base64Bytes(turned); out != nil {
			if found := text(out); found != "" && isLanguage(found) {
				return found
			}
		}
	}
	return ""
}

func unhyphened(s string) string { return hyphens.Replace(s) }

var hyphens = strings.NewReplacer("-", "", "_", "")

func rot13(s string) string {
	b := []byte(s)
	for i, c := range b {
		if low := c | 0x20; asciiLetter(low) {
			b[i] = ('a'+(low-'a'+13)%26)&^0x20 | c&0x20
		}
	}
	return string(b)
}

// base64Bytes decodes a run in either alphabet, padding and one odd character
// aside; nil when it is none.
func base64Bytes(blob string) []byte {
	blob = strings.TrimRight(urlAlphabet.Replace(blob), "=")
	if len(blob)%4 == 1 {
		blob = blob[:len(blob)-1]
	}
	out, err := base64.RawStdEncoding.DecodeString(blob)
	if err != nil {
		return nil
	}
	return out
}

const (
	// maxInflated bounds what one packed run is unpacked to, and that of all
	// runs of a text is bounded by its length, so that no bomb goes off.
	maxInflated = 1 << 16
	// maxUnpackings bounds how often it is tried, and maxGuesses where no
	// header says that something is packed.
	maxUnpackings = 64
	maxGuesses    = 16
)

// inflate unpacks gzip, zlib and bare deflate. What it must leave packed makes
// the reading one that is not whole.
func (o *blobs) inflate(packed []byte) string {
	var r io.Reader
	var err error
	gzipped := bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 8})
	zipped := len(packed) > 2 && packed[0] == 0x78 && (int(packed[0])<<8|int(packed[1]))%31 == 0
	left := min(maxInflated, 2*len(o.from.text)+1<<10-o.inflated)
	switch {
	case (gzipped || zipped) && (o.unpackings == maxUnpackings || left <= 0):
		o.from.root().packed = true
	case gzipped:
		o.unpackings++
		r, err = gzip.NewReader(bytes.NewReader(packed))
	case zipped:
		o.unpackings++
		r, err = zlib.NewReader(bytes.NewReader(packed))
	case o.guesses < maxGuesses && left > 0 && len(packed) > minText && packed[0]&6 != 6: // no fourth type of block
		o.guesses++
		guess := inflaters.Get().(inflater) //nolint:forcetypeassert // of the line below
		defer inflaters.Put(guess)
		r, err = guess, guess.Reset(bytes.NewReader(packed), nil)
	}
	if r == nil || err != nil {
		return ""
	}
	out, _ := io.ReadAll(io.LimitReader(r, int64(left))) // what came before a fault counts
	o.inflated += len(out)
	if found := text(out); found != "" {
		o.from.root().packed = o.from.root().packed || len(out) == left
		return found
	}
	return ""
}

// inflaters are kept, because one takes 40 KB and every long name in a text is a guess.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

type inflater interface {
	io.Reader
	flate.Resetter
}

const base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// maxBase58 bounds the runs that are read as base58, whose decoding is one
// long number.
const maxBase58 = 256

var base58Digits = digitsOf(base58Alphabet)

// digitsOf maps the characters of an alphabet to their values, others to -1.
func digitsOf(alphabet string) (out [256]int8) {
	for i := range out {
		out[i] = -1
	}
	for i := range len(alphabet) {
		out[alphabet[i]] = int8(i)
	}
	return out
}

func base58Text(blob string) string {
	if len(blob) > maxBase58 || !strings.ContainsAny(blob, "23456789") {
		return ""
	}
	var number []uint32 // the lowest first
	for i := range len(blob) {
		digit := base58Digits[blob[i]]
		if digit < 0 {
			return ""
		}
		carry := uint64(digit)
		for k := range number {
			carry += uint64(number[k]) * 58
			number[k] = uint32(carry) //nolint:gosec // G115: the lower half, the upper is carried
			carry >>= 32
		}
		if carry > 0 {
			number = append(number, uint32(carry))
		}
	}
	var out []byte
	for _, n := range number {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	slices.Reverse(out)
	return languageIn(bytes.TrimLeft(out, "\x00"))
}

// languageIn is text for what must be language too.
func languageIn(b []byte) string {
	if found := text(b); found != "" && isLanguage(found) {
		return found
	}
	return ""
}

// The alphabets in which five characters hold four bytes: Adobe's ascii85, RFC
// 1924 as Python's b85 writes it, and ZeroMQ's Z85.
var alphabets85 = [][256]int8{
	digitsOf(ascii85Alphabet),
	digitsOf("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"),
	digitsOf("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"),
}

var ascii85Alphabet = func() string {
	var b []byte
	for c := byte('!'); c <= 'u'; c++ {
		b = append(b, c)
	}
	return string(b)
}()

// minDense is how long a run without spaces is that may be packed densely.
const minDense = 20

// undense opens runs without spaces that are base85 in one of its alphabets or
// lines of uuencode.
func undense(d *derived) *derived {
	tried := 0       // how far lines of uuencode were read
	var space []byte // of what was decoded last
	return replaceRuns(d, func(s string, i, end int) (string, int) {
		run := s[i:end]
		if len(run) < minDense || strings.Trim(run, base64Signs) == "" {
			return "", i
		}
		if i >= tried {
			found, to := uuText(s, i, end)
			if found != "" {
				return found, to
			}
			tried = to
		}
		if at := strings.Index(run, "<~"); at >= 0 {
			run = run[at+2:]
		}
		run, _, _ = strings.Cut(run, "~>")
		for _, tried := range []string{run, strings.Trim(run, "\"'`,.;()[]")} {
			for i := range alphabets85 {
				decoded, ok := bytes85(space[:0], tried, &alphabets85[i])
				if space = decoded; !ok {
					continue
				}
				if found := languageIn(decoded); found != "" {
					return found, end
				}
			}
		}
		return "", i
	})
}

const base64Signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="

// replaceRuns asks for each run of ASCII without spaces or controls for its
// replacement; end == i says that there is none.
func replaceRuns(d *derived, replace func(s string, i, end int) (string, int)) *derived {
	var w *rewriter
	s, kept := d.text, 0
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && ' ' < s[end] && s[end] < 0x7f {
			end++
		}
		if end == i {
			i++
			continue
		}
		text, to := replace(s, i, end)
		if to > i {
			if w == nil {
				w = rewrite(d)
			}
			w.keepSome(kept, i)
			w.put(text, i, to)
			kept, end = to, to
		}
		d.checkContextAt(i, end)
		i = end
	}
	if w == nil {
		return d
	}
	w.keepSome(kept, len(s))
	return w.done()
}

// bytes85 appends what groups of five digits hold; the last group may be short.
func bytes85(out []byte, s string, digits *[256]int8) (_ []byte, ok bool) {
	for i := 0; i < len(s); {
		if s[i] == 'z' && digits['z'] < 0 { // ascii85 for four zeros
			out = append(out, 0, 0, 0, 0)
			i++
			continue
		}
		n, k := uint64(0), 0
		for ; k < 5; k++ {
			digit := int8(84)
			if i+k < len(s) {
				digit = digits[s[i+k]]
			}
			if digit < 0 {
				return out, false
			}
			n = n*85 + uint64(digit)
		}
		if n > 0xffffffff {
			return out, false
		}
		size := min(4, len(s)-i-1)
		out = append(out, []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}[:size]...)
		i += 5
	}
	return out, true
}

// uuText decodes lines of uuencode from the run s[i:end] on.
func uuText(s string, i, end int) (string, int) {
	var out []byte
	to := i
	for {
		line := uuLine(s[i:end])
		if line == nil {
			break
		}
		out, to = append(out, line...), end
		for i = end; i < len(s) && i < end+2 && (s[i] == '\n' || s[i] == '\r'); i++ {
		}
		for end = i; end < len(s) && ' ' < s[end] && s[end] < 0x7f; end++ {
		}
	}
	return languageIn(out), to
}

// uuLine decodes one line: the count of its bytes, then four characters for
// each three of them. It returns nil when the count is wrong.
func uuLine(line string) []byte {
	if len(line) < 5 || line[0] > '`' {
		return nil
	}
	n := int(line[0]-' ') & 63
	if n == 0 || len(line)-1 != (n+2)/3*4 {
		return nil
	}
	out := make([]byte, 0, n+2)
	for i := 1; i < len(line); i += 4 {
		var group uint32
		for k := range 4 {
			c := line[i+k]
			if c > '`' {
				return nil
			}
			group = group<<6 | uint32(c-' ')&63
		}
		out = append(out, byte(group>>16), byte(group>>8), byte(group))
	}
	return out[:n]
}
