package model

import (
	"context"
	"errors"
	"slices"
	"sync"
)

const (
	// remoteSlots is how many requests a client has on their way at once.
	remoteSlots = 128
	// maxWaiting is how many more of one namespace wait for a slot.
	maxWaiting = 256
)

// A gate bounds the requests on their way to a provider, and shares them fairly
// between namespaces: none may hold more slots than it leaves free. A namespace
// alone gets half of the slots; of k that want all, each gets 1/(k+1) of them; and
// a namespace that holds no slot is let in before one that floods the gate. (The
// rule is that of Choudhury and Hahne, Dynamic Queue Length Thresholds for
// Shared-Memory Packet Switches, 1998. A fixed share would be too small for the
// one tenant that most installations have, or too large for many.)
type gate struct {
	slots   int
	mu      sync.Mutex
	held    map[string]int // slots by namespace
	used    int            // sum of held
	waiting []*waiter      // in the order in which they came
}

// A waiter is a request that waits for a slot; ready is closed when it has one.
type waiter struct {
	namespace string
	ready     chan struct{}
}

func newGate(slots int) *gate { return &gate{slots: slots, held: make(map[string]int)} }

// errBusy refuses a question of a namespace that has too many on their way.
var errBusy = newFailure(Busy, "too many questions of the same caller are on their way")

// enter waits for a slot, as long as ctx lets it. It reports whether it had to.
func (g *gate) enter(ctx context.Context, namespace string) (waited bool, err error) {
	w := g.ask(namespace)
	if w == nil {
		return false, errBusy
	}
	select {
	case <-w.ready:
		return false, nil
	default:
	}
	select {
	case <-w.ready:
		return true, nil
	case <-ctx.Done():
		g.quit(w)
		if errors.Is(ctx.Err(), context.Canceled) {
			return true, newFailure(Cancelled, "the caller left")
		}
		return true, errBusy
	}
}

// ask returns a new waiter, which may have its slot already, or nil when too many
// of the namespace wait.
func (g *gate) ask(namespace string) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	ours := 0
	for _, w := range g.waiting {
		if w.namespace == namespace {
			ours++
		}
	}
	if ours >= maxWaiting {
		return nil
	}
	w := &waiter{namespace, make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.admit()
	return w
}

// leave gives a slot back.
func (g *gate) leave(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used--
	if g.held[namespace]--; g.held[namespace] == 0 {
		delete(g.held, namespace)
	}
	g.admit()
}

// quit ends a wait; a slot that came just then is given back.
func (g *gate) quit(w *waiter) {
	g.mu.Lock()
	at := slices.Index(g.waiting, w)
	if at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
	}
	g.mu.Unlock()
	if at < 0 {
		g.leave(w.namespace)
	}
}

// admit gives slots to all waiters that may have one.
func (g *gate) admit() {
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool {
		if g.held[w.namespace] >= g.slots-g.used {
			return false
		}
		g.held[w.namespace]++
		g.used++
		close(w.ready)
		return true
	})
}
