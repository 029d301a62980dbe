package kernel_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// record records a tool call that must be accepted.
func record(t testing.TB, k *kernel.Kernel, s kernel.Session, c kernel.ToolCall, scores kernel.Scores, m kernel.Mode) kernel.Turn {
	t.Helper()
	turn, err := k.RecordToolCall(s, c, kernel.Evidence{Scores: scores}, m)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// toolStep is a random call that breaks an invariant, with its evidence.
func (r random) toolStep() (kernel.ToolCall, kernel.Scores) {
	e := r.evidence().Scores
	e.Injection = r.pick(0, 1, 5e-324, 0.3, math.Nextafter(0.3, 1), 0.7, 1)
	return kernel.ToolCall{Tool: "shell", Invariant: "exfiltration", Effect: kernel.ToolSends}, e
}

// The theorems hold for the steps that tool calls take, too.
func TestTheoremsOnRandomToolSteps(t *testing.T) {
	const walkers, stepsPerPolicy = 8, 50
	for seed := range uint64(walkers) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := newRandom(900 + seed)
			var k *kernel.Kernel
			for i := range randomSteps / walkers {
				if i%stepsPerPolicy == 0 {
					k = newKernel(t, kernel.DefaultPolicy())
					if r.IntN(2) == 0 {
						k = newKernel(t, r.policy())
					}
				}
				call, evidence := r.toolStep()
				turn := record(t, k, r.session(k), call, evidence, kernel.Enforce)
				if turn.Next.Carry != turn.Before.Carry {
					t.Fatalf("step %d: the carry %v became %v", i, turn.Before.Carry, turn.Next.Carry)
				}
				for _, th := range append(theorems[:len(theorems):len(theorems)], theorem{"stability ratio", wrongRatio}) {
					if fault := th.wrong(t, walked{turn, k, r}); fault != "" {
						t.Fatalf("step %d breaks %q: %s\npolicy %+v\n%+v", i, th.name, fault, k.Policy(), turn)
					}
				}
			}
		})
	}
}

// What is measured of the step is, to the bit, that of a text with the same scores, in
// either mode.
func TestAToolStepIsMeasuredLikeAText(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(80)
	alarms := 0
	for range 5000 {
		s := r.session(k)
		s.CUSUM, s.CUSUMSlow = r.pick(0, 0.9, 0, 0.85), r.pick(0, 1.25, 0, 1.2)
		call, evidence := r.toolStep()
		uncarried := s
		uncarried.Carry = kernel.Point{}
		for _, mode := range []kernel.Mode{kernel.Enforce, kernel.Observe} {
			got := record(t, k, s, call, evidence, mode)
			want := take(t, k, uncarried, kernel.Evidence{Scores: evidence}, mode, kernel.Output{})
			for name, pair := range map[string][2]any{
				"weights":     {got.Next.Z, want.Next.Z},
				"statistic":   {got.Next.CUSUM, want.Next.CUSUM},
				"slow chart":  {got.Next.CUSUMSlow, want.Next.CUSUMSlow},
				"carry":       {got.Next.Carry, s.Carry},
				"pressure":    {got.Pressure, want.Pressure},
				"evidence":    {got.Severity, want.Severity},
				"attack type": {got.AttackType, want.AttackType},
				"slow drip":   {got.SlowDrip, want.SlowDrip},
			} {
				if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
					t.Fatalf("%s is %v, want %v", name, pair[0], pair[1])
				}
			}
			if got.Label != kernel.LabelThreat || got.Refused != (mode == kernel.Enforce) || len(got.Reasons) > 0 || got.Sensing.Fired {
				t.Fatalf("%s: %+v", mode, got)
			}
			if got.SlowDrip {
				alarms++
			}
		}
	}
	if alarms == 0 {
		t.Error("no call raised the alarm")
	}
}

