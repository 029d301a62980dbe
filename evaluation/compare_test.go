package evaluation_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/evaluation"
)

// Two-sided tosses of a fair coin: the values of R's binom.test, and by hand where they are
// powers of two.
func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		a, b int
		want float64
	}{
		{0, 0, 1},
		{7, 7, 1},
		{0, 1, 1},
		{0, 5, 2.0 / 32},
		{6, 0, 2.0 / 64},
		{1, 5, 14.0 / 64},
		{2, 12, 212.0 / 16384},
		{0, 60, math.Pow(2, -59)},
		{107, 132, 2 * binomialSum(0, 107, 239, 0.5)},
	} {
		got, mirrored := evaluation.McNemar(c.a, c.b), evaluation.McNemar(c.b, c.a)
		if math.Abs(got-c.want) > 1e-9*c.want || got != mirrored {
			t.Errorf("%d and %d: %v and %v, want %v", c.a, c.b, got, mirrored, c.want)
		}
	}
}

// pairs returns pairs by what both, only the one, only the other and none refused.
func pairs(kind evaluation.Kind, both, onlyA, onlyB, none int) (out []evaluation.Pair) {
	for i := range both + onlyA + onlyB + none {
		p := evaluation.Pair{Kind: kind, Label: "l", Source: "s", Language: "en"}
		p.A = i < both+onlyA
		p.B = i < both || i >= both+onlyA && i < both+onlyA+onlyB
		out = append(out, p)
	}
	return out
}

func TestCompare(t *testing.T) {
	// The two questions of the General Social Survey in Agresti's textbooks, whose Wald
	// interval is -0.4 to 4.8 points.
	c := evaluation.Compare(append(pairs(evaluation.Attack, 227, 107, 132, 678), pairs(evaluation.Benign, 0, 0, 0, 50)...))
	if c.Records != 1194 || len(c.Totals) != 2 || len(c.Sources) != 2 || len(c.Languages) != 2 {
		t.Fatalf("%+v", c)
	}
	d := c.Totals[0]
	if d.N != 1144 || d.RefusedA != 334 || d.RefusedB != 359 || d.OnlyA != 107 || d.OnlyB != 132 {
		t.Errorf("%+v", d)
	}
	if math.Abs(d.Points-2.1853) > 1e-4 || math.Abs(d.CI[0]+0.4650) > 1e-4 || math.Abs(d.CI[1]-4.8281) > 1e-4 {
		t.Errorf("%v points, %v", d.Points, d.CI)
	}
	// Where nobody refuses anything, the interval is not a point.
	if d := c.Totals[1]; d.Points != 0 || d.P != 1 || d.CI[0] > -3 || d.CI[1] < 3 || d.CI[1] > 5 {
		t.Errorf("%+v", d)
	}
	if d := evaluation.Compare(pairs(evaluation.Attack, 0, 0, 1, 0)).Totals[0]; d.Points != 100 || d.CI[1] > 100 || d.CI[0] > 0 {
		t.Errorf("one record: %+v", d)
	}
	if empty := evaluation.Compare(nil); empty.Records != 0 || len(empty.Totals) != 0 {
		t.Errorf("%+v", empty)
	}
}

// Over many samples the intervals hold the true difference, also where few records differ.
func TestPairedIntervalsHold(t *testing.T) {
	const runs = 1000
	for _, c := range []struct {
		n            int
		onlyA, onlyB float64
	}{{100, 0.02, 0.02}, {100, 0.10, 0.20}, {1000, 0.001, 0.004}, {1000, 0.05, 0.05}} {
		random := rand.New(rand.NewPCG(7, uint64(c.n)))
		covered, rejected := 0, 0
		for range runs {
			onlyA, onlyB := 0, 0
			for range c.n {
				switch x := random.Float64(); {
				case x < c.onlyA:
					onlyA++
				case x < c.onlyA+c.onlyB:
					onlyB++
				}
			}
			d := evaluation.Compare(pairs(evaluation.Attack, 0, onlyA, onlyB, c.n-onlyA-onlyB)).Totals[0]
			if truth := 100 * (c.onlyB - c.onlyA); d.CI[0] <= truth && truth <= d.CI[1] {
				covered++
			}
			if d.P <= 0.05 {
				rejected++
			}
		}
		if covered < runs*93/100 {
			t.Errorf("%+v: %d of %d intervals hold the difference", c, covered, runs)
		}
		if c.onlyA == c.onlyB && rejected > runs*7/100 {
			t.Errorf("%+v: McNemar's test rejects %d of %d times where nothing differs", c, rejected, runs)
		}
	}
}

func TestWriteComparison(t *testing.T) {
	c := evaluation.Compare(append(pairs(evaluation.Attack, 20, 2, 12, 66), pairs(evaluation.Benign, 1, 0, 3, 496)...))
	c.A, c.B, c.LeftOut = "one", "other", map[string]int{"without a verdict": 3}
	var out bytes.Buffer
	if err := c.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	const want = `A: one
B: other
600 records
left out: 3 without a verdict

Totals (refused, and B less A in percentage points with 95 % intervals)
kind      n    A   B   A only  B only  B - A                  p (McNemar)
attack    100  22  32  2       12      +10.0 (+2.6 to +17.0)  0.0129
benign    500  1   4   0       3       +0.6 (-0.2 to +1.4)    0.25
`
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "attack  l  s  100") || !strings.Contains(got, "benign  en    500") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
