package toolcall

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	downloaders = words("curl wget fetch aria2c lwp-request lynx w3m http https httpie iwr irm Invoke-WebRequest Invoke-RestMethod ftp tftp scp nc ncat netcat socat certutil bitsadmin")
	senders     = words("curl wget http https httpie nc ncat netcat socat telnet ftp scp rsync mail mailx sendmail mutt telegram-send aws gsutil gcloud rclone ssh openssl sftp lftp smbclient tftp swaks xh curlie croc nslookup")
	resolvers   = words("dig nslookup host drill ping traceroute resolvectl kdig")
	decoders    = words("base64 xxd openssl base32 uudecode gzip bzip2 xz zstd base58 basenc lz4 brotli")
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
	s.filters(n, argv)
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
			s.fetched[path.Base(file)] = true
		}
	}
	if left.fetches && (name == "tar" || name == "unzip" || name == "cpio") {
		s.fetched[unpacked] = true
	}
	if name == "crontab" || name == "at" || name == "batch" {
		s.breaks(Persistence)
	}
	if executes && (left.fetches || left.decodes) || (name == "iex" || name == "Invoke-Expression") {
		s.breaks(RemoteCodeExecution)
	}
	text, known := s.output(n.X, 0)
	if known {
		if decoded, is := decodedBy(argv, text); is {
			s.keepsAs(n.Y.Redirs, decoded)
		}
		s.feed(argv, text)
	}
	if contains(words, "xargs") || contains(words, "parallel") {
		s.perLine(words, n.X, text, known)
	}
	if left.packs && carriers[name] && !s.localOnly(argv) {
		s.carries(argv)
	}
	if senders[name] && (!known || left.sensitive) && left.reads { // what is known stands on the command line
		s.sends(argv, left.sensitive)
	}
}

// peers talk to whoever answers; carriers put a whole stream somewhere.
var (
	peers    = words("nc ncat netcat telnet socat")
	carriers = words("curl wget nc ncat netcat socat ftp lftp telnet http")
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
	if call, ok := commandOf(from); ok && !known {
		for _, place := range s.listed(unwrap(s.argv(call))) {
			s.command(with(run, replaceMark(words[at:]), place), 1)
		}
		return
	}
	if !known {
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

func commandOf(st *syntax.Stmt) (*syntax.CallExpr, bool) {
	if st == nil {
		return nil, false
	}
	call, ok := st.Cmd.(*syntax.CallExpr)
	return call, ok
}

// delimiter is what xargs -d splits its input at.
func delimiter(argv []string) string {
	for i, w := range argv {
		if value, found := strings.CutPrefix(w, "-d"); found {
			return cmp.Or(value, wordAt(argv, i+1))
		}
		if value, found := strings.CutPrefix(w, "--delimiter="); found {
			return value
		}
	}
	return ""
}

// replaceMark is what xargs -I replaces.
func replaceMark(argv []string) string {
	for i, w := range argv {
		if value, found := strings.CutPrefix(w, "-I"); found {
			return cmp.Or(value, wordAt(argv, i+1))
		}
		if value, found := strings.CutPrefix(w, "--replace="); found {
			return value
		}
	}
	return "{}"
}

// pipedInto gives what flows into a loop to the read at its head.
func (s *shell) pipedInto(n *syntax.BinaryCmd) {
	text, known := s.output(n.X, 0)
	if call, ok := n.X.Cmd.(*syntax.CallExpr); ok && !known {
		places := s.listed(unwrap(s.argv(call)))
		text, known = strings.Join(places, " "), len(places) > 0
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

// filters notes the env before a filter that shows nothing secret.
func (s *shell) filters(n *syntax.BinaryCmd, argv []string) {
	if len(argv) == 0 || shows(argv) {
		return
	}
	syntax.Walk(n.X, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			s.dumped[call] = true
		}
		return true
	})
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
		case resolvers[name] && (f.runs || strings.Contains(s.literal(w), contentsText)):
			s.breaks(DataExfiltration)
		case senders[name] && f.reads:
			leaks, sensitive = true, sensitive || f.sensitive
		}
	}
	for _, w := range n.Args {
		if (name == "echo" || name == "printf") && namesSecret(w) {
			s.breaks(CredentialAccess)
		}
		if senders[name] && namesSecret(w) {
			leaks, sensitive = true, true
		}
	}
	if slices.ContainsFunc(inner[1:], func(w string) bool { return strings.Contains(w, contentsText) }) && senders[name] {
		leaks = true
	}
	if runs && slices.ContainsFunc(inner[1:], func(w string) bool { return strings.Contains(w, fetchedText) }) {
		s.breaks(RemoteCodeExecution)
	}
	if leaks {
		s.sends(inner, sensitive)
	}
}

