package toolcall

import (
	"regexp"
	"regexp/syntax"
	"sync"
)

// expression is a regular expression that looks for its matches only in texts that have
// one, as its automaton tells; few texts have.
type expression struct {
	*regexp.Regexp
	automaton func() *automaton // nil if there is none
}

func newExpression(text string) *expression {
	e := &expression{Regexp: regexp.MustCompile(text)}
	e.automaton = sync.OnceValue(func() *automaton {
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nil
		}
		return newAutomaton(tree)
	})
	return e
}

func (e *expression) MatchString(s string) bool {
	a := e.automaton()
	if a != nil && !a.loose {
		return a.matches(s)
	}
	return (a == nil || a.matches(s)) && e.Regexp.MatchString(s)
}

func (e *expression) FindStringIndex(s string) []int {
	if !e.MatchString(s) {
		return nil
	}
	return e.Regexp.FindStringIndex(s)
}

func (e *expression) FindStringSubmatch(s string) []string {
	if !e.MatchString(s) {
		return nil
	}
	return e.Regexp.FindStringSubmatch(s)
}

func (e *expression) FindAllString(s string, n int) []string {
	if !e.MatchString(s) {
		return nil
	}
	return e.Regexp.FindAllString(s, n)
}

func (e *expression) FindAllStringSubmatch(s string, n int) [][]string {
	if !e.MatchString(s) {
		return nil
	}
	return e.Regexp.FindAllStringSubmatch(s, n)
}

func (e *expression) ReplaceAllString(s, with string) string {
	if !e.MatchString(s) {
		return s
	}
	return e.Regexp.ReplaceAllString(s, with)
}

func (e *expression) ReplaceAllStringFunc(s string, with func(string) string) string {
	if !e.MatchString(s) {
		return s
	}
	return e.Regexp.ReplaceAllStringFunc(s, with)
}
