package toolcall

import (
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

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
	t := s.tries()
	o.text, o.known = s.printing(st, 0)
	s.undo(t)
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
	if slices.ContainsFunc(names, file.IsVital) {
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
var wideFormat = regex.New(`%[^%a-zA-Z]*(?:\d{3}|\*)`)

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

// maxFormats bounds how often printf uses its format.
const maxFormats = 16

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
	for range maxFormats {
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

var longOctal = regex.New(`\\0([0-7]{3})`)

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
	if len(argv) > 0 && programName(argv[0]) == "sed" && !s.spend(costSed+costScript*commandSize(argv)) {
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
