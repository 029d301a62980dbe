package kernel_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// FuzzAssess: whatever the numbers, a step either is refused as input or leaves
// a session that the next step accepts and a record that replays.
func FuzzAssess(f *testing.F) {
	third, minus := 1.0/3, math.Copysign(0, -1)
	f.Add(third, third, third, third, third, third, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, uint8(0))
	f.Add(0.08, 0.08, 0.84, 0.2, 0.2, 0.6, 0.79, 1.5, 0.0, 5e-324, 0.9, 1.0, 0.31, -2.0, uint8(255))
	f.Add(math.NaN(), 0.5, 0.5, third, third, third, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, uint8(1))
	f.Add(third, third, third, math.Inf(1), math.Inf(-1), third, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, uint8(2))
	f.Add(5e-324, 0.5, 0.5, 1e-310, 0.5, 0.5, 4e307, 1.7e308, 1.7e308, 1.7e308, minus, minus, minus, minus, uint8(4))
	f.Add(1e-300, 0.5, 0.5, 1e-300, 0.5, 0.5, minus, minus, 1e-320, minus, 1.0, 1.0, 1.0, 2.0, uint8(132))
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, x0, x1, x2, z0, z1, z2, cusum, c0, c1, c2, s0, s1, confidence, threat float64, flags uint8) {
		s := kernel.Session{
			X: kernel.Point{x0, x1, x2}, Z: kernel.Point{z0, z1, z2},
			CUSUM: cusum, CUSUMSlow: cusum, Carry: kernel.Point{c0, c1, c2}, Policy: k.PolicyHash(),
		}
		if flags&4 != 0 {
			s.Policy = "another"
		}
		e := kernel.Evidence{
			Scores: kernel.Scores{Identity: s0, HarmRequest: s1}, ThreatSignal: threat,
			SovereigntyDrift: flags&8 != 0, Degraded: flags&16 != 0,
		}
		turn, err := k.Assess(s, e, kernel.Enforce)
		if err == nil {
			turn, err = k.Conclude(turn, kernel.Output{Capitulated: flags&32 != 0, Confidence: confidence, LostThread: flags&64 != 0})
		}
		if err != nil {
			if !errors.Is(err, kernel.ErrInput) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if math.Abs(add(turn.State)-1) > 1e-12 || turn.M < 0.08 {
			t.Fatalf("state %v", turn.State)
		}
		if _, err := k.Assess(turn.Next, e, kernel.Enforce); err != nil {
			t.Fatalf("the next turn is refused: %v", err)
		}
		text, err := k.Receipt(turn).JSON()
		if err != nil {
			t.Fatal(err)
		}
		back, err := kernel.ParseReceipt(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Replay(back); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzRecordToolCall: whatever is said of a call, it either is refused as input or leaves
// a session that the next turn accepts and a record that replays; without scores the
// session stays as it is, and with them the state stays in the barrier set.
func FuzzRecordToolCall(f *testing.F) {
	third := 1.0 / 3
	f.Add(third, third, third, 0.0, 0.0, 0.0, 0.0, "f", "", "", "", "", uint8(0))
	f.Add(0.08, 0.08, 0.84, 0.79, 1.5, 0.9, 0.31, "shell", "exfiltration", "no-shell", "send", "instruction", uint8(3))
	f.Add(0.08, 0.46, 0.46, 0.3, 0.0, 0.0, 0.0, "\xff", "session_risk", "", "write", "model", uint8(2))
	f.Add(0.2, 0.3, 0.5, math.NaN(), math.Inf(1), 5e-324, 1.0, "f", "x", "", "reads", "nobody", uint8(6))
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, x0, x1, x2, cusum, carry, score, other float64, tool, invariant, rule, effect, provenance string, flags uint8) {
		s := k.NewSession()
		s.X, s.CUSUM, s.CUSUMSlow, s.Carry[1] = kernel.Point{x0, x1, x2}, cusum, cusum, carry
		if flags&4 != 0 {
			s.Policy = "another"
		}
		mode := kernel.Enforce
		if flags&1 != 0 {
			mode = kernel.Observe
		}
		c := kernel.ToolCall{
			Tool: tool, Invariant: invariant, Rule: rule, Effect: kernel.ToolEffect(effect), HighRisk: flags&2 != 0,
			Provenance: kernel.Provenance(provenance), Decision: kernel.ToolDecision(rule),
		}
		scores := kernel.Scores{Injection: score, HarmRequest: other}
		turn, err := k.RecordToolCall(s, c, kernel.Evidence{Scores: scores}, mode)
		if err != nil {
			if !errors.Is(err, kernel.ErrInput) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if scores == (kernel.Scores{}) && turn.Next != turn.Before {
			t.Fatalf("%+v became %+v", turn.Before, turn.Next)
		}
		if math.Abs(add(turn.State)-1) > 1e-9 || turn.M < 0.08 || turn.Next.Carry != turn.Before.Carry {
			t.Fatalf("state %v, carry %v", turn.State, turn.Next.Carry)
		}
		if _, err := k.Assess(turn.Next, kernel.Evidence{}, mode); err != nil {
			t.Fatalf("the next turn is refused: %v", err)
		}
		text, err := k.Receipt(turn).JSON()
		if err != nil {
			return // a text is not UTF-8
		}
		back, err := kernel.ParseReceipt(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Replay(back); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzParseReceipt: what is accepted has one canonical form, which is read back
// as the same record with the same id.
func FuzzParseReceipt(f *testing.F) {
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		f.Fatal(err)
	}
	sealed := mustJSON(f, sealedReceipt(f, k))
	f.Add(sealed)
	f.Add(mustJSON(f, kernel.Receipt{}))
	f.Add(mustJSON(f, toolReceipt(f, k)))
	f.Add(mustJSON(f, steppedToolReceipt(f, k)))
	f.Add([]byte(`{"x":[-0,5e-324,1e308],"timestamp":9007199254740993,"turn":null,"coverage":null}`))
	f.Add([]byte(`{"delta_V":NaN}`))
	f.Add(bytes.ToUpper(sealed))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := kernel.ParseReceipt(text)
		if err != nil {
			if !errors.Is(err, kernel.ErrReceipt) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		_ = k.Replay(r)
		checkCanonical(t, r)
		first, err := r.JSON()
		if err != nil {
			return // an integer beyond 2^53
		}
		again, err := kernel.ParseReceipt(first)
		if err != nil {
			t.Fatalf("its own JSON is refused: %v", err)
		}
		if second := mustJSON(t, again); !bytes.Equal(first, second) {
			t.Fatalf("%s\nbecame\n%s", first, second)
		}
		if (r.CheckID() == nil) != (again.CheckID() == nil) {
			t.Fatal("the id depends on the spelling")
		}
	})
}

// FuzzPolicy: a policy is refused with its fault, or every step under it keeps
// the state in the barrier set and the session acceptable.
func FuzzPolicy(f *testing.F) {
	d := kernel.DefaultPolicy()
	f.Add(d.Floor, d.Tau, d.Recovery, d.Optimal, d.Rho, d.Eta, d.Beta, d.Kappa, d.Clip, d.CUSUMK, d.CUSUMH, 0.9)
	f.Add(0.001, 0.0010000001, 0.3333, 0.33333, 5e-324, 50.0, 1.0, 0.0, 5e-324, 5e-324, 10.0, 1.0)
	f.Add(0.32, 0.33, 0.331, 0.332, 0.999999, 1e-310, 5e-324, 0.009, 4.0, 0.999999, 5e-324, 5e-324)
	f.Add(math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e308, -1e308, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
	f.Fuzz(func(t *testing.T, floor, tau, recovery, optimal, rho, eta, beta, kappa, clip, cusumK, cusumH, score float64) {
		p := kernel.DefaultPolicy()
		p.Floor, p.Tau, p.Recovery, p.Optimal, p.Rho, p.Eta = floor, tau, recovery, optimal, rho, eta
		p.Beta, p.Kappa, p.Clip, p.CUSUMK, p.CUSUMH = beta, kappa, clip, cusumK, cusumH
		k, err := kernel.New(p)
		if err != nil {
			if !errors.Is(err, kernel.ErrPolicy) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		s := k.NewSession()
		for _, e := range []kernel.Evidence{scores(score, 0, 0, 0, 0, 0), scores(0, 0, score, score, 0, 0), {}, scores(0, 1, 0, 0, 1, 0)} {
			turn, err := k.Assess(s, e, kernel.Enforce)
			if errors.Is(err, kernel.ErrInput) && !(score >= 0 && score <= 1) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(add(turn.State)-1) > 1e-12 || turn.M < tau {
				t.Fatalf("state %v under tau %v", turn.State, tau)
			}
			s = turn.Next
		}
	})
}
