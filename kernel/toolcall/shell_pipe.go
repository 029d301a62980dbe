package toolcall

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/regex"
)

// pipe judges what flows from one command into the next.
func (s *shell) pipe(n *syntax.BinaryCmd) {
	call, ok := n.Y.Cmd.(*syntax.CallExpr)
	if !ok {
		s.pipedInto(n)
		return
	}
	words := s.argv(call)
	argv := unwrap(words)
	s.projects(n, argv)
	if len(argv) == 0 {
		if dumps := s.first(n.X); dumps == "env" || dumps == "set" {
			s.breaks(CredentialAccess)
		}
		return
	}
	name := programName(argv[0])
	executes := !runsModule(argv) && (isShell(name) || isInterpreter(name) || name == "source" || name == ".") && readsProgram(argv)
	executes = executes || isShell(name) && contains(words, "xargs")
	if left := s.factsOf(n.X); left.shell && (peers[name] || name == "openssl" && wordAt(argv, 1) == "s_client") {
		s.breaks(RemoteCodeExecution)
	}
	left := s.factsOf(n.X)
	if left.fetches && name == "tee" {
		for _, file := range operands(argv) {
			note(&s.fetched, path.Base(file), true)
		}
	}
	if left.fetches && (name == "tar" || name == "unzip" || name == "cpio") {
		note(&s.fetched, unpacked, true)
	}
	switch {
	case name == "crontab" && s.dropsJobs(n.X):
		s.prunes++
	case name == "crontab" || name == "at" || name == "batch":
		s.breaks(Persistence)
	}
	if executes && (left.fetches || left.decodes) || (name == "iex" || name == "Invoke-Expression") {
		s.breaks(RemoteCodeExecution)
	}
	text, known := s.output(n.X, 0)
	if known {
		if decoded, is := s.decoded(argv, text); is {
			s.keepsAs(n.Y.Redirs, decoded)
		}
		s.feed(argv, text)
	}
	if contains(words, "xargs") || contains(words, "parallel") {
		s.perLine(words, n.X, text, known)
	} else if !known {
		s.perSample(name, argv, n.X)
	}
	if left.packs && (carriers[name] || name == "openssl" && wordAt(argv, 1) == "s_client") && !s.localOnly(argv) {
		s.carries(argv)
	}
	if senders[name] && (!known || left.sensitive) && left.reads { // what is known stands on the command line
		s.sends(argv, left.sensitive)
	}
}

// dropsJobs reports whether a pipe prints the table of cron without some of its lines, as it is or
// from a copy that was made of it. What guards, records or keeps copies is no such line.
func (s *shell) dropsJobs(st *syntax.Stmt) bool {
	if group, is := st.Cmd.(*syntax.Subshell); is && len(group.Stmts) == 1 {
		st = group.Stmts[0]
	}
	c, is := st.Cmd.(*syntax.BinaryCmd)
	if !is || c.Op != syntax.Pipe {
		return false
	}
	first, isCall := c.X.Cmd.(*syntax.CallExpr)
	filter, isFilter := c.Y.Cmd.(*syntax.CallExpr)
	if !isCall || !isFilter || !listsJobs.MatchString(strings.Join(unwrap(s.argv(first)), " ")) {
		return false
	}
	argv := s.argv(filter)
	line := strings.Join(argv, " ")
	return len(argv) > 1 && dropsLines.MatchString(line) && !strings.Contains(line, unknownText) && !guardingJob.MatchString(line)
}

var (
	listsJobs   = regex.New(`^crontab(?: -u [\w-]+)? -l$`)
	dropsLines  = regex.New(`^(?:e|f)?grep (?:-[iFEw]+ )*(?:-[iFEw]*v[iFEw]*|--invert-match) (?:-[iFEwe]+ |-- )*\S.*|^sed (?:-[Er]+ )*(?:-e )?/.+/d$`)
	guardingJob = regex.New(`(?i)\.\*?$|[ '"]\.?[*^$]+['"]?$|backup|dump|snapshot|restic|borg|audit|aide|rkhunter|chkrootkit|lynis|clam|falco|osquery|wazuh|ossec|monitor|alert|watchdog|health|logrotate|rotate|certbot|acme|renew|security|upgrade|scan|fail2ban|caddy|\blex`)
)

// peers talk to whoever answers; carriers put a whole stream somewhere.
var (
	peers    = words("nc ncat netcat telnet socat")
	carriers = words("curl wget nc ncat netcat socat ftp lftp telnet http https xh curlie gnutls-cli websocat wscat kcat smbclient")
)

// localOnly reports whether a command names only this machine.
func (s *shell) localOnly(argv []string) bool {
	hosts := s.hostsOf(argv)
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h string) bool { return h != "localhost" && h != "127.0.0.1" })
}

// carries judges a folder, a database or a person's session that leaves as a
// whole: to where the user said, or nowhere.
func (s *shell) carries(argv []string) {
	if slices.ContainsFunc(s.hostsOf(argv), s.asksFor) {
		return
	}
	s.breaks(DataExfiltration)
}

