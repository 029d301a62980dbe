package toolcall

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxNested bounds shells within shells: sh -c "sh -c …", and commands that
	// run commands: env nice timeout ….
	maxNested = 6

	// maxSyntax bounds substitutions, groups and functions within each other.
	// Nobody writes ten; what stands within is read again when a variable
	// changes on the way to it, so that depth multiplies the work.
	maxSyntax = 16

	// maxOpen bounds the parentheses, and the expansions, that are open at once, before
	// a parser that takes quadratic time for them is asked. More than nest are allowed
	// for those that are quoted and never closed.
	maxOpen = 256

	// maxTree bounds the depth of what the parser made. A pipe, or a list of commands,
	// nests each command in the next: nobody writes a thousand in one.
	maxTree = 2048
)

// shell is one command text under reading. It follows assignments and changes
// of folder from statement to statement, as a shell would, and runs nothing.
type shell struct {
	*reading
	*learned
	folder string    // after cd; "" while unknown
	trial  *[]change // how to undo the assignments of an expansion on trial

	projected map[*syntax.CallExpr]projection // what the filter behind a command lets through
	let       projection                      // the same of the command that runs

	// What was read of a node, while the variables stay as they are.
	words   map[*syntax.CallExpr]*expansion
	outputs map[*syntax.Stmt]output
	facts   map[syntax.Node]commandEffects
	counted map[*syntax.Word]int // the version at which one that holds no command was read
}

// learned is what a text says that holds from there on, and in the shells that it starts.
// The maps are made when there is something to note, see [note]: most texts say none of it.
type learned struct {
	vars         map[string]string
	fetched      map[string]bool // files that a downloader wrote
	functions    map[string]*syntax.Stmt
	aliases      map[string]string
	references   map[string]string // names that declare -n made stand for others
	links        map[string]string // links that the text makes, in the folder it is in
	written      map[string]string // what the text itself wrote into files
	emptyFolders map[string]bool   // that the text has made, and nothing has filled
}

// note puts a value into a map, which it makes if there is none.
func note[K comparable, V any](in *map[K]V, key K, value V) {
	if *in == nil {
		*in = make(map[K]V)
	}
	(*in)[key] = value
}

// shell reads a command line. What is no shell at all, such as plain words, is
// a harmless command of that name.
func (r *reading) shell(text string) { r.shellIn(text, nil) }

// script reads a script that the call writes to a file: only what destroys or
// runs unread code counts, since install scripts rightly say sudo.
func (r *reading) script(text string) {
	sub := *r // with the same budget
	sub.broken = make(map[Invariant]bool)
	sub.shell(text)
	for _, v := range []Invariant{DestructiveCommand, RemoteCodeExecution} {
		if sub.broken[v] {
			r.breaks(v)
		}
	}
}

// shellIn reads a command line that the parent, if there is one, would run.
func (r *reading) shellIn(text string, parent *shell) {
	if r.nested > maxNested || openParentheses(text) > maxOpen || openExpansions(text) > maxOpen {
		r.unreadable()
		return
	}
	if !r.spend(costCommand + costParse*len(text)) {
		return
	}
	r.nested++
	defer func() { r.nested-- }()
	text = r.plainText(text)
	file, err := r.parse(text)
	windows := r.tool.windows || r.nested == 1 && isOfWindows(text)
	if err != nil {
		r.tokens(text)
		if windows {
			r.windows(text)
		}
		return
	}
	depth, calls := nesting(file)
	if depth > maxSyntax {
		r.unreadable()
		return
	}
	if windows {
		r.windows(text)
	}
	s := &shell{reading: r, words: make(map[*syntax.CallExpr]*expansion, calls), counted: make(map[*syntax.Word]int, 2*calls)}
	if s.learned = new(learned); parent == nil {
		s.vars = maps.Clone(r.variables)
		for _, name := range slices.Sorted(maps.Keys(r.variables)) {
			s.startsLater(name, r.variables[name])
		}
	} else {
		s.learned, s.folder = parent.learned, parent.folder
	}
	syntax.Walk(file, s.visit)
}

