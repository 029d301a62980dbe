package toolcall

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// command judges one simple command of a shell text.
func (s *shell) command(argv []string, depth int) {
	argv = unassigned(argv)
	if len(argv) == 0 {
		return
	}
	if depth > maxNested {
		s.unreadable()
		return
	}
	if !s.spend(costCommand + costJudge*commandSize(argv)) {
		return
	}
	name := commandName(argv[0])
	if s.invoked(argv) {
		return
	}
	if strings.ContainsAny(argv[0], "*?[") && name != programName(argv[0]) {
		argv = append([]string{name}, argv[1:]...)
	}
	if escalates[name] && len(argv) > 1 && !asksForRights(argv) && !s.keepsUp(argv) || s.rooted > 0 && !s.mayAsRoot(argv) {
		s.breaks(PrivilegeEscalation)
	}
	if at := slices.Index(argv, ":::"); name == "parallel" && at > 1 {
		s.eachOf(wrappers[name].following(argv[:at]), argv[at+1:])
		return
	}
	if isWrapper(name) {
		s.byWords(name, argv)
		s.sets(argv[1:])
		if name == "env" && len(unwrap(argv)) == 0 && s.let == wholeText {
			s.breaks(CredentialAccess)
		}
		run := append(slices.Clone(wrappedCommand(argv)), s.listedIn(name, argv)...)
		if asRoot := name == "sudo" && len(run) > 0 && isShell(programName(run[0])) && !hasFlag(argv[:len(argv)-len(run)], 'u', "--user"); asRoot {
			s.rooted++
			defer func() { s.rooted-- }()
		}
		s.command(run, depth+1)
		return
	}
	argv = s.withSettings(name, argv)
	if s.namesLoss(argv) {
		defer s.sparing()()
	}
	s.byWords(name, argv)
	s.cmdlet(name, argv[1:], nil)
	s.forEach(name, argv)
	s.binds(name, argv)
	s.fillsFolders(name, argv)
	s.nestedCommand(name, argv, depth)
	s.destroys(name, argv)
	s.escalation(name, argv)
	s.credentials(name, argv)
	s.tampers(name, argv)
	s.transfers(name, argv)
	s.fileEffects(name, argv)
	for _, word := range argv[1:] {
		s.escapes(word)
	}
	if name == "cd" || name == "pushd" {
		s.enter(argv)
	}
}

// nestedCommand follows the commands that run what an argument says.
func (s *shell) nestedCommand(name string, argv []string, depth int) {
	shell, interpreter, windows := isShell(name), isInterpreter(name), isWindowsShell(name)
	program, arguments, given := programOf(argv)
	switch {
	case windows && given:
		s.windows(program)
	case shell && given:
		s.within(arguments[min(1, len(arguments)):], func() {
			s.set("0", wordAt(arguments, 0))
			s.shellIn(program, s)
		})
	case name == "su" || name == "runuser":
		if i := slices.Index(argv, "-c"); i > 0 {
			s.shellIn(wordAt(argv, i+1), s)
		}
	case given:
		if strings.HasPrefix(name, "ipython") {
			for _, m := range cellCommand.FindAllStringSubmatch(program, maxRecipes) {
				s.shellIn(m[1], s)
			}
		}
		s.code(program)
	case interpreter && slices.Contains(argv, "shell") && slices.Contains(argv, "-c"):
		s.code(argv[len(argv)-1]) // Django's
	case name == "eval":
		s.shellIn(strings.Join(argv[1:], " "), s)
	case name == "trap" && len(argv) > 2:
		s.shellIn(argv[1], s)
	case name == "find" || name == "fd":
		s.find(argv, depth)
	case awks[name]:
		program := strings.Join(argv[1:], "\n")
		s.code(program)
		s.awk(argv, unknownText).starts()
		if strings.Contains(program, "|") {
			s.startedBy(program, code.Strings(program))
		}
	case name == "reg":
		s.windows(strings.Join(argv, " "))
	case isSQLClient(name):
		s.sqlClient(argv)
	case name == "mongosh" || name == "mongo":
		s.mongo(argv)
	}
	s.executes(argv)
	s.hatch(name, argv)
	s.hops(name, argv, depth)
}

