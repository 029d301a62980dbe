package kernel_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// A tool call that brings no evidence leaves the session as it was, however loud or
// quiet it is.
func TestACallWithoutEvidenceTakesNoStep(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(70)
	s := k.NewSession()
	for range 200 {
		s = take(t, k, s, r.evidence(), kernel.Enforce, r.output()).Next
		for _, call := range []kernel.ToolCall{
			{}, {Invariant: "destructive_command"}, {Rule: "no-shell"}, {Effect: kernel.ToolReads}, {Effect: kernel.ToolSends, HighRisk: true},
		} {
			call.Tool = "run"
			turn := record(t, k, s, call, kernel.Scores{}, kernel.Enforce)
			if turn.Next != s || turn.State != s.X || turn.M != s.X.Min() || turn.DeltaV != 0 || turn.Intervened {
				t.Fatalf("the session %+v became %+v", s, turn)
			}
		}
	}
}

func TestToolCallIsDecided(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for _, c := range []struct {
		invariant, rule string
		mode            kernel.Mode
		decision        kernel.ToolDecision
		refused         bool
		wouldRefuse     bool
		label           string
		band            kernel.Band
		governor        string
	}{
		{"", "", kernel.Enforce, kernel.Approved, false, false, kernel.LabelClear, kernel.Optimal, kernel.GovernorPass},
		{"", "", kernel.Observe, kernel.Approved, false, false, kernel.LabelClear, kernel.Optimal, kernel.GovernorObserve},
		{"path_traversal", "", kernel.Enforce, kernel.Blocked, true, false, kernel.LabelThreat, kernel.Critical, kernel.GovernorRefuse},
		{"path_traversal", "", kernel.Observe, kernel.Approved, false, true, kernel.LabelThreat, kernel.Optimal, kernel.GovernorObserve},
		{"", "no-shell", kernel.Enforce, kernel.Blocked, true, false, kernel.LabelClear, kernel.Critical, kernel.GovernorRefuse},
		{"", "no-shell", kernel.Observe, kernel.Approved, false, true, kernel.LabelClear, kernel.Optimal, kernel.GovernorObserve},
	} {
		call := kernel.ToolCall{Tool: "read", Invariant: c.invariant, Rule: c.rule, Decision: "made up"}
		r := k.Receipt(record(t, k, k.NewSession(), call, kernel.Scores{}, c.mode))
		if r.Decision != c.decision || r.Refused != c.refused || r.WouldRefuse != c.wouldRefuse || r.Label != c.label || r.Band != c.band || r.GovernorMode != c.governor {
			t.Errorf("%q, %q in %s: %+v", c.invariant, c.rule, c.mode, r)
		}
		if len(r.Reasons) > 0 {
			t.Errorf("%q has the reasons of a text: %v", c.invariant, r.Reasons)
		}
	}
}

func TestToolCallRefusesBadInput(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	call := kernel.ToolCall{Tool: "read"}
	for name, try := range map[string]func() (kernel.Turn, error){
		"no tool": func() (kernel.Turn, error) {
			return k.RecordToolCall(k.NewSession(), kernel.ToolCall{}, kernel.Evidence{}, kernel.Enforce)
		},
		"no mode": func() (kernel.Turn, error) { return k.RecordToolCall(k.NewSession(), call, kernel.Evidence{}, "") },
		"no session": func() (kernel.Turn, error) {
			return k.RecordToolCall(kernel.Session{}, call, kernel.Evidence{}, kernel.Enforce)
		},
	} {
		if _, err := try(); !errors.Is(err, kernel.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func toolReceipt(t testing.TB, k *kernel.Kernel) kernel.Receipt {
	t.Helper()
	s := take(t, k, k.NewSession(), scores(0.6, 0, 0, 0.4, 0, 0), kernel.Enforce, kernel.Output{}).Next
	turn, err := k.RecordToolCall(s, kernel.ToolCall{Tool: "shell", Invariant: "destructive_command", ArgumentsCommitment: kernel.Commit([]byte("key"), "{}")}, kernel.Evidence{}, kernel.Enforce)
	if err != nil {
		t.Fatal(err)
	}
	r := k.Receipt(turn)
	r.SessionID, r.Turn, r.Timestamp, r.Nonce = "demo", 3, 1_700_000_000_000, "4E0C3B1F7A2D9865"
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	return r
}

// The record of a tool call has the shape of every record, the prefix of its
// own kind, and replays.
func TestToolReceipt(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := toolReceipt(t, k)
	golden(t, "receipt_tool.json", mustJSON(t, r))
	if r.ID[:4] != "TCR-" || r.CheckID() != nil {
		t.Errorf("id %s: %v", r.ID, r.CheckID())
	}
	back, err := kernel.ParseReceipt(mustJSON(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Replay(back); err != nil {
		t.Error(err)
	}
	relabelled := back
	relabelled.ID = "KRN-" + back.ID[4:]
	if err := relabelled.CheckID(); !errors.Is(err, kernel.ErrReceiptID) {
		t.Errorf("a tool call under the prefix of text: %v", err)
	}
}

// alterField changes a field of a tool call's receipt by as little as it can be changed.
func alterField(r *kernel.Receipt, name string) {
	field, _ := reflect.TypeFor[kernel.Receipt]().FieldByName(name)
	if v := reflect.ValueOf(r).Elem().FieldByIndex(field.Index); v.Kind() == reflect.Slice {
		v.Set(reflect.ValueOf([]kernel.Reason{kernel.OperatorPolicy}))
	} else {
		alter(v)
	}
}

// What a held turn does not compute cannot be slipped into its record.
func TestToolReceiptHoldsNoStep(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	for _, name := range append(outputFields, "Decision") {
		r := toolReceipt(t, k)
		alterField(&r, name)
		if err := k.Replay(r); !errors.Is(err, kernel.ErrReplay) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, change := range map[string]func(*kernel.Receipt){
		"scores":    func(r *kernel.Receipt) { r.Scores.Identity = 0.5 },
		"output":    func(r *kernel.Receipt) { r.Capitulated = true },
		"invariant": func(r *kernel.Receipt) { r.Invariant = "" },
	} {
		r := toolReceipt(t, k)
		change(&r)
		if err := k.Replay(r); !errors.Is(err, kernel.ErrReplay) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Evidence in the record of a tool call is made up: no detector ran.
func TestToolCallHasNoEvidence(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	turn, err := k.RecordToolCall(k.NewSession(), kernel.ToolCall{Tool: "read"}, kernel.Evidence{}, kernel.Enforce)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*kernel.Receipt){
		"scores":   func(r *kernel.Receipt) { r.Scores.Injection = 0.2 },
		"drift":    func(r *kernel.Receipt) { r.SovereigntyDrift = true },
		"standing": func(r *kernel.Receipt) { r.Standing = []kernel.Reason{kernel.SlowDripAlarm} },
		"output":   func(r *kernel.Receipt) { r.LostThread = true },
		"decision": func(r *kernel.Receipt) { r.Decision = kernel.Blocked },
	} {
		r := k.Receipt(turn)
		change(&r)
		if err := k.Replay(r); !errors.Is(err, kernel.ErrReplay) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
