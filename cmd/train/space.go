package main

import (
	"math"

	"github.com/caddy-lex/lex/kernel/detect"
)

// space holds the vectors of words: those of the dictionary, then those of
// other words, composed of their character n-grams.
type space struct {
	width  int
	d      *dictionary
	vector []float32 // rows of unit length
	weight []float32 // how much a word says: a/(a+p), Arora et al. 2017
	grams  []float32 // rows of subword buckets
	group  []uint16
	known  *detect.Lexicon
	other  map[string][]float32 // vectors of words outside the dictionary
}

const (
	rarity = 1e-3 // a of the weight
	groups = 1024 // of words of like meaning
)

func newSpace(d *dictionary, vectors []float32, width int) *space {
	s := &space{width: width, d: d, vector: vectors, other: map[string][]float32{}}
	var total float64
	for _, n := range d.counts {
		total += float64(n)
	}
	for _, n := range d.counts {
		s.weight = append(s.weight, float32(rarity/(rarity+float64(n)/total)))
	}
	s.centre()
	s.subwords()
	s.group = s.cluster(groups)
	s.known = detect.NewLexicon(d.words, s.group)
	return s
}

// centre takes off the mean, which tells frequency more than meaning (Mu and
// Viswanath 2018, "All-but-the-top"), and scales rows to unit length.
func (s *space) centre() {
	w, n := s.width, len(s.d.words)
	mean := make([]float64, w)
	for i := range n {
		for j, x := range s.vector[i*w : (i+1)*w] {
			mean[j] += float64(x) / float64(n)
		}
	}
	for i := range n {
		for j := range w {
			s.vector[i*w+j] -= float32(mean[j])
		}
	}
	for i := range n {
		unit(s.vector[i*w : (i+1)*w])
	}
}

func unit(v []float32) {
	var norm float64
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	if norm == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(norm))
	for i := range v {
		v[i] *= scale
	}
}

// subwords learns vectors of n-gram buckets whose mean comes close to the
// vector of each word (Zhao, Mudgal and Liang 2018, "Generalizing word
// embeddings using bag of subwords").
func (s *space) subwords() {
	w := s.width
	s.grams = make([]float32, detect.SubwordBuckets*w)
	buckets := make([][]uint32, len(s.d.words))
	for i, word := range s.d.words {
		buckets[i] = subwordsOf(word)
	}
	sum := make([]float32, w)
	for epoch := range 5 {
		step := float32(0.5) / float32(epoch+1)
		for i, list := range buckets {
			s.compose(list, sum)
			for _, g := range list {
				for j := range w {
					s.grams[int(g)*w+j] += step * (s.vector[i*w+j] - sum[j])
				}
			}
		}
	}
}

func subwordsOf(word string) []uint32 {
	scanner := detect.NewScanner(word, nil)
	scanner.Next()
	return append([]uint32(nil), scanner.Subwords()...)
}

func (s *space) compose(list []uint32, sum []float32) {
	clear(sum)
	for _, g := range list {
		for j, x := range s.grams[int(g)*s.width : (int(g)+1)*s.width] {
			sum[j] += x
		}
	}
	for j := range sum {
		sum[j] /= float32(len(list))
	}
}

// of returns the vector and the weight of the scanner's word.
func (s *space) of(scanner *detect.Scanner) (vector []float32, weight float32) {
	if entry := scanner.Entry(); entry >= 0 {
		return s.row(entry), s.weight[entry]
	}
	word := scanner.Word()
	v, ok := s.other[word]
	if !ok {
		v = make([]float32, s.width)
		s.compose(scanner.Subwords(), v)
		s.other[word] = v
	}
	return v, 1
}

func (s *space) row(n int32) []float32 {
	return s.vector[int(n)*s.width : (int(n)+1)*s.width]
}
