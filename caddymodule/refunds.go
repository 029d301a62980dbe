package caddymodule

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/store"
)

const (
	// maxOwed is how many refunds are owed at most: as many requests as an outage may meet
	// between their count and their end.
	maxOwed = 10_000
	// refundEvery is how long a store that fails is left alone.
	refundEvery = time.Second
	// lastRefunds bounds the refunds before the store is closed.
	lastRefunds = time.Second
)

// A planRun is a request that was counted against a plan, or may have been.
type planRun struct {
	subject, id string
	ends        time.Time // its window, at the latest
}

// refunds are those that the store owes, because it failed when they were due. They are tried
// again until it takes them or their window has ended. A refund that is repeated gives nothing
// twice, by the contract of [store.Store].
type refunds struct {
	store store.Store
	quit  chan struct{}

	mu      sync.Mutex
	owed    []planRun
	working chan struct{} // closed when the worker has ended; nil when there is none
	closed  bool
}

func newRefunds(s store.Store) *refunds { return &refunds{store: s, quit: make(chan struct{})} }

// owe keeps a refund for later, if there is room.
func (r *refunds) owe(run planRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.owed) >= maxOwed {
		return
	}
	r.owed = append(r.owed, run)
	if r.working == nil {
		r.working = make(chan struct{})
		go r.work(r.working)
	}
}

// work pays until nothing is owed.
func (r *refunds) work(done chan struct{}) {
	defer close(done)
	for {
		run, some := r.next()
		if !some {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), govern.CommitTime)
		paid := r.pay(ctx, run)
		cancel()
		if paid {
			continue
		}
		r.keep(run)
		select {
		case <-time.After(refundEvery):
		case <-r.quit:
			return
		}
	}
}

// next takes the refund that has waited longest, or ends the worker.
func (r *refunds) next() (planRun, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.owed) == 0 || r.closed {
		r.working = nil
		return planRun{}, false
	}
	run := r.owed[0]
	r.owed = r.owed[1:]
	return run, true
}

// keep puts a refund behind the others: one that the store never takes holds up none.
func (r *refunds) keep(run planRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed = append(r.owed, run)
}

// pay tries once and reports whether the run is owed no more.
func (r *refunds) pay(ctx context.Context, run planRun) bool {
	if !time.Now().Before(run.ends) {
		return true
	}
	err := r.store.Refund(ctx, run.subject, run.id)
	return err == nil || errors.Is(err, store.ErrInvalid)
}

// close tries once more what is still owed, as long as the store takes it.
func (r *refunds) close() {
	r.mu.Lock()
	working := r.working
	r.closed = true
	r.mu.Unlock()
	close(r.quit)
	if working != nil {
		<-working
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastRefunds)
	defer cancel()
	for _, run := range r.owed {
		if !r.pay(ctx, run) {
			return
		}
	}
}
