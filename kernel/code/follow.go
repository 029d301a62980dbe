package code

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

const (
	// MaxProgram is how many bytes a program may have that is worth following: those of
	// agents have a few hundred. Callers keep to it.
	MaxProgram = 1 << 14

	// MaxValue bounds a value that is followed, and how far away from a call its arguments
	// and its receiver are looked for, in bytes.
	MaxValue = 400
)

// follower writes a program with the names of its values replaced by what they stand
// for: what an assignment, a loop, an import, a block or a function of one argument gave
// them. It knows no language. What looks like a value in several of them is one, and what
// it cannot follow stays as it was written.
type follower struct {
	*Reader
	text    string
	out     []byte
	values  map[string]string
	each    map[string]string // those of loops, which may stand behind their use
	open    []byte            // the brackets around the place that is read
	waiting []binding
	growth  int // bytes that out may have
}

// binding is a value that is being read for names.
type binding struct {
	names []string
	pulls []string // the members that they stand for, where a pattern takes a value apart
	from  int      // in out
	depth int
	loop  bool
	until string // the word that ends it, and names what it binds: as
}

// Followed returns a program with its values in their places: what an assignment, a loop, an
// import, a block or a function of one argument gave to a name stands where the name stood,
// and what operations make of literals alone is made. Comments are left out. The result is
// bounded by the length of the program, and reading ends where [Reader.Spend] says so.
func (r *Reader) Followed(text string) string {
	text = wordLists.ReplaceAllStringFunc(text, func(found string) string {
		return listOf(strings.Fields(found[strings.IndexAny(found, "[({")+1 : len(found)-1]))
	})
	f := follower{Reader: r, text: text, each: make(map[string]string)}
	for range 2 { // a comprehension uses its name before it binds it
		f.values = make(map[string]string, len(f.each))
		for name, value := range f.each {
			f.values[name] = value
		}
		f.out, f.open, f.waiting, f.growth = make([]byte, 0, 2*len(text)), nil, nil, 2*len(text)+8*MaxValue
		f.pass()
	}
	return r.refolded(string(f.out))
}

// wordLists are the lists that Ruby and Perl write without quotes.
var wordLists = regex.New(`(?:%[wi]|\bqw\s?)(?:\[[^\[\]'"\n]{1,200}\]|\([^()'"\n]{1,200}\)|\{[^{}'"\n]{1,200}\})`)

func (f *follower) pass() {
	t := f.text
	for i := 0; i < len(t) && len(f.out) < f.growth && !f.spent(); {
		c := t[i]
		switch {
		case c == '#' && (i+1 == len(t) || t[i+1] == ' ' || t[i+1] == '!' || t[i+1] == '#') || strings.HasPrefix(t[i:], "//") && lineStart(t, i) || strings.HasPrefix(t[i:], "-- ") && lineStart(t, i):
			if end := strings.IndexByte(t[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(t)
			}
		case c == '\'' || c == '"' || c == '`':
			i = f.quoted(i, "")
		case isLetter(c) || c == '$' && i+1 < len(t) && isLetter(t[i+1]):
			i = f.word(i)
		case c == '(' || c == '[' || c == '{':
			f.keep(c)
			f.block(c, t[i+1:])
			f.open = append(f.open, c)
			i++
		case c == ')' || c == ']' || c == '}':
			f.ends(len(f.open), true)
			if len(f.open) > 0 {
				f.open = f.open[:len(f.open)-1]
			}
			f.keep(c)
			i++
		case c == ';', c == '\n' && !continues(t[i:]):
			f.ends(len(f.open), true)
			f.keep(c)
			i++
		case strings.HasPrefix(t[i:], "::"): // a member, and no end of anything
			f.write("::")
			i += 2
		case c == ',' || c == ':' && (i+1 == len(t) || t[i+1] != '='):
			f.ends(len(f.open), c == ',')
			f.keep(c)
			i++
		default:
			f.keep(c)
			i++
		}
	}
	f.ends(0, true)
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// IsWordByte reports whether a byte may stand in a name.
func IsWordByte(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '$' }

func lineStart(t string, i int) bool {
	before := strings.TrimRight(t[:i], " \t")
	return before == "" || strings.HasSuffix(before, "\n")
}

// continues reports whether the statement goes on behind the end of a line.
func continues(t string) bool {
	rest := strings.TrimLeft(t, " \t\r\n")
	return strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "->") || strings.HasPrefix(rest, "?.")
}

func (f *follower) keep(c byte) { f.out = append(f.out, c) }

func (f *follower) write(s string) { f.out = append(f.out, s...) }

// join writes a literal, as one with the literal before it if an operator joins the two.
func (f *follower) join(value string) {
	if at := f.joinedLiteral(); at >= 0 {
		value = bareLiteral(f.out[at:]) + value
		f.out = f.out[:at]
	}
	f.write(literalOf(value))
}

// quoted reads a string, and joins it to the one before.
func (f *follower) quoted(i int, prefix string) int {
	mark := f.text[i : i+1]
	if strings.HasPrefix(f.text[i:], strings.Repeat(mark, 3)) {
		mark = f.text[i : i+3]
	}
	value, end := StringFrom(f.text, i+len(mark), mark)
	if strings.ContainsAny(prefix, "fF") || mark != "'" {
		if strings.ContainsAny(value, "{$") {
			f.write(f.template(value, strings.ContainsAny(prefix, "fF")))
			return end + 1
		}
	}
	f.join(value)
	return end + 1
}

// template writes a string that has values in it as a sum of its parts.
func (f *follower) template(value string, python bool) string {
	holes := templateHole
	if python {
		holes = formatHole
	}
	var parts []string
	at := 0
	text := ""
	for _, m := range holes.FindAllStringSubmatchIndex(value, 16) {
		name, rest := "", ""
		for g := 2; g+1 < len(m); g += 2 {
			if m[g] >= 0 && name == "" {
				name, rest = leadingName(value[m[g]:m[g+1]])
			}
		}
		known, is := f.values[name]
		text += value[at:m[0]]
		at = m[1]
		switch {
		case is && IsLiteral(known) && rest == "":
			text += known[1 : len(known)-1]
		case is:
			parts, text = append(parts, literalOf(text), "("+known+rest+")"), ""
		default:
			parts, text = append(parts, literalOf(text), "("+name+rest+")"), ""
		}
	}
	text += value[at:]
	parts = append(parts, literalOf(text))
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "''" })
	if len(parts) == 0 {
		return "''"
	}
	return strings.Join(parts, "+")
}

