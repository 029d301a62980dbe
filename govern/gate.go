package govern

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/wire"
)

// checkEvery is how many bytes of new text a choice may gain before the next check. Text
// that was not checked is not released. The whole text is judged at the end, before the
// terminal frame leaves.
const checkEvery = 96

// A GateConfig configures a [Gate].
type GateConfig struct {
	// Window is how many bytes of a choice's text must have been checked behind a
	// byte before it leaves.
	Window int
	// MaxDelay is the longest time that text is kept back while its choice is
	// silent. It is positive.
	MaxDelay time.Duration
	// Limit bounds the text and the held frames together, in bytes.
	Limit int64
	// Check reports whether the answer must stop, given the whole text of a choice so
	// far: it begins with the text that was checked before. Checks come one at a time.
	Check func(choice int, text string) (flagged bool)
	// Write sends frames to the client. After an error nothing more leaves.
	Write func(frames []wire.Frame) error
	// Held is told by how many bytes the frames that are kept back became more or, below
	// 0, fewer. After Flush or Drop the changes add up to 0. It is called while the gate
	// is locked. Nil: nobody is told.
	Held func(change int)
}

// A Gate holds a streamed answer back until the text is checked. Each choice of the
// answer is checked separately. Text leaves after Window more bytes of its choice were
// checked behind it, or after its choice was silent for MaxDelay and was checked once
// more. Frames keep their order and their bytes. A Gate is safe for concurrent use: a
// timer releases text while the model is silent.
type Gate struct {
	GateConfig

	mu      sync.Mutex
	hold    *wire.HoldBack
	told    int // of what is held, to Held
	choices map[int]*choiceText
	apart   []*apartText // see interleaving
	tangled bool         // there were more parts than can be read apart
	size    int64        // bytes of text
	begun   bool         // a frame has left
	closed  bool         // the answer is complete; the timer no longer releases
	stopped bool         // nothing more leaves
	flagged bool         // a check flagged
	full    bool         // the limit was reached
	timer   *time.Timer
}

// choiceText is the text of one choice so far.
type choiceText struct {
	strings.Builder
	unchecked int       // bytes since the last check
	last      time.Time // when text came
	parts     interleaving
}

// NewGate returns an empty gate.
func NewGate(c GateConfig) *Gate {
	return &Gate{GateConfig: c, hold: wire.NewHoldBack(c.Window), choices: make(map[int]*choiceText)}
}

// tellHeld tells how much more or less is held. Every function that changes it defers it.
func (g *Gate) tellHeld() {
	if change := g.hold.Held() - g.told; change != 0 && g.Held != nil {
		g.told += change
		g.Held(change)
	}
}

// Append adds one frame with the text it carries. It returns false if nothing more
// will leave.
func (g *Gate) Append(f wire.Frame, deltas []wire.Delta) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tellHeld()
	if g.stopped {
		return false
	}
	g.note(deltas)
	g.hold.Add(f, deltas)
	if g.size+int64(g.hold.Held()) > g.Limit {
		g.full = true
		g.stop()
		return false
	}
	for _, d := range deltas {
		if c := g.choices[d.Choice]; c != nil && c.unchecked > 0 && (c.unchecked >= checkEvery || g.Window == 0) {
			g.check(d.Choice, c)
		}
	}
	g.release(g.hold.Release(nil))
	g.startTimer()
	return !g.stopped
}

// note appends the deltas to their choices.
func (g *Gate) note(deltas []wire.Delta) {
	for _, d := range deltas {
		if !d.IsText() || d.Text == "" {
			continue
		}
		c := g.choices[d.Choice]
		if c == nil {
			c = new(choiceText)
			g.choices[d.Choice] = c
		}
		g.noteParts(c, d)
		_, _ = c.WriteString(d.Text) // a strings.Builder never fails
		c.unchecked += len(d.Text)
		c.last = time.Now()
		g.size += int64(len(d.Text))
	}
}

// check checks the text of a choice. If the check flags, nothing that is held leaves any
// more.
func (g *Gate) check(choice int, c *choiceText) {
	c.unchecked = 0
	switch {
	case g.stopped:
	case g.Check(choice, c.String()) || g.checkApart():
		g.flagged = true
		g.stop()
	default:
		g.hold.Checked(choice)
	}
}

