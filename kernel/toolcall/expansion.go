package toolcall

import (
	"bytes"
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// unknownText stands for what only the running shell would know. It is not
// empty: rm -rf "$BUILD/" must not look like rm -rf /.
const unknownText = "\u25a1"

// maxValue bounds a variable, since a=$a$a doubles.
const maxValue = 1 << 10

var errTooManyWords = errors.New("expansion yields too many words")

// environment answers the expander from the assignments seen so far, and never
// from the machine it runs on.
type environment struct {
	*shell
	absent map[string]bool
}

func (e environment) Get(name string) expand.Variable {
	if to, refers := e.references[name]; refers && to != name {
		name = to
	}
	if v, known := e.vars[name]; known {
		if values, is := elements(v); is {
			return expand.Variable{Set: true, Kind: expand.Indexed, List: values}
		}
		return expand.Variable{Set: true, Kind: expand.String, Str: v}
	}
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		return expand.Variable{Set: true, Kind: expand.String, Str: "/home/" + user}
	}
	switch name {
	case "HOME":
		return expand.Variable{Set: true, Kind: expand.String, Str: "~"}
	case "IFS":
		return expand.Variable{Set: true, Kind: expand.String, Str: " \t\n"}
	case "SHELL", "BASH":
		return expand.Variable{Set: true, Kind: expand.String, Str: "/bin/bash"}
	case "0":
		return expand.Variable{Set: true, Kind: expand.String, Str: "bash"}
	case "PWD":
		return expand.Variable{Set: true, Kind: expand.String, Str: "."}
	case "@", "*", "#", "1", "2", "3", "4", "5", "6", "7", "8", "9":
		return expand.Variable{} // r$@m is rm
	}
	if e.absent[name] {
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: unknownText}
}

func (e environment) Each(func(string, expand.Variable) bool) {}

// Set is there because ${x:=y} assigns.
func (e environment) Set(name string, v expand.Variable) error {
	e.set(name, v.String())
	return nil
}

func (s *shell) set(name, value string) {
	if len(value) > maxValue {
		value = value[:maxValue]
	}
	old, known := s.vars[name]
	if known && old == value {
		return
	}
	if s.trial != nil {
		*s.trial = append(*s.trial, change{name, old, known, value})
	}
	note(&s.vars, name, value)
	s.versions++
	s.version = s.versions
}

// change is an assignment that can be undone.
type change struct {
	name, old string
	known     bool // there was an old value
	value     string
}

// try expands without lasting effect, as the subshell of a substitution or a
// pipe does, and returns the assignments made.
func (s *shell) try(expand func()) []change {
	var made []change
	outer, version := s.trial, s.version
	s.trial = &made
	expand()
	for _, c := range slices.Backward(made) {
		if c.known {
			s.vars[c.name] = c.old
		} else {
			delete(s.vars, c.name)
		}
	}
	s.trial, s.version = outer, version
	return made
}

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
	s.words[c] = e
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
	out := make([]string, 0, len(words))
	made := s.try(func() {
		for _, w := range words {
			begin := len(out)
			var err error
			if out, err = s.appendFields(out, w); err != nil {
				out = append(out[:begin], unknownText)
			}
		}
	})
	return out, made
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
		if text, plain := s.spliced(w); plain {
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

// asWritten counts the nodes and the bytes of a word that holds nothing but literals and
// quotes of them: there is no command in it, and no variable.
func asWritten(w *syntax.Word) (nodes, bytes int, is bool) {
	nodes = 1
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			nodes, bytes = nodes+1, bytes+len(p.Value)
		case *syntax.SglQuoted:
			nodes, bytes = nodes+1, bytes+len(p.Value)
		case *syntax.DblQuoted:
			nodes++
			for _, inner := range p.Parts {
				lit, is := inner.(*syntax.Lit)
				if !is {
					return 0, 0, false
				}
				nodes, bytes = nodes+1, bytes+len(lit.Value)
			}
		default:
			return 0, 0, false
		}
	}
	return nodes, bytes, true
}

// spliced expands a word that consists of text and of variables as they are or cut, exactly
// as the library does and much faster. It leaves to the library whatever may
// become several words or none, and what escapes or the home folder change.
func (s *shell) spliced(w *syntax.Word) (string, bool) {
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
		case *syntax.ParamExp:
			out, plain = s.splice(out, p)
			plain = plain && !bytes.ContainsAny(out[begin:], " \t\n")
		}
		if !plain {
			return "", false
		}
	}
	return string(out), len(out) > 0
}

// splice adds the text of a literal or the value of a variable.
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
	}
	return out, false
}

