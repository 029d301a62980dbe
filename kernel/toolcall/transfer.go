package toolcall

import (
	"path"
	"slices"
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
	words := s.argv(call)
	argv := unwrap(words)
	if len(argv) == 0 {
		if dumps := s.first(n.X); dumps == "env" || dumps == "set" {
			s.breaks(CredentialAccess)
		}
		return
	}
	name := programName(argv[0])
	executes := (isShell(name) || isInterpreter(name) || name == "source" || name == ".") && readsProgram(argv)
	executes = executes || isShell(name) && contains(words, "xargs")
	left := s.factsOf(n.X)
	if executes && (left.fetches || left.decodes) || (name == "iex" || name == "Invoke-Expression") {
		s.breaks(RemoteCodeExecution)
	}
	text, known := s.output(n.X, 0)
	if known {
		s.feed(argv, text)
		if contains(words, "xargs") || name == "parallel" {
			s.command(append(append([]string{}, argv...), strings.Fields(text)...), 1)
		}
	}
	if senders[name] && !known && left.reads { // what is known stands on the command line
		s.sends(argv, left.sensitive)
	}
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if programName(w) == word {
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
		if s.factsOf(n).fetches {
			s.breaks(RemoteCodeExecution) // $(curl …) as a command
		}
		return
	}
	name := programName(inner[0])
	runs := isShell(name) || isInterpreter(name) || name == "eval" || name == "source" || name == "." || inner[0] == unknownText
	leaks, sensitive := false, false
	for _, w := range n.Args {
		f := s.factsOf(w)
		switch {
		case runs && (f.fetches || f.decodes):
			s.breaks(RemoteCodeExecution)
		case resolvers[name] && f.runs:
			s.breaks(DataExfiltration)
		case senders[name] && f.reads:
			leaks, sensitive = true, sensitive || f.sensitive
		}
	}
	if leaks {
		s.sends(inner, sensitive)
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
	keeps := name == "wget" || hasFlag(argv, 'O', "--remote-name")
	for i, w := range argv {
		switch {
		case (w == "-o" || w == "-O" || w == "--output" || w == "--output-document") && i+1 < len(argv) && !strings.Contains(argv[i+1], "://"):
			s.fetched[path.Base(argv[i+1])] = true
		case strings.HasPrefix(w, "-o") && len(w) > 2:
			s.fetched[path.Base(w[2:])] = true
		case strings.HasPrefix(w, "--output="):
			s.fetched[path.Base(w[9:])] = true
		case keeps && strings.Contains(w, "://"):
			if a, ok := readAddress(w); ok && a.path != "/" {
				s.fetched[path.Base(a.path)] = true
			}
		}
	}
}

// commandEffects is what the commands below a node do.
type commandEffects struct {
	version                                  int
	runs, fetches, decodes, reads, sensitive bool
}

func (f commandEffects) and(g commandEffects) commandEffects {
	f.runs, f.fetches, f.decodes = f.runs || g.runs, f.fetches || g.fetches, f.decodes || g.decodes
	f.reads, f.sensitive = f.reads || g.reads, f.sensitive || g.sensitive
	return f
}

// factsOf reads the commands below a node. Every statement is read once while
// the variables stay as they are, however many commands stand around it.
func (s *shell) factsOf(n syntax.Node) commandEffects {
	if f, known := s.facts[n]; known && f.version == s.version {
		return f
	}
	f := commandEffects{version: s.version}
	syntax.Walk(n, func(node syntax.Node) bool {
		if !s.spend(1) {
			return false
		}
		if st, ok := node.(*syntax.Stmt); ok && node != n {
			f = f.and(s.factsOf(st))
			return false
		}
		if c, ok := node.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			f = f.and(s.doing(s.argv(c)))
		}
		return true
	})
	s.facts[n] = f
	return f
}

// doing tells what one command does.
func (s *shell) doing(argv []string) commandEffects {
	if inner := unwrap(argv); len(inner) > 0 {
		argv = inner
	}
	if len(argv) == 0 || !s.spend(costSearch*commandSize(argv)) {
		return commandEffects{}
	}
	name := programName(argv[0])
	return commandEffects{
		runs: true, fetches: downloaders[name], reads: fileReaders[name],
		decodes:   decoders[name] && (hasFlag(argv, 'd', "--decode") || hasFlag(argv, 'D', "") || hasFlag(argv, 'r', "")),
		sensitive: name == "env" || name == "printenv" || name == "set" || slices.ContainsFunc(argv[1:], s.guarded),
	}
}

// guarded reports whether a word names what holds credentials, or the system's.
func (s *shell) guarded(word string) bool {
	p := s.resolve(word)
	return isCredentialFile(p) || systemFolder.MatchString(p)
}

var fileReaders = words("cat head tail tar zip gzip base64 xxd less more grep awk sed cut printenv env find ls od strings dd mysqldump pg_dump git")

// first is the name of the command a statement begins with.
func (s *shell) first(st *syntax.Stmt) string {
	if c, ok := st.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		return programName(s.literal(c.Args[0]))
	}
	return ""
}