// Flagged reports whether a check flagged. It waits for a check that is running:
// the check may have stopped the model before it returns.
func (g *Gate) Flagged() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flagged
}

func (g *Gate) stop() {
	g.stopped = true
	g.hold.Drop()
}

// release writes frames that may leave.
func (g *Gate) release(frames []wire.Frame) {
	if len(frames) == 0 || g.stopped {
		return
	}
	g.begun = true
	if g.Write(frames) != nil {
		g.stop()
	}
}

// startTimer starts the timer for text that is kept back, unless it runs already.
// Later text does not postpone it, because another choice may be silent.
func (g *Gate) startTimer() {
	if g.stopped || g.closed || g.timer != nil || g.hold.Held() == 0 {
		return
	}
	g.timer = time.AfterFunc(g.MaxDelay, g.expire)
}

// expire releases the text of silent choices, after a last check, and starts the
// timer again for the next choice.
func (g *Gate) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tellHeld()
	g.timer = nil
	if g.closed || g.stopped {
		return
	}
	now, next := time.Now(), g.MaxDelay
	for choice, c := range g.choices {
		switch rest := g.MaxDelay - now.Sub(c.last); {
		case rest > 0:
			next = min(next, rest)
		case c.unchecked > 0:
			g.check(choice, c)
		}
	}
	silent := func(choice int) bool { return now.Sub(g.choices[choice].last) >= g.MaxDelay }
	g.release(g.hold.Release(silent))
	if !g.stopped && g.hold.Held() > 0 {
		g.timer = time.AfterFunc(next, g.expire)
	}
}

// Close ends the answer and returns the whole text of each choice that has text, in
// order. Frames that are still held wait for Flush or Drop.
func (g *Gate) Close() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
	return g.texts(func(_ int, c *choiceText) string { return c.String() })
}

func (g *Gate) texts(of func(choice int, c *choiceText) string) []string {
	var out []string
	for _, choice := range slices.Sorted(maps.Keys(g.choices)) {
		if text := of(choice, g.choices[choice]); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// Texts returns the whole text of each choice that has text, in order.
func (g *Gate) Texts() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.texts(func(_ int, c *choiceText) string { return c.String() })
}

// TextsByChoice returns the whole text of each choice so far.
func (g *Gate) TextsByChoice() map[int]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	texts := make(map[int]string, len(g.choices))
	for choice, c := range g.choices {
		texts[choice] = c.String()
	}
	return texts
}

// Settle checks all text and releases it, because text that is followed by something else
// waits for no more text. It returns false if nothing more will leave.
func (g *Gate) Settle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tellHeld()
	for choice, c := range g.choices {
		if c.unchecked > 0 {
			g.check(choice, c)
		}
	}
	g.release(g.hold.Release(func(int) bool { return true }))
	return !g.stopped
}

// KeepBack keeps every frame that is appended from now on back, or lets them go as
// their text allows.
func (g *Gate) KeepBack(keep bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if keep {
		g.hold.Stop()
	} else {
		g.hold.Pass()
	}
}

// Flush writes everything that is held.
func (g *Gate) Flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tellHeld()
	g.release(g.hold.Flush())
}

// Drop discards everything that is held.
func (g *Gate) Drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tellHeld()
	g.stop()
}

// Begun reports whether any frame has left.
func (g *Gate) Begun() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun
}

// Full reports whether the answer is larger than Limit.
func (g *Gate) Full() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.full
}

// Sent returns the text that has left, choice by choice.
func (g *Gate) Sent() string { return strings.Join(g.SentChoices(), "") }

// SentChoices returns the text that has left of each choice of which some has.
func (g *Gate) SentChoices() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.texts(func(choice int, c *choiceText) string { return c.String()[:g.hold.Left(choice)] })
}

// Count adds text whose frames the caller holds, because they came after the terminal
// frame of another choice. It reports whether there is room for more.
func (g *Gate) Count(deltas []wire.Delta) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note(deltas)
	g.full = g.full || g.size > g.Limit
	return !g.full
}
