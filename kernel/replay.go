package kernel

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Replay takes the recorded step again, from the inputs in the receipt, and
// compares every field that follows from them with the recorded one, bit by bit
// (the only two numbers that are equal and not the same, 0 and -0, have one
// spelling in a receipt).
//
// It returns nil when they agree; an error that wraps [ErrReplay] and names the
// first field, by name, that does not, or an input that no step can have had;
// and one that wraps [ErrPolicyMismatch] when the receipt was made under another
// policy. It says nothing of the id ([Receipt.CheckID]) and nothing of the
// fields that the kernel does not compute.
func (k *Kernel) Replay(r Receipt) error {
	if r.Policy != k.hash {
		return ErrPolicyMismatch
	}
	t, err := k.recompute(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReplay, err)
	}
	t.Migrated = r.Migrated // the recorded session is the one after the projection
	want := r
	want.record(t)
	if r.derived() == want.derived() && slices.Equal(r.Reasons, want.Reasons) && slices.Equal(r.Standing, want.Standing) {
		return nil
	}
	field, err := firstDifference(r, want)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReplay, err)
	}
	return fmt.Errorf("%w: %s differs", ErrReplay, field)
}

// derived holds what follows from a step in a form that can be compared; its
// lists stand apart. Inputs are among them: a tool call has no evidence beside
// scores and no output, and its decision is a part of the call.
type derived struct {
	start, next Session
	scores      Scores
	output      Output
	call        ToolCall
	words       [3]string
	band        Band
	attack      AttackType
	flags       [9]bool
	numbers     [11]float64
	points      [2]Point
}

func (r *Receipt) derived() derived {
	return derived{
		start: r.start(), next: r.next(), scores: r.Scores, output: r.Output, call: r.ToolCall,
		words: [...]string{r.Label, r.GovernorMode, r.DeniedBy}, band: r.Band, attack: r.AttackType,
		flags: [...]bool{r.Repeated, r.Unassessed, r.Intervened, r.SlowDrip, r.Refused, r.WouldRefuse, r.Migrated, r.SovereigntyDrift, r.Degraded},
		numbers: [...]float64{
			r.MBefore, r.MFloor, r.MAfter, r.Effort, r.SigmaViol, r.Severity, r.ThreatSignal,
			r.DeltaV, r.StabilityRatio, r.LyapunovV, r.ZShift,
		},
		points: [...]Point{r.Pressure, r.Raw},
	}
}

// recompute computes the recorded turn from its recorded inputs.
func (k *Kernel) recompute(r Receipt) (Turn, error) {
	if r.Tool != "" {
		return k.RecordToolCall(r.start(), r.ToolCall, r.Evidence, r.Mode)
	}
	t, err := k.Assess(r.start(), r.Evidence, r.Mode)
	if err != nil {
		return Turn{}, err
	}
	return k.Conclude(t, r.Output)
}

// firstDifference returns the name of the first member in which two receipts
// differ, or "".
func firstDifference(a, b Receipt) (string, error) {
	left, err := a.JSON()
	if err != nil {
		return "", err
	}
	right, err := b.JSON()
	if err != nil {
		return "", err
	}
	if bytes.Equal(left, right) {
		return "", nil
	}
	return differingMember(left, right), nil
}

// differingMember walks two canonical objects with the same names side by side.
func differingMember(a, b []byte) string {
	left, right := jsontext.NewDecoder(bytes.NewReader(a)), jsontext.NewDecoder(bytes.NewReader(b))
	for {
		x, errX := left.ReadToken()
		_, errY := right.ReadToken()
		if errX != nil || errY != nil {
			return "the record"
		}
		if x.Kind() != '"' {
			continue // the opening brace
		}
		name := x.String()
		v, errX := left.ReadValue()
		w, errY := right.ReadValue()
		if errX != nil || errY != nil || !bytes.Equal(v, w) {
			return name
		}
	}
}
