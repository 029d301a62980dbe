package detect

import (
	"math"

	"github.com/caddy-lex/lex/kernel"
)

// The detector gives the same bits on every platform, so that whoever has a prompt can
// score it again and compare. Most of it counts in integers. Where it does not, it keeps to
// the rules of the kernel's arithmetic: a product that meets a sum is rounded by a
// conversion, because some processors would fuse the two, and exp and log are the kernel's
// own, because those of package math differ in the last bit.

// log2 is the logarithm of a positive normal number in bits; exact for powers of two.
func log2(x float64) float64 {
	fraction, exponent := math.Frexp(x) // in [1/2, 1)
	if fraction == 0.5 {
		return float64(exponent - 1)
	}
	return float64(kernel.Log(fraction)/math.Ln2) + float64(exponent)
}

func sigmoid(logit float64) float64 { return 1 / (1 + kernel.Exp(-logit)) }
