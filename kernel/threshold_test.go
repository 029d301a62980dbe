package kernel_test

import (
	"math"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// A policy that refuses from t on refuses exactly the turns whose level is at least t.
func TestLevelIsTheHighestRefusingThreshold(t *testing.T) {
	r := newRandom(15)
	counts := map[bool]int{}
	var byFloor, byThreat int
	for range 20_000 {
		p := r.policy()
		p.Revision = r.IntN(2)
		p.RefuseAt = r.pick(0.31, 0.99, 0.7, p.SevereAt)
		p.RefuseAtDegraded = math.Min(p.RefuseAtDegraded, p.RefuseAt)
		k := newKernel(t, p)
		s, e := r.anySession(k), r.insistedEvidence(p)
		s.Policy, e.Degraded, e.Standing = k.PolicyHash(), false, nil
		if p.Revision == 0 {
			s.CUSUM, s.CUSUMSlow = 0, 0 // an alarm leaves less than its level there
		}
		turn := take(t, k, s, e, kernel.Observe, kernel.Output{})
		level := k.Level(&turn)
		if level < 0 || level > 1 {
			t.Fatalf("level %v", level)
		}
		if turn.Severity < p.RefuseAt && len(turn.Reasons) == 1 {
			switch turn.Reasons[0] {
			case kernel.ConstitutionalFloor:
				byFloor++
			case kernel.ContrastiveThreat:
				byThreat++
			}
		}
		at := r.pick(0.31, 0.99, p.RefuseAt, math.Nextafter(p.RefuseAt, 1), clampThreshold(level), clampThreshold(math.Nextafter(level, 1)), 0.99)
		other := newKernel(t, p.RefusingFrom(at))
		s.Policy = other.PolicyHash()
		again := take(t, other, s, e, kernel.Enforce, kernel.Output{})
		counts[again.Refused]++
		if again.Refused != (level >= at) {
			t.Fatalf("level %v, refused from %v: %v\nfrom %v: %v\npolicy %+v\nevidence %+v", level, p.RefuseAt, turn.Reasons, at, again.Reasons, p, e)
		}
	}
	if counts[true] < 1000 || counts[false] < 1000 || byFloor == 0 || byThreat == 0 {
		t.Errorf("refused and passed %v, by the floor alone %d, by the contrastive signal alone %d", counts, byFloor, byThreat)
	}
}

// clampThreshold returns the nearest threshold that a policy may have.
func clampThreshold(v float64) float64 { return min(max(v, 0.31), 0.99) }

// An answer that gives in does not raise the level of its prompt.
func TestLevelIsThePromptsAlone(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	turn := take(t, k, k.NewSession(), kernel.Evidence{Scores: kernel.Scores{Coercion: 0.4}}, kernel.Enforce,
		kernel.Output{Capitulated: true, Category: kernel.HarmfulCompliance, Confidence: 1})
	if got := k.Level(&turn); !turn.Refused || got != 0.4 {
		t.Errorf("level %v, refused %v", got, turn.Refused)
	}
}

func TestHundredths(t *testing.T) {
	for n := range 101 {
		at := float64(n) / 100
		if got := kernel.Hundredths(at); got != n {
			t.Errorf("%v: %d", at, got)
		}
		if got := kernel.Hundredths(math.Nextafter(at, 0)); n > 0 && got != n-1 {
			t.Errorf("just under %v: %d", at, got)
		}
		if got := kernel.Hundredths(math.Nextafter(at, 1)); n < 100 && got != n {
			t.Errorf("just over %v: %d", at, got)
		}
	}
}

// A higher threshold does not let a prompt under it come again and again: docs/thresholds.md
// names the turns.
func TestRepeatedPromptsUnderAHigherThreshold(t *testing.T) {
	for refuseAt, want := range map[float64]int{0.70: 2, 0.80: 3} {
		k := newKernel(t, kernel.DefaultPolicy().RefusingFrom(refuseAt))
		s, refused := k.NewSession(), 0
		for i := 1; refused == 0 && i < 10; i++ {
			turn := take(t, k, s, kernel.Evidence{Scores: kernel.Scores{Coercion: 0.62}}, kernel.Enforce, kernel.Output{})
			if turn.Refused {
				refused = i
			}
			s = turn.Next
		}
		if refused != want {
			t.Errorf("refused from %v: turn %d is refused first, want %d", refuseAt, refused, want)
		}
	}
}
