package evaluation_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/caddy-lex/lex/evaluation"
)

// Values from published tables and, below, by exact rational arithmetic.
func TestClopperPearson(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{
		{0, 10, 0, 30.8497},
		{5, 10, 18.7086, 81.2914},
		{10, 10, 69.1503, 100},
		{1, 100, 0.0253, 5.4459},
		{10, 100, 4.9005, 17.6223},
	} {
		got := evaluation.ClopperPearson(c.k, c.n)
		if math.Abs(got[0]-c.low) > 1e-4 || math.Abs(got[1]-c.high) > 1e-4 {
			t.Errorf("%d of %d: %v, want %v to %v", c.k, c.n, got, c.low, c.high)
		}
	}
}

// At each end of the interval the outcome, or one further out, has a probability of 2.5 %.
func TestClopperPearsonByExactSums(t *testing.T) {
	for _, c := range [][2]int64{{1, 3}, {2, 40}, {15, 300}, {299, 300}, {7, 2000}} {
		k, n := c[0], c[1]
		ends := evaluation.ClopperPearson(k, n)
		if got := binomialSum(k, n, n, ends[0]/100); math.Abs(got-0.025) > 1e-9 {
			t.Errorf("%d of %d: at least so many at the lower end: %v", k, n, got)
		}
		if got := binomialSum(0, k, n, ends[1]/100); math.Abs(got-0.025) > 1e-9 {
			t.Errorf("%d of %d: at most so many at the upper end: %v", k, n, got)
		}
	}
}

// binomialSum is the exact probability of from to to successes in n trials.
func binomialSum(from, to, n int64, p float64) float64 {
	success := new(big.Float).SetPrec(300).SetFloat64(p)
	failure := new(big.Float).SetPrec(300).Sub(big.NewFloat(1).SetPrec(300), success)
	power := func(x *big.Float, e int64) *big.Float {
		out := big.NewFloat(1).SetPrec(300)
		for range e {
			out.Mul(out, x)
		}
		return out
	}
	sum := new(big.Float).SetPrec(300)
	for k := from; k <= to; k++ {
		term := new(big.Float).SetPrec(300).SetInt(new(big.Int).Binomial(n, k))
		term.Mul(term, power(success, k)).Mul(term, power(failure, n-k))
		sum.Add(sum, term)
	}
	f, _ := sum.Float64()
	return f
}

// The numbers are Wilks's: (1 - rate)^n <= 0.025.
func TestNeeded(t *testing.T) {
	for rate, want := range map[float64]int64{0.5: 6, 0.05: 72, 0.01: 368, 0.005: 736, 0.002: 1843, 0.001: 3688} {
		n := evaluation.Needed(rate)
		if n != want || math.Pow(1-rate, float64(n)) > 0.025 || math.Pow(1-rate, float64(n-1)) <= 0.025 {
			t.Errorf("%v needs %d, want %d", rate, n, want)
		}
	}
}

// levels returns n texts, of which the given numbers have the given levels and all others
// none.
func levels(n int64, at map[int]int64) *evaluation.Levels {
	var l evaluation.Levels
	for level, count := range at {
		l[level] = count
		n -= count
	}
	l[0] += n
	return &l
}

func TestThresholdFor(t *testing.T) {
	for name, c := range map[string]struct {
		levels   *evaluation.Levels
		rate     float64
		refuseAt float64 // 0 for none
		ci       [2]float64
		refused  int64
	}{
		// 1 % of 999 texts: nine may be refused, since (9+1)/(999+1) is 1 %. The test at 5 %
		// rejects 1 % for 3 or fewer of 999, and for 18 or more.
		"the lowest that refuses nine":     {levels(999, map[int]int64{40: 30, 60: 8, 70: 1, 80: 6, 90: 3}), 0.01, 0.71, [2]float64{0.6, 0.81}, 9},
		"one more is one too many":         {levels(999, map[int]int64{40: 30, 50: 1, 60: 6, 70: 1, 80: 7, 90: 3}), 0.01, 0.81, [2]float64{0.5, 0.81}, 3},
		"no text is refused":               {levels(999, nil), 0.01, 0.31, [2]float64{0.31, 0.31}, 0},
		"three are refused whatever it is": {levels(999, map[int]int64{100: 3}), 0.01, 0.31, [2]float64{0.31, 0.31}, 3},
		"four are, so none is sure":        {levels(999, map[int]int64{100: 4}), 0.01, 0.31, [2]float64{0.31, 1}, 4},
		"nine are":                         {levels(999, map[int]int64{100: 9}), 0.01, 0.31, [2]float64{0.31, 1}, 9},
		"too many are":                     {levels(999, map[int]int64{100: 10}), 0.01, 0, [2]float64{}, 0},
		"enough texts":                     {levels(368, nil), 0.01, 0.31, [2]float64{0.31, 0.31}, 0},
		"too few texts":                    {levels(367, nil), 0.01, 0, [2]float64{}, 0},
		"no texts":                         {levels(0, nil), 0.01, 0, [2]float64{}, 0},
		"levels under the lowest are free": {levels(999, map[int]int64{30: 900}), 0.01, 0.31, [2]float64{0.31, 0.31}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := evaluation.ThresholdFor(c.levels, c.rate)
			if got.Rate != c.rate || got.Needed != evaluation.Needed(c.rate) || got.Refused != c.refused {
				t.Errorf("%+v", got)
			}
			if c.refuseAt == 0 {
				if got.RefuseAt != nil || got.RefuseAtCI != nil || got.RefusedCI != nil {
					t.Errorf("a threshold %v", *got.RefuseAt)
				}
				return
			}
			if got.RefuseAt == nil {
				t.Fatal("no threshold")
			}
			if *got.RefuseAt != c.refuseAt || *got.RefuseAtCI != c.ci {
				t.Errorf("refuse_at %v, interval %v; want %v, %v", *got.RefuseAt, *got.RefuseAtCI, c.refuseAt, c.ci)
			}
		})
	}
}

// Over many samples the rate is kept on average, and the interval holds the true threshold.
func TestThresholdsKeepTheRate(t *testing.T) {
	const runs = 2000
	for _, c := range []struct {
		n    int
		rate float64
	}{{400, 0.01}, {1000, 0.01}, {2000, 0.005}, {300, 0.05}} {
		random := rand.New(rand.NewPCG(2026, uint64(c.n)))
		// Above 0.31, levels fall off so that exactly the rate is at 0.80 or higher.
		above := func(threshold float64) float64 { return c.rate * math.Pow(1e4, (0.80-threshold)/0.49) }
		var rates float64
		covered, safe := 0, 0
		for range runs {
			var l evaluation.Levels
			for range c.n {
				level := 0.80 - 0.49*math.Log(random.Float64()/c.rate)/math.Log(1e4) // P(level >= t) = above(t)
				l[min(max(int(level*100), 0), 100)]++
			}
			got := evaluation.ThresholdFor(&l, c.rate)
			rates += above(*got.RefuseAt)
			if got.RefuseAtCI[0] <= 0.80 && 0.80 <= got.RefuseAtCI[1] {
				covered++
			}
			if got.RefuseAtCI[1] >= 0.80 {
				safe++
			}
		}
		if mean := rates / runs; mean > c.rate*1.02 || mean < c.rate*0.5 {
			t.Errorf("%d texts: the rate is %v on average, asked %v", c.n, mean, c.rate)
		}
		if covered < runs*94/100 || safe < runs*97/100 {
			t.Errorf("%d texts at %v: %d of %d intervals hold the threshold, %d ends keep the rate", c.n, c.rate, covered, runs, safe)
		}
	}
}
