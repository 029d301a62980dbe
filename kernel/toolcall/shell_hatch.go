package toolcall

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// hatches are the flags by which ordinary tools are told to start a command
// (their manuals; the list of GTFOBins names most).
var hatches = map[string]options{
	"tar":               {values: "fCTXbKgLNV", text: "IF", longText: "--to-command --use-compress-program --info-script --new-volume-script --rsh-command --rmt-command --checkpoint-action"},
	"bsdtar":            {values: "fCTXb", longText: "--use-compress-program"},
	"rsync":             {values: "fBTM", text: "e", longText: "--rsh --rsync-path"},
	"zip":               {longText: "--unzip-command -TT"},
	"tcpdump":           {values: "wricBCGFsvWTy", text: "z"},
	"split":             {values: "abCnl", longText: "--filter"},
	"sort":              {values: "kotST", longText: "--compress-program"},
	"make":              {values: "fCIjloW", longText: "--eval"},
	"gmake":             {values: "fCIjloW", longText: "--eval"},
	"man":               {text: "PH", values: "CMSseEpr", longText: "--pager --html"},
	"scp":               {values: "cFiJloP", text: "S"},
	"sftp":              {values: "BbcDFiJloPRs", text: "S"},
	"wget":              {longText: "--use-askpass"},
	"openvpn":           {longText: "--up --down --route-up --ipchange --tls-verify --auth-user-pass-verify"},
	"dnsmasq":           {longText: "--dhcp-script"},
	"npm":               {text: "c", longText: "--call --script-shell"},
	"npx":               {values: "p", text: "c", longText: "--call", long: "--package"},
	"yarn":              {},
	"pnpm":              {text: "c", longText: "--script-shell"},
	"nix-shell":         {values: "pAI", longText: "--run --command"},
	"nix":               {text: "c", longText: "--command"},
	"nodemon":           {values: "weid", text: "x", longText: "--exec"},
	"watchexec":         {values: "wefio"},
	"pandoc":            {values: "fto", text: "FL", longText: "--filter --lua-filter"},
	"start-stop-daemon": {values: "pucnd", text: "xa", longText: "--exec --startas"},
	"sg":                {text: "c"},
	"lftp":              {values: "up", text: "ec"},
	"xterm":             {values: "TngbfF", text: "e"},
	"konsole":           {text: "e"},
	"alacritty":         {text: "e"},
	"gnome-terminal":    {text: "e", longText: "--command"},
	"inotifywait":       {},
	"logrotate":         {values: "s", longText: "--mail"},
	"kubectl":           {longText: "--editor"},
	"psql":              {values: "dhpUFPRTvLfo"},
	"gpg":               {longText: "--photo-viewer"},
	"mutt":              {values: "abcisFm", text: "e"},
	"mail":              {values: "abcsrSu"},
	"ffmpeg":            {},
	"expect":            {values: "f", text: "c"},
	"fzf":               {longText: "--preview --bind"},
	"git":               {values: "C", longText: "--upload-pack --receive-pack --exec --extcmd --open-files-in-pager --tree-filter --index-filter --msg-filter --env-filter --commit-filter --parent-filter"},
	"cargo":             {},
	"borg":              {longText: "--rsh"},
	"nmap":              {longText: "--script"},
	"sshfs":             {},
	"mosh":              {longText: "--ssh --server --client"},
}

// hatched finds the commands that a tool is told to start.
func hatched(name string, argv []string) []string {
	var out []string
	if flags, known := hatches[name]; known {
		for i := 1; i < len(argv); i++ {
			if text, next, found := flags.program(argv, i); found {
				out = append(out, strings.TrimPrefix(text, "exec="))
				i = next - 1
			}
		}
	}
	switch name {
	case "git":
		return append(out, gitHatches(argv)...)
	case "ssh", "scp", "sftp", "sshfs", "slogin":
		return append(out, sshOptions(argv)...)
	case "sed", "gsed":
		return append(out, sedCommands(argv)...)
	case "gdb", "lldb", "r2", "mysql", "mariadb", "psql", "sqlite3", "ed", "less", "more", "ftp", "vi", "vim", "nvim", "ex", "view", "rvim", "gvim", "emacs", "bc", "duckdb":
		return append(out, escapes(argv)...)
	case "gcc", "cc", "g++", "clang", "c99":
		if i := slices.Index(argv, "-wrapper"); i > 0 {
			out = append(out, quoted(strings.Split(wordAt(argv, i+1), ",")))
		}
	case "zip":
		if i := slices.Index(argv, "-TT"); i > 0 {
			out = append(out, wordAt(argv, i+1))
		}
	case "expect":
		for i, w := range out {
			out[i] = strings.NewReplacer("spawn ", "", "interact", "", ";", "\n").Replace(w)
		}
	case "make", "gmake":
		for _, w := range argv[1:] {
			if program, sets := strings.CutPrefix(w, "SHELL="); sets {
				out = append(out, program)
			}
		}
	case "hyperfine", "concurrently", "entr", "watchexec":
		out = append(out, operands(argv)...)
	case "latex", "pdflatex", "xelatex", "lualatex", "tex", "gs":
		for _, m := range texCommand.FindAllStringSubmatch(strings.Join(argv, " "), 4) {
			out = append(out, m[1])
		}
	}
	return out
}

