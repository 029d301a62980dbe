package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// here reads the script that an interpreter gets from a here-document.
func (s *shell) here(redirects []*syntax.Redirect, call *syntax.CallExpr) {
	if len(call.Args) == 0 || len(redirects) == 0 {
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
			if form := everydayForm(name); form != nil && hasFlag(argv, 'a', "--append") && everydayLines(text, form) {
				note(&s.usual, s.resolve(name), true)
			}
		}
	case programName(argv[0]) == "make" && wordAt(argv, 1) == "-f" && (wordAt(argv, 2) == "-" || wordAt(argv, 2) == "/dev/stdin"):
		s.recipes(text)
	case programName(argv[0]) == "at" || programName(argv[0]) == "batch":
		s.shellIn(text, s)
	case (programName(argv[0]) == "kubectl" || programName(argv[0]) == "oc") && (slices.Contains(argv, "apply") || slices.Contains(argv, "create")):
		s.manifest(text)
		if bindsRole.MatchString(text) && adminRole.Matches(text) {
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
		s.sends(argv, file.IsCredential(s.resolve(putFile.FindStringSubmatch(text)[1])))
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
	case scripted[programName(argv[0])]:
		s.cmdlet(programName(argv[0]), append(slices.Clone(argv[1:]), strings.Fields(text)...), nil)
	}
}

// scripted are the programs that take a script of their own from their input.
var scripted = words("rman diskshadow ldapmodify ldapadd ntdsutil")

var (
	everyPath   = regex.New(`path\s+"(?:\*|sys/\*)"\s*\{[^}]*(?:sudo|create|root)`)
	bindsRole   = regex.New(`\bkind"?\s*:\s*"?(?:Cluster)?RoleBinding\b`)
	everyRecord = regex.New(`(?m)^\s*update\s+del(?:ete)?\s+[\w-]+\.[\w-]+\.?\s*$`)
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
