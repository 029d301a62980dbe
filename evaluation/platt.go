package evaluation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A Scored text has the probability that a model gave for its being an attack, in [0, 1],
// and what it is.
type Scored struct {
	P      float64
	Attack bool
}

// A Platt scaling makes calibrated probabilities of a model's: the log-odds times the slope,
// plus the intercept (Platt, Probabilistic Outputs for Support Vector Machines, 1999). Slope
// 1 and intercept 0 change nothing.
type Platt struct {
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
}

// unscaled changes nothing.
var unscaled = Platt{Slope: 1}

// surest bounds probabilities before their log-odds are taken: those of 0 and 1 are
// infinite. A guard's are bounded alike.
const surest = 1e-6

// Of returns the calibrated probability.
func (s Platt) Of(p float64) float64 { return 1 / (1 + math.Exp(-s.Slope*logit(p)-s.Intercept)) }

func logit(p float64) float64 {
	p = max(surest, min(1-surest, p))
	return math.Log(p) - math.Log1p(-p)
}

// The errors of texts that a scaling cannot be fitted to.
var (
	ErrOneClass      = errors.New("there are not both attacks and harmless texts")
	ErrSameScores    = errors.New("all texts have the same probability")
	ErrTooFewScored  = errors.New("there are fewer than ten attacks or fewer than ten harmless texts")
	ErrNotConverging = errors.New("the fit does not converge")
)

// FitPlatt fits a scaling. The targets are not 1 and 0 but Platt's, so that the fit is finite
// for texts that a threshold separates. The search is that of Lin, Lin and Weng (A note on
// Platt's probabilistic outputs for support vector machines, 2007): Newton's method, which
// goes back where a step does not lower the loss enough. Their A and B are minus the slope
// and the intercept.
func FitPlatt(texts []Scored) (Platt, error) {
	attacks := countAttacks(texts)
	harmless := len(texts) - attacks
	switch {
	case attacks == 0 || harmless == 0:
		return Platt{}, ErrOneClass
	case !slices.ContainsFunc(texts, func(t Scored) bool { return logit(t.P) != logit(texts[0].P) }):
		return Platt{}, ErrSameScores
	}
	const (
		iterations = 100
		shortest   = 1e-10 // step
		ridge      = 1e-12 // keeps the Hessian positive definite
		enough     = 1e-4  // of the decrease that the gradient promises
		flat       = 1e-9  // gradient
	)
	high, low := (float64(attacks)+1)/(float64(attacks)+2), 1/(float64(harmless)+2)
	x, target := make([]float64, len(texts)), make([]float64, len(texts))
	for i, t := range texts {
		x[i], target[i] = logit(t.P), low
		if t.Attack {
			target[i] = high
		}
	}
	loss := func(s Platt) (sum float64) {
		for i := range x {
			sum += crossEntropy(s.Slope*x[i]+s.Intercept, target[i])
		}
		return sum
	}
	s := Platt{Intercept: math.Log((float64(attacks) + 1) / (float64(harmless) + 1))}
	present := loss(s)
	for range iterations {
		var g1, g2, h21 float64
		h11, h22 := ridge, ridge
		for i := range x {
			p := 1 / (1 + math.Exp(-s.Slope*x[i]-s.Intercept))
			d, w := p-target[i], p*(1-p)
			g1, g2 = g1+d*x[i], g2+d
			h11, h21, h22 = h11+w*x[i]*x[i], h21+w*x[i], h22+w
		}
		if math.Abs(g1) < flat*float64(len(x)) && math.Abs(g2) < flat*float64(len(x)) {
			return s, nil
		}
		det := h11*h22 - h21*h21
		slope, intercept := -(h22*g1-h21*g2)/det, -(h11*g2-h21*g1)/det
		promised := g1*slope + g2*intercept
		step := 1.0
		for ; step >= shortest; step /= 2 {
			next := Platt{s.Slope + step*slope, s.Intercept + step*intercept}
			if l := loss(next); l < present+enough*step*promised {
				s, present = next, l
				break
			}
		}
		if step < shortest { // no shorter step lowers the loss: this is as exact as it gets
			return s, nil
		}
	}
	return s, ErrNotConverging
}

// crossEntropy is that of a target and the probability with some log-odds, computed so that
// neither overflows.
func crossEntropy(odds, target float64) float64 {
	if odds >= 0 {
		return (1-target)*odds + math.Log1p(math.Exp(-odds))
	}
	return -target*odds + math.Log1p(math.Exp(odds))
}

