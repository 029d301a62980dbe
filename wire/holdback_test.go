package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// Whatever is added to which choices and checked when, frames leave in order and
// once, none leaves with less than a window of checked text of its choices
// behind it, and what could leave does.
func TestHoldBackKeepsTheWindow(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		window := rapid.IntRange(-1, 40).Draw(r, "window")
		h := wire.NewHoldBack(window)
		var ends []map[int]int // of each frame
		added, checked := make(map[int]int), make(map[int]int)
		left := 0
		may := func(frame int) bool {
			for choice, end := range ends[frame] {
				if end+max(window, 0) > checked[choice] {
					return false
				}
			}
			return true
		}
		leave := func(frames []wire.Frame) {
			for _, f := range frames {
				if want := fmt.Sprint(left); string(f.Raw) != want {
					t.Fatalf("frame %s left, want %s", f.Raw, want)
				}
				left++
			}
		}
		for range rapid.IntRange(1, 60).Draw(r, "frames") {
			var deltas []wire.Delta
			end := make(map[int]int)
			for range rapid.IntRange(0, 3).Draw(r, "deltas") {
				d := wire.Delta{
					Choice: rapid.IntRange(0, 3).Draw(r, "choice"), Text: strings.Repeat("x", rapid.IntRange(0, 25).Draw(r, "text")),
					Kind: rapid.SampledFrom([]wire.Kind{wire.Text, wire.RefusalText, wire.Arguments}).Draw(r, "kind"),
				}
				deltas = append(deltas, d)
				if d.IsText() && d.Text != "" {
					added[d.Choice] += len(d.Text)
					end[d.Choice] = added[d.Choice]
				}
			}
			h.Add(wire.Frame{Raw: fmt.Append(nil, len(ends))}, deltas)
			ends = append(ends, end)
			if choice := rapid.IntRange(-2, 3).Draw(r, "checked"); choice >= 0 {
				h.Checked(choice)
				checked[choice] = added[choice]
			}
			before := left
			leave(h.Release(nil))
			for i := before; i < left; i++ {
				if !may(i) {
					t.Fatalf("window %d: frame %d left too early", window, i)
				}
				for choice, end := range ends[i] {
					if h.Left(choice) < end {
						t.Fatalf("choice %d: %d bytes left, want %d", choice, h.Left(choice), end)
					}
				}
			}
			if left < len(ends) && may(left) {
				t.Fatalf("window %d: frame %d stays", window, left)
			}
		}
		leave(h.Flush())
		if left != len(ends) || h.Held() != 0 || len(h.Flush()) != 0 {
			t.Fatalf("%d of %d frames left, %d bytes held", left, len(ends), h.Held())
		}
	})
}

func text(choice int, s string) []wire.Delta {
	return []wire.Delta{{Choice: choice, Kind: wire.Text, Text: s}}
}

// A choice that falls silent lets go of what was checked, and of nothing else.
func TestHoldBackOfASilentChoice(t *testing.T) {
	h := wire.NewHoldBack(10)
	h.Add(wire.Frame{Raw: []byte("one")}, text(0, "abc"))
	h.Add(wire.Frame{Raw: []byte("two")}, text(1, "abc"))
	silent := func(choice int) bool { return choice == 0 }
	if out := h.Release(silent); len(out) != 0 {
		t.Errorf("%d frames left unchecked", len(out))
	}
	h.Checked(0)
	h.Checked(1)
	if out := h.Release(silent); len(out) != 1 || string(out[0].Raw) != "one" {
		t.Errorf("left: %v", out)
	}
	if h.Left(0) != 3 || h.Left(1) != 0 || h.Left(7) != 0 || h.Held() != 3 {
		t.Errorf("%d and %d left, %d held", h.Left(0), h.Left(1), h.Held())
	}
}

// A frame without text waits for nobody.
func TestHoldBackPassesWhatHasNoText(t *testing.T) {
	h := wire.NewHoldBack(10)
	h.Add(wire.Frame{Raw: []byte("reasoning")}, []wire.Delta{{Kind: wire.Reasoning, Text: "hm"}})
	if out := h.Release(nil); len(out) != 1 {
		t.Error("it stays")
	}
}

