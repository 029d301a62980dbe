package toolcall

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/regex"
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
	folder string   // after cd; "" while unknown
	trials int      // expansions on trial, within each other
	made   []change // their assignments, which are undone

	projected map[*syntax.CallExpr]projection // what the filter behind a command lets through
	let       projection                      // the same of the command that runs

	// What was read of a node, while the variables stay as they are.
	words   map[*syntax.CallExpr]*expansion
	outputs map[*syntax.Stmt]output
	facts   map[syntax.Node]commandEffects
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
	usual        map[string]bool   // files that start code, to which the text adds what is usual there
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
	windows := r.tool.windows || r.nested == 1 && isOfWindows(text)
	if words := plainCommand(text); words != nil {
		if windows {
			r.windows(text)
		}
		if s := r.startShell(parent); s.spend(costWord * len(words)) {
			s.command(words, 0)
		}
		return
	}
	file, err := r.parse(text)
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
	s := r.startShell(parent)
	s.words = make(map[*syntax.CallExpr]*expansion, calls)
	syntax.Walk(file, s.visit)
}

// startShell makes a shell that knows what its parent does, or what the call says of the
// environment.
func (r *reading) startShell(parent *shell) *shell {
	if parent != nil {
		return &shell{reading: r, learned: parent.learned, folder: parent.folder}
	}
	s := &shell{reading: r, learned: new(learned)}
	if len(r.variables) > 0 {
		s.vars = maps.Clone(r.variables)
		for _, name := range slices.Sorted(maps.Keys(r.variables)) {
			s.startsLater(name, r.variables[name])
		}
	}
	return s
}

// isOfWindows reports whether a text is one for a shell of Windows. Most texts have none of the
// signs, which are looked for first.
func isOfWindows(text string) bool {
	return slices.ContainsFunc(windowsHints, func(hint string) bool { return strings.Contains(text, hint) }) && ofWindows.Matches(text)
}

var windowsHints = strings.Fields(`%\ %/ $env: $Env: $ENV: Get- Set- Remove- New- Invoke- Start- Stop- Add- Clear- Disable- Copy- Move-`)

// ofWindows is what stands in a text that a shell of Windows runs, whatever its tool is called.
var ofWindows = regex.ScreenOf(`(?i)%(?:temp|tmp|appdata|localappdata|userprofile|systemroot|windir|programdata|public)%`, `(?i)\$env:(?:temp|tmp|appdata|localappdata|userprofile|systemroot|windir|programdata|public)\b`, `\b(?:Get|Set|Remove|New|Invoke|Start|Stop|Add|Clear|Disable|Copy|Move)-(?:Item|ChildItem|ItemProperty|Content|Service|Process|Volume|Disk|Partition|Local\w+|AD\w+|WmiObject|CimInstance|Expression|WebRequest|RestMethod|EventLog|WinEvent|MpPreference|NetFirewall\w+|ScheduledTask|DnsClient\w+|ExecutionPolicy|Command|BitsTransfer|VM)\b`)

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
		return !makeupOf(n).simple
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
	inner := unwrap(argv)
	s.substituted(inner, n)
	s.emptied(inner, n)
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
