package wire

import "slices"

// HoldBack holds the newest frames of a stream back until the checks have read far
// enough. Each choice of the answer has a text of its own, and a check reads the
// text of one choice. A frame is released only when, for every choice whose text
// it carries, a check has read that text and at least window bytes behind it:
// then nothing that a check finds later can begin in the frame. Frames keep their
// order; those without text (tool calls, roles) wait only for the frames before
// them. Tokens of log probabilities that tell a text which is not beside them wait as
// if it were in their frame. Frames are not copied. A HoldBack is not safe for concurrent use.
type HoldBack struct {
	window  int
	frames  []Frame   // that left last, then those that are held
	taken   int       // how many of them left last
	gone    int       // how many have left
	ends    []textEnd // of the texts that the held frames carry, in order
	choices map[int]*progress
	held    int // bytes of the held frames
	stop    int // how many frames may leave until Pass, or noStop
}

const noStop = -1

// A textEnd is how far a frame tells the text of a choice, in bytes, and how far it brings it.
// Its frame is the number of those before it, without the dropped ones.
type textEnd struct{ frame, choice, at, text int }

// progress is how far the text of a choice was added, was told by tokens, was checked and has
// left.
type progress struct{ added, told, checked, left int }

// spareTokens are bytes of tokens that may be no text at all: a word between two marks, or a
// piece of a character.
const spareTokens = 16

// NewHoldBack returns an empty queue. With a window of 0 bytes or less, text is
// released as soon as it was checked.
func NewHoldBack(window int) *HoldBack {
	return &HoldBack{window: max(window, 0), choices: make(map[int]*progress), stop: noStop}
}

// IsText reports whether a delta is text that a reader sees and the checks read.
func (d Delta) IsText() bool { return d.Kind == Text || d.Kind == RefusalText }

// usuallyHeld is how many frames of a word each are held, in the usual window and between
// two checks.
const usuallyHeld = 96

// Add puts a frame behind the others. Of its deltas those that are text count.
func (h *HoldBack) Add(f Frame, deltas []Delta) {
	h.forgetTaken()
	if h.frames == nil {
		h.frames, h.ends = make([]Frame, 0, usuallyHeld), make([]textEnd, 0, usuallyHeld)
	}
	for _, d := range deltas {
		p, frame := h.choice(d.Choice), h.gone+len(h.frames)
		switch {
		case d.IsText() && d.Text != "":
			p.added += len(d.Text)
			h.ends = append(h.ends, textEnd{frame, d.Choice, p.added, p.added})
		case d.Ahead > 0:
			p.told = max(p.told, p.added) + d.Ahead
			if p.told > p.added+spareTokens {
				h.ends = append(h.ends, textEnd{frame, d.Choice, p.told, p.added})
			}
		}
	}
	h.frames = append(h.frames, f)
	h.held += len(f.Raw)
}

func (h *HoldBack) choice(n int) *progress {
	p := h.choices[n]
	if p == nil {
		p = new(progress)
		h.choices[n] = p
	}
	return p
}

// Checked notes that a check has read all text of a choice that was added so far
// and found nothing.
func (h *HoldBack) Checked(choice int) {
	p := h.choice(choice)
	p.checked = p.added
}

// Stop keeps back every frame that is added from now on, whatever it carries, until Pass.
func (h *HoldBack) Stop() {
	if h.stop == noStop {
		h.stop = h.gone + len(h.frames) - h.taken
	}
}

// Pass ends what Stop began.
func (h *HoldBack) Pass() { h.stop = noStop }

// Release takes out the frames that may leave. They are valid until the next call. For a
// choice that silent reports, text need not have a window behind it, but a check must have
// read it. A nil silent reports none.
func (h *HoldBack) Release(silent func(choice int) bool) []Frame {
	h.forgetTaken()
	for _, end := range h.ends {
		checked := h.choices[end.choice].checked
		if end.at+h.window > checked && (end.at > checked || silent == nil || !silent(end.choice)) {
			return h.take(h.upToStop(end.frame - h.gone))
		}
	}
	return h.take(h.upToStop(len(h.frames)))
}

// upToStop is how many of the first n frames no Stop keeps back.
func (h *HoldBack) upToStop(n int) int {
	if h.stop == noStop {
		return n
	}
	return min(n, h.stop-h.gone)
}

// Flush takes out all frames. They are valid until the next call.
func (h *HoldBack) Flush() []Frame {
	h.forgetTaken()
	return h.take(len(h.frames))
}

// Drop throws all frames away. Their text has not left.
func (h *HoldBack) Drop() { h.frames, h.taken, h.ends, h.held = nil, 0, nil, 0 }

// Held is how many bytes the held frames have.
func (h *HoldBack) Held() int { return h.held }

// Left is how many bytes of the text of a choice have left.
func (h *HoldBack) Left(choice int) int {
	if p := h.choices[choice]; p != nil {
		return p.left
	}
	return 0
}

// take takes out the first n frames. They stay where they are until the next call.
func (h *HoldBack) take(n int) []Frame {
	h.taken = n
	h.gone += n
	for _, f := range h.frames[:n] {
		h.held -= len(f.Raw)
	}
	ended := 0
	for ended < len(h.ends) && h.ends[ended].frame < h.gone {
		h.choices[h.ends[ended].choice].left = h.ends[ended].text
		ended++
	}
	h.ends = slices.Delete(h.ends, 0, ended)
	return h.frames[:n:n]
}

// forgetTaken makes room for what comes. The bytes of the frames that left can be freed.
func (h *HoldBack) forgetTaken() {
	h.frames = slices.Delete(h.frames, 0, h.taken)
	h.taken = 0
}