// perLine reads xargs with what it is given, where that is known; of a search, by
// the names that it can find.
func (s *shell) perLine(words []string, from *syntax.Stmt, text string, known bool) {
	at := slices.IndexFunc(words, func(w string) bool { return programName(w) == "xargs" || programName(w) == "parallel" })
	run := wrappedCommand(words[at:])
	if len(run) == 1 && programName(words[at]) == "parallel" { // it hands its command to a shell
		run = []string{"sh", "-c", run[0]}
	}
	if call, ok := commandOf(from); ok && !known {
		for _, place := range append(s.listed(unwrap(s.argv(call))), s.inventory(from, 0)...) {
			s.command(with(run, replaceMark(words[at:]), place), 1)
		}
		return
	}
	if !known {
		for _, item := range s.inventory(from, 0) {
			s.command(with(run, replaceMark(words[at:]), item), 1)
		}
		return
	}
	if mark := replaceMark(words[at:]); slices.ContainsFunc(run, func(w string) bool { return strings.Contains(w, mark) }) {
		s.command(with(run, mark, text), 1)
		return
	}
	fields := strings.Fields(strings.ReplaceAll(text, "\x00", " "))
	if mark := delimiter(words[at:]); mark != "" && mark != `\0` && mark != "\x00" {
		fields = strings.FieldsFunc(strings.ReplaceAll(text, unescape(mark), "\n"), func(c rune) bool { return c == '\n' })
	}
	s.command(append(slices.Clone(run), fields...), 1)
}

// perSample reads what a shell, or awk, gets for a line of what flows into it, where filters
// have made a command of each.
func (s *shell) perSample(name string, argv []string, from *syntax.Stmt) {
	switch {
	case awks[name]:
		if line := s.sample(from, 0); line != unknownText {
			s.awk(argv, line).starts()
		}
	case isShell(name) && readsProgram(argv) && s.calls <= maxNested:
		if line := s.sample(from, 0); line != unknownText {
			s.calls++
			s.feed(argv, line)
			s.calls--
		}
	}
}

func commandOf(st *syntax.Stmt) (*syntax.CallExpr, bool) {
	if st == nil {
		return nil, false
	}
	call, ok := st.Cmd.(*syntax.CallExpr)
	return call, ok
}

// delimiter is what xargs -d splits its input at.
func delimiter(argv []string) string { return valueOf(argv, "-d", "--delimiter=") }

// replaceMark is what xargs -I replaces.
func replaceMark(argv []string) string { return cmp.Or(valueOf(argv, "-I", "--replace="), "{}") }

// valueOf returns the value of a flag, which may stand in the same word or in the next.
func valueOf(argv []string, short, long string) string {
	for i, w := range argv {
		if value, found := strings.CutPrefix(w, short); found {
			return cmp.Or(value, wordAt(argv, i+1))
		}
		if value, found := strings.CutPrefix(w, long); found {
			return value
		}
	}
	return ""
}

// pipedInto gives what flows into a loop to the read at its head.
func (s *shell) pipedInto(n *syntax.BinaryCmd) {
	text, known := s.output(n.X, 0)
	if call, ok := n.X.Cmd.(*syntax.CallExpr); ok && !known {
		places := s.listed(unwrap(s.argv(call)))
		text, known = strings.Join(places, " "), len(places) > 0
	}
	if !known {
		items := s.inventory(n.X, 0)
		text, known = strings.Join(items, " "), len(items) > 0
	}
	if known {
		s.readBy(n.Y, text)
	}
}

// loopInput gives a here-document or here-string of a loop to the read at its head.
func (s *shell) loopInput(st *syntax.Stmt) {
	for _, d := range st.Redirs {
		switch {
		case d.Hdoc != nil:
			s.readBy(st.Cmd, s.literal(d.Hdoc))
		case d.Op == syntax.WordHdoc:
			s.readBy(st.Cmd, s.literal(d.Word))
		case d.Op == syntax.RdrIn && d.Word != nil:
			if text, known := s.written[path.Base(s.literal(d.Word))]; known {
				s.readBy(st.Cmd, text)
			}
		}
	}
}

// readBy gives a text to the first read below a node.
func (s *shell) readBy(n syntax.Node, text string) {
	taken := false
	syntax.Walk(n, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok && !taken && len(call.Args) > 0 {
			if argv := s.argv(call); len(argv) > 0 && (argv[0] == "read" || argv[0] == "mapfile") {
				s.takes(argv, text)
				taken = true
			}
		}
		return !taken
	})
}

// runsModule reports whether an interpreter runs a module of its own, which takes
// the input as data.
func runsModule(argv []string) bool {
	return isInterpreter(argv[0]) && slices.ContainsFunc(argv, func(w string) bool { return strings.HasPrefix(w, "-m") && w != "-" })
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if programName(w) == word {
			return true
		}
	}
	return false
}
