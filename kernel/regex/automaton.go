package regex

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sort"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// automaton is a regular expression as a table: a character takes one look into it, whatever
// the expression (Rabin and Scott, Finite automata and their decision problems, 1959). It
// tells whether the expression matches anywhere, exactly as the package regexp does, and not
// where.
type automaton struct {
	ascii   [utf8.RuneSelf]uint16 // class of a character
	starts  []rune                // of the ranges of characters, in order
	class   []uint16              // of each range
	classes int
	next    []uint16        // by state and class
	ends    []bool          // states that match if the text ends
	idle    [befores]uint16 // where no match has begun, by what stands before
	idles   int             // the last of these
	loose   bool            // it matches more than the expression, see loosened
}

// The states that every automaton has: it has matched, or cannot match any more.
const (
	matched = iota
	dead
)

// before is what an expression may ask of the character before the next one.
type before uint8

const (
	nothing before = iota // the text begins
	newline
	wordChar
	otherChar
	befores
)

// sample stands for all characters of a kind.
var sample = [befores]rune{nothing: -1, newline: '\n', wordChar: 'a', otherChar: ' '}

func beforeOf(c rune) before {
	switch {
	case c == '\n':
		return newline
	case syntax.IsWordChar(c):
		return wordChar
	}
	return otherChar
}

// maxStates bounds an automaton.
const maxStates = 1 << 9

// newAutomaton makes an automaton, a loose one if an exact one has too many states, and nil
// if that has too.
func newAutomaton(tree *syntax.Regexp) *automaton {
	if a := tabled(tree); a != nil {
		return a
	}
	a := tabled(loosened(tree))
	if a != nil {
		a.loose = true
	}
	return a
}

// loosened repeats without counting: the count is what takes states.
func loosened(e *syntax.Regexp) *syntax.Regexp {
	loose := *e
	if e.Op == syntax.OpRepeat {
		if loose.Op = syntax.OpStar; e.Min > 0 {
			loose.Op = syntax.OpPlus
		}
	}
	loose.Sub = make([]*syntax.Regexp, len(e.Sub))
	for i, sub := range e.Sub {
		loose.Sub[i] = loosened(sub)
	}
	return &loose
}

// tabled returns nil if the expression needs more than maxStates states.
func tabled(tree *syntax.Regexp) *automaton {
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	a := &automaton{}
	samples := a.classify(program)
	m := maker{automaton: a, program: program, known: make(map[string]uint16)}
	for _, inst := range program.Inst {
		if inst.Op == syntax.InstEmptyWidth {
			m.asks |= syntax.EmptyOp(inst.Arg) //nolint:gosec // G115: it is one
		}
	}
	m.anchored = program.StartCond()&syntax.EmptyBeginText != 0
	m.states, m.seen = make([]places, dead+1), make([]int, len(program.Inst))
	a.next, a.ends = make([]uint16, (dead+1)*a.classes), []bool{matched: true, dead: false}
	for b := range befores {
		a.idle[b] = m.state([]uint32{uint32(program.Start)}, b) //nolint:gosec // not negative
	}
	a.idles = len(m.states) - 1
	for at := dead + 1; at < len(m.states); at++ {
		if len(m.states) > maxStates {
			return nil
		}
		m.rows(m.states[at], samples)
	}
	return a
}

// classify puts characters that no part of the program tells apart into one class, and
// returns one of each class.
func (a *automaton) classify(program *syntax.Prog) (samples []rune) {
	edges := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	for _, inst := range program.Inst {
		for i, c := range inst.Rune {
			edges = append(edges, c+rune(i&1))
			if len(inst.Rune) == 1 {
				edges = append(edges, c+1)
				for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
					edges = append(edges, f, f+1)
				}
			}
		}
	}
	slices.Sort(edges)
	a.starts = slices.Compact(edges)
	known := make(map[string]uint16)
	for _, c := range a.starts {
		same := []byte{byte(beforeOf(c))}
		for i := range program.Inst {
			if consumes(&program.Inst[i]) {
				same = strconv.AppendBool(same, program.Inst[i].MatchRune(c))
			}
		}
		class, is := known[string(same)]
		if !is {
			class = uint16(len(samples)) //nolint:gosec // a few hundred
			known[string(same)] = class
			samples = append(samples, c)
		}
		a.class = append(a.class, class)
	}
	a.classes = len(samples)
	for c := range a.ascii {
		a.ascii[c] = a.classOf(rune(c))
	}
	return samples
}