var texCommand = regex.New(`(?:\\write18\s*\{|%pipe%)([^})]*)`)

// gitSettings are those of git's settings whose value is a command.
var gitSettings = regex.New(`(?i)^(?:core\.(?:sshcommand|pager|editor|fsmonitor|askpass|gitproxy|hookspath)|pager\.\S+|sequence\.editor|diff\.external|(?:diff|merge|filter|difftool|mergetool|browser|man)\.\S+\.(?:command|textconv|driver|clean|smudge|process|cmd)|uploadpack\.packobjectshook|gpg(?:\.\S+)?\.program|interactive\.difffilter|credential(?:\.\S+)?\.helper|alias\.\S+|remote\.\S+\.(?:uploadpack|receivepack))=(.*)$`)

func gitHatches(argv []string) []string {
	var out []string
	for i, w := range argv {
		switch {
		case w == "-c" || w == "--config":
			if m := gitSettings.FindStringSubmatch(wordAt(argv, i+1)); m != nil {
				out = append(out, gitCommand(wordAt(argv, i+1), m[1])...)
			}
		case strings.HasPrefix(w, "ext::"):
			out = append(out, strings.TrimPrefix(w, "ext::"))
		case (w == "-x" || w == "-O") && i+1 < len(argv):
			out = append(out, argv[i+1])
		case w == "foreach" || w == "run" && i > 0 && argv[i-1] == "bisect":
			out = append(out, asLine(argv[i+1:]))
		case w == "-u" && slices.Contains(argv, "clone"), strings.HasPrefix(w, "-O") && len(w) > 2:
			out = append(out, cmp.Or(strings.TrimPrefix(strings.TrimPrefix(w, "-O"), "-u"), wordAt(argv, i+1)))
		}
	}
	return out
}

// asLine spells words as a command line; one word is a line already.
func asLine(argv []string) string {
	if len(argv) == 1 {
		return argv[0]
	}
	return quoted(argv)
}

// gitCommand is the command of a setting: an alias and a helper are git's own
// unless an exclamation mark begins them.
func gitCommand(setting, value string) []string {
	own := strings.HasPrefix(strings.ToLower(setting), "alias.") || strings.Contains(strings.ToLower(setting), ".helper=")
	command, shell := strings.CutPrefix(value, "!")
	if own && !shell && !strings.HasPrefix(value, "/") {
		return nil
	}
	return []string{command}
}

var sshCommand = regex.New(`(?i)^(?:ProxyCommand|LocalCommand|KnownHostsCommand|RemoteCommand|ProxyUseFdpass|ssh_command)[= ]\s*(.*)$`)

func sshOptions(argv []string) []string {
	var out []string
	for i, w := range argv {
		value := strings.TrimPrefix(w, "-o")
		if w == "-o" {
			value = wordAt(argv, i+1)
		}
		if m := sshCommand.FindStringSubmatch(value); m != nil && strings.HasPrefix(w, "-o") {
			out = append(out, m[1])
		}
	}
	return out
}

var (
	// sedExecutes is GNU sed's command e, after an address or another command.
	sedExecutes = regex.New(`(?:^|[;\n{}]|[0-9$/])\s*e\s+([^\n]+)`)

	// sedSubstitutes is its flag e: what the line has become is run.
	sedSubstitutes = regex.New(`s([/|#,@!%:])([^\n]*?)([/|#,@!%:])([^\n]*?)([/|#,@!%:])[gpiImM0-9]*e`)
)

func sedCommands(argv []string) []string {
	var out []string
	for _, w := range argv[1:] {
		for _, m := range sedExecutes.FindAllStringSubmatch(w, 4) {
			out = append(out, m[1])
		}
		for _, m := range sedSubstitutes.FindAllStringSubmatch(w, 4) {
			if m[1] == m[3] && m[3] == m[5] {
				out = append(out, m[4])
			}
		}
	}
	return out
}

// escaped is a command that a tool with commands of its own hands to a shell.
var escaped = regex.New(`(?:^|[:;'"\n+|]|\br |\bw )\s*\\?!\s*([^\n]+)|(?:^|[\n:])\s*\.?(?:shell|system|terminal|term|\\!)\s+([^\n]+)|(?:os\.execute|system|shell-command|call-process|os\.system)\s*\(?\s*['"]([^'"\n]+)['"]`)

