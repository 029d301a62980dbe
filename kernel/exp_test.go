package kernel_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

const precision = 200 // bits

// exactExp is e^x to far more digits than a float holds: the series of
// x/2^16, squared 16 times.
func exactExp(x float64) *big.Float {
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }
	small := number(x)
	small.SetMantExp(small, -16)
	sum, term := number(1), number(1)
	for n := 1.0; n < 40; n++ {
		term.Mul(term, small).Quo(term, number(n))
		sum.Add(sum, term)
	}
	for range 16 {
		sum.Mul(sum, sum)
	}
	return sum
}

// ulps returns how many units in the last place got is off the exact value.
func ulps(got float64, exact *big.Float) float64 {
	diff := new(big.Float).SetPrec(precision).SetFloat64(got)
	diff.Sub(diff, exact)
	off, _ := diff.Float64()
	near, _ := exact.Float64()
	return math.Abs(off) / (math.Nextafter(math.Abs(near), math.Inf(1)) - math.Abs(near))
}

func TestExpIsWithinOneUlp(t *testing.T) {
	r := newRandom(2)
	for i := range 4000 {
		x := r.pick(-700, 700, -1e-300, 1e-17, 0.34657359, -0.34657360, 0.5, -207.3, 700, -700)
		if i%2 == 0 {
			x = -5 * r.Float64()
		}
		if off := ulps(kernel.Exp(x), exactExp(x)); !(off < 1) {
			t.Fatalf("exp(%v) is off by %.3f ulp", x, off)
		}
	}
	if kernel.Exp(0) != 1 {
		t.Error("exp(0) is not 1")
	}
}

// A logarithm y of x is right to within d when e^y is within a factor 1 +- d.
func TestLogIsWithinOneUlp(t *testing.T) {
	r := newRandom(3)
	for i := range 4000 {
		x := r.Float64()
		switch i % 4 {
		case 0:
			x = math.Exp(r.pick(-690, 690, 1e-9, -1e-9, 0.3465735, 0.3465736))
		case 1:
			x = r.pick(0.7, 1.42, math.Sqrt2/2, math.Sqrt2, math.Nextafter(1, 0), math.Nextafter(1, 2), 1.0/3, 2)
		}
		y := kernel.Log(x)
		ratio := new(big.Float).SetPrec(precision).SetFloat64(x)
		ratio.Quo(ratio, exactExp(y))
		ratio.Sub(ratio, big.NewFloat(1))
		residue, _ := ratio.Float64() // ln x - y, to first order
		ulp := math.Nextafter(math.Abs(y), math.Inf(1)) - math.Abs(y)
		if !(math.Abs(residue) < ulp) {
			t.Fatalf("log(%v) = %v is off by %.3f ulp", x, y, residue/ulp)
		}
	}
	if kernel.Log(1) != 0 || math.Signbit(kernel.Log(1)) {
		t.Error("log(1) is not 0")
	}
}
