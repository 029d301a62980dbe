package detect

import "math"

// Dimensions is the length of an embedding.
const Dimensions = 256

// Vector is an embedding: of unit length, or empty for a text without words.
type Vector []float32

// Embed maps a text to its embedding: the signed random projection
// (Achlioptas 2003) of its features, weighted by inverse document frequency.
// Each feature adds to four of the 256 dimensions. Texts that share rare words
// lie close; it knows nothing of synonyms.
func (m *Model) Embed(text string) Vector {
	var sum projection
	sum.add(m, Normalise(text))
	return sum.unit()
}

// projection accumulates in integers, so that the order of texts does not
// matter and every platform agrees.
type projection [Dimensions]int64

func (p *projection) add(m *Model, normal string) {
	s := NewScanner(normal)
	for {
		features, ok := s.Next()
		if !ok {
			return
		}
		for _, f := range features {
			p.addFeature(f, int64(m.p.Rows[f].IDF))
		}
	}
}

func (p *projection) addFeature(f uint32, weight int64) {
	if weight == 0 {
		return
	}
	h := mix(f)
	for range 4 {
		sign := int64(h>>8&2) - 1
		p[h&(Dimensions-1)] += sign * weight
		h >>= 16
	}
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
func mix(f uint32) uint64 {
	z := (uint64(f) + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (p *projection) unit() Vector {
	var norm float64
	for _, x := range p {
		norm += float64(x) * float64(x)
	}
	if norm == 0 {
		return nil
	}
	out := make(Vector, Dimensions)
	for i, x := range p {
		out[i] = float32(float64(x) / math.Sqrt(norm))
	}
	return out
}

// Similarity is the cosine of two vectors, in [-1, 1]. It is 0 when one is
// empty or zero, or when the lengths differ.
func Similarity(a, b Vector) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if !(aa > 0 && bb > 0) {
		return 0
	}
	return max(-1, min(1, dot/math.Sqrt(aa*bb)))
}

// Blend returns the running centre of a session after out joined the n outputs
// that made centre: their mean direction, of unit length. An empty out leaves
// the centre; an empty centre (or n <= 0) becomes out.
func Blend(centre, out Vector, n int) Vector {
	if len(out) == 0 {
		return centre
	}
	if len(centre) != len(out) || n <= 0 {
		return out
	}
	mixed := make(Vector, len(out))
	var norm float64
	for i := range out {
		x := float64(centre[i])*float64(n) + float64(out[i])
		mixed[i] = float32(x)
		norm += x * x
	}
	if !(norm > 0) || math.IsInf(norm, 0) {
		return out
	}
	for i := range mixed {
		mixed[i] = float32(float64(mixed[i]) / math.Sqrt(norm))
	}
	return mixed
}
