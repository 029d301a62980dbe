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

// A policyReader reads what a [store.Store] keeps of policies.
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
func commits(c, key, text string) bool {
	return hmac.Equal([]byte(c), []byte(kernel.Commit([]byte(key), text)))
}

func (r *report) add(name string, v verdict) { r.addCheck(check{name, v.ok, v.detail}) }

func (r *report) addCheck(c check) {
	r.Checks = append(r.Checks, c)
	if c.OK != nil && !*c.OK && r.Fault == nil {
		fault := c.Name + ": " + c.Detail
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
	k, err := kernelOf(ctx, a, r.Policy)
	switch {
	case errors.Is(err, store.ErrNotFound):
		out.add("replay", failed("its policy is not known here"))
		return out, r, nil
	case errors.Is(err, kernel.ErrPolicy):
		out.add("replay", faultOf(err))
		return out, r, nil
	case err != nil:
		return nil, r, err
	}
	out.add("replay", replay(k, r))
	chain, err := a.chain(ctx, k, r)
	if err != nil {
		return nil, r, err
	}
	out.add("chain", chain)
	head, err := a.head(ctx, entry, r)
	if err != nil {
		return nil, r, err
	}
	out.add("head", head)
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
func replay(k *kernel.Kernel, r kernel.Receipt) verdict {
	if err := k.Replay(r); err != nil {
		return faultOf(err)
	}
	return passed("the step gives the recorded numbers, bit by bit")
}

// chain compares the receipt with its predecessor.
func (a auditor) chain(ctx context.Context, k *kernel.Kernel, r kernel.Receipt) (verdict, error) {
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
		_ = chain.Add(k, prev) // a fault of the predecessor's own is not this receipt's
	}
	if err := chain.Add(k, r); err != nil {
		return faultOf(err), nil
	}
	if r.Prev == "" {
		return passed("it is the first of its session"), nil
	}
	return passed("it starts from what " + r.Prev + " left"), nil
}

// head looks for the receipt in the chain that ends at its session's head.
func (a auditor) head(ctx context.Context, entry store.Receipt, r kernel.Receipt) (verdict, error) {
	if entry.SessionKey == "" {
		return unmade("it belongs to no session"), nil
	}
	s, err := a.Session(ctx, entry.SessionKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return unmade("its session was erased or forgotten, and the head with it"), nil
	case err != nil:
		return verdict{}, err
	}
	if r.Resent {
		return a.sameWords(ctx, s.Head, r)
	}
	return a.walk(ctx, s.Head, r)
}

// sameWords looks at the head of a conversation that is known by its words alone.
// Each turn leaves its state under a key of its own, the digest of all that was
// said up to its end, and the first turn of these words is the head there for
// good. Clients go back and ask again, so others of the same words may have come
// from other states; they commit to the same texts under the same secret.
func (a auditor) sameWords(ctx context.Context, head string, r kernel.Receipt) (verdict, error) {
	if head == r.ID {
		return passed("it is the head of its conversation"), nil
	}
	e, err := a.Receipt(ctx, head)
	if errors.Is(err, store.ErrNotFound) {
		return failed("the head of its conversation, " + head + ", is missing"), nil
	}
	if err != nil {
		return verdict{}, err
	}
	first, err := kernel.OpenReceipt(e.JSON)
	switch {
	case err != nil:
		return faultOf(fmt.Errorf("the head of its conversation, %s, is broken: %w", head, err)), nil
	case first.Resent && first.SessionID == r.SessionID && first.PromptCommitment == r.PromptCommitment && first.OutputCommitment == r.OutputCommitment:
		return passed("the head of its conversation, " + head + ", commits to the same words"), nil
	}
	return begunAnew(e, r), nil
}

// walk goes from a head back to the receipt.
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

// texts compares what was said, as far as it is given, with what the receipt
// committed to.
func (a auditor) texts(ctx context.Context, entry store.Receipt, r kernel.Receipt, prompt, output *string) ([]check, error) {
	var checks []check
	for _, c := range []struct {
		name, recorded string
		text           *string
	}{
		{"prompt_commitment", r.PromptCommitment, prompt},
		{"output_commitment", r.OutputCommitment, output},
	} {
		if c.text == nil {
			continue
		}
		v, err := a.commitment(ctx, entry, c.recorded, *c.text)
		if err != nil {
			return nil, err
		}
		checks = append(checks, check{c.name, v.ok, v.detail})
	}
	return checks, nil
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
