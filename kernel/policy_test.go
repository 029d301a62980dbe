package kernel_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

func TestDefaultPolicyIsValid(t *testing.T) {
	if err := kernel.DefaultPolicy().Validate(); err != nil {
		t.Fatal(err)
	}
}

// Every number of a policy, set to what is not a number, is refused by name.
func TestPolicyRefusesNonFiniteNumbers(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		eachNumber(t, func(name string, set func(*kernel.Policy, float64)) {
			p := kernel.DefaultPolicy()
			set(&p, bad)
			wantPolicyError(t, p, name)
			if p.Hash() != "" {
				t.Errorf("%s = %v has a hash", name, bad)
			}
		})
	}
}

// eachNumber visits every number of a policy under its JSON name.
func eachNumber(t *testing.T, visit func(name string, set func(*kernel.Policy, float64))) {
	t.Helper()
	count := 0
	typ := reflect.TypeFor[kernel.Policy]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if typ.Field(i).Type.Kind() == reflect.Float64 {
			visit(name, func(p *kernel.Policy, v float64) { reflect.ValueOf(p).Elem().Field(i).SetFloat(v) })
			count++
			continue
		}
		if typ.Field(i).Type.Kind() == reflect.Int {
			continue // the revision
		}
		table := typ.Field(i).Type
		for j := range table.NumField() {
			for c := range 3 {
				visit(name+"."+table.Field(j).Tag.Get("json"), func(p *kernel.Policy, v float64) {
					reflect.ValueOf(p).Elem().Field(i).Field(j).Index(c).SetFloat(v)
				})
				count++
			}
		}
	}
	if count != 24+15 {
		t.Fatalf("a policy has %d numbers, expected 39", count)
	}
}

func wantPolicyError(t *testing.T, p kernel.Policy, field string) {
	t.Helper()
	err := p.Validate()
	if !errors.Is(err, kernel.ErrPolicy) {
		t.Errorf("%s: got %v, want ErrPolicy", field, err)
		return
	}
	if !strings.Contains(err.Error(), ": "+field+" must be") {
		t.Errorf("%s: the error does not name it: %v", field, err)
	}
	if _, err := kernel.New(p); !errors.Is(err, kernel.ErrPolicy) {
		t.Errorf("%s: New gave %v", field, err)
	}
}

func TestPolicyBounds(t *testing.T) {
	type policy = kernel.Policy
	for _, c := range []struct {
		field string
		set   func(*policy)
	}{
		{"floor", func(p *policy) { p.Floor = 0.0009 }},
		{"tau", func(p *policy) { p.Tau = p.Floor }},
		{"recovery", func(p *policy) { p.Recovery = p.Tau }},
		{"optimal", func(p *policy) { p.Optimal = p.Recovery }},
		{"optimal", func(p *policy) { p.Optimal = 1.0 / 3 }},
		{"rho", func(p *policy) { p.Rho = 0 }},
		{"rho", func(p *policy) { p.Rho = 1 }},
		{"eta", func(p *policy) { p.Eta = 0 }},
		{"eta", func(p *policy) { p.Eta = 50.001 }},
		{"beta", func(p *policy) { p.Beta = 0 }},
		{"beta", func(p *policy) { p.Beta = 1.001 }},
		{"kappa", func(p *policy) { p.Kappa = -0.001 }},
		{"kappa", func(p *policy) { p.Kappa = 1 - 3*p.Tau }},
		{"clip", func(p *policy) { p.Clip = 0 }},
		{"clip", func(p *policy) { p.Clip = 4.001 }},
		{"pressure.sycophancy", func(p *policy) { p.Pressure.Sycophancy[2] = 1.001 }},
		{"pressure.coercion", func(p *policy) { p.Pressure.Coercion[0] = -0.001 }},
		{"carry_capitulated", func(p *policy) { p.CarryCapitulated = 1.1 }},
		{"carry_lost_thread", func(p *policy) { p.CarryLostThread = -0.1 }},
		{"watch_at", func(p *policy) { p.WatchAt = 0 }},
		{"multi_at", func(p *policy) { p.MultiAt = p.WatchAt }},
		{"severe_at", func(p *policy) { p.SevereAt = 1 }},
		{"refuse_at", func(p *policy) { p.RefuseAt = p.WatchAt }},
		{"refuse_at_degraded", func(p *policy) { p.RefuseAtDegraded = 0.71 }},
		{"refuse_at_degraded", func(p *policy) { p.RefuseAtDegraded = p.WatchAt }},
		{"threat_at", func(p *policy) { p.ThreatAt = 0 }},
		{"threat_severity", func(p *policy) { p.ThreatSeverity = 1 }},
		{"threat_severity", func(p *policy) { p.ThreatSeverity = -0.001 }},
		{"cusum_k", func(p *policy) { p.CUSUMK = 1 }},
		{"cusum_h", func(p *policy) { p.CUSUMH = 0 }},
		{"cusum_h", func(p *policy) { p.CUSUMH = 10.1 }},
		{"cusum_relief", func(p *policy) { p.CUSUMRelief = 0 }},
		{"cusum_slow_k", func(p *policy) { p.CUSUMSlowK = 0 }},
		{"cusum_slow_h", func(p *policy) { p.CUSUMSlowH = 10.1 }},
		{"cusum_slow_relief", func(p *policy) { p.CUSUMSlowRelief = -0.1 }},
		{"tau", func(p *policy) { p.Tau = 1.0 / 3 }},
		{"recovery", func(p *policy) { p.Recovery = 1.0 / 3 }},
		{"watch_at", func(p *policy) { p.WatchAt = 1 }},
		{"multi_at", func(p *policy) { p.MultiAt = 1 }},
		{"severe_at", func(p *policy) { p.SevereAt = p.WatchAt }},
		{"refuse_at", func(p *policy) { p.RefuseAt = 1 }},
		{"threat_at", func(p *policy) { p.ThreatAt = 1 }},
		{"cusum_k", func(p *policy) { p.CUSUMK = 0 }},
		{"cusum_relief", func(p *policy) { p.CUSUMRelief = 1.001 }},
		{"cusum_slow_k", func(p *policy) { p.CUSUMSlowK = 1 }},
		{"cusum_slow_k", func(p *policy) { p.CUSUMSlowK, p.CUSUMSlowH = 0, 0 }},
		{"cusum_slow_h", func(p *policy) { p.CUSUMSlowH = 0 }},
		{"cusum_slow_h", func(p *policy) { p.CUSUMSlowH, p.CUSUMSlowRelief = 0, 0 }},
		{"cusum_slow_relief", func(p *policy) { p.CUSUMSlowRelief = 0 }},
		{"cusum_slow_relief", func(p *policy) { p.CUSUMSlowRelief, p.CUSUMSlowK = 0, 0 }},
		{"cusum_slow_relief", func(p *policy) { p.CUSUMSlowRelief = 1.001 }},
		{"revision", func(p *policy) { p.Revision = 2 }},
		{"revision", func(p *policy) { p.Revision = -1 }},
	} {
		p := kernel.DefaultPolicy()
		c.set(&p)
		wantPolicyError(t, p, c.field)
	}
	bounds := kernel.DefaultPolicy()
	bounds.Floor, bounds.Eta, bounds.Beta, bounds.Kappa, bounds.Clip = 0.001, 50, 1, 0, 4
	bounds.CarryCapitulated, bounds.CarryLostThread, bounds.Pressure.Identity = 0, 1, kernel.Point{0, 1, 1}
	bounds.RefuseAtDegraded, bounds.ThreatSeverity = bounds.RefuseAt, 0
	bounds.CUSUMH, bounds.CUSUMRelief, bounds.CUSUMSlowH, bounds.CUSUMSlowRelief = 10, 1, 10, 1
	if err := bounds.Validate(); err != nil {
		t.Errorf("bounds that a policy may have: %v", err)
	}
}

