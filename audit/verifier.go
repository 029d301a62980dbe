package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// ErrNoSessions means that the source does not know the sessions of its receipts.
var ErrNoSessions = errors.New("comparing texts needs the keys of the sessions, which a file does not hold")

// A Verifier checks all receipts of a source. It reads the source once and keeps what
// [kernel.Chain] says of each session, but no receipts. What concerns one receipt alone
// is checked by all processors; chains and the log follow in the order of the source. It
// belongs to one goroutine.
type Verifier struct {
	source   Source
	sessions SessionSource // nil if the source knows none
	partial  bool
	fault    func(where string, c Check)
	kernels  map[string]*kernel.Kernel
	setups   map[string]struct{} // that were looked at

	chain kernel.Chain
	log   logWalk
	sum   Summary
}

// NewVerifier returns a verifier that calls fault for each check that failed, in the
// order of the receipts. partial accepts receipts whose predecessors are older than the
// first receipt of the source.
func NewVerifier(source Source, partial bool, fault func(where string, c Check)) *Verifier {
	sessions, _ := source.(SessionSource)
	return &Verifier{
		source: source, sessions: sessions, partial: partial, fault: fault,
		kernels: make(map[string]*kernel.Kernel), setups: make(map[string]struct{}), chain: kernel.Chain{Partial: partial},
	}
}

// A Summary counts what was verified.
type Summary struct {
	Receipts int
	// Chains counts the last receipts of all chains, so a conversation that was
	// continued in two ways counts as two.
	Chains int
	// FirstPlace and LastPlace are the places in the log of the first and the last
	// receipt that has one, 0 if none has.
	FirstPlace, LastPlace uint64
	// Unplaced counts the receipts of which the check log could not be made, because
	// they have no place or do not name the record before them.
	Unplaced int
	// SetupsUnknown counts the setups that receipts name and the source does not have.
	SetupsUnknown int
	// HeadsKnown says that the source knows the heads of the sessions, so that receipts
	// which were cut off at the end of a chain are noticed.
	HeadsKnown bool
	// HeadsUnknown counts the chains of which nothing is known about receipts that were
	// cut off: their sessions were erased or forgotten, or the client of a resent
	// conversation went back and said the same again.
	HeadsUnknown int
}

// Verify checks every receipt of the source, oldest first, and then compares the ends
// of the chains with the heads of their sessions. An error means that the source did
// not answer.
func (v *Verifier) Verify(ctx context.Context) (Summary, error) {
	if !v.partial {
		v.log.begin(0)
	}
	receipts := ordered[examined]{work: (*examined).alone, finish: v.together}
	err := v.source.Each(ctx, func(ctx context.Context, where string, entry store.Receipt) error {
		k, err := v.kernelFor(ctx, entry.JSON)
		if err != nil {
			return err
		}
		setup, err := v.setupFor(ctx, entry.JSON)
		if err != nil {
			return err
		}
		receipts.slot().take(where, entry, k, setup)
		receipts.add(len(entry.JSON))
		return nil
	})
	receipts.drain()
	if err == nil {
		err = v.heads(ctx)
	}
	if err != nil {
		return Summary{}, err
	}
	return v.sum, nil
}

// examined is an entry and what the checks found that need no other.
type examined struct {
	where  string
	entry  store.Receipt
	kernel *kernel.Kernel // of its policy, nil if that is not known

	receipt kernel.Receipt
	broken  error // it is no receipt, or its id is wrong
	form    Check
	replay  Check
	setup   Check             // of the first receipt that names it
	sum     [sha256.Size]byte // of the record
}

// take begins with another entry, in the memory of the one before.
func (e *examined) take(where string, entry store.Receipt, k *kernel.Kernel, setup Check) {
	entry.JSON = append(e.entry.JSON[:0], entry.JSON...)
	*e = examined{where: where, entry: entry, kernel: k, setup: setup}
}

// release leaves nothing but room for another record, unless this one was large.
func (e *examined) release() {
	room := e.entry.JSON[:0]
	*e = examined{}
	if cap(room) <= 16<<10 {
		e.entry.JSON = room
	}
}

// alone makes the checks that need no other receipt.
func (e *examined) alone() {
	if e.receipt, e.sum, e.broken = openEntry(e.entry); e.broken != nil {
		e.form = failed("form", e.broken.Error())
		if isGone(e.entry.JSON) {
			e.form = failed("form", "its record is gone, or so damaged that it cannot be read")
		}
		return
	}
	e.form = checkForm(e.receipt)
	if e.kernel == nil || e.kernel.PolicyHash() != e.receipt.Policy {
		e.kernel = nil
		e.replay = failed("replay", "its policy "+e.receipt.Policy+" is not known; a file holds it on a line of its own, as export writes it")
		return
	}
	if err := e.kernel.Replay(e.receipt); err != nil {
		e.replay = failed("replay", err.Error())
	}
}

