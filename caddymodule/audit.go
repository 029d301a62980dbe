package caddymodule

import (
	"bytes"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// maxWalk bounds how many receipts are read to get from the head of a session
// to one of its receipts.
const maxWalk = 256

// A policyReader reads what [store.Policies] keeps.
type policyReader interface {
	Policy(ctx context.Context, hash string) ([]byte, error)
}

// An archive is where receipts are kept with what verifying them needs.
type archive interface {
	Receipt(ctx context.Context, id string) (store.Receipt, error)
	Session(ctx context.Context, key string) (store.Session, error)
	policyReader
}

// A check is one thing that was looked at. OK is null when it could not be: the
// receipt is not wrong for that, and not right either.
type check struct {
	Name   string `json:"name"`
	OK     *bool  `json:"ok"`
	Detail string `json:"detail"`
}

// A report is what verifying one receipt gave. Fault names the first check that
// failed.
type report struct {
	Valid  bool    `json:"valid"`
	Checks []check `json:"checks"`
	Fault  *string `json:"fault"`
}

// A verdict on one check: passed, failed, or not made.
type verdict struct {
	ok     *bool
	detail string
}

var yes, no = true, false

func passed(detail string) verdict { return verdict{&yes, detail} }
func failed(detail string) verdict { return verdict{&no, detail} }
func unmade(detail string) verdict { return verdict{nil, detail} }
func (v verdict) isFault() bool    { return v.ok != nil && !*v.ok }
func faultOf(err error) verdict    { return failed(err.Error()) }
func newReport() *report           { return &report{Valid: true, Checks: []check{}} }
func (r *report) fault() bool      { return r.Fault != nil }
func commits(c, key, text string) bool {
	return hmac.Equal([]byte(c), []byte(kernel.Commit([]byte(key), text)))
}

func (r *report) add(name string, v verdict) {
	r.Checks = append(r.Checks, check{name, v.ok, v.detail})
	if v.isFault() && r.Fault == nil {
		fault := name + ": " + v.detail
		r.Fault, r.Valid = &fault, false
	}
}

// An auditor verifies receipts against an archive. Errors are the archive's;
// what is wrong with a receipt stands in the report.
type auditor struct{ archive }

// receipt verifies a record that the archive holds.
func (a auditor) receipt(ctx context.Context, entry store.Receipt) (*report, kernel.Receipt, error) {
	out := newReport()
	r, err := kernel.OpenReceipt(entry.JSON)
	if err == nil && r.ID != entry.ID {
		err = fmt.Errorf("%w: it stands under the id of another", kernel.ErrReceiptID)
	}
	if err != nil {
		out.add("id", faultOf(err))
		return out, r, nil
	}
	out.add("id", passed("the id is the hash of the record"))
	for _, c := range []struct {
		name string
		make func(context.Context, store.Receipt, kernel.Receipt) (verdict, error)
	}{{"replay", a.replay}, {"chain", a.chain}, {"head", a.head}} {
		v, err := c.make(ctx, entry, r)
		if err != nil {
			return nil, r, err
		}
		out.add(c.name, v)
	}
	return out, r, nil
}

// kernelOf returns the kernel of a policy that is kept under its hash.
func kernelOf(ctx context.Context, from policyReader, hash string) (*kernel.Kernel, error) {
	text, err := from.Policy(ctx, hash)
	if err != nil {
		return nil, err
	}
	p, err := kernel.ParsePolicy(text)
	if err != nil {
		return nil, err
	}
	k, err := kernel.New(p)
	if err == nil && k.PolicyHash() != hash {
		err = fmt.Errorf("%w: the policy kept under %s is another", kernel.ErrPolicy, hash)
	}
	return k, err
}

// replay takes the recorded step again.
func (a auditor) replay(ctx context.Context, _ store.Receipt, r kernel.Receipt) (verdict, error) {
	k, err := kernelOf(ctx, a, r.Policy)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return failed("its policy is not known here"), nil
	case errors.Is(err, kernel.ErrPolicy):
		return faultOf(err), nil
	case err != nil:
		return verdict{}, err
	}
	if err := k.Replay(r); err != nil {
		return faultOf(err), nil
	}
	return passed("the step gives the recorded numbers, bit by bit"), nil
}

