package toolcall

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxBraces bounds the brace expressions of one word.
	maxBraces = 8

	// maxOpenBraces bounds its opening braces, of expressions or not: the
	// splitter tries each with each.
	maxOpenBraces = 24

	// maxAlternatives bounds the words that those of one word make together.
	maxAlternatives = 4096
)

// mayHaveBraces reports whether the literals of a word have both braces of an expression.
func mayHaveBraces(w *syntax.Word) bool {
	opens, closes := false, false
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			opens = opens || strings.IndexByte(lit.Value, '{') >= 0
			closes = closes || strings.IndexByte(lit.Value, '}') >= 0
		}
	}
	return opens && closes
}

func openBraces(w *syntax.Word) int {
	n := 0
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

func braceCount(w *syntax.Word) int {
	n := 0
	for _, part := range w.Parts {
		if b, ok := part.(*syntax.BraceExp); ok {
			n++
			for _, e := range b.Elems {
				n += braceCount(e)
			}
		}
	}
	return n
}

// alternatives counts the words that the braces of a word make, up to a limit
// beyond the bound.
func alternatives(w *syntax.Word) int {
	n := 1
	for _, part := range w.Parts {
		b, ok := part.(*syntax.BraceExp)
		if !ok {
			continue
		}
		sum := 0
		for _, e := range b.Elems {
			sum += alternatives(e)
		}
		if b.Sequence {
			sum = sequenceLength(b)
		}
		n = min(n*min(sum, 2*maxAlternatives), 2*maxAlternatives)
	}
	return n
}

// sequenceLength counts the elements of {1..9} or {a..f}; a stride only makes it less.
func sequenceLength(b *syntax.BraceExp) int {
	from, err := strconv.ParseInt(b.Elems[0].Lit(), 10, 64)
	to, err2 := strconv.ParseInt(b.Elems[1].Lit(), 10, 64)
	if err != nil || err2 != nil {
		return 256
	}
	return int(min(max(float64(from), float64(to))-min(float64(from), float64(to)), 2*maxAlternatives)) + 1
}

// size bounds, in bytes, what a node expands to, before the expander is asked:
// replacements within replacements multiply. What a substitution prints is
// paid for when it is written, unless it is multiplied too.
func (s *shell) size(n syntax.Node, multiplied bool) int {
	if w, is := n.(*syntax.Word); is {
		if m := makeupOf(w); m.written() {
			return min(m.bytes, maxWork)
		}
	}
	total := 0
	syntax.Walk(n, func(c syntax.Node) bool {
		switch c := c.(type) {
		case *syntax.Lit:
			total += len(c.Value)
		case *syntax.SglQuoted:
			total += len(c.Value)
		case *syntax.CmdSubst:
			if multiplied {
				total += len(s.printedBy(c))
			}
			return false
		case *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			total += s.sizeOf(c)
			return false
		}
		return total <= maxWork
	})
	return min(total, maxWork)
}

// sizeOf multiplies what a variable holds by what is put into it, or by the
// pattern it is searched for.
func (s *shell) sizeOf(p *syntax.ParamExp) int {
	value, inner := 0, 0
	if p.Param != nil {
		value = max(len(s.vars[p.Param.Value]), len(environment{shell: s}.Get(p.Param.Value).Str))
	}
	if p.Excl {
		value = maxValue // of whatever variable is meant
	}
	var within []syntax.Node
	if p.Index != nil {
		within = append(within, p.Index)
	}
	if p.Slice != nil && p.Slice.Offset != nil {
		within = append(within, p.Slice.Offset)
	}
	if p.Slice != nil && p.Slice.Length != nil {
		within = append(within, p.Slice.Length)
	}
	if p.Repl != nil && p.Repl.Orig != nil {
		within = append(within, p.Repl.Orig)
	}
	if p.Repl != nil && p.Repl.With != nil {
		within = append(within, p.Repl.With)
	}
	if p.Exp != nil && p.Exp.Word != nil {
		within = append(within, p.Exp.Word)
	}
	for _, n := range within {
		inner += s.size(n, true)
	}
	if p.Repl == nil && p.Exp == nil {
		return min(value+inner, maxWork)
	}
	return min((value+1)*(inner+1), maxWork)
}
