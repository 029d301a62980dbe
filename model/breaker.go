package model

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/sony/gobreaker/v2"
)

const (
	// tripAfter is how many failures in a row open the breaker.
	tripAfter = 5
	// openFor is how long it stays open before one call is let through again.
	openFor = 15 * time.Second
	// longestPause bounds what a provider can ask for with Retry-After.
	longestPause = 5 * time.Minute
	// ownCircuits is how many namespaces have a circuit of their own; the one that
	// asked longest ago is forgotten.
	ownCircuits = 4096
)

// A circuit is closed while calls succeed.
type circuit = gobreaker.CircuitBreaker[struct{}]

// A breaker keeps callers from waiting for a provider that is down: after several
// failed calls in a row, or while the provider asks for a pause, calls fail at
// once. A call is one piece of evidence and counts once, however many requests it
// takes.
//
// No caller can open the breaker for others with texts of its own. Each namespace
// has a circuit, which its own failures open for it alone. The circuit of all
// opens only by failures of different namespaces: each counts once until a call
// succeeds. An Unusable answer does not count there, because it arrived, and a
// text can bring it about. Rejected questions, callers that leave or ask too much
// at once, and long texts that take too long do not count at all.
type breaker struct {
	all      *circuit
	own      *lru.Cache[string, *circuit]
	until    atomic.Pointer[time.Time] // end of the pause; nil without one
	observer Observer

	mu      sync.Mutex
	open    bool            // as last told to the observer
	failing map[string]bool // namespaces, since the last success; under tripAfter of them
}

func newBreaker(observer Observer) (*breaker, error) {
	own, err := lru.New[string, *circuit](ownCircuits)
	if err != nil {
		return nil, fmt.Errorf("making the circuits: %w", err)
	}
	return &breaker{observer: observer, all: newCircuit(), own: own, failing: make(map[string]bool)}, nil
}

func newCircuit() *circuit {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  func(err error) bool { return err != nil && !countsAgainstProvider(err) },
	})
}

// uncounted is a failure that is not held against the provider, or not again.
type uncounted struct{ error }

func (u uncounted) Unwrap() error { return u.error }

// countsAgainstProvider reports whether an error is a failure of the provider.
func countsAgainstProvider(err error) bool {
	var not uncounted
	switch Why(err) {
	case "", Rejected, Cancelled, Busy, BreakerOpen:
		return false
	}
	return !errors.As(err, &not)
}

var errKeptBack = newFailure(BreakerOpen, "the remote model keeps failing, or asked for a pause")

// run makes a call for a namespace unless the breaker is open for it.
func (b *breaker) run(namespace string, call func() error) error {
	if b.paused() {
		return errKeptBack
	}
	own := b.circuitOf(namespace)
	err := runThrough(b.all, func() error {
		return b.onceEach(namespace, runThrough(own, call))
	})
	switch {
	case err == nil:
		b.answered(own)
	case Why(err) == BreakerOpen:
	case b.paused() || own.State() == gobreaker.StateOpen || b.all.State() == gobreaker.StateOpen:
		b.failed(Why(err))
	}
	return err
}

// runThrough makes a call through a circuit.
func runThrough(c *circuit, call func() error) error {
	_, err := c.Execute(func() (struct{}, error) { return struct{}{}, call() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return errKeptBack
	}
	return err
}

func (b *breaker) circuitOf(namespace string) *circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	own, known := b.own.Get(namespace)
	if !known {
		own = newCircuit()
		b.own.Add(namespace, own)
	}
	return own
}

// onceEach lets a namespace's failure count once until a call succeeds.
func (b *breaker) onceEach(namespace string, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		clear(b.failing)
	case !countsAgainstProvider(err):
	case b.failing[namespace], Why(err) == Unusable:
		return uncounted{err}
	default:
		if b.failing[namespace] = true; len(b.failing) == tripAfter {
			clear(b.failing) // the circuit opens, and begins anew afterwards
		}
	}
	return err
}

// failed tells the observer that the breaker opened, unless it knows.
func (b *breaker) failed(why Failure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		b.open = true
		b.observer.Breaker(true, why)
	}
}

// answered tells the observer that the breaker closed, if a call that succeeded through a
// circuit of its namespace leaves none open. One that began before they opened closes none
// of them, and another namespace may still be kept back. A namespace that could ask again
// and does not come back does not count.
func (b *breaker) answered(own *circuit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open || b.paused() || b.all.State() != gobreaker.StateClosed || own.State() != gobreaker.StateClosed ||
		slices.ContainsFunc(b.own.Values(), func(c *circuit) bool { return c.State() == gobreaker.StateOpen }) {
		return
	}
	b.open = false
	b.observer.Breaker(false, "")
}

func (b *breaker) paused() bool {
	until := b.until.Load()
	return until != nil && time.Now().Before(*until)
}

// pause obeys the Retry-After of an answer with 429 or 503: seconds or a date
// (RFC 9110, section 10.2.3). Any other value is ignored.
func (b *breaker) pause(resp *http.Response) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return
	}
	now, header := time.Now(), resp.Header.Get("Retry-After")
	until, err := http.ParseTime(header)
	if seconds, notANumber := strconv.Atoi(header); notANumber == nil && seconds >= 0 {
		until, err = now.Add(time.Duration(min(seconds, int(longestPause/time.Second)))*time.Second), nil
	}
	if err != nil {
		return
	}
	if latest := now.Add(longestPause); until.After(latest) {
		until = latest
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := b.until.Load(); last == nil || until.After(*last) { // one asked for before may be longer
		b.until.Store(&until)
	}
}