// isOfWindows reports whether a text is one for a shell of Windows. Most texts have none of the
// signs, which are looked for first.
func isOfWindows(text string) bool {
	return slices.ContainsFunc(windowsHints, func(hint string) bool { return strings.Contains(text, hint) }) && ofWindows.matches(text)
}

var windowsHints = strings.Fields(`%\ %/ $env: $Env: $ENV: Get- Set- Remove- New- Invoke- Start- Stop- Add- Clear- Disable- Copy- Move-`)

// ofWindows is what stands in a text that a shell of Windows runs, whatever its tool is called.
var ofWindows = screenOf(`(?i)%(?:temp|tmp|appdata|localappdata|userprofile|systemroot|windir|programdata|public)%`, `(?i)\$env:(?:temp|tmp|appdata|localappdata|userprofile|systemroot|windir|programdata|public)\b`, `\b(?:Get|Set|Remove|New|Invoke|Start|Stop|Add|Clear|Disable|Copy|Move)-(?:Item|ChildItem|ItemProperty|Content|Service|Process|Volume|Disk|Partition|Local\w+|AD\w+|WmiObject|CimInstance|Expression|WebRequest|RestMethod|EventLog|WinEvent|MpPreference|NetFirewall\w+|ScheduledTask|DnsClient\w+|ExecutionPolicy|Command|BitsTransfer|VM)\b`)

// parse makes the tree of a text.
func (r *reading) parse(text string) (*syntax.File, error) {
	if file := plainCommand(text); file != nil {
		return file, nil
	}
	if r.parser == nil {
		r.parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	return r.parser.Parse(strings.NewReader(text), "")
}

// plainCommand makes the tree of one command of plain words, as the parser would but for the
// positions, and nil of anything else. Most texts that may be commands are such words, and
// the parser begins each text with memory for a hundred.
func plainCommand(text string) *syntax.File {
	for i := range len(text) {
		if c := text[i]; !alphanumeric(c) && strings.IndexByte(" _./:,@%+-", c) < 0 {
			return nil
		}
	}
	fields := strings.Fields(text)
	if len(fields) == 0 || shellKeywords[fields[0]] {
		return nil
	}
	var tree struct { // what is made together is allocated together
		file  syntax.File
		stmts [1]*syntax.Stmt
		stmt  syntax.Stmt
		call  syntax.CallExpr
	}
	words := make([]struct {
		word    syntax.Word
		parts   [1]syntax.WordPart
		literal syntax.Lit
	}, len(fields))
	tree.call.Args = make([]*syntax.Word, len(fields))
	for i, field := range fields {
		w := &words[i]
		w.literal.Value, w.parts[0], w.word.Parts = field, &w.literal, w.parts[:]
		tree.call.Args[i] = &w.word
	}
	tree.stmt.Cmd, tree.stmts[0], tree.file.Stmts = &tree.call, &tree.stmt, tree.stmts[:]
	return &tree.file
}

// shellKeywords are the words that are no command's name where they begin one.
var shellKeywords = words("if then elif else fi while until for in case esac select do done function time coproc let declare local export readonly typeset nameref")

// openParentheses tells how many parentheses are open at once at most.
func openParentheses(text string) int {
	most, now := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			now++
			most = max(most, now)
		case ')':
			now = max(now-1, 0)
		}
	}
	return most
}

// openExpansions tells how many expansions such as ${a are open at once at most.
func openExpansions(text string) int {
	most, now := 0, 0
	for i := range len(text) {
		switch {
		case text[i] == '{' && i > 0 && text[i-1] == '$':
			now++
			most = max(most, now)
		case text[i] == '}':
			now = max(now-1, 0)
		}
	}
	return most
}

