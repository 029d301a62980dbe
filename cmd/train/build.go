package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/caddy-lex/lex/kernel/detect"
)

// build trains on everything and quantises. It returns the model's bytes, with a part for
// languages that never speaks.
func build(all []example, s *space, c calibration, dialogues []record) ([]byte, error) {
	final := fitPair(s.width, choose(all, func(*example) bool { return true }))
	p := quantise(final, s, &c)
	p.Common = commonMeaning(&p, all)
	draft, err := decoded(p)
	if err != nil {
		return nil, err
	}
	p.Harm = harmReference(draft, all)
	for d, x := range p.Harm {
		p.Benign[d] = -x
	}
	p.Calibration.Threat = threatQuantile(draft, all, &p)
	p.Calibration.LostThread = threadQuantile(draft, dialogues)
	return p.Encode()
}

func decoded(p detect.Parameters) (*detect.Model, error) {
	raw, err := p.Encode()
	if err != nil {
		return nil, err
	}
	return detect.Decode(raw)
}

// quantise rounds to eight bits, with one scale for each head and one for the
// words, and folds the calibration in.
func quantise(m *pair, s *space, c *calibration) detect.Parameters {
	p := detect.Parameters{Lexicon: s.known, Rows: make([]detect.Row, detect.Buckets), Languages: noLanguages()}
	for h := range detect.Heads {
		a := c.A[h] * c.linear[h].a
		p.Gain[h] = float32(a * m.linear.quantise(h, p.Rows))
		p.Rule[h] = float32(a * float64(m.linear.rule[h]))
		out := m.network.out.row(h)
		p.Offset[h] = float32(c.A[h]*(c.linear[h].at(m.linear.bias[h])+c.network[h].at(out[detect.Hidden])) + c.B[h] - c.Shift[h])
		for k := range detect.Hidden {
			p.Out[h][k] = float32(c.A[h] * c.network[h].a * float64(out[k]))
		}
	}
	for k := range detect.Hidden {
		p.Bias[k] = m.network.dense.row(k)[s.width]
	}
	p.Words, p.Scale = quantiseWords(m.network, s)
	return p
}

// quantise writes a head's weights as bytes and returns what one is worth. The
// few weights beyond the scale, its 99.99 % quantile, are cut.
func (m *linear) quantise(h int, rows []detect.Row) float64 {
	sizes := make([]float64, len(rows))
	for f := range rows {
		sizes[f] = math.Abs(float64(m.w[f][h] * m.idf[f]))
	}
	scale := quantile(sizes, 0.9999) / 127
	for f := range rows {
		rows[f][h] = toByte(float64(m.w[f][h]*m.idf[f]) / scale)
	}
	return scale
}

func toByte(x float64) int8 { return int8(max(-127, min(127, math.Round(x)))) }

// quantiseWords multiplies the words' vectors with the hidden layer's weights.
func quantiseWords(n *network, s *space) (out []detect.Word, scale float32) {
	entries := len(s.weight)
	hidden := make([][detect.Hidden]float64, entries+detect.SubwordBuckets)
	var sizes []float64
	row := func(i int) ([]float32, float64) {
		if i < entries {
			return s.row(int32(i)), float64(s.weight[i])
		}
		g := i - entries
		return s.grams[g*s.width : (g+1)*s.width], 1
	}
	for i := range hidden {
		v, weight := row(i)
		for k := range detect.Hidden {
			hidden[i][k] = weight * float64(dot(v, n.dense.row(k)[:s.width]))
			if k == i%detect.Hidden {
				sizes = append(sizes, math.Abs(hidden[i][k]))
			}
		}
	}
	unit := quantile(sizes, 0.9995) / 127
	out = make([]detect.Word, len(hidden))
	for i := range out {
		v, weight := row(i)
		out[i].Weight = uint8(math.Max(1, math.Round(255*weight)))
		for k, x := range hidden[i] {
			out[i].Hidden[k] = toByte(x / unit)
		}
		for d := range detect.Dimensions {
			out[i].Meaning[d] = toByte(weight * float64(v[d]) * meaningScale)
		}
	}
	return out, float32(meanScale * unit * 255)
}

// meaningScale is what a vector of length one becomes: none of its components
// comes near 127/250.
const meaningScale = 250

// commonMeaning is the mean of what ordinary texts mean.
func commonMeaning(p *detect.Parameters, all []example) (out [detect.Dimensions]float32) {
	var sum [detect.Dimensions]float64
	n := 0.0
	for i := range all {
		if !ordinary(&all[i]) {
			continue
		}
		n++
		mean := detect.Mean(p, all[i].text)
		for d, x := range mean {
			sum[d] += x
		}
	}
	for d := range sum {
		out[d] = float32(sum[d] / n)
	}
	return out
}

// harmReference is the direction of the embedding space that best tells harm
// from the ordinary: logistic regression by stochastic gradient descent. Plain
// centroids differ mostly in topic and language; the benign reference is the
// opposite direction.
func harmReference(m *detect.Model, all []example) (out [detect.Dimensions]float32) {
	type point struct {
		v         detect.Vector
		y, weight float64
	}
	var points []point
	for i := range all {
		e := &all[i]
		if e.document || e.made && e.source != "seeds" {
			continue
		}
		harm := max(e.target[detect.Identity], e.target[detect.HarmRequest], e.target[detect.Exploitative], e.target[detect.Coercion])
		if v := embed(m, e.text); v != nil {
			points = append(points, point{v, float64(harm), float64(e.weight[detect.Identity])})
		}
	}
	random := rand.New(rand.NewPCG(seed, 2))
	w, bias := make([]float64, detect.Dimensions), 0.0
	for epoch := range 10 {
		step := 0.5 / float64(epoch+1)
		for _, i := range random.Perm(len(points)) {
			p := points[i]
			x := bias
			for d := range w {
				x += w[d] * float64(p.v[d])
			}
			g := step * min(3, p.weight) * (p.y - 1/(1+math.Exp(-x)))
			bias += g * 0.1
			for d := range w {
				w[d] += g * float64(p.v[d])
			}
		}
	}
	for d := range w {
		out[d] = float32(w[d])
	}
	return out
}

func threatQuantile(m *detect.Model, all []example, p *detect.Parameters) float32 {
	var threats []float64
	for i := range all {
		if ordinary(&all[i]) {
			v := embed(m, all[i].text)
			threats = append(threats, detect.Similarity(v, p.Harm[:])-detect.Similarity(v, p.Benign[:]))
		}
	}
	return float32(quantile(threats, 0.999))
}

// threadQuantile is the 1 % quantile of continuity in ordinary dialogues, from
// the third answer on.
func threadQuantile(m *detect.Model, dialogues []record) float32 {
	var cs []float64
	for _, r := range dialogues {
		var centre detect.Vector
		n := 0
		for _, t := range r.Turns {
			if t.Role != "assistant" {
				continue
			}
			v := embed(m, t.Content)
			if n >= 2 {
				cs = append(cs, detect.Continuity(v, centre))
			}
			centre = detect.Blend(centre, v, n)
			n++
		}
	}
	return float32(quantile(slices.Clone(cs), 0.01))
}
