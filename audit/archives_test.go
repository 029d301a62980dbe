package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A flakyLedger is a ledger of which one read fails.
type flakyLedger struct {
	*ledger

	reads int // that succeed before it
}

// fails reports whether this is the read that fails.
func (f *flakyLedger) fails() error {
	if f.reads--; f.reads == -1 {
		return fmt.Errorf("reading: %w", store.ErrUnavailable)
	}
	return nil
}

func (f *flakyLedger) Receipt(ctx context.Context, id string) (store.Receipt, error) {
	if err := f.fails(); err != nil {
		return store.Receipt{}, err
	}
	return f.ledger.Receipt(ctx, id)
}

func (f *flakyLedger) Log(ctx context.Context, after uint64, limit int) ([]store.Receipt, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.ledger.Log(ctx, after, limit)
}

func (f *flakyLedger) Session(ctx context.Context, key string) (store.Session, error) {
	if err := f.fails(); err != nil {
		return store.Session{}, err
	}
	return f.ledger.Session(ctx, key)
}

func (f *flakyLedger) Document(ctx context.Context, hash string) ([]byte, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.ledger.Document(ctx, hash)
}

// An archive that does not answer is an error, whichever read it is: it is no finding about
// a receipt, neither a good one nor a bad one.
func TestEveryReadThatFailsIsAnError(t *testing.T) {
	resent, _ := forkedTalk(t, strings.Repeat("5", 64))
	another := "another"
	for name, l := range map[string]*ledger{"named": newLedger(t, 4), "resent, with calls": resent} {
		attempts := map[string]func(*flakyLedger) error{
			"all": func(f *flakyLedger) error {
				_, err := audit.NewVerifier(audit.NewStoreSource(f), false, func(where string, c audit.Check) {
					t.Errorf("%s: %s: %+v", name, where, c)
				}).Verify(t.Context())
				return err
			},
			"texts": func(f *flakyLedger) error {
				return audit.NewVerifier(audit.NewStoreSource(f), false, func(string, audit.Check) {}).
					CompareTexts(t.Context(), audit.Texts{ID: l.ids[0], Prompt: &another})
			},
		}
		for n, id := range l.ids {
			attempts[fmt.Sprint("receipt ", n)] = func(f *flakyLedger) error {
				report, err := audit.NewAuditor(f).VerifyRecord(t.Context(), l.record(t, n))
				if err == nil {
					err = audit.NewAuditor(f).CompareTexts(t.Context(), report, audit.Texts{ID: id, Prompt: &another})
				}
				return err
			}
		}
		for attempt, try := range attempts {
			for reads := 0; ; reads++ {
				f := &flakyLedger{l, reads}
				err := try(f)
				if f.reads >= 0 { // it needs no more reads
					if err != nil || reads == 0 {
						t.Errorf("%s, %s: %v after %d reads", name, attempt, err, reads)
					}
					break
				}
				if !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%s, %s: read %d fails: %v", name, attempt, reads+1, err)
				}
			}
		}
	}
}

// A memory is an archive without a log, as receipts were kept before there was one.
type memory struct {
	receipts map[string]store.Receipt
	session  store.Session
	policy   []byte
}

func (m *memory) Receipt(_ context.Context, id string) (store.Receipt, error) {
	if r, found := m.receipts[id]; found {
		return r, nil
	}
	return store.Receipt{}, store.ErrNotFound
}

func (m *memory) Session(_ context.Context, key string) (store.Session, error) {
	if key == m.session.Key {
		return m.session, nil
	}
	return store.Session{}, store.ErrNotFound
}

func (m *memory) Document(_ context.Context, hash string) ([]byte, error) {
	if p := kernel.DefaultPolicy(); hash == p.Hash() {
		return m.policy, nil
	}
	return nil, store.ErrNotFound
}

// add puts the receipt of the next turn after another into the archive, and returns it with
// the state after it. The head of the session stays what it is.
func (m *memory) add(t *testing.T, k *kernel.Kernel, state kernel.Session, turn int, change func(*kernel.Receipt)) (kernel.Receipt, kernel.Session) {
	t.Helper()
	step, err := k.Assess(state, kernel.Evidence{}, kernel.Enforce)
	if err != nil {
		t.Fatal(err)
	}
	r := k.Receipt(step)
	r.SessionID, r.Turn, r.Timestamp, r.Nonce = "s", turn, int64(turn), fmt.Sprint(len(m.receipts))
	r.PromptCommitment = kernel.Commit(m.session.Secret, question(turn))
	change(&r)
	record, err := r.Seal()
	if err != nil {
		t.Fatal(err)
	}
	m.receipts[r.ID] = store.Receipt{ID: r.ID, SessionKey: m.session.Key, Timestamp: r.Timestamp, JSON: record}
	return r, step.Next
}

