package main

import (
	"math"
	"math/rand/v2"

	"github.com/caddy-lex/lex/kernel/detect"
)

// The training's settings, chosen by the held-out figures.
const (
	seed     = 20261121
	epochs   = 8
	rate     = 2.0 // of plain SGD on vectors of about unit length
	decay    = 0.6 // per epoch
	hardness = 1e-3

	// Words say more than the n-grams they are made of, and are outnumbered by
	// them five to one.
	wordWeight = 2
)

// linear is a model under training: raw weights and biases.
type linear struct {
	w    [][detect.Heads]float32
	bias [detect.Heads]float32
	rule [detect.Heads]float32
	idf  []float32
}

// weigh balances sources (a large one counts less per text) and classes (a
// rare one counts more).
func weigh(examples []example) {
	size := map[string]int{}
	for i := range examples {
		size[examples[i].source+examples[i].label]++
	}
	for i := range examples {
		n := size[examples[i].source+examples[i].label]
		w := float32(math.Sqrt(1000 / float64(n)))
		w = max(0.3, min(2, w))
		for h := range examples[i].weight {
			examples[i].weight[h] *= w
		}
	}
	for h := range detect.Heads {
		var pos, neg float64
		for i := range examples {
			if examples[i].target[h] > 0 {
				pos += float64(examples[i].weight[h])
			} else {
				neg += float64(examples[i].weight[h])
			}
		}
		boost := float32(max(1, min(5, math.Sqrt(neg/pos))))
		for i := range examples {
			if examples[i].target[h] > 0 {
				examples[i].weight[h] *= boost
			}
		}
	}
}

// documentFrequency counts in how many examples a bucket occurs and returns
// ln(N/df) scaled to [0, 1], 0 for a bucket that nothing uses.
func documentFrequency(examples []*example) []float32 {
	df := make([]int32, detect.Buckets)
	last := make([]int32, detect.Buckets)
	for i, e := range examples {
		for _, f := range e.features {
			if last[f] != int32(i+1) {
				last[f] = int32(i + 1)
				df[f]++
			}
		}
	}
	idf := make([]float32, detect.Buckets)
	top := math.Log(float64(len(examples)))
	for f, n := range df {
		if n > 0 {
			idf[f] = float32(math.Log(float64(len(examples))/float64(n)) / top)
			if f < detect.WordBuckets || f >= detect.SpelledBuckets {
				idf[f] *= wordWeight
			}
		}
	}
	return idf
}

// fit trains the heads together by stochastic gradient descent on the logistic
// loss of the score that detection uses: the highest of the whole text and its
// windows. The gradient goes through the window that wins. The examples of applications
// are spread over the others, whose order and weights of words they do not change.
func fit(examples []*example) *linear {
	data, ofApplications := apart(examples)
	m := &linear{w: make([][detect.Heads]float32, detect.Buckets), idf: documentFrequency(data)}
	for h := range m.bias {
		m.bias[h] = -2
	}
	next, nextOfApplications := shuffled(data, 1), shuffled(ofApplications, 3)
	step := float32(rate)
	for epoch := range epochs {
		for _, e := range interleave(next(), nextOfApplications()) {
			m.learn(e, step, epoch == 0)
		}
		step *= decay
	}
	return m
}

// shuffled returns a function that shuffles examples and returns them.
func shuffled(examples []*example, stream uint64) func() []*example {
	random := rand.New(rand.NewPCG(seed, stream))
	order := make([]*example, len(examples))
	for i, k := range random.Perm(len(examples)) {
		order[i] = examples[k]
	}
	return func() []*example {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		return order
	}
}

// margins returns the margins of every span; the self-reference rules count
// for all of them.
func (m *linear) margins(e *example) (out [][detect.Heads]float32) {
	sums := m.blockSums(e)
	for i, span := range e.spans() {
		var sum [detect.Heads]float32
		for _, block := range sums[span.from:span.to] {
			for h := range sum {
				sum[h] += block[h]
			}
		}
		root := float32(math.Sqrt(float64(len(e.within(span)))))
		for h := range sum {
			sum[h] = sum[h]/root + m.bias[h]
			if e.rule {
				sum[h] += m.rule[h]
			}
		}
		if i >= e.large() {
			onlyInjection(&sum)
		}
		out = append(out, sum)
	}
	return out
}

// onlyInjection silences the other heads.
func onlyInjection(logits *[detect.Heads]float32) {
	for _, h := range userHeads {
		logits[h] = float32(math.Inf(-1))
	}
}

// highest returns each head's highest margin and where it is.
func highest(margins [][detect.Heads]float32) (best [detect.Heads]float32, where [detect.Heads]int) {
	for h := range best {
		best[h] = float32(math.Inf(-1))
		for i, m := range margins {
			if m[h] > best[h] {
				best[h], where[h] = m[h], i
			}
		}
	}
	return best, where
}

func (m *linear) blockSums(e *example) [][detect.Heads]float32 {
	out := make([][detect.Heads]float32, len(e.blocks))
	start := 0
	for b, end := range e.blocks {
		for _, f := range e.features[start:end] {
			w := &m.w[f]
			for h := range w {
				out[b][h] += w[h] * m.idf[f]
			}
		}
		start = end
	}
	return out
}

func (m *linear) learn(e *example, step float32, whole bool) {
	if len(e.features) == 0 {
		return
	}
	all := e.spans()
	best, where := highest(m.margins(e))
	gradients := make([][detect.Heads]float32, len(all))
	for h := range best {
		p := float32(1 / (1 + math.Exp(-float64(best[h]))))
		g := max(-3, min(3, e.weight[h]*(e.target[h]-p))) * step
		if g < hardness && g > -hardness {
			continue
		}
		span := where[h]
		if whole && e.target[h] > 0 {
			span = 0
		}
		gradients[span][h] = g
		m.bias[h] += g * 0.05
		if e.rule {
			m.rule[h] += g * 0.5
		}
	}
	for i, g := range gradients {
		if g != [detect.Heads]float32{} {
			m.descend(e.within(all[i]), g)
		}
	}
}

func (m *linear) descend(features []uint32, g [detect.Heads]float32) {
	scale := float32(1 / math.Sqrt(float64(len(features))))
	for h := range g {
		g[h] *= scale
	}
	for _, f := range features {
		w, idf := &m.w[f], m.idf[f]
		for h := range g {
			w[h] += g[h] * idf
		}
	}
}
