package main

import (
	"math"
	"math/rand/v2"
)

// layer is a dense layer with the moments of Adam (Kingma and Ba 2015; weight
// decay apart, Loshchilov and Hutter 2019).
type layer struct {
	in, out    int
	w, g, m, v []float32 // a row per output; the last column is the bias
}

func newLayer(in, out int, random *rand.Rand) *layer {
	n := (in + 1) * out
	l := &layer{in: in, out: out, w: make([]float32, n), g: make([]float32, n), m: make([]float32, n), v: make([]float32, n)}
	scale := math.Sqrt(2 / float64(in))
	for i := range l.w {
		if i%(in+1) != in {
			l.w[i] = float32(random.NormFloat64() * scale)
		}
	}
	return l
}

func (l *layer) row(i int) []float32  { return l.w[i*(l.in+1) : (i+1)*(l.in+1)] }
func (l *layer) grad(i int) []float32 { return l.g[i*(l.in+1) : (i+1)*(l.in+1)] }

// dot adds into four sums, so that an addition need not wait for the one before.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// step is the t-th step of Adam; it clears the gradient.
func (l *layer) step(t int, rate, decay float32) {
	const b1, b2 = 0.9, 0.999
	c1, c2 := float32(1-math.Pow(b1, float64(t))), float32(1-math.Pow(b2, float64(t)))
	for i, g := range l.g {
		l.m[i] += (1 - b1) * (g - l.m[i])
		l.v[i] += (1 - b2) * (g*g - l.v[i])
		root := float32(math.Sqrt(float64(l.v[i] / c2)))
		l.w[i] -= rate * (l.m[i]/c1/(root+1e-8) + decay*l.w[i])
		l.g[i] = 0
	}
}
