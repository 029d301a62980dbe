package toolcall

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	downloaders = words("curl wget fetch aria2c lwp-request lynx w3m http https httpie iwr irm Invoke-WebRequest Invoke-RestMethod ftp tftp scp nc ncat netcat socat certutil bitsadmin")
	senders     = words("curl wget http https httpie nc ncat netcat socat telnet ftp scp rsync mail mailx sendmail mutt telegram-send aws gsutil rclone")
	resolvers   = words("dig nslookup host drill ping traceroute resolvectl kdig")
	decoders    = words("base64 xxd openssl base32 uudecode")
)

// pipe judges what flows from one command into the next.
func (s *shell) pipe(n *syntax.BinaryCmd) {
	call, ok := n.Y.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	words := s.fields(call.Args)
	argv := unwrap(words)
	if len(argv) == 0 {
		if dumps := s.first(n.X); dumps == "env" || dumps == "set" {
			s.breaks(CredentialAccess)
		}
		return
	}
	name := base(argv[0])
	executes := (isShell(name) || isInterpreter(name) || name == "source" || name == ".") && readsProgram(argv)
	executes = executes || isShell(name) && contains(words, "xargs")
	if executes && (s.fetches(n.X) || s.decodes(n.X)) || (name == "iex" || name == "Invoke-Expression") {
		s.breaks(RemoteCodeExecution)
	}
	if text, known := s.output(n.X, 0); known {
		s.feed(argv, text)
		if contains(words, "xargs") || name == "parallel" {
			s.command(append(append([]string{}, argv...), strings.Fields(text)...), 1)
		}
	}
	if senders[name] && !s.harmless(n.X) {
		s.sends(argv, s.sensitive(n.X))
	}
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if base(w) == word {
			return true
		}
	}
	return false
}

// substituted finds commands whose arguments are made of what was downloaded,
// or that carry the contents of files away.
func (s *shell) substituted(argv []string, n *syntax.CallExpr) {
	inner := unwrap(argv)
	if len(inner) == 0 {
		if s.fetches(n) {
			s.breaks(RemoteCodeExecution) // $(curl …) as a command
		}
		return
	}
	name := base(inner[0])
	runs := isShell(name) || isInterpreter(name) || name == "eval" || name == "source" || name == "." || inner[0] == unknownText
	for _, w := range n.Args {
		switch {
		case runs && (s.fetches(w) || s.decodes(w)):
			s.breaks(RemoteCodeExecution)
		case resolvers[name] && s.runsAny(w):
			s.breaks(DataExfiltration)
		case senders[name] && s.runsAny(w) && s.readsFiles(w):
			s.sends(inner, s.sensitive(w))
		}
	}
}

// transfers judges a command that talks to the network by its operands.
func (s *shell) transfers(name string, argv []string) {
	if !downloaders[name] && !senders[name] && !resolvers[name] {
		return
	}
	s.remember(name, argv)
	if name == "nc" || name == "ncat" || name == "netcat" || name == "socat" {
		line := strings.Join(argv, " ")
		if hasFlag(argv, 'e', "--exec") || hasFlag(argv, 'c', "--sh-exec") || strings.Contains(strings.ToUpper(line), "EXEC:") {
			s.breaks(RemoteCodeExecution)
		}
	}
	for _, w := range argv[1:] {
		if strings.Contains(w, "://") || name == "curl" && (localName.MatchString(hostOf(w)) || isAddress(w)) {
			s.target(w, true)
		}
	}
	if file, data := upload(name, argv); data {
		s.sends(argv, file != "" && isCredentialFile(s.resolve(file)) || secret.MatchString(strings.Join(argv, " ")))
	}
}

// upload finds the flags that send a file, or data that holds a secret.
func upload(name string, argv []string) (string, bool) {
	for i, w := range argv[1:] {
		next := ""
		if i+2 < len(argv) {
			next = argv[i+2]
		}
		flag, value, joinedValue := strings.Cut(w, "=")
		if !joinedValue {
			value = next
		}
		switch {
		case name != "curl" && name != "wget":
		case flag == "-T" || flag == "--upload-file" || flag == "--post-file" || flag == "--body-file":
			return value, true
		case flag == "-d" || flag == "-F" || flag == "--form" || strings.HasPrefix(flag, "--data") || flag == "--json" || flag == "--post-data":
			if at := strings.Index(value, "@"); at >= 0 && (at == 0 || value[at-1] == '=') {
				return value[at+1:], true
			}
			if secret.MatchString(value) {
				return "", true
			}
		case strings.HasPrefix(w, "-d@"), strings.HasPrefix(w, "-T") && len(w) > 2:
			return w[strings.IndexAny(w, "@T")+1:], true
		case strings.Contains(w, "://") && secret.MatchString(w):
			return "", true
		}
	}
	if name == "scp" || name == "rsync" || name == "rclone" {
		if names := operands(argv); len(names) > 1 && strings.Contains(names[len(names)-1], ":") {
			return names[0], true
		}
	}
	return "", false
}

