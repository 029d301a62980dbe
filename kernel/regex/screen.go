package regex

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Screen tells which of its patterns match a text. One pass finds the literals of all of
// them (Aho and Corasick, Efficient string matching, 1975), and only where one stands is the
// alternative that needs it compared, by an automaton. The package regexp takes thirty times
// as long for a byte, and for each pattern. All of it is made when the first text is read.
type Screen struct {
	patterns []*Expression
	ready    func() // makes what follows, once
	branches []branch
	always   []int // the branches that need no literal
	class    [256]uint8
	classes  int
	next     []uint16 // by state and class
	found    [][]hit  // the literals that end in a state
	ends     []bool   // whether there are any
}

// branch is one of the alternatives of a pattern.
type branch struct {
	pattern   int
	leads     bool // its matches begin with its literals, or one character before
	automaton func() *automaton
	slow      func() *regexp.Regexp // where there is no exact automaton
}

// hit is a literal of a branch.
type hit struct{ branch, length int }

// NewScreen makes a screen of at most 64 patterns.
func NewScreen(patterns ...*Expression) *Screen {
	s := &Screen{patterns: patterns, classes: 1}
	s.ready = sync.OnceFunc(s.learnPatterns)
	return s
}

// Patterns returns the patterns of the screen.
func (s *Screen) Patterns() []*Expression { return s.patterns }

// learnPatterns cuts the patterns into branches and makes the automaton of their literals.
func (s *Screen) learnPatterns() {
	var needs [][]string
	for i, p := range s.patterns {
		for _, e := range branchesOf(p.tree()) {
			literals, leads := leading(e)
			if !leads {
				literals = needed(e)
			}
			if shortest(literals) == 0 {
				s.always, literals = append(s.always, len(s.branches)), nil
			}
			s.branches, needs = append(s.branches, newBranch(i, leads, e)), append(needs, literals)
			for _, literal := range literals {
				for _, c := range []byte(literal) {
					s.learn(c)
				}
			}
		}
	}
	s.build(needs)
}

// newBranch makes what compares a branch when it is first needed.
func newBranch(pattern int, leads bool, e *syntax.Regexp) branch {
	return branch{
		pattern: pattern, leads: leads,
		automaton: sync.OnceValue(func() *automaton { return newAutomaton(e) }),
		slow:      sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(e.String()) }),
	}
}

// matches reports whether a branch matches a text.
func (p *branch) matches(text string) bool {
	a := p.automaton()
	if a != nil && !a.loose {
		return a.matches(text)
	}
	return (a == nil || a.matches(text)) && p.slow().MatchString(text)
}

// maxBranches bounds the alternatives that an expression is cut into.
const maxBranches = 256

// branchesOf cuts an expression into those of which one matches wherever it does.
func branchesOf(e *syntax.Regexp) []*syntax.Regexp {
	switch e.Op {
	case syntax.OpCapture:
		return branchesOf(e.Sub[0])
	case syntax.OpAlternate:
		var all []*syntax.Regexp
		for _, sub := range e.Sub {
			all = append(all, branchesOf(sub)...)
		}
		return all
	case syntax.OpConcat:
		at, most := 0, []*syntax.Regexp{nil}
		for i, sub := range e.Sub {
			if cut := branchesOf(sub); len(cut) > len(most) && len(cut) <= maxBranches {
				at, most = i, cut
			}
		}
		if len(most) > 1 {
			return branchesOfRow(e, at, most)
		}
	}
	return []*syntax.Regexp{e}
}

// branchesOfRow writes each of some alternatives in place of an expression in a row.
// Other alternatives in the row stay, or they would multiply.
func branchesOfRow(row *syntax.Regexp, i int, cut []*syntax.Regexp) []*syntax.Regexp {
	all := make([]*syntax.Regexp, len(cut))
	for n, c := range cut {
		one := *row
		inner := []*syntax.Regexp{c}
		if c.Op == syntax.OpConcat {
			inner = c.Sub
		}
		one.Sub = slices.Concat(row.Sub[:i], inner, row.Sub[i+1:])
		all[n] = &one
	}
	return all
}

// leading returns literals one of which begins every match, or stands one character behind
// its beginning.
func leading(e *syntax.Regexp) ([]string, bool) {
	row := []*syntax.Regexp{e}
	if e.Op == syntax.OpConcat {
		row = e.Sub
	}
	if _, whole := spellings(row[0]); !whole && oneCharacter(row[0]) {
		row = row[1:]
	}
	run := []string{""}
	for _, sub := range row {
		all, whole := spellings(sub)
		if !whole || len(run)*len(all) > maxSpellings {
			break
		}
		run = crossed(run, all)
	}
	return run, shortest(run) >= minLeading
}

