package kernel_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

func TestBadInputIsRefusedByName(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	type session = kernel.Session
	type evidence = kernel.Evidence
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		field  string
		change func(*session, *evidence)
	}{
		{"x", func(s *session, _ *evidence) { s.X[1] = nan }},
		{"x", func(s *session, _ *evidence) { s.X[1] = inf }},
		{"x", func(s *session, _ *evidence) { s.X = kernel.Point{} }},
		{"x", func(s *session, _ *evidence) { s.X = kernel.Point{0.5, 0.5, 0.5} }},
		{"x", func(s *session, _ *evidence) { s.X = kernel.Point{-0.2, 0.6, 0.6} }},
		{"x", func(s *session, _ *evidence) { s.X = kernel.Point{0.07, 0.43, 0.5} }},
		{"x", func(s *session, _ *evidence) { s.X, s.Policy = kernel.Point{5e-324, 0.5, 0.5}, "another" }},
		{"x", func(s *session, _ *evidence) { s.X, s.Policy = kernel.Point{0.5, 0, 0.5}, "another" }},
		{"x", func(s *session, _ *evidence) { s.X, s.Policy = kernel.Point{0.5, 0.5, 0}, "another" }},
		{"z", func(s *session, _ *evidence) { s.Z[2] = nan }},
		{"z", func(s *session, _ *evidence) { s.Z = kernel.Point{0.19, 0.4, 0.41} }},
		{"z", func(s *session, _ *evidence) { s.Z, s.Policy = kernel.Point{0, 0.5, 0.5}, "another" }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = nan }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = inf }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = -0.1 }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = 0.901 }},
		{"cusum_slow", func(s *session, _ *evidence) { s.CUSUMSlow = nan }},
		{"cusum_slow", func(s *session, _ *evidence) { s.CUSUMSlow = -0.1 }},
		{"cusum_slow", func(s *session, _ *evidence) { s.CUSUMSlow = 1.251 }},
		{"carry", func(s *session, _ *evidence) { s.Carry[0] = nan }},
		{"carry", func(s *session, _ *evidence) { s.Carry[1] = -1e-9 }},
		{"carry", func(s *session, _ *evidence) { s.Carry[2] = inf }},
		{"identity", func(_ *session, e *evidence) { e.Scores.Identity = nan }},
		{"coercion", func(_ *session, e *evidence) { e.Scores.Coercion = 1.1 }},
		{"exploitative", func(_ *session, e *evidence) { e.Scores.Exploitative = -0.1 }},
		{"harm_request", func(_ *session, e *evidence) { e.Scores.HarmRequest = inf }},
		{"sycophancy", func(_ *session, e *evidence) { e.Scores.Sycophancy = nan }},
		{"injection", func(_ *session, e *evidence) { e.Scores.Injection = nan }},
		{"prompt_threat_signal", func(_ *session, e *evidence) { e.ThreatSignal = nan }},
		{"prompt_threat_signal", func(_ *session, e *evidence) { e.ThreatSignal = -2.1 }},
		{"standing", func(_ *session, e *evidence) { e.Standing = []kernel.Reason{"because"} }},
	} {
		s, e := k.NewSession(), evidence{}
		c.change(&s, &e)
		_, err := k.Assess(s, e, kernel.Enforce)
		if !errors.Is(err, kernel.ErrInput) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s of %+v %+v: got %v", c.field, s, e, err)
		}
	}
	if _, err := k.Assess(k.NewSession(), evidence{}, "dream"); !errors.Is(err, kernel.ErrInput) {
		t.Errorf("an unknown mode gives %v", err)
	}
	for _, o := range []kernel.Output{{Confidence: nan}, {Confidence: 1.5}, {Category: "bad"}} {
		if _, err := k.Conclude(kernel.Turn{}, o); !errors.Is(err, kernel.ErrInput) {
			t.Errorf("%+v gives %v", o, err)
		}
	}
}

// A session of another policy is brought into range, and only such a one.
func TestMigration(t *testing.T) {
	old := kernel.DefaultPolicy()
	old.Floor, old.Tau, old.Kappa, old.CUSUMH, old.CUSUMSlowH = 0.001, 0.002, 0.9, 5, 7
	next := kernel.DefaultPolicy()
	next.Tau, next.Kappa = 0.12, 0.3
	from, to := newKernel(t, old), newKernel(t, next)
	r := newRandom(33)
	s := from.NewSession()
	for range 3000 {
		s = take(t, from, s, r.evidence(), kernel.Enforce, r.output()).Next
		turn := take(t, to, s, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
		b := turn.Before
		switch {
		case !turn.Migrated || b.Policy != to.PolicyHash() || turn.Next.Policy != to.PolicyHash():
			t.Fatal("the migration is not noted")
		case b.X.Min() < 0.12 || b.Z.Min() < (1-next.Kappa)/3 || b.CUSUM > next.CUSUMH || b.CUSUMSlow > next.CUSUMSlowH:
			t.Fatalf("migrated to %+v", b)
		case s.X.Min() >= 0.12 && b.X != s.X || b.CUSUM != min(s.CUSUM, next.CUSUMH) || b.CUSUMSlow != min(s.CUSUMSlow, next.CUSUMSlowH):
			t.Fatalf("%+v was in range and became %+v", s, b)
		case turn.SlowDrip:
			t.Fatal("the change of policy alone raised the alarm")
		}
		if again := take(t, to, turn.Next, kernel.Evidence{}, kernel.Enforce, kernel.Output{}); again.Migrated {
			t.Fatal("migrated twice")
		}
	}
}