func escapes(argv []string) []string {
	var out []string
	for _, w := range argv[1:] {
		for _, m := range escaped.FindAllStringSubmatch(w, 4) {
			out = append(out, m[1]+m[2]+m[3])
		}
	}
	return out
}

// hatch judges what a tool is told to start. What nobody would need a tool for,
// a shell for a person or a file that anybody could have laid down, is code that
// nobody has read.
func (s *shell) hatch(name string, argv []string) {
	if editors[name] {
		s.code(strings.Join(argv[1:], "\n"))
	}
	s.rewrites(name, argv)
	for _, text := range hatched(name, argv) {
		s.opens(text)
		if name == "make" || name == "gmake" {
			s.recipes(text)
		}
	}
}

// rewrites judges what a filter puts into the file of a package that its manager will run.
func (s *shell) rewrites(name string, argv []string) {
	if name != "jq" && name != "sed" && name != "gsed" && name != "perl" && name != "yq" {
		return
	}
	if !slices.ContainsFunc(argv, func(w string) bool {
		return strings.HasSuffix(w, "package.json") || strings.HasSuffix(w, "composer.json")
	}) {
		return
	}
	for _, w := range argv[1:] {
		if name != "jq" {
			s.recipe("package.json", w)
			continue
		}
		for _, m := range setsScript.FindAllStringSubmatch(w, maxPlaces) {
			s.recipe("package.json", `"postinstall": `+m[1])
		}
	}
}

// setsScript is an assignment of jq to a script of a package.
var setsScript = regex.New(`\.scripts(?:\.[\w-]+|\[?\.?\[?"[^"]+"\]?)\s*\|?=\s*("(?:[^"\\]|\\.)*")`)

var editors = words("vi vim nvim ex view rvim gvim emacs")

func (s *shell) opens(text string) {
	if handsOver.MatchString(text) {
		s.breaks(RemoteCodeExecution)
	}
	if strings.ContainsAny(text, " /;|&$`") {
		s.shellIn(text, s)
	}
}

// handsOver is a shell without a program, or a file in a folder that everybody
// writes to.
var handsOver = regex.New(`^[\s;|&]*(?:exec\s+)?(?:\S*/)?(?:(?:ba|z|da|k|c|tc|fi|a)?sh(?:\s+-[ipls]+)*(?:\s*(?:#.*|[0-2]?[<>]&?\S*|\S*;))*|(?:powershell|pwsh|cmd)(?:\.exe)?)\s*$|^\s*(?:(?:\S*/)?(?:ba|z|da)?sh\s+)?(?:\./)?/?(?:tmp|var/tmp|dev/shm)/\S+`)

// hooks are the variables whose value a program runs when it starts or needs one.
var hooks = words("GIT_SSH_COMMAND GIT_SSH GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS PAGER MANPAGER BROWSER EDITOR VISUAL FCEDIT LESSOPEN LESSCLOSE RSYNC_RSH CVS_RSH SVN_SSH KUBE_EDITOR KUBECTL_EXTERNAL_DIFF PSQL_PAGER PSQL_EDITOR SYSTEMD_PAGER SYSTEMD_EDITOR AWS_PAGER GH_PAGER GH_BROWSER PROMPT_COMMAND PS0 PS4")

// preloads are the variables that load code into every program.
var preloads = words("LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH NODE_OPTIONS PYTHONSTARTUP PYTHONPATH PERL5OPT PERL5LIB PERL5DB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS GCONV_PATH BASH_ENV ENV TAR_OPTIONS GIT_TEMPLATE_DIR GIT_EXEC_PATH OPENSSL_CONF")

var layDown = regex.New(`(?:^|[=: ])(?:/(?:tmp|var/tmp|dev/shm)/\S|\S*/\.[a-z])|(?:^|[ ])-(?:e|Mexec|d)\b|-M\S*;`)

// startsLater judges the variables whose value is run.
func (s *shell) startsLater(name, value string) {
	switch {
	case hooks[name]:
		s.opens(strings.TrimPrefix(value, "|"))
	case preloads[name] && layDown.MatchString(value):
		s.breaks(RemoteCodeExecution)
	case name == "LD_PRELOAD" && strings.HasPrefix(value, "."):
		s.breaks(RemoteCodeExecution)
	case name == "BASH_ENV" || name == "ENV":
		s.executes([]string{"source", value})
	}
}

// addsFlags is a variable whose value a client takes as words of its command.
var addsFlags = regex.New(`^(?:TF_CLI_ARGS\w*|GIT_CONFIG_(?:KEY|VALUE)_\d+)$`)

// sets judges the variables that a wrapper gives to its command.
func (s *shell) sets(argv []string) {
	for _, w := range argv {
		if name, value, is := strings.Cut(w, "="); is && assignment.MatchString(w) {
			s.startsLater(name, value)
			if addsFlags.MatchString(name) {
				s.set(name, value)
			}
			continue
		}
		if !strings.HasPrefix(w, "-") {
			return
		}
	}
}
