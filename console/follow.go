package console

import (
	"context"
	"slices"
)

// recent are the newest rows, oldest first, for those who follow.
type recent struct {
	rows []Row
	base int // how many there were before the first of them
}

// extend adds a newer row.
func (n *recent) extend(r Row) {
	if n.rows = append(n.rows, r); len(n.rows) >= 2*firstPage {
		n.base += len(n.rows) - firstPage
		n.rows = slices.Delete(n.rows, 0, len(n.rows)-firstPage)
	}
}

func (n *recent) end() int { return n.base + len(n.rows) }

// A Follower is told what is new, row by row in the order of the store. It holds no rows of
// its own, so one that is slow costs nothing and is told how many it missed.
type Follower struct {
	w          *Window
	generation int
	next       int
	lost       bool // the place to begin at is not known here
	failing    bool
}

// News is what a follower is told at a time: one of its members.
type News struct {
	Rows []Row
	// Resync: rows were missed, so the reader must load the list anew. Missed is how many,
	// nil if that is not known.
	Resync bool
	Missed *int
	// Health: the store has begun to fail, or is back.
	Health bool
}

// maxNews is how many rows a follower is told at a time.
const maxNews = 100

// Follow follows the window from the row with the cursor after, which is one of the last
// 1000; "" begins with what comes next. The caller calls Close.
func (w *Window) Follow(ctx context.Context, after string) (*Follower, error) {
	if err := w.use(ctx, MaxTime); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	w.followers++
	w.begin() //nolint:contextcheck // it outlives this reader, and may have ended in between
	f := &Follower{w: w, generation: w.generation, next: w.recent.end(), failing: w.failed != nil}
	if after == "" {
		return f, nil
	}
	i := slices.IndexFunc(w.recent.rows, func(r Row) bool { return r.Cursor == after })
	f.lost = i < 0
	f.next = w.recent.base + i + 1
	return f, nil
}

// Close ends following.
func (f *Follower) Close() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.followers--
	f.w.lastUse = f.w.now()
}

// Next waits for news. It returns [ErrClosed] when the store is closed, and the context's
// error when that ends.
func (f *Follower) Next(ctx context.Context) (News, error) {
	for {
		news, changed, err := f.look()
		if changed == nil || err != nil {
			return news, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return News{}, ctx.Err()
		}
	}
}

// look returns the news, or else what tells of a change.
func (f *Follower) look() (news News, changed <-chan struct{}, err error) {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return News{}, nil, ErrClosed
	case f.lost, f.generation != w.generation:
		f.lost, f.generation, f.next = false, w.generation, w.recent.end()
		return News{Resync: true}, nil, nil
	case f.next < w.recent.base:
		missed := w.recent.base - f.next
		f.next = w.recent.base
		return News{Resync: true, Missed: &missed}, nil, nil
	case f.failing != (w.failed != nil):
		f.failing = !f.failing
		return News{Health: true}, nil, nil
	case f.next < w.recent.end():
		rows := w.recent.rows[f.next-w.recent.base:]
		rows = slices.Clone(rows[:min(len(rows), maxNews)])
		f.next += len(rows)
		return News{Rows: rows}, nil, nil
	}
	return News{}, w.changed, nil
}
