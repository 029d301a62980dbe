package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// Pretraining gives words a meaning before any label is seen: the positive
// pointwise mutual information of words that stand near each other, with
// smoothed contexts, factorised by a truncated singular value decomposition
// (Levy, Goldberg and Dagan 2015, "Improving distributional similarity with
// lessons learned from word embeddings").
const (
	window     = 5
	smoothing  = 0.75
	frequent   = 1e-4 // share of the running text over which a word is thinned
	oversample = 16
	rounds     = 4
	spectrum   = 0.25 // exponent of the eigenvalues
)

// pairs counts co-occurrences: open addressing over word·2³²+context.
type pairs struct {
	keys   []uint64
	counts []float32
	n      int
}

func newPairs(size int) *pairs {
	return &pairs{keys: make([]uint64, size), counts: make([]float32, size)}
}

func (p *pairs) add(a, b int32, weight float32) {
	key := uint64(a)<<32 | uint64(b) + 1
	mask := uint64(len(p.keys) - 1)
	for i := (key * 0x9e3779b97f4a7c15) >> 20 & mask; ; i = (i + 1) & mask {
		if p.keys[i] == 0 {
			p.keys[i] = key
			if p.n++; p.n > len(p.keys)*7/10 {
				p.counts[i] = weight
				p.grow()
				return
			}
		}
		if p.keys[i] == key {
			p.counts[i] += weight
			return
		}
	}
}

func (p *pairs) grow() {
	bigger := newPairs(2 * len(p.keys))
	for i, key := range p.keys {
		if key != 0 {
			bigger.add(int32(key>>32), int32(uint32(key)-1), p.counts[i])
		}
	}
	*p = *bigger
}

// count adds the words of one line: frequent ones are thinned, nearer ones
// count more.
func (p *pairs) count(d *dictionary, words []string, thin []float32, random *rand.Rand) {
	var kept []int32
	for _, w := range words {
		if n, ok := d.number[w]; ok && (thin[n] >= 1 || random.Float32() < thin[n]) {
			kept = append(kept, n)
		}
	}
	for i, w := range kept {
		for j := max(0, i-window); j < i; j++ {
			weight := 1 / float32(i-j)
			a, b := min(w, kept[j]), max(w, kept[j])
			p.add(a, b, weight)
		}
	}
}

// sparse is a symmetric matrix in compressed rows.
type sparse struct {
	start  []int
	column []int32
	value  []float32
}

// entry is one pair's information, counted once.
type entry struct {
	a, b  int32
	value float32
}

// ppmi keeps the pairs that occur more often than chance would have it.
func (p *pairs) ppmi(n int) *sparse {
	information := p.information(n)
	var entries []entry
	p.each(func(a, b int32, count float32) {
		if v := information(a, b, count); v > 0 && count >= 0.5 {
			entries = append(entries, entry{a, b, v})
		}
	})
	return compress(n, entries)
}

func (p *pairs) each(f func(a, b int32, count float32)) {
	for i, key := range p.keys {
		if key != 0 {
			f(int32(key>>32), int32(uint32(key)-1), p.counts[i])
		}
	}
}

// information returns the pointwise mutual information of a pair, the mean of
// both directions, contexts smoothed.
func (p *pairs) information(n int) func(a, b int32, count float32) float32 {
	sum, context := make([]float64, n), make([]float64, n)
	p.each(func(a, b int32, count float32) {
		sum[a] += float64(count)
		sum[b] += float64(count)
	})
	var smooth float64
	for i, s := range sum {
		context[i] = math.Pow(s, smoothing)
		smooth += context[i]
	}
	return func(a, b int32, count float32) float32 {
		x := math.Log(float64(count) * smooth / (sum[a] * context[b]))
		y := math.Log(float64(count) * smooth / (sum[b] * context[a]))
		return float32((x + y) / 2)
	}
}

// compress writes the entries and their mirror images in rows.
func compress(n int, entries []entry) *sparse {
	start := make([]int, n+1)
	for _, e := range entries {
		start[e.a+1]++
		if e.a != e.b {
			start[e.b+1]++
		}
	}
	for i := range n {
		start[i+1] += start[i]
	}
	m := &sparse{start: start, column: make([]int32, start[n]), value: make([]float32, start[n])}
	next := slices.Clone(start[:n])
	put := func(a, b int32, v float32) {
		m.column[next[a]], m.value[next[a]] = b, v
		next[a]++
	}
	for _, e := range entries {
		put(e.a, e.b, e.value)
		if e.a != e.b {
			put(e.b, e.a, e.value)
		}
	}
	return m
}

// times multiplies with a dense matrix of w columns, rows in parallel.
func (m *sparse) times(x []float32, w int) []float32 {
	n := len(m.start) - 1
	out := make([]float32, n*w)
	var wait sync.WaitGroup
	const parts = 8
	for part := range parts {
		wait.Go(func() {
			for i := part; i < n; i += parts {
				row := out[i*w : (i+1)*w]
				for k := m.start[i]; k < m.start[i+1]; k++ {
					v, from := m.value[k], x[int(m.column[k])*w:][:len(row)]
					for j, y := range from {
						row[j] += v * y
					}
				}
			}
		})
	}
	wait.Wait()
	return out
}

// factorise returns n vectors of width columns: the leading eigenvectors by
// magnitude of a symmetric matrix (Halko, Martinsson and Tropp 2011), scaled by
// the root of their eigenvalues.
func factorise(m *sparse, width int) []float32 {
	n, w := len(m.start)-1, width+oversample
	random := rand.New(rand.NewPCG(seed, 3))
	q := make([]float32, n*w)
	for i := range q {
		q[i] = float32(random.NormFloat64())
	}
	for range rounds {
		q = m.times(q, w)
		orthonormalise(q, w)
	}
	small := gram(q, m.times(q, w), w)
	values, vectors := eigen(small, w)
	out := make([]float32, n*width)
	for i := range n {
		for k := range width {
			var sum float64
			for j := range w {
				sum += float64(q[i*w+j]) * vectors[j*w+k]
			}
			out[i*width+k] = float32(sum * math.Pow(math.Abs(values[k]), spectrum))
		}
	}
	return out
}

// pretrain returns a vector of width numbers for every word of d.
func (c corpus) pretrain(d *dictionary, width int) ([]float32, error) {
	var total float64
	for _, n := range d.counts {
		total += float64(n)
	}
	thin := make([]float32, len(d.counts))
	for i, n := range d.counts {
		thin[i] = float32(math.Sqrt(frequent * total / float64(n)))
	}
	p := newPairs(1 << 24)
	random := rand.New(rand.NewPCG(seed, 4))
	if err := c.eachLine(func(words []string) { p.count(d, words, thin, random) }); err != nil {
		return nil, err
	}
	return factorise(p.ppmi(len(d.words)), width), nil
}
