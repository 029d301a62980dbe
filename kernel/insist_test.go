package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// Asking again never turns a refusal into a pass: whatever session a turn was refused in,
// the session that it left refuses the same evidence, for as long as it is insisted on.
func TestInsistingNeverHelps(t *testing.T) {
	const walkers, perPolicy = 8, 200
	for seed := range uint64(walkers) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := newRandom(500 + seed)
			var k *kernel.Kernel
			alone := map[kernel.Reason]int{}
			for i := range 2 * randomSteps / walkers {
				if i%perPolicy == 0 {
					k = newKernel(t, kernel.DefaultPolicy())
					if r.IntN(2) == 0 {
						k = newKernel(t, r.insistedPolicy())
					}
				}
				s, e := r.anySession(k), r.insistedEvidence(k.Policy())
				turn := insist(t, k, s, e, 3)
				if len(turn.Reasons) == 1 {
					alone[turn.Reasons[0]]++
				}
			}
			for _, reason := range []kernel.Reason{
				kernel.OperatorPolicy, kernel.SemanticClassifier, kernel.ContrastiveThreat, kernel.SlowDripAlarm,
				kernel.SovereigntyDrift, kernel.ConstitutionalFloor,
			} {
				if alone[reason] < randomSteps/walkers/1000 {
					t.Errorf("%s refused only %d turns alone", reason, alone[reason])
				}
			}
		})
	}
}

// insist asks the same again and again, and returns the first turn.
func insist(t *testing.T, k *kernel.Kernel, s kernel.Session, e kernel.Evidence, times int) kernel.Turn {
	t.Helper()
	first, err := k.Assess(s, e, kernel.Enforce)
	if err != nil {
		t.Fatal(err)
	}
	turn := first
	for again := 1; again <= times && turn.Refused; again++ {
		next, err := k.Assess(turn.Next, e, kernel.Enforce)
		if err != nil {
			t.Fatal(err)
		}
		if !next.Refused {
			t.Fatalf("asked again %d times it passes\npolicy %+v\nsession %+v\nevidence %+v\nwas %v, m_floor %v, is %v\nleft %+v",
				again, k.Policy(), s, e, turn.Reasons, turn.MFloor, next.MFloor, turn.Next)
		}
		turn = next
	}
	return first
}

// insistedPolicy is a policy whose thresholds are extreme as well.
func (r random) insistedPolicy() kernel.Policy {
	p := r.policy()
	p.SevereAt = r.pick(p.WatchAt, 1, 0.5, math.Nextafter(p.WatchAt, 1))
	p.ThreatSeverity = r.pick(0, 1, 0, 0.5)
	p.CUSUMK, p.CUSUMH, p.CUSUMRelief = r.pick(0, 1, 1e-9, 0.31), r.pick(0, 10, 1e-9, 0.9), r.pick(0, 1, 1e-9, 1)
	p.CUSUMSlowK, p.CUSUMSlowH, p.CUSUMSlowRelief = r.pick(0, 1, 0.31), r.pick(0, 10, 1.25), r.pick(0, 1, 1, 0.04)
	if p.Validate() != nil {
		return r.insistedPolicy()
	}
	return p
}

// anySession is a session that the kernel accepts, whether or not it can come to be.
func (r random) anySession(k *kernel.Kernel) kernel.Session {
	p, s := k.Policy(), r.session(k)
	s.CUSUM = r.pick(0, p.CUSUMH, 0, p.CUSUMH, math.Nextafter(p.CUSUMH, 0))
	s.CUSUMSlow = r.pick(0, p.CUSUMSlowH, 0, p.CUSUMSlowH, math.Nextafter(p.CUSUMSlowH, 0))
	if r.IntN(8) == 0 {
		s.Policy = "another"
	}
	return s
}

// insistedEvidence is mostly evidence on the edge of a refusal.
func (r random) insistedEvidence(p kernel.Policy) kernel.Evidence {
	e := r.evidence()
	edges := []float64{p.WatchAt, p.SevereAt, p.CUSUMK, p.CUSUMSlowK, math.Nextafter(p.SevereAt, 1), math.Nextafter(p.RefuseAt, 0), p.ThreatSeverity}
	one := r.pick(0, 1, edges...)
	switch r.IntN(5) {
	case 0:
		e.Scores = kernel.Scores{Identity: one}
	case 1:
		e.Scores = kernel.Scores{HarmRequest: one, Sycophancy: r.pick(0, 0.6, 0.3, 0.4)}
	case 2:
		e.Scores = kernel.Scores{Exploitative: one, Coercion: one}
	case 3:
		e = kernel.Evidence{Scores: kernel.Scores{Coercion: one}}
	}
	switch r.IntN(16) {
	case 0:
		e.Repeated = true
	case 1:
		e = kernel.Evidence{Unassessed: true}
	}
	return e
}