// minLeading is the length from which on a literal at the beginning is rare enough.
const minLeading = 2

// oneCharacter reports whether an expression takes at most one character.
func oneCharacter(e *syntax.Regexp) bool {
	switch e.Op {
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpBeginText, syntax.OpBeginLine:
		return true
	case syntax.OpCapture, syntax.OpQuest:
		return oneCharacter(e.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range e.Sub {
			if !oneCharacter(sub) {
				return false
			}
		}
		return true
	}
	return false
}

// learn gives a byte, in both cases, a class of its own.
func (s *Screen) learn(c byte) {
	if s.class[c] != 0 {
		return
	}
	s.class[c] = uint8(s.classes) //nolint:gosec // at most 256 bytes
	if c >= 'a' && c <= 'z' {
		s.class[c-'a'+'A'] = s.class[c]
	}
	s.classes++
}

// build makes the automaton: a tree of the literals, then for each state the way on
// of the longest end of it that begins a literal.
func (s *Screen) build(needs [][]string) {
	s.state()
	for i, literals := range needs {
		for _, literal := range literals {
			at := 0
			for _, c := range []byte(literal) {
				way := at*s.classes + int(s.class[c])
				if s.next[way] == 0 {
					s.next[way] = uint16(s.state()) //nolint:gosec // a few thousand states
				}
				at = int(s.next[way])
			}
			s.found[at] = append(s.found[at], hit{i, len(literal)})
		}
	}
	fail := make([]uint16, len(s.found))
	queue := []int{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := range s.classes {
			way := at*s.classes + c
			to, back := int(s.next[way]), s.next[int(fail[at])*s.classes+c]
			if to == 0 {
				if at != 0 {
					s.next[way] = back
				}
				continue
			}
			if at != 0 {
				fail[to] = back
			}
			s.found[to] = append(s.found[to], s.found[fail[to]]...)
			queue = append(queue, to)
		}
	}
	s.ends = make([]bool, len(s.found))
	for at, literals := range s.found {
		s.ends[at] = len(literals) > 0
	}
}

func (s *Screen) state() int {
	s.next = append(s.next, make([]uint16, s.classes)...)
	s.found = append(s.found, nil)
	return len(s.found) - 1
}

// Matches reports whether one of the patterns matches.
func (s *Screen) Matches(text string) bool { return s.Matching(text, true) != 0 }

// Matching returns the patterns that match a text, as bits, or, if one is enough, the first
// that is found.
func (s *Screen) Matching(text string, one bool) (mask uint64) {
	s.ready()
	enough := uint64(1)<<len(s.patterns) - 1
	for _, n := range s.always {
		if p := &s.branches[n]; mask&(1<<p.pattern) == 0 && p.matches(text) {
			mask |= 1 << p.pattern
		}
	}
	if one && mask != 0 || mask == enough {
		return mask
	}
	plain := text
	if strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a") {
		plain = foldedLetters.Replace(text)
	}
	at := 0
	for i := range len(plain) {
		if at = int(s.next[at*s.classes+int(s.class[plain[i]])]); s.ends[at] {
			return s.compared(text, plain, i, at, mask, one)
		}
	}
	return mask
}

// compared goes on where the first literal of a text ends. Few texts come here, so only they
// pay for what is noted of each branch.
func (s *Screen) compared(text, plain string, i, at int, mask uint64, one bool) uint64 {
	var memory [256]int32
	read := memory[:] // how much of the text each branch has been compared with
	if len(s.branches) > len(memory) {
		read = make([]int32, len(s.branches))
	}
	enough := uint64(1)<<len(s.patterns) - 1
	for {
		for _, h := range s.found[at] {
			p := &s.branches[h.branch]
			if mask&(1<<p.pattern) != 0 {
				continue
			}
			match, upTo := false, int(read[h.branch])
			if begin := i + 1 - h.length; !p.leads || len(plain) != len(text) {
				match, upTo = upTo == 0 && p.matches(text), len(text)
			} else if begin >= upTo {
				match, upTo = p.matchesAt(text, begin, i+1)
			}
			read[h.branch] = int32(upTo) //nolint:gosec // G115: no text is as long
			if match {
				if mask |= 1 << p.pattern; one || mask == enough {
					return mask
				}
			}
		}
		for i++; i < len(plain); i++ {
			if at = int(s.next[at*s.classes+int(s.class[plain[i]])]); s.ends[at] {
				break
			}
		}
		if i >= len(plain) {
			return mask
		}
	}
}

