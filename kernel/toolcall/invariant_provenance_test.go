package toolcall_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// The fingerprints are the least of every window, whatever repeats.
func TestWinnowTakesTheLeastOfEveryWindow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	texts := []string{"", strings.Repeat("a", 200), strings.Repeat("abc", 90), strings.Repeat("é7 ", 50), "in the night\xff"}
	for range 2000 {
		var text strings.Builder
		for range random.IntN(120) {
			text.WriteString([]string{"a", "b", "9", " ", "é", "把", "-", "\xff"}[random.IntN(1+random.IntN(8))])
		}
		texts = append(texts, text.String())
	}
	for _, text := range texts {
		if prints, _ := toolcall.Winnow(text); !slices.Equal(prints, toolcall.WinnowByWindow(text)) {
			t.Fatalf("%q: %x, window by window %x", text, prints, toolcall.WinnowByWindow(text))
		}
	}
}