func newMemory(t *testing.T) (*memory, *kernel.Kernel) {
	t.Helper()
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := k.Policy().JSON()
	if err != nil {
		t.Fatal(err)
	}
	return &memory{
		receipts: make(map[string]store.Receipt), policy: policy,
		session: store.Session{Key: sessionKey, Secret: bytes.Repeat([]byte{1}, 32)},
	}, k
}

// check verifies a receipt of the archive, and compares the text of its turn.
func (m *memory) check(t *testing.T, id, prompt string) string {
	t.Helper()
	a := audit.NewAuditor(m)
	report, err := a.VerifyID(t.Context(), id)
	if err == nil {
		err = a.CompareTexts(t.Context(), report, audit.Texts{ID: id, Prompt: &prompt})
	}
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(report.Checks)
}

// How far the way from the head back to a receipt may be is bounded. Behind the bound the
// check is left open; but a wrong text is told for longer, for that is an accusation.
func TestAuditorWalksSoFar(t *testing.T) {
	const maxWalk = 2 * store.MaxCalls
	m, k := newMemory(t)
	state := k.NewSession()
	var ids []string
	for turn := range 16*maxWalk + 1 {
		var r kernel.Receipt
		r, state = m.add(t, k, state, turn+1, func(r *kernel.Receipt) { r.Prev = m.session.Head })
		m.session.Head = r.Link()
		ids = append(ids, r.ID)
	}
	for _, c := range []struct {
		steps int
		want  string
	}{
		{maxWalk - 1, "form+ replay+ chain+ log? prompt_commitment-"},
		{maxWalk, "form+ replay+ chain? log? prompt_commitment-"},
		{16*maxWalk - 1, "form+ replay+ chain? log? prompt_commitment-"},
		{16 * maxWalk, "form+ replay+ chain? log? prompt_commitment?"},
	} {
		turn := len(ids) - c.steps
		if got := m.check(t, ids[turn-1], question(turn)); got != c.want[:len(c.want)-1]+"+" {
			t.Errorf("the right text, %d before the head: %s", c.steps, got)
		}
		if got := m.check(t, ids[turn-1], "another"); got != c.want {
			t.Errorf("another text, %d before the head: %s, want %s", c.steps, got, c.want)
		}
	}
}

