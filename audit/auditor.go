package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// maxWalk bounds how many receipts are read to get from the head of a session
// to one of its receipts. It is more than a turn has tool calls.
const maxWalk = 2 * store.MaxCalls

// maxCompareWalk is the same where a text seems to be another than the one that was sent: to
// say so is an accusation, and worth a longer way.
const maxCompareWalk = 16 * maxWalk

// An Archive keeps receipts, and the sessions and policies that verifying them needs.
// Every [store.Store] is one.
type Archive interface {
	Receipt(ctx context.Context, id string) (store.Receipt, error)
	Session(ctx context.Context, key string) (store.Session, error)
	Documents
}

// An Auditor verifies single receipts against an archive. It is safe for
// concurrent use if the archive is.
type Auditor struct{ archive Archive }

// NewAuditor returns the auditor of an archive.
func NewAuditor(archive Archive) Auditor { return Auditor{archive} }

// VerifyID verifies the receipt that the archive keeps under an id. If there is none,
// the error wraps [store.ErrNotFound].
func (a Auditor) VerifyID(ctx context.Context, id string) (*Report, error) {
	entry, err := a.archive.Receipt(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.verify(ctx, entry)
}

// VerifyRecord verifies a receipt that the caller holds, in its canonical form.
// Anyone can make a record with a correct id, so the report also has the check stored,
// which compares the record with the one that the archive keeps.
func (a Auditor) VerifyRecord(ctx context.Context, record []byte) (*Report, error) {
	receipt, err := kernel.OpenReceipt(record)
	if err != nil {
		report := newReport(store.Receipt{})
		report.add(failed("form", err.Error()))
		return report, nil
	}
	entry, stored, err := a.stored(ctx, receipt.ID, record)
	if err != nil {
		return nil, err
	}
	if entry.ID == "" { // still make every check that needs no session
		entry = store.Receipt{ID: receipt.ID, JSON: record}
	}
	report, err := a.verify(ctx, entry)
	if err != nil {
		return nil, err
	}
	report.add(stored)
	return report, nil
}

// stored compares a record that the caller holds with the stored one.
func (a Auditor) stored(ctx context.Context, id string, record []byte) (store.Receipt, Check, error) {
	const name = "stored"
	entry, err := a.archive.Receipt(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return entry, failed(name, "there is no such receipt here: it was never written or has been removed"), nil
	case err != nil:
		return entry, Check{}, err
	case !bytes.Equal(entry.JSON, record):
		return entry, failed(name, "the record that is kept under this id is another"), nil
	}
	return entry, passed(name, "the record is the one that is kept"), nil
}

// verify makes the checks form, replay, chain, log and setup. A record that is no receipt or
// whose id is wrong gets no later check: nothing in it can be relied on.
func (a Auditor) verify(ctx context.Context, entry store.Receipt) (*Report, error) {
	report := newReport(entry)
	r, _, err := openEntry(entry)
	if err != nil {
		report.add(failed("form", err.Error()))
		return report, nil
	}
	report.receipt = r
	report.add(checkForm(r))
	checks := []func(context.Context, store.Receipt, kernel.Receipt) (Check, error){a.replay, a.chain, a.log}
	if r.Setup != "" {
		checks = append(checks, a.setup)
	}
	for _, check := range checks {
		c, err := check(ctx, entry, r)
		if err != nil {
			return nil, err
		}
		report.add(c)
	}
	return report, nil
}

// checkForm checks what a receipt says of itself. Its record is canonical and its id is
// right.
func checkForm(r kernel.Receipt) Check {
	if err := r.CheckForm(); err != nil {
		return failed("form", err.Error())
	}
	return passed("form", "the record is canonical, its id is its hash, and its members agree")
}

// replay takes the recorded step again.
func (a Auditor) replay(ctx context.Context, _ store.Receipt, r kernel.Receipt) (Check, error) {
	const name = "replay"
	k, err := kernelOf(ctx, a.archive, r.Policy)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return failed(name, "its policy is not known here"), nil
	case errors.Is(err, kernel.ErrPolicy):
		return failed(name, err.Error()), nil
	case err != nil:
		return Check{}, err
	}
	if err := k.Replay(r); err != nil {
		return failed(name, err.Error()), nil
	}
	return passed(name, "the step gives the recorded numbers, bit by bit"), nil
}

// setup looks at the setup that the receipt names.
func (a Auditor) setup(ctx context.Context, _ store.Receipt, r kernel.Receipt) (Check, error) {
	return setupOf(ctx, a.archive, r.Setup)
}

