package kernel_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

func scores(identity, coercion, exploitative, harm, sycophancy, injection float64) kernel.Evidence {
	return kernel.Evidence{Scores: kernel.Scores{
		Identity: identity, Coercion: coercion, Exploitative: exploitative,
		HarmRequest: harm, Sycophancy: sycophancy, Injection: injection,
	}}
}

func TestSeverityAndAttackType(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for _, c := range []struct {
		name     string
		evidence kernel.Evidence
		severity float64
		attack   kernel.AttackType
		label    string
	}{
		{"nothing", kernel.Evidence{}, 0, kernel.NoAttack, kernel.LabelClear},
		{"just quiet", scores(0.2999, 0, 0, 0, 0, 0), 0.2999, kernel.NoAttack, kernel.LabelClear},
		{"just watched", scores(0, 0.30, 0, 0, 0, 0), 0.30, kernel.Coercion, kernel.LabelWatch},
		{"exactly at the threshold", scores(0, 0, 0, 0, 0.70, 0), 0.70, kernel.Sycophancy, kernel.LabelThreat},
		{"certain", scores(0, 0, 1, 0, 0, 0), 1, kernel.Exploitative, kernel.LabelThreat},
		{"injection is identity", scores(0.1, 0, 0, 0, 0, 0.6), 0.6, kernel.Identity, kernel.LabelWatch},
		{"injection and identity are one type", scores(0.6, 0, 0, 0, 0, 0.6), 0.6, kernel.Identity, kernel.LabelWatch},
		{"a second type adds", scores(0, 0, 0, 0.60, 0.40, 0), 1 - 0.4*0.9, kernel.HarmRequest, kernel.LabelWatch},
		{"a quiet second type adds nothing", scores(0, 0, 0, 0.60, 0.30, 0), 0.60, kernel.HarmRequest, kernel.LabelWatch},
		{"two high types", scores(0.50, 0.50, 0, 0, 0, 0), 1 - 0.5*0.8, kernel.Multi, kernel.LabelWatch},
		{"all certain", scores(1, 1, 1, 1, 1, 1), 1, kernel.Multi, kernel.LabelThreat},
	} {
		turn := take(t, k, k.NewSession(), c.evidence, kernel.Enforce, kernel.Output{})
		if math.Abs(turn.Severity-c.severity) > 1e-15 || turn.AttackType != c.attack || turn.Label != c.label {
			t.Errorf("%s: %v %s %s, want %v %s %s", c.name, turn.Severity, turn.AttackType, turn.Label, c.severity, c.attack, c.label)
		}
	}
}

func TestSeverityStaysInTheUnitInterval(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(30)
	for range 20_000 {
		e := r.evidence()
		turn := take(t, k, k.NewSession(), e, kernel.Enforce, kernel.Output{})
		s := e.Scores
		top := max(s.Identity, s.Coercion, s.Exploitative, s.HarmRequest, s.Sycophancy, s.Injection)
		if turn.Severity < top-1e-15 || turn.Severity > 1 {
			t.Fatalf("severity %v of %+v", turn.Severity, s)
		}
	}
}

