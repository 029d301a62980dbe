package console

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddy-lex/lex/store"
)

// A Lister lists receipts as [store.Store] does.
type Lister interface {
	Recent(ctx context.Context, before string, limit int) ([]store.Receipt, error)
}

// Limit is how many notable rows a window keeps: those with a flag.
const Limit = 10_000

// What a window keeps, and what it costs.
const (
	kept        = 24 * time.Hour  // how long counters are kept
	longestTurn = 2 * time.Minute // the usual limit of a turn: by then it counts

	every     = time.Second     // how often the store is asked for what is new
	linger    = 5 * time.Minute // how long a window stays without readers
	patience  = 300 * time.Millisecond
	readTime  = 5 * time.Second // for one page of the store
	maxBehind = 20_000          // new receipts; behind more of them the window begins anew

	maxFilled = 200_000
	fillTime  = 30 * time.Second

	firstPage = 1000 // so Follow can go back as far
	tailPage  = 4    // usually little is new
	fullPage  = 256
)

// ErrClosed says that the window's store is being closed. It wraps [store.ErrUnavailable].
var ErrClosed = fmt.Errorf("the console's window is closed: %w", store.ErrUnavailable)

// A Window is the last 24 hours of a store, read from it. The zero value is not usable.
type Window struct {
	lister Lister
	now    func() time.Time

	mu        sync.Mutex
	closed    bool
	stop      context.CancelFunc // nil while nobody reads
	done      chan struct{}      // closed when the goroutine has ended
	lastUse   time.Time
	followers int
	ready     chan struct{} // closed when the store was first asked
	changed   chan struct{} // closed, and replaced, at every change
	failed    error         // how the last try to read the store failed
	tape
}

// NewWindow returns the window of a store, which reads nothing until it is asked. now is
// the clock.
func NewWindow(lister Lister, now func() time.Time) *Window {
	return &Window{lister: lister, now: now, changed: make(chan struct{})}
}

// Close ends the window and waits until it reads the store no more. Followers are told
// [ErrClosed]. Closing twice is allowed.
func (w *Window) Close() {
	w.mu.Lock()
	w.closed = true
	stop, done := w.stop, w.done
	w.tell()
	w.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// State is what a window has.
type State struct {
	Since int64 `json:"since"` // from when on the counts are whole
	Rows  int   `json:"rows"`  // notable rows in memory
	Limit int   `json:"limit"` // how many there may be
}

// State begins the window, and tells what it has.
func (w *Window) State(ctx context.Context) (State, error) {
	if err := w.use(ctx, MaxTime); err != nil {
		return State{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return State{w.since(w.now().UnixMilli()), w.notable.len(), Limit}, w.failed
}

// use notes that somebody reads, begins the window if need be, and waits for its first
// page, and for a moment until it reaches back to from.
func (w *Window) use(ctx context.Context, from int64) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	w.lastUse = w.now()
	w.begin() //nolint:contextcheck // it outlives this reader
	ready := w.ready
	w.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		w.mu.Lock()
		reached := w.closed || w.failed != nil || w.filled || w.since(w.now().UnixMilli()) <= from
		changed := w.changed
		w.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin starts the goroutine that reads the store, unless it runs.
func (w *Window) begin() {
	if w.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.done, w.ready = stop, make(chan struct{}), make(chan struct{})
	w.rewind()
	go w.run(ctx, w.ready, w.done)
}

// rewind begins a new tape.
func (w *Window) rewind() {
	w.tape = tape{generation: w.generation + 1, counters: counters{make(map[int64]*minute)}}
	w.failed = nil
}

// run reads what is new every second, and in between what is old, until nobody has read
// for a while.
func (w *Window) run(ctx context.Context, ready, done chan struct{}) {
	defer close(done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; first = false {
		w.note(ctx, w.catchUp(ctx))
		if first {
			close(ready)
		}
		w.note(ctx, w.fill(ctx))
		if w.rest() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// note keeps an error of the store for the readers. What was read stays.
func (w *Window) note(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.failed == nil && ctx.Err() == nil {
		w.failed = err
		w.tell()
	}
}

// rest ends the window if nobody has read for a while, and forgets what it has.
func (w *Window) rest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.followers > 0 || w.now().Sub(w.lastUse) < linger {
		return false
	}
	w.stop() // the context's: nothing is being read
	w.stop = nil
	w.rewind()
	return true
}

// catchUp reads what is new, newest first, back to what is known. The first time one page
// is enough, and fill reads the others. What is known is gone where another receipt has its
// place, or one further back comes first: the store lost its newest receipts, and has a log
// that began anew or goes on from an older copy.
func (w *Window) catchUp(ctx context.Context) error {
	newest, begun := w.position()
	size := tailPage
	if !begun {
		size = firstPage
	}
	var fresh []reading
	for before := ""; ; size = fullPage {
		list, err := w.list(ctx, before, size)
		if err != nil {
			return err
		}
		ended := len(list) < size
		met := slices.IndexFunc(list, func(r store.Receipt) bool { return newest.reaches(&r) })
		known := met >= 0 && placeOf(&list[met]) == newest
		if known {
			list = list[:met]
		}
		for i := range list {
			fresh = append(fresh, read(&list[i]))
		}
		switch {
		case known, begun && ended && newest == (place{}): // the store was empty before
			w.extend(fresh)
			return nil
		case !begun, ended, met >= 0, len(fresh) >= maxBehind: // or what was known is gone, or too much is new
			w.startOver(fresh, ended)
			return nil
		}
		before = list[len(list)-1].Cursor
	}
}

// unusable says why there is nothing to read.
func (w *Window) unusable() error {
	if w.closed {
		return ErrClosed
	}
	return w.failed
}

// list reads a page of the store.
func (w *Window) list(ctx context.Context, before string, size int) ([]store.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	return w.lister.Recent(ctx, before, size)
}

// tell wakes everybody who waits for a change.
func (w *Window) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
}