// cut takes from a value what ${x%.go} or ${x#./} does, where it is no pattern.
func cut(value string, by *syntax.Expansion) (string, bool) {
	if by == nil {
		return value, true
	}
	if by.Word == nil || by.Word.Lit() == "" || !consistsOf(by.Word.Lit(), isPlainFile) {
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

func isPlainFile(c byte) bool { return alphanumeric(c) || strings.IndexByte("._/-", c) >= 0 }

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
		if _, bytes, written := asWritten(w); written {
			return min(bytes, maxWork)
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
	if text, plain := s.spliced(w); plain {
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

func (s *shell) printedBy(c *syntax.CmdSubst) string {
	if len(c.Stmts) == 1 {
		if out, known := s.output(c.Stmts[0], 0); known {
			return out
		}
		if items := s.inventory(c.Stmts[0], 0); len(items) > 0 {
			return strings.Join(items, "\n")
		}
		return unknownText
	}
	var all strings.Builder
	for n, st := range c.Stmts[:min(len(c.Stmts), maxBlocks)] {
		out, known := s.output(st, 0)
		if !known {
			return unknownText
		}
		if n > 0 && s.first(c.Stmts[n-1]) != "printf" {
			all.WriteByte('\n')
		}
		all.WriteString(out)
	}
	return cmp.Or(all.String(), unknownText)
}

// output is what a statement prints, if that is known.
type output struct {
	version int
	text    string
	known   bool
}

// output tells what a statement prints, where the text alone tells; once while
// the variables stay as they are.
func (s *shell) output(st *syntax.Stmt, depth int) (string, bool) {
	if depth > maxNested || s.spent() {
		return "", false
	}
	if depth > 0 {
		return s.printing(st, depth)
	}
	if o, done := s.outputs[st]; done && o.version == s.version {
		return o.text, o.known
	}
	o := output{version: s.version}
	s.try(func() { o.text, o.known = s.printing(st, 0) })
	s.spend(costWord + costSearch*len(o.text))
	note(&s.outputs, st, o)
	return o.text, o.known
}

func (s *shell) printing(st *syntax.Stmt, depth int) (string, bool) {
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt {
			return s.printedThere(c)
		}
		if c.Op == syntax.OrStmt { // a name that may be a pattern is followed by one that is none
			if text, known := s.output(c.X, depth+1); known && !strings.ContainsAny(text, "*?[") {
				return text, true
			}
			return s.output(c.Y, depth+1)
		}
		if c.Op != syntax.Pipe {
			return "", false
		}
		if in, known := s.output(c.X, depth+1); known {
			if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok {
				return s.decoded(unwrap(s.argv(call)), in)
			}
		}
	case *syntax.CallExpr:
		argv := s.argv(c)
		if names := s.losses(argv); len(names) > 0 {
			return strings.Join(names, "\n"), true
		}
		if len(argv) == 0 || argv[0] != "command" {
			argv = unwrap(argv)
		}
		for _, d := range st.Redirs {
			if d.Op == syntax.WordHdoc {
				return s.decoded(argv, s.literal(d.Word))
			}
			if d.Hdoc != nil {
				return s.decoded(argv, s.literal(d.Hdoc))
			}
			if d.Op == syntax.RdrIn && d.Word != nil && len(argv) > 0 {
				if text, known := s.written[path.Base(s.literal(d.Word))]; known {
					return s.decoded(argv, text)
				}
			}
		}
		if text, known := s.filed(argv); known {
			return text, true
		}
		return printedBy(argv)
	case nil: // $(< file)
		if len(st.Redirs) == 1 && st.Redirs[0].Op == syntax.RdrIn {
			text, known := s.written[path.Base(s.literal(st.Redirs[0].Word))]
			return text, known
		}
	}
	return "", false
}

// filed is what a filter prints of a file that the text itself wrote, and names last.
func (s *shell) filed(argv []string) (string, bool) {
	if len(argv) < 2 || len(s.written) == 0 {
		return "", false
	}
	text, known := s.written[path.Base(argv[len(argv)-1])]
	if !known {
		return "", false
	}
	return s.decoded(argv[:len(argv)-1], strings.TrimSuffix(text, "\n"))
}

// losses are the names that a listing prints, where losing them would be a loss.
func (s *shell) losses(argv []string) []string {
	names := s.listed(unwrap(argv))
	if slices.ContainsFunc(names, isVital) {
		return names
	}
	return nil
}

// printedThere is the output of cd x && pwd.
func (s *shell) printedThere(c *syntax.BinaryCmd) (string, bool) {
	to, goes := c.X.Cmd.(*syntax.CallExpr)
	prints, is := c.Y.Cmd.(*syntax.CallExpr)
	if !goes || !is {
		return "", false
	}
	from, what := s.argv(to), s.argv(prints)
	if len(from) != 2 || from[0] != "cd" || len(what) == 0 || what[0] != "pwd" || strings.Contains(from[1], unknownText) {
		return "", false
	}
	return s.resolve(from[1]), true
}

// wideFormat finds field widths that would fill the memory.
var wideFormat = newExpression(`%[^%a-zA-Z]*(?:\d{3}|\*)`)

// printedBy is the output of the commands that only print their arguments.
func printedBy(argv []string) (string, bool) {
	if len(argv) == 0 {
		return "", false
	}
	rest := argv[1:]
	switch programName(argv[0]) {
	case "echo":
		escapes := false
		for len(rest) > 0 && (rest[0] == "-n" || rest[0] == "-e" || rest[0] == "-ne" || rest[0] == "-en") {
			escapes = escapes || strings.Contains(rest[0], "e")
			rest = rest[1:]
		}
		if escapes {
			return unescape(strings.Join(rest, " ")), true
		}
		return strings.Join(rest, " "), true
	case "pidof", "pgrep": // stands for the number, so that kill is read
		if names := operands(argv); len(names) == 1 {
			return names[0], true
		}
		return "", false
	case "mktemp":
		return madeFolder(argv)
	case "which", "type", "command", "realpath", "readlink":
		if names := operands(argv); len(names) == 1 {
			return names[0], true
		}
		return "", false
	case "dirname", "basename":
		names := operands(argv)
		if len(names) != 1 || strings.Contains(names[0], unknownText) {
			return "", false
		}
		if programName(argv[0]) == "dirname" {
			return path.Dir(names[0]), true
		}
		return path.Base(names[0]), true
	case "printf":
		if len(rest) == 0 || wideFormat.MatchString(rest[0]) {
			return "", false
		}
		return formatted(rest[0], rest[1:])
	}
	return "", false
}

// formatted is the output of printf, which uses its format again while there are
// arguments left.
func formatted(format string, arguments []string) (string, bool) {
	var (
		b strings.Builder
		// One of its own: all callers without one share a builder in mvdan.cc/sh v3.14.1.
		config expand.Config
	)
	if strings.Contains(format, "%b") { // its octal digits begin with a zero
		for i, a := range arguments {
			if longOctal.MatchString(a) {
				arguments = slices.Clone(arguments)
				arguments[i] = longOctal.ReplaceAllString(a, `\$1`)
			}
		}
	}
	for range maxAlternation {
		text, used, err := expand.Format(&config, format, arguments)
		if err != nil {
			return "", false
		}
		b.WriteString(text)
		arguments = arguments[min(used, len(arguments)):]
		if used == 0 || len(arguments) == 0 {
			break
		}
	}
	return b.String(), true
}

var longOctal = newExpression(`\\0([0-7]{3})`)

func unescape(s string) string {
	s = longOctal.ReplaceAllString(s, `\$1`)
	text, _, err := expand.Format(&expand.Config{}, s, nil)
	if err != nil {
		return s
	}
	return text
}

// decoded is decodedBy, and pays for the expressions of sed, which have to be made.
func (s *shell) decoded(argv []string, in string) (string, bool) {
	if len(argv) > 0 && programName(argv[0]) == "sed" && !s.spend(costSed+costFold*commandSize(argv)) {
		return "", false
	}
	return decodedBy(argv, in)
}

// decodedBy is the output of the decoders that hide a command in a pipe.
func decodedBy(argv []string, in string) (string, bool) {
	if len(argv) == 0 {
		return "", false
	}
	compact := strings.Join(strings.Fields(in), "")
	switch programName(argv[0]) {
	case "cat", "tee":
		return in, true
	case "grep", "egrep", "cut", "head", "tail", "sort", "uniq", "nl", "fold", "dos2unix", "iconv", "column":
		return in, true
	case "tac":
		lines := strings.Split(strings.TrimRight(in, "\n"), "\n")
		slices.Reverse(lines)
		return strings.Join(lines, "\n"), true
	case "sed":
		return substitutedBy(argv, in)
	case "base64":
		out, err := base64.StdEncoding.DecodeString(compact)
		return string(out), err == nil
	case "base32":
		out, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(compact, "="))
		return string(out), err == nil
	case "xxd":
		out, err := hex.DecodeString(compact)
		return string(out), err == nil
	case "tr":
		return translated(argv, in)
	case "rev":
		runes := []rune(strings.TrimRight(in, "\n"))
		slices.Reverse(runes)
		return string(runes), true
	}
	return "", false
}
