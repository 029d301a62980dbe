package govern

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel/detect"
)

// windows judges a text that may grow through overlapping windows, since the detector's
// judge reads a bounded part of a text. Each window reads only what is new.
type windows struct {
	asked *detect.Asked
	step  int // from the beginning of a window to that of the next
	size  int // of a window, in bytes, at most
	end   int // no window begins here or later
	next  int // where the next window begins
	open  []*window
	first detect.Judgement // on the beginning of the text
}

type window struct {
	from     int
	listener *detect.Listener
	full     bool
}

// wholeWindows read a text up to maxJudged. Every phrase is complete in one of them.
func wholeWindows(asked *detect.Asked) *windows {
	return &windows{asked: asked, step: detect.MaxJudged - judgedOverlap, size: maxJudged, end: maxJudged}
}

// recentWindows read a text of any length. Each span of checkSpan bytes lies in one of them.
func recentWindows(asked *detect.Asked) *windows {
	return &windows{asked: asked, step: checkSpan, size: 2 * checkSpan, end: math.MaxInt}
}

// judge returns the first judgement that finds a capitulation, else the one on the
// beginning. The text begins with the one that was judged before.
func (w *windows) judge(text string) detect.Judgement {
	w.open = slices.DeleteFunc(w.open, func(o *window) bool { return o.full })
	for w.next == 0 || w.next < min(len(text), w.end) {
		w.open = append(w.open, &window{from: w.next, listener: w.asked.Listen()})
		w.next += w.step
	}
	for _, o := range w.open {
		part := o.part(text, w.size)
		found := o.listener.Judge(part)
		if found.Capitulated {
			return found
		}
		if o.from == 0 {
			w.first = found
		}
		o.full = len(part) == w.size || o.listener.Done(part)
	}
	return w.first
}

// part returns what the window shows of a text.
func (o *window) part(text string, size int) string {
	return text[o.from:min(len(text), o.from+size)]
}

// echoes reports whether a window holds an echo of the secret.
func (w *windows) echoes(secret *detect.Secret) bool {
	for _, o := range w.open {
		if o.listener.Echoes(secret) {
			return true
		}
	}
	return false
}

// checkSpan is how many bytes are sure to be judged together, and apart from what came
// before: the beginning of a long answer may excuse what its end may not say.
const checkSpan = 4096

// A listening follows one choice of a streamed answer.
type listening struct {
	whole, recent *windows
	secret        *detect.Secret // nil without one
	checked       int            // bytes
}

// check judges what came of the choice so far. If much came at once, it judges beginnings
// that end with a word at every checkEvery bytes or so before, because an answer is not to
// be treated better when it comes in large pieces.
func (l *listening) check(text string) detect.Judgement {
	for at := l.checked + checkEvery; at < len(text)-checkEvery; at += checkEvery {
		word := strings.IndexFunc(text[at:], func(c rune) bool { return c == ' ' || c == '\n' || c >= utf8.RuneSelf })
		if word < 0 {
			break
		}
		at += word
		if found := l.checkBeginning(text[:at]); found.Capitulated {
			return found
		}
	}
	l.checked = len(text)
	return l.checkBeginning(text)
}

func (l *listening) checkBeginning(text string) detect.Judgement {
	for _, w := range []*windows{l.whole, l.recent} {
		if found := w.judge(text); found.Capitulated {
			return found
		}
	}
	if l.secret != nil && l.recent.echoes(l.secret) {
		return echoFound
	}
	return detect.Judgement{}
}
