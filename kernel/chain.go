package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Chain checks that receipts follow from one another. Each names its session's
// previous receipt and starts from the state which that one left, so a receipt that was
// removed, moved or put in shows at the next one of its session. What no chain can show
// is a session that is missing as a whole, one that was made up as a whole, and what was
// cut off at the end of one: for the last, ask the store for the head of the session and
// compare ([Chain.Ends]).
//
// A session that is known only by the history which the client resends (Receipt.Resent)
// branches when the client goes back; there several receipts may follow one, and only
// there.
//
// A Chain may hold any number of sessions. It keeps the last receipt of each, and of
// resent conversations every receipt, because any of them may be followed again: at most
// 700 and 450 bytes each. It is not safe for concurrent use. The zero value is ready.
type Chain struct {
	// Partial: the receipts are a later part of the whole, so a predecessor that
	// does not stand before its successor is not a fault. It costs another 200 bytes for
	// each receipt: only who knows them all can tell a receipt that was followed already
	// from one that is older than the part.
	Partial bool

	open  map[string]*link    // by id: the receipts that may be followed
	past  map[string]struct{} // ids of receipts that no longer may: first ones; if Partial, all
	added int
}

// link is what a receipt leaves for the next one.
type link struct {
	id       string
	full     string // "" of a receipt whose id is wrong
	session  Session
	public   string
	place    int // counted from 1
	first    bool
	resent   bool
	older    bool // from before links had all digits, so the next one may name only its id
	followed bool
	ended    bool // followed by one that is not resent, beside which nothing stands
}

// Add takes the next receipt, oldest first, with the kernel of its policy. An
// error wraps [ErrChain] and says what is wrong where; the receipt is part of
// the chain all the same, so that one fault is reported once.
func (c *Chain) Add(k *Kernel, r Receipt) error {
	if c.knows(r.ID) {
		return fmt.Errorf("%w: %s occurs twice", ErrChain, r.ID)
	}
	c.added++
	added := newLink(k, &r)
	added.place = c.added
	err := c.follow(k, &r, added)
	if c.open == nil {
		c.open, c.past = make(map[string]*link), make(map[string]struct{})
	}
	c.open[added.id] = added
	return err
}

// newLink keeps nothing of the record's text, of which the texts of a receipt are parts.
func newLink(k *Kernel, r *Receipt) *link {
	l := &link{full: r.Link(), session: r.next(), first: r.Prev == "", resent: r.Resent, older: r.Setup == ""}
	if l.id = IDOf(l.full); l.id != r.ID {
		l.id, l.full = strings.Clone(r.ID), "" // the fault is this receipt's and not its successor's
	}
	if r.Policy == k.hash {
		l.session.Policy = k.hash
	} else {
		l.session.Policy = strings.Clone(r.Policy)
	}
	return l
}

func (c *Chain) knows(id string) bool {
	_, past := c.past[id]
	return past || c.open[id] != nil
}

// next is the session as the recorded turn left it. A tool call without evidence took no
// step, and its record says so: what it left is what it began with.
func (r *Receipt) next() Session {
	return Session{X: r.State, Z: r.ZNext, CUSUM: r.CUSUMNext, CUSUMSlow: r.CUSUMSlowNext, Carry: r.CarryNext, Policy: r.Policy}
}

// start is the session that the recorded turn began with.
func (r *Receipt) start() Session {
	return Session{X: r.X, Z: r.Z, CUSUM: r.CUSUM, CUSUMSlow: r.CUSUMSlow, Carry: r.Carry, Policy: r.Policy}
}

// follow looks for the predecessor and checks that r may follow it. A predecessor that
// r does not fit stays open, because the right successor may still come.
func (c *Chain) follow(k *Kernel, r *Receipt, added *link) error {
	if r.Prev == "" {
		added.public = strings.Clone(r.SessionID)
		if r.start() != k.NewSession() {
			return fmt.Errorf("%w: %s is the first of its session, but does not start from the centre", ErrChain, r.ID)
		}
		return nil
	}
	before := c.open[IDOf(r.Prev)]
	if before == nil {
		added.public = strings.Clone(r.SessionID)
		return c.missing(r)
	}
	if added.public = before.public; before.public != r.SessionID {
		added.public = strings.Clone(r.SessionID)
	}
	if err := before.precede(k, r); err != nil {
		return err
	}
	c.close(before, r.Resent)
	return nil
}

// missing says what it means that the predecessor of r may not be followed.
func (c *Chain) missing(r *Receipt) error {
	prev := IDOf(r.Prev)
	_, past := c.past[prev]
	switch {
	case past:
		return fmt.Errorf("%w: %s is not the only one that follows %s: one of them was put in", ErrChain, r.ID, prev)
	case c.Partial:
		return nil
	}
	return fmt.Errorf("%w: the predecessor of %s, %s, is not the last one of a session before it: it was removed or moved, or %s was put in or repeated", ErrChain, r.ID, prev, r.ID)
}

// precede checks that r may follow, which it has not done yet.
func (l *link) precede(k *Kernel, r *Receipt) error {
	if branches := l.resent && r.Resent && !l.ended; l.followed && !branches {
		return fmt.Errorf("%w: %s is not the only one that follows %s: one of them was put in", ErrChain, r.ID, l.id)
	}
	if l.public != r.SessionID {
		return fmt.Errorf("%w: %s belongs to another session than its predecessor %s", ErrChain, r.ID, l.id)
	}
	if names := r.Prev == l.full || l.older && r.Prev == l.id; l.full != "" && !names {
		return fmt.Errorf("%w: %s follows another record than the %s that stands before it", ErrChain, r.ID, l.id)
	}
	left := l.session
	migrated, err := k.admit(&left)
	if err != nil || left != r.start() || migrated != r.Migrated {
		return fmt.Errorf("%w: %s does not start from the state that %s left", ErrChain, r.ID, l.id)
	}
	return nil
}

// close notes that a receipt was followed, and whether by a resent one. In a resent
// conversation it may be followed again.
func (c *Chain) close(l *link, resent bool) {
	l.followed, l.ended = true, !resent
	if l.resent {
		return
	}
	delete(c.open, l.id)
	if l.first || c.Partial {
		c.past[l.id] = struct{}{}
	}
}

// Ends returns the ids of the receipts that none of the others follows, oldest
// first: for each session the one that should be the store's head.
func (c *Chain) Ends() []string {
	var ends []*link
	for _, l := range c.open {
		if !l.followed {
			ends = append(ends, l)
		}
	}
	slices.SortFunc(ends, func(a, b *link) int { return cmp.Compare(a.place, b.place) })
	ids := make([]string, len(ends))
	for i, l := range ends {
		ids[i] = l.id
	}
	return ids
}
