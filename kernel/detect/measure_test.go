package detect_test

import (
	"math"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

func TestMeasure(t *testing.T) {
	m := detect.Default()
	const prompt = "How do I bake sourdough bread at home?"
	const answer = "To bake sourdough bread at home, feed the starter, mix the dough, let it rest and bake the bread hot."
	if _, _, ok := detect.Measure(embed(m, prompt), embed(m, ""), nil, detect.Judgement{}); ok {
		t.Error("no output was measured")
	}
	if _, _, ok := detect.Measure(embed(m, prompt), embed(m, "…?!"), nil, detect.Judgement{}); ok {
		t.Error("an output without words was measured")
	}
	r, c, ok := detect.Measure(embed(m, prompt), embed(m, answer), nil, detect.Judgement{})
	if !ok || math.Abs(r.C+r.R+r.S-1) > 1e-12 || c <= 0 || c > 1 {
		t.Fatalf("%+v %v %v", r, c, ok)
	}
	if near := detect.Continuity(embed(m, answer), embed(m, prompt)); math.Abs(c-near) > 1e-9 {
		t.Errorf("c is %v, on the first turn it is the similarity to the prompt %v", c, near)
	}
	if _, d, _ := detect.Measure(embed(m, prompt), embed(m, answer), embed(m, answer), detect.Judgement{}); d < 1-1e-6 {
		t.Errorf("an answer at the centre has c %v", d)
	}
}

func TestReciprocityFallsForParrotsAndEvasion(t *testing.T) {
	m := detect.Default()
	const prompt = "How do I bake sourdough bread at home?"
	centre := embed(m, "sourdough bread")
	reciprocity := func(output string) float64 {
		r, _, ok := detect.Measure(embed(m, prompt), embed(m, output), centre, detect.Judgement{})
		if !ok {
			t.Fatalf("%q was not measured", output)
		}
		return r.R / r.S // sovereignty is full
	}
	good := reciprocity("To bake sourdough bread at home, feed the starter, mix the dough and bake it hot.")
	if parrot := reciprocity(prompt); parrot > 0.01 || parrot >= good {
		t.Errorf("parrot %v, answer %v", parrot, good)
	}
	if evasion := reciprocity("The train to Hamburg leaves at nine."); evasion >= good {
		t.Errorf("evasion %v, answer %v", evasion, good)
	}
}

func TestSovereigntyFallsWithCapitulation(t *testing.T) {
	m := detect.Default()
	s := func(confidence float64) float64 {
		r, _, _ := detect.Measure(embed(m, "bake bread"), embed(m, "bake bread with flour"), nil, detect.Judgement{Capitulated: confidence > 0, Confidence: confidence})
		return r.S
	}
	if !(s(0) > s(0.5) && s(0.5) > s(0.9) && s(1) == 0) {
		t.Errorf("%v %v %v %v", s(0), s(0.5), s(0.9), s(1))
	}
}

func TestSimilarity(t *testing.T) {
	m := detect.Default()
	a := embed(m, "How do I bake bread?")
	if got := detect.Similarity(a, a); math.Abs(got-1) > 1e-6 {
		t.Errorf("with itself %v", got)
	}
	near, far := detect.Similarity(a, embed(m, "how can I bake a bread")), detect.Similarity(a, embed(m, "quarterly revenue of the shipyard"))
	if near <= far+0.2 {
		t.Errorf("near %v, far %v", near, far)
	}
	for _, v := range []detect.Vector{nil, {}, {1, 2}, make(detect.Vector, len(a))} {
		if got := detect.Similarity(a, v); got != 0 {
			t.Errorf("with %d dimensions: %v", len(v), got)
		}
	}
}

func TestBlend(t *testing.T) {
	m := detect.Default()
	a, b := embed(m, "baking bread with rye flour"), embed(m, "repairing a bicycle chain")
	if got := detect.Blend(nil, a, 0); detect.Similarity(got, a) < 1-1e-6 {
		t.Error("an empty centre does not become the output")
	}
	if got := detect.Blend(a, nil, 3); detect.Similarity(got, a) < 1-1e-6 {
		t.Error("an empty output moves the centre")
	}
	early, late := detect.Blend(a, b, 1), detect.Blend(a, b, 9)
	if math.Abs(length(early)-1) > 1e-5 || detect.Similarity(late, a) <= detect.Similarity(early, a) {
		t.Errorf("%v %v", detect.Similarity(early, a), detect.Similarity(late, a))
	}
	opposite := make(detect.Vector, len(a))
	for i := range a {
		opposite[i] = -a[i]
	}
	if got := detect.Blend(a, opposite, 1); math.Abs(length(got)-1) > 1e-5 {
		t.Errorf("opposites give a vector of length %v", length(got))
	}
}
