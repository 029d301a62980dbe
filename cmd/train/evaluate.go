package main

import (
	"math"
	"slices"

	"github.com/caddy-lex/lex/kernel/detect"
)

// evaluation holds what held-out models say of every counted example.
type evaluation struct {
	all    []example
	c      calibration
	scores []scored
	// severity under the model, under its heads alone, and under the baseline: hashed words
	// and n-grams with logistic regression, trained on the labelled data alone.
	severity, headsAlone, baseline []float64
}

func evaluate(all []example) evaluation {
	e := evaluation{all: all}
	margins := heldOut(all, func(train []*example) *pair { return fitPair(width, train) })
	e.c, e.scores = calibrate(all, margins)
	e.c.shift(all, e.scores)
	e.headsAlone = severities(all, &e.c, e.scores)
	e.baseline = baseline(all)
	return e
}

// addEnglish gives every English text the higher score of the held-out heads and of the English
// reader, which has seen none of the sources. The reader is asked about the whole text where a
// head's best logit is over the floor, which the detector looks up span by span.
func (e *evaluation) addEnglish(l *detect.Languages) {
	e.severity = slices.Clone(e.headsAlone)
	for i := range e.all {
		x := &e.all[i]
		if !x.counted() || x.document || x.lang != "en" {
			continue
		}
		p := e.c.scores(x, e.scores[i])
		for q, floor := range l.Floor {
			if head := detect.Question(q).Head(); p[head] > probability(float64(floor)) {
				p[head] = max(p[head], probability(requestLogit(&l.English, detect.Question(q), x.text)))
				e.severity[i] = severity(p)
			}
		}
	}
}

func probability(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func severities(all []example, c *calibration, scores []scored) []float64 {
	out := make([]float64, len(all))
	for i := range all {
		if all[i].counted() {
			out[i] = c.severity(&all[i], scores[i])
		}
	}
	return out
}

func baseline(all []example) []float64 {
	plain := make([]example, len(all))
	for i := range all {
		plain[i] = all[i].spelled()
	}
	margins := heldOut(plain, func(train []*example) *pair {
		train = slices.DeleteFunc(slices.Clone(train), func(e *example) bool { return e.fold() < 0 || e.made || e.source == "seeds" })
		return &pair{linear: fit(train)}
	})
	c, scores := calibrate(plain, margins)
	return severities(plain, &c, scores)
}

// spelled is the example as the baseline sees it: as a whole, without the groups
// of words, and with one head for what users say, harmful or jailbreak against
// ordinary.
func (e example) spelled() example {
	all := e.features
	e.features, e.rule = nil, false
	for _, f := range all {
		if f < detect.SpelledBuckets {
			e.features = append(e.features, f)
		}
	}
	e.blocks = []int{len(e.features)}
	if len(e.features) == 0 {
		e.blocks = nil
	}
	if !e.document {
		e.target, e.weight = [detect.Heads]float32{}, [detect.Heads]float32{}
		e.weight[detect.Identity] = float32(boolToInt(e.label != "sycophancy" && e.label != "injection"))
		e.target[detect.Identity] = float32(boolToInt(e.label == "harmful" || e.label == "jailbreak"))
	}
	return e
}

// cut is the severity that the share of the chosen examples does not exceed.
func (e *evaluation) cut(severity []float64, share float64, chosen func(*example) bool) float64 {
	var s []float64
	for i := range e.all {
		if chosen(&e.all[i]) {
			s = append(s, severity[i])
		}
	}
	return quantile(s, 1-share)
}