// Tokens that tell a text which is not beside them wait for it: what they tell has to be checked,
// and a window behind it. A few bytes may be no text.
func TestHoldBackOfTokens(t *testing.T) {
	ahead := func(n int) []wire.Delta { return []wire.Delta{{Kind: wire.Logprobs, Ahead: n}} }
	h := wire.NewHoldBack(10)
	left := ""
	add := func(name string, deltas []wire.Delta, want string) {
		h.Add(wire.Frame{Raw: []byte(name)}, deltas)
		h.Checked(0)
		for _, f := range h.Release(func(int) bool { return true }) {
			left += string(f.Raw)
		}
		if left != want {
			t.Errorf("behind %s has left %q, want %q", name, left, want)
		}
	}
	add("a", ahead(8), "a")                          // a mark
	add("b", ahead(8), "ab")                         // another
	add("c", ahead(30), "ab")                        // tells 46 bytes
	add("d", text(0, strings.Repeat("x", 40)), "ab") // of which 40 have come
	add("e", text(0, "yyyyyy"), "abcde")             // and all
	add("f", ahead(40), "abcde")                     // once more, or what comes
	add("g", []wire.Delta{{Kind: wire.Reasoning, Text: "hm"}}, "abcde")
	if h.Left(0) != 46 {
		t.Errorf("%d bytes have left", h.Left(0))
	}
	if out := h.Flush(); len(out) != 2 || h.Left(0) != 46 {
		t.Errorf("%d frames and %d bytes at the end", len(out), h.Left(0))
	}
}

// Frames that were taken out stay as they are when more are added.
func TestHoldBackDoesNotReuse(t *testing.T) {
	h := wire.NewHoldBack(0)
	var out []wire.Frame
	for i := range 100 {
		h.Add(wire.Frame{Raw: fmt.Append(nil, i)}, text(0, "x"))
		h.Checked(0)
		out = append(out, h.Release(nil)...)
	}
	for i, f := range out {
		if string(f.Raw) != fmt.Sprint(i) {
			t.Fatalf("frame %d became %s", i, f.Raw)
		}
	}
}

func TestHoldBackDrop(t *testing.T) {
	h := wire.NewHoldBack(10)
	h.Add(wire.Frame{Raw: []byte("dropped")}, text(0, "secret"))
	h.Drop()
	h.Add(wire.Frame{Raw: []byte("kept")}, text(0, "y"))
	if h.Held() != 4 || len(h.Release(nil)) != 0 || h.Left(0) != 0 {
		t.Errorf("%d bytes held", h.Held())
	}
	if out := h.Flush(); len(out) != 1 || string(out[0].Raw) != "kept" {
		t.Errorf("flushed %+v", out)
	}
}

// Frames behind a stop wait for it to end, whatever they carry and however silent it is.
func TestHoldBackStops(t *testing.T) {
	frame := func(raw string) wire.Frame { return wire.Frame{Raw: []byte(raw)} }
	h := wire.NewHoldBack(0)
	h.Add(frame("a"), nil)
	if got := h.Release(nil); len(got) != 1 {
		t.Fatalf("%d frames left", len(got))
	}
	h.Add(frame("b"), nil)
	h.Stop()
	h.Add(frame("c"), nil)
	h.Stop() // it stands already
	h.Add(frame("d"), nil)
	silent := func(int) bool { return true }
	if got := h.Release(silent); len(got) != 1 || string(got[0].Raw) != "b" {
		t.Fatalf("left: %v", got)
	}
	if got := h.Release(silent); len(got) != 0 || h.Held() != 2 {
		t.Fatalf("left: %v, held %d", got, h.Held())
	}
	h.Pass()
	if got := h.Release(nil); len(got) != 2 || h.Held() != 0 {
		t.Fatalf("left: %v, held %d", got, h.Held())
	}
}