func TestReasons(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	low := k.NewSession()
	low.X, low.Z = kernel.Point{0.46, 0.46, 0.08}, kernel.Point{0.4, 0.4, 0.2}
	lowAndDripping := low
	lowAndDripping.CUSUM = 0.9
	dripping := k.NewSession()
	dripping.CUSUM = 0.9
	suspected := scores(0.35, 0, 0, 0, 0, 0)
	with := func(e kernel.Evidence, change func(*kernel.Evidence)) kernel.Evidence { change(&e); return e }
	type reasons = []kernel.Reason
	for _, c := range []struct {
		name     string
		session  kernel.Session
		evidence kernel.Evidence
		output   kernel.Output
		want     reasons
	}{
		{"nothing", k.NewSession(), kernel.Evidence{}, kernel.Output{}, nil},
		{"rule", k.NewSession(), kernel.Evidence{DeniedBy: "r"}, kernel.Output{}, reasons{kernel.OperatorPolicy}},
		{"classifier", k.NewSession(), scores(0, 0.7, 0, 0, 0, 0), kernel.Output{}, reasons{kernel.SemanticClassifier}},
		{"under the classifier", k.NewSession(), scores(0, 0.699, 0, 0, 0, 0), kernel.Output{}, nil},
		{"degraded", k.NewSession(), with(scores(0, 0.5, 0, 0, 0, 0), func(e *kernel.Evidence) { e.Degraded = true }), kernel.Output{}, reasons{kernel.SemanticClassifier}},
		{"contrastive", k.NewSession(), with(suspected, func(e *kernel.Evidence) { e.ThreatSignal = 0.151 }), kernel.Output{}, reasons{kernel.ContrastiveThreat}},
		{"contrastive, at its threshold", k.NewSession(), with(suspected, func(e *kernel.Evidence) { e.ThreatSignal = 0.15 }), kernel.Output{}, nil},
		{"contrastive alone", k.NewSession(), kernel.Evidence{ThreatSignal: 2}, kernel.Output{}, nil},
		{"slow drip", dripping, suspected, kernel.Output{}, reasons{kernel.SlowDripAlarm}},
		{"self-reference", k.NewSession(), with(suspected, func(e *kernel.Evidence) { e.SovereigntyDrift = true }), kernel.Output{}, reasons{kernel.SovereigntyDrift}},
		{"self-reference alone", k.NewSession(), kernel.Evidence{SovereigntyDrift: true}, kernel.Output{}, nil},
		{"floor", low, scores(0.55, 0, 0, 0, 0, 0), kernel.Output{}, reasons{kernel.ConstitutionalFloor}},
		{"floor without severity", low, scores(0.49, 0, 0, 0, 0, 0), kernel.Output{}, nil},
		{"capitulation", k.NewSession(), kernel.Evidence{}, kernel.Output{Capitulated: true, Confidence: 0.1}, reasons{kernel.CapitulatedOutput}},
		{"standing", k.NewSession(), kernel.Evidence{Standing: reasons{kernel.CapitulatedOutput, kernel.SlowDripAlarm}}, kernel.Output{}, reasons{kernel.SlowDripAlarm, kernel.CapitulatedOutput}},
		{
			"everything", lowAndDripping,
			kernel.Evidence{Scores: kernel.Scores{Identity: 0.9}, ThreatSignal: 1, SovereigntyDrift: true, DeniedBy: "r"},
			kernel.Output{Capitulated: true},
			reasons{
				kernel.OperatorPolicy, kernel.SemanticClassifier, kernel.ContrastiveThreat, kernel.SlowDripAlarm,
				kernel.SovereigntyDrift, kernel.ConstitutionalFloor, kernel.CapitulatedOutput,
			},
		},
	} {
		for _, mode := range []kernel.Mode{kernel.Enforce, kernel.Observe} {
			turn := take(t, k, c.session, c.evidence, mode, c.output)
			if !slices.Equal(turn.Reasons, c.want) {
				t.Errorf("%s, %s: reasons %v, want %v", c.name, mode, turn.Reasons, c.want)
			}
			checkDecision(t, c.name, turn)
		}
	}
}

