package caddymodule

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/wire"
)

// feed adds one frame whose text is its data.
func feed(o *outflow, text string) bool {
	return o.add(wire.Frame{Raw: []byte(text)}, []wire.Delta{{Kind: wire.Text, Text: text}})
}

func never(string) bool { return false }

// roomy is a limit that no test reaches.
const roomy = 1 << 30

func TestOutflowKeepsTheWindowBack(t *testing.T) {
	var got strings.Builder
	o := newOutflow(100, time.Hour, roomy, never, func(p []byte) error { got.Write(p); return nil })
	all := strings.Repeat("0123456789", 40)
	for i := 0; i < len(all); i += 10 {
		feed(o, all[i:i+10])
		if left := i + 10 - got.Len(); left < 100 && got.Len() > 0 {
			t.Fatalf("only %d bytes are held behind what left", left)
		}
	}
	if text := strings.Join(o.close(), "|"); text != all {
		t.Errorf("the whole text is %q", text)
	}
	if got.Len() == 0 {
		t.Error("nothing left before the end")
	}
	o.flush()
	if got.String() != all || o.sentText() != all {
		t.Errorf("%d of %d bytes left", got.Len(), len(all))
	}
}

func TestOutflowReleasesWhenTheModelIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutflow(1000, 2*time.Second, roomy, never, func([]byte) error { return nil })
		feed(o, "Paris.")
		time.Sleep(time.Second)
		synctest.Wait()
		if o.sentText() != "" {
			t.Fatal("text left before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if o.sentText() != "Paris." {
			t.Errorf("%q left", o.sentText())
		}
		feed(o, " More.")
		o.close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if o.sentText() != "Paris." {
			t.Errorf("%q left after the end, without its receipt", o.sentText())
		}
	})
}

func TestOutflowStopsAtAViolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flagged := func(text string) bool { return strings.Contains(text, "FORBIDDEN") }
		o := newOutflow(80, time.Second, roomy, flagged, func([]byte) error { return nil })
		ok := true
		for _, piece := range []string{strings.Repeat("a", 100), "FORB", "IDDEN", strings.Repeat("b", 200)} {
			ok = feed(o, piece)
		}
		if ok || !o.violated() {
			t.Error("the flow went on")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		o.flush()
		if strings.Contains(o.sentText(), "FORB") || strings.Contains(o.sentText(), "b") {
			t.Errorf("%q left", o.sentText())
		}
	})
}

// A violation that only the clock's check sees stops the flow as well.
func TestOutflowChecksBeforeTheClockReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flagged := func(text string) bool { return strings.Contains(text, "FORBIDDEN") }
		o := newOutflow(1000, time.Second, roomy, flagged, func([]byte) error { return nil })
		feed(o, "FORBIDDEN")
		time.Sleep(time.Minute)
		synctest.Wait()
		if o.sentText() != "" || !o.violated() {
			t.Errorf("%q left, violated %v", o.sentText(), o.violated())
		}
	})
}

func TestOutflowStopsWhenTheClientLeft(t *testing.T) {
	o := newOutflow(0, time.Hour, roomy, never, func([]byte) error { return errors.New("gone") })
	for range 2 {
		if feed(o, "text") {
			t.Error("the flow went on")
		}
	}
}

// Of a text that a check finds not one byte leaves, in whichever choice it
// stands and however the choices are cut and mixed: over a million frames.
func TestOutflowLeaksNothingOfAnyChoice(t *testing.T) {
	banned := "FORBIDDEN " + strings.Repeat("0123456789", 52) + "!"
	flagged := func(text string) bool { return strings.Contains(text, banned) }
	for frames := 0; frames < 1_000_000; {
		choices := 1 + rand.IntN(5)
		guilty := rand.IntN(choices)
		rest := make([]string, choices)
		for c := range rest {
			rest[c] = strings.Repeat("harmless words. ", rand.IntN(60))
			if c == guilty {
				rest[c] += banned + strings.Repeat(" more words", rand.IntN(60))
			}
		}
		o := newOutflow(len(banned), time.Hour, roomy, flagged, func([]byte) error { return nil })
		largest := 1 << (1 + rand.IntN(9))
		for ok := true; ok && strings.Join(rest, "") != ""; frames++ {
			var deltas []wire.Delta
			for range 1 + rand.IntN(2) {
				c := rand.IntN(choices)
				n := min(len(rest[c]), 1+rand.IntN(largest))
				deltas = append(deltas, wire.Delta{Choice: c, Kind: []wire.Kind{wire.Text, wire.RefusalText}[rand.IntN(2)], Text: rest[c][:n]})
				rest[c] = rest[c][n:]
			}
			ok = o.add(wire.Frame{Raw: []byte("frame")}, deltas)
		}
		if sent := o.sentText(); strings.Contains(sent, "FORBIDDEN") || strings.Contains(sent, "0123") {
			t.Fatalf("it left in choice %d of %d: %q", guilty, choices, sent)
		}
		o.close()
	}
}

// A choice that is silent keeps nothing back for ever, though another goes on.
func TestOutflowReleasesASilentChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got strings.Builder
		o := newOutflow(256, 2*time.Second, roomy, never, func(p []byte) error { got.Write(p); return nil })
		o.add(wire.Frame{Raw: []byte("<one>")}, []wire.Delta{{Choice: 1, Kind: wire.Text, Text: "Paris."}})
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			o.add(wire.Frame{Raw: []byte("<zero>")}, []wire.Delta{{Choice: 0, Kind: wire.Text, Text: strings.Repeat("x", 40)}})
		}
		synctest.Wait()
		if !strings.HasPrefix(got.String(), "<one><zero>") {
			t.Errorf("left: %s", got.String())
		}
		if behind := 30*40 - len(strings.Repeat("x", 40))*strings.Count(got.String(), "<zero>"); behind < 256 {
			t.Errorf("only %d bytes are held of the choice that goes on", behind)
		}
		o.close()
	})
}

// Frames without text wait for no clock.
func TestOutflowPassesReasoningAtOnce(t *testing.T) {
	left := 0
	o := newOutflow(256, time.Hour, roomy, never, func([]byte) error { left++; return nil })
	for range 3 {
		o.add(wire.Frame{Raw: []byte("r")}, []wire.Delta{{Kind: wire.Reasoning, Text: "hm"}})
	}
	if left != 3 {
		t.Errorf("%d of 3 frames left", left)
	}
}

// A stream that grows beyond the limit ends there.
func TestOutflowIsBounded(t *testing.T) {
	o := newOutflow(256, time.Hour, 1000, never, func([]byte) error { return nil })
	ok := true
	for range 200 {
		ok = ok && feed(o, "0123456789")
	}
	if ok || !o.tooLarge() || len(o.sentText()) > 1000 {
		t.Errorf("%d bytes left", len(o.sentText()))
	}
	if o.read([]wire.Delta{{Kind: wire.Text, Text: strings.Repeat("x", 1000)}}) {
		t.Error("there is room for more")
	}
}
