package govern_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/wire"
)

// feedPart adds one frame with a piece of a part.
func feedPart(g *govern.Gate, part, text string) bool {
	return g.Append(wire.Frame{Raw: []byte(text)}, []wire.Delta{{Kind: wire.Text, Part: part, Text: text}})
}

// If pieces of two parts come in turn, the text of each is checked by itself, from its
// beginning, and judged so at the end.
func TestGateChecksInterleavedParts(t *testing.T) {
	bad := strings.Repeat("evil intent. ", 20)
	g := newGate(100, time.Hour, roomy, func(text string) bool { return strings.Contains(text, bad) }, func([]byte) error { return nil })
	for i := 0; i < len(bad); i += 4 {
		if !feedPart(g, "0", bad[i:i+4]) || !feedPart(g, "1", "good") {
			break
		}
	}
	if texts, tangled := g.Assembled(); len(texts) != 1 || !strings.HasPrefix(texts[0], bad) || tangled {
		t.Errorf("assembled: %q", texts)
	}
	if g.Close(); !g.Settle() != g.Flagged() || !g.Flagged() {
		t.Error("the check did not see the part")
	}
}

// Parts that come one after the other are one text, as they always were.
func TestGateJoinsPartsInOrder(t *testing.T) {
	g := newGate(100, time.Hour, roomy, never, func([]byte) error { return nil })
	for part := range 100 {
		feedPart(g, fmt.Sprint(part), "a")
		feedPart(g, fmt.Sprint(part), "b")
	}
	if texts, tangled := g.Assembled(); tangled || !slices.Equal(texts, []string{strings.Repeat("ab", 100)}) {
		t.Errorf("%q", texts)
	}
}

// Only so many parts are read by themselves, and if there are more, that is told.
func TestGateBoundsInterleavedParts(t *testing.T) {
	g := newGate(100, time.Hour, roomy, never, func([]byte) error { return nil })
	var want strings.Builder
	for range 2 {
		for part := range 1000 {
			feedPart(g, fmt.Sprint(part), "x")
			want.WriteString("x")
		}
	}
	if texts, tangled := g.Assembled(); !tangled || strings.Join(texts, "") != want.String() {
		t.Errorf("tangled %v, %d bytes", tangled, len(strings.Join(texts, "")))
	}
}
