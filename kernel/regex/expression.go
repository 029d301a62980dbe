package regex

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
)

// Expression is a regular expression that looks for its matches only in texts that have
// one, as its automaton tells; few texts have. What that takes is made when it is first
// needed: most expressions never are, and a command that judges no call needs none.
type Expression struct {
	text      string
	compiled  func() *regexp.Regexp
	automaton func() *automaton   // nil if there is none
	branches  func() []*automaton // exact ones of its alternatives, where all have one
}

// New panics if the text is no expression.
func New(text string) *Expression {
	e := &Expression{text: text}
	e.tree()
	e.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
	e.automaton = sync.OnceValue(func() *automaton { return newAutomaton(e.tree()) })
	e.branches = sync.OnceValue(func() []*automaton { return exactBranches(e.tree()) })
	return e
}

// String returns the text of the expression.
func (e *Expression) String() string { return e.text }

// Regexp returns the expression of the package regexp.
func (e *Expression) Regexp() *regexp.Regexp { return e.compiled() }

func (e *Expression) tree() *syntax.Regexp {
	tree, err := syntax.Parse(e.text, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return tree
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

// MatchString reports whether a text has a match.
func (e *Expression) MatchString(s string) bool {
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
	return e.compiled().MatchString(s)
}

// FindStringIndex is as in package regexp.
func (e *Expression) FindStringIndex(s string) []int {
	if !e.MatchString(s) {
		return nil
	}
	return e.compiled().FindStringIndex(s)
}

// FindStringSubmatch is as in package regexp.
func (e *Expression) FindStringSubmatch(s string) []string {
	if !e.MatchString(s) {
		return nil
	}
	return e.compiled().FindStringSubmatch(s)
}

// FindAllString is as in package regexp.
func (e *Expression) FindAllString(s string, n int) []string {
	if !e.MatchString(s) {
		return nil
	}
	return e.compiled().FindAllString(s, n)
}

// FindAllStringSubmatch is as in package regexp.
func (e *Expression) FindAllStringSubmatch(s string, n int) [][]string {
	if !e.MatchString(s) {
		return nil
	}
	return e.compiled().FindAllStringSubmatch(s, n)
}

// ReplaceAllString is as in package regexp.
func (e *Expression) ReplaceAllString(s, with string) string {
	if !e.MatchString(s) {
		return s
	}
	return e.compiled().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is as in package regexp.
func (e *Expression) ReplaceAllStringFunc(s string, with func(string) string) string {
	if !e.MatchString(s) {
		return s
	}
	return e.compiled().ReplaceAllStringFunc(s, with)
}
