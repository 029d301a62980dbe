package console

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// The limits of [ReadChain].
const (
	MaxSteps = 500

	// maxWalk is how many receipts are read to get from a session's head to a receipt. It
	// is more than a turn has tool calls.
	maxWalk = 2 * store.MaxCalls
)

// An Archive keeps receipts, the sessions that they belong to, and their policies. Every
// [store.Store] is one.
type Archive interface {
	Receipt(ctx context.Context, id string) (store.Receipt, error)
	Session(ctx context.Context, key string) (store.Session, error)
	Document(ctx context.Context, hash string) ([]byte, error)
}

// A Chain is a session, receipt by receipt.
type Chain struct {
	Steps []Step `json:"steps"` // oldest first
	// Head is the id of the session's last receipt. Nil if it is not known, because the
	// session was erased or is too long, or if it does not lead here.
	Head *string `json:"head"`
	// Branched: the client resends the conversation and may go on from any of its turns, so
	// there may be others that follow from these.
	Branched bool `json:"branched"`
	// Truncated: the chain has more receipts than Steps.
	Truncated bool `json:"truncated"`
}

// A Step is a row and the step that the state took.
type Step struct {
	Row
	X         kernel.Point `json:"x"`
	Raw       kernel.Point `json:"raw_state"`
	State     kernel.Point `json:"state"`
	Pressure  kernel.Point `json:"pressure"`
	CUSUMNext float64      `json:"cusum_next"`
	// CUSUMH is the policy's alarm level, 0 if the policy is not known here.
	CUSUMH    float64 `json:"cusum_h"`
	LyapunovV float64 `json:"lyapunov_V"`
	DeltaV    float64 `json:"delta_V"`
}

// ReadChain reads the chain through a receipt: up to limit receipts that end at the head
// of the session, or at the receipt if the way from the head does not come by it within
// them. If it is not there, the error wraps [store.ErrNotFound], and if it is damaged
// in the store [store.ErrInvalid].
func ReadChain(ctx context.Context, from Archive, id string, limit int) (Chain, error) {
	c := chainReader{from, make(map[string]float64)}
	entry, err := from.Receipt(ctx, id)
	if err != nil {
		return Chain{}, err
	}
	own, err := c.step(ctx, &entry)
	if err != nil {
		return Chain{}, err
	}
	later, head, err := c.fromHead(ctx, entry.SessionKey, id)
	if err != nil {
		return Chain{}, err
	}
	out := Chain{Head: head, Branched: own.resent, Steps: []Step{}}
	if len(later)+1 > limit {
		later, out.Truncated = nil, true
	}
	earlier, more, err := c.back(ctx, own.prev, limit-1-len(later))
	if err != nil {
		return Chain{}, err
	}
	out.Truncated = out.Truncated || more
	for _, s := range slices.Concat(later, []chainStep{own}, earlier) {
		out.Steps = append(out.Steps, s.Step)
	}
	slices.Reverse(out.Steps)
	return out, nil
}

// A chainReader reads steps, and each policy once.
type chainReader struct {
	from  Archive
	alarm map[string]float64 // cusum_h by policy
}

// A chainStep is a step with what leads on.
type chainStep struct {
	Step
	prev   string // id
	resent bool
}

// fromHead walks from the head of a session back to a receipt and returns those behind it,
// newest first. head is nil if the walk does not come by.
func (c *chainReader) fromHead(ctx context.Context, sessionKey, id string) (later []chainStep, head *string, err error) {
	s, err := c.from.Session(ctx, sessionKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	at := kernel.IDOf(s.Head)
	for range maxWalk {
		if at == id {
			first := kernel.IDOf(s.Head)
			return later, &first, nil
		}
		step, found, err := c.read(ctx, at)
		if err != nil || !found {
			return nil, nil, err
		}
		later = append(later, step)
		at = step.prev
	}
	return nil, nil, nil
}

// back reads up to n receipts from one on, newest first. more says that there are others.
func (c *chainReader) back(ctx context.Context, id string, n int) (steps []chainStep, more bool, err error) {
	for ; id != "" && len(steps) < n; id = steps[len(steps)-1].prev {
		step, found, err := c.read(ctx, id)
		if err != nil || !found {
			return steps, !found, err
		}
		steps = append(steps, step)
	}
	return steps, id != "", nil
}

// read reads a receipt that others lead to. One that is missing or damaged in the store, or "",
// ends the chain.
func (c *chainReader) read(ctx context.Context, id string) (step chainStep, found bool, err error) {
	if id == "" {
		return chainStep{}, false, nil
	}
	entry, err := c.from.Receipt(ctx, id)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return chainStep{}, false, nil
	}
	if err != nil {
		return chainStep{}, false, err
	}
	step, err = c.step(ctx, &entry)
	return step, err == nil, err
}

// step is that of a receipt. One whose record cannot be read has no step, and leads nowhere.
func (c *chainReader) step(ctx context.Context, entry *store.Receipt) (out chainStep, err error) {
	r, whole := parse(entry)
	out.Row = readingOf(entry, &r, whole).Row
	if !whole {
		return out, nil
	}
	out.X, out.Raw, out.State, out.Pressure = r.X, r.Raw, r.State, r.Pressure
	out.CUSUMNext, out.LyapunovV, out.DeltaV = r.CUSUMNext, r.LyapunovV, r.DeltaV
	out.prev, out.resent = kernel.IDOf(r.Prev), r.Resent
	out.CUSUMH, err = c.alarmLevel(ctx, r.Policy)
	return out, err
}

// alarmLevel is a policy's cusum_h.
func (c *chainReader) alarmLevel(ctx context.Context, hash string) (float64, error) {
	if level, known := c.alarm[hash]; known {
		return level, nil
	}
	text, err := c.from.Document(ctx, hash)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, fmt.Errorf("reading a policy: %w", err)
	}
	p, err := kernel.ParsePolicy(text)
	if err != nil {
		p.CUSUMH = 0
	}
	c.alarm[hash] = p.CUSUMH
	return p.CUSUMH, nil
}
