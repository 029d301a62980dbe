package caddymodule

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/wire"
)

const (
	// checkEvery is how many bytes of new text a choice of a running stream may
	// gain between two checks; what was not checked is not released.
	checkEvery = 64
	// checkSpan is how many of the last bytes of a choice a check reads. The
	// whole text is judged once more at the end, before the terminal frame leaves.
	checkSpan = 4096
)

// An outflow lets a streamed answer out as the checks release it. Each choice of
// the answer is checked for itself. Text leaves only after `window` more bytes of
// its choice were checked behind it, or after its choice was silent for
// `patience` and a last check; frames keep their order and their bytes. It is
// safe for concurrent use: a timer releases text while the model is silent.
type outflow struct {
	window   int
	patience time.Duration
	limit    int64                  // bytes of text and of held frames
	flagged  func(text string) bool // reports that the text so far must not go on
	write    func(frames []byte) error

	mu       sync.Mutex
	hold     *wire.HoldBack
	choices  map[int]*choiceText
	size     int64 // bytes of text
	left     bool  // a frame has left
	closed   bool  // the answer is complete; the clock no longer releases
	stopped  bool  // nothing more leaves
	caught   bool  // because a check flagged
	overfull bool  // because the limit was reached
	timer    *time.Timer
}

// choiceText is the text of one choice so far.
type choiceText struct {
	strings.Builder
	fresh int       // bytes since the last check
	last  time.Time // when text came
}

func newOutflow(window int, patience time.Duration, limit int64, flagged func(string) bool, write func([]byte) error) *outflow {
	o := &outflow{window: window, patience: patience, limit: limit, flagged: flagged, write: write}
	o.hold, o.choices = wire.NewHoldBack(window), make(map[int]*choiceText)
	return o
}

// add takes one frame and the text it carries. It returns false once nothing
// more will leave.
func (o *outflow) add(f wire.Frame, deltas []wire.Delta) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return false
	}
	o.note(deltas)
	o.hold.Add(f, deltas)
	if o.size+int64(o.hold.Held()) > o.limit {
		o.overfull = true
		o.stop()
		return false
	}
	for _, d := range deltas {
		if c := o.choices[d.Choice]; c != nil && c.fresh > 0 && (c.fresh >= checkEvery || o.window == 0) {
			o.check(d.Choice, c)
		}
	}
	o.release(o.hold.Release(nil))
	o.arm()
	return !o.stopped
}

// note appends the deltas to their choices.
func (o *outflow) note(deltas []wire.Delta) {
	for _, d := range deltas {
		if !d.IsText() || d.Text == "" {
			continue
		}
		c := o.choices[d.Choice]
		if c == nil {
			c = new(choiceText)
			o.choices[d.Choice] = c
		}
		c.WriteString(d.Text)
		c.fresh += len(d.Text)
		c.last = time.Now()
		o.size += int64(len(d.Text))
	}
}

// check reads the end of a choice's text, as far as it is new and the span before
// it. Nothing that is held leaves after a check that flags.
func (o *outflow) check(choice int, c *choiceText) {
	span := max(checkSpan, c.fresh+checkSpan/2)
	c.fresh = 0
	if o.stopped || o.flagged(tail(c.String(), span)) {
		o.caught = !o.stopped || o.caught
		o.stop()
		return
	}
	o.hold.Checked(choice)
}

// tail returns the last n bytes of s, from a character's start.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}

// violated reports whether a check flagged. A check that is at work comes to its
// end first: what it stops may be seen to have stopped before it says why.
func (o *outflow) violated() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.caught
}

func (o *outflow) stop() {
	o.stopped = true
	o.hold.Drop()
}

// release writes frames that may leave.
func (o *outflow) release(frames []wire.Frame) {
	if len(frames) == 0 || o.stopped {
		return
	}
	o.left = true
	var out []byte
	for _, f := range frames {
		out = append(out, f.Raw...)
	}
	if o.write(out) != nil {
		o.stop()
	}
}

// arm starts the clock for text that is kept back, unless it runs. Text that
// comes later does not put it off: another choice may be silent.
func (o *outflow) arm() {
	if o.stopped || o.closed || o.timer != nil || o.hold.Held() == 0 {
		return
	}
	o.timer = time.AfterFunc(o.patience, o.expire)
}

// expire releases what choices that fell silent kept back, after a last check on
// it, and looks again when the next one may have.
func (o *outflow) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = nil
	if o.closed || o.stopped {
		return
	}
	now, next := time.Now(), o.patience
	for choice, c := range o.choices {
		switch rest := o.patience - now.Sub(c.last); {
		case rest > 0:
			next = min(next, rest)
		case c.fresh > 0:
			o.check(choice, c)
		}
	}
	silent := func(choice int) bool { return now.Sub(o.choices[choice].last) >= o.patience }
	o.release(o.hold.Release(silent))
	if !o.stopped && o.hold.Held() > 0 {
		o.timer = time.AfterFunc(next, o.expire)
	}
}

// close ends the flow and returns the whole text of each choice that has any, in
// order. What is still held stays until flush or drop.
func (o *outflow) close() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
	return o.texts(func(_ int, c *choiceText) string { return c.String() })
}

func (o *outflow) texts(of func(choice int, c *choiceText) string) []string {
	var out []string
	for _, choice := range slices.Sorted(maps.Keys(o.choices)) {
		if text := of(choice, o.choices[choice]); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// flush writes everything that is held.
func (o *outflow) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(o.hold.Flush())
}

// drop throws away everything that is held.
func (o *outflow) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop()
}

// begun reports whether any frame has left.
func (o *outflow) begun() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.left
}

// tooLarge reports whether there is more of the answer than is kept.
func (o *outflow) tooLarge() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.overfull
}

// sentText is the text that has left, choice after choice.
func (o *outflow) sentText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.texts(func(choice int, c *choiceText) string { return c.String()[:o.hold.Left(choice)] }), "")
}

// read counts text that is held elsewhere, behind the terminal frame of another
// choice, and reports whether there is room for more.
func (o *outflow) read(deltas []wire.Delta) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(deltas)
	o.overfull = o.overfull || o.size > o.limit
	return !o.overfull
}
