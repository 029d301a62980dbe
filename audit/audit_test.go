package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

// A ledger is a store in which a test can change and remove receipts behind the
// store's back.
type ledger struct {
	store.Store
	ids     []string // oldest first
	changed map[string][]byte
	moved   map[string]string // ids to the keys of the sessions that they are said to be of
	setup   string            // of the receipts that are written
	unfound string            // a receipt in the log that its id does not lead to
}

func (l *ledger) Receipt(ctx context.Context, id string) (store.Receipt, error) {
	if id == l.unfound {
		return store.Receipt{}, store.ErrNotFound
	}
	r, err := l.Store.Receipt(ctx, id)
	if key, moved := l.moved[id]; moved {
		r.SessionKey = key
	}
	if record, touched := l.changed[id]; touched && err == nil {
		if r.JSON = record; len(record) == 0 {
			return store.Receipt{}, store.ErrNotFound
		}
	}
	return r, err
}

// Log is that of the store as it was changed.
func (l *ledger) Log(ctx context.Context, after uint64, limit int) ([]store.Receipt, error) {
	whole, err := l.Store.Log(ctx, after, 1_000_000)
	var page []store.Receipt
	for _, r := range whole {
		record, touched := l.changed[r.ID]
		if touched {
			r.JSON = record
		}
		if (!touched || len(record) > 0) && len(page) < limit {
			page = append(page, r)
		}
	}
	return page, err
}

const sessionKey = "0000000000000000000000000000000000000000000000000000000000000000"