// checkDecision checks what must hold between the parts of any decision.
func checkDecision(t *testing.T, name string, turn kernel.Turn) {
	t.Helper()
	primary := kernel.Reason("")
	if len(turn.Reasons) > 0 {
		primary = turn.Reasons[0]
	}
	enforced := turn.Mode == kernel.Enforce
	mode := kernel.GovernorPass
	switch {
	case !enforced:
		mode = kernel.GovernorObserve
	case turn.Refused:
		mode = kernel.GovernorRefuse
	case turn.Intervened:
		mode = kernel.GovernorCorrect
	}
	switch {
	case turn.Refused != (enforced && len(turn.Reasons) > 0):
		t.Errorf("%s: refused %v in mode %s with reasons %v", name, turn.Refused, turn.Mode, turn.Reasons)
	case (turn.Band == kernel.Critical) != turn.Refused:
		t.Errorf("%s: band %s, refused %v", name, turn.Band, turn.Refused)
	case turn.PrimaryReason() != primary:
		t.Errorf("%s: primary reason %s", name, turn.PrimaryReason())
	case turn.GovernorMode != mode:
		t.Errorf("%s: governor mode %s, want %s", name, turn.GovernorMode, mode)
	}
}

// Observe computes the same step as enforce: only what acts differs.
func TestObserveMovesTheStateAsEnforceDoes(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(31)
	acting, watching := k.NewSession(), k.NewSession()
	for range 2000 {
		e, o := r.evidence(), r.output()
		acting = take(t, k, acting, e, kernel.Enforce, o).Next
		watching = take(t, k, watching, e, kernel.Observe, o).Next
		if acting != watching {
			t.Fatalf("enforce leads to %+v, observe to %+v", acting, watching)
		}
	}
}