// A blocked call presses and never lets the session recover: however often one type of call
// is tried, the margin falls until the barrier holds it, and then stays low. Approved calls
// that stand alone let it recover, and those of an answer change nothing.
func TestBlockedCallsDoNotCalm(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	p := k.Policy()
	for name, scores := range map[string]kernel.Scores{
		"identity": {Identity: 0.45}, "harm": {HarmRequest: 0.45}, "injection": {Injection: 0.45}, "weak": {Coercion: 0.31}, "nothing": {Coercion: 0.1},
	} {
		s := k.NewSession()
		for range 200 {
			turn := record(t, k, s, kernel.ToolCall{Tool: "shell", Invariant: "x"}, scores, kernel.Enforce)
			if before := turn.Before.X.Min(); before < p.Recovery && turn.M >= p.Recovery {
				t.Fatalf("%s: a blocked call took the margin from %v to %v", name, before, turn.M)
			}
			s = turn.Next
		}
		if name != "nothing" && s.X.Min() >= p.Recovery {
			t.Errorf("%s: the margin is %v after 200 blocked calls", name, s.X.Min())
		}
		low := s
		for range 20 {
			s = record(t, k, s, kernel.ToolCall{Tool: "read", Effect: kernel.ToolReads}, kernel.Scores{}, kernel.Enforce).Next
		}
		if s != low {
			t.Errorf("%s: the calls of an answer changed the session", name)
		}
		for range 20 {
			s = record(t, k, s, kernel.ToolCall{Tool: "read", Effect: kernel.ToolReads, Standalone: true}, kernel.Scores{}, kernel.Enforce).Next
		}
		if s.X.Min() < p.Optimal || s.CUSUM != low.CUSUM {
			t.Errorf("%s: after 20 approved calls the margin is %v, and the statistic %v was %v", name, s.X.Min(), s.CUSUM, low.CUSUM)
		}
	}
}

// withMargin returns a session whose margin is exactly m.
func withMargin(k *kernel.Kernel, m float64) kernel.Session {
	s := k.NewSession()
	s.X = kernel.Point{m, (1 - m) / 2, (1 - m) / 2}
	return s
}

// The table of docs/kernel.md, at each threshold and at the numbers next to it. r, w, s
// and o are the effects, capitals those of high risk.
func TestSessionRisk(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	p := k.Policy()
	under := func(v float64) float64 { return math.Nextafter(v, 0) }
	over := func(v float64) float64 { return math.Nextafter(v, 1) }
	effects := map[byte]kernel.ToolEffect{'r': kernel.ToolReads, 'w': kernel.ToolWrites, 's': kernel.ToolSends, 'o': kernel.ToolOther}
	for _, c := range []struct {
		margin float64
		denied string
	}{
		{p.Tau, "wsoRWSO"},
		{over(p.Tau), "wsRWSO"},
		{under(p.Recovery), "wsRWSO"},
		{p.Recovery, "RWSO"},
		{over(p.Recovery), "RWSO"},
		{under(p.Optimal), "RWSO"},
		{p.Optimal, ""},
		{over(p.Optimal), ""},
		{1.0 / 3, ""},
	} {
		s := withMargin(k, c.margin)
		for letter, effect := range effects {
			for _, high := range []bool{false, true} {
				if high {
					letter -= 'a' - 'A'
				}
				denied := strings.IndexByte(c.denied, letter) >= 0
				call := kernel.ToolCall{Tool: "f", Effect: effect, HighRisk: high}
				for _, mode := range []kernel.Mode{kernel.Enforce, kernel.Observe} {
					turn := record(t, k, s, call, kernel.Scores{}, mode)
					blocked := denied && mode == kernel.Enforce
					if (turn.Call.Invariant == kernel.SessionRisk) != denied || turn.Refused != blocked || (turn.Call.Decision == kernel.Blocked) != blocked {
						t.Errorf("M = %v, %c in %s: %+v", c.margin, letter, mode, turn.Call)
					}
					if turn.Next != s {
						t.Errorf("M = %v, %c in %s: the session moved", c.margin, letter, mode)
					}
					checkToolReplay(t, k, turn)
				}
			}
		}
		for _, call := range []kernel.ToolCall{{}, {HighRisk: true}, {Provenance: kernel.FromInstruction}} {
			call.Tool = "f"
			if turn := record(t, k, s, call, kernel.Scores{}, kernel.Enforce); turn.Refused {
				t.Errorf("M = %v: a call whose effect is not known is denied: %+v", c.margin, turn.Call)
			}
		}
	}
}

// checkToolReplay checks that the turn's record replays, and that neither an approval nor
// a denial can be put in its place.
func checkToolReplay(t *testing.T, k *kernel.Kernel, turn kernel.Turn) {
	t.Helper()
	r, err := kernel.ParseReceipt(mustJSON(t, k.Receipt(turn)))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Replay(r); err != nil {
		t.Errorf("%+v: %v", r.ToolCall, err)
	}
	forged, tool := turn, turn.Call
	forged.Call = kernel.ToolCall{Tool: tool.Tool, Effect: tool.Effect, HighRisk: tool.HighRisk, Decision: kernel.Approved}
	forged.Label, forged.Refused, forged.Band, forged.GovernorMode = kernel.LabelClear, false, kernel.Stressed, kernel.GovernorPass
	if tool.Invariant == "" {
		forged.Call.Invariant, forged.Call.Decision = kernel.SessionRisk, kernel.Blocked
		forged.Label, forged.Refused, forged.Band, forged.GovernorMode = kernel.LabelThreat, true, kernel.Critical, kernel.GovernorRefuse
	}
	if err := k.Replay(k.Receipt(forged)); !errors.Is(err, kernel.ErrReplay) {
		t.Errorf("%+v in place of %+v: %v", forged.Call, tool, err)
	}
}

