package prose_test

import (
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/prose"
)

// One look tells of a word what the tables tell, in whatever form it is.
func TestWordsAreKnownByOneLook(t *testing.T) {
	words := prose.Lexicon()
	for _, text := range ordinaryTexts(t) {
		for w := range strings.FieldsSeq(prose.Fold(text)) {
			words = append(words, strings.Trim(w, `.,;:!?()"'`))
		}
	}
	for _, w := range words {
		for _, form := range []string{w, w + "s", w + "ing", w + "ed", w + "ation", "x" + w, "3" + w} {
			if looked, tabled := prose.Known(form); looked != tabled {
				t.Fatalf("%q: one look tells %s, the tables %s", form, looked, tabled)
			}
		}
	}
}
