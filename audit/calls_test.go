package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// commitTurn commits a turn with three tool calls: one is approved, one breaks an
// invariant that brings evidence, and one the state may deny. It adds the ids to the
// ledger and returns the session after it.
func commitTurn(t *testing.T, l *ledger, k *kernel.Kernel, s store.Session, words string, resent bool) store.Session {
	t.Helper()
	entry := func(turn kernel.Turn, kind string) store.Receipt {
		r := k.Receipt(turn)
		r.SessionID, r.Turn, r.Timestamp, r.Prev, r.Resent = "s", 1, int64(len(l.ids)+1), s.Head, resent
		r.Nonce, r.Setup = fmt.Sprint(len(l.ids)), l.setup
		switch {
		case kind == store.KindText && l.setup != "":
			r.PromptCommitment = kernel.Commit(kernel.CommitmentKey(s.Secret, r.Nonce, kernel.CommittedPrompt), words)
		case kind == store.KindText:
			r.PromptCommitment = kernel.Commit(s.Secret, words)
		default:
			r.ArgumentsCommitment = kernel.Commit(s.Secret, "{}")
		}
		if _, err := r.Seal(); err != nil {
			t.Fatal(err)
		}
		record, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		s.State, s.Head = turn.Next, r.Link()
		l.ids = append(l.ids, r.ID)
		return store.Receipt{ID: r.ID, Kind: kind, SessionKey: s.Key, SessionID: "s", Turn: 1, Timestamp: r.Timestamp, JSON: record}
	}
	turn, err := k.Assess(s.State, kernel.Evidence{Scores: kernel.Scores{Identity: 0.6}}, kernel.Observe)
	if err == nil {
		turn, err = k.Conclude(turn, kernel.Output{LostThread: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	change := store.Change{Receipt: entry(turn, store.KindText)}
	for _, c := range []struct {
		invariant string
		scores    kernel.Scores
	}{{"", kernel.Scores{}}, {"exfiltration", kernel.Scores{Injection: 0.9}}, {"", kernel.Scores{}}} {
		call := kernel.ToolCall{Tool: "send", Effect: kernel.ToolSends, Invariant: c.invariant}
		turn, err := k.RecordToolCall(s.State, call, kernel.Evidence{Scores: c.scores}, kernel.Enforce)
		if err != nil {
			t.Fatal(err)
		}
		change.Calls = append(change.Calls, entry(turn, store.KindToolCall))
	}
	s.Turns++
	change.Session = s
	if err := l.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	s, err = l.Session(t.Context(), s.Key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// export writes the receipts with these numbers as caddy lex export does.
func export(t *testing.T, l *ledger, receipts ...int) audit.Source {
	t.Helper()
	var lines bytes.Buffer
	for _, n := range receipts {
		fmt.Fprintf(&lines, "%s\n", l.record(t, n))
	}
	name := filepath.Join(t.TempDir(), "receipts.jsonl")
	if err := os.WriteFile(name, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return audit.NewFileSource(name)
}

// The calls of a turn stand in the chain between the turn and the next one.
func TestChainWithToolCalls(t *testing.T) {
	l, k := emptyLedger(t)
	session := store.Session{Key: sessionKey, State: k.NewSession(), Secret: bytes.Repeat([]byte{1}, 32)}
	for i := range 2 {
		session = commitTurn(t, l, k, session, question(i), false)
	}
	var kinds []string
	for n, id := range l.ids { // KRN, TCR, TCR, TCR, KRN, …
		kinds = append(kinds, id[:3])
		report, err := audit.NewAuditor(l).VerifyID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcomes(report.Checks); got != "form+ replay+ chain+ log+" {
			t.Errorf("receipt %d: %s: %+v", n, got, report.Checks)
		}
	}
	if got := strings.Join(kinds, " "); got != "KRN TCR TCR TCR KRN TCR TCR TCR" {
		t.Fatalf("the ledger has %s", got)
	}
	if denied, _ := kernel.OpenReceipt(l.record(t, 3)); denied.Invariant != kernel.SessionRisk {
		t.Errorf("the state does not deny the last call: %+v", denied.ToolCall)
	}

	sum, faults := verify(t, audit.NewStoreSource(l), false)
	if want := (audit.Summary{Receipts: 8, Chains: 1, HeadsKnown: true, FirstPlace: 1, LastPlace: 8}); sum != want || len(faults) != 0 {
		t.Errorf("%+v, faults %v", sum, faults)
	}
	for _, c := range []struct {
		receipts []int
		fault    string
	}{
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, ""},
		{[]int{0, 1, 2, 3, 4, 5}, ""}, // a file cannot show that its end was cut off
		{[]int{0, 2, 3, 4}, "removed or moved"},
		{[]int{0, 1, 3, 4}, "removed or moved"},
		{[]int{0, 1, 2, 4}, "removed or moved"},
		{[]int{0, 2, 1, 3, 4}, "removed or moved"},
		{[]int{0, 1, 2, 2, 3, 4}, "occurs twice"},
	} {
		sum, faults := verify(t, export(t, l, c.receipts...), false)
		if found := strings.Contains(strings.Join(faults, "\n"), c.fault); !found || (c.fault == "") != (len(faults) == 0) || sum.Receipts != len(c.receipts) {
			t.Errorf("%v: %+v, faults %v", c.receipts, sum, faults)
		}
	}

	// An approval in the place of the denial that the state justifies does not replay.
	r, err := kernel.ParseReceipt(l.record(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	r.Invariant, r.Decision, r.Label, r.Refused, r.Band, r.GovernorMode = "", kernel.Approved, kernel.LabelClear, false, kernel.Stressed, kernel.GovernorPass
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	forged, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.NewAuditor(l).VerifyRecord(t.Context(), forged)
	if err != nil || report.Valid || !strings.Contains(outcomes(report.Checks), "replay- chain?") {
		t.Errorf("an approval in its place: %v: %+v", err, report)
	}

	// The head notices a call that is cut off, and one that is removed in between.
	for n, want := range map[int]string{7: "chain- log+", 5: "chain- log+", 4: "chain- log-"} {
		l.changed[l.ids[n]] = nil
		report, err := audit.NewAuditor(l).VerifyID(t.Context(), l.ids[3])
		if err != nil || !strings.HasSuffix(outcomes(report.Checks), want) {
			t.Errorf("without receipt %d: %v: %s", n, err, outcomes(report.Checks))
		}
		delete(l.changed, l.ids[n])
	}
}

// forkedTalk is a resent conversation of two turns, the second of which was said twice: the
// number of the receipts before those of the turn that stands beside.
func forkedTalk(t *testing.T, setup string) (l *ledger, again int) {
	t.Helper()
	l, k := emptyLedger(t)
	l.setup = setup
	first := commitTurn(t, l, k, store.Session{Key: sessionKey, State: k.NewSession(), Secret: bytes.Repeat([]byte{1}, 32)}, question(0), true)
	derived := func(key string) store.Session {
		s := first
		s.Key, s.Version = key, 0
		return s
	}
	commitTurn(t, l, k, derived("second"), question(1), true)
	again = len(l.ids) // the same words again: the receipts are appended to the session that is there
	commitTurn(t, l, k, derived("beside"), question(1), true)
	for _, id := range l.ids[again:] {
		l.moved[id] = "second"
	}
	return l, again
}

// Of a turn whose calls follow it up to the head, nothing is left open. Of one beside it,
// nobody can tell that it belongs there.
func TestResentTurnLeadsToItsHead(t *testing.T) {
	l, again := forkedTalk(t, strings.Repeat("5", 64))
	for n, id := range l.ids {
		want := "form+ replay+ chain+ log+ setup?"
		if n >= again {
			want = "form+ replay+ chain? log+ setup?"
		}
		report, err := audit.NewAuditor(l).VerifyID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcomes(report.Checks); got != want {
			t.Errorf("receipt %d: %s: %+v", n, got, report.Checks)
		}
		if !strings.HasPrefix(id, "KRN") {
			continue
		}
		wrong := "prompt_commitment-"
		if n >= again {
			wrong = "prompt_commitment?"
		}
		for words, want := range map[string]string{question(min(n, 1)): "prompt_commitment+", "another": wrong} {
			report, err := audit.NewAuditor(l).VerifyID(t.Context(), id)
			if err == nil {
				err = audit.NewAuditor(l).CompareTexts(t.Context(), report, audit.Texts{ID: id, Prompt: &words})
			}
			if got := outcomes(report.Checks); err != nil || !strings.HasSuffix(got, want) {
				t.Errorf("receipt %d with %q: %v: %s", n, words, err, got)
			}
		}
	}

	// A call that was put beside those of its turn is not in the chain.
	r, err := kernel.ParseReceipt(l.record(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	r.Nonce = "forged"
	forged, err := r.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), store.Receipt{ID: r.ID, Kind: store.KindToolCall, SessionKey: "second", SessionID: "s", Turn: 1, Timestamp: r.Timestamp, JSON: forged}); err != nil {
		t.Fatal(err)
	}
	report, err := audit.NewAuditor(l).VerifyID(t.Context(), r.ID)
	if err != nil || !strings.Contains(outcomes(report.Checks), "chain-") {
		t.Errorf("a call that was put in: %v: %+v", err, report.Checks)
	}
}

// In a resent conversation the head is the last call of the first turn with these texts.
// A client that goes back and says the same again leaves receipts beside it.
func TestResentChainWithToolCalls(t *testing.T) {
	l, again := forkedTalk(t, "")
	for n, id := range l.ids {
		report, err := audit.NewAuditor(l).VerifyID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcomes(report.Checks); got != "form+ replay+ chain+ log+" {
			t.Errorf("receipt %d: %s: %+v", n, got, report.Checks)
		}
	}
	if sum, faults := verify(t, audit.NewStoreSource(l), false); sum.Chains != 2 || len(faults) != 0 {
		t.Errorf("%+v, faults %v", sum, faults)
	}
	if sum, faults := verify(t, export(t, l, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), false); sum.Chains != 2 || len(faults) != 0 {
		t.Errorf("%+v, faults %v", sum, faults)
	}

	// Receipts of other words, and those whose turn is gone, are not accepted.
	for name, c := range map[string]struct {
		changed, verified int
	}{
		"the head's last call is gone":    {7, 4},
		"a call before the head is gone":  {5, 4},
		"the turn of a call beside":       {again, again + 2},
		"the head's own receipt is gone":  {4, again + 1},
		"a call between, of a turn aside": {again + 1, again + 3},
	} {
		l.changed[l.ids[c.changed]] = nil
		report, err := audit.NewAuditor(l).VerifyID(t.Context(), l.ids[c.verified])
		if err != nil || !strings.Contains(outcomes(report.Checks), "chain-") {
			t.Errorf("%s: %v: %s", name, err, outcomes(report.Checks))
		}
		delete(l.changed, l.ids[c.changed])
	}
	// Nor where the conversation was erased and has begun again: the turn was removed, not erased.
	if err := l.Erase(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	commitTurn(t, l, k, store.Session{Key: "second", State: k.NewSession(), Secret: bytes.Repeat([]byte{2}, 32)}, question(1), true)
	for removed, want := range map[int]string{0: "chain?", 4: "chain-"} {
		l.changed[l.ids[removed]] = nil
		report, err := audit.NewAuditor(l).VerifyID(t.Context(), l.ids[7])
		if err != nil || !strings.Contains(outcomes(report.Checks), want) {
			t.Errorf("begun again, without receipt %d: %v: %s", removed, err, outcomes(report.Checks))
		}
		delete(l.changed, l.ids[removed])
	}
}

// Receipts in the session of another turn are not in its chain.
func TestResentReceiptsOfAnotherTurn(t *testing.T) {
	l, _ := forkedTalk(t, "")
	l.moved[l.ids[0]], l.moved[l.ids[3]] = "second", "second" // of another turn's words
	for _, n := range []int{0, 3} {
		report, err := audit.NewAuditor(l).VerifyID(t.Context(), l.ids[n])
		if err != nil || strings.Contains(outcomes(report.Checks), "chain+") {
			t.Errorf("a receipt of another turn: %v: %s", err, outcomes(report.Checks))
		}
	}
}