// eachOf reads the command of parallel for each of its first words.
func (s *shell) eachOf(run, list []string) {
	text := strings.Join(run, " ")
	for _, w := range list[:min(len(list), maxPlaces)] {
		if !strings.Contains(text, "{}") {
			s.shellIn(text+" "+w, s)
			continue
		}
		s.shellIn(strings.ReplaceAll(text, "{}", w), s)
	}
}

// listedIn are the words that xargs takes from a file, where the text wrote it.
func (s *shell) listedIn(name string, argv []string) []string {
	if name != "xargs" {
		return nil
	}
	for i, w := range argv {
		if file, is := strings.CutPrefix(w, "-a"); is && i > 0 {
			return strings.Fields(s.written[path.Base(cmp.Or(file, wordAt(argv, i+1)))])
		}
		if file, is := strings.CutPrefix(w, "--arg-file="); is {
			return strings.Fields(s.written[path.Base(file)])
		}
	}
	return nil
}

// find reads -delete and -exec, whose operands are the folders before the
// first test.
func (s *shell) find(argv []string, depth int) {
	var roots []string
	for _, word := range argv[1:] {
		if word == "-L" || word == "-H" || word == "-P" {
			continue
		}
		if strings.HasPrefix(word, "-") || word == "(" || word == "!" {
			break
		}
		roots = append(roots, word)
	}
	removes := false
	places := s.listed(argv)
	for i := 1; i < len(argv); i++ {
		switch argv[i] {
		case "-delete":
			removes = true
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			run := argv[i+1:]
			if end := slices.IndexFunc(run, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
				run = run[:end]
			}
			for _, place := range append(places, unknownText)[:max(1, len(places))] {
				s.command(with(run, "{}", place), depth+1)
			}
			if len(run) > 0 && handsOver.MatchString(strings.Join(run, " ")) {
				s.breaks(RemoteCodeExecution)
			}
			words := unwrap(run)
			removes = removes || len(words) > 0 && (programName(words[0]) == "rm" || programName(words[0]) == "shred")
			if len(words) > 0 && spoils[programName(words[0])] && slices.ContainsFunc(roots, func(root string) bool { return file.IsVital(s.resolve(root)) }) {
				s.breaks(DestructiveCommand)
			}
			i += len(run) // another -exec in there is the command's own
		}
	}
	if removes {
		files := found(roots, argv)
		picked := len(files) == 0 || file.IsPassing(files[0])
		s.removes(slices.DeleteFunc(slices.Clone(withoutCurrentFolder(roots, argv)), func(root string) bool {
			return picked && file.InSharedRoot(s.resolve(root)+"/")
		}))
		s.loses(files)
	}
}

// spoils are the commands that take from every file that a search finds what it was.
var spoils = words("rm shred srm unlink truncate chmod chown mv dd wipe")

// with puts a value where the words hold a mark, and at their end where none does.
func with(argv []string, mark, value string) []string {
	out, put := make([]string, len(argv), len(argv)+1), false
	for i, w := range argv {
		if at := strings.Index(w, mark); at > 0 && w[at-1] == '/' && mark != "" && strings.HasPrefix(value, "/") {
			out[i], put = strings.ReplaceAll(w, mark, path.Base(value)), true // a listing names what is in a folder
			continue
		}
		out[i] = strings.ReplaceAll(w, mark, value)
		put = put || out[i] != w
	}
	if !put {
		return append(out, value)
	}
	return out
}

// maxPlaces bounds the folders of a search that are followed.
const maxPlaces = 4

