package toolcall

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/code"
)

// listMark begins each element of a variable that is an array. No variable of a
// shell can hold it.
const listMark = "\x00"

func list(values []string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(listMark + v)
	}
	return b.String()
}

// elements returns the elements of an array.
func elements(value string) ([]string, bool) {
	if !strings.HasPrefix(value, listMark) {
		return nil, false
	}
	return strings.Split(value[len(listMark):], listMark), true
}

// assignArray follows a=(…) and a[1]=….
func (s *shell) assignArray(a *syntax.Assign) bool {
	if a.Array != nil {
		var values []string
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				words, _ := s.fields([]*syntax.Word{e.Value})
				values = append(values, words...)
			}
		}
		if old, is := elements(s.vars[a.Name.Value]); is && a.Append {
			values = append(old, values...)
		}
		s.set(a.Name.Value, list(values))
		return true
	}
	index, ok := a.Index.(*syntax.Word)
	if !ok || a.Value == nil {
		return false
	}
	values, _ := elements(s.vars[a.Name.Value])
	n, err := strconv.Atoi(s.literal(index))
	if err != nil || n < 0 || n > 64 {
		n = len(values)
	}
	values = slices.Clone(values)
	for len(values) <= n {
		values = append(values, "")
	}
	values[n] = s.literal(a.Value)
	s.set(a.Name.Value, list(values))
	return true
}

// setArguments sets the positional parameters, as set -- and a call do.
func (s *shell) setArguments(values []string) {
	s.set("@", list(values))
	s.set("*", list(values))
	s.set("#", strconv.Itoa(len(values)))
	for i := range 9 {
		s.set(strconv.Itoa(i+1), wordAt(values, i))
	}
}

var positional = strings.Fields("0 @ * # 1 2 3 4 5 6 7 8 9")

// within reads something with positional parameters of its own.
func (s *shell) within(values []string, read func()) {
	before := make(map[string]string)
	for _, name := range positional {
		if v, known := s.vars[name]; known {
			before[name] = v
		}
	}
	s.setArguments(values)
	read()
	for _, name := range positional {
		v, known := before[name]
		if !known {
			delete(s.vars, name)
			s.versions++
			s.version = s.versions
			continue
		}
		s.set(name, v)
	}
}

// define keeps a function for its calls. Its body is also read where it stands,
// with arguments that nobody knows.
func (s *shell) define(n *syntax.FuncDecl) {
	if n.Name == nil {
		return
	}
	s.function(n)
	note(&s.functions, n.Name.Value, n.Body)
	unknown := slices.Repeat([]string{unknownText}, 9)
	s.within(unknown, func() { syntax.Walk(n.Body, s.visit) })
}

// maxInvoked bounds the calls of functions that are followed: each reads a body
// again, and functions that call each other multiply.
const maxInvoked = 1024

// invoked reads the body of a function or the text of an alias for one call, and
// reports whether the command was such a call.
func (s *shell) invoked(argv []string) bool {
	body, known := s.functions[argv[0]]
	text, alias := s.aliases[argv[0]]
	if !known && !alias || s.calls > maxNested {
		return false
	}
	if s.invokes++; s.invokes > maxInvoked {
		s.unreadable()
		return true
	}
	s.calls++
	defer func() { s.calls-- }()
	if known {
		s.within(argv[1:], func() { syntax.Walk(body, s.visit) })
		return true
	}
	delete(s.aliases, argv[0]) // an alias is not expanded within itself
	s.shellIn(text+" "+quoted(argv[1:]), s)
	note(&s.aliases, argv[0], text)
	return true
}

// quoted spells words as a shell reads them.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}