// contentsText and fetchedText stand in a variable for what only the running
// shell would know, where its origin is known: the contents of a file, a download.
const (
	contentsText = unknownText + "\u25a4"
	fetchedText  = unknownText + "\u25a5"
)

// namesSecret reports whether a word expands a variable called like a secret.
func namesSecret(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && cloudSecret.MatchString(p.Param.Value) {
			found = true
		}
		return !found
	})
	return found
}

// cloudSecret is what the variables are called that hold the keys of an account.
var cloudSecret = newExpression(`^(?:AWS_SECRET_ACCESS_KEY|AWS_SESSION_TOKEN|GITHUB_TOKEN|GH_TOKEN|OPENAI_API_KEY|ANTHROPIC_API_KEY|NPM_TOKEN|DATABASE_PASSWORD|DB_PASSWORD|PGPASSWORD|\w*PRIVATE_KEY)$`)

// input judges a file that a command which talks to the network reads.
func (s *shell) input(argv []string, name string) {
	argv = unwrap(argv)
	if len(argv) == 0 || !senders[programName(argv[0])] || strings.HasPrefix(name, "/dev/") {
		return
	}
	s.sends(argv, s.guarded(name))
}

// transfers judges a command that talks to the network by its operands.
func (s *shell) transfers(name string, argv []string) {
	if name == "git" {
		s.clones(argv)
		s.pushes(argv)
	}
	if !downloaders[name] && !senders[name] && !resolvers[name] {
		return
	}
	s.remember(name, argv)
	if name == "nc" || name == "ncat" || name == "netcat" || name == "socat" {
		line := strings.Join(argv, " ")
		if hasFlag(argv, 'e', "--exec") || hasFlag(argv, 'c', "--sh-exec") || execAddress.MatchString(line) {
			s.breaks(RemoteCodeExecution)
		}
	}
	if address := connectTo.FindStringSubmatch(strings.Join(argv, " ")); address != nil && name == "curl" {
		s.target("http://"+address[1]+"/", false)
	}
	for _, w := range argv[1:] {
		if name != "curl" && httpPort.MatchString(w) {
			s.target("http://localhost"+w, true) // how httpie spells it
		}
		if strings.Contains(w, "://") || (name == "nc" || name == "ncat" || name == "netcat" || name == "telnet" || name == "wget") && s.isAddress(w) || name == "curl" && (localName.matches(s.hostOf(w)) || s.isAddress(w)) {
			s.target(w, true)
			for _, inner := range redirected(w) {
				s.target(inner, true)
			}
		}
	}
	if file, data := s.upload(name, argv); data {
		s.sends(argv, file != "" && isCredentialFile(s.resolve(file)) || secret.matches(strings.Join(argv, " ")))
	}
}

// curlReadsOptions reports whether curl reads its flags from its input.
func curlReadsOptions(argv []string) bool {
	for i, w := range argv {
		if (w == "-K" || w == "--config") && (wordAt(argv, i+1) == "-" || wordAt(argv, i+1) == "/dev/stdin") || w == "-K-" {
			return true
		}
	}
	return false
}

// curlOptions are the flags in a configuration of curl: one a line, without its
// dashes if it likes.
func curlOptions(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.IndexAny(line, "=: \t")
		if at < 0 {
			at = len(line)
		}
		out = append(out, "--"+strings.TrimLeft(line[:at], "-"))
		if value := strings.Trim(line[at:], "=: \t\""); value != "" {
			out = append(out, value)
		}
	}
	return out
}

// execAddress is a command in an address of socat.
var execAddress = newExpression(`(?i)\b(?:exec|system|shell):`)

