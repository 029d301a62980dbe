package audit

import (
	"context"
	"errors"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// ErrNoSessions means that the source does not know the sessions of its receipts.
var ErrNoSessions = errors.New("comparing texts needs the keys of the sessions, which a file does not hold")

// A Verifier checks all receipts of a source. It belongs to one goroutine.
type Verifier struct {
	source   Source
	sessions SessionSource // nil if the source knows none
	chain    kernel.Chain
	kernels  map[string]*kernel.Kernel
	fault    func(where, what string)
	receipts int
}

// NewVerifier returns a verifier that calls fault for each fault it finds. partial
// accepts receipts whose predecessors are older than the first receipt of the source.
func NewVerifier(source Source, partial bool, fault func(where, what string)) *Verifier {
	sessions, _ := source.(SessionSource)
	return &Verifier{
		source: source, sessions: sessions, chain: kernel.Chain{Partial: partial},
		kernels: make(map[string]*kernel.Kernel), fault: fault,
	}
}

// A Summary counts what was verified.
type Summary struct {
	Receipts int
	// Chains counts the last receipts of all chains, so a conversation that was
	// continued in two ways counts as two.
	Chains int
	// HeadsKnown says that the source knows the heads of the sessions, so that receipts
	// which were cut off at the end of a chain are noticed.
	HeadsKnown bool
	// HeadsGone counts the chains whose sessions were erased or forgotten. Nothing is
	// known about receipts that were cut off there.
	HeadsGone int
}

// Verify checks every receipt of the source, oldest first, and then compares the ends
// of the chains with the heads of their sessions. An error means that the source did
// not answer.
func (v *Verifier) Verify(ctx context.Context) (Summary, error) {
	if err := v.source.Each(ctx, v.receipt); err != nil {
		return Summary{}, err
	}
	ends := v.chain.Ends()
	sum := Summary{Receipts: v.receipts, Chains: len(ends), HeadsKnown: v.sessions != nil}
	if v.sessions == nil {
		return sum, nil
	}
	for _, id := range ends {
		head, err := v.sessions.Head(ctx, id)
		if err != nil {
			return Summary{}, err
		}
		if head.Failed() {
			v.fault(id, "head: "+head.Detail)
		}
		if head.OK == nil {
			sum.HeadsGone++
		}
	}
	return sum, nil
}

// receipt checks one entry. A receipt with a wrong id is still added to the chain, so
// that no fault is reported for its successor.
func (v *Verifier) receipt(ctx context.Context, where string, entry store.Receipt) error {
	v.receipts++
	r, broken := openEntry(entry)
	if broken != nil {
		v.fault(where, broken.Error())
	}
	if errors.Is(broken, kernel.ErrReceipt) {
		return nil
	}
	k, err := v.kernel(ctx, r.Policy)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, kernel.ErrPolicy):
		v.fault(where, "its policy "+r.Policy+" is not known; a file holds it on a line of its own, as export writes it")
		return nil
	case err != nil:
		return err
	}
	if broken == nil {
		if err := k.Replay(r); err != nil {
			v.fault(where, err.Error())
		}
	}
	if err := v.chain.Add(k, r); err != nil && broken == nil {
		v.fault(where, err.Error())
	}
	return nil
}

// kernel returns the kernel of a policy, and keeps it for the next receipt.
func (v *Verifier) kernel(ctx context.Context, hash string) (*kernel.Kernel, error) {
	if k, known := v.kernels[hash]; known {
		return k, nil
	}
	k, err := kernelOf(ctx, v.source, hash)
	if err == nil {
		v.kernels[hash] = k
	}
	return k, err
}

// CompareTexts compares texts with the commitments of their receipt. A check that
// cannot be made is a fault, too. The error is [ErrNoSessions] if the source knows no
// sessions; any other error means that the source did not answer.
func (v *Verifier) CompareTexts(ctx context.Context, t Texts) error {
	if v.sessions == nil {
		return ErrNoSessions
	}
	checks, err := v.sessions.CompareTexts(ctx, t)
	switch {
	case errors.Is(err, store.ErrNotFound):
		v.fault(t.ID, "there is no such receipt")
		return nil
	case errors.Is(err, kernel.ErrReceipt), errors.Is(err, kernel.ErrReceiptID):
		v.fault(t.ID, err.Error())
		return nil
	case err != nil:
		return err
	}
	for _, c := range checks {
		if !c.Passed() {
			v.fault(t.ID, c.Name+": "+c.Detail)
		}
	}
	return nil
}