func TestBandsByMargin(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	s := k.NewSession()
	s.X, s.Z = kernel.Point{0.08, 0.46, 0.46}, kernel.Point{0.2, 0.4, 0.4}
	seen := map[kernel.Band]bool{}
	for range 40 {
		turn := take(t, k, s, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
		want := kernel.Stressed
		switch {
		case turn.M >= 0.25:
			want = kernel.Optimal
		case turn.M >= 0.15:
			want = kernel.Alert
		}
		if turn.Band != want {
			t.Errorf("margin %v is %s, want %s", turn.M, turn.Band, want)
		}
		seen[turn.Band] = true
		s = turn.Next
	}
	if len(seen) != 3 {
		t.Errorf("recovery passed through %v", seen)
	}
}

// Lower edges are inclusive: a margin that stands exactly on one has the band.
func TestBandEdgesAreInclusive(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	rest := take(t, k, k.NewSession(), kernel.Evidence{}, kernel.Enforce, kernel.Output{})
	p := kernel.DefaultPolicy()
	p.Recovery, p.Optimal = 0.2, math.Nextafter(1.0/3, 0)
	s := kernel.Session{X: kernel.Point{0.3, 0.3, 0.4}, Z: kernel.Point{0.3, 0.3, 0.4}, Policy: "another"}
	margin := take(t, newKernel(t, p), s, kernel.Evidence{}, kernel.Enforce, kernel.Output{}).M
	for _, c := range []struct {
		optimal float64
		want    kernel.Band
	}{{margin, kernel.Optimal}, {math.Nextafter(margin, 1), kernel.Alert}} {
		p.Optimal = c.optimal
		turn := take(t, newKernel(t, p), s, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
		if turn.M != margin || turn.Band != c.want {
			t.Errorf("margin %v with the edge at %v is %s, want %s", turn.M, c.optimal, turn.Band, c.want)
		}
	}
	if rest.Band != kernel.Optimal {
		t.Errorf("the centre is %s", rest.Band)
	}
}

func TestOutputLeavesPressureForOneTurn(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for _, c := range []struct {
		output kernel.Output
		carry  kernel.Point
		active string
	}{
		{kernel.Output{}, kernel.Point{}, ""},
		{kernel.Output{Confidence: 1, Category: kernel.HarmfulCompliance}, kernel.Point{}, ""},
		{kernel.Output{LostThread: true}, kernel.Point{0.15, 0, 0}, "C"},
		{kernel.Output{Capitulated: true, Category: kernel.HarmfulCompliance, Confidence: 0.8}, kernel.Point{0, 0.4, 0}, "R"},
		{kernel.Output{Capitulated: true, Category: kernel.IdentityAdoption, Confidence: 1}, kernel.Point{0, 0, 0.5}, "S"},
		{kernel.Output{Capitulated: true, Category: kernel.ConstraintDisavowal, Confidence: 0.5}, kernel.Point{0, 0, 0.25}, "S"},
		{kernel.Output{Capitulated: true, Category: kernel.SycophanticCapitulation, Confidence: 0.5, LostThread: true}, kernel.Point{0.15, 0, 0.25}, "S"},
		{kernel.Output{Capitulated: true, Confidence: 0.5}, kernel.Point{0, 0, 0.25}, "S"},
	} {
		first := take(t, k, k.NewSession(), kernel.Evidence{}, kernel.Enforce, c.output)
		if first.Next.Carry != c.carry {
			t.Errorf("%+v leaves %v, want %v", c.output, first.Next.Carry, c.carry)
		}
		second := take(t, k, first.Next, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
		active := ""
		if second.Sensing.ActivePillar != nil {
			active = second.Sensing.ActivePillar.String()
		}
		if moved := c.active != ""; second.Sensing.Fired != moved || second.Sensing.CorrectionApplied != moved || active != c.active {
			t.Errorf("%+v is sensed as %+v on %q", c.output, second.Sensing, active)
		}
		if second.Next.Carry != (kernel.Point{}) {
			t.Errorf("%+v acts twice: %v", c.output, second.Next.Carry)
		}
	}
}

// Pressure that is equal on all pillars moves nothing, and is sensed as such.
func TestSensingTellsWhatMovedTheState(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	s := k.NewSession()
	s.Carry = kernel.Point{0.25, 0.25, 0.25}
	if sensed := take(t, k, s, kernel.Evidence{}, kernel.Enforce, kernel.Output{}).Sensing; !sensed.Fired || sensed.CorrectionApplied {
		t.Errorf("equal pressure is sensed as %+v", sensed)
	}
}

// Concluding twice is concluding once: the second output replaces the first.
func TestConcludeReplaces(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(32)
	s := k.NewSession()
	for range 500 {
		e, first, second := r.evidence(), r.output(), r.output()
		once := take(t, k, s, e, kernel.Enforce, second)
		twice, err := k.Conclude(take(t, k, s, e, kernel.Enforce, first), second)
		if err != nil {
			t.Fatal(err)
		}
		a, errA := k.Receipt(once).JSON()
		b, errB := k.Receipt(twice).JSON()
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Fatalf("after %+v then %+v:\n%s\nwant\n%s", first, second, b, a)
		}
		s = once.Next
	}
}

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
		{"z", func(s *session, _ *evidence) { s.Z[2] = nan }},
		{"z", func(s *session, _ *evidence) { s.Z = kernel.Point{0.19, 0.4, 0.41} }},
		{"z", func(s *session, _ *evidence) { s.Z, s.Policy = kernel.Point{0, 0.5, 0.5}, "another" }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = nan }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = inf }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = -0.1 }},
		{"cusum", func(s *session, _ *evidence) { s.CUSUM = 0.95 }},
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
	old.Floor, old.Tau, old.Kappa, old.CUSUMH = 0.001, 0.002, 0.9, 5
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
		case b.X.Min() < 0.12 || b.Z.Min() < (1-next.Kappa)/3 || b.CUSUM >= next.CUSUMH:
			t.Fatalf("migrated to %+v", b)
		case s.X.Min() >= 0.12 && b.X != s.X || s.CUSUM < next.CUSUMH && b.CUSUM != s.CUSUM:
			t.Fatalf("%+v was in range and became %+v", s, b)
		case turn.SlowDrip:
			t.Fatal("the change of policy alone raised the alarm")
		}
		if again := take(t, to, turn.Next, kernel.Evidence{}, kernel.Enforce, kernel.Output{}); again.Migrated {
			t.Fatal("migrated twice")
		}
	}
}
