package toolcall

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// eachText stands for each of the things that a client lists when nothing narrows the listing.
const eachText = unknownText + "\u25a6"

// sample is a line of what a statement prints, as far as the text tells, for what filters make
// of each line and a shell then runs: of a listing it is one name, of anything else unknown.
func (s *shell) sample(st *syntax.Stmt, depth int) string {
	if st == nil || depth > maxFilters || s.spent() {
		return unknownText
	}
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		call, is := commandOf(c.Y)
		if c.Op == syntax.Pipe && is {
			return s.filtersLine(unwrap(s.argv(call)), s.sample(c.X, depth+1))
		}
	case *syntax.CallExpr:
		argv := unwrap(s.argv(c))
		if text, known := s.output(st, 0); known {
			return text
		}
		if names := s.listed(argv); len(names) > 0 {
			return s.asPrinted(argv, names[0])
		}
		if items := s.inventory(st, 0); len(items) > 0 {
			return items[0]
		}
		if len(argv) > 0 && isInterpreter(argv[0]) || len(argv) > 0 && awks[programName(argv[0])] {
			return s.filtersLine(argv, unknownText)
		}
	}
	return unknownText
}

// asPrinted is a name as ls prints it: without its folder, unless it was given with it.
func (s *shell) asPrinted(argv []string, name string) string {
	if programName(argv[0]) == "ls" && strings.HasSuffix(name, "/*") && !slices.Contains(argv, name) {
		return "*"
	}
	return name
}

// filtersLine is what a filter makes of a line.
func (s *shell) filtersLine(argv []string, line string) string {
	if len(argv) == 0 || !s.spend(costCommand) {
		return unknownText
	}
	switch name := programName(argv[0]); {
	case awks[name]:
		return strings.Join(s.awk(argv, line).printed, "\n")
	case name == "sed" || name == "gsed":
		if text, known := s.decoded(argv, line); known {
			return text
		}
		return unknownText
	case name == "xargs":
		run := wrappedCommand(argv)
		if text, known := printedBy(with(run, replaceMark(argv), line)); known {
			return text
		}
		return unknownText
	case name == "cut" || name == "tr":
		if strings.Contains(line, unknownText) || len(strings.Fields(line)) < 2 {
			return line
		}
		return unknownText
	case passesLines[name]:
		return line
	}
	return unknownText
}

var (
	awks        = words("awk gawk mawk nawk")
	passesLines = words("cat grep egrep fgrep head tail sort uniq tac shuf tee column nl rg parallel")
)

// sedCommand is a substitution in a script of sed, behind an address or none.
type sedCommand struct {
	pattern *regexp.Regexp
	with    string
	all     bool
}

// maxSubstitutions bounds the substitutions of one script.
const maxSubstitutions = 8

// substitutions are those of a script of sed, if it has nothing else that changes a line.
func substitutions(script string, extended bool) ([]sedCommand, bool) {
	var out []sedCommand
	for script = strings.TrimLeft(script, " \t\n;"); script != ""; script = strings.TrimLeft(script, " \t\n;}") {
		if m := sedSkips.FindString(script); m != "" {
			script = script[len(m):]
			continue
		}
		if m := sedAddress.FindString(script); m != "" {
			script = script[len(m):]
		}
		if len(script) < 4 || script[0] != 's' || len(out) == maxSubstitutions || len(script) > maxValue {
			return nil, false
		}
		parts, rest, is := sedParts(script[2:], script[1])
		if !is {
			return nil, false
		}
		flags := len(rest) - len(strings.TrimLeft(rest, "gIip0123456789"))
		all := strings.Contains(rest[:flags], "g")
		script = rest[flags:]
		if sedRepeats.MatchString(parts[0]) {
			return nil, false
		}
		pattern, err := regexp.Compile(goPattern(parts[0], extended))
		if err != nil {
			return nil, false
		}
		out = append(out, sedCommand{pattern, parts[1], all})
	}
	return out, len(out) > 0
}

