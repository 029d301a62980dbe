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
	// lasting is the length from which a window is in the file at every moment. For a
	// shorter one nobody waits for the disk.
	lasting = time.Hour
	// sweepEvery is how often what has ended is dropped from memory.
	sweepEvery = time.Minute
)

// window is one subject's count.
type window struct {
	Used  int       `json:"used"`
	End   time.Time `json:"end"`
	Brief bool      `json:"brief,omitzero"` // shorter than lasting
	runs  bool      // some of its requests have names, so it is the window of a plan
}

// A run is a request that may be refunded.
type run struct {
	in   *window // that it was counted in; nil when it was refunded
	ends time.Time
}

// A runName tells requests apart.
type runName struct{ subject, run string }

// limits holds the windows of all subjects. Those that last are also in the
// file, and the brief ones of plans are written there by Close; it is read only in Open. The
// others count client addresses, which are not kept. A clock that is set meanwhile moves no end of
// those in memory, nor the next sweep: time.Now also tells how much time has
// passed. What is read from the file has only the hour of the clock that wrote it.
type limits struct {
	now     func() time.Time
	mu      sync.Mutex
	windows map[string]*window
	runs    map[runName]run
	sweepAt time.Time
}

func newLimits(now func() time.Time) *limits {
	return &limits{now: now, windows: make(map[string]*window), runs: make(map[runName]run)}
}

// Consume counts in memory. It waits for the disk when the window is a lasting
// one.
func (s *Store) Consume(ctx context.Context, subject, run string, limit int, length time.Duration) (store.Allowance, error) {
	if err := s.usable(ctx); err != nil {
		return store.Allowance{}, err
	}
	a, in, keep := s.limits.consume(runName{subject, run}, limit, length)
	if !keep {
		return a, nil
	}
	if err := s.writes.Do(ctx, s.limits.save(subject)); err != nil {
		s.limits.uncount(runName{subject, run}, in)
		return store.Allowance{}, err
	}
	return a, nil
}

// Refund uncounts in memory. It waits for the disk when the window is a lasting
// one.
func (s *Store) Refund(ctx context.Context, subject, run string) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if keep := s.limits.refund(runName{subject, run}); !keep {
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

// consume counts one request. It returns the window that it was counted in, or nil, and
// whether that has changed and is to be saved.
func (l *limits) consume(name runName, limit int, length time.Duration) (a store.Allowance, in *window, save bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now)
	w := l.windows[name.subject]
	if w == nil || !now.Before(w.End) {
		w = &window{End: now.Add(length), Brief: length < lasting}
		if limit > 0 { // else this request is not counted and begins nothing
			l.windows[name.subject] = w
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
	a = store.Allowance{Limit: limit, Reset: w.End.Sub(now)}
	before, again := l.known(name, now)
	switch {
	case again:
		a.Allowed = before.in != nil
	case w.Used < limit:
		w.Used++
		a.Allowed, in = true, w
		l.note(name, w, now)
	}
	a.Remaining = max(0, limit-w.Used)
	return a, in, !w.Brief && (in != nil || cut)
}

// known returns what became of a request with a name.
func (l *limits) known(name runName, now time.Time) (run, bool) {
	r, there := l.runs[name]
	return r, there && now.Before(r.ends)
}

// note remembers that a request was counted in a window, if it has a name.
func (l *limits) note(name runName, w *window, now time.Time) {
	if name.run != "" {
		w.runs = true
		l.runs[name] = run{in: w, ends: now.Add(store.RunLife)}
	}
}

// refund uncounts one request and reports whether its window is to be saved, also when it
// was refunded before: that may not have reached the file.
func (l *limits) refund(name runName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if r, there := l.known(name, now); !there || r.in != nil {
		l.runs[name] = run{ends: now.Add(store.RunLife)}
		if there {
			r.in.Used--
		}
	}
	w := l.windows[name.subject]
	return w != nil && !w.Brief && now.Before(w.End)
}

// uncount takes a request out of its window, if it is in one, because its count could not be
// saved.
func (l *limits) uncount(name runName, in *window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in == nil || name.run != "" && l.runs[name].in == nil { // it was refunded meanwhile
		return
	}
	delete(l.runs, name)
	in.Used--
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

// sweep drops ended windows and runs, so that memory holds no more of them than came in
// their time.
func (l *limits) sweep(now time.Time) {
	if now.Before(l.sweepAt) {
		return
	}
	for subject, w := range l.windows {
		if !now.Before(w.End) {
			delete(l.windows, subject)
		}
	}
	for name, r := range l.runs {
		if _, known := l.known(name, now); !known || r.in != nil && !now.Before(r.in.End) {
			delete(l.runs, name)
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

// saveBrief writes the windows of plans that are not in the file yet.
func (l *limits) saveBrief(tx *tx) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for subject, w := range l.windows {
		if !w.Brief || !w.runs || !l.now().Before(w.End) {
			continue
		}
		data, err := json.Marshal(w)
		if err != nil {
			return fmt.Errorf("encoding a window: %w", err)
		}
		if err := tx.bucket(limitsBucket).put([]byte(subject), data); err != nil {
			return err
		}
	}
	return nil
}

// load takes the saved windows into memory and drops the ended ones from the
// file. This is often enough: the subjects of saved windows are few.
func (l *limits) load(saved bucket) error {
	var ended [][]byte
	err := saved.forEach(func(k, v []byte) error {
		w := &window{runs: true}
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