// upload finds the flags that send a file, or data that holds a secret.
func (s *shell) upload(name string, argv []string) (string, bool) {
	flags, knows := uploadFlags[name]
	for i := 1; i < len(argv) && knows; i++ {
		value, next, found := flags.program(argv, i)
		if !found {
			if strings.Contains(argv[i], "://") && secret.matches(argv[i]) {
				return "", true
			}
			i += flags.valueWords(argv[i])
			continue
		}
		flag := argv[i]
		i = next - 1
		if queryText.MatchString(value) {
			s.surely(value)
		}
		if wholeFile.MatchString(flag) {
			return value, true
		}
		if at := strings.IndexAny(value, "@<"); at >= 0 && (at == 0 || value[at-1] == '=' || strings.HasPrefix(flag, "--data-urlencode") && !strings.ContainsAny(value[:at], "= ")) {
			file, _, _ := strings.Cut(value[at+1:], ";")
			return file, file != "-"
		}
		if secret.matches(value) {
			return "", true
		}
	}
	if name == "aws" && slices.ContainsFunc(argv, func(w string) bool { return strings.HasPrefix(w, "--endpoint-url") }) {
		return "", slices.Contains(argv, "cp") || slices.Contains(argv, "sync") || slices.Contains(argv, "mv") || slices.Contains(argv, "put-object")
	}
	if name == "mail" || name == "mailx" || name == "mutt" || name == "sendmail" || name == "swaks" {
		for i, w := range argv {
			if (w == "-a" || w == "-A" || w == "--attach") && i+1 < len(argv) {
				return strings.TrimPrefix(argv[i+1], "@"), true
			}
		}
	}
	if name == "http" || name == "https" || name == "httpie" || name == "xh" {
		for _, w := range argv[1:] {
			if m := httpieFile.FindStringSubmatch(w); m != nil {
				return m[1], true
			}
		}
	}
	if (name == "gsutil" || name == "gcloud") && slices.Contains(argv, "cp") || name == "lftp" || name == "smbclient" || name == "tftp" {
		for _, w := range argv[1:] {
			if m := putFile.FindStringSubmatch(w); m != nil {
				return m[1], true
			}
			if isCredentialFile(w) {
				return w, true
			}
		}
	}
	if name == "scp" || name == "rsync" || name == "rclone" || name == "sftp" {
		if names := operands(argv); len(names) > 1 && strings.Contains(names[len(names)-1], ":") {
			return names[0], true
		}
	}
	return "", false
}

// connectTo is the address that curl goes to instead of the one in the URL.
var connectTo = newExpression(`--(?:resolve|connect-to)[= ]\S*:\d*:\[?([0-9a-fA-F.:]+?)\]?(?::\d*)?(?: |$)`)

// httpPort is a port of this machine.
var httpPort = newExpression(`^:\d{2,5}/`)

// wholeFile are the flags whose value is the name of a file to send.
var wholeFile = newExpression(`^(?:-[a-zA-Z]*T|--upload-file|--post-file|--body-file)`)

// queryText is the body of a request that is a query.
var queryText = newExpression(`(?i)^\s*(?:drop|truncate|delete\s+from|alter|update)\s`)

var (
	httpieFile = newExpression(`^[\w-]*@([^@\s]+)$`)
	putFile    = newExpression(`\bm?put\s+(\S+)`)
)

// uploadFlags carry data, in every spelling: -d x, -dx, -sd x, --data=x.
var uploadFlags = map[string]options{
	"curl": {
		values: "AbcCDeEHKmoPQrtuUwxXYyz", text: "dFT",
		long:     "--header --output --request --user --user-agent --cookie --max-time --proxy --config --resolve --connect-to --url",
		longText: "--data --data-binary --data-raw --data-ascii --data-urlencode --form --form-string --upload-file --json",
	},
	"wget": {values: "aeiBOQPtTUlADIRX", long: "--header --method --output-document", longText: "--post-file --post-data --body-file --body-data"},
}

// sends judges that data leaves: secrets may go only where the user said,
// other files also where nothing is known against it.
func (s *shell) sends(argv []string, sensitive bool) {
	for _, host := range s.hostsOf(argv) {
		if s.asksFor(host) || localName.matches(host) || host == "127.0.0.1" {
			continue
		}
		if sensitive || s.asked || dropSite.matches(host) || collector.matches(host) || s.observed(host) {
			s.breaks(DataExfiltration)
		}
	}
}

func (s *shell) hostsOf(argv []string) []string {
	var out []string
	for _, w := range operands(argv) {
		if m := networkPeer.FindStringSubmatch(w); m != nil {
			w = m[1]
		}
		if h := s.hostOf(w); strings.Contains(h, ".") || strings.Contains(w, "://") || localName.matches(h) {
			out = append(out, h)
		}
	}
	return out
}

// networkPeer is the host in an address of socat or openssl.
var networkPeer = newExpression(`^(?i:(?:tcp[46]?|udp[46]?|openssl|ssl)(?:-connect)?:)?([\w.-]+\.\w+):\d+\S*$`)

