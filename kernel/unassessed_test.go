package kernel_test

import (
	"errors"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// A turn that nobody read neither presses on a session nor relieves it, and is never
// called clear. The pressure that the last answer left waits for a turn that is read.
func TestAnUnassessedTurnTakesNoStep(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(72)
	s := k.NewSession()
	for range 500 {
		s = take(t, k, s, r.evidence(), kernel.Enforce, r.output()).Next
		turn := take(t, k, s, kernel.Evidence{Unassessed: true}, kernel.Enforce, kernel.Output{})
		if turn.Next != s || turn.Refused || turn.SlowDrip || turn.Intervened || turn.Label != kernel.LabelUnassessed {
			t.Fatalf("the session %+v became %+v", s, turn)
		}
		denied := take(t, k, s, kernel.Evidence{Unassessed: true, DeniedBy: "rule"}, kernel.Enforce, kernel.Output{})
		if denied.Next != s || !denied.Refused || denied.Label != kernel.LabelUnassessed {
			t.Fatalf("the session %+v became %+v", s, denied)
		}
		answered := take(t, k, s, kernel.Evidence{Unassessed: true}, kernel.Enforce, r.output())
		for i, left := range answered.Next.Carry {
			if left < s.Carry[i] {
				t.Fatalf("of the pressure %v only %v is left", s.Carry, answered.Next.Carry)
			}
		}
		s = answered.Next
	}
}

func TestUnassessedAndEvidenceExclude(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for name, e := range map[string]kernel.Evidence{
		"a score":        {Scores: kernel.Scores{Injection: 0.01}},
		"a signal":       {ThreatSignal: -0.1},
		"self-reference": {SovereigntyDrift: true},
		"repeated":       {Repeated: true},
	} {
		e.Unassessed = true
		if _, err := k.Assess(k.NewSession(), e, kernel.Enforce); !errors.Is(err, kernel.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
