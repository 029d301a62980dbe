package main

import (
	"cmp"
	"math"
	"slices"
)

// eigen returns the eigenvalues, largest magnitude first, and the eigenvectors
// (columns) of a small symmetric matrix by Jacobi's rotations.
func eigen(a []float64, n int) (values, vectors []float64) {
	a = slices.Clone(a)
	v := make([]float64, n*n)
	for i := range n {
		v[i*n+i] = 1
	}
	for range 30 {
		if offDiagonal(a, n) < 1e-18*float64(n) {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(a, v, n, p, q)
			}
		}
	}
	return sortedEigen(a, v, n)
}

// offDiagonal is the weight off the diagonal, relative to that on it.
func offDiagonal(a []float64, n int) float64 {
	var off, on float64
	for i := range n {
		for j := range n {
			if i == j {
				on += a[i*n+j] * a[i*n+j]
			} else {
				off += a[i*n+j] * a[i*n+j]
			}
		}
	}
	return off / on
}

func rotate(a, v []float64, n, p, q int) {
	if a[p*n+q] == 0 {
		return
	}
	theta := (a[q*n+q] - a[p*n+p]) / (2 * a[p*n+q])
	t := math.Copysign(1, theta) / (math.Abs(theta) + math.Sqrt(theta*theta+1))
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	for k := range n {
		x, y := a[k*n+p], a[k*n+q]
		a[k*n+p], a[k*n+q] = c*x-s*y, s*x+c*y
	}
	for k := range n {
		x, y := a[p*n+k], a[q*n+k]
		a[p*n+k], a[q*n+k] = c*x-s*y, s*x+c*y
	}
	for k := range n {
		x, y := v[k*n+p], v[k*n+q]
		v[k*n+p], v[k*n+q] = c*x-s*y, s*x+c*y
	}
}

func sortedEigen(a, v []float64, n int) (values, vectors []float64) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(math.Abs(a[j*n+j]), math.Abs(a[i*n+i])) })
	vectors = make([]float64, n*n)
	for to, from := range order {
		values = append(values, a[from*n+from])
		for k := range n {
			vectors[k*n+to] = v[k*n+from]
		}
	}
	return values, vectors
}

// gram is aᵀb.
func gram(a, b []float32, w int) []float64 {
	out := make([]float64, w*w)
	for i := 0; i < len(a); i += w {
		for j := range w {
			x := float64(a[i+j])
			row := out[j*w : (j+1)*w]
			for k, y := range b[i : i+w] {
				row[k] += x * float64(y)
			}
		}
	}
	return out
}

// orthonormalise makes the columns of a orthonormal: it multiplies with the
// inverse root of their Gram matrix, twice against rounding.
func orthonormalise(a []float32, w int) {
	for range 2 {
		values, vectors := eigen(gram(a, a, w), w)
		scale := make([]float64, w*w)
		for j := range w {
			for k := range w {
				scale[j*w+k] = vectors[j*w+k] / math.Sqrt(max(values[k], 1e-12))
			}
		}
		row := make([]float64, w)
		for i := 0; i < len(a); i += w {
			clear(row)
			for j := range w {
				x := float64(a[i+j])
				for k := range w {
					row[k] += x * scale[j*w+k]
				}
			}
			for k := range w {
				a[i+k] = float32(row[k])
			}
		}
	}
}