// nesting tells how deeply a text nests what the shell reads on its own, or that its
// tree is too deep, and how many commands it has.
func nesting(file *syntax.File) (most, calls int) {
	var at struct {
		path             []bool // of the nodes above, those that count
		memory           [32]bool
		most, now, calls int
	}
	at.path = at.memory[:0]
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil { // the end of the last node
			if at.path[len(at.path)-1] {
				at.now--
			}
			at.path = at.path[:len(at.path)-1]
			return true
		}
		counts := false
		switch n := n.(type) {
		case *syntax.Word:
			// Nothing in there counts, and three levels more are none too many.
			if _, _, written := asWritten(n); written && len(at.path)+3 <= maxTree {
				return false
			}
		case *syntax.CallExpr:
			at.calls++
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.Subshell, *syntax.Block, *syntax.FuncDecl, *syntax.ExtGlob:
			counts = true
			at.now++
			at.most = max(at.most, at.now)
		}
		at.path = append(at.path, counts)
		if len(at.path) > maxTree {
			at.most = maxSyntax + 1
		}
		if at.most > maxSyntax { // the walk would call the end of this node too
			if counts {
				at.now--
			}
			at.path = at.path[:len(at.path)-1]
			return false
		}
		return true
	})
	return at.most, at.calls
}

// visit is called in the order of the text, which is near enough to the order
// of execution for assignments to be known where they are used.
func (s *shell) visit(node syntax.Node) bool {
	if s.spent() {
		return false
	}
	switch n := node.(type) {
	case *syntax.Stmt:
		s.redirects(n)
		if call, ok := n.Cmd.(*syntax.CallExpr); ok {
			s.here(n.Redirs, call)
			for _, d := range n.Redirs {
				if d.Op == syntax.RdrIn && d.Word != nil {
					name := s.literal(d.Word)
					s.input(s.argv(call), name)
					if text, known := s.written[path.Base(name)]; known && contains(s.argv(call), "xargs") {
						s.perLine(s.argv(call), nil, text, true)
					} else if known {
						s.feed(unwrap(s.argv(call)), text)
					}
				}
			}
		}
		if _, simple := n.Cmd.(*syntax.CallExpr); !simple && n.Cmd != nil {
			s.loopInput(n)
		}
		s.keeps(n)
	case *syntax.CallExpr:
		s.call(n)
	case *syntax.DeclClause:
		s.declare(n)
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			s.pipe(n)
		}
	case *syntax.ForClause:
		return !s.gathers(n)
	case *syntax.WordIter:
		items, _ := s.fields(n.Items)
		value := strings.Join(items, " ")
		if value == unknownText && len(n.Items) > 0 {
			value = s.origin(n.Items[0])
		}
		s.set(n.Name.Value, value)
	case *syntax.FuncDecl:
		s.define(n)
		return false
	case *syntax.Word:
		_, _, written := asWritten(n)
		return !written
	}
	return true
}

func (s *shell) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		s.assign(a)
	}
	if len(n.Args) == 0 {
		return
	}
	argv := s.run(n)
	s.substituted(argv, n)
	s.emptied(argv, n)
	s.let = s.projected[n]
	if slices.Contains(argv, madeByMktemp) && slices.ContainsFunc(n.Args, substitutes) {
		note(&s.emptyFolders, madeByMktemp, true) // it is made for this command
	}
	s.command(argv, 0)
	s.let = wholeText
}

// substitutes reports whether a word is what a command prints.
func substitutes(w *syntax.Word) bool {
	parts := w.Parts
	if q, quoted := parts[0].(*syntax.DblQuoted); quoted {
		parts = q.Parts
	}
	if len(parts) == 0 {
		return false
	}
	_, is := parts[0].(*syntax.CmdSubst)
	return is
}

