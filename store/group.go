package store

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// maxBatch is how many writes one batch has at most.
const maxBatch = 256

// A GroupCommit turns many concurrent writes into few: one goroutine collects
// the writes that are waiting and hands them over as one batch, so that one
// fsync or one round trip serves them all, and each caller is told when its own
// write is done. (Gawlick and Kinkade, Varieties of Concurrency Control in
// IMS/VS Fast Path, 1985.)
//
// Nobody waits for company: a batch has what came while the batch before it was
// written, at most 256 writes. There is no timer.
type GroupCommit[T any] struct {
	commit func([]T) []error
	queue  chan waiting[T]
	quit   chan struct{} // closed by Close
	done   chan struct{} // closed by the writer when it has ended
	once   sync.Once
}

// waiting is a write whose caller waits.
type waiting[T any] struct {
	ctx   context.Context
	write T
	told  chan error // has room for the one answer, so that telling never blocks
}

// NewGroupCommit starts the writer. commit writes a batch and returns one error
// for each of its writes; it runs in one goroutine and is never called twice at
// a time.
func NewGroupCommit[T any](commit func(batch []T) []error) *GroupCommit[T] {
	g := &GroupCommit[T]{
		commit: commit,
		queue:  make(chan waiting[T]),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	go g.run()
	return g
}

// Do writes one value with a batch and returns its error. When ctx ends first,
// Do returns at once with an error that wraps the context's; the write may
// still happen, so it must share nothing that the caller goes on to change.
// After Close it returns [ErrUnavailable].
func (g *GroupCommit[T]) Do(ctx context.Context, write T) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	w := waiting[T]{ctx: ctx, write: write, told: make(chan error, 1)}
	// The queue has no room of its own: what was sent is in the writer's hands,
	// and will be answered also when Close comes.
	select {
	case g.queue <- w:
	case <-ctx.Done():
		return fmt.Errorf("writing: %w", ctx.Err())
	case <-g.quit:
		return fmt.Errorf("writing: closed: %w", ErrUnavailable)
	}
	select {
	case err := <-w.told:
		return err
	case <-ctx.Done():
		return fmt.Errorf("writing: %w", ctx.Err())
	}
}

// Close finishes the batch that is being written and stops the writer. It may
// be called more than once.
func (g *GroupCommit[T]) Close() {
	g.once.Do(func() { close(g.quit) })
	<-g.done
}

func (g *GroupCommit[T]) run() {
	defer close(g.done)
	for {
		select {
		case first := <-g.queue:
			g.write(g.collect(first))
		case <-g.quit:
			return
		}
	}
}

// collect gathers what is waiting. It lets go of the processor once before, so that
// callers that were all told together come back together.
func (g *GroupCommit[T]) collect(first waiting[T]) []waiting[T] {
	runtime.Gosched()
	batch := []waiting[T]{first}
	for len(batch) < maxBatch {
		select {
		case w := <-g.queue:
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}

// write commits the writes whose callers still wait, and tells them.
func (g *GroupCommit[T]) write(batch []waiting[T]) {
	writes := make([]T, 0, len(batch))
	told := make([]chan error, 0, len(batch))
	for _, w := range batch {
		if w.ctx.Err() == nil {
			writes, told = append(writes, w.write), append(told, w.told)
		}
	}
	if len(writes) == 0 {
		return
	}
	for i, err := range g.commit(writes) {
		told[i] <- err
	}
}
