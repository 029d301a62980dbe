package toolcall

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"slices"
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
	if v, known := e.vars[name]; known {
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
	s.vars[name] = value
}

func (s *shell) config(words []*syntax.Word) *expand.Config {
	return &expand.Config{
		Env:       environment{shell: s, absent: defaulted(words)},
		CmdSubst:  s.substitute,
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return unknownText, nil },
	}
}

// defaulted lists the variables that carry a default, as in ${x:-/}: whoever
// writes one counts on the variable being absent.
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

// fields expands words as the shell would. A word that cannot be expanded here
// stands as unknown.
func (s *shell) fields(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		fields, err := s.field(w)
		if err != nil {
			fields = []string{unknownText}
		}
		out = append(out, fields...)
	}
	return out
}

func (s *shell) field(w *syntax.Word) ([]string, error) {
	if lit := w.Lit(); lit != "" && !strings.ContainsAny(lit, `\~{*?[`) {
		s.words++
		return []string{lit}, nil
	}
	if braces(w) > maxBraces {
		return nil, errTooManyWords
	}
	var out []string
	words := []*syntax.Word{w}
	for f, err := range expand.FieldsSeq(s.config(words), words...) {
		if err != nil {
			return nil, err
		}
		if s.words += 1 + len(f)/64; s.words > maxWords {
			return nil, errTooManyWords
		}
		out = append(out, f)
	}
	return out, nil
}

// maxBraces bounds the braces of one word, whose alternatives multiply.
const maxBraces = 8

func braces(w *syntax.Word) int {
	n := 0
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// literal expands one word without splitting it.
func (s *shell) literal(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	text, err := expand.Literal(s.config([]*syntax.Word{w}), w)
	if err != nil {
		return unknownText
	}
	return text
}

// substitute writes what a command substitution would yield, where the text
// alone tells: $(echo rm) is rm.
func (s *shell) substitute(w io.Writer, c *syntax.CmdSubst) error {
	text := unknownText
	if len(c.Stmts) == 1 {
		if out, known := s.output(c.Stmts[0], 0); known {
			text = out
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// output tells what a statement prints, where the text alone tells.
func (s *shell) output(st *syntax.Stmt, depth int) (string, bool) {
	if depth > maxNested {
		return "", false
	}
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		if c.Op != syntax.Pipe {
			return "", false
		}
		if in, known := s.output(c.X, depth+1); known {
			if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok {
				return filter(unwrap(s.fields(call.Args)), in)
			}
		}
	case *syntax.CallExpr:
		argv := unwrap(s.fields(c.Args))
		for _, d := range st.Redirs {
			if d.Op == syntax.WordHdoc {
				return filter(argv, s.literal(d.Word))
			}
			if d.Hdoc != nil {
				return filter(argv, s.literal(d.Hdoc))
			}
		}
		return printed(argv)
	}
	return "", false
}

// wideFormat finds field widths that would fill the memory.
var wideFormat = regexp.MustCompile(`%[^%a-zA-Z]*(?:\d{3}|\*)`)

// printed is the output of the commands that only print their arguments.
func printed(argv []string) (string, bool) {
	if len(argv) == 0 {
		return "", false
	}
	rest := argv[1:]
	switch base(argv[0]) {
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
	case "printf":
		if len(rest) == 0 || wideFormat.MatchString(rest[0]) {
			return "", false
		}
		text, _, err := expand.Format(nil, rest[0], rest[1:])
		return text, err == nil
	}
	return "", false
}

func unescape(s string) string {
	text, _, err := expand.Format(nil, strings.ReplaceAll(s, "%", "%%"), nil)
	if err != nil {
		return s
	}
	return text
}

// filter is the output of the decoders that hide a command in a pipe.
func filter(argv []string, in string) (string, bool) {
	if len(argv) == 0 {
		return "", false
	}
	compact := strings.Join(strings.Fields(in), "")
	switch base(argv[0]) {
	case "cat", "tee":
		return in, true
	case "base64":
		out, err := base64.StdEncoding.DecodeString(compact)
		return string(out), err == nil
	case "xxd":
		out, err := hex.DecodeString(compact)
		return string(out), err == nil
	case "rev":
		runes := []rune(strings.TrimRight(in, "\n"))
		slices.Reverse(runes)
		return string(runes), true
	}
	return "", false
}
