package code

import (
	"regexp"
	"strings"
)

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
	if next := strings.TrimLeft(rest, " \t"); next == "" || next[0] != '=' && next[0] != ':' && next[0] != ',' && !strings.HasPrefix(next, "<-") || strings.HasPrefix(next, "==") || strings.HasPrefix(next, "=>") {
		return 0
	}
	if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "+=") {
		return 0
	}
	if m := assigned.FindStringSubmatch(rest[:min(len(rest), MaxValue)]); m != nil {
		if after := rest[len(m[0]):]; strings.HasPrefix(after, "=") || strings.HasPrefix(after, "~") || strings.HasPrefix(after, ">") {
			return 0
		}
		if m[2] != "" && !declared.MatchString(f.text[max(0, start-maxName):start]) {
			return 0 // if name: other = value
		}
		if _, known := f.values[name]; known && m[3] == "<-" {
			return 0 // of another language, less than the negative
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
		if len(value) <= MaxValue {
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
			if value == "" || !f.spend(costWord) || len(value) > MaxValue || name == "_" {
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
	if at <= 0 || len(receiver) > MaxValue {
		return
	}
	for _, name := range namesIn(names) {
		f.values[name], f.each[name] = receiver[:at], receiver[:at]
	}
}

var (
	importLine  = regexp.MustCompile(`^(?:from\s+[\w.]+\s+import\s+(?:\([^)]{0,400}\)|[^\n;]{1,400})|import\s+(?:[^\n;'"]{0,400}?\sfrom\s+)?['"][^'"\n]{1,200}['"]|import\s+[\w., ]{1,400})`)
	pythonFrom  = regexp.MustCompile(`^from\s+([\w.]+)\s+import\s+([^#]+)$`)
	scriptFrom  = regexp.MustCompile(`^import\s+(.*?)\s+from\s+['"]([^'"]+)['"]$`)
	pulledApart = regexp.MustCompile(`^\s*[\[{(]([^{}()=\[\]]{1,400})[\]})]\s*=\s*`)
	assigned    = regexp.MustCompile(`^((?:\s*,\s*\$?\w+){0,4})[ \t]*(:[ \t]*&?[\w.\[\], |]{1,60}(?:<[\w.,& \[\]]{1,40}>)?)?[ \t]*(:?=|<-)[ \t]*`)
	declared    = regexp.MustCompile(`(?:^|[\n;{(,]|\b(?:let|mut|const|var|val|lateinit|final|static|readonly|public|private|protected|export))[ \t]*$`)
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

// maxName bounds the names that imports bind.
const maxName = 64

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
		if from != "" && from != "*" && module+from != to && named.FindString(to) == to && len(from) < maxName {
			f.values[to] = module + from
		}
	}
}
