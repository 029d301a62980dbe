package kernel_test

import (
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

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
