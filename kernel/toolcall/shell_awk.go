package toolcall

import (
	"path"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
)

// awkRun is a program of awk as it is read: what its variables hold, where the text tells it,
// and the line that it gets. It runs nothing.
type awkRun struct {
	*shell
	vars     map[string]string
	line     string
	commands []string // that it starts
	fed      []fed    // what it writes into commands
	printed  []string
}

// fed is a text that goes into a command.
type fed struct{ command, text string }

// awkToken is a piece of a program: kind is one of those below, or the operator itself.
type awkToken struct {
	kind byte
	text string
}

const (
	awkText   = 's'
	awkName   = 'n'
	awkNumber = '0'
	awkField  = '$'
	awkEnd    = ';' // of a statement
)

// maxTokens bounds those of one program.
const maxTokens = 1024

// awk reads the programs of a call of awk for one line of its input.
func (s *shell) awk(argv []string, line string) *awkRun {
	run := &awkRun{shell: s, vars: make(map[string]string), line: line}
	flags := options{values: "Fvf", long: "--assign --file --field-separator", text: "e", longText: "--source"}
	var programs []string
	given := false
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if text, next, found := flags.program(argv, i); found {
			programs, given = append(programs, text), true
			i = next - 1
			continue
		}
		switch {
		case w == "-v" || w == "--assign" || strings.HasPrefix(w, "-v"):
			value := strings.TrimPrefix(w, "-v")
			if w == "-v" || w == "--assign" {
				i++
				value = wordAt(argv, i)
			}
			name, value, _ := strings.Cut(value, "=")
			run.vars[name] = value
		case w == "-f" || w == "--file":
			i++
			programs, given = append(programs, s.written[path.Base(wordAt(argv, i))]), true
		case strings.HasPrefix(w, "-") && len(w) > 1:
			i += flags.valueWords(w)
		case !given:
			programs, given = append(programs, w), true
		}
	}
	for _, program := range programs {
		if len(program) > maxWritten || !s.spend(costCode*len(program)) {
			break
		}
		run.read(awkTokens(program))
	}
	return run
}

// starts judges the commands that a program of awk starts.
func (run *awkRun) starts() {
	if run.calls > maxNested {
		return
	}
	run.calls++
	defer func() { run.calls-- }()
	for _, command := range run.commands {
		run.shellIn(command, run.shell)
	}
	for _, f := range run.fed {
		run.shellIn(f.command, run.shell)
		if words := strings.Fields(f.command); len(words) > 0 {
			run.feed(unwrap(words), f.text)
		}
	}
}

func awkTokens(program string) []awkToken {
	var out []awkToken
	for i := 0; i < len(program) && len(out) < maxTokens; {
		c := program[i]
		switch {
		case c == '"':
			end := i + 1
			for end < len(program) && program[end] != '"' {
				if program[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, awkToken{awkText, unescape(program[i+1 : min(end, len(program))])})
			i = end + 1
		case c == '/' && (len(out) == 0 || strings.IndexByte("(,{;!~&|", out[len(out)-1].kind) >= 0): // a pattern
			end := strings.IndexByte(program[i+1:], '/')
			if end < 0 {
				return out
			}
			out = append(out, awkToken{'/', ""})
			i += end + 2
		case c == '#':
			for i < len(program) && program[i] != '\n' {
				i++
			}
		case c == '$':
			end := i + 1
			for end < len(program) && code.IsWordByte(program[end]) {
				end++
			}
			out = append(out, awkToken{awkField, program[i+1 : end]})
			i = end
		case c == '_' || alphanumeric(c) && !isDigit(c):
			end := i + 1
			for end < len(program) && code.IsWordByte(program[end]) {
				end++
			}
			out = append(out, awkToken{awkName, program[i:end]})
			i = end
		case isDigit(c):
			end := i + 1
			for end < len(program) && isDigit(program[end]) {
				end++
			}
			out = append(out, awkToken{awkNumber, program[i:end]})
			i = end
		case c == '\n' || c == ';' || c == '{' || c == '}':
			out = append(out, awkToken{awkEnd, string(c)})
			i++
		case c == ' ' || c == '\t' || c == '\r' || c == '\\':
			i++
		default:
			kind := c
			if i+1 < len(program) && program[i+1] == '=' && strings.IndexByte("=!<>+-*/%", c) >= 0 {
				kind = '?' // a comparison, or a sum
				i++
			}
			out = append(out, awkToken{kind, string(c)})
			i++
		}
	}
	return out
}

// read follows a program from its first statement to its last.
func (run *awkRun) read(tokens []awkToken) {
	from := 0 // where the statement began
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		next := byte(0)
		if i+1 < len(tokens) {
			next = tokens[i+1].kind
		}
		switch {
		case t.kind == awkEnd:
			from = i + 1
		case t.kind == awkName && t.text == "system" && next == '(':
			run.commands = append(run.commands, run.text(tokens[i+2:awkClosing(tokens, i+1)]))
		case t.kind == awkName && t.text == "getline" && i > 0 && tokens[i-1].kind == '|':
			command := run.text(awkBefore(tokens[from : i-1]))
			run.commands = append(run.commands, command)
			if next == awkName {
				run.vars[tokens[i+1].text] = run.linesOf(command)
			} else {
				run.line = run.linesOf(command)
			}
		case t.kind == awkName && (t.text == "print" || t.text == "printf"):
			i = run.prints(tokens, i)
			from = i
		case t.kind == awkName && next == '=':
			end := awkUntil(tokens, i+2, ")")
			run.vars[t.text] = run.text(tokens[i+2 : end])
		case t.kind == awkName && next == '[':
			if end := awkClosing(tokens, i+1); end+1 < len(tokens) && tokens[end+1].kind == '=' {
				run.vars[t.text+"["+run.text(tokens[i+2:end])+"]"] = run.text(tokens[end+2 : awkUntil(tokens, end+2, ")")])
			}
		}
	}
}

