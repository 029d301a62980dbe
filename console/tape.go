package console

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddy-lex/lex/store"
)

// A tape is what a window has read of the list of the store, without a gap between the
// newest receipt and the oldest.
type tape struct {
	counters counters
	notable  notable
	recent   recent

	generation     int  // of tapes, counted over the window's life
	begun          bool // the first page was read
	newest, oldest place
	oldestAt       int64
	read           int // receipts
	fillBegan      time.Time
	filled         bool // nothing older will be read
	whole          bool // because there is nothing older
}

// A place is a receipt's in the list of the store. seq is 0 where it is not known.
type place struct {
	cursor string
	seq    uint64
	id     string // of the receipt: a log that began anew has another one there
}

func placeOf(r *store.Receipt) place { return place{r.Cursor, r.Seq, r.ID} }

// reaches reports whether a receipt stands at the place or further back.
func (p place) reaches(r *store.Receipt) bool {
	return p.cursor != "" && (r.Cursor == p.cursor || r.Seq != 0 && r.Seq <= p.seq)
}

// since is from when on the counts are whole, at the time now. What was not read was
// committed before the oldest receipt that was, and a turn began at most longestTurn
// before it was committed.
func (t *tape) since(now int64) int64 {
	remembered := ceilTo(now-kept.Milliseconds(), minuteSpan)
	switch {
	case !t.begun:
		return now
	case t.whole:
		return remembered
	}
	return max(remembered, ceilTo(t.oldestAt+longestTurn.Milliseconds(), second))
}

// position tells where the tape ends.
func (w *Window) position() (newest place, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest, w.begun
}

// extend adds what is new, newest first.
func (w *Window) extend(fresh []reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(fresh)
	if len(fresh) > 0 || w.failed != nil {
		w.failed = nil
		w.tell()
	}
}

// startOver begins a tape with the newest receipts, newest first; ended says that there
// are no others.
func (w *Window) startOver(fresh []reading, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rewind()
	w.begun, w.filled, w.whole, w.read, w.fillBegan = true, ended, ended, len(fresh), w.now()
	if n := len(fresh); n > 0 {
		w.oldest, w.oldestAt = fresh[n-1].place.kept(), fresh[n-1].At
	}
	w.add(fresh)
	w.tell()
}

func (w *Window) add(fresh []reading) {
	w.counters.forget(w.now().Add(-kept).UnixMilli())
	for i := range slices.Backward(fresh) {
		w.counters.add(&fresh[i])
		row := fresh[i].kept()
		w.notable.extend(row)
		w.recent.extend(row)
	}
	if len(fresh) > 0 {
		w.newest = fresh[0].place.kept()
	}
}

// fill reads what is older, for as long as nothing new is due. Where the store cannot read
// a record of its own, which was damaged, the window goes back no further.
func (w *Window) fill(ctx context.Context) error {
	began := w.now()
	for w.now().Sub(began) < every {
		before, more := w.unfilled()
		if !more {
			return nil
		}
		list, err := w.list(ctx, before, fullPage)
		switch {
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
			return err
		case err != nil:
			w.endFill()
			return nil //nolint:nilerr // since says where the window ends
		}
		older := make([]reading, len(list))
		for i := range list {
			older[i] = read(&list[i])
		}
		w.prepend(older)
	}
	return nil
}

func (w *Window) endFill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.filled = true
	w.tell()
}

// unfilled tells where to read on, if there is more to read.
func (w *Window) unfilled() (before string, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oldest.cursor, w.begun && !w.filled
}

// prepend adds what is older, newest first.
func (w *Window) prepend(older []reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range older {
		w.counters.add(&older[i])
		w.notable.prepend(&older[i].Row)
	}
	if n := len(older); n > 0 {
		w.oldest, w.oldestAt = older[n-1].place.kept(), older[n-1].At
	}
	w.read += len(older)
	w.whole = len(older) < fullPage
	now := w.now()
	horizon := now.Add(-kept - longestTurn).UnixMilli()
	w.filled = w.whole || w.oldestAt < horizon || w.read >= maxFilled || now.Sub(w.fillBegan) >= fillTime
	w.tell()
}
