package kernel_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// Every turn of a session replays from its written record, also the first after
// a change of policy.
func TestReplayOfRecordedTurns(t *testing.T) {
	narrow := kernel.DefaultPolicy()
	narrow.Tau, narrow.Floor = 0.11, 0.02
	kernels := []*kernel.Kernel{newKernel(t, narrow), newKernel(t, kernel.DefaultPolicy()), newKernel(t, kernel.DefaultPolicy())}
	r := newRandom(60)
	s := kernels[1].NewSession()
	for i := range 600 {
		k := kernels[i%3]
		mode := kernel.Enforce
		if i%2 == 0 {
			mode = kernel.Observe
		}
		turn := take(t, k, s, r.evidence(), mode, r.output())
		s = turn.Next
		record, err := kernel.ParseReceipt(mustJSON(t, k.Receipt(turn)))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Replay(record); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
}

// outputFields are the fields that follow from the step, by their Go names.
var outputFields = []string{
	"Label", "MBefore", "MAfter", "GovernorMode", "Intervened", "SlowDrip", "Effort", "SigmaViol",
	"Refused", "WouldRefuse", "Reasons", "AttackType", "Severity", "Band", "Pressure", "Raw", "State",
	"MFloor", "ZNext", "CUSUMNext", "CUSUMSlowNext", "CarryNext", "DeltaV", "StabilityRatio", "LyapunovV", "ZShift",
}

// The least change of any output is found and named.
func TestReplayNamesTheFieldThatDiffers(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	typ := reflect.TypeFor[kernel.Receipt]()
	for _, name := range outputFields {
		field, known := typ.FieldByName(name)
		if !known {
			t.Fatalf("no field %s", name)
		}
		r := sealedReceipt(t, k)
		alter(reflect.ValueOf(&r).Elem().FieldByIndex(field.Index))
		err := k.Replay(r)
		member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !errors.Is(err, kernel.ErrReplay) || !strings.HasSuffix(err.Error(), ": "+member+" differs") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// alter changes a value by as little as it can be changed.
func alter(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(math.Nextafter(v.Float(), 9))
	case reflect.Array:
		alter(v.Index(1))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Slice:
		v.Set(v.Slice(0, v.Len()-1))
	}
}

// Every input that moves the step is bound to the outputs by it.
func TestReplayNoticesOtherInputs(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for name, change := range map[string]func(*kernel.Receipt){
		"x":         func(r *kernel.Receipt) { r.X = kernel.Point{0.33, 0.33, 0.34} },
		"z":         func(r *kernel.Receipt) { r.Z = kernel.Point{0.33, 0.33, 0.34} },
		"cusum":     func(r *kernel.Receipt) { r.CUSUM = 0.3 },
		"carry":     func(r *kernel.Receipt) { r.Carry[2] = 0.3 },
		"scores":    func(r *kernel.Receipt) { r.Scores.Identity = 0.83 },
		"denied by": func(r *kernel.Receipt) { r.DeniedBy = "" },
		"standing":  func(r *kernel.Receipt) { r.Standing = nil },
		"mode":      func(r *kernel.Receipt) { r.Mode = kernel.Observe },
		"output":    func(r *kernel.Receipt) { r.Confidence = 0.8 },
		"bad input": func(r *kernel.Receipt) { r.X = kernel.Point{} },
		"bad mode":  func(r *kernel.Receipt) { r.Mode = "" },
		"bad float": func(r *kernel.Receipt) { r.DeltaV = math.NaN() },
	} {
		r := sealedReceipt(t, k)
		change(&r)
		if err := k.Replay(r); !errors.Is(err, kernel.ErrReplay) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestReplayUnderAnotherPolicy(t *testing.T) {
	r := sealedReceipt(t, newKernel(t, kernel.DefaultPolicy()))
	p := kernel.DefaultPolicy()
	p.Rho = 0.36
	if err := newKernel(t, p).Replay(r); !errors.Is(err, kernel.ErrPolicyMismatch) {
		t.Errorf("got %v", err)
	}
}