// prints reads a print at i and returns where it ends.
func (run *awkRun) prints(tokens []awkToken, i int) int {
	end := awkUntil(tokens, i+1, "|>)")
	parts := run.values(tokens[i+1 : end])
	text := strings.Join(parts, " ")
	if tokens[i].text == "printf" && len(parts) > 0 {
		if formed, known := printedBy(append([]string{"printf"}, parts...)); known {
			text = formed
		}
	}
	if len(tokens) == i+1 || end == i+1 {
		text = run.line
	}
	if end < len(tokens) && tokens[end].kind == '|' {
		last := awkUntil(tokens, end+1, "")
		run.fed = append(run.fed, fed{run.text(tokens[end+1 : last]), text})
		return last
	}
	run.printed = append(run.printed, text)
	return end
}

// linesOf is a line that a command prints, as far as its words tell.
func (run *awkRun) linesOf(command string) string {
	words := strings.Fields(command)
	if names := run.listed(words); len(names) > 0 {
		return names[0]
	}
	if text, known := printedBy(words); known {
		return text
	}
	return unknownText
}

// text joins the values of an expression as awk joins what stands side by side.
func (run *awkRun) text(tokens []awkToken) string {
	values := run.values(tokens)
	out := strings.Join(values, " ")
	return out[:min(len(out), maxValue)]
}

// values are those of the expressions between commas.
func (run *awkRun) values(tokens []awkToken) []string {
	for len(tokens) > 1 && tokens[0].kind == '(' && awkClosing(tokens, 0) == len(tokens)-1 {
		tokens = tokens[1 : len(tokens)-1]
	}
	out := []string{""}
	add := func(text string) {
		if last := &out[len(out)-1]; len(*last) < maxValue {
			*last += text
		}
	}
	for i := 0; i < len(tokens) && run.spend(costWord); i++ {
		t := tokens[i]
		switch t.kind {
		case awkText, awkNumber:
			add(t.text)
		case ',':
			out = append(out, "")
		case awkField:
			add(run.field(t.text))
		case '(':
			end := awkClosing(tokens, i)
			add(run.text(tokens[i+1 : end]))
			i = end
		case awkName:
			if i+1 < len(tokens) && (tokens[i+1].kind == '(' || tokens[i+1].kind == '[') {
				end := awkClosing(tokens, i+1)
				inner := tokens[i+2 : end]
				switch {
				case tokens[i+1].kind == '[':
					add(run.known(t.text + "[" + run.text(inner) + "]"))
				case t.text == "sprintf":
					text, known := printedBy(append([]string{"printf"}, run.values(inner)...))
					if !known {
						text = unknownText
					}
					add(text)
				case t.text == "tolower":
					add(strings.ToLower(run.text(inner)))
				default:
					add(unknownText)
				}
				i = end
				continue
			}
			add(run.known(t.text))
		case '?', '~', '<', '>', '&', '!', '+', '-', '*', '%':
			add(unknownText)
		}
	}
	return out
}

func (run *awkRun) known(name string) string {
	if value, is := run.vars[name]; is {
		return value
	}
	if name == "OFS" || name == "FS" {
		return " "
	}
	if name == "ORS" || name == "RS" {
		return "\n"
	}
	return unknownText
}

// field is a field of the line; of a line that nobody knows each is unknown.
func (run *awkRun) field(name string) string {
	fields := strings.Fields(run.line)
	switch {
	case name == "0" || len(fields) < 2:
		return run.line
	case name == "NF":
		return fields[len(fields)-1]
	case len(name) == 1 && name[0] >= '1' && name[0] <= '9' && int(name[0]-'1') < len(fields):
		return fields[name[0]-'1']
	}
	return unknownText
}

// awkClosing is where the bracket at i closes, or the end.
func awkClosing(tokens []awkToken, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		switch tokens[i].kind {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(tokens)
}

// awkUntil is where an expression that begins at i ends: at the end of the statement, or at
// one of the marks outside its brackets.
func awkUntil(tokens []awkToken, i int, marks string) int {
	for i = min(i, len(tokens)); i < len(tokens); i++ {
		switch k := tokens[i].kind; {
		case k == '(' || k == '[':
			i = awkClosing(tokens, i)
		case k == awkEnd || strings.IndexByte(marks, k) >= 0:
			return i
		}
	}
	return min(i, len(tokens))
}

// awkBefore is the expression that ends where the tokens do.
func awkBefore(tokens []awkToken) []awkToken {
	depth := 0
	for i, t := range slices.Backward(tokens) {
		switch t.kind {
		case ')', ']':
			depth++
		case '(', '[':
			if depth--; depth < 0 {
				return tokens[i+1:]
			}
		}
	}
	return tokens
}