// emptied finds rm -rf "$X"/* where nothing in the text says what X is: unset, it
// is the root. Names that build systems set for a folder of their own are trusted.
func (s *shell) emptied(argv []string, n *syntax.CallExpr) {
	inner := unwrap(argv)
	if len(inner) == 0 || programName(inner[0]) != "rm" || !hasFlag(inner, 'r', "--recursive") && !hasFlag(inner, 'R', "") {
		return
	}
	for _, w := range n.Args {
		if name, rest := leadingVariable(w); name != "" && emptyRest[rest] && !ownFolder.MatchString(name) {
			if _, known := s.vars[name]; !known && (environment{shell: s}).Get(name).Str == unknownText {
				s.breaks(DestructiveCommand)
			}
		}
	}
}

var (
	emptyRest = words("/ /* /.* /** /{*,.*}")
	ownFolder = newExpression(`(?i)tmp|temp|build|out|dist|cache|work|target|artifact|coverage|stag|pwd|bin|gen|src|test|log|^\d$`)
)

// leadingVariable returns the plain variable that a word begins with, and the
// literal rest of the word.
func leadingVariable(w *syntax.Word) (name, rest string) {
	parts := slices.Clone(w.Parts)
	if len(parts) > 0 {
		if q, quoted := parts[0].(*syntax.DblQuoted); quoted {
			parts = append(slices.Clone(q.Parts), parts[1:]...)
		}
	}
	if root, is := fromRoot(parts); is && len(parts) < 4 {
		parts = append(slices.Clone(parts[1:]), &syntax.Lit{Value: root})[:2] // "/$X" is the root as "$X/" is
	}
	if len(parts) != 2 {
		return "", ""
	}
	p, is := parts[0].(*syntax.ParamExp)
	lit, literal := parts[1].(*syntax.Lit)
	if !is || !literal || p.Param == nil || p.Exp != nil || p.Repl != nil || p.Slice != nil || p.Index != nil || p.Excl || p.Length {
		return "", ""
	}
	return p.Param.Value, lit.Value
}

// fromRoot returns the root that a word of several parts begins with.
func fromRoot(parts []syntax.WordPart) (string, bool) {
	if len(parts) < 2 {
		return "", false
	}
	lit, is := parts[0].(*syntax.Lit)
	if q, quoted := parts[1].(*syntax.DblQuoted); is && quoted && len(q.Parts) == 1 {
		parts[1] = q.Parts[0]
	}
	return "/", is && lit.Value == "/"
}

func (s *shell) declare(n *syntax.DeclClause) {
	refers := slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool { return a.Name == nil && s.literal(a.Value) == "-n" })
	for _, a := range n.Args {
		if a.Name != nil && refers && a.Value != nil {
			note(&s.references, a.Name.Value, s.literal(a.Value))
			continue
		}
		if a.Name != nil {
			s.assign(a)
		}
	}
	dumps := len(n.Args) == 0 || len(n.Args) == 1 && n.Args[0].Name == nil && (s.literal(n.Args[0].Value) == "-p" || s.literal(n.Args[0].Value) == "-x")
	if dumps && n.Variant.Value != "local" {
		s.breaks(CredentialAccess)
	}
}

func (s *shell) assign(a *syntax.Assign) {
	if a.Name == nil || s.assignArray(a) || a.Naked || a.Value == nil && a.Append {
		return
	}
	value := ""
	if a.Value != nil {
		value = s.literal(unescapedWord(a.Value))
	}
	if value == unknownText {
		value = s.origin(a.Value)
	}
	if a.Append {
		value = s.vars[a.Name.Value] + value
	}
	s.set(a.Name.Value, value)
	s.startsLater(a.Name.Value, value)
	if a.Name.Value == "HISTFILE" && (value == "" || value == "/dev/null") || a.Name.Value == "HISTSIZE" && value == "0" {
		s.breaks(ConstraintTampering)
	}
}

