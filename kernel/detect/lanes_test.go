package detect

import (
	"math/rand/v2"
	"testing"
)

// Lanes sum as many weights as they may, of any size, as if they were added one by one.
func TestLanesSumExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	weight := []func() int8{
		func() int8 { return -128 }, func() int8 { return 127 }, func() int8 { return int8(rng.IntN(256) - 128) },
	}
	for _, next := range weight {
		var sum lanes
		var want [8]int32
		for n := range int32(maxAdded + 1) {
			if got := sum.sums(n); got != want {
				t.Fatalf("%d numbers: %v, want %v", n, got, want)
			}
			var weights [8]int8
			for i := range weights {
				weights[i] = next()
				want[i] += int32(weights[i])
			}
			sum.add(packed(weights[:]))
		}
	}
}

// What training measures of a text is what the embedding is made of.
func TestMeanIsWhatIsEmbedded(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	p := Parameters{
		Lexicon: NewLexicon([]string{"bread", "bomb"}, []uint16{3, 9}),
		Rows:    make([]Row, Buckets), Words: make([]Word, 2+SubwordBuckets),
	}
	for i := range p.Words {
		for d := range p.Words[i].Meaning {
			p.Words[i].Meaning[d] = int8(rng.IntN(256) - 128)
		}
		p.Words[i].Weight = 255
	}
	text := "bread and a bomb"
	for range 9 {
		text += " " + text
	}
	mean := Mean(&p, text)
	var sum projection
	sum.add(newModel(p, nil), newText(text))
	sum.settle()
	for d, x := range mean {
		if got := float64(sum.sum[d]) / float64(sum.total); got != x {
			t.Fatalf("dimension %d: %v, want %v", d, got, x)
		}
	}
}
