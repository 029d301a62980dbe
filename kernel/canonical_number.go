package kernel

import "math"

// decimal reads the number that a text begins with and knows by arithmetic, without
// writing it again, that [appendNumber] writes it so. Most of what a verifier does with
// a receipt is reading its numbers, and nearly all of them are such: digits with a point,
// of at most 17 places. Of any other text it returns the length 0, and so of one that it
// is not sure of, which says nothing against that text.
func decimal(text string) (n float64, length int) {
	digits, ok := scanDigits(text)
	if !ok {
		return 0, 0
	}
	if n, ok = digits.nearest(); !ok {
		return 0, 0
	}
	if text[0] == '-' {
		n = -n
	}
	return n, digits.length
}

// digits are those of a number m/10^k.
type digits struct {
	m      uint64
	k      int // at most 22, so that 10^k is a double
	count  int // of significant digits, at most 17, so that m has 57 bits
	length int // of the text
}

// scanDigits reads digits with or without a point, as canonical JSON has them: no zeros
// that say nothing, and no exponent, for which a number of at least 10^-6 has no use.
func scanDigits(text string) (d digits, ok bool) {
	i := 0
	if text != "" && text[0] == '-' {
		i = 1
	}
	first, point := i, -1
	for ; i < len(text); i++ {
		c := text[i] - '0'
		if c <= 9 {
			d.m = d.m*10 + uint64(c) // it may overflow, but not within 17 digits
			continue
		}
		if text[i] != '.' || point >= 0 {
			break
		}
		point = i
	}
	d.length = i
	switch {
	case i == first || i < len(text) && numeric[text[i]]: // no digits, an exponent or a sign
		return d, false
	case point < 0:
		d.count = i - first
		return d, (text[first] != '0' || text[:i] == "0") && d.count <= 15
	}
	d.k = i - 1 - point
	d.count = i - first - 1
	if text[first] == '0' {
		if point != first+1 {
			return d, false
		}
		zeros := point + 1
		for zeros < i && text[zeros] == '0' {
			zeros++
		}
		if zeros-point > 6 {
			return d, false
		}
		d.count = i - zeros
	}
	return d, point > first && d.k > 0 && text[i-1] != '0' && d.count <= 17 && d.k < len(powersOfTen)
}

// nearest returns the double n that m/10^k is read as, and whether m/10^k is what n is
// written as: the decimal with the fewest digits among those that are read as n, and of
// these the nearest to n.
//
// No two decimals of up to 15 digits are the same double, so for these there is nothing to
// decide. For the others let n be mantissa * 2^exponent. Everything is counted in units of
// 2^(exponent+k), in which n*10^k is mantissa * 5^k, the next double is 5^k farther, and m's
// last digit is worth unit. All of that is exact in integers. D is the distance of m from
// n*10^k, small enough for the lowest 64 bits of both to tell it. The decimal is read as n
// when 2|D| < 5^k. It is the nearest of its length when 2|D| < unit. A shorter one would be a
// multiple of ten within 5^k/2 of n*10^k, and the two next to m, its last digit below it and
// the rest to ten above it, are not.
func (d digits) nearest() (n float64, ok bool) {
	n = float64(d.m) / powersOfTen[d.k]
	if d.count <= 15 { // both are exact, so their quotient is rounded once
		return n, true
	}
	bits := math.Float64bits(n) // at most a few doubles off
	exponent := bits >> 52
	shift := 1075 - int(exponent) - d.k
	if shift < 0 || shift > 56 {
		return 0, false
	}
	five, unit := powersOfFive[d.k], int64(1)<<shift
	D := int64(d.m<<shift - (bits&(1<<52-1)|1<<52)*uint64(five)) //nolint:gosec // G115: the lowest 64 bits
	for ; 2*D > five; D -= five {
		bits++
	}
	for ; 2*D < -five; D += five {
		bits--
	}
	if bits>>52 != exponent || bits&(1<<52-1) == 0 { // its neighbours are not equally far
		return 0, false
	}
	last := int64(d.m%10) * unit
	return math.Float64frombits(bits), 2*apart(D, 0) < min(five, unit) && 2*min(apart(D, last), apart(D, last-10*unit)) > five
}

func apart(a, b int64) int64 { return max(a-b, b-a) }

// powersOfTen are the powers of ten that are doubles, and powersOfFive those of five.
var (
	powersOfTen  [23]float64
	powersOfFive [23]int64
)

func init() {
	ten, five := 1.0, int64(1)
	for k := range powersOfTen {
		powersOfTen[k], powersOfFive[k] = ten, five
		ten, five = float64(ten*10), five*5
	}
}