// hostOf finds the host in an address, a user@host:path or a bare name.
func (s *shell) hostOf(w string) string {
	if at := strings.IndexByte(w, '@'); at > 0 && !strings.Contains(w, "://") {
		host, _, _ := strings.Cut(w[at+1:], ":")
		return host
	}
	if a, ok := s.readAddress(w); ok && !strings.HasPrefix(w, ".") && !strings.HasPrefix(w, "/") && !strings.HasPrefix(w, "@") {
		return a.host
	}
	return ""
}

func (s *shell) isAddress(w string) bool {
	a, ok := s.readAddress(w)
	return ok && a.internal && strings.ContainsAny(w, ".:x")
}

// remember notes the files that a downloader writes.
func (s *shell) remember(name string, argv []string) {
	flags := downloadFlags[name]
	keeps := name == "wget" || name == "aria2c" || name == "fetch"
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if file, next, found := flags.program(argv, i); found {
			s.fetched[path.Base(file)] = true
			i = next - 1
			continue
		}
		keeps = keeps || name == "curl" && (w == "--remote-name" || w == "--remote-name-all" || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "O"))
	}
	for _, w := range argv[1:] {
		if !keeps || !strings.Contains(w, "://") {
			continue
		}
		if a, ok := s.readAddress(w); ok && a.path != "/" {
			s.fetched[path.Base(a.path)] = true
		}
	}
	if names := operands(argv); name == "certutil" && len(names) > 0 {
		s.fetched[path.Base(names[len(names)-1])] = true
	}
	if names := operands(argv); name == "scp" && len(names) > 1 && strings.Contains(names[0], ":") {
		_, from, _ := strings.Cut(names[0], ":")
		s.fetched[path.Base(names[len(names)-1])], s.fetched[path.Base(from)] = true, true
	}
}

// downloadFlags name, as if it were a program, the file that a downloader writes.
var downloadFlags = map[string]options{
	"curl":   {values: "AbcCdDeEFHKmPQrtTuUwxXYyz", text: "o", longText: "--output"},
	"wget":   {values: "aeiBQPtTUlADIRX", text: "O", longText: "--output-document"},
	"aria2c": {values: "dijksx", text: "o", longText: "--out"},
	"fetch":  {values: "wTS", text: "o", longText: "--output"},
	"http":   {values: "as", text: "o", longText: "--output"},
	"iwr":    {}, "Invoke-WebRequest": {},
}

// clones notes the folder that git clone writes.
func (s *shell) clones(argv []string) {
	names := operands(argv)
	at := slices.Index(names, "clone")
	if at < 0 {
		return
	}
	from := slices.IndexFunc(names[at:], func(w string) bool { return strings.ContainsAny(w, ":@") })
	if from < 0 {
		return
	}
	at += from - 1 // so that the address is the next
	folder := strings.TrimSuffix(path.Base(names[at+1]), ".git")
	if at+2 < len(names) {
		folder = path.Base(names[at+2])
	}
	s.fetched[folder] = true
}

// pushes judges a push to an address: the remotes of a clone are the user's choice,
// one that the command names is its own.
func (s *shell) pushes(argv []string) {
	names := clientFlags["git"].operandsOf(argv)
	if wordAt(names, 0) == "remote" && (wordAt(names, 1) == "add" || wordAt(names, 1) == "set-url") && len(names) > 3 {
		s.written["git remote "+names[2]] = names[3]
	}
	at := slices.Index(names, "push")
	if at < 0 || at > 2 || at+1 >= len(names) {
		return
	}
	to := cmp.Or(s.written["git remote "+names[at+1]], names[at+1])
	host := s.hostOf(to)
	if !strings.ContainsAny(to, ":@") || host == "" || s.asksFor(host) || localName.matches(host) {
		return
	}
	if s.asked || s.observed(host) || dropSite.matches(host) {
		s.breaks(DataExfiltration)
	}
}

// commandEffects is what the commands below a node do.
type commandEffects struct {
	version                                  int
	runs, fetches, decodes, reads, sensitive bool
	shell                                    bool // one that takes its commands from its input
	packs                                    bool // a folder or a database
}

func (f commandEffects) and(g commandEffects) commandEffects {
	f.runs, f.fetches, f.decodes = f.runs || g.runs, f.fetches || g.fetches, f.decodes || g.decodes
	f.reads, f.sensitive = f.reads || g.reads, f.sensitive || g.sensitive
	f.shell, f.packs = f.shell || g.shell, f.packs || g.packs
	return f
}

