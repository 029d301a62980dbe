package main

import (
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/caddy-lex/lex/kernel/detect"
)

const (
	// conceptScale is the value of a concept that occurs, where the n-grams of a text are
	// a vector of about unit length.
	conceptScale = 0.3
	// ridge was chosen on the fresh prompts of the data, among 1/5, 1/20 and 1/60.
	ridge = 1.0 / 20
)

// sample is a text as the readers see it.
type sample struct {
	features []uint32 // distinct, in ascending order
	values   []float64
	concepts uint64

	yes    bool // the answer to the question
	weight float64
	kind   string // of a prompt, see [prompt]
	fold   int    // in which it is held out; -1 never
}

func newSample(text string, terms *detect.Terms) (s sample) {
	var all []uint32
	detect.RequestFeatures(detect.Normalise(text), terms, func(_ int, features []uint32, concepts uint64) {
		all = append(all, features...)
		s.concepts |= concepts
	})
	slices.Sort(all)
	for i, f := range all {
		if i == 0 || f != all[i-1] {
			s.features, s.values = append(s.features, f), append(s.values, 0)
		}
		s.values[len(s.values)-1] += 1 / math.Sqrt(float64(len(all)))
	}
	return s
}

// logistic is a logistic regression: a weight for each bucket and each concept, and the bias.
type logistic struct {
	weights []float64
	idf     []float64
}

const biasAt = detect.RequestBuckets + 64

func (m *logistic) bias() float64 { return m.weights[biasAt] }

// inputs are the non-zero ones of a sample.
type inputs struct {
	at           []uint32
	value        []float64
	sign, weight float64
}

func (m *logistic) inputs(s *sample) (in inputs) {
	for i, feature := range s.features {
		in.at, in.value = append(in.at, feature), append(in.value, s.values[i]*m.idf[feature])
	}
	for set := s.concepts; set != 0; set &= set - 1 {
		in.at = append(in.at, detect.RequestBuckets+uint32(bits.TrailingZeros64(set)))
		in.value = append(in.value, conceptScale)
	}
	in.at, in.value = append(in.at, biasAt), append(in.value, 1)
	in.sign, in.weight = float64(2*boolToInt(s.yes)-1), s.weight
	return in
}

func (in *inputs) margin(weights []float64) (sum float64) {
	for i, at := range in.at {
		sum += weights[at] * in.value[i]
	}
	return sum
}

func (m *logistic) margin(s *sample) float64 {
	in := m.inputs(s)
	return in.margin(m.weights)
}

// largest is the size of a bucket's weight that all but one in ten thousand of those in use
// stay under.
func (m *logistic) largest() float64 {
	var sizes []float64
	for f, w := range m.weights[:detect.RequestBuckets] {
		if w != 0 {
			sizes = append(sizes, math.Abs(w*m.idf[f]))
		}
	}
	return quantile(sizes, 0.9999)
}

// fitLogistic minimises the weighted logistic loss of the chosen samples with a ridge penalty.
func fitLogistic(samples []sample, chosen func(*sample) bool) *logistic {
	m := &logistic{idf: make([]float64, detect.RequestBuckets), weights: make([]float64, biasAt+1)}
	used := 0.0
	for i := range samples {
		if chosen(&samples[i]) {
			used++
			for _, f := range samples[i].features {
				m.idf[f]++
			}
		}
	}
	for f, n := range m.idf {
		if n > 0 {
			m.idf[f] = math.Log(used/n) / math.Log(used)
		}
	}
	var rows []inputs
	for i := range samples {
		if chosen(&samples[i]) {
			rows = append(rows, m.inputs(&samples[i]))
		}
	}
	problem := optimize.Problem{
		Func: func(x []float64) float64 { return loss(rows, x) },
		Grad: func(gradient, x []float64) { slope(rows, gradient, x) },
	}
	there := renumber(rows)
	settings := &optimize.Settings{MajorIterations: 80, Converger: &optimize.FunctionConverge{Relative: 1e-4, Iterations: 5}}
	result, err := optimize.Minimize(problem, make([]float64, len(there)), settings, &optimize.LBFGS{})
	if result == nil {
		panic(err) // the problem is convex and smooth: the gradient is wrong
	}
	for i, at := range there {
		m.weights[at] = result.X[i]
	}
	return m
}

// renumber gives the inputs that occur the numbers from 0 on, in their order, and returns what they
// were. A weight of no input stays 0, but each step of the search would pass over it: few samples
// use little of the table.
func renumber(rows []inputs) (there []uint32) {
	occurs := make([]bool, biasAt+1)
	for i := range rows {
		for _, at := range rows[i].at {
			occurs[at] = true
		}
	}
	numbers := make([]uint32, biasAt+1)
	for at := range occurs {
		if occurs[at] {
			numbers[at] = uint32(len(there))
			there = append(there, uint32(at))
		}
	}
	for i := range rows {
		for k, at := range rows[i].at {
			rows[i].at[k] = numbers[at]
		}
	}
	return there
}

func loss(rows []inputs, weights []float64) (total float64) {
	for _, w := range weights {
		total += ridge / 2 * w * w
	}
	for i := range rows {
		total += rows[i].weight * math.Log1p(math.Exp(-rows[i].sign*rows[i].margin(weights)))
	}
	return total
}

// slope is the gradient of loss.
func slope(rows []inputs, gradient, weights []float64) {
	for i, w := range weights {
		gradient[i] = ridge * w
	}
	for i := range rows {
		in := &rows[i]
		g := -in.sign * in.weight / (1 + math.Exp(in.sign*in.margin(weights)))
		for k, at := range in.at {
			gradient[at] += g * in.value[k]
		}
	}
}