// openEntry reads an entry's record and checks its id, also against the id under which
// the entry is stored, if any. Receipt, hash and error are those of [kernel.OpenInPlace].
func openEntry(entry store.Receipt) (kernel.Receipt, [sha256.Size]byte, error) {
	r, sum, err := kernel.OpenInPlace(entry.JSON)
	if err == nil && entry.ID != "" && entry.ID != r.ID {
		err = fmt.Errorf("%w: it is stored under the id of another", kernel.ErrReceiptID)
	}
	return r, sum, err
}

// chain compares the receipt with its predecessor, and looks for it on the way back from
// the head of its session.
func (a Auditor) chain(ctx context.Context, entry store.Receipt, r kernel.Receipt) (Check, error) {
	before, err := a.predecessor(ctx, r)
	if err != nil || !before.Passed() {
		return before, err
	}
	after, err := a.head(ctx, entry, r, maxWalk)
	if err != nil {
		return Check{}, err
	}
	after.Detail = before.Detail + "; " + after.Detail
	return after, nil
}

// predecessor compares the receipt with its predecessor.
func (a Auditor) predecessor(ctx context.Context, r kernel.Receipt) (Check, error) {
	const name = "chain"
	k, err := kernelOf(ctx, a.archive, r.Policy)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, kernel.ErrPolicy):
		return unknown(name, "its policy is not known here"), nil
	case err != nil:
		return Check{}, err
	}
	chain := kernel.Chain{Partial: true}
	if r.Prev != "" {
		id := kernel.IDOf(r.Prev)
		entry, err := a.archive.Receipt(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return failed(name, "its predecessor "+id+" is missing"), nil
		}
		if err != nil {
			return Check{}, err
		}
		prev, err := kernel.OpenReceipt(entry.JSON)
		if err != nil {
			return failed(name, fmt.Sprintf("its predecessor %s is broken: %v", id, err)), nil
		}
		_ = chain.Add(k, prev) // a fault of the predecessor's own is not this receipt's
	}
	if err := chain.Add(k, r); err != nil {
		return failed(name, err.Error()), nil
	}
	if r.Prev == "" {
		return passed(name, "it is the first of its session"), nil
	}
	return passed(name, "it starts from what "+kernel.IDOf(r.Prev)+" left"), nil
}

// head searches the chain that ends at the session's head for the receipt, a number of steps
// back at most.
func (a Auditor) head(ctx context.Context, entry store.Receipt, r kernel.Receipt, steps int) (Check, error) {
	const name = "chain"
	if entry.SessionKey == "" {
		return unknown(name, "it belongs to no session"), nil
	}
	s, err := a.archive.Session(ctx, entry.SessionKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return unknown(name, "its session was erased or forgotten, and the head with it"), nil
	case err != nil:
		return Check{}, err
	}
	if r.Resent {
		return a.resentHead(ctx, s.Head, stored{r, entry})
	}
	return a.walk(ctx, s.Head, stored{r, entry}, steps)
}

// A stored receipt is one with its place in the store.
type stored struct {
	kernel.Receipt

	entry store.Receipt
}

// resentHead checks a receipt of a conversation that is identified only by the history
// that the client resends. Each turn leaves its state under its own key, the digest of
// all texts up to its end, and the first turn with these texts stays the head there: the
// last tool call of its answer, from which the others lead back to the turn. A client may
// go back and ask the same again from another state. The receipts of that turn do not lead
// to the head, and nobody can tell from them that they belong there, because each
// commitment has a key of its own. So the check is left open, and only the log shows where
// such a receipt was written. Older receipts committed to the same texts with the same
// secret, which shows that they belong there.
func (a Auditor) resentHead(ctx context.Context, head string, r stored) (Check, error) {
	const name = "chain"
	if r.AnswersTo(head) {
		return passed(name, "it is the head of its conversation"), nil
	}
	first, way, fault, err := a.turnOf(ctx, head)
	if err != nil || fault.Failed() {
		return fault, err
	}
	for later, link := range way {
		if kernel.IDOf(link) == r.ID {
			return reached(link, r.Receipt, later), nil
		}
	}
	own := r
	if r.Tool != "" && r.Prev != "" {
		if own, _, fault, err = a.turnOf(ctx, r.Prev); err != nil || fault.Failed() {
			return fault, err
		}
	}
	older := first.Setup == "" && own.Setup == ""
	switch {
	case !first.Resent || !own.Resent || first.SessionID != own.SessionID:
		return notInChain(first.entry, r), nil
	case first.ID == own.ID: // all calls of a turn are written with it
		return notInChain(first.entry, r), nil
	case older && first.PromptCommitment == own.PromptCommitment && first.OutputCommitment == own.OutputCommitment:
		return passed(name, "the head of its conversation, "+first.ID+", commits to the same words"), nil
	case isLater(first.entry, r.entry):
		return notInChain(first.entry, r), nil
	}
	return unknown(name, "it does not lead to the head of its conversation, "+first.ID+": the client may have gone back and said the same again; the log shows where it was written"), nil
}