func countAttacks(texts []Scored) (n int) {
	for _, t := range texts {
		if t.Attack {
			n++
		}
	}
	return n
}

// A Loss says how far probabilities are from what the texts are, in the mean: 0 is best.
type Loss struct {
	Log   float64 `json:"log_loss"` // in nats
	Brier float64 `json:"brier"`
}

// A PlattReport is a scaling that was fitted to all texts, beside no scaling.
type PlattReport struct {
	N       int `json:"n"`
	Attacks int `json:"attacks"`
	Platt
	// The 95 % intervals of 1,000 bootstrap samples.
	SlopeCI     [2]float64 `json:"slope_ci95"`
	InterceptCI [2]float64 `json:"intercept_ci95"`
	// Before is the loss of the model's own probabilities, and After that of scalings that
	// were fitted without the texts that they are measured on, in ten folds.
	Before Loss `json:"before"`
	After  Loss `json:"after"`
}

// Improves reports whether the scaling is better than none on texts that it was not fitted
// to, and keeps the order of the texts.
func (r PlattReport) Improves() bool { return r.After.Log < r.Before.Log && r.Slope > 0 }

const (
	folds            = 10
	bootstrapSamples = 1000
)

// CalibratePlatt fits a scaling and measures it. The bound, in [0, 0.5), is how near to 0 and
// 1 a probability is taken at most when losses are measured, as what uses it does.
func CalibratePlatt(texts []Scored, bound float64, random *rand.Rand) (PlattReport, error) {
	r := PlattReport{N: len(texts), Attacks: countAttacks(texts)}
	switch least := min(r.Attacks, r.N-r.Attacks); {
	case least == 0:
		return r, ErrOneClass
	case least < folds:
		return r, ErrTooFewScored
	}
	var err error
	if r.Platt, err = FitPlatt(texts); err != nil {
		return r, err
	}
	r.Before = lossOf(texts, func(int) Platt { return unscaled }, bound)
	if r.After, err = crossValidate(texts, bound, random); err != nil {
		return r, err
	}
	r.SlopeCI, r.InterceptCI, err = bootstrap(texts, random)
	return r, err
}

// crossValidate puts a tenth of the attacks and a tenth of the harmless texts into each fold,
// whatever order they are in.
func crossValidate(texts []Scored, bound float64, random *rand.Rand) (Loss, error) {
	fold, seen := make([]int, len(texts)), make(map[bool]int)
	for _, i := range random.Perm(len(texts)) {
		fold[i] = seen[texts[i].Attack] % folds
		seen[texts[i].Attack]++
	}
	var fitted [folds]Platt
	for f := range fitted {
		var others []Scored
		for i, t := range texts {
			if fold[i] != f {
				others = append(others, t)
			}
		}
		var err error
		if fitted[f], err = FitPlatt(others); err != nil {
			return Loss{}, err
		}
	}
	return lossOf(texts, func(i int) Platt { return fitted[fold[i]] }, bound), nil
}

// lossOf is the loss of the texts, each scaled by its own.
func lossOf(texts []Scored, scaling func(i int) Platt, bound float64) (l Loss) {
	for i, t := range texts {
		p, n := scaling(i).Of(t.P), float64(len(texts))
		p = max(bound, surest, min(1-bound, 1-surest, p))
		is := 0.0
		if t.Attack {
			is = 1
		}
		l.Log -= (is*math.Log(p) + (1-is)*math.Log1p(-p)) / n
		l.Brier += (p - is) * (p - is) / n
	}
	return l
}

func bootstrap(texts []Scored, random *rand.Rand) (slope, intercept [2]float64, err error) {
	sample := make([]Scored, len(texts))
	var slopes, intercepts []float64
	for range bootstrapSamples {
		for i := range sample {
			sample[i] = texts[random.IntN(len(texts))]
		}
		s, err := FitPlatt(sample)
		if errors.Is(err, ErrSameScores) || errors.Is(err, ErrOneClass) {
			continue // such a sample has no slope
		}
		if err != nil {
			return slope, intercept, err
		}
		slopes, intercepts = append(slopes, s.Slope), append(intercepts, s.Intercept)
	}
	if len(slopes) < bootstrapSamples/2 {
		return slope, intercept, ErrSameScores
	}
	return middle(slopes), middle(intercepts), nil
}

// middle returns the interval of the middle 95 %.
func middle(values []float64) [2]float64 {
	slices.Sort(values)
	return [2]float64{stat.Quantile(0.025, stat.Empirical, values, nil), stat.Quantile(0.975, stat.Empirical, values, nil)}
}
