package kernel

import "math"

// logL holds L1 to L7, the coefficients of (ln(1+s) - ln(1-s) - 2s)/s in powers
// of s^2, on 0 <= s <= 0.1716.
var logL = [7]float64{
	0x1.5555555555593p-1, 0x1.999999997fa04p-2, 0x1.2492494229359p-2,
	0x1.c71c51d8e78afp-3, 0x1.7466496cb03dep-3, 0x1.39a09d078c69fp-3,
	0x1.2f112df3e5244p-3,
}

// log returns ln x for a positive normal number x. See exp.go for the source
// and for why it exists.
//
// With x = 2^k (1 + f), sqrt(2)/2 <= 1 + f < sqrt(2), and s = f/(2 + f),
// ln(1 + f) = f - f^2/2 + s (f^2/2 + R), R = L1 s^2 + L2 s^4 + …
func log(x float64) float64 {
	const (
		mantissa = 1<<52 - 1
		halfBits = 0x3fe << 52
		sqrtHalf = 0x1.6a09e667f3bcdp-1
	)
	bits := math.Float64bits(x)
	k := int(bits>>52) - 1022
	m := math.Float64frombits(bits&mantissa | halfBits) // in [1/2, 1)
	if m < sqrtHalf {
		m += m
		k--
	}
	f := m - 1
	kf := float64(k)
	s := f / (2 + f)
	s2 := float64(s * s)
	r := float64(s2 * horner(s2, logL[:]))
	half := float64(float64(0.5*f) * f)
	return float64(kf*ln2Hi) - ((half - (float64(s*(half+r)) + float64(kf*ln2Lo))) - f)
}

// Log is ln x for a positive normal number x, with the same bits on every platform.
func Log(x float64) float64 { return log(x) }