// What else blocks a call is not replaced by the session's risk, which no caller can
// claim.
func TestSessionRiskComesLast(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	risky := withMargin(k, k.Policy().Tau)
	for _, call := range []kernel.ToolCall{{Invariant: "path_traversal"}, {Rule: "no-shell"}, {Rule: "no-shell", Invariant: "path_traversal"}} {
		call.Tool, call.Effect = "f", kernel.ToolWrites
		want := call
		want.Decision = kernel.Blocked
		turn := record(t, k, risky, call, kernel.Scores{}, kernel.Enforce)
		if turn.Call != want {
			t.Errorf("%+v became %+v", call, turn.Call)
		}
		if r := k.Receipt(turn); r.Rule != "" {
			if r.Invariant = kernel.SessionRisk; !errors.Is(k.Replay(r), kernel.ErrReplay) {
				t.Errorf("session_risk beside %+v replays", call)
			}
		}
	}
	for _, call := range []kernel.ToolCall{{}, {Rule: "no-shell"}} {
		call.Tool, call.Invariant = "f", kernel.SessionRisk
		if turn := record(t, k, k.NewSession(), call, kernel.Scores{}, kernel.Enforce); turn.Call.Invariant != "" {
			t.Errorf("the caller's word counts: %+v", turn.Call)
		}
	}
}

// The state counts that the present policy starts from.
func TestSessionRiskAfterAChangeOfPolicy(t *testing.T) {
	p := kernel.DefaultPolicy()
	p.Floor, p.Tau, p.Recovery = 0.01, 0.03, 0.04
	wide, k := newKernel(t, p), newKernel(t, kernel.DefaultPolicy())
	call := kernel.ToolCall{Tool: "f", Effect: kernel.ToolOther}
	s := withMargin(wide, 0.05)
	if turn := record(t, wide, s, call, kernel.Scores{}, kernel.Enforce); turn.Refused {
		t.Errorf("under its own policy: %+v", turn.Call)
	}
	turn := record(t, k, s, call, kernel.Scores{}, kernel.Enforce)
	if !turn.Migrated || turn.Call.Invariant != kernel.SessionRisk {
		t.Errorf("under another: %+v", turn)
	}
	checkToolReplay(t, k, turn)
}

