package model

import (
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// tripAfter is how many failures in a row open the breaker.
	tripAfter = 5
	// openFor is how long it stays open before one call is let through again.
	openFor = 15 * time.Second
	// longestPause bounds what a provider can ask for with Retry-After.
	longestPause = 5 * time.Minute
)

// A breaker keeps callers from waiting for a provider that is down: after some
// failures in a row, or while the provider asks for a pause, calls fail at
// once. Questions that are Rejected and callers that leave do not count, so that
// nobody can open it with texts of their own.
type breaker struct {
	circuit  *gobreaker.CircuitBreaker[[]byte]
	until    atomic.Pointer[time.Time] // end of the pause; nil without one
	open     atomic.Bool               // as last told to the observer
	observer Observer
}

func newBreaker(observer Observer) *breaker {
	return &breaker{observer: observer, circuit: gobreaker.NewCircuitBreaker[[]byte](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  func(err error) bool { return Why(err) == Rejected || Why(err) == Cancelled },
	})}
}

var errKeptBack = fail(BreakerOpen, "the remote model keeps failing, or asked for a pause")

// run makes the call unless the breaker is open.
func (b *breaker) run(call func() ([]byte, error)) ([]byte, error) {
	if b.paused() {
		return nil, errKeptBack
	}
	answer, err := b.circuit.Execute(call)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return nil, errKeptBack
	}
	if err == nil {
		b.tell(false, "")
	} else if b.paused() || b.circuit.State() == gobreaker.StateOpen {
		b.tell(true, Why(err))
	}
	return answer, err
}

// tell reports a change of state.
func (b *breaker) tell(open bool, why Failure) {
	if b.open.CompareAndSwap(!open, open) {
		b.observer.Breaker(open, why)
	}
}

func (b *breaker) paused() bool {
	until := b.until.Load()
	return until != nil && time.Now().Before(*until)
}

// pause heeds the Retry-After of an answer with 429 or 503: seconds or a date
// (RFC 9110, section 10.2.3). What is neither is ignored.
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
	b.until.Store(&until)
}