func emptyLedger(t *testing.T) (*ledger, *kernel.Kernel) {
	t.Helper()
	s, err := bolt.Open(filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := k.Policy().JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutDocument(t.Context(), k.PolicyHash(), policy); err != nil {
		t.Fatal(err)
	}
	return &ledger{Store: s, changed: make(map[string][]byte), moved: make(map[string]string)}, k
}

// newLedger keeps the receipts of one session of n turns.
func newLedger(t *testing.T, n int) *ledger {
	t.Helper()
	l, k := emptyLedger(t)
	session := newSession(k)
	for i := range n {
		session = l.turn(t, k, session, int64(i+1))
	}
	return l
}

func newSession(k *kernel.Kernel) store.Session {
	return store.Session{Key: sessionKey, State: k.NewSession(), Secret: bytes.Repeat([]byte{1}, 32)}
}

// turn commits the next turn of a session, and returns the session after it.
func (l *ledger) turn(t *testing.T, k *kernel.Kernel, session store.Session, timestamp int64) store.Session {
	t.Helper()
	turn, err := k.Assess(session.State, kernel.Evidence{}, kernel.Enforce)
	if err != nil {
		t.Fatal(err)
	}
	r, n := k.Receipt(turn), session.Turns+1
	r.SessionID, r.Turn, r.Timestamp, r.Prev, r.Nonce = "s", n, timestamp, session.Head, fmt.Sprint(len(l.ids))
	r.PromptCommitment = kernel.Commit(session.Secret, question(n-1))
	record, err := r.Seal()
	if err != nil {
		t.Fatal(err)
	}
	session.State, session.Head, session.Turns = turn.Next, r.Link(), n
	entry := store.Receipt{
		ID: r.ID, Kind: store.KindText, SessionKey: sessionKey, SessionID: "s",
		TurnID: fmt.Sprintf("turn%d", len(l.ids)), Turn: n, Timestamp: timestamp, JSON: record,
	}
	if err := l.Commit(t.Context(), store.Change{Session: session, Receipt: entry}); err != nil {
		t.Fatal(err)
	}
	l.ids = append(l.ids, r.ID)
	if session, err = l.Session(t.Context(), sessionKey); err != nil {
		t.Fatal(err)
	}
	return session
}

func question(turn int) string { return fmt.Sprintf("question %d", turn) }

func (l *ledger) record(t *testing.T, n int) []byte {
	t.Helper()
	r, err := l.Store.Receipt(t.Context(), l.ids[n])
	if err != nil {
		t.Fatal(err)
	}
	return r.JSON
}

// outcomes writes checks as "name+" when they passed, "name-" when they failed and
// "name?" when they could not be made.
func outcomes(checks []audit.Check) string {
	var out []string
	for _, c := range checks {
		sign := "?"
		switch {
		case c.Passed():
			sign = "+"
		case c.Failed():
			sign = "-"
		}
		out = append(out, c.Name+sign)
	}
	return strings.Join(out, " ")
}

func TestAuditor(t *testing.T) {
	l := newLedger(t, 4)
	record := l.record(t, 1)
	for name, c := range map[string]struct {
		id     string // of the receipt that is changed; "" for none
		record []byte // nil removes it
		want   string
	}{
		"untouched":               {"", nil, "form+ replay+ chain+ log+"},
		"changed":                 {l.ids[1], bytes.Replace(record, []byte(`"turn":2`), []byte(`"turn":9`), 1), "form-"},
		"another in its place":    {l.ids[1], l.record(t, 2), "form-"},
		"its predecessor removed": {l.ids[0], nil, "form+ replay+ chain- log-"},
		"its successor removed":   {l.ids[2], nil, "form+ replay+ chain- log-"},
	} {
		t.Run(name, func(t *testing.T) {
			l.changed[c.id] = c.record
			defer delete(l.changed, c.id)
			report, err := audit.NewAuditor(l).VerifyID(t.Context(), l.ids[1])
			if err != nil {
				t.Fatal(err)
			}
			if got := outcomes(report.Checks); got != c.want || report.Valid != !strings.Contains(c.want, "-") || report.Valid != (report.Fault == nil) {
				t.Errorf("%s, valid %v", got, report.Valid)
			}
			first, _, fails := strings.Cut(c.want, "-")
			if name := first[strings.LastIndexByte(first, ' ')+1:]; fails && !strings.HasPrefix(*report.Fault, name+": ") {
				t.Errorf("the first fault is %s", *report.Fault)
			}
		})
	}
	if _, err := audit.NewAuditor(l).VerifyID(t.Context(), "KRN-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
}

func TestAuditorComparesTexts(t *testing.T) {
	l := newLedger(t, 2)
	a := audit.NewAuditor(l)
	right, wrong := question(1), question(0)
	for _, c := range []struct {
		prompt, output *string
		want           string
	}{
		{&right, nil, "prompt_commitment+"},
		{&wrong, nil, "prompt_commitment-"},
		{&right, &right, "prompt_commitment+ output_commitment-"}, // the turn had no answer
	} {
		report, err := a.VerifyRecord(t.Context(), l.record(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.CompareTexts(t.Context(), report, audit.Texts{Prompt: c.prompt, Output: c.output}); err != nil {
			t.Fatal(err)
		}
		if got := outcomes(report.Checks); got != "form+ replay+ chain+ log+ stored+ "+c.want {
			t.Errorf("%s", got)
		}
	}
}

// A record that a caller holds is compared with the one that is kept. Of one that is not kept
// nothing is said that only the archive could know.
func TestAuditorComparesRecords(t *testing.T) {
	l := newLedger(t, 3)
	kept := l.record(t, 1)
	r, err := kernel.ParseReceipt(kept)
	if err != nil {
		t.Fatal(err)
	}
	r.Nonce = "forged"
	forged, err := r.Seal()
	if err != nil {
		t.Fatal(err)
	}
	r.Policy = strings.Repeat("0", 64)
	ofAnotherPolicy, err := r.Seal()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		archive []byte // holds this in the place of the record
		record  []byte
		want    string
	}{
		"kept":                 {kept, kept, "form+ replay+ chain+ log+ stored+"},
		"changed in the store": {bytes.Replace(kept, []byte(`"turn":2`), []byte(`"turn":9`), 1), kept, "form- stored-"},
		"not kept":             {kept, forged, "form+ replay+ chain? log? stored-"},
		"of an unknown policy": {kept, ofAnotherPolicy, "form+ replay- chain? log? stored-"},
		"no receipt":           {kept, []byte(`{}`), "form-"},
	} {
		l.changed[l.ids[1]] = c.archive
		report, err := audit.NewAuditor(l).VerifyRecord(t.Context(), c.record)
		if err != nil || outcomes(report.Checks) != c.want {
			t.Errorf("%s: %v, %+v", name, err, report)
		}
	}
}

// verify returns the summary and the faults of a source.
func verify(t *testing.T, s audit.Source, partial bool, texts ...audit.Texts) (audit.Summary, []string) {
	t.Helper()
	var faults []string
	v := audit.NewVerifier(s, partial, func(where string, c audit.Check) { faults = append(faults, where+": "+c.Name+": "+c.Detail) })
	sum, err := v.Verify(t.Context())
	for _, c := range texts {
		err = errors.Join(err, v.CompareTexts(t.Context(), c))
	}
	if err != nil {
		t.Fatal(err)
	}
	return sum, faults
}

// A store's receipts come oldest first over many pages, and its sessions' heads
// are known.
func TestVerifierOfAStore(t *testing.T) {
	l := newLedger(t, 40)
	source := audit.NewStoreSource(l)
	right, wrong := question(39), question(0)
	sum, faults := verify(t, source, false, audit.Texts{ID: l.ids[39], Prompt: &right})
	if want := (audit.Summary{Receipts: 40, Chains: 1, FirstPlace: 1, LastPlace: 40, HeadsKnown: true}); sum != want || len(faults) != 0 {
		t.Errorf("%+v, faults %v", sum, faults)
	}
	_, faults = verify(t, source, false, audit.Texts{ID: l.ids[39], Prompt: &wrong}, audit.Texts{ID: "KRN-1"})
	if len(faults) != 2 || !strings.Contains(faults[0], "prompt_commitment: ") || !strings.Contains(faults[1], "no such receipt") {
		t.Errorf("other texts: %v", faults)
	}
	l.unfound = l.ids[39]
	if _, faults = verify(t, source, false); len(faults) != 1 || !strings.Contains(faults[0], "does not find it by its id") {
		t.Errorf("one that its id does not lead to: %v", faults)
	}
	l.unfound = ""
	l.changed[l.ids[20]] = bytes.Replace(l.record(t, 20), []byte(`"turn":21`), []byte(`"turn":22`), 1)
	if _, faults = verify(t, source, false); len(faults) != 2 || !strings.HasPrefix(faults[0], l.ids[20]+": form: ") || !strings.HasPrefix(faults[1], l.ids[21]+": log: ") {
		t.Errorf("one changed: %v", faults)
	}
	delete(l.changed, l.ids[20])
	// Of a last one that is broken nothing else can be told, and it ends no chain.
	last := l.record(t, 39)
	for name, record := range map[string][]byte{
		"changed": bytes.Replace(last, []byte(`"turn":40`), []byte(`"turn":41`), 1), "cut": last[:len(last)-1],
	} {
		l.changed[l.ids[39]] = record
		sum, faults := verify(t, source, false, audit.Texts{ID: l.ids[39], Prompt: &right})
		if len(faults) != 2 || !strings.HasPrefix(faults[0], l.ids[39]+": form: ") || !strings.HasPrefix(faults[1], l.ids[39]+": form: ") || sum.Chains != 1 {
			t.Errorf("the last one %s: %+v, faults %v", name, sum, faults)
		}
	}
}

// The receipts of a session that was erased are told from such as were put beside its chain by
// their places in the log, whatever their times are: a turn that was under way when the session
// was erased came before others of it, and replicas have clocks of their own.
func TestErasedSessionsBeginAgainAtAnyTime(t *testing.T) {
	for _, timestamp := range []int64{1, 2, 3} {
		l, k := emptyLedger(t)
		l.turn(t, k, newSession(k), 2)
		if err := l.Erase(t.Context(), sessionKey); err != nil {
			t.Fatal(err)
		}
		l.turn(t, k, newSession(k), timestamp)
		if sum, faults := verify(t, audit.NewStoreSource(l), false); len(faults) != 0 || sum.HeadsUnknown != 1 {
			t.Errorf("begun again at %d: %+v, faults %v", timestamp, sum, faults)
		}

		forged, err := kernel.ParseReceipt(l.record(t, 0))
		if err != nil {
			t.Fatal(err)
		}
		forged.Nonce = "forged"
		record, err := forged.Seal()
		if err == nil {
			err = l.Append(t.Context(), store.Receipt{
				ID: forged.ID, Kind: store.KindText, SessionKey: sessionKey, SessionID: "s", Turn: 1, Timestamp: forged.Timestamp, JSON: record,
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, faults := verify(t, audit.NewStoreSource(l), false); len(faults) != 1 || !strings.Contains(faults[0], "not in the chain") {
			t.Errorf("one put beside the chain that begins at %d: %v", timestamp, faults)
		}
	}
}

// A file shows a receipt that is missing between others, but not a tail that was
// cut off.
func TestVerifierOfAFile(t *testing.T) {
	l := newLedger(t, 4)
	file := func(receipts ...int) audit.Source {
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
	for _, receipts := range [][]int{{0, 1, 2, 3}, {0, 1}} {
		if sum, faults := verify(t, file(receipts...), false); len(faults) != 0 || sum.HeadsKnown || sum.Receipts != len(receipts) || sum.Chains != 1 || sum.Unplaced != len(receipts) {
			t.Errorf("%v: %+v, faults %v", receipts, sum, faults)
		}
	}
	if _, faults := verify(t, file(0, 2, 3), false); len(faults) != 1 || !strings.Contains(faults[0], "receipts.jsonl:2 "+l.ids[2]) || !strings.Contains(faults[0], "removed or moved") {
		t.Errorf("one missing: %v", faults)
	}
	if _, faults := verify(t, file(2, 3), true); len(faults) != 0 {
		t.Errorf("a later part: %v", faults)
	}
	err := audit.NewVerifier(file(0), false, func(string, audit.Check) {}).CompareTexts(t.Context(), audit.Texts{ID: l.ids[0]})
	if !errors.Is(err, audit.ErrNoSessions) {
		t.Errorf("texts: %v", err)
	}

	// Its workers still read records when the file is read on.
	name := filepath.Join(t.TempDir(), "receipts.jsonl")
	other := kernel.DefaultPolicy()
	other.Rho /= 2
	policy, err := other.JSON()
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.NewBuffer(fmt.Appendf(nil, "{\"policy\":%s}\n", policy))
	a := newArchivist(t, 3, false)
	a.write(large, 1_000)
	long := a.next()
	long.Model = strings.Repeat("m", 256<<10)
	record, err := seal(t, long).JSON()
	if err != nil {
		t.Fatal(err)
	}
	large.Write(audit.AppendLogLine(nil, store.Receipt{Seq: 1_001, LogPrev: hashOf(a.last), JSON: record}))
	if err := os.WriteFile(name, large.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	source := audit.NewFileSource(name)
	if sum, faults := verify(t, source, false); len(faults) != 0 || sum.Receipts != 1_001 || sum.Unplaced != 0 || sum.LastPlace != 1_001 {
		t.Errorf("a large one: %+v, faults %v", sum, faults)
	}
	if text, err := source.Document(t.Context(), other.Hash()); err != nil || !bytes.Equal(text, policy) {
		t.Errorf("its policy is %s, %v", text, err)
	}
	// What cannot be read is not a file that ends.
	for _, name := range []string{name + ".gone", t.TempDir()} {
		v := audit.NewVerifier(audit.NewFileSource(name), false, func(string, audit.Check) {})
		if sum, err := v.Verify(t.Context()); err == nil {
			t.Errorf("%s: %+v", name, sum)
		}
	}
	// Receipts with places, from before they named each other.
	var lines []byte
	for n := range 3 {
		lines = audit.AppendLogLine(lines, store.Receipt{Seq: uint64(n + 1), JSON: l.record(t, n)})
	}
	if err := os.WriteFile(name, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	if sum, faults := verify(t, audit.NewFileSource(name), false); len(faults) != 0 || sum.Unplaced != 2 {
		t.Errorf("without links: %+v, faults %v", sum, faults)
	}
}
