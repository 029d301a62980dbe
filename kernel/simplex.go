package kernel

import "math"

// logs returns the natural logarithms of a positive point.
func logs(p Point) Point { return Point{log(p[0]), log(p[1]), log(p[2])} }

// sum adds the components.
func sum(p Point) float64 { return p[0] + p[1] + p[2] }

// A blend is a point of the simplex that is proportional to e^v, with what its
// logarithms are made of.
type blend struct {
	Point
	v     Point // less their maximum, so that nothing overflows
	total float64
}

func softmax(v Point) (b blend) {
	top := max(v[0], v[1], v[2])
	for i := range v {
		b.v[i] = v[i] - top
		b.Point[i] = exp(b.v[i])
	}
	b.total = sum(b.Point)
	for i := range b.Point {
		b.Point[i] /= b.total
	}
	return b
}

// logs returns the logarithms of the components at the cost of one logarithm.
func (b *blend) logs() (ln Point) {
	total := log(b.total)
	for i := range ln {
		ln[i] = b.v[i] - total
	}
	return ln
}

// project returns the information projection of a point of the simplex on
// {y_i >= floor}: the y with the least KL(y || p) (Csiszár 1975). The minimiser
// is y_i = max(floor, scale p_i) with one scale <= 1 that makes the sum 1. With
// the components in order only zero, one or two of them can stand at the floor,
// so each case is solved exactly; floor < 1/3 makes the last case need no test.
func project(p Point, floor float64) Point {
	lo, mid, hi := order(p)
	if p[lo] >= floor {
		return p
	}
	scale := (1 - floor) / (p[mid] + p[hi])
	y := Point{}
	y[lo], y[mid], y[hi] = floor, float64(scale*p[mid]), float64(scale*p[hi])
	if y[mid] < floor {
		y[mid], y[hi] = floor, 1-float64(2*floor)
	}
	return y
}

// order returns the indexes of the least, the middle and the largest component.
func order(p Point) (lo, mid, hi int) {
	lo, mid, hi = 0, 1, 2
	if p[lo] > p[mid] {
		lo, mid = mid, lo
	}
	if p[mid] > p[hi] {
		mid, hi = hi, mid
	}
	if p[lo] > p[mid] {
		lo, mid = mid, lo
	}
	return lo, mid, hi
}

// divergence returns KL(z || y) = sum of z_i (ln z_i - ln y_i) from the
// logarithms of both, in nats. It is never negative; rounding may say so, hence
// the clamp.
func divergence(z, lnZ, lnY Point) float64 {
	total := 0.0
	for i := range z {
		total += float64(z[i] * (lnZ[i] - lnY[i]))
	}
	return max(0, total)
}

// distance returns the Euclidean distance.
func distance(a, b Point) float64 {
	total := 0.0
	for i := range a {
		d := a[i] - b[i]
		total += float64(d * d)
	}
	return math.Sqrt(total)
}
