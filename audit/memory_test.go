package audit_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A stream gives the receipts of an archivist without keeping them.
type stream struct {
	*archivist
	receipts int
}

func (s *stream) Document(_ context.Context, hash string) ([]byte, error) { return s.policy(hash) }

func (s *stream) Each(ctx context.Context, visit audit.Visit) error {
	for range s.receipts {
		if err := visit(ctx, "a receipt", s.entry()); err != nil {
			return err
		}
	}
	return nil
}

func heap() int {
	runtime.GC()
	runtime.GC() // the first one leaves what pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// held is what a verifier keeps of so many receipts.
func held(t testing.TB, receipts, sessions int, resent, partial bool) int {
	t.Helper()
	s := &stream{archivist: newArchivist(t, sessions, resent), receipts: receipts}
	before := heap()
	v := audit.NewVerifier(s, partial, func(where string, c audit.Check) { t.Error(where, c) })
	if sum, err := v.Verify(t.Context()); err != nil || sum.Receipts != receipts {
		t.Fatal(sum, err)
	}
	after := heap()
	runtime.KeepAlive(v)
	return after - before
}

// A verifier keeps something of each session, and nothing of their receipts but where it
// has to: docs/operations.md says how much.
func TestMemoryOfAVerifier(t *testing.T) {
	per := func(n int, less, more int) int { return (more - less) / n }
	few := held(t, 2_000, 20, false, false)
	if each := per(6_000, few, held(t, 8_000, 20, false, false)); each > 8 {
		t.Errorf("%d bytes are kept of each receipt", each)
	}
	for name, c := range map[string]struct{ each, documented int }{
		"a session":        {per(2_000, held(t, 8_000, 1_000, false, false), held(t, 24_000, 3_000, false, false)), 700},
		"a resent receipt": {per(6_000, held(t, 2_000, 20, true, false), held(t, 8_000, 20, true, false)), 450},
		"a later part":     {per(6_000, held(t, 2_000, 20, false, true), held(t, 8_000, 20, false, true)), 200},
	} {
		t.Logf("%s: %d bytes", name, c.each)
		if c.each > c.documented || c.each < c.documented/3 {
			t.Errorf("%s: %d bytes are kept of each, and %d are documented", name, c.each, c.documented)
		}
	}
}

// Of records as large as a line may be no more are held at a time than there are workers.
func TestMemoryOfLargeReceipts(t *testing.T) {
	a := newArchivist(t, 1, false)
	r := a.next()
	r.Coverage.Skipped = []kernel.SkippedPart{{Part: strings.Repeat("x", 8<<20), Why: "large"}}
	text, err := seal(t, r).JSON()
	if err != nil {
		t.Fatal(err)
	}
	before, most := heap(), 0
	source := visits{a, func(visit func(store.Receipt) error) error {
		for range 40 {
			if err := visit(store.Receipt{JSON: text}); err != nil {
				return err
			}
			most = max(most, heap()-before)
		}
		return nil
	}}
	if _, err := audit.NewVerifier(source, false, func(string, audit.Check) {}).Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most > 64<<20 {
		t.Errorf("%d MiB are held", most>>20)
	}
}

type visits struct {
	*archivist
	each func(visit func(store.Receipt) error) error
}

func (v visits) Document(_ context.Context, hash string) ([]byte, error) { return v.policy(hash) }

// policy is the only document that an archivist has.
func (a *archivist) policy(hash string) ([]byte, error) {
	if hash != a.k.PolicyHash() {
		return nil, store.ErrNotFound
	}
	return a.k.Policy().JSON()
}

func (v visits) Each(ctx context.Context, visit audit.Visit) error {
	n := 0
	return v.each(func(e store.Receipt) error {
		n++
		return visit(ctx, fmt.Sprint("receipt ", n), e)
	})
}
