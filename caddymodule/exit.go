package caddymodule

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-lex/lex/govern"
)

func init() {
	// The process waits here for what settleAtExit began, and for requests of earlier
	// configurations. The stores are open for as long as a request holds one.
	caddy.OnExit(func(context.Context) { process.end(exitTime) })
}

// settleAtExit begins to end the governed requests as soon as all apps have stopped, for by
// then Caddy's http app has used its grace period. That is before modules are cleaned up,
// which may take long: a collector of traces may not answer.
func settleAtExit(configuration context.Context) {
	context.AfterFunc(configuration, func() {
		if caddy.Exiting() {
			process.end(exitTime)
		}
	})
}

// exitTime bounds how long a process that exits waits for its governed requests
// to settle. Their calls to the model end at once and judging what came takes
// milliseconds; the rest is for a store that is slow to take the receipts
// (govern.CommitTime). A client that sends its body slowly gets no longer.
const exitTime = 2 * govern.CommitTime

// lastBytesTime is how long a process that exits leaves net/http to send the end
// of the answers that it waited for. That happens after their handlers have
// returned, and no handler can learn when.
const lastBytesTime = 250 * time.Millisecond

// errExiting is the cause that ends requests when the process exits. They did
// not lose their client, and nothing else than this process failed them.
var errExiting = errors.New("the process exits")

// process has the requests of every configuration of this process: those of one
// that a reload replaced may still be running when it exits.
var process = newFlights()

// flights are the requests that are being governed.
type flights struct {
	mu      sync.Mutex
	cancels map[context.Context]context.CancelCauseFunc
	ended   bool
	ending  sync.Once
	landed  chan struct{} // closed when the last one ends after end
}

func newFlights() *flights {
	return &flights{cancels: make(map[context.Context]context.CancelCauseFunc), landed: make(chan struct{})}
}

// begin adds a request with the given context and returns its context from now on,
// which is cancelled when the process exits. It returns errExiting if the process
// is exiting already. The caller calls landed once, when nothing is left to do for
// the request.
func (f *flights) begin(ctx context.Context) (_ context.Context, landed func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, nil, errExiting
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f.cancels[ctx] = cancel
	return ctx, func() {
		cancel(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.cancels, ctx); f.ended && len(f.cancels) == 0 {
			close(f.landed)
		}
	}, nil
}

// end cancels all requests and waits until they have landed, but no longer than
// limit, and for the end of their answers to be sent. Called again it waits for the first
// call.
func (f *flights) end(limit time.Duration) {
	f.ending.Do(func() { f.endOnce(limit) })
}

func (f *flights) endOnce(limit time.Duration) {
	f.mu.Lock()
	f.ended = true
	for _, cancel := range f.cancels {
		cancel(errExiting)
	}
	flying := len(f.cancels)
	f.mu.Unlock()
	if flying == 0 {
		return
	}
	select {
	case <-f.landed:
		time.Sleep(lastBytesTime)
	case <-time.After(limit):
	}
}

// ends reports whether end was called.
func (f *flights) ends() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// exits reports whether the process that exits has ended the request.
func exits(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errExiting) }

// clientLeft reports whether the client no longer waits for the answer.
func clientLeft(ctx context.Context) bool { return ctx.Err() != nil && !exits(ctx) }
