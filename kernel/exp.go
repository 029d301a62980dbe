package kernel

import "math"

// This file and log.go hold the only transcendental functions of the kernel.
// math.Exp and math.Log are fast but not the same on every platform: some
// architectures have assembly of their own, and the compiler may fuse x*y + z
// into one rounding where the processor can. A receipt must replay to the same
// bits everywhere, so both functions are built from + - * / alone, which IEEE
// 754 rounds the same way everywhere, and every product is rounded by an
// explicit conversion, which the Go specification names as what forbids fusing.
//
// The method and the coefficients are those of FDLIBM (Freely Distributable
// LIBM, Sun Microsystems 1993, e_exp.c and e_log.c). The error is below one unit
// in the last place.

// ln 2 in two parts. The low 21 bits of ln2Hi are zero, so that k*ln2Hi is exact
// for every exponent k.
const (
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = 0x1.a39ef35793c76p-33
)

// expP holds P1 to P5, the coefficients of r*(e^r + 1)/(e^r - 1) = 2 + P1 r^2 +
// P2 r^4 + … on |r| <= ln(2)/2.
var expP = [5]float64{
	0x1.555555555553ep-3, -0x1.6c16c16bebd93p-9, 0x1.1566aaf25de2cp-14,
	-0x1.bbd41c5d26bf1p-20, 0x1.6376972bea4dp-25,
}

// exp returns e^x for -700 <= x <= 700, where the result is a normal number.
//
// With k the integer nearest to x/ln 2 and r = x - k ln 2, e^x = 2^k e^r, and
// e^r = 1 + r + r c/(2 - c) with c = r - r^2 (P1 + r^2 (P2 + …)).
func exp(x float64) float64 {
	const log2e = 0x1.71547652b82fep+0
	k := int(float64(log2e*x)+1024.5) - 1024 // rounds to nearest without math.Floor
	kf := float64(k)
	hi := x - float64(kf*ln2Hi)
	lo := float64(kf * ln2Lo)
	r := hi - lo
	t := float64(r * r)
	c := r - float64(t*horner(t, expP[:]))
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	return float64(y * math.Float64frombits(uint64(k+1023)<<52)) //nolint:gosec // G115: -1010 <= k <= 1010
}

// Exp is e^x with the same bits on every platform. An x outside of [-700, 700] counts as the
// nearer end.
func Exp(x float64) float64 { return exp(max(-700, min(700, x))) }

// horner returns c[0] + c[1] t + c[2] t^2 + …
func horner(t float64, c []float64) float64 {
	sum := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		sum = c[i] + float64(t*sum)
	}
	return sum
}
