package wire

// HoldBack keeps the newest frames of a stream back: a frame leaves only when
// at least `window` bytes of text were added behind it, so that a check which
// reads up to `window` bytes has seen everything that could still make the
// frame's text part of a finding. Frames keep their order; those without text
// (tool calls, roles) wait in it like the others. Nothing is copied. A HoldBack
// is not safe for concurrent use.
type HoldBack struct {
	window int
	frames []Frame
	texts  []int // bytes of text of each held frame
	held   int   // their sum
}

// NewHoldBack makes an empty queue. A window of 0 bytes, or less, holds
// nothing.
func NewHoldBack(window int) *HoldBack { return &HoldBack{window: max(window, 0)} }

// Add puts a frame behind the others; text is how many bytes of text it
// carries.
func (h *HoldBack) Add(f Frame, text int) {
	text = max(text, 0)
	h.frames = append(h.frames, f)
	h.texts = append(h.texts, text)
	h.held += text
}

// Release takes out the frames that may leave.
func (h *HoldBack) Release() []Frame {
	n := 0
	for n < len(h.frames) && h.held-h.texts[n] >= h.window {
		h.held -= h.texts[n]
		n++
	}
	return h.take(n)
}

// Flush takes out all frames.
func (h *HoldBack) Flush() []Frame {
	h.held = 0
	return h.take(len(h.frames))
}

// Drop throws all frames away.
func (h *HoldBack) Drop() { h.Flush() }

// Held is how many bytes of text are held.
func (h *HoldBack) Held() int { return h.held }

// take cuts the first n frames off. What was taken is never overwritten: later
// frames are appended behind it.
func (h *HoldBack) take(n int) []Frame {
	if n == 0 {
		return nil
	}
	out := h.frames[:n:n]
	h.frames, h.texts = h.frames[n:], h.texts[n:]
	return out
}