func TestToolCallRefusesOtherEvidence(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	broken := kernel.ToolCall{Tool: "f", Invariant: "path_traversal"}
	suspected := kernel.Scores{Identity: 0.8}
	for name, c := range map[string]struct {
		call     kernel.ToolCall
		evidence kernel.Evidence
	}{
		"no invariant":       {kernel.ToolCall{Tool: "f"}, kernel.Evidence{Scores: suspected}},
		"a rule only":        {kernel.ToolCall{Tool: "f", Rule: "no-shell"}, kernel.Evidence{Scores: suspected}},
		"session risk":       {kernel.ToolCall{Tool: "f", Invariant: kernel.SessionRisk}, kernel.Evidence{Scores: suspected}},
		"score over 1":       {broken, kernel.Evidence{Scores: kernel.Scores{Injection: 1.01}}},
		"score NaN":          {broken, kernel.Evidence{Scores: kernel.Scores{Injection: math.NaN()}}},
		"threat signal":      {broken, kernel.Evidence{Scores: suspected, ThreatSignal: 0.1}},
		"drift":              {broken, kernel.Evidence{Scores: suspected, SovereigntyDrift: true}},
		"degraded":           {broken, kernel.Evidence{Scores: suspected, Degraded: true}},
		"denied":             {broken, kernel.Evidence{Scores: suspected, DeniedBy: "rule"}},
		"standing":           {broken, kernel.Evidence{Scores: suspected, Standing: []kernel.Reason{kernel.SlowDripAlarm}}},
		"repeated":           {broken, kernel.Evidence{Scores: suspected, Repeated: true}},
		"unknown effect":     {kernel.ToolCall{Tool: "f", Effect: "reads"}, kernel.Evidence{}},
		"unknown provenance": {kernel.ToolCall{Tool: "f", Provenance: "nobody"}, kernel.Evidence{}},
	} {
		if _, err := k.RecordToolCall(k.NewSession(), c.call, c.evidence, kernel.Enforce); !errors.Is(err, kernel.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A session of texts and tool calls hangs together and replays, record by record.
func TestChainOfTextsAndToolCalls(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(81)
	var c kernel.Chain
	s, prev, denied := k.NewSession(), "", 0
	for i := range 2000 {
		var turn kernel.Turn
		mode := []kernel.Mode{kernel.Enforce, kernel.Observe}[r.IntN(2)]
		switch r.IntN(4) {
		case 0:
			call, evidence := r.toolStep()
			turn = record(t, k, s, call, evidence, mode)
		case 1:
			turn = record(t, k, s, kernel.ToolCall{Tool: "f", Effect: kernel.ToolWrites, Provenance: kernel.FromModel}, kernel.Scores{}, mode)
		default:
			turn = take(t, k, s, r.evidence(), mode, r.output())
		}
		if turn.Call.Invariant == kernel.SessionRisk {
			denied++
		}
		receipt := k.Receipt(turn)
		receipt.SessionID, receipt.Prev = "demo", prev
		opened, err := kernel.OpenReceipt(mustJSON(t, sealed(t, receipt)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(k.Replay(opened), c.Add(k, opened)); err != nil {
			t.Fatalf("receipt %d: %v", i, err)
		}
		s, prev = turn.Next, opened.ID
	}
	if ends := c.Ends(); !slices.Equal(ends, []string{prev}) || denied == 0 {
		t.Errorf("the ends are %v; %d calls were denied by the state", ends, denied)
	}
}

// steppedToolReceipt is the record of a call with everything that one can have.
func steppedToolReceipt(t testing.TB, k *kernel.Kernel) kernel.Receipt {
	t.Helper()
	s := take(t, k, k.NewSession(), scores(0.6, 0, 0, 0.4, 0, 0), kernel.Enforce, kernel.Output{LostThread: true}).Next
	call := kernel.ToolCall{
		Tool: "send_mail", Invariant: "exfiltration", Rule: "no-mail", Effect: kernel.ToolSends, HighRisk: true,
		Provenance: kernel.FromInstruction, Flagged: "credential_in_arguments", ArgumentsCommitment: kernel.Commit([]byte("key"), "{}"),
	}
	r := k.Receipt(record(t, k, s, call, kernel.Scores{Injection: 0.8}, kernel.Enforce))
	r.SessionID, r.Turn, r.Timestamp, r.Nonce = "demo", 3, 1_700_000_000_000, "4E0C3B1F7A2D9865"
	return sealed(t, r)
}

func TestToolReceiptOfAStep(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := steppedToolReceipt(t, k)
	golden(t, "receipt_tool_step.json", mustJSON(t, r))
	if err := k.Replay(r); err != nil {
		t.Error(err)
	}
	for _, name := range append(outputFields, "Decision") {
		changed := steppedToolReceipt(t, k)
		alterField(&changed, name)
		if err := k.Replay(changed); !errors.Is(err, kernel.ErrReplay) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*kernel.Receipt){
		"x":         func(r *kernel.Receipt) { r.X = kernel.Point{0.33, 0.33, 0.34} },
		"cusum":     func(r *kernel.Receipt) { r.CUSUM = 0.3 },
		"carry":     func(r *kernel.Receipt) { r.Carry[0] = 0.3 },
		"scores":    func(r *kernel.Receipt) { r.Scores.Injection = 0.81 },
		"no scores": func(r *kernel.Receipt) { r.Scores = kernel.Scores{} },
		"output":    func(r *kernel.Receipt) { r.LostThread = true },
		"invariant": func(r *kernel.Receipt) { r.Invariant = "" },
		"effect":    func(r *kernel.Receipt) { r.Effect = "reads" },
	} {
		changed := steppedToolReceipt(t, k)
		change(&changed)
		if err := k.Replay(changed); !errors.Is(err, kernel.ErrReplay) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Receipts that were written before calls had effects and evidence open and replay, to
// the byte. This file is never written anew.
func TestReceiptsWithoutEffectStillReplay(t *testing.T) {
	k := newKernel(t, revision0(kernel.DefaultPolicy()))
	text, err := os.ReadFile(filepath.Join("testdata", "receipts_tool_without_effect.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	for _, line := range lines {
		r, err := kernel.OpenReceipt(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Replay(r); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d receipts", len(lines))
	}
}
