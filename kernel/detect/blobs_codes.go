package detect

import "strings"

// codes decodes a row of numbers that are codes of characters: "73 103 110",
// "0x49,0x67,0x6e", "01001001 01100111".
func (o *blobs) codes(s string, i int) (string, int) {
	var digits []string
	var gaps []string // before each number but the first
	end, bases := i, allBases
	for next := i; ; {
		from, to := digitsAt(s, next)
		if from == to {
			break
		}
		common := bases & basesOf(s[from:to])
		if common == 0 {
			break
		}
		bases = common
		if len(digits) > 0 {
			gaps = append(gaps, s[end:from])
		}
		if digits, end = append(digits, s[from:to]), to; len(digits)%contextInterval == 0 {
			o.from.checkContext()
		}
		next = to
		for next < len(s) && next < to+3 && strings.IndexByte(" ,;:|-/.\n\r\t", s[next]) >= 0 {
			next++
		}
		if next == to {
			break
		}
	}
	o.seen = max(o.seen, end)
	if len(digits) < minCodes {
		return "", i
	}
	if text := codesText(digits, bases); text != "" {
		return text, end
	}
	if text := places(digits, gaps); text != "" {
		return text, end
	}
	return "", i
}

// places reads numbers as places in the alphabet, with a space where they are
// parted otherwise than most.
func places(digits, gaps []string) string {
	counts := make(map[string]int)
	inner := ""
	for _, gap := range gaps {
		if counts[gap]++; counts[gap] > counts[inner] {
			inner = gap
		}
	}
	var out []byte
	for i, d := range digits {
		n, ok := number(d, 10)
		if !ok || n < 1 || n > 26 || len(d) > 2 {
			return ""
		}
		if i > 0 && gaps[i-1] != inner {
			out = append(out, ' ')
		}
		out = append(out, byte('a'+n-1))
	}
	return languageIn(out)
}

// digitsAt returns the range of the number at s[i:], its prefix left out; it is
// empty when there is none of at most eight digits.
func digitsAt(s string, i int) (from, to int) {
	from = i
	if i+2 < len(s) && s[i] == '0' && (s[i+1] == 'x' || s[i+1] == 'b' && s[i+2] <= '1' || s[i+1] == 'o') {
		from += 2
	}
	to = from
	for to < len(s) && to < from+9 && hexDigit(s[to]) >= 0 {
		to++
	}
	if to-from > 8 || to < len(s) && alphanumeric[s[to]] && s[to] != '-' {
		return from, from
	}
	return from, to
}

// bases is a set of bases in which a number can be the code of a character.
type bases int

const (
	base2 bases = 1 << iota
	base8
	base10
	base16
	allBases = base2 | base8 | base10 | base16
)

// inOrder are the bases, the unlikeliest to fit by chance first.
var inOrder = []struct {
	set            bases
	base, min, max int // of digits
}{{base2, 2, 7, 8}, {base16, 16, 2, 2}, {base10, 10, 1, 3}, {base8, 8, 2, 3}}

func basesOf(digits string) (found bases) {
	for _, b := range inOrder {
		if n, ok := number(digits, b.base); ok && n < 256 && len(digits) >= b.min && len(digits) <= b.max {
			found |= b.set
		}
	}
	return found
}

// codesText reads numbers in the first base in which they make a text with
// spaces.
func codesText(digits []string, in bases) string {
	for _, b := range inOrder {
		if in&b.set == 0 {
			continue
		}
		out := make([]byte, len(digits))
		for i, d := range digits {
			n, _ := number(d, b.base)
			out[i] = byte(n) //nolint:gosec // G115: basesOf found each number below 256
		}
		if found := text(out); strings.Contains(found, " ") || b.set == base16 && found != "" {
			return found
		}
	}
	return ""
}

func number(digits string, base int) (n int, ok bool) {
	if len(digits) > 8 {
		return 0, false
	}
	for i := range len(digits) {
		d := hexDigit(digits[i])
		if d < 0 || d >= base {
			return 0, false
		}
		n = n*base + d
	}
	return n, len(digits) > 0
}
