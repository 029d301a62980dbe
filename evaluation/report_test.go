package evaluation_test

import (
	"testing"
	"time"

	"github.com/caddy-lex/lex/evaluation"
)

func outcomes(kind evaluation.Kind, severities ...float64) (out []evaluation.Outcome) {
	for i, s := range severities {
		out = append(out, evaluation.Outcome{Kind: kind, Severity: s, Refused: s > 0.5, Took: time.Duration(i+1) * time.Microsecond})
	}
	return out
}

// total returns the row of a kind.
func total(t *testing.T, r *evaluation.Report, kind evaluation.Kind) evaluation.Row {
	t.Helper()
	for _, row := range r.Totals {
		if row.Kind == kind {
			return row
		}
	}
	t.Fatalf("no row of %s in %+v", kind, r.Totals)
	return evaluation.Row{}
}

// The threshold at a rate of false alarms is exceeded by at most that share of the
// benign records.
func TestThresholds(t *testing.T) {
	var severities []float64
	for i := range 100 {
		severities = append(severities, float64(i)/100)
	}
	r := evaluation.New(append(outcomes(evaluation.Benign, severities...), outcomes(evaluation.Attack, 0.945, 0.985, 1, 0.2)...))
	if r.ThresholdAt1 != 0.98 || r.ThresholdAt5 != 0.94 {
		t.Errorf("thresholds %v and %v", r.ThresholdAt1, r.ThresholdAt5)
	}
	if row := total(t, r, evaluation.Attack); *row.TPRAt1 != 50 || *row.TPRAt5 != 75 || row.RefusedPct != 75 {
		t.Errorf("%v found at 1 %%, %v at 5 %%, %v refused", *row.TPRAt1, *row.TPRAt5, row.RefusedPct)
	}
	if row := total(t, r, evaluation.Benign); row.AUC != nil || row.TPRAt1 != nil {
		t.Errorf("a rate of finding among benign records: %+v", row)
	}
}

func TestAUC(t *testing.T) {
	for _, c := range []struct {
		benign, attacks []float64
		want            float64
	}{
		{[]float64{0.1, 0.2, 0.3}, []float64{0.4, 0.5, 0.6}, 1},
		{[]float64{0.4, 0.5, 0.6}, []float64{0.1, 0.2, 0.3}, 0},
		{[]float64{0.5, 0.5}, []float64{0.5, 0.5, 0.5}, 0.5},
		{[]float64{0.1, 0.5}, []float64{0.3, 0.5}, 0.625}, // 0.3 beats one of two; 0.5 beats one and ties with the other
	} {
		r := evaluation.New(append(outcomes(evaluation.Benign, c.benign...), outcomes(evaluation.Attack, c.attacks...)...))
		if got := *total(t, r, evaluation.Attack).AUC; got != c.want {
			t.Errorf("%v against %v: %v, want %v", c.attacks, c.benign, got, c.want)
		}
	}
}

func TestLatency(t *testing.T) {
	r := evaluation.New(outcomes(evaluation.Benign, make([]float64, 200)...))
	if want := (evaluation.Latency{P50: 100, P90: 180, P99: 198, Max: 200}); r.Latency != want {
		t.Errorf("%+v", r.Latency)
	}
	if r := evaluation.New(nil); r.Latency != (evaluation.Latency{}) || r.CalibrationError != 0 || r.ThresholdAt1 != 1 {
		t.Errorf("without records: %+v", r)
	}
}

// A bin in which severity is the share of attacks has no error; weak attacks are in
// no bin.
func TestReliability(t *testing.T) {
	r := evaluation.New(append(outcomes(evaluation.Benign, 0.25, 0.75), append(outcomes(evaluation.Attack, 0.75, 1), outcomes(evaluation.WeakAttack, 0.75)...)...))
	if b := r.Reliability[7]; b.N != 2 || b.Mean != 0.75 || b.Attacks != 0.5 {
		t.Errorf("%+v", b)
	}
	if b := r.Reliability[9]; b.N != 1 || b.Mean != 1 || b.Attacks != 1 {
		t.Errorf("%+v", b)
	}
	if want := (0.25 + 2*0.25 + 0) / 4; r.CalibrationError != want {
		t.Errorf("calibration error %v, want %v", r.CalibrationError, want)
	}
}
