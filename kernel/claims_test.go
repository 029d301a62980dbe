package kernel_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
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

// firstAlarm returns the turn, from 1, on which the slow-drip test first alarms; 0 for none.
func firstAlarm(t *testing.T, k *kernel.Kernel, severity func(turn int) float64) int {
	t.Helper()
	s := k.NewSession()
	for turn := 1; turn <= 1000; turn++ {
		step := take(t, k, s, scores(severity(turn), 0, 0, 0, 0, 0), kernel.Enforce, kernel.Output{})
		if step.SlowDrip {
			return turn
		}
		s = step.Next
	}
	return 0
}

func TestSlowDrip(t *testing.T) {
	every := func(n int, severity float64) func(int) float64 {
		return func(turn int) float64 {
			if turn%n == 1%n {
				return severity
			}
			return 0
		}
	}
	climb := func(from, to float64, turns int) func(int) float64 {
		return func(turn int) float64 { return from + (to-from)*float64(min(turn, turns)-1)/float64(turns-1) }
	}
	page, err := os.ReadFile("../docs/kernel.md")
	if err != nil {
		t.Fatal(err)
	}
	turn := func(n int) string {
		if n == 0 {
			return "never"
		}
		return strconv.Itoa(n)
	}
	now, before := newKernel(t, kernel.DefaultPolicy()), newKernel(t, revision0(kernel.DefaultPolicy()))
	for _, c := range []struct {
		name        string
		severity    func(int) float64
		first, once int // the first alarm, 0 for none, now and under revision 0
	}{
		{"constant 0.31", every(1, 0.31), 0, 95},
		{"constant 0.40", every(1, 0.40), 10, 10},
		{"0.45 every 2nd turn", every(2, 0.45), 25, 0},
		{"0.60 every 2nd turn", every(2, 0.60), 9, 11},
		{"0.60 every 3rd turn", every(3, 0.60), 16, 0},
		{"0.67 every 4th turn", every(4, 0.67), 17, 0},
		{"0.69 every 5th turn", every(5, 0.69), 21, 0},
		{"from 0.40 to 0.55 over 10 turns", climb(0.40, 0.55, 10), 7, 7},
		{"from 0.10 to 0.60 over 20 turns", climb(0.10, 0.60, 20), 17, 17},
	} {
		if first, once := firstAlarm(t, now, c.severity), firstAlarm(t, before, c.severity); first != c.first || once != c.once {
			t.Errorf("%s: the first alarm is on turn %d, and under revision 0 on %d, want %d and %d", c.name, first, once, c.first, c.once)
		}
		if row := fmt.Sprintf("| %s | %s | %s |", c.name, turn(c.first), turn(c.once)); !strings.Contains(string(page), row) {
			t.Errorf("docs/kernel.md does not say: %s", row)
		}
	}
}

// Turns without an attack raise no alarm, and one loud one does not either.
func TestNoSlowDrip(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	quiet := func(int) float64 { return 0.30 }
	once := func(turn int) float64 { return map[bool]float64{true: 1}[turn == 1] }
	if a, b := firstAlarm(t, k, quiet), firstAlarm(t, k, once); a != 0 || b != 0 {
		t.Errorf("alarms on turns %d and %d", a, b)
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
			if turn.Severity < 0.31 || turn.Next.CUSUM != 0.90 && turn.Next.CUSUMSlow != 1.25 {
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