// together makes the checks that need the receipts before, and reports all that failed.
// A receipt with a wrong id is still added to the chain, so that no fault is reported
// for its successor.
func (v *Verifier) together(e *examined) {
	defer e.release()
	v.sum.Receipts++
	v.report(e, e.form, e.replay, v.place(e), e.setup)
	if e.kernel == nil || errors.Is(e.broken, kernel.ErrReceipt) {
		return
	}
	if err := v.chain.Add(e.kernel, e.receipt); err != nil && e.broken == nil {
		v.report(e, failed("chain", err.Error()))
	}
}

// place makes the check log.
func (v *Verifier) place(e *examined) Check {
	if e.entry.Seq == 0 && v.sum.LastPlace > 0 {
		return failed("log", "it has no place in the log, but earlier ones have")
	}
	if e.entry.Seq == 0 {
		v.sum.Unplaced++
		return Check{}
	}
	if v.sum.LastPlace = e.entry.Seq; v.sum.FirstPlace == 0 {
		v.sum.FirstPlace = e.entry.Seq
	}
	c := v.log.next(e.entry.Seq, e.entry.LogPrev, e.sum)
	if c.OK == nil {
		v.sum.Unplaced++
	}
	return c
}

// report reports the checks that failed.
func (v *Verifier) report(e *examined, checks ...Check) {
	for _, c := range checks {
		if !c.Failed() {
			continue
		}
		where := e.where
		if e.entry.ID == "" { // the source named only the place
			if id := gjson.GetBytes(e.entry.JSON, "id").Str; kernel.IsReceiptID(id) {
				where += " " + id
			}
		}
		v.fault(where, c)
	}
}

// heads compares the ends of the chains with the heads of their sessions.
func (v *Verifier) heads(ctx context.Context) error {
	ends := v.chain.Ends()
	v.sum.Chains, v.sum.HeadsKnown = len(ends), v.sessions != nil
	if v.sessions == nil {
		return nil
	}
	for _, id := range ends {
		head, err := v.sessions.Head(ctx, id)
		if err != nil {
			return err
		}
		if head.Failed() {
			v.fault(id, head)
		}
		if head.OK == nil {
			v.sum.HeadsUnknown++
		}
	}
	return nil
}

// kernelFor returns the kernel of the policy that a record names, nil if the policy is
// not known. A source belongs to one goroutine, so it is asked here; nothing is decided
// by what is found in the record here.
func (v *Verifier) kernelFor(ctx context.Context, record []byte) (*kernel.Kernel, error) {
	hash := memberOf(record, `"policy":"`)
	if k, known := v.kernels[hash]; known {
		return k, nil
	}
	if !kernel.IsHex256(hash) {
		return nil, nil
	}
	k, err := kernelOf(ctx, v.source, hash)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, kernel.ErrPolicy):
		return nil, nil // it may come later
	case err != nil:
		return nil, err
	}
	v.kernels[hash] = k
	return k, nil
}

// setupFor makes the check of the setup that a record names, once for all that name it. It
// decides nothing about the record.
func (v *Verifier) setupFor(ctx context.Context, record []byte) (Check, error) {
	hash := memberOf(record, `"setup":"`)
	if _, looked := v.setups[hash]; looked || !kernel.IsHex256(hash) {
		return Check{}, nil
	}
	c, err := setupOf(ctx, v.source, hash)
	if err != nil {
		return c, err
	}
	v.setups[hash] = struct{}{}
	if c.OK == nil {
		v.sum.SetupsUnknown++
	}
	return c, nil
}

// memberOf is the text behind the name of a member of a canonical record.
func memberOf(record []byte, name string) string {
	_, named, _ := bytes.Cut(record, []byte(name))
	text, _, _ := bytes.Cut(named, []byte{'"'})
	return string(text)
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
		v.fault(t.ID, failed("texts", "there is no such receipt"))
		return nil
	case errors.Is(err, kernel.ErrReceipt), errors.Is(err, kernel.ErrReceiptID):
		v.fault(t.ID, failed("form", err.Error()))
		return nil
	case err != nil:
		return err
	}
	for _, c := range checks {
		if !c.Passed() {
			v.fault(t.ID, c)
		}
	}
	return nil
}
