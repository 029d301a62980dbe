package kernel

import (
	"fmt"
	"math"
	"slices"
)

// simplexSlack is how far a stored point's sum may be off 1.
const simplexSlack = 1e-9

// admit checks a session and brings one of another policy into this policy's
// range; it reports whether it did. The carried pressure stays as it is, and a
// slow-drip statistic is at most at its new alarm level.
func (k *Kernel) admit(s *Session) (migrated bool, err error) {
	if err := checkSession(s); err != nil {
		return false, err
	}
	if s.Policy == k.hash {
		return false, k.checkRange(s)
	}
	s.X = project(s.X, k.policy.Tau)
	s.Z = project(s.Z, k.policy.weightFloor())
	fast, slow := k.policy.Charts()
	if s.CUSUM >= fast.H && k.policy.Revision == 0 {
		s.CUSUM = fast.H / 2
	}
	s.CUSUM, s.CUSUMSlow = min(s.CUSUM, fast.H), min(s.CUSUMSlow, slow.H)
	s.Policy = k.hash
	return true, nil
}

// checkRange refuses a session that this policy cannot have left: the theorems
// start from the barrier set, so a state outside it is a fault, not an input.
func (k *Kernel) checkRange(s *Session) error {
	switch {
	case s.X.Min() < k.policy.Tau:
		return fmt.Errorf("%w: x is under tau", ErrInput)
	case s.Z.Min() < k.policy.weightFloor():
		return fmt.Errorf("%w: z is out of its range", ErrInput)
	case s.CUSUM > k.policy.CUSUMH || s.CUSUM == k.policy.CUSUMH && k.policy.Revision == 0:
		return fmt.Errorf("%w: cusum is over its alarm level", ErrInput)
	case s.CUSUMSlow > k.policy.CUSUMSlowH:
		return fmt.Errorf("%w: cusum_slow is over its alarm level", ErrInput)
	}
	return nil
}

func checkSession(s *Session) error {
	switch {
	case !onSimplex(s.X):
		return fmt.Errorf("%w: x is not a point of the open simplex", ErrInput)
	case !onSimplex(s.Z):
		return fmt.Errorf("%w: z is not a point of the open simplex", ErrInput)
	case !amount(s.CUSUM):
		return fmt.Errorf("%w: cusum is negative or not finite", ErrInput)
	case !amount(s.CUSUMSlow):
		return fmt.Errorf("%w: cusum_slow is negative or not finite", ErrInput)
	case !amount(s.Carry[0]) || !amount(s.Carry[1]) || !amount(s.Carry[2]):
		return fmt.Errorf("%w: carry is negative or not finite", ErrInput)
	}
	clearNegativeZeros(&s.CUSUM, &s.CUSUMSlow, &s.Carry[0], &s.Carry[1], &s.Carry[2])
	return nil
}

// minComponent is the smallest component that a stored point may have: a normal number,
// far under what any policy leaves.
const minComponent = 1e-300

// onSimplex is false for NaN and the infinities.
func onSimplex(p Point) bool {
	return p[0] >= minComponent && p[1] >= minComponent && p[2] >= minComponent && math.Abs(sum(p)-1) <= simplexSlack
}

// amount reports whether v is finite and >= 0.
func amount(v float64) bool { return v >= 0 && v <= math.MaxFloat64 }

func checkEvidence(e *Evidence) error {
	s := &e.Scores
	for _, f := range [...]struct {
		name  string
		value float64
	}{
		{"identity", s.Identity},
		{"coercion", s.Coercion},
		{"exploitative", s.Exploitative},
		{"harm_request", s.HarmRequest},
		{"sycophancy", s.Sycophancy},
		{"injection", s.Injection},
	} {
		if !inUnit(f.value) {
			return fmt.Errorf("%w: score %s is not in [0, 1]", ErrInput, f.name)
		}
	}
	if !(e.ThreatSignal >= -2 && e.ThreatSignal <= 2) {
		return fmt.Errorf("%w: prompt_threat_signal is not in [-2, 2]", ErrInput)
	}
	if e.Unassessed && (*s != (Scores{}) || e.ThreatSignal != 0 || e.SovereigntyDrift || e.Repeated) {
		return fmt.Errorf("%w: unassessed is true, but there is other evidence", ErrInput)
	}
	for _, r := range e.Standing {
		if !slices.Contains(priority[:], r) {
			return fmt.Errorf("%w: standing has an unknown reason", ErrInput)
		}
	}
	clearNegativeZeros(&s.Identity, &s.Coercion, &s.Exploitative, &s.HarmRequest, &s.Sycophancy, &s.Injection, &e.ThreatSignal)
	return nil
}

func checkOutput(o *Output) error {
	if !inUnit(o.Confidence) {
		return fmt.Errorf("%w: confidence is not in [0, 1]", ErrInput)
	}
	switch o.Category {
	case "", NoCapitulation, IdentityAdoption, ConstraintDisavowal, SycophanticCapitulation, HarmfulCompliance:
	default:
		return fmt.Errorf("%w: category is unknown", ErrInput)
	}
	clearNegativeZeros(&o.Confidence)
	return nil
}

// clearNegativeZeros writes -0 as 0: canonical JSON knows only one zero, and a receipt's
// inputs must come back as they were.
func clearNegativeZeros(values ...*float64) {
	for _, v := range values {
		if *v == 0 {
			*v = 0
		}
	}
}