// foldedLetters are those that a pattern takes for s and k.
var foldedLetters = strings.NewReplacer("\u017f", "s", "\u212a", "k")

// matchesAt compares a branch whose literal stands at a place, and returns up to where no
// other match of it can have begun.
func (p *branch) matchesAt(text string, begin, end int) (match bool, read int) {
	a := p.automaton()
	if a == nil {
		return p.slow().MatchString(text), len(text)
	}
	if begin > 0 {
		_, size := utf8.DecodeLastRuneInString(text[:begin])
		begin -= size
	}
	match, read = a.matchesFrom(text, begin, end)
	if match && a.loose {
		return p.slow().MatchString(text), len(text)
	}
	return match, read
}

// needed returns literals, in lower case, one of which stands in every text that the
// expression matches; none where nothing can be said.
func needed(e *syntax.Regexp) []string {
	if all, whole := spellings(e); whole {
		return all
	}
	switch e.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return needed(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return needed(e.Sub[0])
		}
	case syntax.OpConcat:
		return neededOfRow(e.Sub)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range e.Sub {
			n := needed(sub)
			if shortest(n) == 0 {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// neededOfRow chooses, of expressions in a row, the longest literals that one of them
// or several neighbours need.
func neededOfRow(row []*syntax.Regexp) []string {
	var best []string
	run := []string{""}
	better := func(n []string) {
		if shortest(n) > shortest(best) {
			best = n
		}
	}
	for _, sub := range row {
		all, whole := spellings(sub)
		if whole && len(run)*len(all) <= maxSpellings {
			run = crossed(run, all)
			continue
		}
		better(run)
		better(needed(sub))
		run = []string{""}
	}
	better(run)
	return best
}

// maxSpellings bounds the texts that stand for an expression.
const maxSpellings = 64

// spellings returns all texts, in lower case, that an expression matches, if they are
// few. What matches between two characters has the empty one.
func spellings(e *syntax.Regexp) ([]string, bool) {
	switch e.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(e.Rune))}, true
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpBeginText, syntax.OpBeginLine, syntax.OpEndText, syntax.OpEndLine:
		return []string{""}, true
	case syntax.OpCapture:
		return spellings(e.Sub[0])
	case syntax.OpQuest:
		all, whole := spellings(e.Sub[0])
		return append(all, ""), whole
	case syntax.OpCharClass:
		var all []string
		for i := 0; i < len(e.Rune); i += 2 {
			for c := e.Rune[i]; c <= e.Rune[i+1]; c++ {
				if all = append(all, strings.ToLower(string(c))); len(all) > 8 {
					return nil, false
				}
			}
		}
		return all, true
	case syntax.OpAlternate:
		var all []string
		for _, sub := range e.Sub {
			some, whole := spellings(sub)
			if all = append(all, some...); !whole || len(all) > maxSpellings {
				return nil, false
			}
		}
		return all, true
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range e.Sub {
			some, whole := spellings(sub)
			if !whole || len(all)*len(some) > maxSpellings {
				return nil, false
			}
			all = crossed(all, some)
		}
		return all, true
	}
	return nil, false
}

func crossed(left, right []string) []string {
	out := make([]string, 0, len(left)*len(right))
	for _, l := range left {
		for _, r := range right {
			out = append(out, l+r)
		}
	}
	return out
}

func shortest(literals []string) int {
	if len(literals) == 0 {
		return 0
	}
	n := len(literals[0])
	for _, l := range literals {
		n = min(n, len(l))
	}
	return n
}

// ScreenOf makes a screen of expressions.
func ScreenOf(expressions ...string) *Screen {
	patterns := make([]*Expression, len(expressions))
	for i, e := range expressions {
		patterns[i] = New(e)
	}
	return NewScreen(patterns...)
}

// ScreenOfWords makes a screen of texts.
func ScreenOfWords(list []string) *Screen { return NewScreen(AnyOf(list)) }

// AnyOf matches where one of some texts stands.
func AnyOf(list []string) *Expression {
	quoted := make([]string, len(list))
	for i, text := range list {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return New(strings.Join(quoted, "|"))
}
