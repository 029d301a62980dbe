package wire_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// Whatever is added, frames leave in order and once, and none leaves with less
// than a window of text behind it; what could leave does.
func TestHoldBackKeepsTheWindow(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		window := rapid.IntRange(-1, 40).Draw(r, "window")
		texts := rapid.SliceOfN(rapid.IntRange(0, 25), 1, 60).Draw(r, "texts")
		h := wire.NewHoldBack(window)
		added, left := 0, 0 // frames
		behind := func(i int) (n int) {
			for _, text := range texts[i+1 : added] {
				n += text
			}
			return n
		}
		leave := func(frames []wire.Frame) {
			for _, f := range frames {
				if want := fmt.Sprint(left); string(f.Raw) != want {
					t.Fatalf("frame %s left, want %s", f.Raw, want)
				}
				left++
			}
		}
		for i, text := range texts {
			h.Add(wire.Frame{Raw: fmt.Append(nil, i)}, text)
			added++
			if !rapid.Bool().Draw(r, "release") {
				continue
			}
			leave(h.Release())
			if left > 0 && behind(left-1) < window {
				t.Fatalf("window %d: frame %d left with %d bytes behind it", window, left-1, behind(left-1))
			}
			if left < added && behind(left) >= window {
				t.Fatalf("window %d: frame %d stays with %d bytes behind it", window, left, behind(left))
			}
		}
		if left < added && h.Held() != behind(left)+texts[left] {
			t.Fatalf("%d bytes held, want %d", h.Held(), behind(left)+texts[left])
		}
		leave(h.Flush())
		if left != added || h.Held() != 0 || len(h.Flush()) != 0 {
			t.Fatalf("%d of %d frames left, %d bytes held", left, added, h.Held())
		}
	})
}

// Frames that were taken out stay as they are when more are added.
func TestHoldBackDoesNotReuse(t *testing.T) {
	h := wire.NewHoldBack(0)
	var out []wire.Frame
	for i := range 100 {
		h.Add(wire.Frame{Raw: fmt.Append(nil, i)}, 1)
		out = append(out, h.Release()...)
	}
	for i, f := range out {
		if string(f.Raw) != fmt.Sprint(i) {
			t.Fatalf("frame %d became %s", i, f.Raw)
		}
	}
}

func TestHoldBackDrop(t *testing.T) {
	h := wire.NewHoldBack(10)
	h.Add(wire.Frame{Raw: []byte("dropped")}, 100)
	h.Drop()
	h.Add(wire.Frame{Raw: []byte("kept")}, 1)
	if h.Held() != 1 || len(h.Release()) != 0 {
		t.Errorf("%d bytes held", h.Held())
	}
	if out := h.Flush(); len(out) != 1 || string(out[0].Raw) != "kept" {
		t.Errorf("flushed %+v", out)
	}
}
