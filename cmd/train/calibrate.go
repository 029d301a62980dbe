package main

import (
	"math"

	"github.com/caddy-lex/lex/kernel/detect"
)

// calibration maps a head's margin x to the logit A·x + B − Shift.
type calibration struct {
	A, B, Shift [detect.Heads]float64
}

// The operating point: at most this share of ordinary texts of unseen sources
// may reach the refusal threshold. The published bound is 0.5 %; the rest is
// room for sources nobody has seen yet.
const (
	refuseAt    = 0.70
	falseAlarms = 0.004
)

// calibrate fits Platt's sigmoid (Platt 1999) to held-out margins, then shifts
// each head until its part of the operating point holds.
func calibrate(all []example, margins [][detect.Heads]float32) calibration {
	var c calibration
	for h := range detect.Heads {
		c.A[h], c.B[h] = platt(all, margins, h)
	}
	for _, h := range userHeads {
		for headShare(all, margins, &c, int(h), ordinary) > falseAlarms/float64(len(userHeads)) {
			c.Shift[h] += 0.05
		}
	}
	for headShare(all, margins, &c, int(detect.Injection), cleanDocument) > falseAlarms {
		c.Shift[detect.Injection] += 0.05
	}
	return c
}

// headShare is the share of the chosen examples that one head refuses.
func headShare(all []example, margins [][detect.Heads]float32, c *calibration, h int, chosen func(*example) bool) float64 {
	var n, refused float64
	for i := range all {
		if chosen(&all[i]) {
			n++
			if c.probability(h, margins[i][h]) >= refuseAt {
				refused++
			}
		}
	}
	return refused / n
}

func ordinary(e *example) bool { return e.ordinary && !e.document }

func cleanDocument(e *example) bool {
	return e.document && e.source != "seeds" && e.target[detect.Injection] == 0
}

// share is the share of the chosen examples that would be refused.
func share(all []example, margins [][detect.Heads]float32, c *calibration, chosen func(*example) bool) float64 {
	var n, refused float64
	for i := range all {
		if e := &all[i]; chosen(e) {
			n++
			if c.severity(e, margins[i]) >= refuseAt {
				refused++
			}
		}
	}
	return refused / n
}

// platt minimises the weighted logistic loss of A·x + B by Newton's method,
// with a weak prior of A = 1.
func platt(all []example, margins [][detect.Heads]float32, h int) (a, b float64) {
	a = 1
	for range 50 {
		var ga, gb, haa, hab, hbb float64
		for i := range all {
			w, y := float64(all[i].weight[h]), float64(all[i].target[h])
			// Of a set that is one template, held out whole, nothing can be learnt.
			if w == 0 || len(all[i].features) == 0 || all[i].source == "anthropic_sycophancy" {
				continue
			}
			x := float64(margins[i][h])
			p := 1 / (1 + math.Exp(-(a*x + b)))
			ga += w * (p - y) * x
			gb += w * (p - y)
			v := w * p * (1 - p)
			haa += v * x * x
			hab += v * x
			hbb += v
		}
		ga, haa, hbb = ga+10*(a-1), haa+10, hbb+1e-6
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		a, b = a-da, b-db
		if math.Abs(da)+math.Abs(db) < 1e-9 {
			break
		}
	}
	return a, b
}

func (c *calibration) probability(h int, margin float32) float64 {
	if math.IsInf(float64(margin), 0) {
		return 0
	}
	return 1 / (1 + math.Exp(-(c.A[h]*float64(margin) + c.B[h] - c.Shift[h])))
}

// scores are what detection gives for a text: injection alone for a document,
// the user's heads otherwise.
func (c *calibration) scores(e *example, margins [detect.Heads]float32) (p [detect.Heads]float64) {
	if e.document {
		p[detect.Injection] = c.probability(int(detect.Injection), margins[detect.Injection])
		return p
	}
	for _, h := range userHeads {
		p[h] = c.probability(int(h), margins[h])
	}
	return p
}

func (c *calibration) severity(e *example, margins [detect.Heads]float32) float64 {
	return severity(c.scores(e, margins))
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
