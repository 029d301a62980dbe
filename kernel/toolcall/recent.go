package toolcall

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// How much of a conversation a call is compared with, in bytes. Conversations of agents
// grow to megabytes, and an agent mostly acts on what it has read last.
const (
	maxHeard = 64 << 10 // of all observations together, the latest
	maxAsked = 16 << 10 // of the user's words, and of the application's: half from the
	// beginning, where the task stands, and half from the end
)

// recent returns a call with the part of its conversation that it is compared with, and
// how many bytes are left out.
func (c Call) recent() (recent Call, unread int) {
	heard, left := 0, maxHeard
	first := len(c.Context)
	for _, o := range c.Context {
		heard += len(o.Text)
	}
	if heard > maxHeard {
		for first > 0 && left > 0 {
			first--
			left -= len(c.Context[first].Text)
		}
		kept := append([]Observation(nil), c.Context[first:]...)
		if left < 0 {
			kept[0].Text = fromRune(kept[0].Text, -left)
		}
		unread += heard
		for _, o := range kept {
			unread -= len(o.Text)
		}
		c.Context = kept
	}
	for _, text := range []*string{&c.Request, &c.System} {
		if whole := len(*text); whole > maxAsked {
			*text = toRune(*text, maxAsked/2) + "\n" + fromRune(*text, whole-maxAsked/2)
			unread += whole - len(*text) + 1
		}
	}
	return c, unread
}

// saidOfBlocked is what we say of blocked calls.
var saidOfBlocked = func() []string {
	all := []string{WasBlocked, SessionRiskReason, NoVerdictReason}
	for _, v := range precedence {
		all = append(all, v.Reason())
	}
	return all
}()

// withoutReasons returns a call with nothing in its conversation of what we say of blocked
// calls. Agents get these sentences as results, and they speak of acts that nobody asks for.
func (c Call) withoutReasons() Call {
	cloned := false
	for i, o := range c.Context {
		text := o.Text
		for _, reason := range saidOfBlocked {
			text = strings.ReplaceAll(text, reason, "")
		}
		if text == o.Text {
			continue
		}
		if !cloned {
			c.Context, cloned = slices.Clone(c.Context), true
		}
		c.Context[i].Text = text
	}
	return c
}

// fromRune returns a text from the first character that begins at n or behind it.
func fromRune(text string, n int) string {
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	return text[n:]
}

// toRune returns a text up to the last character that ends at n or before it.
func toRune(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
