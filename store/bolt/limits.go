package bolt

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/store"
)

const (
	// lasting is the length from which a window survives a restart.
	lasting = time.Hour
	// sweepEvery is how often ended windows are dropped from memory.
	sweepEvery = time.Minute
)

// window is one subject's count.
type window struct {
	Used    int       `json:"used"`
	End     time.Time `json:"end"`
	lasting bool
}

// limits holds the windows of all subjects. The ones that last are also in the
// file, which is read only in Open. A clock that is set meanwhile moves no end of
// those in memory, nor the next sweep: time.Now also tells how much time has
// passed. What is read from the file has only the hour of the clock that wrote it.
type limits struct {
	now     func() time.Time
	mu      sync.Mutex
	windows map[string]*window
	sweepAt time.Time
}

func newLimits(now func() time.Time) *limits {
	return &limits{now: now, windows: make(map[string]*window)}
}

// Consume counts in memory. It waits for the disk when the window is a lasting
// one.
func (s *Store) Consume(ctx context.Context, subject string, limit int, length time.Duration) (store.Allowance, error) {
	if err := s.usable(ctx); err != nil {
		return store.Allowance{}, err
	}
	a, keep := s.limits.consume(subject, limit, length)
	if !keep {
		return a, nil
	}
	if err := s.writes.Do(ctx, s.limits.save(subject)); err != nil {
		if a.Allowed {
			s.limits.refund(subject)
		}
		return store.Allowance{}, err
	}
	return a, nil
}

// Refund uncounts in memory. It waits for the disk when the window is a lasting
// one.
func (s *Store) Refund(ctx context.Context, subject string) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if keep := s.limits.refund(subject); !keep {
		return nil
	}
	return s.writes.Do(ctx, s.limits.save(subject))
}

// Consumed reads the count in memory.
func (s *Store) Consumed(ctx context.Context, subject string) (int, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	return s.limits.consumed(subject), nil
}

// usable is the check that reads and writes of the file make by themselves.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("counting: %w", err)
	}
	if s.closed.Load() {
		return fmt.Errorf("counting: closed: %w", store.ErrUnavailable)
	}
	return nil
}

// consume counts one request and reports whether the window has changed and is to be saved.
func (l *limits) consume(subject string, limit int, length time.Duration) (store.Allowance, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now)
	w := l.windows[subject]
	if w == nil || !now.Before(w.End) {
		w = &window{End: now.Add(length), lasting: length >= lasting}
		if limit > 0 { // else this request is not counted and begins nothing
			l.windows[subject] = w
		}
	}
	// A window with more left than its length began under a longer one, or was saved by a clock
	// that was ahead. Its requests may be of just now, so they go on to count, for one length at
	// most: to begin anew would allow as many again. The new end is saved also when this request
	// is not allowed, or each restart would put it off.
	cut := w.End.Sub(now) > length
	if cut {
		w.End = now.Add(length)
	}
	a := store.Allowance{Limit: limit, Reset: w.End.Sub(now)}
	if w.Used < limit {
		w.Used++
		a.Allowed = true
	}
	a.Remaining = max(0, limit-w.Used)
	return a, w.lasting && (a.Allowed || cut)
}

// refund uncounts one request and reports whether the window is to be saved.
func (l *limits) refund(subject string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[subject]
	if w == nil || w.Used == 0 || !l.now().Before(w.End) {
		return false
	}
	w.Used--
	return w.lasting
}

// consumed returns the count of a window that has not ended.
func (l *limits) consumed(subject string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[subject]
	if w == nil || !l.now().Before(w.End) {
		return 0
	}
	return w.Used
}

// sweep drops ended windows, so that memory holds no more subjects than came in
// a window's time.
func (l *limits) sweep(now time.Time) {
	if now.Before(l.sweepAt) {
		return
	}
	for subject, w := range l.windows {
		if !now.Before(w.End) {
			delete(l.windows, subject)
		}
	}
	l.sweepAt = now.Add(sweepEvery)
}

// save writes the subject's window as it is when the batch is written: of two
// writes that overtook each other, both write the newer count.
func (l *limits) save(subject string) write {
	return func(tx *tx) error {
		l.mu.Lock()
		w := l.windows[subject]
		if w == nil { // it ended and was swept meanwhile
			l.mu.Unlock()
			return nil
		}
		data, err := json.Marshal(w)
		l.mu.Unlock()
		if err != nil {
			return fmt.Errorf("encoding a window: %w", err)
		}
		return tx.bucket(limitsBucket).put([]byte(subject), data)
	}
}

// load takes the saved windows into memory and drops the ended ones from the
// file. This is often enough: the subjects of lasting windows are few.
func (l *limits) load(saved bucket) error {
	var ended [][]byte
	err := saved.forEach(func(k, v []byte) error {
		w := &window{lasting: true}
		if err := json.Unmarshal(v, w); err != nil {
			return fmt.Errorf("decoding a window: %w", err)
		}
		if l.now().Before(w.End) {
			l.windows[string(k)] = w
		} else {
			ended = append(ended, bytes.Clone(k))
		}
		return nil
	})
	for _, k := range ended {
		if err == nil {
			err = saved.delete(k)
		}
	}
	return err
}