// factsOf reads the commands below a node. Every statement is read once while
// the variables stay as they are, however many commands stand around it.
func (s *shell) factsOf(n syntax.Node) commandEffects {
	if f, known := s.facts[n]; known && f.version == s.version {
		return f
	}
	f := commandEffects{version: s.version}
	if w, is := n.(*syntax.Word); is {
		if nodes, _, written := asWritten(w); written {
			s.spend(2 * nodes) // as the walk would, which sees the end of a node too
			s.facts[n] = f
			return f
		}
	}
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
		runs: true, fetches: fetchesWithin(argv) || downloaders[name] || lookups[name] || name == "openssl" && wordAt(argv, 1) == "s_client", reads: fileReaders[name],
		decodes: decodes(name, argv), packs: packers[name] || (name == "docker" || name == "podman") && (wordAt(argv, 1) == "save" || wordAt(argv, 1) == "export" || wordAt(argv, 1) == "cp"), shell: isShell(name) && readsProgram(argv),
		sensitive: name == "env" || name == "printenv" || name == "set" || slices.ContainsFunc(argv[1:], s.guarded),
	}
}

// fetchesWithin reports whether the program of a shell downloads.
func fetchesWithin(argv []string) bool {
	if !isShell(argv[0]) {
		return false
	}
	program, _, given := programOf(argv)
	return given && downloads.matches(program)
}

var downloads = screenOf(`\b(?:curl|wget|aria2c|ncat|netcat)\b`, `\bnc\s`)

// decodes reports whether a command turns what nobody can read into text.
func decodes(name string, argv []string) bool {
	switch {
	case unpackers[name], name == "gpg" && hasFlag(argv, 'd', "--decrypt"), carves(name, argv):
		return true
	case (name == "awk" || name == "gawk" || name == "mawk") && len(argv) > 1:
		return strings.Contains(argv[1], "%c")
	case decoders[name]:
		return hasFlag(argv, 'd', "--decode") || hasFlag(argv, 'D', "") || hasFlag(argv, 'r', "")
	case name == "tr":
		sets := operands(argv)
		return len(sets) == 2 && len(characters(sets[0])) > 8 && len(characters(sets[1])) > 8
	case name == "printf" || name == "echo":
		return len(escapedByte.FindAllStringIndex(strings.Join(argv[1:], " "), 4)) > 3
	case isInterpreter(name):
		program, _, given := programOf(argv)
		return given && decoder.matches(program)
	}
	return false
}

// carves reports whether a command cuts its output out of a file that is no script.
func carves(name string, argv []string) bool {
	if !cutters[name] {
		return false
	}
	return slices.ContainsFunc(argv[1:], func(w string) bool { return dataFile.MatchString(strings.ToLower(w)) })
}

var (
	cutters  = words("dd tail head sed awk cut grep strings xxd od cat perl steghide exiftool binwalk zsteg")
	dataFile = newExpression(`\.(?:jpe?g|png|gif|bmp|ico|svg|webp|pdf|md|txt|log|csv|docx?|xlsx?|mp[34]|wav|html?|json|xml|ya?ml|dat|bin|b64|gpg|enc)$`)
)

var (
	unpackers   = words("gunzip zcat bzcat bunzip2 xzcat unxz zstdcat unzstd uncompress rev base58 uudecode qprint ascii85 base64url")
	packers     = words("tar zip 7z 7za rar cpio ar bsdtar mysqldump pg_dump pg_dumpall mongodump sqlite3 find git env printenv gpg pbpaste xclip xsel screencapture history crontab")
	lookups     = words("dig nslookup host drill telnet")
	escapedByte = newExpression(`\\(?:x[0-9a-fA-F]{2}|0?[0-7]{3})`)
)

// guarded reports whether a word names what holds credentials, or the system's.
func (s *shell) guarded(word string) bool {
	p := s.resolve(word)
	return isCredentialFile(p) || systemFolder.MatchString(p)
}

var fileReaders = words("pbpaste xclip xsel screencapture history crontab ps journalctl dmesg tree sqlite3 mysql psql mongodump rg jq sort tail nl tac bat base32 gpg hexdump rev column 7z 7za rar cpio bzip2 xz zstd pg_dumpall hostname whoami id uname cat head tail tar zip gzip base64 xxd less more grep awk sed cut printenv env find ls od strings dd mysqldump pg_dump git")

// first is the name of the command a statement begins with.
func (s *shell) first(st *syntax.Stmt) string {
	if c, ok := st.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		return programName(s.literal(c.Args[0]))
	}
	return ""
}