// unescapedWord is a word without the backslashes outside of its quotes, which the library
// leaves in a value.
func unescapedWord(w *syntax.Word) *syntax.Word {
	if !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, is := p.(*syntax.Lit)
		return is && strings.Contains(lit.Value, `\`) && !strings.Contains(lit.Value, `:\`)
	}) {
		return w
	}
	out := &syntax.Word{Parts: slices.Clone(w.Parts)}
	for i, p := range out.Parts {
		if lit, is := p.(*syntax.Lit); is {
			plain := *lit
			plain.Value = backslashed.ReplaceAllString(lit.Value, "$1")
			out.Parts[i] = &plain
		}
	}
	return out
}

var backslashed = newExpression(`\\([A-Za-z0-9/._-])`)

// gathers reads a loop round by round if a round adds to what the one before has made, and
// reports whether it did: what is put together so is known only then.
func (s *shell) gathers(n *syntax.ForClause) bool {
	each, is := n.Loop.(*syntax.WordIter)
	if !is || !s.addsUp(n.Do) {
		return false
	}
	items, made := s.fields(each.Items)
	if len(items) < 2 || len(items) > maxBlocks {
		return false
	}
	for _, m := range made {
		s.set(m.name, m.value)
	}
	for _, w := range each.Items {
		syntax.Walk(w, s.visit)
	}
	for _, item := range items {
		s.set(each.Name.Value, item)
		for _, st := range n.Do {
			syntax.Walk(st, s.visit)
		}
	}
	return true
}

// addsUp reports whether statements make a variable of itself and something else.
func (s *shell) addsUp(statements []*syntax.Stmt) bool {
	adds := false
	for _, st := range statements {
		call, is := st.Cmd.(*syntax.CallExpr)
		if !is || len(call.Args) > 0 {
			continue
		}
		for _, a := range call.Assigns {
			adds = adds || a.Append || a.Index != nil
			if a.Value == nil || a.Name == nil || adds {
				continue
			}
			syntax.Walk(a.Value, func(node syntax.Node) bool {
				p, is := node.(*syntax.ParamExp)
				adds = adds || is && p.Param != nil && p.Param.Value == a.Name.Value
				return !adds && s.spend(1)
			})
		}
	}
	return adds
}

// origin tells of a value that is not known what it was made of.
func (s *shell) origin(w *syntax.Word) string {
	switch f := s.factsOf(w); {
	case f.fetches:
		return fetchedText
	case f.reads:
		return contentsText
	}
	return unknownText
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

// here reads the script that an interpreter gets from a here-document.
func (s *shell) here(redirects []*syntax.Redirect, call *syntax.CallExpr) {
	if len(call.Args) == 0 {
		return
	}
	words := s.argv(call)
	for _, d := range redirects {
		var text string
		switch {
		case d.Hdoc != nil:
			text = s.literal(d.Hdoc)
		case d.Op == syntax.WordHdoc:
			text = s.literal(d.Word)
		default:
			continue
		}
		if again := s.argv(call); len(again) > 0 && programName(again[0]) == "xargs" {
			s.perLine(again, nil, text, true)
			continue
		}
		argv := unwrap(words)
		s.feed(argv, text)
		if d.Word != nil && s.factsOf(d.Word).fetches && readsProgram(argv) {
			s.breaks(RemoteCodeExecution)
		}
	}
}

// feed gives a text to a command as its standard input.
func (s *shell) feed(argv []string, text string) {
	switch {
	case len(argv) == 0:
	case isWindowsShell(argv[0]) && readsProgram(argv):
		s.windows(text)
	case isShell(argv[0]) && readsProgram(argv):
		s.shellIn(text, s)
	case programName(argv[0]) == "curl" && curlReadsOptions(argv):
		s.command(append(slices.Clone(argv), curlOptions(text)...), 1)
	case argv[0] == "read" || argv[0] == "mapfile" || argv[0] == "readarray":
		s.takes(argv, text)
	case argv[0] == "tee":
		for _, name := range operands(argv) {
			s.write(name, text)
		}
	case programName(argv[0]) == "make" && wordAt(argv, 1) == "-f" && (wordAt(argv, 2) == "-" || wordAt(argv, 2) == "/dev/stdin"):
		s.recipes(text)
	case programName(argv[0]) == "at" || programName(argv[0]) == "batch":
		s.shellIn(text, s)
	case (programName(argv[0]) == "kubectl" || programName(argv[0]) == "oc") && (slices.Contains(argv, "apply") || slices.Contains(argv, "create")):
		s.manifest(text)
		if bindsRole.MatchString(text) && adminRole.matches(text) {
			s.breaks(PrivilegeEscalation)
		}
	case programName(argv[0]) == "vault" && slices.Contains(argv, "policy"):
		if everyPath.MatchString(text) {
			s.breaks(PrivilegeEscalation)
		}
	case programName(argv[0]) == "nsupdate":
		if everyRecord.MatchString(text) {
			s.breaks(DestructiveOperation)
		}
	case (programName(argv[0]) == "docker" || programName(argv[0]) == "podman") && slices.Contains(argv, "build"):
		s.recipe("Dockerfile", text)
	case programName(argv[0]) == "crontab":
		s.breaks(Persistence)
	case isInterpreter(argv[0]) && readsProgram(argv):
		s.code(text)
	case farShells[programName(argv[0])].values != "" && len(hop(programName(argv[0]), argv)) == 0:
		s.shellIn(text, s)
	case len(hop(programName(argv[0]), argv)) > 0:
		if words := unwrap(hop(programName(argv[0]), argv)); len(words) > 0 && s.calls < maxNested {
			s.calls++
			s.feed(innermost(words), text)
			s.calls--
		}
	case programName(argv[0]) == "sftp" && putFile.MatchString(text):
		s.sends(argv, isCredentialFile(s.resolve(putFile.FindStringSubmatch(text)[1])))
	case speaks[programName(argv[0])]:
		for _, command := range escapes([]string{argv[0], text}) {
			s.opens(command)
		}
	case isSQLClient(programName(argv[0])):
		s.surely(text)
		for _, command := range escapes(append([]string{argv[0]}, text)) {
			s.opens(command)
		}
		for line := range strings.Lines(text) {
			s.byWords(programName(argv[0]), []string{argv[0], strings.TrimSpace(line)})
		}
	case programName(argv[0]) == "mongosh" || programName(argv[0]) == "mongo":
		s.code(text)
	}
}

var (
	everyPath   = newExpression(`path\s+"(?:\*|sys/\*)"\s*\{[^}]*(?:sudo|create|root)`)
	bindsRole   = newExpression(`\bkind"?\s*:\s*"?(?:Cluster)?RoleBinding\b`)
	everyRecord = newExpression(`(?m)^\s*update\s+del(?:ete)?\s+[\w-]+\.[\w-]+\.?\s*$`)
)

// speaks are the programs that take commands of their own, and shell commands among
// them, from their input.
var speaks = words("ed ex vi vim gdb lldb ftp sftp lftp mail bc")

// innermost is the command of a shell's one-word program, where it is one command.
func innermost(argv []string) []string {
	if program, _, given := programOf(argv); given && !strings.ContainsAny(program, ";|&\n$`'\"") {
		return unwrap(strings.Fields(program))
	}
	return argv
}