// binds follows the builtins that give names a meaning for later.
func (s *shell) binds(name string, argv []string) {
	switch name {
	case "set":
		if at := slices.Index(argv, "--"); at > 0 {
			s.setArguments(argv[at+1:])
		} else if len(argv) > 1 && !strings.HasPrefix(argv[1], "-") && !strings.HasPrefix(argv[1], "+") {
			s.setArguments(argv[1:])
		}
	case "printf":
		if len(argv) > 3 && argv[1] == "-v" {
			text, known := printedBy(append([]string{"printf"}, argv[3:]...))
			if !known {
				text = unknownText
			}
			s.set(argv[2], text)
		}
	case "terraform", "tofu", "terragrunt":
		if len(argv) > 3 && argv[1] == "workspace" && (argv[2] == "select" || argv[2] == "new") {
			s.set("TF_WORKSPACE", argv[len(argv)-1])
		}
	case "alias":
		for _, w := range argv[1:] {
			if to, text, defines := strings.Cut(w, "="); defines {
				note(&s.aliases, to, text)
			}
		}
	case "hash":
		if len(argv) > 3 && argv[1] == "-p" {
			note(&s.aliases, argv[3], argv[2])
		}
	}
}

// takes gives a text to read, mapfile and readarray, as their standard input.
func (s *shell) takes(argv []string, text string) {
	text = strings.TrimRight(text, "\n")
	flags := options{values: "adinNptu"}
	if programName(argv[0]) != "read" {
		flags = options{values: "dnOsuCc"}
	}
	names := flags.operandsOf(argv)
	if programName(argv[0]) != "read" {
		if len(names) > 0 {
			s.set(names[0], list(strings.Split(text, "\n")))
		}
		return
	}
	if i := slices.Index(argv, "-a"); i > 0 && i+1 < len(argv) {
		s.set(argv[i+1], list(strings.Fields(text)))
		return
	}
	if len(names) == 0 {
		s.set("REPLY", text)
	}
	fields := strings.Fields(text)
	for i, name := range names {
		if i == len(names)-1 {
			s.set(name, strings.Join(fields[min(i, len(fields)):], " "))
			return
		}
		s.set(name, wordAt(fields, i))
	}
}

// operandsOf returns the words that are neither flags nor their values.
func (o options) operandsOf(argv []string) []string {
	var out []string
	for i := 1; i < len(argv); i++ {
		if strings.HasPrefix(argv[i], "-") && len(argv[i]) > 1 {
			i += o.valueWords(argv[i])
			continue
		}
		out = append(out, argv[i])
	}
	return out
}

// globbed are the programs that a pattern in place of a command's name is
// compared with.
var globbed = strings.Fields("rm dd sh bash zsh dash curl wget cat sudo chmod chown shred mkfs nc python3 perl env find xargs base64 scp docker podman kubectl helm terraform tofu git aws gcloud az psql mysql dropdb redis-cli etcdctl zfs systemctl crontab mongosh npm")

// commandName is the program that a pattern as a command's name stands for:
// /bin/r? is rm wherever the folder has it.
func commandName(word string) string {
	name := programName(word)
	if bare := strings.ReplaceAll(name, unknownText, ""); bare != name && slices.Contains(globbed, bare) {
		return bare // what nobody knows may be nothing
	}
	if !strings.ContainsAny(name, "*?[") || name == "[" || name == "[[" {
		return name
	}
	for _, program := range globbed {
		if match, err := path.Match(name, program); err == nil && match {
			return program
		}
	}
	return name
}

// translated is the output of tr.
func translated(argv []string, in string) (string, bool) {
	sets := operands(argv)
	if hasFlag(argv, 'd', "--delete") && len(sets) == 1 {
		from := code.Characters(sets[0])
		return strings.Map(func(c rune) rune {
			if slices.Contains(from, c) {
				return -1
			}
			return c
		}, in), true
	}
	if len(sets) != 2 {
		return "", false
	}
	return code.Transliterate(in, sets[0], sets[1])
}

// function finds the fork bomb: a function that starts itself twice.
func (s *shell) function(n *syntax.FuncDecl) {
	if n.Name == nil {
		return
	}
	again, spawns := 0, false
	syntax.Walk(n.Body, func(node syntax.Node) bool {
		switch m := node.(type) {
		case *syntax.CallExpr:
			if len(m.Args) > 0 && m.Args[0].Lit() == n.Name.Value {
				again++
			}
		case *syntax.Stmt:
			spawns = spawns || m.Background
		}
		return true
	})
	if again > 1 || again == 1 && spawns {
		s.breaks(DestructiveCommand)
	}
}
