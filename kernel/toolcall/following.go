package toolcall

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxFollowed bounds the programs whose values are followed, and what becomes of them.
const (
	maxFollowed = 1 << 14
	maxValueOf  = 400
)

// follower writes a program with the names of its values replaced by what they stand
// for: what an assignment, a loop, an import, a block or a function of one argument gave
// them. It knows no language. What looks like a value in several of them is one, and what
// it cannot follow stays as it was written.
type follower struct {
	*budget
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

// followed returns the program with its values in their places.
func (b *budget) followed(text string) string {
	text = wordLists.ReplaceAllStringFunc(text, func(found string) string {
		return listOf(strings.Fields(found[strings.IndexAny(found, "[({")+1 : len(found)-1]))
	})
	f := follower{budget: b, text: text, each: make(map[string]string)}
	for range 2 { // a comprehension uses its name before it binds it
		f.values = make(map[string]string, len(f.each))
		for name, value := range f.each {
			f.values[name] = value
		}
		f.out, f.open, f.waiting, f.growth = make([]byte, 0, 2*len(text)), nil, nil, 2*len(text)+8*maxValueOf
		f.pass()
	}
	return b.refolded(string(f.out))
}

// wordLists are the lists that Ruby and Perl write without quotes.
var wordLists = newExpression(`(?:%[wi]|\bqw\s?)(?:\[[^\[\]'"\n]{1,200}\]|\([^()'"\n]{1,200}\)|\{[^{}'"\n]{1,200}\})`)

// listOf writes values as a list of literals.
func listOf(values []string) string {
	quoted := make([]string, len(values))
	for n, v := range values {
		quoted[n] = literalOf(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

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

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' }

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

// bareLiteral is what the literal holds that a text begins with.
func bareLiteral(text []byte) string {
	return string(text[1 : 1+bytes.IndexByte(text[1:], text[0])])
}

// quoted reads a string, and joins it to the one before.
func (f *follower) quoted(i int, prefix string) int {
	mark := f.text[i : i+1]
	if strings.HasPrefix(f.text[i:], strings.Repeat(mark, 3)) {
		mark = f.text[i : i+3]
	}
	value, end := quotedFrom(f.text, i+len(mark), mark)
	if strings.ContainsAny(prefix, "fF") || mark != "'" {
		if strings.ContainsAny(value, "{$") {
			f.write(f.template(value, strings.ContainsAny(prefix, "fF")))
			return end + 1
		}
	}
	f.join(value)
	return end + 1
}

// literalOf writes a value as a literal that has no escapes.
func literalOf(value string) string {
	if strings.Contains(value, "'") && !strings.Contains(value, `"`) {
		return `"` + value + `"`
	}
	return "'" + strings.ReplaceAll(value, "'", " ") + "'"
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
		case is && isLiteral(known) && rest == "":
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
		if !isWordByte(e[i]) {
			return e[:i], e[i:]
		}
	}
	return e, ""
}

// isLiteral reports whether a value is one literal and nothing else.
func isLiteral(value string) bool {
	return len(value) > 1 && (value[0] == '\'' || value[0] == '"') && strings.IndexByte(value[1:], value[0]) == len(value)-2
}

var (
	formatHole   = regexp.MustCompile(`\{([^{}!:]{1,200})(?:![rsa])?(?::[^{}]*)?\}`)
	templateHole = regexp.MustCompile(`[$#]\{([^{}]{1,200})\}|\{\$(\w{1,40})\}|\$(\w{1,40})`)
)

// word reads a name: of a value, of one that is bound here, or of neither.
func (f *follower) word(i int) int {
	t := f.text
	end := i + 1
	for end < len(t) && isWordByte(t[end]) {
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
	case isLiteral(value):
		f.join(bare(value))
	default:
		f.write(value)
	}
	return end
}

// grows adds to a list or a text what a statement puts behind it.
func (f *follower) grows(name, value, rest string) {
	m := growing.FindStringSubmatch(rest[:min(len(rest), maxValueOf)])
	if m == nil || !f.spend(costSearch*len(m[0])) {
		return
	}
	more := m[1] + m[2]
	if m[3] != "" {
		more = "[" + m[3] + "]"
	}
	if len(value)+len(more) < maxValueOf {
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
	from := max(0, end-maxValueOf)
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

// binds reads what a name, or a word that makes names, binds. It returns where the value
// begins, or 0.
func (f *follower) binds(name string, start, end int) int {
	rest := f.text[end:]
	switch name {
	case "import", "from":
		if m := importLine.FindString(f.text[start:]); m != "" {
			f.imports(m)
			f.write(m)
			return start + len(m)
		}
	case "const", "let", "var", "local", "my", "our":
		if m := pulledApart.FindStringSubmatch(rest); m != nil {
			f.waits(nil, false, m[0], name)
			last := &f.waiting[len(f.waiting)-1]
			last.names, last.pulls = renamed(m[1])
			return end + len(m[0])
		}
		return 0
	case "for", "foreach":
		for _, e := range loops {
			if m := e.FindStringSubmatch(rest); m != nil {
				f.bracketed(m[0])
				f.waits(namesIn(m[1]), true, m[0], name)
				return end + len(m[0])
			}
		}
		if m := asLoop.FindString(rest); m != "" && name == "foreach" {
			f.write(name + m)
			f.open = append(f.open, '(')
			f.waiting = append(f.waiting, binding{from: len(f.out), depth: len(f.open), loop: true, until: "as"})
			return end + len(m)
		}
		return 0
	case "with":
		if strings.HasPrefix(rest, " ") {
			f.write(name + " ")
			f.waiting = append(f.waiting, binding{from: len(f.out), depth: len(f.open), until: "as"})
			return end + 1
		}
		return 0
	}
	if len(f.open) > 0 && f.open[len(f.open)-1] != '{' && !strings.HasPrefix(strings.TrimLeft(rest, " "), ":=") {
		return 0
	}
	if next := strings.TrimLeft(rest, " \t"); next == "" || next[0] != '=' && next[0] != ':' && next[0] != ',' || strings.HasPrefix(next, "==") || strings.HasPrefix(next, "=>") {
		return 0
	}
	if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "+=") {
		return 0
	}
	if m := assigned.FindStringSubmatch(rest[:min(len(rest), maxValueOf)]); m != nil {
		if after := rest[len(m[0]):]; strings.HasPrefix(after, "=") || strings.HasPrefix(after, "~") || strings.HasPrefix(after, ">") {
			return 0
		}
		f.waits(append([]string{name}, namesIn(m[1])...), false, m[0], name)
		return end + len(m[0])
	}
	return 0
}

// bracketed notes the brackets that a text opens.
func (f *follower) bracketed(text string) {
	for range strings.Count(text, "(") - strings.Count(text, ")") {
		f.open = append(f.open, '(')
	}
}

func (f *follower) waits(names []string, loop bool, written, word string) {
	f.write(word + written)
	f.waiting = append(f.waiting, binding{names: names, from: len(f.out), depth: len(f.open), loop: loop})
}

// ends gives the values that end here to their names: at a bracket, at the end of a
// statement, or before the body of a loop.
func (f *follower) ends(depth int, statement bool) {
	for len(f.waiting) > 0 {
		w := f.waiting[len(f.waiting)-1]
		if w.depth < depth || w.depth == depth && !statement && !w.loop {
			return
		}
		f.waiting = f.waiting[:len(f.waiting)-1]
		value := strings.TrimSpace(string(f.out[min(w.from, len(f.out)):]))
		for _, prefix := range []string{"await ", "yield ", "new ", "&"} {
			value = strings.TrimPrefix(value, prefix)
		}
		if len(value) <= maxValueOf {
			value = f.refolded(value)
		}
		for n, name := range w.names {
			value := value
			switch {
			case n >= len(w.pulls):
			case isModule.MatchString(value): // its members are called by their own names
				value = w.pulls[n]
			default:
				value = "(" + value + ")." + w.pulls[n]
			}
			if value == name {
				value = ""
			}
			if value == "" || !f.spend(costWord) || len(value) > maxValueOf || name == "_" {
				delete(f.values, name)
				continue
			}
			f.values[name] = value
			if w.loop {
				f.each[name] = value
			}
		}
	}
}

// block binds the arguments of a function that is handed to a method: each element of
// what the method is called on, or its result.
func (f *follower) block(c byte, rest string) {
	rest = rest[:min(len(rest), 80)]
	if c == '{' {
		f.ends(len(f.open), false) // the body of a loop
	}
	var names string
	switch {
	case c == '(' && !strings.Contains(rest, "=>") && !strings.Contains(rest, "function"):
		return
	case c == '(' && handed.MatchString(rest):
		names = strings.Join(handed.FindStringSubmatch(rest)[1:], "")
	case c == '{' && strings.HasPrefix(strings.TrimLeft(rest, " "), "|") && piped.MatchString(rest):
		names = piped.FindStringSubmatch(rest)[1]
	default:
		return
	}
	receiver := chainBefore(f.out[:len(f.out)-1])
	at := strings.LastIndex(receiver, ".")
	if at <= 0 || len(receiver) > maxValueOf {
		return
	}
	for _, name := range namesIn(names) {
		f.values[name], f.each[name] = receiver[:at], receiver[:at]
	}
}

// chainBefore is the expression of members and calls that a text ends with.
func chainBefore(out []byte) string {
	end := len(bytes.TrimRight(out, " \t\r\n"))
	i, depth := end, 0
	for i > 0 && end-i <= maxValueOf {
		c := out[i-1]
		switch {
		case c == ')' || c == ']':
			depth++
		case c == '(' || c == '[':
			if depth == 0 {
				return string(out[i:end])
			}
			depth--
		case depth > 0 || isWordByte(c) || c == '.' || c == '\'' || c == '"':
		default:
			return string(out[i:end])
		}
		i--
	}
	return string(out[i:end])
}

var (
	importLine  = regexp.MustCompile(`^(?:from\s+[\w.]+\s+import\s+(?:\([^)]{0,400}\)|[^\n;]{1,400})|import\s+(?:[^\n;'"]{0,400}?\sfrom\s+)?['"][^'"\n]{1,200}['"]|import\s+[\w., ]{1,400})`)
	pythonFrom  = regexp.MustCompile(`^from\s+([\w.]+)\s+import\s+([^#]+)$`)
	scriptFrom  = regexp.MustCompile(`^import\s+(.*?)\s+from\s+['"]([^'"]+)['"]$`)
	pulledApart = regexp.MustCompile(`^\s*[\[{(]([^{}()=\[\]]{1,400})[\]})]\s*=\s*`)
	assigned    = regexp.MustCompile(`^((?:\s*,\s*\$?\w+){0,4})[ \t]*(?::[ \t]*[\w.\[\], |]{1,60})?[ \t]*:?=[ \t]*`)
	asNames     = regexp.MustCompile(`^\s+((?:\$?\w+\s*=>\s*)?\(?[\w$, ]{1,80})`)
	asLoop      = regexp.MustCompile(`^\s*\(\s*`)
	loops       = []*regexp.Regexp{
		regexp.MustCompile(`^\s*(?:await\s*)?\(?\s*(?:(?:const|let|var|my)\s+)?[\[(]?\s*(\$?\w+(?:\s*,\s*\$?\w+){0,4})\s*[\])]?\s+(?:in|of)\s+(?:i?pairs\s*)?`),
		regexp.MustCompile(`^\s+(\w+(?:\s*,\s*\w+)?)\s*:?=\s*range\s+`),
		regexp.MustCompile(`^\s+my\s+([$]\w+)\s*\(`),
	}
	handed = regexp.MustCompile(`^\s*(?:async\s*)?(?:\(\s*([\w$, ]{1,60})\)|([\w$]{1,40}))\s*=>|^\s*(?:async\s+)?function\s*\w*\s*\(\s*([\w$, ]{1,60})\)`)
	piped  = regexp.MustCompile(`^\s*\|\s*([\w, ]{1,60})\|`)
	named  = regexp.MustCompile(`\w+`)
)

func namesIn(text string) []string { return named.FindAllString(text, 5) }

// renamed are the names that a pattern such as {a, b: c} binds, and those of the members.
func renamed(pattern string) (to, from []string) {
	for part := range strings.SplitSeq(pattern, ",") {
		if all := namesIn(part); len(all) > 0 {
			last := len(all) - 1
			if !strings.Contains(part, ":") {
				last = 0
			}
			to, from = append(to, all[last]), append(from, all[0])
		}
	}
	return to, from
}

// isModule finds what is a module and not a value.
var isModule = regexp.MustCompile(`^(?:require\(['"][^'"]*['"]\)|import\(['"][^'"]*['"]\))$`)

// imports binds the names of an import that are not those of what they stand for.
func (f *follower) imports(line string) {
	var module, list string
	if m := pythonFrom.FindStringSubmatch(line); m != nil {
		module, list = m[1]+".", m[2]
	} else if m := scriptFrom.FindStringSubmatch(line); m != nil {
		list = m[1]
		if name, is := strings.CutPrefix(list, "* as "); is || !strings.ContainsAny(list, "{},") {
			f.values[strings.TrimSpace(name)] = strings.TrimPrefix(m[2], "node:")
			return
		}
		if base, _, _ := strings.Cut(strings.TrimPrefix(m[2], "node:"), "/"); named.FindString(base) == base {
			module = base + "."
		}
	} else {
		list = strings.TrimPrefix(line, "import ")
	}
	for part := range strings.SplitSeq(strings.Trim(list, "(){} \n"), ",") {
		from, to, is := strings.Cut(strings.TrimSpace(part), " as ")
		if !is {
			to = from
		}
		from, to = strings.TrimSpace(from), strings.TrimSpace(to)
		if from != "" && from != "*" && module+from != to && named.FindString(to) == to && len(from) < maxKey {
			f.values[to] = module + from
		}
	}
}

// refolded writes the values that operations on literals alone make, until there are no
// more of them.
func (b *budget) refolded(text string) string {
	for range 4 {
		if !b.spend(costScreen*len(text)) || !foldable.matches(text) || !b.spend(costFold*len(text)) {
			return text
		}
		before := text
		for _, rule := range foldings {
			text = rule.what.ReplaceAllStringFunc(text, func(found string) string {
				return rule.fold(rule.what.compiled().FindStringSubmatch(found))
			})
		}
		if text == before || len(text) > 2*maxFollowed {
			break
		}
	}
	return text
}

// anyLiteral is one literal as the follower writes it, and aList several.
const (
	anyLiteral = `('[^']*'|"[^"]*")`
	aList      = `((?:\s*(?:'[^']*'|"[^"]*")\s*,?){1,16})`
)

func bare(literal string) string { return literal[1 : len(literal)-1] }

func literalsIn(list string) []string {
	var out []string
	for _, l := range listItem.FindAllString(list, 16) {
		out = append(out, bare(l))
	}
	return out
}

var listItem = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// foldings are what languages do with literals, and the ways to a member or a module by
// its name.
var foldings = []struct {
	what *expression
	fold func(m []string) string
}{
	{newExpression(anyLiteral + `\s*\+\s*` + anyLiteral), func(m []string) string { return literalOf(bare(m[1]) + bare(m[2])) }},
	{newExpression(anyLiteral + `\.join\(\s*[\[({]` + aList + `[\])}]\s*\)`), func(m []string) string { return literalOf(strings.Join(literalsIn(m[2]), bare(m[1]))) }},
	{newExpression(`\[` + aList + `\]\.join\(?\s*` + anyLiteral + `?\s*\)?`), func(m []string) string {
		by := ","
		if m[2] != "" {
			by = bare(m[2])
		}
		return literalOf(strings.Join(literalsIn(m[1]), by))
	}},
	{newExpression(`\b(?:implode|join|strings\.Join|table\.concat)\(\s*` + anyLiteral + `\s*,\s*[\[(]?` + aList + `[\])]?\s*\)`), func(m []string) string { return literalOf(strings.Join(literalsIn(m[2]), bare(m[1]))) }},
	{newExpression(`\b(?:table\.concat|strings\.Join)\(\s*(?:\[\]string)?\{` + aList + `\}\s*(?:,\s*` + anyLiteral + `)?\s*\)`), func(m []string) string {
		by := ""
		if m[2] != "" {
			by = bare(m[2])
		}
		return literalOf(strings.Join(literalsIn(m[1]), by))
	}},
	{newExpression(anyLiteral + `(?:\[::-1\]|\.reverse\b(?:\(\))?|:reverse\(\)|\.split\((?:''|"")\)\.reverse\(\)\.join\((?:''|"")\))`), func(m []string) string { return literalOf(reversed(bare(m[1]))) }},
	{newExpression(`(?:\bstrrev|\bscalar\s+reverse|\bstring\.reverse|\breverse|(?:''|"")\.join\(reversed)\s*\(?\s*` + anyLiteral + `\s*\)(?:\))?`), func(m []string) string { return literalOf(reversed(bare(m[1]))) }},
	{newExpression(`\breversed\(\s*\[` + aList + `\]\s*\)|\[` + aList + `\](?:\[::-1\]|\.reverse\b(?:\(\))?|\.toReversed\(\))`), func(m []string) string {
		values := literalsIn(m[1] + m[2])
		slices.Reverse(values)
		return listOf(values)
	}},
	{newExpression(anyLiteral + `\.split\(\s*` + anyLiteral + `?\s*\)|` + anyLiteral + `\.split\b`), splitLiteral},
	{newExpression(`\[` + aList + `\]\s*\+\s*\[` + aList + `\]`), func(m []string) string { return listOf(append(literalsIn(m[1]), literalsIn(m[2])...)) }},
	{newExpression(`\[` + aList + `\]\[\s*(\d{1,2})\s*\]`), func(m []string) string {
		values := literalsIn(m[1])
		if n, err := strconv.Atoi(m[2]); err == nil && n < len(values) {
			return literalOf(values[n])
		}
		return m[0]
	}},
	{newExpression(`\{([^{}]{1,300})\}\[\s*` + anyLiteral + `\s*\]`), memberLiteral},
	{newExpression(anyLiteral + `(?:\[\s*(-?\d{0,3})\s*:\s*(-?\d{0,3})\s*\]|\.(?:slice|substring|substr)\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))`), cutLiteral},
	{newExpression(anyLiteral + `\s*\*\s*(\d{1,2})\b`), func(m []string) string {
		n, err := strconv.Atoi(m[2])
		if err != nil || n*len(m[1]) > maxValueOf {
			return m[0]
		}
		return literalOf(strings.Repeat(bare(m[1]), n))
	}},
	{newExpression(`\b(?:chr|Chr|String\.from(?:CharCode|CodePoint))\(\s*(\d{1,3}(?:\s*,\s*\d{1,3}){0,63})\s*\)`), func(m []string) string {
		if word := spelled(m[1]); word != "" && word != "'" && word != "\"" {
			return literalOf(word)
		}
		return m[0]
	}},
	{newExpression(anyLiteral + `\.(?:translate\(\s*str\.maketrans|tr)\(\s*` + anyLiteral + `\s*,\s*` + anyLiteral + `\s*\)\)?`), func(m []string) string {
		if made, is := translated([]string{"tr", bare(m[2]), bare(m[3])}, bare(m[1])); is {
			return literalOf(made)
		}
		return m[0]
	}},
	{newExpression(anyLiteral + `\s*(?:\+|\.)\s*\[` + aList + `\]`), func(m []string) string { // of a loop: one by one
		values := literalsIn(m[2])
		for n := range values {
			values[n] = bare(m[1]) + values[n]
		}
		return listOf(values)
	}},
	{newExpression(`\+\s*\(\s*` + anyLiteral + `\s*\)`), func(m []string) string { return "+" + m[1] }},
	{newExpression(`\[\.\.\.` + anyLiteral + `\]\.reverse\(\)\.join\((?:''|"")\)`), func(m []string) string { return literalOf(reversed(bare(m[1]))) }},
	{newExpression(anyLiteral + `\s*%\s*(?:\(` + aList + `\)|` + anyLiteral + `)`), func(m []string) string { return literalOf(withFilled(bare(m[1]), "%s", literalsIn(m[2]+m[3]))) }},
	{newExpression(anyLiteral + `\.format\(` + aList + `\)`), func(m []string) string { return literalOf(withFilled(bare(m[1]), "{}", literalsIn(m[2]))) }},
	{newExpression(`\b(?:sprintf|string\.format|fmt\.Sprintf|util\.format|format)\(\s*` + anyLiteral + `\s*,` + aList + `\)`), func(m []string) string { return literalOf(withFilled(bare(m[1]), "%s", literalsIn(m[2]))) }},
	{newExpression(anyLiteral + `\.(?:replace|replaceAll|gsub|sub)\(\s*` + anyLiteral + `\s*,\s*` + anyLiteral + `\s*\)`), func(m []string) string {
		return literalOf(strings.ReplaceAll(bare(m[1]), bare(m[2]), bare(m[3])))
	}},
	{newExpression(anyLiteral + `\.(?:lower|toLowerCase|downcase|strip|trim|encode|decode|toString)\((?:` + anyLiteral + `)?\)`), func(m []string) string { return literalOf(strings.TrimSpace(strings.ToLower(bare(m[1])))) }},
	{newExpression(`\b(?:(?:base64\.)?(?:urlsafe_|standard_)?b64decode|atob|base64_decode|decode_base64|Base64\.(?:strict_|urlsafe_)?decode64|Buffer\.from|bytes\.fromhex|binascii\.unhexlify|hex2bin|codecs\.decode|str_rot13)\(\s*` + anyLiteral + `(?:\s*,\s*` + anyLiteral + `)?\s*\)`), decodedLiteral},
	{newExpression(`\b(?:getattr|Reflect\.get|operator\.attrgetter)\(\s*([\w.()'"/, -]{1,200}?)\s*,\s*\[?\s*['"](\w{1,60})['"]\s*\]?\s*(?:,[^()]{0,40})?\)`), func(m []string) string { return m[1] + "." + m[2] }},
	{newExpression(`([\w)\]])(?:\?\.)?\[\s*['"](\w{1,60})['"]\s*\]\s*\(`), func(m []string) string { return m[1] + "." + m[2] + "(" }},
	{newExpression(`\.(?:public_send|send|__send__|method)[( ]\s*(?::|['"])(\w{1,60})['"]?\s*(?:,\s*|\))`), func(m []string) string { return "." + m[1] + "(" }},
	{newExpression(`->\{\s*['"](\w{1,60})['"]\s*\}|->['"](\w{1,60})['"]\s*\(`), func(m []string) string {
		if m[2] != "" {
			return "->" + m[2] + "("
		}
		return "->" + m[1]
	}},
	{newExpression(`\b(?:__import__|importlib\.import_module|import_module|require|import)\(\s*['"](?:node:)?([\w.-]{1,40})(/promises)?['"]\s*\)`), func(m []string) string { return m[1] }},
	{newExpression(`\bcall_user_func(?:_array)?\(\s*['"](\w{1,40})['"]\s*,`), func(m []string) string { return m[1] + "(" }},
	{newExpression(`\b(?:globals|locals|vars|builtins|__builtins__|globalThis|window|global)(?:\(\))?\[\s*['"](\w{1,60})['"]\s*\]`), func(m []string) string { return m[1] }},
	{newExpression(`(^|[=;{,(\s])['"]([a-z_]{2,40})['"]\(`), func(m []string) string { return m[1] + m[2] + "(" }},
}

// foldable tells the texts that one of the foldings may change.
var foldable = func() *screen {
	var all []*expression
	for _, rule := range foldings {
		all = append(all, rule.what)
	}
	return newScreen(all...)
}()

// withFilled writes values in the places that a format has for them.
func withFilled(format, hole string, values []string) string {
	for _, v := range values {
		format = strings.Replace(format, hole, v, 1)
	}
	return format
}

// splitLiteral is the list that a text is cut into.
func splitLiteral(m []string) string {
	by, text := "", m[1]+m[3]
	if m[2] != "" {
		if by = bare(m[2]); by == "" {
			return m[0]
		}
	}
	values := strings.Fields(bare(text))
	if by != "" {
		values = strings.Split(bare(text), by)
	}
	if len(values) < 2 || len(values) > 16 {
		return m[0]
	}
	return listOf(values)
}

// memberLiteral is the text that a member of an object of literals holds.
func memberLiteral(m []string) string {
	for _, pair := range memberPair.FindAllStringSubmatch(m[1], 16) {
		if strings.Trim(pair[1], `'"`) == bare(m[2]) {
			return pair[2]
		}
	}
	return m[0]
}

var memberPair = regexp.MustCompile(`('[^']*'|"[^"]*"|\w+)\s*(?::|=>)\s*('[^']*'|"[^"]*")`)

// cutLiteral is a part of a text, by its ends.
func cutLiteral(m []string) string {
	text := bare(m[1])
	from, to := 0, len(text)
	for _, end := range []struct {
		digits string
		at     *int
	}{{m[2] + m[4], &from}, {m[3] + m[5], &to}} {
		if n, err := strconv.Atoi(end.digits); err == nil {
			if *end.at = n; n < 0 {
				*end.at += len(text)
			}
		}
	}
	if strings.Contains(m[0], ".substr(") && m[5] != "" {
		to += from
	}
	if from, to = max(from, 0), min(to, len(text)); from > to {
		return m[0]
	}
	return literalOf(text[from:to])
}

// decodedLiteral is what a literal holds, if it is readable, and otherwise the call.
func decodedLiteral(m []string) string {
	forms := decodedForms(bare(m[1]))
	rotated := strings.Contains(m[0], "rot")
	for n, form := range forms {
		if last := n == len(forms)-1; last == rotated && printable([]byte(form)) {
			return literalOf(form)
		}
	}
	return m[0]
}