func (a *automaton) classOf(c rune) uint16 {
	return a.class[sort.Search(len(a.starts), func(i int) bool { return a.starts[i] > c })-1]
}

func consumes(inst *syntax.Inst) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// maker builds the states of an automaton: sets of the places where the program may be.
type maker struct {
	*automaton
	program *syntax.Prog
	asks    syntax.EmptyOp // of what stands between characters
	states  []places
	known   map[string]uint16

	anchored bool // a match begins where the text does

	todo, then []uint32 // kept for their memory, as the key is
	key        []byte
	seen       []int // the round in which a place was reached last
	round      int
}

// places are where a program may be behind a character, before it looks at the next.
type places struct {
	at     []uint32
	before before
}

func (m *maker) state(at []uint32, b before) uint16 {
	if len(at) == 0 {
		return dead
	}
	if b == wordChar && m.asks&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) == 0 || b == newline && m.asks&(syntax.EmptyBeginLine|syntax.EmptyEndLine) == 0 {
		b = otherChar
	}
	slices.Sort(at)
	at = slices.Compact(at)
	key := m.key[:0]
	key = append(key, byte(b))
	for _, pc := range at {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	m.key = key
	if n, is := m.known[string(key)]; is {
		return n
	}
	n := uint16(len(m.states)) //nolint:gosec // at most maxStates and a row
	m.known[string(key)] = n
	m.states = append(m.states, places{slices.Clone(at), b})
	return n
}

// rows fills in what a state has for each character. What needs no character is followed
// once for each kind of next one.
func (m *maker) rows(p places, samples []rune) {
	var at [befores][]uint32
	var match [befores]bool
	for next := range befores {
		at[next], match[next] = m.reach(p, sample[next])
	}
	m.ends = append(m.ends, match[nothing])
	for _, c := range samples {
		if next := beforeOf(c); match[next] {
			m.next = append(m.next, matched)
		} else {
			m.next = append(m.next, m.step(at[next], c))
		}
	}
}

// reach follows what needs no character, between the one before and the next; -1 is none.
func (m *maker) reach(p places, next rune) (at []uint32, match bool) {
	allowed := syntax.EmptyOpContext(sample[p.before], next)
	m.round++
	todo := m.todo[:0]
	todo = append(todo, p.at...)
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if m.seen[pc] == m.round {
			continue
		}
		m.seen[pc] = m.round
		switch inst := &m.program.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^allowed == 0 { //nolint:gosec // G115: it is one
				todo = append(todo, inst.Out)
			}
		case syntax.InstMatch:
			return nil, true
		default:
			at = append(at, pc)
		}
	}
	m.todo = todo
	return at, false
}

// step returns the state behind a character. A match may begin behind each.
func (m *maker) step(at []uint32, c rune) uint16 {
	then := m.then[:0]
	if !m.anchored {
		then = append(then, uint32(m.program.Start)) //nolint:gosec // not negative
	}
	for _, pc := range at {
		if inst := &m.program.Inst[pc]; consumes(inst) && inst.MatchRune(c) {
			then = append(then, inst.Out)
		}
	}
	m.then = then
	return m.state(then, beforeOf(c))
}

// matches reports whether the expression matches in a text.
func (a *automaton) matches(text string) bool {
	match, _ := a.matchesFrom(text, 0, len(text))
	return match
}

// matchesFrom reports whether a match begins in a text at a place or behind it, and where it
// stopped reading: as soon as no match that began before the end is left.
func (a *automaton) matchesFrom(text string, from, end int) (bool, int) {
	state := a.idle[nothing]
	if from > 0 {
		c, _ := utf8.DecodeLastRuneInString(text[:from])
		state = a.idle[beforeOf(c)]
	}
	for from < len(text) {
		c := text[from]
		if c < utf8.RuneSelf {
			state = a.next[int(state)*a.classes+int(a.ascii[c])]
			from++
		} else {
			c, size := utf8.DecodeRuneInString(text[from:])
			state = a.next[int(state)*a.classes+int(a.classOf(c))]
			from += size
		}
		if state <= dead {
			return state == matched, from
		}
		if from >= end && int(state) <= a.idles && from < len(text) {
			return false, from
		}
	}
	return a.ends[state], from
}
