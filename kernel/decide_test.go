package kernel_test

import (
	"math"
	"slices"
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
	lowAndDripping.CUSUM = 0.89
	dripping := k.NewSession()
	dripping.CUSUM = 0.89
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
		{"contrastive", k.NewSession(), with(suspected, func(e *kernel.Evidence) { e.ThreatSignal, e.Scores.Identity = 0.151, 0.50 }), kernel.Output{}, reasons{kernel.ContrastiveThreat}},
		{"contrastive, hardly suspected", k.NewSession(), with(suspected, func(e *kernel.Evidence) { e.ThreatSignal, e.Scores.Identity = 2, 0.499 }), kernel.Output{}, nil},
		{"contrastive, at its threshold", k.NewSession(), with(suspected, func(e *kernel.Evidence) { e.ThreatSignal, e.Scores.Identity = 0.15, 0.50 }), kernel.Output{}, nil},
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

// A policy may let the contrastive signal refuse at any severity, but not a prompt that
// nothing else suspects.
func TestAContrastiveSignalAloneRefusesNothing(t *testing.T) {
	p := kernel.DefaultPolicy()
	p.ThreatSeverity = 0
	k := newKernel(t, p)
	for score, want := range map[float64]bool{0: false, 0.299: false, 0.3: true} {
		e := scores(0, score, 0, 0, 0, 0)
		e.ThreatSignal = 2
		if turn := take(t, k, k.NewSession(), e, kernel.Enforce, kernel.Output{}); turn.Refused != want {
			t.Errorf("a score of %v: %v", score, turn.Reasons)
		}
	}
}

// An alarm names the attack only when no type does so by itself.
func TestAlarmNamesTheQuietAttack(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	dripping := k.NewSession()
	dripping.CUSUM = 0.89
	for _, c := range []struct {
		evidence kernel.Evidence
		want     kernel.AttackType
	}{
		{scores(0, 0.699, 0, 0, 0, 0), kernel.SlowDrip},
		{scores(0.6, 0.6, 0, 0, 0, 0), kernel.SlowDrip},
		{scores(0, 0.70, 0, 0, 0, 0), kernel.Coercion},
		{scores(0.8, 0.6, 0, 0, 0, 0), kernel.Multi},
	} {
		turn := take(t, k, dripping, c.evidence, kernel.Enforce, kernel.Output{})
		if !turn.SlowDrip || turn.AttackType != c.want {
			t.Errorf("%+v: alarm %v, named %s, want %s", c.evidence.Scores, turn.SlowDrip, turn.AttackType, c.want)
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
	s := kernel.Session{X: kernel.Point{0.3, 0.3, 0.4}, Z: kernel.Point{0.3, 0.3, 0.4}, Policy: "another"}
	quiet := func(p kernel.Policy) kernel.Turn {
		return take(t, newKernel(t, p), s, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
	}
	margin := quiet(kernel.DefaultPolicy()).M
	over := math.Nextafter(margin, 1)
	for _, c := range []struct {
		recovery, optimal float64
		want              kernel.Band
	}{
		{0.2, margin, kernel.Optimal},
		{0.2, over, kernel.Alert},
		{margin, 0.33, kernel.Alert},
		{over, 0.33, kernel.Stressed},
	} {
		p := kernel.DefaultPolicy()
		p.Recovery, p.Optimal = c.recovery, c.optimal
		if turn := quiet(p); turn.M != margin || turn.Band != c.want {
			t.Errorf("margin %v with edges %v and %v is %s, want %s", turn.M, c.recovery, c.optimal, turn.Band, c.want)
		}
	}
}