var (
	sedRepeats = regexp.MustCompile(`\d{2}.{0,2}\}.*\}|\d{3}`) // what takes long to make

	sedSkips   = regexp.MustCompile(`^(?:(?:\d+|\$)?(?:,(?:\d+|\$))?\s*[dpqn]|/[^/\n]*/!?\s*[dp])\s*(?:;|\n|$)`)
	sedAddress = regexp.MustCompile(`^(?:(?:\d+|\$)(?:,(?:\d+|\$))?|/[^/\n]*/)!?\s*\{?\s*`)
)

// sedParts cuts the pattern and the replacement of a substitution.
func sedParts(text string, mark byte) (parts [2]string, rest string, is bool) {
	at := 0
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			if text[i+1] != mark {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i+1])
			i++
		case text[i] == mark:
			parts[at] = b.String()
			b.Reset()
			if at++; at == 2 {
				return parts, text[i+1:], true
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return parts, "", false
}

// goPattern spells a basic expression as an extended one: there the backslash makes a sign
// of a bracket, here it takes it away.
func goPattern(pattern string, extended bool) string {
	if extended {
		return "(?m)" + pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern) && strings.IndexByte("(){}+?|", pattern[i+1]) >= 0:
			b.WriteByte(pattern[i+1])
			i++
		case c == '\\' && i+1 < len(pattern):
			b.WriteByte(c)
			b.WriteByte(pattern[i+1])
			i++
		case strings.IndexByte("(){}+?|", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return "(?m)" + b.String()
}

// applied is a line after the substitution.
func (c sedCommand) applied(line string) string {
	var b strings.Builder
	from := 0
	for _, m := range c.pattern.FindAllStringSubmatchIndex(line, maxBlocks) {
		b.WriteString(line[from:m[0]])
		for i := 0; i < len(c.with); i++ {
			switch w := c.with[i]; {
			case w == '&':
				b.WriteString(line[m[0]:m[1]])
			case w == '\\' && i+1 < len(c.with):
				i++
				group := int(c.with[i]) - '0'
				if group >= 0 && group <= 9 && 2*group+1 < len(m) && m[2*group] >= 0 {
					b.WriteString(line[m[2*group]:m[2*group+1]])
				} else if group < 0 || group > 9 {
					b.WriteByte(c.with[i])
				}
			default:
				b.WriteByte(w)
			}
		}
		if from = m[1]; !c.all {
			break
		}
	}
	b.WriteString(line[from:])
	out := b.String()
	return out[:min(len(out), maxWritten)]
}

// substitutedBy is the output of sed for substitutions.
func substitutedBy(argv []string, in string) (string, bool) {
	var scripts []string
	extended, given := false, false
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; {
		case w == "-e" || w == "--expression":
			i++
			scripts, given = append(scripts, wordAt(argv, i)), true
		case strings.HasPrefix(w, "--expression="):
			scripts, given = append(scripts, strings.TrimPrefix(w, "--expression=")), true
		case w == "-E" || w == "-r" || w == "--regexp-extended" || w == "-nE" || w == "-nr":
			extended = true
		case w == "-n" || w == "--quiet" || w == "-u" || w == "-s":
		case strings.HasPrefix(w, "-") && len(w) > 1:
			return "", false
		case !given:
			scripts, given = append(scripts, w), true
		}
	}
	if len(in) > maxWritten {
		return "", false
	}
	var all []sedCommand
	for _, script := range scripts {
		found, is := substitutions(script, extended)
		if !is {
			return "", false
		}
		all = append(all, found...)
	}
	lines := strings.Split(strings.TrimSuffix(in, "\n"), "\n")
	if len(all) == 0 || len(lines) > maxBlocks {
		return "", false
	}
	for i, line := range lines {
		for _, c := range all {
			line = c.applied(line)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n"), true
}