// The turn whose refusal adaptation undid: at severity 0.60 on every other turn, 16 of 60
// were refused, because the weights had moved towards the attacked pillar and lifted the
// raw margin over the floor.
func TestARepeatedAttackIsNotRefusedLess(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for name, evidence := range single {
		s, refused := k.NewSession(), 0
		for i := range 60 {
			turn := take(t, k, s, evidence(0.60), kernel.Enforce, kernel.Output{})
			if turn.Refused {
				refused++
			} else if refused > 0 {
				t.Fatalf("%s: attack %d passes after %d were refused", name, i+1, refused)
			}
			s = take(t, k, turn.Next, kernel.Evidence{}, kernel.Enforce, kernel.Output{}).Next
		}
		if refused != 59 { // the first meets a session at rest
			t.Errorf("%s: only %d of 60 attacks were refused", name, refused)
		}
	}
}

// A refused turn generated nothing, so what an answer left still acts on the next one; a
// turn that was answered has used it.
func TestARefusedTurnLeavesTheCarry(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	s := k.NewSession()
	s.Carry = kernel.Point{0, 0.1, 0.3}
	out := kernel.Output{Capitulated: true, Category: kernel.HarmfulCompliance, Confidence: 1}
	for name, c := range map[string]struct {
		evidence kernel.Evidence
		output   kernel.Output
		want     kernel.Point
	}{
		"refused":                     {scores(0.9, 0, 0, 0, 0, 0), kernel.Output{}, s.Carry},
		"refused again":               {kernel.Evidence{Scores: kernel.Scores{Identity: 0.9}, Repeated: true}, kernel.Output{}, s.Carry},
		"refused, and observed":       {scores(0.9, 0, 0, 0, 0, 0), out, kernel.Point{0, 0.5, 0.3}},
		"answered":                    {kernel.Evidence{}, kernel.Output{}, kernel.Point{}},
		"answered, then refused":      {kernel.Evidence{}, out, kernel.Point{0, 0.5, 0}},
		"refused for its older state": {kernel.Evidence{Standing: []kernel.Reason{kernel.CapitulatedOutput}}, kernel.Output{}, s.Carry},
	} {
		if got := take(t, k, s, c.evidence, kernel.Observe, c.output).Next.Carry; got != c.want {
			t.Errorf("%s: leaves %v, want %v", name, got, c.want)
		}
	}
}

// From the centre the floor judges the raw state's own margin. Elsewhere it knows the
// session by the pressed pillar alone: the weights and the other two do not count.
func TestTheFloorKnowsOnlyThePressedPillar(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(73)
	for range 20_000 {
		e := scores(r.pick(0.5, 1, 0.5), 0, 0, 0, 0.6*r.Float64(), 0)
		turn := take(t, k, k.NewSession(), e, kernel.Enforce, kernel.Output{})
		if math.Abs(turn.MFloor-turn.MBefore) > 1e-15 {
			t.Fatalf("%+v from the centre: m_floor %v, m_before %v", e.Scores, turn.MFloor, turn.MBefore)
		}
		a, b := r.session(k), r.session(k)
		a.Carry, b.Carry = kernel.Point{}, kernel.Point{}
		rest := 1 - a.X[kernel.Sovereignty]
		b.X = kernel.Point{rest / 4, rest - rest/4, a.X[kernel.Sovereignty]}
		if b.X.Min() < 0.08 {
			continue
		}
		one, two := take(t, k, a, e, kernel.Enforce, kernel.Output{}), take(t, k, b, e, kernel.Enforce, kernel.Output{})
		if one.MFloor != two.MFloor || one.MFloor == 0 {
			t.Fatalf("%+v: m_floor %v from %v and %v from %v", e.Scores, one.MFloor, a.X, two.MFloor, b.X)
		}
	}
}