// What stands in an archive in the place of the chain that leads to a receipt.
func TestChainsOfAnArchive(t *testing.T) {
	other := func(link string) string { // one whose id is the same
		if strings.HasSuffix(link, "0") {
			return link[:len(link)-1] + "1"
		}
		return link[:len(link)-1] + "0"
	}
	named, resent := func(*kernel.Receipt) {}, func(r *kernel.Receipt) { r.Resent = true }
	setup := func(r *kernel.Receipt) { r.Resent, r.Setup = true, strings.Repeat("0", 64) }
	for name, c := range map[string]struct {
		kind   func(*kernel.Receipt)
		change func(t *testing.T, m *memory, k *kernel.Kernel, first, last kernel.Receipt)
		want   string // of the first receipt, which is compared with another text
	}{
		"untouched": {named, nil, "form+ replay+ chain+ log? prompt_commitment-"},
		"resent":    {resent, nil, "form+ replay+ chain? log? prompt_commitment?"},
		"the head of resent": {resent, func(_ *testing.T, m *memory, _ *kernel.Kernel, first, _ kernel.Receipt) {
			m.session.Head = first.Link()
		}, "form+ replay+ chain+ log? prompt_commitment-"},
		"another record of its id": {named, func(_ *testing.T, m *memory, _ *kernel.Kernel, first, _ kernel.Receipt) {
			m.session.Head = other(first.Link())
		}, "form+ replay+ chain- log?"},
		"another record of its id, resent": {resent, func(_ *testing.T, m *memory, _ *kernel.Kernel, first, _ kernel.Receipt) {
			m.session.Head = other(first.Link())
		}, "form+ replay+ chain- log?"},
		"no session": {named, func(_ *testing.T, m *memory, _ *kernel.Kernel, first, _ kernel.Receipt) {
			entry := m.receipts[first.ID]
			entry.SessionKey, entry.Seq = "", 1
			m.receipts[first.ID] = entry
		}, "form+ replay+ chain? log? prompt_commitment?"},
		"an erased session": {named, func(_ *testing.T, m *memory, _ *kernel.Kernel, _, _ kernel.Receipt) {
			m.session = store.Session{}
		}, "form+ replay+ chain? log? prompt_commitment?"},
		"begun again later": {named, func(t *testing.T, m *memory, k *kernel.Kernel, first, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, func(r *kernel.Receipt) { r.Timestamp = first.Timestamp + 1 })
			m.session.Head = r.Link()
		}, "form+ replay+ chain? log? prompt_commitment?"},
		"put beside one that began before": {named, func(t *testing.T, m *memory, k *kernel.Kernel, first, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, func(r *kernel.Receipt) { r.Timestamp = first.Timestamp })
			m.session.Head = r.Link()
		}, "form+ replay+ chain- log?"},
		"put beside one that has a place in the log": {named, func(t *testing.T, m *memory, k *kernel.Kernel, first, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, func(r *kernel.Receipt) { r.Timestamp = first.Timestamp })
			entry := m.receipts[r.ID]
			entry.Seq = 1
			m.receipts[r.ID], m.session.Head = entry, r.Link()
		}, "form+ replay+ chain- log?"},
		"resent, put beside a session": {resent, func(t *testing.T, m *memory, k *kernel.Kernel, _, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, func(*kernel.Receipt) {})
			m.session.Head = r.Link()
		}, "form+ replay+ chain- log?"},
		"resent, beside the talk of another": {resent, func(t *testing.T, m *memory, k *kernel.Kernel, _, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, func(r *kernel.Receipt) { r.SessionID, r.Resent = "another", true })
			m.session.Head = r.Link()
		}, "form+ replay+ chain- log?"},
		"resent, the same words before": {resent, func(t *testing.T, m *memory, k *kernel.Kernel, _, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, resent)
			m.session.Head = r.Link()
		}, "form+ replay+ chain+ log? prompt_commitment-"},
		"resent, the same words and another answer before": {resent, func(t *testing.T, m *memory, k *kernel.Kernel, _, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, func(r *kernel.Receipt) {
				r.Resent, r.OutputCommitment = true, kernel.Commit(m.session.Secret, "another")
			})
			m.session.Head = r.Link()
		}, "form+ replay+ chain? log? prompt_commitment?"},
		"resent, the same words before, with a setup": {resent, func(t *testing.T, m *memory, k *kernel.Kernel, _, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, setup)
			m.session.Head = r.Link()
		}, "form+ replay+ chain? log? prompt_commitment?"},
		"resent, with a setup, the same words before": {setup, func(t *testing.T, m *memory, k *kernel.Kernel, _, _ kernel.Receipt) {
			r, _ := m.add(t, k, k.NewSession(), 1, resent)
			m.session.Head = r.Link()
		}, "form+ replay+ chain? log? setup? prompt_commitment?"},
		"a broken head": {resent, func(_ *testing.T, m *memory, _ *kernel.Kernel, _, last kernel.Receipt) {
			entry := m.receipts[last.ID]
			entry.JSON = bytes.Replace(entry.JSON, []byte(`"turn":2`), []byte(`"turn":3`), 1)
			m.receipts[last.ID] = entry
		}, "form+ replay+ chain- log?"},
		"another policy": {named, func(_ *testing.T, m *memory, _ *kernel.Kernel, _, _ kernel.Receipt) { m.policy = []byte(`{}`) }, "form+ replay- chain? log?"},
	} {
		t.Run(name, func(t *testing.T) {
			m, k := newMemory(t)
			first, state := m.add(t, k, k.NewSession(), 1, c.kind)
			last, _ := m.add(t, k, state, 2, func(r *kernel.Receipt) { c.kind(r); r.Prev = first.Link() })
			m.session.Head = last.Link()
			if c.change != nil {
				c.change(t, m, k, first, last)
			}
			if got := m.check(t, first.ID, "another"); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// What stands in an archive in the place of the receipt before another one.
func TestPredecessorsOfAnArchive(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *memory, first kernel.Receipt)
		start  *kernel.Point // of the receipt, if it is not where the other left the session
		want   string
	}{
		"untouched": {func(*memory, kernel.Receipt) {}, nil, "form+ replay+ chain+ log?"},
		"gone":      {func(m *memory, first kernel.Receipt) { delete(m.receipts, first.ID) }, nil, "form+ replay+ chain- log?"},
		"broken": {func(m *memory, first kernel.Receipt) {
			entry := m.receipts[first.ID]
			entry.JSON = bytes.Replace(entry.JSON, []byte(`"turn":1`), []byte(`"turn":0`), 1)
			m.receipts[first.ID] = entry
		}, nil, "form+ replay+ chain- log?"},
		"of another state": {func(*memory, kernel.Receipt) {}, &kernel.Point{0.3, 0.3, 0.4}, "form+ replay+ chain- log?"},
	} {
		m, k := newMemory(t)
		first, state := m.add(t, k, k.NewSession(), 1, func(*kernel.Receipt) {})
		if c.start != nil {
			state.X = *c.start
		}
		last, _ := m.add(t, k, state, 2, func(r *kernel.Receipt) { r.Prev = first.Link() })
		m.session.Head = last.Link()
		c.change(m, first)
		report, err := audit.NewAuditor(m).VerifyID(t.Context(), last.ID)
		if err != nil || outcomes(report.Checks) != c.want {
			t.Errorf("%s: %v, %+v", name, err, report)
		}
	}
}

// A listedLedger is a ledger whose log is another than the receipts that its ids lead to.
type listedLedger struct {
	*ledger

	list  func([]store.Receipt) []store.Receipt
	older bool // than the links of the log
}

func (l listedLedger) Receipt(ctx context.Context, id string) (store.Receipt, error) {
	r, err := l.ledger.Receipt(ctx, id)
	if l.older {
		r.LogPrev = ""
	}
	return r, err
}

func (l listedLedger) Log(ctx context.Context, after uint64, limit int) ([]store.Receipt, error) {
	page, err := l.ledger.Log(ctx, after, limit)
	return l.list(page), err
}

// The log around a receipt, where it says something else than the receipt's own entry.
func TestLogsOfAnArchive(t *testing.T) {
	l := newLedger(t, 3)
	at := func(seq uint64, change func(*store.Receipt)) func([]store.Receipt) []store.Receipt {
		return func(page []store.Receipt) []store.Receipt {
			for i := range page {
				if page[i].Seq == seq {
					change(&page[i])
				}
			}
			return page
		}
	}
	all := func(page []store.Receipt) []store.Receipt {
		for i := range page {
			page[i].LogPrev = ""
		}
		return page
	}
	for name, c := range map[string]struct {
		list func([]store.Receipt) []store.Receipt
		want string // of the check of the second receipt
	}{
		"older than the links":    {all, "log?"},
		"untouched":               {at(0, nil), "log+"},
		"another record there":    {at(2, func(r *store.Receipt) { r.JSON = l.record(t, 2) }), "log-"},
		"another link there":      {at(2, func(r *store.Receipt) { r.LogPrev = strings.Repeat("0", 64) }), "log-"},
		"another link behind it":  {at(3, func(r *store.Receipt) { r.LogPrev = strings.Repeat("0", 64) }), "log-"},
		"no link behind it":       {at(3, func(r *store.Receipt) { r.LogPrev = "" }), "log-"},
		"the next one is missing": {at(3, func(r *store.Receipt) { r.Seq = 4 }), "log-"},
		"the log ends before it":  {func(page []store.Receipt) []store.Receipt { return page[:1] }, "log-"},
		"the log ends with it":    {func(page []store.Receipt) []store.Receipt { return page[:2] }, "log+"},
		"the log is empty":        {func([]store.Receipt) []store.Receipt { return nil }, "log-"},
		// That is a fault of the one before.
		"the first has a link": {at(1, func(r *store.Receipt) { r.LogPrev = strings.Repeat("0", 64) }), "log+"},
	} {
		report, err := audit.NewAuditor(listedLedger{l, c.list, c.want == "log?"}).VerifyID(t.Context(), l.ids[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := outcomes(report.Checks); got != "form+ replay+ chain+ "+c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	// Nothing follows the last one that could name another.
	last := listedLedger{l, at(3, func(r *store.Receipt) { r.JSON = l.record(t, 1) }), false}
	report, err := audit.NewAuditor(last).VerifyID(t.Context(), l.ids[2])
	if err != nil || outcomes(report.Checks) != "form+ replay+ chain+ log-" {
		t.Errorf("another record at the end: %v, %v", report, err)
	}
}
