package detect

import (
	"context"
	"math"
)

// Dimensions is the length of an embedding.
const Dimensions = 64

// Vector is an embedding: of unit length, or empty for a text without words.
type Vector []float32

// Embed maps a text to its embedding: the mean of its words' vectors, weighted
// against frequent words, less what all texts have in common (Arora, Liang and
// Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings"). The
// vectors were learnt from running text and a dictionary: words of like meaning
// lie close. It stops soon after ctx is done, and gives its error then.
func (m *Model) Embed(ctx context.Context, text string) (v Vector, err error) {
	defer recoverCancellation(&err)
	var sum projection
	sum.add(m, normalised(newSource(ctx, text)))
	return sum.unit(&m.numbers), nil
}

// projection accumulates in integers, so that the order of texts does not
// matter and every platform agrees.
type projection struct {
	sum   [Dimensions]int64
	total int64

	// Words of the lexicon that sum does not count yet, see settle.
	known [Dimensions / 8]lanes
	words int32
}

func (p *projection) add(m *Model, normal *derived) {
	s := NewScanner(normal.text, m.lexicon)
	for words := 0; s.Next(); words++ {
		p.addWord(m, s)
		if words%contextIntervalWords == 0 {
			normal.checkContext()
		}
	}
}

// contextIntervalWords is how many words, of half a microsecond each, are weighed
// between two checks of the context.
const contextIntervalWords = 1 << 10

func (p *projection) addWord(m *Model, s *Scanner) {
	entry := s.Entry()
	if entry < 0 {
		p.addUnknown(m, s.Subwords())
		return
	}
	w := &m.words[entry]
	for d, x := range &w.meaning {
		p.known[d].add(x)
	}
	p.total += int64(w.weight)
	if p.words++; p.words == maxAdded {
		p.settle()
	}
}

// settle counts the words that known has.
func (p *projection) settle() {
	for d := range p.known {
		for i, x := range p.known[d].sums(p.words) {
			p.sum[8*d+i] += int64(x)
		}
	}
	p.known, p.words = [Dimensions / 8]lanes{}, 0
}

// addUnknown adds a word outside the lexicon: the mean of its subwords.
func (p *projection) addUnknown(m *Model, subwords []uint32) {
	n := int32(len(subwords)) //nolint:gosec // G115: at most maxWord
	for d := range Dimensions / 8 {
		var sum lanes
		for _, g := range subwords {
			sum.add(m.subword(g).meaning[d])
		}
		for i, x := range sum.sums(n) {
			p.sum[8*d+i] += int64(x / n)
		}
	}
	p.total += unknownWeight
}

func (p *projection) unit(m *Numbers) Vector {
	if p.total == 0 {
		return nil
	}
	p.settle()
	var norm float64
	var centred [Dimensions]float64
	for d, x := range &p.sum {
		centred[d] = float64(x)/float64(p.total) - float64(m.Common[d])
		norm += float64(centred[d] * centred[d])
	}
	if norm == 0 {
		return nil
	}
	out, length := make(Vector, Dimensions), math.Sqrt(norm)
	for d, x := range &centred {
		out[d] = float32(x / length)
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
		dot += float64(x * y)
		aa += float64(x * x)
		bb += float64(y * y)
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
		x := float64(float64(centre[i])*float64(n)) + float64(out[i])
		mixed[i] = float32(x)
		norm += float64(x * x)
	}
	if !(norm > 0) || math.IsInf(norm, 0) {
		return out
	}
	for i := range mixed {
		mixed[i] = float32(float64(mixed[i]) / math.Sqrt(norm))
	}
	return mixed
}

// Mean is Σ meaning/Σ weight over the words of a text: what [Model.Embed] is
// before the common part is taken off. Training measures that part with it.
func Mean(p *Parameters, text string) (out [Dimensions]float64) {
	var sum [Dimensions]int64
	total := int64(0)
	for s := NewScanner(Normalise(text), p.Lexicon); s.Next(); {
		meaning, weight := meaningOf(p, s)
		for d, x := range meaning {
			sum[d] += int64(x)
		}
		total += int64(weight)
	}
	if total == 0 {
		return out
	}
	for d, x := range &sum {
		out[d] = float64(x) / float64(total)
	}
	return out
}

// meaningOf returns what a word adds to a text, a word outside the lexicon the mean of
// its subwords.
func meaningOf(p *Parameters, s *Scanner) (sum [Dimensions]int, weight int) {
	if entry := s.Entry(); entry >= 0 {
		for d, x := range &p.Words[entry].Meaning {
			sum[d] = int(x)
		}
		return sum, int(p.Words[entry].Weight)
	}
	subwords := s.Subwords()
	for _, g := range subwords {
		for d, x := range &p.Words[len(p.Words)-SubwordBuckets+int(g)].Meaning {
			sum[d] += int(x)
		}
	}
	for d := range sum {
		sum[d] /= len(subwords)
	}
	return sum, unknownWeight
}
