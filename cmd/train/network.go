package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/caddy-lex/lex/kernel/detect"
)

// network judges a span by the weighted mean of its words' vectors: one hidden
// layer, then the heads. Since the mean comes first, the hidden layer's weights
// can be multiplied into the words' vectors, and the detector only adds.
type network struct {
	dense *layer // width → hidden
	out   *layer // hidden → heads
	t     int    // steps so far

	settled bool // dense learns no more
}

// settings of the network's training, chosen by the held-out figures. After its epochs the
// hidden layer is settled, and the heads alone learn for some more.
type settings struct {
	hidden, epochs, settled, batch int
	rate, decay, dropout           float32
}

var netSettings = settings{hidden: detect.Hidden, epochs: 8, settled: 3, batch: 32, rate: 2e-3, decay: 0.01, dropout: 0.3}

const (
	meanScale = 3 // makes the numbers of a mean about one
	maxSpans  = 6 // of one text that are looked at in one step of training
)

// forward is one reading of a mean.
type forward struct {
	in, hidden []float32
	logit      [detect.Heads]float32
}

func (n *network) read(mean, mask []float32) *forward {
	f := &forward{in: mean, hidden: make([]float32, n.dense.out)}
	for h := range f.hidden {
		row := n.dense.row(h)
		x := max(0, dot(mean, row[:n.dense.in])+row[n.dense.in])
		if mask != nil {
			x *= mask[h]
		}
		f.hidden[h] = x
	}
	for h := range detect.Heads {
		row := n.out.row(h)
		f.logit[h] = dot(f.hidden, row[:n.out.in]) + row[n.out.in]
	}
	return f
}

// back adds the gradient of the heads' logits.
func (n *network) back(f *forward, mask []float32, g [detect.Heads]float32) {
	dh := make([]float32, n.dense.out)
	for h, x := range g {
		row, grad := n.out.row(h), n.out.grad(h)
		for j, y := range f.hidden {
			grad[j] += x * y
			dh[j] += x * row[j]
		}
		grad[n.out.in] += x
	}
	if n.settled {
		return
	}
	for h, x := range dh {
		if f.hidden[h] <= 0 {
			continue
		}
		x *= mask[h]
		grad := n.dense.grad(h)
		for j, y := range f.in {
			grad[j] += x * y
		}
		grad[n.dense.in] += x
	}
}

// fitNetwork trains the network on the data. Then the user's heads learn from applications too,
// over a hidden layer that stays as it is: the injection head is the same with and without.
func fitNetwork(width int, examples []*example, set settings, stream uint64) *network {
	random := rand.New(rand.NewPCG(seed, stream))
	n := &network{dense: newLayer(width, set.hidden, random), out: newLayer(set.hidden, detect.Heads, random)}
	for h := range detect.Heads {
		n.out.row(h)[n.out.in] = -2
	}
	data, ofApplications := apart(examples)
	n.train(data, set, set.epochs, random)
	if len(ofApplications) == 0 {
		return n
	}
	injection := slices.Clone(n.out.row(int(detect.Injection)))
	n.settled, n.t = true, 0
	clear(n.out.m)
	clear(n.out.v)
	n.train(examples, set, set.settled, random)
	copy(n.out.row(int(detect.Injection)), injection)
	return n
}

// train goes over the examples some times, in batches, ever more slowly.
func (n *network) train(examples []*example, set settings, epochs int, random *rand.Rand) {
	order := random.Perm(len(examples))
	steps := float32(epochs * len(order) / set.batch)
	for range epochs {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for k, i := range order {
			n.learn(examples[i], set, random)
			if (k+1)%set.batch == 0 {
				n.t++
				rate := set.rate * max(0.02, 1-float32(n.t)/steps)
				if !n.settled {
					n.dense.step(n.t, rate, set.decay)
				}
				n.out.step(n.t, rate, set.decay)
			}
		}
	}
}

// learn takes one step on a text: the whole and some of its windows, of which
// the one with the highest logit of a head learns for that head.
func (n *network) learn(e *example, set settings, random *rand.Rand) {
	if len(e.means) == 0 {
		return
	}
	chosen := []int{0}
	for _, i := range random.Perm(len(e.means) - 1)[:min(maxSpans, len(e.means)-1)] {
		chosen = append(chosen, i+1)
	}
	mask := make([]float32, set.hidden)
	for h := range mask {
		if random.Float32() >= set.dropout {
			mask[h] = 1 / (1 - set.dropout)
		}
	}
	var reads []*forward
	var best [detect.Heads]int
	for i, span := range chosen {
		reads = append(reads, n.read(e.means[span], mask))
		if span >= e.large() {
			onlyInjection(&reads[i].logit)
		}
		for h := range best {
			if reads[i].logit[h] > reads[best[h]].logit[h] {
				best[h] = i
			}
		}
	}
	for i, f := range reads {
		if g, ok := gradient(e, f, best, i); ok {
			for h := range g {
				g[h] /= float32(set.batch)
			}
			n.back(f, mask, g)
		}
	}
}

// gradient of the logistic loss of the heads whose best span is the i-th.
func gradient(e *example, f *forward, best [detect.Heads]int, i int) (g [detect.Heads]float32, found bool) {
	for h := range g {
		if best[h] == i && e.weight[h] > 0 {
			p := float32(1 / (1 + math.Exp(-float64(f.logit[h]))))
			g[h] = min(4, e.weight[h]) * (p - e.target[h])
			found = true
		}
	}
	return g, found
}