// turnOf follows the chain from a receipt of a resent conversation back over the tool
// calls to the receipt of their turn, which is the receipt itself if it is no tool call.
// The way there are the links that lead to these receipts, from the last to their turn's.
// A call that a client asks a server of tools for comes before its turn: it stands for itself
// if it is the first of its chain. A receipt that is missing or broken is a failed check.
func (a Auditor) turnOf(ctx context.Context, link string) (turn stored, way []string, fault Check, err error) {
	const name = "chain"
	for range 1 + store.MaxCalls {
		id := kernel.IDOf(link)
		entry, err := a.archive.Receipt(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return turn, nil, failed(name, "a receipt of its conversation, "+id+", is missing"), nil
		}
		if err != nil {
			return turn, nil, Check{}, err
		}
		r, err := kernel.OpenReceipt(entry.JSON)
		if err != nil {
			return turn, nil, failed(name, fmt.Sprintf("a receipt of its conversation, %s, is broken: %v", id, err)), nil
		}
		way = append(way, link)
		if r.Tool == "" || r.Prev == "" {
			return stored{r, entry}, way, Check{}, nil
		}
		link = r.Prev
	}
	return turn, nil, failed(name, "a turn of its conversation has more tool calls than one can have"), nil
}

// walk follows the chain from a head back to the receipt.
func (a Auditor) walk(ctx context.Context, head string, r stored, steps int) (Check, error) {
	const name = "chain"
	link := head
	for later := range steps {
		id := kernel.IDOf(link)
		if id == r.ID {
			return reached(link, r.Receipt, later), nil
		}
		entry, err := a.archive.Receipt(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return failed(name, "a later receipt of its session, "+id+", is missing"), nil
		}
		if err != nil {
			return Check{}, err
		}
		prev := gjson.GetBytes(entry.JSON, "prev").Str
		if prev == "" {
			return notInChain(entry, r), nil
		}
		link = prev
	}
	return unknown(name, fmt.Sprintf("the head of its session is more than %d receipts away", steps)), nil
}

// reached returns the outcome for a receipt whose id a link leads to, on the way back from
// the head of its session over some later receipts.
func reached(link string, r kernel.Receipt, later int) Check {
	if !r.AnswersTo(link) {
		return failed("chain", "the chain of its session has another record with its id")
	}
	return passed("chain", fmt.Sprintf("%d receipts follow it up to the head of its session", later))
}

// notInChain returns the outcome for a receipt that is missing from the session's chain, which
// begins with another one. If the chain begins later than the receipt, the session was erased and
// has begun again. Otherwise the receipt was added outside the chain.
func notInChain(begins store.Receipt, r stored) Check {
	if isLater(begins, r.entry) {
		return unknown("chain", "its session was erased since and has begun again")
	}
	return failed("chain", "it is not in the chain that ends at the head of its session")
}

// isLater reports whether a receipt was written after another one. Their times do not tell: they
// are those at which the requests came, of which a later one may end first, by clocks of which
// each replica has one. Only of receipts that are older than the log nothing else is known.
func isLater(a, b store.Receipt) bool {
	if a.Seq == 0 || b.Seq == 0 {
		return a.Timestamp > b.Timestamp
	}
	return a.Seq > b.Seq
}

// CompareTexts adds to a report the checks that compare texts with what the
// receipt committed to. A report with a fault is left as it is: the commitments of a
// broken receipt prove nothing.
func (a Auditor) CompareTexts(ctx context.Context, report *Report, t Texts) error {
	if report.Fault != nil {
		return nil
	}
	checks, err := a.texts(ctx, report.Entry, report.receipt, t)
	for _, c := range checks {
		report.add(c)
	}
	return err
}

// texts compares texts by their openings, or else by the secret of the session.
func (a Auditor) texts(ctx context.Context, entry store.Receipt, r kernel.Receipt, t Texts) ([]Check, error) {
	if !t.NeedSession() {
		return t.compare(&r, nil), nil
	}
	s, err := a.archive.Session(ctx, entry.SessionKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	checks := t.compare(&r, s.Secret)
	if !slices.ContainsFunc(checks, Check.Failed) {
		return checks, nil
	}
	// A session that was erased and has begun again has another secret.
	head, err := a.head(ctx, entry, r, maxCompareWalk)
	if err != nil {
		return nil, err
	}
	if head.OK == nil {
		checks = t.compare(&r, nil)
	}
	return checks, nil
}