func leadingName(e string) (name, rest string) {
	e = strings.TrimLeft(strings.TrimSpace(e), "$")
	for i := range len(e) {
		if !IsWordByte(e[i]) {
			return e[:i], e[i:]
		}
	}
	return e, ""
}

var (
	formatHole   = regexp.MustCompile(`\{([^{}!:]{1,200})(?:![rsa])?(?::[^{}]*)?\}`)
	templateHole = regexp.MustCompile(`[$#]\{([^{}]{1,200})\}|\{\$(\w{1,40})\}|\$(\w{1,40})`)
)

// word reads a name: of a value, of one that is bound here, or of neither.
func (f *follower) word(i int) int {
	t := f.text
	end := i + 1
	for end < len(t) && IsWordByte(t[end]) {
		end++
	}
	name := strings.TrimLeft(t[i:end], "$")
	if end < len(t) && (t[end] == '\'' || t[end] == '"') && len(name) < 3 && strings.Trim(name, "rRbBfFuU") == "" {
		return f.quoted(end, name)
	}
	member := followsDot(f.out) && t[i] != '$'
	rest := t[end:]
	if !member {
		if next := f.binds(name, i, end); next > 0 {
			return next
		}
	}
	if name == "as" && len(f.waiting) > 0 {
		if w := f.waiting[len(f.waiting)-1]; w.until == "as" && w.depth == len(f.open) {
			m := asNames.FindStringSubmatch(rest)
			if m != nil {
				f.waiting[len(f.waiting)-1].names = namesIn(m[1])
				f.ends(len(f.open), true)
				f.write(t[i:end] + m[0])
				return end + len(m[0])
			}
		}
	}
	if (name == "if" || name == "do") && len(f.waiting) > 0 && f.waiting[len(f.waiting)-1].loop {
		f.ends(len(f.open), false)
	}
	if name == "do" && piped.MatchString(rest[:min(len(rest), 80)]) { // a block, as braces are
		f.keep('{')
		f.block('{', rest)
		return end
	}
	value, known := f.values[name]
	if known && !member {
		f.grows(name, value, rest)
	}
	switch {
	case !known, member, strings.HasPrefix(strings.TrimLeft(rest, " )"), "=>"), isKey(f.out, rest), len(f.out)+len(value) > f.growth:
		f.write(t[i:end])
	case IsLiteral(value):
		f.join(Bare(value))
	default:
		f.write(value)
	}
	return end
}

// grows adds to a list or a text what a statement puts behind it.
func (f *follower) grows(name, value, rest string) {
	m := growing.FindStringSubmatch(rest[:min(len(rest), MaxValue)])
	if m == nil || !f.spend(costSearch*len(m[0])) {
		return
	}
	more := m[1] + m[2]
	if m[3] != "" {
		more = "[" + m[3] + "]"
	}
	if len(value)+len(more) < MaxValue {
		f.values[name] = f.refolded(value + " + " + more)
	}
}

// growing is what makes a value longer: s += 'x', l += ['x'], l.extend(['x']), l.append('x').
var growing = regexp.MustCompile(`^\s*(?:\+=\s*(\[[^\[\]]{1,200}\]|'[^'\n]{0,200}'|"[^"\n]{0,200}")|\.(?:extend|concat)\(\s*(\[[^\[\]]{1,200}\])\s*\)|\.(?:append|push)\(\s*((?:'[^'\n]*'|"[^"\n]*")(?:\s*,\s*(?:'[^'\n]*'|"[^"\n]*")){0,8})\s*\))`)

// joinedLiteral is where the literal begins that out ends with, before an operator that joins it
// to the next one, or -1.
func (f *follower) joinedLiteral() int {
	before := bytes.TrimRight(f.out, " \t")
	operand := bytes.TrimRight(before, "+.<")
	switch string(before[len(operand):]) {
	case "+", ".", "..", "<<":
	default:
		return -1
	}
	operand = bytes.TrimRight(operand, " \t")
	end := len(operand) - 1
	if end < 1 || operand[end] != '\'' && operand[end] != '"' {
		return -1
	}
	from := max(0, end-MaxValue)
	if at := bytes.LastIndexByte(operand[from:end], operand[end]); at >= 0 {
		return from + at
	}
	return -1
}

func followsDot(out []byte) bool {
	trimmed := bytes.TrimRight(out, " \t\r\n")
	return bytes.HasSuffix(trimmed, []byte(".")) && !bytes.HasSuffix(trimmed, []byte("..")) || bytes.HasSuffix(trimmed, []byte("->")) || bytes.HasSuffix(trimmed, []byte("::"))
}

// isKey reports whether a name is that of a member or of an argument.
func isKey(out []byte, rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	before := bytes.TrimRight(out, " \t\r\n")
	inside := len(before) > 0 && strings.ContainsRune("{,(", rune(before[len(before)-1]))
	return inside && (strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "::") || strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==") && !strings.HasPrefix(rest, "=>"))
}
