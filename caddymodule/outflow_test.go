package caddymodule

import (
	"errors"
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

func TestOutflowKeepsTheWindowBack(t *testing.T) {
	var got strings.Builder
	o := newOutflow(100, time.Hour, never, func(p []byte) error { got.Write(p); return nil })
	all := strings.Repeat("0123456789", 40)
	for i := 0; i < len(all); i += 10 {
		feed(o, all[i:i+10])
		if left := i + 10 - got.Len(); left < 100 && got.Len() > 0 {
			t.Fatalf("only %d bytes are held behind what left", left)
		}
	}
	if text := o.close(); text != all {
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
		o := newOutflow(1000, 2*time.Second, never, func([]byte) error { return nil })
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
		o := newOutflow(80, time.Second, flagged, func([]byte) error { return nil })
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
		o := newOutflow(1000, time.Second, flagged, func([]byte) error { return nil })
		feed(o, "FORBIDDEN")
		time.Sleep(time.Minute)
		synctest.Wait()
		if o.sentText() != "" || !o.violated() {
			t.Errorf("%q left, violated %v", o.sentText(), o.violated())
		}
	})
}

func TestOutflowStopsWhenTheClientLeft(t *testing.T) {
	o := newOutflow(0, time.Hour, never, func([]byte) error { return errors.New("gone") })
	for range 2 {
		if feed(o, "text") {
			t.Error("the flow went on")
		}
	}
}
