package toolcall

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// screen holds patterns, and tells in one pass over a text which of them it can
// match at all: those of which a literal stands in it (Aho and Corasick, Efficient
// string matching, 1975). A pattern takes thirty times as long for a byte as the
// pass, and most texts hold the literal of none.
type screen struct {
	patterns []*regexp.Regexp
	always   uint64 // the patterns that need no literal
	class    [256]uint8
	classes  int
	next     []uint16 // by state and class
	found    []uint64 // the patterns of which a literal ends in a state
}

// newScreen makes a screen of at most 64 patterns.
func newScreen(patterns ...*regexp.Regexp) *screen {
	s := &screen{patterns: patterns, classes: 1}
	needs := make([][]string, len(patterns))
	for i, p := range patterns {
		tree, err := syntax.Parse(p.String(), syntax.Perl)
		if err == nil {
			needs[i] = needed(tree)
		}
		if shortest(needs[i]) == 0 {
			s.always, needs[i] = s.always|1<<i, nil
		}
		for _, literal := range needs[i] {
			for _, c := range []byte(literal) {
				s.learn(c)
			}
		}
	}
	s.build(needs)
	return s
}

// learn gives a byte, in both cases, a class of its own.
func (s *screen) learn(c byte) {
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
func (s *screen) build(needs [][]string) {
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
			s.found[at] |= 1 << i
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
			s.found[to] |= s.found[fail[to]]
			queue = append(queue, to)
		}
	}
}

func (s *screen) state() int {
	s.next = append(s.next, make([]uint16, s.classes)...)
	s.found = append(s.found, 0)
	return len(s.found) - 1
}

// possible returns the patterns that a text can match, as bits.
func (s *screen) possible(text string) uint64 {
	mask, at := s.always, 0
	for i := range len(text) {
		at = int(s.next[at*s.classes+int(s.class[text[i]])])
		mask |= s.found[at]
	}
	if strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a") {
		return ^uint64(0) // letters that a pattern takes for s and k
	}
	return mask
}

// matches reports whether one of the patterns matches.
func (s *screen) matches(text string) bool {
	mask := s.possible(text)
	for i, p := range s.patterns {
		if mask&(1<<i) != 0 && p.MatchString(text) {
			return true
		}
	}
	return false
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

// screenOf makes a screen of expressions.
func screenOf(expressions ...string) *screen {
	patterns := make([]*regexp.Regexp, len(expressions))
	for i, e := range expressions {
		patterns[i] = regexp.MustCompile(e)
	}
	return newScreen(patterns...)
}
