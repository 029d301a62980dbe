package kernel_test

import (
	"bytes"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// A turn that is repeated is decided on its own evidence and moves nothing,
// however often it comes; its answer leaves what any answer leaves.
func TestARepeatedTurnTakesNoStep(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(71)
	s := k.NewSession()
	for range 500 {
		e := r.evidence()
		s = take(t, k, s, e, kernel.Enforce, kernel.Output{}).Next
		e.Repeated = true
		turn, err := k.Assess(s, e, kernel.Enforce)
		if err != nil {
			t.Fatal(err)
		}
		want := s
		if !turn.Refused { // a refused turn leaves the pressure that acted on it
			want.Carry = kernel.Point{}
		}
		if turn.Next != want || turn.State != s.X || turn.DeltaV != 0 || turn.Intervened || turn.SlowDrip || turn.AttackType == kernel.SlowDrip {
			t.Fatalf("the session %+v became %+v", s, turn)
		}
		out := r.output()
		concluded, err := k.Conclude(turn, out)
		if err != nil {
			t.Fatal(err)
		}
		if fresh := take(t, k, s, e, kernel.Enforce, out); concluded.Next != fresh.Next {
			t.Fatalf("%+v, want %+v", concluded.Next, fresh.Next)
		}
		s = concluded.Next
	}
}

// A refusal by the words themselves stays one, and its receipt can be replayed.
func TestARepeatedTurnIsDecided(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	e := kernel.Evidence{Scores: kernel.Scores{Identity: 0.9}, Repeated: true}
	turn, err := k.Assess(k.NewSession(), e, kernel.Enforce)
	if err != nil || turn.PrimaryReason() != kernel.SemanticClassifier || !turn.Refused {
		t.Fatalf("%+v, %v", turn, err)
	}
	r := k.Receipt(turn)
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	text := mustJSON(t, r)
	if !bytes.Contains(text, []byte(`,"repeated":true,`)) {
		t.Errorf("%s", text)
	}
	opened, err := kernel.OpenReceipt(text)
	if err != nil || !opened.Repeated || k.Replay(opened) != nil {
		t.Errorf("%+v, %v, %v", opened, err, k.Replay(opened))
	}
	if opened.Repeated = false; k.Replay(opened) == nil {
		t.Error("a step that was not taken replays")
	}
	said := bytes.Replace(text, []byte(`"repeated":true`), []byte(`"repeated":false`), 1)
	if _, err := kernel.OpenReceipt(said); err == nil {
		t.Error("a member that says nothing is accepted")
	}
}

// What was replaced stands in the record, and in no record where nothing was.
func TestRedactedPartsAreCovered(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := session(t, k, 72, 1)[0]
	if bytes.Contains(mustJSON(t, r), []byte("redacted")) {
		t.Error("nothing was redacted")
	}
	r.Coverage.Redacted = []kernel.SkippedPart{{Part: "request.messages.0.content", Why: "refused when it was new", Bytes: 7}}
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	opened, err := kernel.OpenReceipt(mustJSON(t, r))
	if err != nil || len(opened.Coverage.Redacted) != 1 {
		t.Errorf("%+v, %v", opened.Coverage, err)
	}
	checkCanonical(t, r)
}
