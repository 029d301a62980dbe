package kernel_test

import (
	"math"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// This file checks the numbers that the documentation gives for the default
// policy.

// single gives the evidence of one type with a score.
var single = map[string]func(float64) kernel.Evidence{
	"identity":     func(s float64) kernel.Evidence { return scores(s, 0, 0, 0, 0, 0) },
	"coercion":     func(s float64) kernel.Evidence { return scores(0, s, 0, 0, 0, 0) },
	"exploitative": func(s float64) kernel.Evidence { return scores(0, 0, s, 0, 0, 0) },
	"harm_request": func(s float64) kernel.Evidence { return scores(0, 0, 0, s, 0, 0) },
	"sycophancy":   func(s float64) kernel.Evidence { return scores(0, 0, 0, 0, s, 0) },
	"injection":    func(s float64) kernel.Evidence { return scores(0, 0, 0, 0, 0, s) },
}

func TestGovernorFiresBeforeTheRefusalThreshold(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for name, evidence := range single {
		fires := func(s float64) bool {
			return take(t, k, k.NewSession(), evidence(s), kernel.Enforce, kernel.Output{}).Intervened
		}
		s := 0.0
		for !fires(s) {
			s += 0.001
		}
		if s < 0.605 || s > 0.655 {
			t.Errorf("%s fires the governor at %.3f, not at 0.61 to 0.65", name, s)
		}
	}
}

func TestOneLoudTurnFades(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for name, evidence := range single {
		turn := take(t, k, k.NewSession(), evidence(0.85), kernel.Enforce, kernel.Output{})
		for i, want := range []float64{0.08, 0.148, 0.21, 0.26} {
			if i > 0 {
				turn = take(t, k, turn.Next, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
			}
			if math.Abs(turn.M-want) > 0.012 {
				t.Errorf("%s: margin %.4f on turn %d after the attack, not about %v", name, turn.M, i, want)
			}
		}
	}
}

// From anywhere, ALERT is back within 3 and OPTIMAL within 6 quiet turns.
func TestRecoveryFromAnywhere(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	grid := func(floor float64, visit func(kernel.Point)) {
		const steps = 12
		for a := range steps + 1 {
			for b := range steps + 1 - a {
				u := (1 - 3*floor) / steps
				p := kernel.Point{floor + float64(a)*u, floor + float64(b)*u, floor + float64(steps-a-b)*u}
				visit(kernel.Point{max(p[0], floor), max(p[1], floor), max(p[2], floor)})
			}
		}
	}
	visited := 0
	grid(0.08, func(x kernel.Point) {
		grid((1-0.4)/3, func(z kernel.Point) {
			visited++
			s := kernel.Session{X: x, Z: z, Policy: k.PolicyHash()}
			for turn := 1; turn <= 6; turn++ {
				step := take(t, k, s, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
				if turn == 3 && step.M < 0.15 || turn == 6 && step.M < 0.25 {
					t.Fatalf("from x %v z %v the margin is %v after %d turns", x, z, step.M, turn)
				}
				s = step.Next
			}
		})
	})
	if visited != 91*91 {
		t.Fatalf("visited %d points", visited)
	}
}

// alarms returns the turns, from 1, on which the slow-drip test alarms.
func alarms(t *testing.T, k *kernel.Kernel, severities []float64) []int {
	t.Helper()
	var on []int
	s := k.NewSession()
	for i, severity := range severities {
		turn := take(t, k, s, scores(severity, 0, 0, 0, 0, 0), kernel.Enforce, kernel.Output{})
		if turn.SlowDrip {
			on = append(on, i+1)
		}
		s = turn.Next
	}
	return on
}

func TestSlowDrip(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	steady := func(v float64, n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	climb := steady(0.40, 10)
	for i := range climb {
		climb[i] += 0.15 * float64(i) / 9
	}
	for _, c := range []struct {
		name       string
		severities []float64
		first      int // the first alarm, 0 for none
	}{
		{"a climb from 0.40 to 0.55 over ten turns", climb, 7},
		{"a steady 0.40", steady(0.40, 12), 10},
		{"a steady 0.30 is ordinary", steady(0.30, 1000), 0},
		{"quiet", steady(0.05, 1000), 0},
		{"one loud turn and quiet ones", append([]float64{1}, steady(0.1, 50)...), 0},
		{"drips between quiet turns", []float64{0.6, 0.1, 0.6, 0.1, 0.6, 0.1, 0.6, 0.1, 0.6, 0.1, 0.6}, 9},
	} {
		on := alarms(t, k, c.severities)
		if c.first == 0 && len(on) > 0 || c.first > 0 && (len(on) == 0 || on[0] != c.first) {
			t.Errorf("%s: alarms on turns %v, want the first on %d", c.name, on, c.first)
		}
	}
}

// An alarm falls only on a turn over k, and leaves its statistic at the level.
func TestAlarmFallsOnADrip(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(40)
	s := k.NewSession()
	fell := 0
	for range 5000 {
		turn := take(t, k, s, r.evidence(), kernel.Enforce, kernel.Output{})
		if turn.SlowDrip {
			fell++
			if turn.Severity < 0.31 || turn.Next.CUSUM != 0.85 && turn.Next.CUSUMSlow != 1.2 {
				t.Fatalf("alarm at severity %v leaves %v and %v", turn.Severity, turn.Next.CUSUM, turn.Next.CUSUMSlow)
			}
			if loud := turn.Severity >= 0.70; !loud && turn.AttackType != kernel.SlowDrip && !turn.Evidence.Degraded {
				t.Fatalf("a quiet alarm is named %s", turn.AttackType)
			}
		}
		s = turn.Next
	}
	if fell == 0 {
		t.Fatal("no alarm fell")
	}
}

// No turn of a severity under 0.50 is refused by the floor, whatever happened
// before, and the worst that an attacker can leave is the margin tau.
func TestAttackerCannotPoisonTheSession(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(41)
	s := k.NewSession()
	for range 20_000 {
		e := r.evidence()
		turn := take(t, k, s, e, kernel.Enforce, r.output())
		for _, reason := range turn.Reasons {
			if reason == kernel.ConstitutionalFloor && turn.Severity < 0.50 {
				t.Fatalf("refused by the floor at severity %v", turn.Severity)
			}
		}
		if turn.Next.X.Min() < 0.08 {
			t.Fatalf("left at %v", turn.Next.X)
		}
		s = turn.Next
	}
}
