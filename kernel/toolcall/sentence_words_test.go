package toolcall_test

import (
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// One look tells of a word what the tables tell, in whatever form it is.
func TestWordsAreKnownByOneLook(t *testing.T) {
	words := toolcall.Lexicon()
	for kind, text := range ordinaryTexts {
		for w := range strings.FieldsSeq(toolcall.FoldText(text()[:1<<10])) {
			words = append(words, strings.Trim(w, `.,;:!?()"'`))
		}
		words = append(words, kind)
	}
	for _, w := range words {
		for _, form := range []string{w, w + "s", w + "ing", w + "ed", w + "ation", "x" + w, "3" + w} {
			if looked, tabled := toolcall.Known(form); looked != tabled {
				t.Fatalf("%q: one look tells %s, the tables %s", form, looked, tabled)
			}
		}
	}
}
