package regex_test

import (
	"regexp"
	"testing"

	"github.com/caddy-lex/lex/kernel/regex"
)

// An expression, and a screen of it, match what the package regexp says, whatever it is.
func FuzzExpression(f *testing.F) {
	for _, e := range []string{`^a|b$`, `\bfoo\B`, `(?i)k\w+\s*[^)]*s`, `(?m)^\s*x$`, `(?s)a.*b{2,5}`, `[^\x00-\x{FFFF}]é?`, `\A(?:|a)+\z`, `^$`, `(?:^|[^.\w])x(?:$|\W)`} {
		f.Add(e, "a foo\nxs b\u017f\u212aé\xff bb x")
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		plain, err := regexp.Compile(expression)
		if err != nil || len(expression) > 64 || len(text) > 256 {
			return
		}
		e := regex.New(expression)
		matches, screened := e.MatchString(text), regex.NewScreen(e).Matches(text)
		if want := plain.MatchString(text); matches != want || screened != want {
			t.Errorf("%q in %q: %v and %v", expression, text, matches, screened)
		}
	})
}
