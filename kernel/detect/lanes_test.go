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
			var weights uint64
			for i := range want {
				w := next()
				want[i] += int32(w)
				weights |= packedByte(byte(w), i)
			}
			sum.add(weights)
		}
	}
}

// What training measures of a text is what the embedding is made of.
func TestMeanIsWhatIsEmbedded(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	var silence Requests
	for q := range silence.Answers {
		silence.Answers[q].Weights = make([]int8, RequestBuckets)
	}
	p := Parameters{
		Lexicon: NewLexicon([]string{"bread", "bomb"}, []uint16{3, 9}),
		Rows:    make([]Row, Buckets), Words: make([]Word, 2+SubwordBuckets), Languages: Languages{Foreign: make([]int8, SpelledBuckets), Floor: [Questions]float32{1e6, 1e6}, English: silence, Other: silence},
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
	file, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	sum.add(m, newText(text))
	sum.settle()
	for d, x := range mean {
		if got := float64(sum.sum[d]) / float64(sum.total); got != x {
			t.Fatalf("dimension %d: %v, want %v", d, got, x)
		}
	}
}
