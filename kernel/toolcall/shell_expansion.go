package toolcall

import (
	"cmp"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/file"
)

// unknownText stands for what only the running shell would know. It is not
// empty: rm -rf "$BUILD/" must not look like rm -rf /.
const unknownText = file.Unknown

var errTooManyWords = errors.New("expansion yields too many words")

func (s *shell) config(words []*syntax.Word) *expand.Config {
	return &expand.Config{
		Env:       environment{shell: s, absent: defaulted(words)},
		CmdSubst:  s.substitute,
		ProcSubst: s.process,
	}
}

// defaulted lists the variables that carry a default, as in ${x:-/}: a default is
// written for the case that the variable is absent.
func defaulted(words []*syntax.Word) map[string]bool {
	var out map[string]bool
	for _, w := range words {
		syntax.Walk(w, func(n syntax.Node) bool {
			if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && p.Exp != nil {
				switch p.Exp.Op {
				case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
					if out == nil {
						out = make(map[string]bool)
					}
					out[p.Param.Value] = true
				}
			}
			return true
		})
	}
	return out
}

// expansion is the words of a command, and the assignments made on the way.
type expansion struct {
	version int
	words   []string
	made    []change
}

// expanded reads the words of a command, once while the variables stay as they
// are.
func (s *shell) expanded(c *syntax.CallExpr) *expansion {
	if e := s.words[c]; e != nil && e.version == s.version {
		return e
	}
	e := &expansion{version: s.version}
	e.words, e.made = s.fields(c.Args)
	note(&s.words, c, e)
	return e
}

func (s *shell) argv(c *syntax.CallExpr) []string { return s.expanded(c).words }

// run is argv of the command that runs now: its assignments stay.
func (s *shell) run(c *syntax.CallExpr) []string {
	e := s.expanded(c)
	for _, m := range e.made {
		s.set(m.name, m.value)
	}
	return e.words
}

// fields expands words as the shell would. A word that cannot be expanded here
// stands as unknown.
func (s *shell) fields(words []*syntax.Word) ([]string, []change) {
	out, t := make([]string, 0, len(words)), s.tries()
	for _, w := range words {
		begin := len(out)
		var err error
		if out, err = s.appendFields(out, w); err != nil {
			out = append(out[:begin], unknownText)
		}
	}
	return out, s.undo(t)
}

// appendFields adds the words that a word expands to, as far as it can be expanded.
func (s *shell) appendFields(out []string, w *syntax.Word) ([]string, error) {
	if lit := w.Lit(); lit != "" && !expands(lit) {
		s.spend(costWord)
		return append(out, lit), nil
	}
	if text, plain := plainWord(w); plain {
		s.spend(costWord + costSearch*len(text))
		return append(out, text), nil
	}
	if openBraces(w) > maxOpenBraces {
		s.unreadable()
		return out, errTooManyWords
	}
	if !mayHaveBraces(w) {
		if !s.spend(costExpand + costWord + costSearch*s.size(w, false)) {
			return out, errTooManyWords
		}
		if text, plain := s.spliced(w, true); plain {
			s.spend(costWord)
			return append(out, text), nil
		}
		return s.expandFields(out, w)
	}
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	syntax.SplitBraces(split)
	if braces, first := split.Parts[0].(*syntax.BraceExp); first && len(split.Parts) == 1 && braces.Sequence && alternatives(split) > maxAlternatives {
		return out, errTooManyWords // numbers for a loop: none is worth reading
	}
	if alternatives(split) > maxAlternatives || braceCount(split) > maxBraces {
		s.unreadable()
		return out, errTooManyWords
	}
	if !s.spend(costExpand + alternatives(split)*(costWord+costSearch*s.size(w, false))) {
		return out, errTooManyWords
	}
	return s.expandFields(out, w)
}

// errNotExpanded is the error of a word that the library parses and cannot expand.
var errNotExpanded = errors.New("the word cannot be expanded")

// recoverExpansion turns a panic of the library into errNotExpanded. It panics on
// words that it parses and does not know how to expand, such as ${x@A$0}, whose
// operator is no literal.
func recoverExpansion(err *error) {
	if recover() != nil {
		*err = errNotExpanded
	}
}

func (s *shell) expandFields(to []string, w *syntax.Word) (out []string, err error) {
	defer recoverExpansion(&err)
	out = to
	words := []*syntax.Word{w}
	for f, err := range expand.FieldsSeq(s.config(words), words...) {
		if err != nil || !s.spend(costWord) {
			return out, cmp.Or(err, errTooManyWords)
		}
		out = append(out, f)
	}
	return out, nil
}

// literal expands one word without splitting it.
func (s *shell) literal(w *syntax.Word) string {
	if w == nil || !s.spend(costWord+costSearch*s.size(w, false)) {
		return ""
	}
	if text, plain := plainWord(w); plain {
		return text
	}
	if !s.spend(costExpand) {
		return ""
	}
	if text, plain := s.spliced(w, false); plain {
		return text
	}
	text, err := s.expandLiteral(w)
	if err != nil {
		return unknownText
	}
	return text
}

func (s *shell) expandLiteral(w *syntax.Word) (text string, err error) {
	defer recoverExpansion(&err)
	return expand.Literal(s.config([]*syntax.Word{w}), w)
}

// substitute writes what a command substitution would yield, where the text
// alone tells: $(echo rm) is rm.
func (s *shell) substitute(w io.Writer, c *syntax.CmdSubst) error {
	text := s.printedBy(c)
	if !s.spend(costWord + costSearch*len(text)) {
		return errTooManyWords
	}
	_, err := io.WriteString(w, text)
	return err
}

// process names the file that a process substitution stands for, and remembers what
// is in it where that is known.
func (s *shell) process(p *syntax.ProcSubst) (string, error) {
	if p.Op != syntax.CmdIn || len(p.Stmts) != 1 {
		return unknownText, nil
	}
	text, known := s.output(p.Stmts[0], 0)
	if !known {
		return unknownText, nil
	}
	name := "/dev/fd/p" + strconv.FormatUint(uint64(p.Pos().Offset()), 10)
	if _, done := s.written[path.Base(name)]; !done {
		s.write(name, text)
	}
	return name, nil
}
