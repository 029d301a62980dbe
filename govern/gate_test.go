package govern_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/wire"
)

// feed adds one frame whose text is its data.
func feed(g *govern.Gate, text string) bool {
	return g.Append(wire.Frame{Raw: []byte(text)}, []wire.Delta{{Kind: wire.Text, Text: text}})
}

func newGate(window int, maxDelay time.Duration, limit int64, check func(string) bool, write func([]byte) error) *govern.Gate {
	return govern.NewGate(govern.GateConfig{Window: window, MaxDelay: maxDelay, Limit: limit, Write: func(frames []wire.Frame) error {
		var out []byte
		for _, f := range frames {
			out = append(out, f.Raw...)
		}
		return write(out)
	}, Check: func(_ int, text string) bool { return check(text) }})
}

func never(string) bool { return false }

// roomy is a limit that no test reaches.
const roomy = 1 << 30

func TestGateKeepsTheWindowBack(t *testing.T) {
	var got strings.Builder
	g := newGate(100, time.Hour, roomy, never, func(p []byte) error { got.Write(p); return nil })
	all := strings.Repeat("0123456789", 40)
	for i := 0; i < len(all); i += 10 {
		feed(g, all[i:i+10])
		if left := i + 10 - got.Len(); left < 100 && got.Len() > 0 {
			t.Fatalf("only %d bytes are held behind what left", left)
		}
	}
	if text := strings.Join(g.Close(), "|"); text != all {
		t.Errorf("the whole text is %q", text)
	}
	if got.Len() == 0 {
		t.Error("nothing left before the end")
	}
	g.Flush()
	if got.String() != all || g.Sent() != all {
		t.Errorf("%d of %d bytes left", got.Len(), len(all))
	}
}

func TestGateReleasesWhenTheModelIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1000, 2*time.Second, roomy, never, func([]byte) error { return nil })
		feed(g, "Paris.")
		time.Sleep(time.Second)
		synctest.Wait()
		if g.Sent() != "" {
			t.Fatal("text left before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if g.Sent() != "Paris." {
			t.Errorf("%q left", g.Sent())
		}
		feed(g, " More.")
		g.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if g.Sent() != "Paris." {
			t.Errorf("%q left after the end, without its receipt", g.Sent())
		}
	})
}

func TestGateStopsAtAViolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flagged := func(text string) bool { return strings.Contains(text, "FORBIDDEN") }
		g := newGate(80, time.Second, roomy, flagged, func([]byte) error { return nil })
		ok := true
		for _, piece := range []string{strings.Repeat("a", 100), "FORB", "IDDEN", strings.Repeat("b", 200)} {
			ok = feed(g, piece)
		}
		if ok || !g.Flagged() {
			t.Error("the flow went on")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		g.Flush()
		if strings.Contains(g.Sent(), "FORB") || strings.Contains(g.Sent(), "b") {
			t.Errorf("%q left", g.Sent())
		}
	})
}

// A violation that only the clock's check sees stops the flow as well.
func TestGateChecksBeforeTheClockReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flagged := func(text string) bool { return strings.Contains(text, "FORBIDDEN") }
		g := newGate(1000, time.Second, roomy, flagged, func([]byte) error { return nil })
		feed(g, "FORBIDDEN")
		time.Sleep(time.Minute)
		synctest.Wait()
		if g.Sent() != "" || !g.Flagged() {
			t.Errorf("%q left, violated %v", g.Sent(), g.Flagged())
		}
	})
}

func TestGateStopsWhenTheClientLeft(t *testing.T) {
	g := newGate(0, time.Hour, roomy, never, func([]byte) error { return errors.New("gone") })
	for range 2 {
		if feed(g, "text") {
			t.Error("the flow went on")
		}
	}
}

// Of a text that a check finds not one byte leaves, in whichever choice it
// stands and however the choices are cut and mixed: over a million frames.
func TestGateLeaksNothingOfAnyChoice(t *testing.T) {
	banned := "FORBIDDEN " + strings.Repeat("0123456789", 52) + "!"
	flagged := func(text string) bool { return strings.Contains(text, banned) }
	for frames := 0; frames < 1_000_000; {
		choices := 1 + rand.IntN(5)
		attacked := rand.IntN(choices)
		rest := make([]string, choices)
		for c := range rest {
			rest[c] = strings.Repeat("harmless words. ", rand.IntN(60))
			if c == attacked {
				rest[c] += banned + strings.Repeat(" more words", rand.IntN(60))
			}
		}
		g := newGate(len(banned), time.Hour, roomy, flagged, func([]byte) error { return nil })
		largest := 1 << (1 + rand.IntN(9))
		for ok := true; ok && strings.Join(rest, "") != ""; frames++ {
			var deltas []wire.Delta
			for range 1 + rand.IntN(2) {
				c := rand.IntN(choices)
				n := min(len(rest[c]), 1+rand.IntN(largest))
				deltas = append(deltas, wire.Delta{Choice: c, Kind: []wire.Kind{wire.Text, wire.RefusalText}[rand.IntN(2)], Text: rest[c][:n]})
				rest[c] = rest[c][n:]
			}
			ok = g.Append(wire.Frame{Raw: []byte("frame")}, deltas)
		}
		if sent := g.Sent(); strings.Contains(sent, "FORBIDDEN") || strings.Contains(sent, "0123") {
			t.Fatalf("it left in choice %d of %d: %q", attacked, choices, sent)
		}
		g.Close()
	}
}

// A choice that is silent keeps nothing back for ever, though another goes on.
func TestGateReleasesASilentChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got strings.Builder
		g := newGate(256, 2*time.Second, roomy, never, func(p []byte) error { got.Write(p); return nil })
		g.Append(wire.Frame{Raw: []byte("<one>")}, []wire.Delta{{Choice: 1, Kind: wire.Text, Text: "Paris."}})
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			g.Append(wire.Frame{Raw: []byte("<zero>")}, []wire.Delta{{Choice: 0, Kind: wire.Text, Text: strings.Repeat("x", 40)}})
		}
		synctest.Wait()
		if !strings.HasPrefix(got.String(), "<one><zero>") {
			t.Errorf("left: %s", got.String())
		}
		if behind := 30*40 - len(strings.Repeat("x", 40))*strings.Count(got.String(), "<zero>"); behind < 256 {
			t.Errorf("only %d bytes are held of the choice that goes on", behind)
		}
		g.Close()
	})
}

// Frames without text wait for no clock.
func TestGatePassesReasoningAtOnce(t *testing.T) {
	left := 0
	g := newGate(256, time.Hour, roomy, never, func([]byte) error { left++; return nil })
	for range 3 {
		g.Append(wire.Frame{Raw: []byte("r")}, []wire.Delta{{Kind: wire.Reasoning, Text: "hm"}})
	}
	if left != 3 {
		t.Errorf("%d of 3 frames left", left)
	}
}

// A stream that grows beyond the limit ends there.
func TestGateIsBounded(t *testing.T) {
	g := newGate(256, time.Hour, 1000, never, func([]byte) error { return nil })
	ok := true
	for range 200 {
		ok = ok && feed(g, "0123456789")
	}
	if ok || !g.Full() || len(g.Sent()) > 1000 {
		t.Errorf("%d bytes left", len(g.Sent()))
	}
	if g.Count([]wire.Delta{{Kind: wire.Text, Text: strings.Repeat("x", 1000)}}) {
		t.Error("there is room for more")
	}
}