// chain compares the receipt with its predecessor.
func (a auditor) chain(ctx context.Context, _ store.Receipt, r kernel.Receipt) (verdict, error) {
	chain := kernel.Chain{Partial: true}
	if r.Prev != "" {
		before, err := a.Receipt(ctx, r.Prev)
		if errors.Is(err, store.ErrNotFound) {
			return failed("its predecessor " + r.Prev + " is missing"), nil
		}
		if err != nil {
			return verdict{}, err
		}
		prev, err := kernel.OpenReceipt(before.JSON)
		if err != nil {
			return faultOf(fmt.Errorf("its predecessor %s is broken: %w", r.Prev, err)), nil
		}
		if err := a.link(ctx, &chain, prev); err != nil && !errors.Is(err, kernel.ErrChain) {
			return verdict{}, err // a fault of the predecessor's own is not this receipt's
		}
	}
	err := a.link(ctx, &chain, r)
	switch {
	case errors.Is(err, kernel.ErrChain), errors.Is(err, kernel.ErrPolicy), errors.Is(err, store.ErrNotFound):
		return faultOf(err), nil
	case err != nil:
		return verdict{}, err
	case r.Prev == "":
		return passed("it is the first of its session"), nil
	}
	return passed("it starts from what " + r.Prev + " left"), nil
}

func (a auditor) link(ctx context.Context, chain *kernel.Chain, r kernel.Receipt) error {
	k, err := kernelOf(ctx, a, r.Policy)
	if err != nil {
		return err
	}
	return chain.Add(k, r)
}

// head looks for the receipt in the chain that ends at its session's head.
func (a auditor) head(ctx context.Context, entry store.Receipt, r kernel.Receipt) (verdict, error) {
	s, err := a.Session(ctx, entry.SessionKey)
	switch {
	case entry.SessionKey == "":
		return unmade("it belongs to no session"), nil
	case errors.Is(err, store.ErrNotFound):
		return unmade("its session was erased or forgotten, and the head with it"), nil
	case err != nil:
		return verdict{}, err
	}
	return a.walk(ctx, s.Head, r)
}

// walk goes from a head back to the receipt. A resent history leaves each turn
// under a key of its own, where another turn of the same words may stand.
func (a auditor) walk(ctx context.Context, head string, r kernel.Receipt) (verdict, error) {
	id := head
	for n := range maxWalk {
		if id == r.ID {
			return passed(fmt.Sprintf("%d receipts follow it up to the head of its session", n)), nil
		}
		e, err := a.Receipt(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return failed("a later receipt of its session, " + id + ", is missing"), nil
		}
		if err != nil {
			return verdict{}, err
		}
		prev := gjson.GetBytes(e.JSON, "prev").Str
		if r.Resent && prev == r.Prev {
			return passed("another turn of the same words is the head of its session"), nil
		}
		if prev == "" {
			return begunAnew(e, r), nil
		}
		id = prev
	}
	return unmade(fmt.Sprintf("the head of its session is more than %d receipts away", maxWalk)), nil
}

// begunAnew tells a receipt of a session that was erased since from one that was
// put in beside the chain.
func begunAnew(first store.Receipt, r kernel.Receipt) verdict {
	if first.Timestamp > r.Timestamp {
		return unmade("its session was erased since and has begun anew")
	}
	return failed("it is not in the chain that ends at the head of its session")
}

// stored compares a record that a caller sent with the one that is kept.
func (a auditor) stored(ctx context.Context, id string, record []byte) (store.Receipt, verdict, error) {
	entry, err := a.Receipt(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return entry, failed("there is no such receipt here: it was never written or has been removed"), nil
	case err != nil:
		return entry, verdict{}, err
	case !bytes.Equal(entry.JSON, record):
		return entry, failed("the record that is kept under this id is another"), nil
	}
	return entry, passed("the record is the one that is kept"), nil
}

// commitment compares a text with what the receipt committed to.
func (a auditor) commitment(ctx context.Context, entry store.Receipt, recorded, text string) (verdict, error) {
	s, err := a.Session(ctx, entry.SessionKey)
	switch {
	case recorded == "":
		return failed("the turn had no such text"), nil
	case errors.Is(err, store.ErrNotFound):
		return unmade("the session's key is gone: it was erased or forgotten"), nil
	case err != nil:
		return verdict{}, err
	case !commits(recorded, string(s.Secret), text):
		return failed("the text is another than the one that was sent"), nil
	}
	return passed("the text is the one that was sent"), nil
}
