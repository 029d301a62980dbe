package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/caddy-lex/lex/kernel/detect"
)

// build trains on everything and quantises. It returns the model's bytes.
func build(all []example, c calibration, dir string) ([]byte, *detect.Model, error) {
	final := fit(choose(all, func(*example) bool { return true }))
	p := quantise(final, c)
	raw, err := p.Encode()
	if err != nil {
		return nil, nil, err
	}
	draft, err := detect.Decode(raw)
	if err != nil {
		return nil, nil, err
	}
	p.Harm = harmReference(draft, all)
	for d, x := range p.Harm {
		p.Benign[d] = -x
	}
	p.Calibration.Threat = threatQuantile(draft, all, &p)
	if p.Calibration.LostThread, err = threadQuantile(draft, dir); err != nil {
		return nil, nil, err
	}
	if raw, err = p.Encode(); err != nil {
		return nil, nil, err
	}
	m, err := detect.Decode(raw)
	return raw, m, err
}

// quantise rounds weights to eight bits with one scale a head. The few weights
// beyond the scale are cut: the scale is the 99.99 % quantile.
func quantise(m *linear, c calibration) detect.Parameters {
	p := detect.Parameters{Rows: make([]detect.Row, detect.Buckets)}
	for h := range detect.Heads {
		sizes := make([]float64, detect.Buckets)
		for f := range sizes {
			sizes[f] = math.Abs(float64(m.w[f][h] * m.idf[f]))
		}
		slices.Sort(sizes)
		scale := sizes[len(sizes)*9999/10000] / 127
		for f := range p.Rows {
			w := math.Round(float64(m.w[f][h]*m.idf[f]) / scale)
			p.Rows[f].Weight[h] = int8(max(-127, min(127, w)))
		}
		p.Gain[h] = float32(c.A[h] * scale)
		p.Rule[h] = float32(c.A[h] * float64(m.rule[h]))
		p.Offset[h] = float32(c.A[h]*float64(m.bias[h]) + c.B[h] - c.Shift[h])
	}
	for f := range p.Rows {
		p.Rows[f].IDF = embeddingWeight(f, float64(m.idf[f]))
	}
	return p
}

// embeddingWeight is the squared document frequency of a feature, which hushes
// what occurs everywhere; n-grams, being many, count half.
func embeddingWeight(f int, idf float64) int8 {
	scale := 0.5
	if f < detect.WordBuckets {
		idf /= wordWeight
		scale = 1
	}
	return int8(math.Round(127 * scale * idf * idf))
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
		harm := attack(e.label) && !e.document && e.label != "sycophancy" && e.label != "injection"
		if v := m.Embed(e.text); v != nil && (harm || ordinary(e) || e.label == "borderline_benign") {
			y, h := 0.0, detect.HarmRequest
			if harm {
				y, h = 1, detect.Identity
			}
			points = append(points, point{v, y, float64(max(e.weight[h], 0.3))})
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
			v := m.Embed(all[i].text)
			threats = append(threats, detect.Similarity(v, p.Harm[:])-detect.Similarity(v, p.Benign[:]))
		}
	}
	return float32(quantile(threats, 0.995))
}

// threadQuantile is the 1 % quantile of continuity in ordinary dialogues, from
// the third answer on.
func threadQuantile(m *detect.Model, dir string) (float32, error) {
	dialogues, err := readRecords(filepath.Join(dir, "multiturn_benign.jsonl"))
	if err != nil {
		return 0, fmt.Errorf("measuring continuity: %w", err)
	}
	var cs []float64
	for _, r := range dialogues {
		var centre detect.Vector
		n := 0
		for _, t := range r.Turns {
			if t.Role != "assistant" {
				continue
			}
			v := m.Embed(t.Content)
			if n >= 2 {
				cs = append(cs, max(0, detect.Similarity(v, centre)))
			}
			centre = detect.Blend(centre, v, n)
			n++
		}
	}
	return float32(quantile(cs, 0.01)), nil
}

// quantile returns the smallest value that at least the share q does not
// exceed.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, int(math.Ceil(q*float64(len(values))))-1+1)]
}
