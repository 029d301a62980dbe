package main

import (
	"math"
	"slices"

	"github.com/caddy-lex/lex/kernel/detect"
)

// calibration maps the margins of a model's two halves to logits. Each half is
// calibrated by itself, their logits are added span by span, and the highest
// sum is calibrated again: A·sum + B − Shift.
type calibration struct {
	linear, network [detect.Heads]plattLine
	A, B, Shift     [detect.Heads]float64
}

// plattLine is a·x + b.
type plattLine struct{ a, b float64 }

func (l plattLine) at(x float32) float64 { return l.a*float64(x) + l.b }

// The operating point: at most this share of ordinary texts of unseen sources
// may reach the refusal threshold. The published bound is 0.5 %; the rest is
// room for sources nobody has seen yet.
const (
	refuseAt    = 0.70
	falseAlarms = 0.004
)

// calibrate fits Platt's sigmoids (Platt 1999) to held-out margins.
func calibrate(all []example, margins [][]margin) (calibration, []scored) {
	var c calibration
	for h := range detect.Heads {
		c.linear[h] = platt(all, h, func(i int) float64 {
			return bestThreshold(margins[i], func(m margin) float64 { return float64(m.linear[h]) })
		})
		c.network[h] = platt(all, h, func(i int) float64 {
			return bestThreshold(margins[i], func(m margin) float64 { return float64(m.network[h]) })
		})
	}
	sums := make([]scored, len(all))
	for i := range all {
		for h := range detect.Heads {
			sums[i][h] = bestThreshold(margins[i], func(m margin) float64 { return c.linear[h].at(m.linear[h]) + c.network[h].at(m.network[h]) })
		}
	}
	for h := range detect.Heads {
		l := platt(all, h, func(i int) float64 { return sums[i][h] })
		c.A[h], c.B[h] = l.a, l.b
	}
	return c, sums
}

// scored is the sum of both halves' logits, the highest over the spans.
type scored [detect.Heads]float64

func bestThreshold(margins []margin, of func(margin) float64) float64 {
	out := math.Inf(-1)
	for _, m := range margins {
		out = max(out, of(m))
	}
	return out
}

// shift lowers the logits until the operating point holds: those of a head that
// alone exceeds its part, then all of the user's heads alike.
func (c *calibration) shift(all []example, sums []scored) {
	lower := func(step float64, heads ...detect.Head) {
		for _, h := range heads {
			c.Shift[h] += step
		}
	}
	for _, h := range userHeads {
		part := 0.5
		if h == detect.Coercion || h == detect.Sycophancy {
			part = 0.1 // rare attacks
		}
		for headShare(all, sums, c, int(h), ordinary) > part*falseAlarms {
			lower(0.05, h)
		}
	}
	for shareRefused(all, sums, c, ordinary) > falseAlarms {
		lower(0.02, userHeads...)
	}
	for shareRefused(all, sums, c, cleanDocument) > falseAlarms {
		lower(0.02, detect.Injection)
	}
}

// headShare is the share of the chosen examples that one head refuses.
func headShare(all []example, sums []scored, c *calibration, h int, chosen func(*example) bool) float64 {
	var n, refused float64
	for i := range all {
		if chosen(&all[i]) {
			n++
			if c.probability(h, sums[i][h]) >= refuseAt {
				refused++
			}
		}
	}
	return refused / n
}

func ordinary(e *example) bool { return e.ordinary && !e.document && e.counted() }

func cleanDocument(e *example) bool {
	return e.document && e.counted() && e.target[detect.Injection] == 0
}

// shareRefused is the share of the chosen examples that would be refused.
func shareRefused(all []example, sums []scored, c *calibration, chosen func(*example) bool) float64 {
	var n, refused float64
	for i := range all {
		if e := &all[i]; chosen(e) {
			n++
			if c.severity(e, sums[i]) >= refuseAt {
				refused++
			}
		}
	}
	return refused / n
}

// calibrates reports whether an example counts in the calibration of a head.
// Seeds do for the heads that have next to no positives elsewhere; of a set that
// is one template, held out whole, nothing can be learnt.
func (e *example) calibrates(h int) bool {
	rare := h == int(detect.Coercion) || h == int(detect.Sycophancy)
	return e.unseen() && e.source != "anthropic_sycophancy" && (rare || e.source != "seeds")
}

// platt minimises the weighted logistic loss of a·x + b over the unseen
// examples by Newton's method, with a weak prior of a = 1.
func platt(all []example, h int, margin func(int) float64) plattLine {
	l := plattLine{a: 1}
	for range 300 {
		var ga, gb, haa, hab, hbb float64
		for i := range all {
			w, y := float64(all[i].weight[h]), float64(all[i].target[h])
			if w == 0 || !all[i].calibrates(h) {
				continue
			}
			x := margin(i)
			p := 1 / (1 + math.Exp(-(l.a*x + l.b)))
			ga += w * (p - y) * x
			gb += w * (p - y)
			v := w * p * (1 - p)
			haa += v * x * x
			hab += v * x
			hbb += v
		}
		ga, haa, hbb = ga+10*(l.a-1), haa+10, hbb+1e-6
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		da, db = max(-0.2, min(0.2, da)), max(-0.5, min(0.5, db)) // Newton may overshoot
		l = plattLine{l.a - da, l.b - db}
		if math.Abs(da)+math.Abs(db) < 1e-9 {
			break
		}
	}
	return l
}

func (c *calibration) probability(h int, sum float64) float64 {
	if math.IsInf(sum, 0) {
		return 0
	}
	return 1 / (1 + math.Exp(-(c.A[h]*sum + c.B[h] - c.Shift[h])))
}

// scores are what detection gives for a text: injection alone for a document,
// the user's heads otherwise.
func (c *calibration) scores(e *example, sum scored) (p [detect.Heads]float64) {
	if e.document {
		p[detect.Injection] = c.probability(int(detect.Injection), sum[detect.Injection])
		return p
	}
	for _, h := range userHeads {
		p[h] = c.probability(int(h), sum[h])
	}
	return p
}

func (c *calibration) severity(e *example, sum scored) float64 {
	return severity(c.scores(e, sum))
}

// severity pools the two highest types: 1 − (1 − s1)(1 − max(0, s2 − 0.30)),
// injection counting as identity.
func severity(p [detect.Heads]float64) float64 {
	p[detect.Identity] = max(p[detect.Identity], p[detect.Injection])
	var first, second float64
	for _, s := range p[:detect.Injection] {
		if s > first {
			first, second = s, first
		} else if s > second {
			second = s
		}
	}
	return 1 - (1-first)*(1-max(0, second-0.30))
}

// quantile returns the smallest value that at least the share q does not
// exceed.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, int(math.Ceil(q*float64(len(values)))))]
}