// sends judges that data leaves: secrets may go only where the user said,
// other files also where nothing is known against it.
func (s *shell) sends(argv []string, sensitive bool) {
	for _, host := range hostsOf(argv) {
		if s.asksFor(host) || localName.MatchString(host) || host == "127.0.0.1" {
			continue
		}
		if sensitive || s.asked || dropSite.MatchString(host) || collector.MatchString(host) || s.observed(host) {
			s.breaks(DataExfiltration)
		}
	}
}

func hostsOf(argv []string) []string {
	var out []string
	for _, w := range operands(argv) {
		if h := hostOf(w); strings.Contains(h, ".") || strings.Contains(w, "://") || localName.MatchString(h) {
			out = append(out, h)
		}
	}
	return out
}

// hostOf finds the host in an address, a user@host:path or a bare name.
func hostOf(w string) string {
	if at := strings.IndexByte(w, '@'); at > 0 && !strings.Contains(w, "://") {
		host, _, _ := strings.Cut(w[at+1:], ":")
		return host
	}
	if a, ok := readAddress(w); ok && !strings.HasPrefix(w, ".") && !strings.HasPrefix(w, "/") && !strings.HasPrefix(w, "@") {
		return a.host
	}
	return ""
}

func isAddress(w string) bool {
	a, ok := readAddress(w)
	return ok && a.internal && strings.ContainsAny(w, ".:x")
}

// remember notes the files that a downloader writes.
func (s *shell) remember(name string, argv []string) {
	for i, w := range argv {
		switch {
		case (w == "-o" || w == "-O" || w == "--output" || w == "--output-document") && i+1 < len(argv) && !strings.Contains(argv[i+1], "://"):
			s.fetched[path.Base(argv[i+1])] = true
		case strings.HasPrefix(w, "-o") && len(w) > 2:
			s.fetched[path.Base(w[2:])] = true
		case strings.HasPrefix(w, "--output="):
			s.fetched[path.Base(w[9:])] = true
		case strings.Contains(w, "://") && (name == "wget" || hasFlag(argv, 'O', "--remote-name")):
			if a, ok := readAddress(w); ok && a.path != "/" {
				s.fetched[path.Base(a.path)] = true
			}
		}
	}
}

// calls tells whether a command below the node satisfies a test.
func (s *shell) calls(n syntax.Node, test func(argv []string) bool) bool {
	found := false
	syntax.Walk(n, func(node syntax.Node) bool {
		if c, ok := node.(*syntax.CallExpr); ok && !found && len(c.Args) > 0 {
			argv := s.fields(c.Args)
			if inner := unwrap(argv); len(inner) > 0 {
				argv = inner
			}
			found = len(argv) > 0 && test(argv)
		}
		return !found
	})
	return found
}

func (s *shell) fetches(n syntax.Node) bool {
	return s.calls(n, func(argv []string) bool { return downloaders[base(argv[0])] })
}

func (s *shell) decodes(n syntax.Node) bool {
	return s.calls(n, func(argv []string) bool {
		return decoders[base(argv[0])] && (hasFlag(argv, 'd', "--decode") || hasFlag(argv, 'D', "") || hasFlag(argv, 'r', ""))
	})
}

func (s *shell) runsAny(n syntax.Node) bool {
	return s.calls(n, func([]string) bool { return true })
}

// readsFiles tells whether a node shows the contents of files.
func (s *shell) readsFiles(n syntax.Node) bool {
	return s.calls(n, func(argv []string) bool { return fileReaders[base(argv[0])] })
}

var fileReaders = words("cat head tail tar zip gzip base64 xxd less more grep awk sed cut printenv env find ls od strings dd mysqldump pg_dump git")

// harmless tells whether a node prints only what the command line says.
func (s *shell) harmless(n *syntax.Stmt) bool {
	_, known := s.output(n, 0)
	return known || !s.readsFiles(n)
}

// sensitive tells whether a node names a credential file.
func (s *shell) sensitive(n syntax.Node) bool {
	return s.calls(n, func(argv []string) bool {
		name := base(argv[0])
		if name == "env" || name == "printenv" || name == "set" {
			return true
		}
		for _, w := range argv[1:] {
			if isCredentialFile(s.resolve(w)) || systemFolder.MatchString(s.resolve(w)) {
				return true
			}
		}
		return false
	})
}

// first is the name of the command a statement begins with.
func (s *shell) first(st *syntax.Stmt) string {
	if c, ok := st.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		return base(s.literal(c.Args[0]))
	}
	return ""
}
