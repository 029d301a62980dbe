package toolcall

import (
	"path"
	"regexp"
	"slices"
	"strings"
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
	if !s.spend(costJudge * commandSize(argv)) {
		return
	}
	name := programName(argv[0])
	if escalates[name] && len(argv) > 1 {
		s.breaks(PrivilegeEscalation)
	}
	if wrappers[name] {
		if name == "env" && len(unwrap(argv)) == 0 {
			s.breaks(CredentialAccess)
		}
		s.command(wrappedCommand(argv[1:]), depth+1)
		return
	}
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
	program, given := programOf(argv)
	switch {
	case isShell(name) && given:
		s.shellIn(program, s)
	case isInterpreter(name) && given:
		s.code(program)
	case name == "eval":
		s.shellIn(strings.Join(argv[1:], " "), s)
	case name == "trap" && len(argv) > 2:
		s.shellIn(argv[1], s)
	case name == "ssh":
		if words := wrappedCommand(argv[1:]); len(words) > 1 {
			s.shellIn(strings.Join(words[1:], " "), s)
		}
	case name == "find" || name == "fd":
		s.find(argv, depth)
	case name == "awk" || name == "gawk" || name == "mawk":
		s.code(strings.Join(argv[1:], "\n"))
	case sqlClients[name]:
		s.sqlClient(argv)
	}
	if isShell(name) || isInterpreter(name) || name == "source" || name == "." || name == "chmod" {
		opens := name != "chmod" || strings.Contains(strings.Join(argv, " "), "x")
		for _, word := range argv[1:] {
			if opens && s.fetched[path.Base(word)] {
				s.breaks(RemoteCodeExecution)
			}
		}
	}
	if s.fetched[name] && strings.Contains(argv[0], "/") {
		s.breaks(RemoteCodeExecution)
	}
}

// find reads -delete and -exec, whose operands are the folders before the
// first test.
func (s *shell) find(argv []string, depth int) {
	var roots []string
	for _, word := range argv[1:] {
		if strings.HasPrefix(word, "-") || word == "(" || word == "!" {
			break
		}
		roots = append(roots, word)
	}
	removes := false
	for i := 1; i < len(argv); i++ {
		switch argv[i] {
		case "-delete":
			removes = true
		case "-exec", "-execdir", "-ok", "-x":
			run := argv[i+1:]
			if end := slices.IndexFunc(run, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
				run = run[:end]
			}
			s.command(run, depth+1)
			words := unwrap(run)
			removes = removes || len(words) > 0 && (programName(words[0]) == "rm" || programName(words[0]) == "shred")
			i += len(run) // another -exec in there is the command's own
		}
	}
	if removes {
		s.removes(withoutCurrentFolder(roots, argv))
	}
}

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

func (s *shell) sqlClient(argv []string) {
	name := programName(argv[0])
	if name == "redis-cli" {
		for _, w := range argv[1:] {
			if w := strings.ToLower(w); w == "flushall" || w == "flushdb" || w == "shutdown" {
				s.breaks(DestructiveQuery)
			}
		}
	}
	for _, word := range argv[1:] {
		if strings.ContainsAny(word, " \t\n") {
			s.query(strings.TrimPrefix(strings.TrimPrefix(word, "--command="), "--execute="))
		}
	}
}

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
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || drive.MatchString(name) || s.folder == "" {
		return cleanPath(name)
	}
	return cleanPath(s.folder + "/" + name)
}

var drive = regexp.MustCompile(`^[A-Za-z]:`)

// wrappers run the command that follows their own flags.
var wrappers = words("sudo doas pkexec run0 env command builtin exec nohup nice ionice timeout time stdbuf setsid chronic watch busybox toybox xargs parallel strace ltrace unbuffer caffeinate flock faketime chroot nsenter gosu su-exec unshare")

var escalates = words("sudo doas pkexec run0 nsenter su-exec gosu chroot sudoedit")

var sqlClients = words("psql mysql mariadb sqlite3 sqlite sqlcmd duckdb clickhouse-client cockroach bq snowsql usql pgcli mycli redis-cli")

var shells = words("sh bash zsh dash ksh ash fish csh tcsh mksh rbash pwsh powershell cmd")

var interpreters = words("python perl ruby node nodejs php lua deno bun Rscript osascript tclsh groovy pypy")

func words(list string) map[string]bool {
	out := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// programName is the name of a command without its folder and its .exe.
func programName(name string) string {
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(name, `\`, "/")), ".exe")
}

func isShell(name string) bool { return shells[programName(name)] }

func isInterpreter(name string) bool {
	return interpreters[strings.TrimRight(programName(name), "0123456789.")]
}

var (
	assignment  = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	measurement = regexp.MustCompile(`^[0-9.]+[smhdkMG]?$`)
)

func unassigned(argv []string) []string {
	for len(argv) > 0 && (assignment.MatchString(argv[0]) || argv[0] == "") {
		argv = argv[1:]
	}
	return argv
}

// wrappedCommand skips the flags and operands of a wrapper and returns the command
// that it runs.
func wrappedCommand(argv []string) []string {
	for i := 0; i < len(argv); i++ {
		w := argv[i]
		switch {
		case w == "-S" || w == "--split-string":
			if i+1 < len(argv) {
				return strings.Fields(argv[i+1])
			}
		case w == "-u" || w == "-g" || w == "-U" || w == "-p" || w == "-i" || w == "-o" || w == "-l" || w == "-F":
			i++ // the value may look like a command
		case strings.HasPrefix(w, "-S") && len(w) > 2:
			return append(strings.Fields(w[2:]), argv[i+1:]...)
		case strings.HasPrefix(w, "-") || assignment.MatchString(w) || measurement.MatchString(w) || w == "{}" || w == "":
		default:
			return argv[i:]
		}
	}
	return nil
}

// unwrap returns the command that a chain of wrappers ends in.
func unwrap(argv []string) []string {
	for depth := 0; depth <= maxNested; depth++ {
		argv = unassigned(argv)
		if len(argv) == 0 || !wrappers[programName(argv[0])] {
			return argv
		}
		argv = wrappedCommand(argv[1:])
	}
	return argv
}

// programOf returns the program text that an interpreter gets as an argument.
func programOf(argv []string) (string, bool) {
	for i, w := range argv[1:] {
		lower := strings.ToLower(w)
		short := strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c") && len(w) <= 6
		switch {
		case short, lower == "-e", w == "-r", w == "-p", w == "-E", lower == "--eval", lower == "-command", lower == "--command", lower == "/c":
			if i+2 < len(argv) {
				return strings.Join(argv[i+2:min(len(argv), i+12)], " "), true
			}
		case !strings.HasPrefix(w, "-"):
			return "", false
		}
	}
	return "", false
}

// readsProgram reports whether an interpreter takes its program from its input.
func readsProgram(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	if _, given := programOf(argv); given {
		return false
	}
	for _, w := range argv[1:] {
		if w == "-" || w == "-s" || w == "/dev/stdin" {
			return true
		}
		if !strings.HasPrefix(w, "-") {
			return false
		}
	}
	return true
}
