package kernel

import "fmt"

// A Chain checks that receipts follow from one another. Each names its session's
// previous receipt and starts from the state which that one left, so a receipt
// that was removed, moved or put in shows at its neighbours. What no chain can
// show is what was cut off at its end: for that, ask the store for the head of
// the session and compare ([Chain.Ends]).
//
// A session that is known only by the history which the client resends
// (Receipt.Resent) branches when the client goes back; there several receipts
// may follow one, and only there.
//
// A Chain may hold any number of sessions. It is not safe for concurrent use.
// The zero value is ready.
type Chain struct {
	// Partial: the receipts are a later part of the whole, so a predecessor that
	// does not stand before its successor is not a fault.
	Partial bool

	places map[string]int // of ids in links
	links  []link
}

// link is what a receipt leaves for the next one.
type link struct {
	id       string
	full     string // "" of a receipt whose id is wrong
	session  Session
	public   string
	resent   bool
	followed bool
}

// Add takes the next receipt, oldest first, with the kernel of its policy. An
// error wraps [ErrChain] and says what is wrong where; the receipt is part of
// the chain all the same, so that one fault is reported once.
func (c *Chain) Add(k *Kernel, r Receipt) error {
	if _, twice := c.places[r.ID]; twice {
		return fmt.Errorf("%w: %s occurs twice", ErrChain, r.ID)
	}
	err := c.follow(k, &r)
	if c.places == nil {
		c.places = make(map[string]int)
	}
	c.places[r.ID] = len(c.links)
	c.links = append(c.links, link{id: r.ID, full: r.checkedLink(), session: r.next(), public: r.SessionID, resent: r.Resent})
	return err
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

func (c *Chain) follow(k *Kernel, r *Receipt) error {
	if r.Prev == "" {
		if r.start() != k.NewSession() {
			return fmt.Errorf("%w: %s is the first of its session, but does not start from the centre", ErrChain, r.ID)
		}
		return nil
	}
	place, known := c.places[IDOf(r.Prev)]
	if !known && c.Partial {
		return nil
	}
	if !known {
		return fmt.Errorf("%w: the predecessor of %s, %s, does not stand before it: it was removed or moved", ErrChain, r.ID, IDOf(r.Prev))
	}
	return c.links[place].precede(k, r)
}

// checkedLink is the receipt's link, or "" if its id is wrong: that is a fault of its
// own, and not one of the receipt that follows.
func (r *Receipt) checkedLink() string {
	if link := r.Link(); IDOf(link) == r.ID {
		return link
	}
	return ""
}

// precede notes that r follows, and checks that it may.
func (l *link) precede(k *Kernel, r *Receipt) error {
	if branches := l.resent && r.Resent; l.followed && !branches {
		return fmt.Errorf("%w: %s is not the only one that follows %s: one of them was put in", ErrChain, r.ID, l.id)
	}
	if l.public != r.SessionID {
		return fmt.Errorf("%w: %s belongs to another session than its predecessor %s", ErrChain, r.ID, l.id)
	}
	l.followed = true
	if r.Prev != l.id && l.full != "" && r.Prev != l.full {
		return fmt.Errorf("%w: %s follows another record than the %s that stands before it", ErrChain, r.ID, l.id)
	}
	left := l.session
	migrated, err := k.admit(&left)
	if err != nil || left != r.start() || migrated != r.Migrated {
		return fmt.Errorf("%w: %s does not start from the state that %s left", ErrChain, r.ID, l.id)
	}
	return nil
}

// Ends returns the ids of the receipts that none of the others follows, oldest
// first: for each session the one that should be the store's head.
func (c *Chain) Ends() []string {
	var ends []string
	for _, l := range c.links {
		if !l.followed {
			ends = append(ends, l.id)
		}
	}
	return ends
}
