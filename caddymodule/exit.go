package caddymodule

import (
	"context"
	"errors"
	"net/http"
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
	mu     sync.Mutex
	flying map[context.Context]flight
	ended  bool
	ending sync.Once
	landed chan struct{} // closed when the last one ends after end
}

// A flight is one of them.
type flight struct {
	cancel context.CancelCauseFunc
	client http.ResponseWriter
}

// stopWriting ends a write that the client does not take. It goes by the writer below all others:
// those of Caddy remember deadlines, for the goroutine that writes alone.
func (f flight) stopWriting() {
	w := f.client
	for {
		above, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = above.Unwrap()
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now()) // only writers in tests know no deadlines
}

// endConnection ends a write that waits for a connection which takes nothing at all.
func (f flight) endConnection() {
	if w, ok := f.client.(*http2Writer); ok {
		w.endConnection()
	}
}

func newFlights() *flights {
	return &flights{flying: make(map[context.Context]flight), landed: make(chan struct{})}
}

// begin adds a request with the given context, whose answer is written to w, and returns its
// context from now on, which is cancelled when the process exits. It returns errExiting if the
// process is exiting already. The caller calls landed once, when nothing is left to do for
// the request.
func (f *flights) begin(ctx context.Context, w http.ResponseWriter) (_ context.Context, landed func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, nil, errExiting
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f.flying[ctx] = flight{cancel, w}
	return ctx, func() {
		cancel(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.flying, ctx); f.ended && len(f.flying) == 0 {
			close(f.landed)
		}
	}, nil
}

// end cancels all requests and waits until they have landed, but no longer than
// limit, and for the end of their answers to be sent. Half of it is for clients that are slow to
// read: a write to one that does not would wait for longer than that (writeTime), and what the
// client has got would have no receipt. Over HTTP/2 the write may go on to wait for the
// connection, which is ended after half of the rest. Called again it waits for the first call.
func (f *flights) end(limit time.Duration) {
	f.ending.Do(func() { f.endOnce(limit) })
}

func (f *flights) endOnce(limit time.Duration) {
	f.mu.Lock()
	f.ended = true
	for _, one := range f.flying {
		one.cancel(errExiting)
	}
	flying := len(f.flying)
	f.mu.Unlock()
	if flying == 0 {
		return
	}
	landed := f.haveLanded(limit / 2)
	if !landed {
		f.each(flight.stopWriting)
		landed = f.haveLanded(limit / 4)
	}
	if !landed {
		f.each(flight.endConnection)
		landed = f.haveLanded(limit / 4)
	}
	if landed {
		time.Sleep(lastBytesTime)
	}
}

// haveLanded waits until all have landed, but no longer than limit, and reports whether they have.
func (f *flights) haveLanded(limit time.Duration) bool {
	select {
	case <-f.landed:
		return true
	case <-time.After(limit):
		return false
	}
}

// each does something for all that have not landed.
func (f *flights) each(do func(flight)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.flying {
		do(one)
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
