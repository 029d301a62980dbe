package main

import (
	"fmt"
	"math"
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
	p.Harm = centroid(draft, all, func(e *example) bool { return e.label == "harmful" || e.label == "jailbreak" })
	p.Benign = centroid(draft, all, ordinary)
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
		unit := 1.0
		if f < detect.WordBuckets {
			unit = wordWeight
		}
		p.Rows[f].IDF = int8(math.Round(127 * max(0, float64(m.idf[f])/unit-0.2) / 0.8))
	}
	return p
}

// centroid is the mean direction of the chosen texts, each source counting the
// same.
func centroid(m *detect.Model, all []example, chosen func(*example) bool) (out [detect.Dimensions]float32) {
	sums := map[string][]float64{}
	var names []string
	for i := range all {
		if e := &all[i]; chosen(e) {
			if sums[e.source] == nil {
				sums[e.source] = make([]float64, detect.Dimensions)
				names = append(names, e.source)
			}
			for d, x := range m.Embed(e.text) {
				sums[e.source][d] += float64(x)
			}
		}
	}
	for _, name := range names {
		var norm float64
		for _, x := range sums[name] {
			norm += x * x
		}
		for d, x := range sums[name] {
			out[d] += float32(x / math.Sqrt(norm) / float64(len(names)))
		}
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
