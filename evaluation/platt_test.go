package evaluation_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/evaluation"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// synthetic draws texts whose probabilities are calibrated by a scaling.
func synthetic(n int, truth evaluation.Platt, random *rand.Rand) []evaluation.Scored {
	texts := make([]evaluation.Scored, n)
	for i := range texts {
		p := sigmoid(random.NormFloat64() * 2)
		texts[i] = evaluation.Scored{P: p, Attack: random.Float64() < truth.Of(p)}
	}
	return texts
}

// The fit finds the scaling that the texts were drawn by, its intervals contain it, and it is
// kept if it improves something and not if there is nothing to improve.
func TestPlattRecoversTheTruth(t *testing.T) {
	for _, truth := range []evaluation.Platt{{Slope: 0.5, Intercept: -1}, {Slope: 2, Intercept: 0.5}, {Slope: 1, Intercept: 2}} {
		texts := synthetic(20_000, truth, rand.New(rand.NewPCG(7, 7)))
		fitted, err := evaluation.FitPlatt(texts)
		if err != nil || math.Abs(fitted.Slope-truth.Slope) > 0.08 || math.Abs(fitted.Intercept-truth.Intercept) > 0.08 {
			t.Errorf("%+v, want %+v: %v", fitted, truth, err)
		}
		r, err := evaluation.CalibratePlatt(texts[:2000], 0.02, rand.New(rand.NewPCG(1, 2)))
		if err != nil || !r.Improves() || r.After.Log >= r.Before.Log || r.After.Brier >= r.Before.Brier {
			t.Errorf("%+v: %+v: %v", truth, r, err)
		}
	}
}

// Of the 95 % intervals of many draws nearly all contain the truth, and what is calibrated
// is rarely improved by chance.
func TestPlattIntervals(t *testing.T) {
	truth, draws, random := evaluation.Platt{Slope: 1}, 20, rand.New(rand.NewPCG(11, 5))
	slopes, intercepts, improved := 0, 0, 0
	for range draws {
		r, err := evaluation.CalibratePlatt(synthetic(200, truth, random), 0.02, random)
		if err != nil {
			t.Fatal(err)
		}
		if r.SlopeCI[0] <= truth.Slope && truth.Slope <= r.SlopeCI[1] {
			slopes++
		}
		if r.InterceptCI[0] <= truth.Intercept && truth.Intercept <= r.InterceptCI[1] {
			intercepts++
		}
		if r.Improves() {
			improved++
		}
	}
	if slopes < draws-4 || intercepts < draws-4 || improved > draws/2 {
		t.Errorf("of %d draws %d intervals have the slope, %d the intercept, and %d were improved", draws, slopes, intercepts, improved)
	}
}

// The fit is where the gradient of the loss vanishes, whatever the texts are.
func TestPlattIsAMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts []evaluation.Scored
		attacks := 0
		for range rapid.IntRange(2, 60).Draw(t, "n") {
			attack := rapid.Bool().Draw(t, "attack")
			if attack {
				attacks++
			}
			texts = append(texts, evaluation.Scored{P: rapid.Float64Range(0, 1).Draw(t, "p"), Attack: attack})
		}
		s, err := evaluation.FitPlatt(texts)
		if errors.Is(err, evaluation.ErrOneClass) || errors.Is(err, evaluation.ErrSameScores) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var slope, intercept, scale float64
		for _, text := range texts {
			target := 1 / (float64(len(texts)-attacks) + 2)
			if text.Attack {
				target = (float64(attacks) + 1) / (float64(attacks) + 2)
			}
			p := max(1e-6, min(1-1e-6, text.P))
			x, d := math.Log(p/(1-p)), s.Of(text.P)-target
			slope, intercept, scale = slope+d*x, intercept+d, scale+math.Abs(x)
		}
		if math.Abs(slope) > 1e-5*(1+scale) || math.Abs(intercept) > 1e-5*(1+scale) {
			t.Fatalf("the gradient at %+v is %v, %v", s, slope, intercept)
		}
	})
}

// The order of the texts does not decide whether a scaling helps: here every tenth attack is
// of a kind of its own.
func TestPlattOfOrderedTexts(t *testing.T) {
	var texts []evaluation.Scored
	for i := range 400 {
		attack, exception := i%2 == 0, i/2%10 == 0
		texts = append(texts, evaluation.Scored{P: map[bool]float64{true: 0.99, false: 0.3}[attack != exception], Attack: attack})
	}
	if r, err := evaluation.CalibratePlatt(texts, 0.02, rand.New(rand.NewPCG(1, 2))); err != nil || !r.Improves() {
		t.Errorf("%+v %v", r, err)
	}
}

func TestPlattOfDegenerateTexts(t *testing.T) {
	of := func(attacks, harmless int, attackP, harmlessP float64) (texts []evaluation.Scored) {
		for range attacks {
			texts = append(texts, evaluation.Scored{P: attackP, Attack: true})
		}
		for range harmless {
			texts = append(texts, evaluation.Scored{P: harmlessP})
		}
		return texts
	}
	for name, test := range map[string]struct {
		texts []evaluation.Scored
		want  error
	}{
		"nothing":           {nil, evaluation.ErrOneClass},
		"attacks only":      {of(50, 0, 0.9, 0), evaluation.ErrOneClass},
		"harmless only":     {of(0, 50, 0, 0.1), evaluation.ErrOneClass},
		"too few":           {of(9, 50, 0.9, 0.1), evaluation.ErrTooFewScored},
		"constant":          {of(50, 50, 0.3, 0.3), evaluation.ErrSameScores},
		"constant extreme":  {of(50, 50, 1, 1), evaluation.ErrSameScores},
		"separable":         {of(50, 50, 0.6, 0.4), nil},
		"separable at 0, 1": {of(50, 50, 1, 0), nil},
		"the wrong way":     {of(50, 50, 0.1, 0.9), nil},
	} {
		r, err := evaluation.CalibratePlatt(test.texts, 0.02, rand.New(rand.NewPCG(1, 2)))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (math.IsNaN(r.Slope) || math.IsInf(r.Slope, 0) || math.IsNaN(r.After.Log) || r.After.Log < 0) {
			t.Errorf("%s: %+v", name, r)
		}
		if improves := err == nil && r.Improves(); improves != (name == "separable") {
			t.Errorf("%s: improves %v: %+v", name, improves, r)
		}
	}
}