// redirects reads where output goes and input comes from.
func (s *shell) redirects(n *syntax.Stmt) {
	for _, d := range n.Redirs {
		if d.Word == nil || d.Hdoc != nil || d.Op == syntax.WordHdoc {
			continue
		}
		name := s.literal(d.Word)
		switch {
		case strings.HasPrefix(name, "/dev/tcp/") || strings.HasPrefix(name, "/dev/udp/"):
			if !ownPort.MatchString(name) || !s.saysNothing(n) {
				s.breaks(RemoteCodeExecution)
			}
		case d.Op == syntax.RdrIn:
			s.reads(name)
		case d.Op == syntax.RdrOut || d.Op == syntax.AppOut || d.Op == syntax.RdrAll || d.Op == syntax.AppAll || d.Op == syntax.RdrClob:
			if !s.writesEveryday(n, d, name) {
				s.writes(name)
			}
			if d.Op == syntax.RdrOut && holdsData.MatchString(name) && s.saysNothing(n) {
				s.losesEach([]string{name})
			}
		}
	}
}

// writesEveryday reports whether a statement writes into a file that starts code only what such
// a file has on any day.
func (s *shell) writesEveryday(n *syntax.Stmt, d *syntax.Redirect, name string) bool {
	form := everydayForm(name)
	if form == nil || d.Op == syntax.RdrOut && form == profileLine {
		return false // the rest of a start file would be lost
	}
	text, known := s.output(n, 0)
	return known && everydayLines(text, form)
}

