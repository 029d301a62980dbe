package toolcall

import (
	"bytes"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// plainWord returns a word in which nothing is left to expand: most words of most
// texts are.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	quoted := false
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if expands(p.Value) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			quoted = true
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			quoted = true
			for _, inner := range p.Parts {
				lit, is := inner.(*syntax.Lit)
				if !is || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), quoted || b.Len() > 0
}

// makeup tells what a word is made of, as far as no walk through it is needed: most words are
// text and plain variables.
type makeup struct {
	nodes, bytes int  // of its literals, quotes and variables
	variables    bool // it has some
	simple       bool // it has nothing else, so that no command stands in it
}

// written reports whether a word holds nothing but literals and quotes of them.
func (m makeup) written() bool { return m.simple && !m.variables }

func makeupOf(w *syntax.Word) makeup {
	m := makeup{nodes: 1, simple: true}
	for _, part := range w.Parts {
		if q, quoted := part.(*syntax.DblQuoted); quoted {
			m.nodes++
			for _, inner := range q.Parts {
				m.add(inner)
			}
			continue
		}
		m.add(part)
	}
	return m
}

func (m *makeup) add(part syntax.WordPart) {
	m.nodes++
	switch p := part.(type) {
	case *syntax.Lit:
		m.bytes += len(p.Value)
	case *syntax.SglQuoted:
		m.bytes += len(p.Value)
	case *syntax.ParamExp:
		m.nodes, m.variables = m.nodes+1, true
		m.simple = m.simple && p.NestedParam == nil && p.Index == nil && p.Slice == nil && p.Repl == nil &&
			(p.Exp == nil || p.Exp.Word == nil || p.Exp.Word.Lit() != "")
	default:
		m.simple = false
	}
}

// spliced expands a word that consists of text, of variables as they are or cut, and of what
// commands print, exactly as the library does and much faster. It leaves to the library
// what escapes or the home folder change, and, of a word that the shell would split,
// whatever may become several words or none.
func (s *shell) spliced(w *syntax.Word, splits bool) (string, bool) {
	if _, known := s.vars["IFS"]; known || s.references["IFS"] != "" {
		return "", false
	}
	var memory [64]byte
	out := memory[:0]
	for i, part := range w.Parts {
		begin, plain := len(out), false
		switch p := part.(type) {
		case *syntax.SglQuoted:
			out, plain = append(out, p.Value...), !p.Dollar
		case *syntax.DblQuoted:
			plain = !p.Dollar
			for n := 0; plain && n < len(p.Parts); n++ {
				out, plain = s.splice(out, p.Parts[n])
			}
		case *syntax.Lit:
			out, plain = s.splice(out, p)
			plain = plain && (i > 0 || !strings.HasPrefix(p.Value, "~"))
		case *syntax.ParamExp, *syntax.CmdSubst:
			out, plain = s.splice(out, p)
			plain = plain && (!splits || !bytes.ContainsAny(out[begin:], " \t\n"))
		}
		if !plain {
			return "", false
		}
	}
	return string(out), !splits || len(out) > 0
}

// splice adds the text of a literal, the value of a variable or what a command prints.
func (s *shell) splice(out []byte, part syntax.WordPart) ([]byte, bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return append(out, p.Value...), !strings.ContainsAny(p.Value, "\\\x00")
	case *syntax.ParamExp:
		operators := p.Excl || p.Length || p.Width || p.IsSet || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0
		if p.Param == nil || operators || p.Param.Value == "@" || p.Param.Value == "*" || p.Param.Value == "LINENO" {
			return out, false
		}
		v := environment{shell: s}.Get(p.Param.Value)
		value, plain := cut(v.Str, p.Exp)
		return append(out, value...), plain && v.Kind == expand.String
	case *syntax.CmdSubst:
		text := s.printedBy(p)
		if !s.spend(costWord + costSearch*len(text)) {
			return out, false
		}
		return append(out, strings.TrimRight(text, "\n")...), !strings.Contains(text, "\x00")
	}
	return out, false
}

// cut takes from a value what ${x%.go} or ${x#./} does, where it is no pattern.
func cut(value string, by *syntax.Expansion) (string, bool) {
	if by == nil {
		return value, true
	}
	if by.Word == nil || by.Word.Lit() == "" || strings.ContainsFunc(by.Word.Lit(), isNoPlainFile) {
		return "", false
	}
	switch by.Op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return strings.TrimPrefix(value, by.Word.Lit()), true
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return strings.TrimSuffix(value, by.Word.Lit()), true
	}
	return "", false
}

func isNoPlainFile(c rune) bool {
	return !isAlphanumeric(c) && !strings.ContainsRune("._/-", c)
}

// expands reports whether a literal has a character that the shell may put another for.
func expands(literal string) bool {
	for i := range len(literal) {
		switch literal[i] {
		case '\\', '~', '{', '*', '?', '[':
			return true
		}
	}
	return false
}
