package toolcall

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/address"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

var (
	downloaders = words("curl wget fetch aria2c lwp-request lynx w3m http https httpie iwr irm Invoke-WebRequest Invoke-RestMethod ftp tftp scp nc ncat netcat socat certutil bitsadmin")
	senders     = words("curl wget http https httpie nc ncat netcat socat telnet ftp scp rsync mail mailx sendmail mutt telegram-send aws gsutil gcloud rclone ssh openssl sftp lftp smbclient tftp swaks xh curlie croc nslookup")
	resolvers   = words("dig nslookup host drill ping traceroute resolvectl kdig")
	decoders    = words("base64 xxd openssl base32 uudecode gzip bzip2 xz zstd base58 basenc lz4 brotli")
)

// substituted finds commands whose arguments are made of what was downloaded,
// or that carry the contents of files away.
func (s *shell) substituted(inner []string, n *syntax.CallExpr) {
	if len(inner) == 0 {
		if s.factsOf(n).fetches {
			s.breaks(RemoteCodeExecution) // $(curl …) as a command
		}
		return
	}
	name := programName(inner[0])
	runs := isShell(name) || isInterpreter(name) || name == "eval" || name == "source" || name == "." || inner[0] == unknownText
	prints, resolves, talks := name == "echo" || name == "printf", resolvers[name], senders[name]
	if !runs && !prints && !resolves && !talks {
		return
	}
	leaks, sensitive := false, false
	for _, w := range n.Args {
		f := s.factsOf(w)
		switch {
		case runs && (f.fetches || f.decodes):
			s.breaks(RemoteCodeExecution)
		case resolves && (f.runs || strings.Contains(s.literal(w), contentsText)):
			s.breaks(DataExfiltration)
		case talks && f.reads:
			leaks, sensitive = true, sensitive || f.sensitive
		}
	}
	if prints || talks {
		for _, w := range n.Args {
			secret := secretIn(w)
			if prints && secret != "" && s.projected[n] == wholeText {
				s.breaks(CredentialAccess)
			}
			if talks && secret != "" && !s.signsIn(secret, s.literal(w), inner) {
				leaks, sensitive = true, true
			}
		}
	}
	if talks && slices.ContainsFunc(inner[1:], func(w string) bool { return strings.Contains(w, contentsText) }) {
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

// secretIn is the variable called like a secret that a word expands, or empty.
func secretIn(w *syntax.Word) string {
	if makeupOf(w).written() {
		return ""
	}
	found := ""
	syntax.Walk(w, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && cloudSecret.MatchString(p.Param.Value) {
			found = p.Param.Value
		}
		return found == ""
	})
	return found
}

// signsIn reports whether a request carries a key where keys are carried, and to nobody but the
// service that has given it.
func (s *shell) signsIn(secret, header string, argv []string) bool {
	service := keyServices[secret]
	if service == nil || !loginHeader.MatchString(header) {
		return false
	}
	asked := 0
	for _, w := range argv[1:] {
		if !strings.Contains(w, "://") {
			continue
		}
		if a, ok := s.readAddress(w); !ok || !service.MatchString(a.Host+a.Path) || a.Disguised {
			return false
		}
		asked++
	}
	return asked > 0
}

var (
	loginHeader = regex.New(`^(?i:authorization: ?(?:bearer|token|basic)|x-api-key:|private-token:) ?\S+$`)

	keyServices = map[string]*regex.Expression{
		"GITHUB_TOKEN": gitHub, "GH_TOKEN": gitHub,
		"OPENAI_API_KEY":    regex.New(`^api\.openai\.com/`),
		"ANTHROPIC_API_KEY": regex.New(`^api\.anthropic\.com/`),
		"NPM_TOKEN":         regex.New(`^registry\.npmjs\.org/`),
	}
	// gitHub is the service and a server of one's own, which has its interface below /api.
	gitHub = regex.New(`^(?:(?:api|uploads)\.github\.com/|(?:github|ghe)\.[\w.-]+/api/(?:v3/|graphql))`)
)

// cloudSecret is what the variables are called that hold the keys of an account.
var cloudSecret = regex.New(`^(?:AWS_SECRET_ACCESS_KEY|AWS_SESSION_TOKEN|GITHUB_TOKEN|GH_TOKEN|OPENAI_API_KEY|ANTHROPIC_API_KEY|NPM_TOKEN|DATABASE_PASSWORD|DB_PASSWORD|PGPASSWORD|\w*PRIVATE_KEY)$`)

// parameterFile is a file that the value of a parameter of Amazon's client stands in.
var parameterFile = regex.New(`^fileb?://(.+)$`)

// ownSocket is a socket of a program in the workspace.
var ownSocket = regex.New(`^(?:/tmp/|\.?[\w-])[\w./-]*\.sock(?:et)?$`)

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
	if to := connectTo.FindStringSubmatch(strings.Join(argv, " ")); to != nil && name == "curl" {
		s.target("http://"+to[1]+"/", false)
	}
	socket := valueOf(argv, "--unix-socket", "--unix-socket=")
	for _, w := range argv[1:] {
		if socket != "" && strings.Contains(w, "://") && ownSocket.MatchString(s.resolve(socket)) {
			continue // the host is a header there
		}
		if m := parameterFile.FindStringSubmatch(w); m != nil && name == "aws" {
			s.opened(argv, m[1])
			continue
		}
		if name != "curl" && httpPort.MatchString(w) {
			s.target("http://localhost"+w, true) // how httpie spells it
		}
		if strings.Contains(w, "://") || (name == "nc" || name == "ncat" || name == "netcat" || name == "telnet" || name == "wget") && s.isAddress(w) || name == "curl" && (address.IsLocalName(s.hostOf(w)) || s.isAddress(w)) {
			s.target(w, true)
			for _, inner := range address.Redirected(w) {
				s.target(inner, true)
			}
		}
	}
	if q, is := s.requestOf(name, argv); is {
		s.asksServer(q)
	}
	if file, data := s.upload(name, argv); data {
		s.sends(argv, file != "" && (s.private(file) || speaksHTTP[name] && s.othersData(file)) || secret.Matches(strings.Join(argv, " ")))
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
var execAddress = regex.New(`(?i)\b(?:exec|system|shell):`)

// upload finds the flags that send a file, or data that holds a secret.
func (s *shell) upload(name string, argv []string) (string, bool) {
	flags, knows := uploadFlags[name]
	for i := 1; i < len(argv) && knows; i++ {
		value, next, found := flags.program(argv, i)
		if !found {
			if strings.Contains(argv[i], "://") && secret.Matches(argv[i]) {
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
		if secret.Matches(value) {
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
			if file.IsCredential(w) {
				return w, true
			}
		}
	}
	if name == "rclone" {
		return rcloned(argv)
	}
	if name == "scp" || name == "rsync" || name == "sftp" {
		if names := operands(argv); len(names) > 1 && strings.Contains(names[len(names)-1], ":") {
			return names[0], true
		}
	}
	return "", false
}

// requestOf is the request that a client on a command line makes.
func (b *budget) requestOf(name string, argv []string) (request, bool) {
	if !speaksHTTP[name] {
		return request{}, false
	}
	var q request
	flags := uploadFlags[name]
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if data, next, found := flags.program(argv, i); found {
			q.body = append(q.body, b.bodyOf(data)...)
			i = next - 1
			continue
		}
		switch {
		case w == "-X" || w == "--request" || w == "--method":
			q.method = wordAt(argv, i+1)
			i++
		case strings.HasPrefix(w, "-X"):
			q.method = w[2:]
		case name == "curl" && curlMethod.MatchString(w):
			if q.method = w[strings.IndexByte(w, 'X')+1:]; q.method == "" {
				i++
				q.method = wordAt(argv, i)
			}
		case strings.HasPrefix(w, "--request=") || strings.HasPrefix(w, "--method="):
			_, q.method, _ = strings.Cut(w, "=")
		case httpMethod.MatchString(w) && strings.ToUpper(w) == w && name != "curl":
			q.method = w
		case strings.Contains(w, "://") && !strings.HasPrefix(w, "-") && q.address == "":
			q.address = w
		case name != "curl" && name != "wget" && strings.Contains(w, "="):
			key, value, _ := strings.Cut(w, "=")
			q.body = append(q.body, leaf{key: fold(strings.TrimSuffix(key, ":")), value: value, text: true})
		case strings.HasPrefix(w, "-"):
			i += flags.valueWords(w)
		}
	}
	if q.method == "" && len(q.body) > 0 {
		q.method = "POST"
	}
	q.method = strings.ToUpper(q.method)
	return q, q.method != "" && q.address != ""
}

// bodyOf are the members of a body in JSON, or of a form.
func (b *budget) bodyOf(data string) []leaf {
	if len(data) > maxWritten {
		return nil
	}
	if leaves, err := readArguments([]byte(data), b); err == nil {
		return leaves
	}
	return queryOf("?" + data)
}

// curlMethod is the flag for a method behind flags that take no value.
var curlMethod = regex.New(`^-[sSfkLivgnqN#01246jJlZ]+X\w*$`)

var speaksHTTP = words("curl wget http https httpie xh curlie")

// private reports whether a file holds credentials, or is a person's own.
func (s *shell) private(name string) bool {
	p := s.resolve(name)
	return file.IsCredential(p) || personalFolder.MatchString(p) && path.Ext(p) == "" // one document is what one sends
}

// othersData reports whether a file is of what a machine keeps for others.
func (s *shell) othersData(name string) bool { return file.HoldsOthersData(s.resolve(name)) }

// personalFolder is a home, or the folder in it where people keep what concerns nobody else.
var personalFolder = regex.New(`^(?:~|/(?:home|Users)/[^/]+|/root)/?[*.]*$|(?i)^(?:~|(?:[a-z]:)?/(?:home|users)/[^/]+|/root)/(?:documents?|desktop|pictures|photos|financ\w*|mail|private|personal|tax\w*|bank\w*|medical|contracts?|hr|invoices?|accounting|library|onedrive\w*|dropbox|nextcloud|\.mozilla|\.thunderbird)(?:/|$)`)

// rcloned is the folder that rclone copies to a place that the command line itself
// describes: those of its configuration are the user's choice.
func rcloned(argv []string) (string, bool) {
	verb := slices.IndexFunc(argv, func(w string) bool { return rcloneVerbs[w] })
	if verb < 0 || !slices.ContainsFunc(argv[verb:], func(w string) bool { return strings.HasPrefix(w, ":") || strings.Contains(w, "://") }) {
		return "", false
	}
	names := operands(argv[verb:])
	return wordAt(names, 0), len(names) > 1
}

var rcloneVerbs = words("copy sync move copyto moveto")

// connectTo is the address that curl goes to instead of the one in the URL.
var connectTo = regex.New(`--(?:resolve|connect-to)[= ]\S*:\d*:\[?([0-9a-fA-F.:]+?)\]?(?::\d*)?(?: |$)`)

// httpPort is a port of this machine.
var httpPort = regex.New(`^:\d{2,5}/`)

// wholeFile are the flags whose value is the name of a file to send.
var wholeFile = regex.New(`^(?:-[a-zA-Z]*T|--upload-file|--post-file|--body-file)`)

// queryText is the body of a request that is a query.
var queryText = regex.New(`(?i)^\s*(?:drop|truncate|delete\s+from|alter|update)\s`)

var (
	httpieFile = regex.New(`^[\w-]*@([^@\s]+)$`)
	putFile    = regex.New(`\bm?put\s+(\S+)`)
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
		if s.asksFor(host) || address.IsLocalName(host) || host == "127.0.0.1" {
			continue
		}
		if sensitive || s.asked || dropSite.Matches(host) || address.IsCollector(host) || s.observed(host) {
			s.breaks(DataExfiltration)
		}
	}
}

func (s *shell) hostsOf(argv []string) []string {
	var out []string
	for _, w := range argv[1:] {
		if strings.HasPrefix(w, "-") {
			_, value, _ := strings.Cut(w, "=")
			if w = value; !strings.Contains(value, "://") {
				continue
			}
		}
		w = strings.TrimPrefix(w, "//") // a share
		if m := networkPeer.FindStringSubmatch(w); m != nil {
			w = m[1]
		}
		if h := s.hostOf(w); strings.Contains(h, ".") || strings.Contains(w, "://") || address.IsLocalName(h) {
			out = append(out, h)
		}
	}
	return out
}

// networkPeer is the host in an address of socat or openssl.
var networkPeer = regex.New(`^(?i:(?:tcp[46]?|udp[46]?|openssl|ssl)(?:-connect)?:)?([\w.-]+\.\w+):\d+\S*$`)

// hostOf finds the host in an address, a user@host:path or a bare name.
func (s *shell) hostOf(w string) string {
	if at := strings.IndexByte(w, '@'); at > 0 && !strings.Contains(w, "://") {
		host, _, _ := strings.Cut(w[at+1:], ":")
		return host
	}
	if a, ok := s.readAddress(w); ok && !strings.HasPrefix(w, ".") && !strings.HasPrefix(w, "/") && !strings.HasPrefix(w, "@") {
		return a.Host
	}
	return ""
}

func (s *shell) isAddress(w string) bool {
	a, ok := s.readAddress(w)
	return ok && a.Internal && strings.ContainsAny(w, ".:x")
}

// remember notes the files that a downloader writes.
func (s *shell) remember(name string, argv []string) {
	flags := downloadFlags[name]
	keeps := name == "wget" || name == "aria2c" || name == "fetch"
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if file, next, found := flags.program(argv, i); found {
			note(&s.fetched, path.Base(file), true)
			i = next - 1
			continue
		}
		keeps = keeps || name == "curl" && (w == "--remote-name" || w == "--remote-name-all" || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "O"))
	}
	for _, w := range argv[1:] {
		if !keeps || !strings.Contains(w, "://") {
			continue
		}
		if a, ok := s.readAddress(w); ok && a.Path != "/" {
			note(&s.fetched, path.Base(a.Path), true)
		}
	}
	if names := operands(argv); name == "certutil" && len(names) > 0 {
		note(&s.fetched, path.Base(names[len(names)-1]), true)
	}
	if names := operands(argv); name == "scp" && len(names) > 1 && strings.Contains(names[0], ":") {
		_, from, _ := strings.Cut(names[0], ":")
		note(&s.fetched, path.Base(names[len(names)-1]), true)
		note(&s.fetched, path.Base(from), true)
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
	note(&s.fetched, folder, true)
}

// pushes judges a push to an address: the remotes of a clone are the user's choice,
// one that the command names is its own.
func (s *shell) pushes(argv []string) {
	names := clientFlags["git"].operandsOf(argv)
	if wordAt(names, 0) == "remote" && (wordAt(names, 1) == "add" || wordAt(names, 1) == "set-url") && len(names) > 3 {
		note(&s.written, "git remote "+names[2], names[3])
	}
	at := slices.Index(names, "push")
	if at >= 0 && at+1 == len(names) { // to where it always goes
		names = append(names, "origin")
	}
	if at < 0 || at > 2 || at+1 >= len(names) {
		return
	}
	to := cmp.Or(s.written["git remote "+names[at+1]], names[at+1])
	host := s.hostOf(to)
	if !strings.ContainsAny(to, ":@") || host == "" || s.asksFor(host) || address.IsLocalName(host) {
		return
	}
	if s.asked || s.observed(host) || dropSite.Matches(host) {
		s.breaks(DataExfiltration)
	}
}