// ownPort is a port of this machine, or the ports that a loop goes through.
var ownPort = newExpression(`^/dev/tcp/(?:localhost|127\.\d+\.\d+\.\d+|::1)/[^/]+$`)

// saysNothing reports whether a statement only tries whether somebody listens.
func (s *shell) saysNothing(n *syntax.Stmt) bool {
	call, is := n.Cmd.(*syntax.CallExpr)
	if n.Cmd == nil || !is {
		return n.Cmd == nil
	}
	argv := s.argv(call)
	switch {
	case len(argv) == 0:
		return true
	case len(argv) > 1:
		return false
	case argv[0] == "cat":
		return slices.ContainsFunc(n.Redirs, func(d *syntax.Redirect) bool {
			return d.Op == syntax.RdrIn && d.Word != nil && s.literal(d.Word) == "/dev/null"
		})
	}
	return argv[0] == "echo" || argv[0] == ":" || argv[0] == "true"
}

// tokens judges a text that no shell would parse. It is suspicious only where
// one of the gravest commands is in it as such.
func (r *reading) tokens(text string) {
	if !r.spend(costScreen * len(text)) {
		return
	}
	found := tokenScreen.matching(text, false)
	for i, t := range dangerousTokens {
		if found&(1<<i) != 0 {
			r.breaks(t.invariant)
		}
	}
}

var dangerousTokens = []struct {
	pattern   *expression
	invariant Invariant
}{
	{newExpression(`(?m)(?:^|[;&|(\x60'"])\s*(?:\S*/)?rm\s+(?:-\S+\s+)*-\S*[rR]\S*\s+(?:-\S+\s+)*['"]?(?:/|~|\$HOME)(?:[\s*;&|'")]|etc|usr|home|var|boot|$)`), DestructiveCommand},
	{newExpression(`(?m)(?:^|[;&|(\x60'"])\s*mkfs(?:\.\w+)?\s+\S*/dev/|\bdd\b[^\n;|&]*\bof=/dev/(?:sd|nvme|hd|vd|xvd|disk|mmc)`), DestructiveCommand},
	{newExpression(`\b(?:curl|wget)\b[^\n;]*\|\s*(?:sudo\s+)?(?:\S*/)?(?:ba|z|da|k|a)?sh\b`), RemoteCodeExecution},
	{newExpression(`\bbase64\s+(?:-d|-D|--decode)\b[^\n;]*\|\s*(?:\S*/)?(?:ba|z|da|k|a)?sh\b`), RemoteCodeExecution},
	{newExpression(`/dev/(?:tcp|udp)/[\w.]+/\d`), RemoteCodeExecution},
	{newExpression(`(?m)(?:^|[;&|(\x60])\s*sudo\s+\S`), PrivilegeEscalation},
	{newExpression(`(?m)(?:^|[;&|(\x60])\s*(?:cat|less|head|tail|cp|scp|base64)\s+[^\n;|&]*(?:/etc/shadow|\.ssh/id_|\.aws/credentials)`), CredentialAccess},
}

var tokenScreen = func() *screen {
	var patterns []*expression
	for _, t := range dangerousTokens {
		patterns = append(patterns, t.pattern)
	}
	return newScreen(patterns...)
}()
