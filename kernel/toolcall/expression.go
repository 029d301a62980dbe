package toolcall

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
)

// expression is a regular expression that looks for its matches only in texts that have
// one, as its automaton tells; few texts have.
type expression struct {
	*regexp.Regexp
	automaton func() *automaton   // nil if there is none
	branches  func() []*automaton // exact ones of its alternatives, where all have one
}

func newExpression(text string) *expression {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return &expression{
		Regexp:    regexp.MustCompile(text),
		automaton: sync.OnceValue(func() *automaton { return newAutomaton(tree) }),
		branches:  sync.OnceValue(func() []*automaton { return exactBranches(tree) }),
	}
}

// exactBranches returns exact automata of the alternatives of an expression, nil if one of
// them has none: together they may have too many states, and each by itself few.
func exactBranches(tree *syntax.Regexp) (all []*automaton) {
	for _, branch := range branchesOf(tree) {
		a := tabled(branch)
		if a == nil {
			return nil
		}
		all = append(all, a)
	}
	return all
}

func (e *expression) MatchString(s string) bool {
	a := e.automaton()
	switch {
	case a == nil:
	case !a.loose:
		return a.matches(s)
	case !a.matches(s):
		return false
	}
	if branches := e.branches(); branches != nil {
		return slices.ContainsFunc(branches, func(b *automaton) bool { return b.matches(s) })
	}
	return e.Regexp.MatchString(s)
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
