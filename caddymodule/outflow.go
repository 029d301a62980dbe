package caddymodule

import (
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/wire"
)

const (
	// checkEvery is how many bytes of new text a running stream may gain
	// between two checks; what was not checked is not released.
	checkEvery = 64
	// checkSpan is how many of the last bytes a check reads. The whole text is
	// judged once more at the end, before the terminal frame leaves.
	checkSpan = 4096
)

// An outflow lets a streamed answer out as the checks release it. Text leaves
// only after `window` more bytes behind it were checked, or after it was kept
// back for `patience` while the model was silent; frames keep their order and
// their bytes. It is safe for concurrent use: a timer releases text while the
// model is silent.
type outflow struct {
	window   int
	patience time.Duration
	flagged  func(text string) bool // reports that the text so far must not go on
	write    func(frames []byte) error

	mu      sync.Mutex
	hold    *wire.HoldBack
	pending []string // texts of the held frames, in their order
	choices map[int]*strings.Builder
	sent    strings.Builder // text that has left
	left    bool            // a frame has left
	fresh   int             // bytes of text since the last check
	closed  bool            // the answer is complete; the clock no longer releases
	stopped bool            // a check flagged, or the client left; nothing more leaves
	caught  bool            // a check flagged
	timer   *time.Timer
}

func newOutflow(window int, patience time.Duration, flagged func(string) bool, write func([]byte) error) *outflow {
	o := &outflow{window: window, patience: patience, flagged: flagged, write: write}
	o.hold, o.choices = wire.NewHoldBack(window), make(map[int]*strings.Builder)
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
	text, choice := o.note(deltas)
	o.hold.Add(f, len(text))
	o.pending = append(o.pending, text)
	o.fresh += len(text)
	if o.fresh >= checkEvery || o.window == 0 {
		o.check(choice)
	}
	if o.fresh == 0 {
		o.release(o.hold.Release())
	}
	if text != "" {
		o.arm() // keep-alives of the upstream do not put it off
	}
	return !o.stopped
}

// note appends the deltas to their choices and joins them.
func (o *outflow) note(deltas []wire.Delta) (text string, choice int) {
	for _, d := range deltas {
		if d.Kind != wire.Text && d.Kind != wire.RefusalText {
			continue
		}
		b := o.choices[d.Choice]
		if b == nil {
			b = new(strings.Builder)
			o.choices[d.Choice] = b
		}
		b.WriteString(d.Text)
		text, choice = text+d.Text, d.Choice
	}
	return text, choice
}

// check reads the end of a choice's text. Nothing that is held leaves after a
// check that flags.
func (o *outflow) check(choice int) {
	o.fresh = 0
	b := o.choices[choice]
	if b == nil || !o.flagged(tail(b.String(), checkSpan)) {
		return
	}
	o.caught = true
	o.stop()
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
	o.pending = nil
}

// release writes frames that may leave.
func (o *outflow) release(frames []wire.Frame) {
	if len(frames) == 0 || o.stopped {
		return
	}
	o.left = true
	var out []byte
	for i, f := range frames {
		out = append(out, f.Raw...)
		o.sent.WriteString(o.pending[i])
	}
	o.pending = o.pending[len(frames):]
	if o.write(out) != nil {
		o.stop()
	}
}

// arm starts the clock for text that is kept back.
func (o *outflow) arm() {
	if o.stopped || len(o.pending) == 0 {
		return
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(o.patience, o.expire)
		return
	}
	o.timer.Reset(o.patience)
}

// expire releases what is held after a last check on it.
func (o *outflow) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	for choice := range o.choices {
		if !o.stopped {
			o.check(choice)
		}
	}
	o.release(o.hold.Flush())
}

// close ends the flow and returns the whole text of the answer, choice after
// choice. What is still held stays until flush or drop.
func (o *outflow) close() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
	var b strings.Builder
	for n, seen := 0, 0; seen < len(o.choices); n++ {
		if c := o.choices[n]; c != nil {
			b.WriteString(c.String())
			seen++
		}
		if n > maxChoices {
			break
		}
	}
	return b.String()
}

// maxChoices bounds the index of a choice that is read.
const maxChoices = 128

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

// sentText is the text that has left.
func (o *outflow) sentText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent.String()
}

// read counts text that is held elsewhere, behind the terminal frame of
// another choice.
func (o *outflow) read(deltas []wire.Delta) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(deltas)
}