// listed names what a find or ls prints, as patterns: a search of / for id_rsa
// finds /id_rsa as far as a reader of names is concerned.
func (s *shell) listed(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	name := programName(argv[0])
	if !lists[name] {
		return nil
	}
	var roots []string
	for _, word := range argv[1:] {
		if name == "find" && (word == "-L" || word == "-H" || word == "-P") || name != "find" && strings.HasPrefix(word, "-") {
			continue
		}
		if strings.HasPrefix(word, "-") || word == "(" || word == "!" {
			break
		}
		roots = append(roots, word)
	}
	if len(roots) == 0 && file.IsVital(s.folder) {
		roots = []string{s.folder}
	}
	if name == "find" && aged(argv) { // what somebody lets go by its age
		roots = slices.DeleteFunc(roots, func(root string) bool { return file.InSharedRoot(s.resolve(root) + "/") })
	}
	last := "*"
	for i, w := range argv {
		if (w == "-name" || w == "-iname") && i+1 < len(argv) {
			last = argv[i+1]
		}
	}
	var out []string
	for _, root := range withoutCurrentFolder(roots, argv) {
		if name == "ls" && (strings.ContainsAny(root, "*?[") || hasFlag(argv, 'd', "--directory")) {
			out = append(out, root)
			continue
		}
		if name == "ls" && path.Base(root) != root && file.IsCredential(s.resolve(root)) {
			out = append(out, root)
			continue
		}
		out = append(out, strings.TrimSuffix(root, "/")+"/"+last)
	}
	if last != "*" && len(out) == 0 {
		out = append(out, last)
	}
	return out[:min(len(out), maxPlaces)]
}

// lists are the commands that print the names of files.
var lists = words("find fd fdfind ls locate plocate du tree dir")

// commandSize is the size of a command line in the units of the budget.
func commandSize(argv []string) int {
	n := len(argv)
	for _, w := range argv {
		n += len(w)
	}
	return n
}

// withoutCurrentFolder returns the roots of a find without the current folder when
// a test picks some of its files.
func withoutCurrentFolder(roots, argv []string) []string {
	for _, w := range argv {
		if findTests[w] {
			return slices.DeleteFunc(slices.Clone(roots), func(root string) bool { return root == "." || root == "./" })
		}
	}
	return roots
}

var findTests = words("-name -iname -path -regex -mtime -mmin -empty -newer -size -e")

// enter follows cd, so that cd / && rm -rf * is read for what it is.
func (s *shell) enter(argv []string) {
	target := "~"
	if len(argv) > 1 {
		target = argv[len(argv)-1]
	}
	s.folder = s.resolve(target)
	if len(s.folder) > maxValue { // cd a, again and again
		s.folder = unknownText
	}
	s.versions++
	s.version = s.versions
}

// resolve names a file from the folder the shell is in.
func (s *shell) resolve(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~") && s.folder != "" && !file.OnDrive(name) {
		name = s.folder + "/" + name
	}
	return s.followed(file.Clean(name))
}

// followed is where a name leads by the links that the text itself has made.
func (s *shell) followed(name string) string {
	for link, target := range s.links {
		if rest, below := strings.CutPrefix(name, link); below && (rest == "" || rest[0] == '/') {
			return file.Clean(target + rest)
		}
	}
	return name
}

// maxLinks bounds the links of a text that are followed.
const maxLinks = 16

// linksTo notes what a link leads to.
func (s *shell) linksTo(target, link string) {
	if strings.HasSuffix(link, "/") || link == "." {
		link += "/" + path.Base(target)
	}
	if from, to := s.resolve(link), s.resolve(target); from != to && len(s.links) < maxLinks {
		note(&s.links, from, to)
	}
}

// asksForRights reports whether sudo only tells whether it would work and for what, by a command
// that does nothing or by its own list.
func asksForRights(argv []string) bool {
	return rightsQuestion.MatchString(strings.Join(argv[1:], " "))
}

var rightsQuestion = regex.New(`^(?:(?:-n|--non-interactive) (?:true|:)|(?:-n |--non-interactive )?(?:-l|-ll|-v|-k|-K|--list|--validate|--reset-timestamp))$`)

var escalates = words("sudo doas pkexec run0 nsenter su-exec gosu chroot sudoedit")

// words is the set of the words in a list.
func words(list string) map[string]bool { return prose.Set(list) }

// programName is the name of a command without its folder and its .exe.
func programName(name string) string {
	if name != "" && strings.IndexByte(name, '/') < 0 && strings.IndexByte(name, '\\') < 0 {
		return strings.TrimSuffix(name, ".exe")
	}
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(name, `\`, "/")), ".exe")
}

var (
	assignment  = regex.New(`^[A-Za-z_]\w*=`)
	measurement = regex.New(`^[0-9.]+[smhdkMG]?$`)
)

func unassigned(argv []string) []string {
	for len(argv) > 0 && (argv[0] == "" || strings.Contains(argv[0], "=") && assignment.MatchString(argv[0])) {
		argv = argv[1:]
	}
	return argv
}