func TestPolicyReportsEveryFault(t *testing.T) {
	p := kernel.DefaultPolicy()
	p.Rho, p.Clip = 2, 9
	wantPolicyError(t, p, "rho")
	wantPolicyError(t, p, "clip")
}

// The hash tells any two policies apart, and names the default for good: if it
// changes, every receipt made under the default stops replaying.
// An operator sets some of the numbers only, so the error says what the others are.
func TestPolicyErrorsSayTheValues(t *testing.T) {
	p := kernel.DefaultPolicy()
	p.RefuseAt = 0.2
	err := p.Validate()
	for _, want := range []string{
		"refuse_at must be over watch_at (0.3) and under 1, not 0.2",
		"refuse_at_degraded must be over watch_at (0.3) and at most refuse_at (0.2), not 0.5",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestPolicyHash(t *testing.T) {
	seen := map[string]string{kernel.DefaultPolicy().Hash(): "the default"}
	eachNumber(t, func(name string, set func(*kernel.Policy, float64)) {
		p := kernel.DefaultPolicy()
		set(&p, 0.12345)
		h := p.Hash()
		if len(h) != 64 || strings.ToLower(h) != h {
			t.Errorf("%s: %q is not lower-case hex SHA-256", name, h)
		}
		if other, taken := seen[h]; taken && !strings.HasPrefix(name, "pressure.") {
			t.Errorf("%s hashes like %s", name, other)
		}
		seen[h] = name
	})
	if len(seen) != 40 {
		t.Errorf("40 policies have %d hashes", len(seen))
	}
	if h := revision0(kernel.DefaultPolicy()).Hash(); h != "10bcdb62e4fdab51440cf24aef69b373d77b5a4a6e3c6dfde5fc417294f4cc03" {
		t.Errorf("the default of revision 0 has the hash %s", h)
	}
	golden(t, "policy.sha256", []byte(kernel.DefaultPolicy().Hash()+"\n"))
}

func TestPolicyRoundTrips(t *testing.T) {
	p := kernel.DefaultPolicy()
	p.Eta, p.CUSUMK = 1.0/3, 1e-9
	text, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := kernel.ParsePolicy(text)
	if err != nil || back != p || back.Hash() != p.Hash() {
		t.Errorf("%+v became %+v: %v", p, back, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no object": "[]", "unknown member": `{"rho":0.3,"secret":"canary"}`, "text": `{"rho":"canary"}`,
	} {
		if _, err := kernel.ParsePolicy([]byte(text)); !errors.Is(err, kernel.ErrPolicy) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	p.Rho = math.NaN()
	if _, err := p.JSON(); !errors.Is(err, kernel.ErrPolicy) {
		t.Errorf("NaN: got %v", err)
	}
}
