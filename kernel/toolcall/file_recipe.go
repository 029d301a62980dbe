package toolcall

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// recipe is a kind of file whose text is run later, or by others: by a package manager, a
// runner of tests or of builds, an editor, an engine of containers.
type recipe struct {
	name     *regex.Expression
	commands func(text string) []string
	judge    func(r *reading, text string)
	program  bool                       // the text is one
	installs bool                       // ordinary ones fetch an installer and run it
	image    bool                       // what they take away is an image's own
	operates func(text string) []string // commands whose loss elsewhere counts too
}

// recipes are by the name of the file. What ordinary ones do to their own machine passes:
// only what is [grave] counts.
var recipes = []recipe{
	{name: regex.New(`(?:^|/)(?:package|composer|deno|Pipfile|pyproject|tasks|launch|devcontainer|lerna|turbo|project)\.(?:jsonc?|toml)$|\.code-workspace$`), commands: quotedCommands, judge: (*reading).packaged},
	{name: regex.New(`(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$`), commands: makeRecipes, installs: true},
	{name: regex.New(`(?:^|/)\.(?:github/(?:workflows|actions)/.*|gitlab-ci)\.ya?ml$|(?:^|/)(?:\.circleci/config|bitbucket-pipelines|azure-pipelines|\.travis|\.drone|appveyor|\.pre-commit-config|lefthook|Taskfile|cloudbuild|buildspec|action)\.ya?ml$`), commands: blockCommands, judge: (*reading).workflow, installs: true},
	{name: regex.New(`(?:^|/)(?:docker-)?compose[\w.-]*\.ya?ml$`), commands: blockCommands, judge: (*reading).composed},
	{name: regex.New(`(?i)(?:^|/)(?:Dockerfile|Containerfile)[\w.-]*$|\.(?:docker|container)file$`), commands: imageCommands, installs: true, image: true},
	{name: regex.New(`(?:^|/)Jenkinsfile(?:\.[\w-]+)?$|\.jenkinsfile$|\.gradle(?:\.kts)?$|(?:^|/)Vagrantfile$`), commands: scriptSteps, judge: (*reading).workflow, installs: true},
	{name: regex.New(`(?:^|/)Procfile(?:\.\w+)?$`), commands: procCommands, installs: true},
	{name: regex.New(`(?:^|/)(?:\.npmrc|\.yarnrc(?:\.yml)?|pip\.conf|pip\.ini|\.pypirc|uv\.toml)$`), commands: func(string) []string { return nil }, judge: (*reading).registry},
	{name: regex.New(`(?:^|/)(?:cloud-(?:init|config)|user-data)[\w.-]*$`), commands: listCommands, installs: true},
	{name: regex.New(`\.ya?ml$`), commands: blockCommands, judge: (*reading).manifest},
	{name: regex.New(`\.tf(?:\.json)?$`), commands: provisioned, judge: (*reading).infrastructure, operates: atPlanning},
	{name: regex.New(`\.(?:service|desktop)$`), commands: unitCommands},
	{name: regex.New(`(?:^|/)logrotate\.(?:conf$|d/)`), commands: rotationCommands},
	{name: regex.New(`(?:^|/)(?:\.husky|\.?githooks|hooks)/[a-z-]+$|\.(?:sh|bash|zsh)$|(?:^|/)\.(?:envrc|bashrc|zshrc|profile|bash_profile)$`), commands: func(text string) []string { return []string{text} }},
	{name: regex.New(`\.(?:aspx?|ashx|asmx|cshtml|jspx?|phtml|cfm)$`), commands: func(string) []string { return nil }, judge: (*reading).servedPage},
	{name: regex.New(`\.(?:py|pyw|js|mjs|cjs|ts|mts|rb|php|pl|lua|go)$`), program: true, judge: (*reading).servedPage},
}

// grave are the invariants that a file which is run later breaks; the others are the
// ordinary work of builds and installations.
var grave = []Invariant{DestructiveCommand, RemoteCodeExecution, DataExfiltration}

// runsLater judges a call that writes a file by what the file will run.
func (r *reading) runsLater(leaves []leaf) {
	name := r.writtenName(leaves)
	if name == "" {
		return
	}
	for _, l := range leaves {
		if l.text && newText[l.key] {
			r.recipe(name, l.value)
		}
	}
}

// writtenName is the file that a call writes, if it writes one.
func (r *reading) writtenName(leaves []leaf) string {
	if !r.tool.writes && !r.tool.any("str", "file", "update", "modify", "apply") || r.tool.removes && !r.tool.writes {
		return ""
	}
	for _, l := range leaves {
		if l.text && len(l.value) < maxValue && r.tool.roleOf(l.key) == rolePath {
			return file.Slashed(l.value)
		}
	}
	return ""
}

// newText is what the argument is called that holds what a file will say.
var newText = words("content contents text body newstr newstring newcontent filetext insert inserttext newtext replacement data code codeedit")

// recipe reads a file as what will run it does.
func (r *reading) recipe(name, text string) {
	for _, kind := range recipes {
		if !kind.name.MatchString(name) {
			continue
		}
		if kind.judge != nil && r.spend(costSearch*len(text)) {
			kind.judge(r, text)
		}
		sub := *r // with the same budget
		sub.broken = make(map[Invariant]bool)
		switch {
		case kind.program:
			if len(text) <= code.MaxProgram && plantedIn.Matches(text) && r.spend(costCode*len(text)) {
				plain := r.programs.Followed(text)
				calls := code.Calls(plain)
				sub.removals(plain, calls)
				sub.carriedOff(plain, calls)
				sub.loads(plain, calls)
			}
		default:
			for n, command := range kind.commands(text) {
				if n >= maxRecipes {
					break
				}
				known := sub.broken[RemoteCodeExecution]
				sub.shell(command)
				if kind.installs && !known && !doubtfulSource.MatchString(command) {
					delete(sub.broken, RemoteCodeExecution)
				}
			}
		}
		if kind.operates != nil {
			delete(sub.broken, DestructiveOperation)
			for _, command := range kind.operates(text) {
				sub.shell(command)
			}
			if sub.broken[DestructiveOperation] {
				r.breaks(DestructiveOperation)
			}
		}
		for _, v := range grave {
			if sub.broken[v] && (v != DestructiveCommand || !kind.image) {
				r.breaks(v)
			}
		}
		return
	}
}

// doubtfulSource is where no installer comes from: an address without encryption or without a
// name, or a line to a shell.
var doubtfulSource = regex.New(`\b(?:http|ftp)://|https?://\d+\.\d+\.\d+\.\d+|\bn(?:c|cat|etcat)\s|/dev/(?:tcp|udp)/|\bsocat\b|base64\s+(?:-d|--decode|-D)\b`)

// servedPage judges a page, or a program that answers requests, which runs what a request says
// (ATT&CK T1505.003).
func (r *reading) servedPage(text string) {
	if servedCommand.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
}

// servedShell is a command, or a program, that a page makes of what a request says.
const servedShell = `(?:(?:process\.start|processstartinfo|getruntime\(\)\.exec|processbuilder|shell_exec|passthru|proc_open|popen|pcntl_exec|execsync|child_process['"]?\)?\.exec|spawnsync|os\.system|subprocess\.\w+|new function|(?:^|[^.\w])(?:exec|eval|execute|system|assert))\s*\(\s*(?:["'\x60\[]{0,2}(?:/bin/)?(?:cmd|sh|bash|powershell|pwsh)(?:\.exe)?["'\x60]?\s*,\s*)?["'\x60\[]{0,2}(?:/c|-c)?["'\s\x60]{0,4}[,+&.]?\s*(?:\w{1,20}\(\s*){0,2}\$?\{?|(?:^|[^.\w])(?:eval|execute|executeglobal)\s+)(?:\w{0,20}\.)?(?:request\s*[\[(.]|_(?:get|post|request|cookie|server)\b|getparameter\(|req\.(?:body|query|params|headers)|request\.(?:args|form|values|json|get_json|querystring|item|form|headers))`

var servedCommand = regex.New(`(?i)` + servedShell)

// packaged judges scripts of a package that send the whole environment away.
func (r *reading) packaged(text string) {
	if sendsEnvironment.MatchString(text) {
		r.breaks(DataExfiltration)
	}
}

var sendsEnvironment = regex.New(`(?:fetch|axios(?:\.\w+)?|https?\.(?:get|request))\s*\(.*JSON\.stringify\(\s*process\.env\s*[),]`)

// imageCommands are those that the build of an image runs, and its containers when they start.
func imageCommands(text string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	for n := 0; n < len(lines) && len(out) < maxRecipes; n++ {
		m := imageCommand.FindStringSubmatch(lines[n])
		if m == nil {
			continue
		}
		command := m[1]
		if end := imageText.FindStringSubmatch(command); end != nil { // a here-document
			command = ""
			for n++; n < len(lines) && strings.TrimSpace(lines[n]) != end[1]; n++ {
				command += lines[n] + "\n"
			}
		}
		for strings.HasSuffix(command, "\\") && n+1 < len(lines) {
			n++
			if next := strings.TrimSpace(lines[n]); !strings.HasPrefix(next, "#") {
				command = strings.TrimSuffix(command, "\\") + " " + next
			}
		}
		if strings.HasPrefix(command, "[") {
			command = quoted(code.Strings(command))
		}
		out = append(out, command)
	}
	return out
}

var (
	imageCommand = regexp.MustCompile(`(?i)^\s*(?:ONBUILD\s+)?(?:RUN|CMD|ENTRYPOINT|HEALTHCHECK(?:\s+--\S+)*\s+CMD)\s+(?:--\S+\s+)*(.*?)\s*$`)
	imageText    = regexp.MustCompile(`^<<-?['"]?(\w+)['"]?`)
)

// scriptSteps are the commands that the steps of a build in Groovy or Ruby hand to a shell.
func scriptSteps(text string) []string {
	var out []string
	for _, m := range scriptStep.FindAllStringSubmatch(text, maxRecipes) {
		out = append(out, strings.Join(m[1:], ""))
	}
	return out
}

var scriptStep = regex.New(`(?s)(?:\b(?:sh|bat|powershell)\b\s*\(?\s*(?:script\s*:\s*)?|\binline\s*[:=]\s*|\bcommandLine\s*\(?\s*(?:['"](?:ba)?sh['"]\s*,\s*['"]-c['"]\s*,\s*)?)(?:'''(.*?)'''|"""(.*?)"""|'([^'\n]+)'|"([^"\n]+)")|"([^"\n]+)"\.execute\(`)

func procCommands(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if _, command, is := strings.Cut(line, ":"); is && !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSpace(command))
		}
	}
	return out
}

// listCommands are the items of the lists in YAML, which are commands of a machine's first
// start.
func listCommands(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		command, is := strings.CutPrefix(strings.TrimSpace(line), "- ")
		switch {
		case !is:
		case strings.HasPrefix(command, "["):
			out = append(out, quoted(code.Strings(command)))
		default:
			out = append(out, strings.Trim(command, `"'`))
		}
	}
	return out
}

// registry judges the settings of a manager of packages that make it take them from an
// address without encryption or without a name.
func (r *reading) registry(text string) {
	if doubtfulIndex.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
}

var doubtfulIndex = regex.New(`(?mi)^\s*(?:@[\w-]+:)?(?:registry|npmRegistryServer|index-url|extra-index-url|index|find-links|url)["']?\s*[:=]\s*["']?(?:https?://\d+\.\d+\.\d+\.\d+|http://(?:[a-z0-9-]+\.)+[a-z]{2,}\b)`)

// plantedIn finds the programs that a file may hold and no ordinary file does: with the
// whole environment, with a home, or with code from elsewhere.
var plantedIn = regex.ScreenOf(`os\.environ\b`, `process\.env\b`, `\bENV\b`, `rmtree|rmSync|rm_rf|RemoveAll|unlink`, `\b(?:exec|eval|Function)\s*\(`)

// loads judges a program that runs what it fetches, in one expression.
func (r *reading) loads(text string, calls []code.Call) {
	for _, c := range calls {
		if c.On != "" || !runsText[c.Name] {
			continue
		}
		if args := strings.Join(code.Arguments(text, c.Open), ","); fetchesText.MatchString(args) {
			r.breaks(RemoteCodeExecution)
		}
	}
}

var (
	runsText    = words("exec eval Function compile")
	fetchesText = regex.New(`urlopen\(|requests\.get\(|httpx\.get\(|\bfetch\(|axios\.get\(|Net::HTTP|URI\.open\(|file_get_contents\(['"]http|https?\.get\(|b64decode\(|zlib\.decompress\(`)
)

// quotedCommands are the values of members that hold commands, in JSON, in TOML and in
// Terraform's language.
func quotedCommands(text string) []string {
	var out []string
	for _, m := range commandMember.FindAllStringSubmatch(text, maxRecipes) {
		if command, _ := code.StringFrom(m[1], 1, `"`); strings.ContainsAny(command, " |;&") {
			out = append(out, command)
		}
	}
	return out
}

var commandMember = regex.New(`(?:"(?:command|cmd|program|script|exec|shell|\w*(?:[Cc]ommand|install|build|test|start|prepare|publish|pack|lint|dev|serve|deploy|version|clean|check|format|watch|setup|postinstall|preinstall)[\w:-]*)"\s*:|\b(?:command|cmd|script|inline)\s*=)\s*\[?\s*("(?:[^"\\\n]|\\.)*")`)

// makeRecipes are the commands of a makefile, with the variables that it sets.
func makeRecipes(text string) []string {
	var out []string
	vars := make(map[string]string)
	for line := range strings.Lines(text) {
		if command, is := strings.CutPrefix(line, "\t"); is {
			command = strings.ReplaceAll(strings.TrimLeft(command, "@-+"), "$$", "\x00")
			if strings.Contains(command, "$") {
				command = expandedMake(command, vars)
			}
			out = append(out, strings.ReplaceAll(command, "\x00", "$"))
			continue
		}
		if m := makeVariable.FindStringSubmatch(line); m != nil && len(vars) < maxRecipes {
			value := expandedMake(strings.TrimSpace(m[3]), vars)
			if m[2] == "+" {
				value = strings.TrimSpace(vars[m[1]] + " " + value)
			}
			vars[m[1]] = value
		}
	}
	return out
}

// expandedMake writes the values of a makefile's variables. Where things are installed to is
// told by whoever installs them, unless it is nowhere.
func expandedMake(text string, vars map[string]string) string {
	return makeReference.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		value, known := vars[name]
		switch {
		case !known && name == "HOME":
			return "~"
		case !known, name == "DESTDIR", value != "" && installFolder.MatchString(name), len(value) > maxValue:
			return found
		}
		return value
	})
}

var (
	makeVariable  = regexp.MustCompile(`^(?:export |override )?([A-Za-z_]\w*)\s*([?:+]?)(?::)?=\s*(.*)`)
	makeReference = regexp.MustCompile(`\$(?:\([A-Za-z_]\w*\)|\{[A-Za-z_]\w*\})`)
	installFolder = regexp.MustCompile(`(?i)prefix$|dir$`)
)

// unitCommands are those of systemd's units and of desktop entries.
func unitCommands(text string) []string {
	var out []string
	for _, m := range unitCommand.FindAllStringSubmatch(text, maxRecipes) {
		out = append(out, m[1])
	}
	return out
}

var unitCommand = regex.New(`(?m)^Exec\w*=[-@:+!]*(.+)$`)

// blockCommands are the commands in YAML: values on one line, in lists, and blocks. What
// the template language of a playbook makes of words that stand in it is written out.
func blockCommands(text string) []string {
	text = templated(text)
	var out []string
	lines := strings.Split(text, "\n")
	for n := 0; n < len(lines) && len(out) < maxRecipes; n++ {
		m := yamlCommand.FindStringSubmatch(lines[n])
		if m == nil {
			continue
		}
		value := strings.TrimSpace(m[2])
		if value != "" && !strings.HasPrefix(value, "|") && !strings.HasPrefix(value, ">") {
			if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") && len(code.Strings(value)) > 1 {
				out = append(out, quoted(code.Strings(value)))
				continue
			}
			out = append(out, strings.Trim(value, `"'`))
			continue
		}
		var block []string
		for n+1 < len(lines) && (strings.TrimSpace(lines[n+1]) == "" || indentation(lines[n+1]) > len(m[1]) || value == "" && strings.HasPrefix(lines[n+1], m[1]+"- ")) {
			n++
			block = append(block, strings.TrimPrefix(strings.TrimSpace(lines[n]), "- "))
		}
		out = append(out, strings.Join(block, "\n"))
	}
	return out
}

var yamlCommand = regexp.MustCompile(`^(\s*)(?:-\s+)?(?:run|script|before_script|after_script|command|cmd|cmds|shell|raw|exec|entrypoint|entry|(?:ansible\.builtin\.)(?:command|shell|raw)):\s*(.*)$`)

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// templated writes the lists that a template joins.
func templated(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	lists := make(map[string]string)
	for _, m := range yamlList.FindAllStringSubmatch(text, maxRecipes) {
		lists[m[1]] = m[2]
	}
	return joinedList.ReplaceAllStringFunc(text, func(found string) string {
		m := joinedList.FindStringSubmatch(found)
		list, known := lists[m[1]]
		if !known {
			if list = m[1]; !strings.HasPrefix(list, "[") {
				return found
			}
			list = strings.Trim(list, "[]")
		}
		var words []string
		for word := range strings.SplitSeq(list, ",") {
			words = append(words, strings.Trim(word, ` '"`))
		}
		if m[2] == "reverse" {
			slices.Reverse(words)
		}
		return strings.Join(words, m[3])
	})
}

var (
	yamlList   = regexp.MustCompile(`(\w+):\s*\[([^\[\]]{0,200})\]`)
	joinedList = regexp.MustCompile(`\{\{\s*(\w+|\[[^\[\]]{0,200}\])\s*(?:\|\s*(reverse)\s*)?(?:\|\s*list\s*)?\|\s*join\(?(?:['"]([^'"]{0,8})['"])?\)?\s*\}\}`)
)

// workflow judges the steps of a pipeline that show its secrets: their masks are made for
// the values as they are, and not for what a coder makes of them.
func (r *reading) workflow(text string) {
	text = withSecrets(text)
	if systemToken.MatchString(text) && !ownPipelines.MatchString(text) {
		r.breaks(DataExfiltration)
	}
	if allSecrets.MatchString(text) {
		r.breaks(CredentialAccess)
	}
	if sentSecret.MatchString(text) {
		r.breaks(DataExfiltration)
	}
	if foreignTrigger.MatchString(text) && foreignCode.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
	for _, command := range blockCommands(text) {
		for line := range strings.Lines(command) {
			if showsSecret.MatchString(line) && !handsSecret.MatchString(line) {
				r.breaks(CredentialAccess)
			}
		}
	}
}

// withSecrets writes the secrets of a pipeline in place of the variables that hold them.
func withSecrets(text string) string {
	var pairs []string
	for _, m := range heldSecret.FindAllStringSubmatch(text, maxRecipes) {
		name, secret := m[1]+m[3], "${{ secrets."+m[1]+m[3]+" }}"
		pairs = append(pairs, "${"+name+"}", secret, "$"+name, secret)
	}
	if len(pairs) == 0 {
		return text
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

var (
	// heldSecret is a variable of a pipeline that holds a secret, by GitHub's and by Jenkins' spelling.
	heldSecret = regex.New(`(?m)^\s*([A-Z][A-Z0-9_]*):\s*['"]?\$\{\{\s*secrets\.(\w+)\s*\}\}['"]?\s*$|\b(?:variable|passwordVariable)\s*:\s*['"]([A-Z][A-Z0-9_]*)['"]`)

	// systemToken is the token of a pipeline of Azure's that is sent to somewhere.
	systemToken  = regex.New(`\b(?:curl|wget|Invoke-RestMethod|irm|iwr)\b[^\n]*(?:\$\(System\.AccessToken\)|\$\{?SYSTEM_ACCESSTOKEN)[^\n]*https?://|\b(?:curl|wget|Invoke-RestMethod|irm|iwr)\b[^\n]*https?://[^\n]*(?:\$\(System\.AccessToken\)|\$\{?SYSTEM_ACCESSTOKEN)`)
	ownPipelines = regex.New(`(?i)https://(?:dev\.azure\.com|[\w-]+\.visualstudio\.com|[\w.]*pkgs\.dev\.azure\.com|vsrm\.dev)|\$\(System\.(?:Collection|TeamFoundation)`)
)

var (
	allSecrets = regex.New(`(?m)^[^#\n]*(?:echo|printf|cat|tee|base64|curl|wget|run:|print)[^\n]*\$\{\{\s*toJ(?:SON|son)\(\s*secrets\s*\)`)
	// sentSecret is a secret that is all of what a step sends.
	sentSecret = regex.New(`\b(?:curl|wget)\b[^\n]*(?:-d|--data(?:-\w+)?|-F|--post-data)[ =]['"]?@?\$\{\{\s*secrets\.\w+\s*\}\}['"]?(?:\s|$)|\b(?:curl|wget)\b[^\n]*https?://[^\s"'?]*\?(?:[^\s"']*&)?(?:\w{1,2}|\w*(?:data|secret|val|env|leak|exfil|payload|b64)\w*)=\$\{\{\s*secrets\.\w+`)
	// foreignCode is what somebody proposes, checked out where a pipeline has its own rights.
	foreignTrigger = regex.New(`(?m)^\s*(?:on:.*|-?\s*)\bpull_request_target\b`)
	foreignCode    = regex.New(`ref:\s*['"]?\$\{\{\s*github\.(?:event\.pull_request\.head\.(?:sha|ref)|head_ref)`)
	showsSecret    = regex.New(`\b(?:echo|printf|print)\b.*(?:\$\{\{\s*secrets\.\w+\s*\}\}|\$\{?CI_JOB_TOKEN\b|\$\{?\w*(?:SECRET|PASSWORD|PRIVATE_KEY)\w*\b).*(?:\|\s*(?:base64|xxd|rev|tr|sed|od|hexdump|openssl|gzip|fold|cut)\b|\|\s*(?:curl|nc)\b)|(?:^|[;&|]\s*)(?:env|printenv|set)\s*\|\s*(?:base64|xxd|rev|od|hexdump|sort\s*\|\s*base64|curl|nc)\b`)
	handsSecret    = regex.New(`--password-stdin|base64 (?:-d|--decode|-D)\b|>\s*\S`)
)

// composed judges services that get the whole machine: its disk to write to, or its
// engine and all rights. Agents of monitoring read the disk; a builder has the socket.
func (r *reading) composed(text string) {
	root, socket := rootMount.MatchString(text), engineSocket.MatchString(text)
	if root || allRights.MatchString(text) && (socket || deviceMount.MatchString(text)) {
		r.breaks(PrivilegeEscalation)
	}
}

var (
	rootMount    = regex.New(`(?m)^\s*-\s*['"]?/:/[\w/.-]*(?::(?:rw\S*|z|Z|shared|rshared))?['"]?\s*$|(?m)^\s*source:\s*['"]?/['"]?\s*\n\s*target:[^\n]*(?:\n\s*read_only:\s*false)?\s*(?:\n\s*-|\n\S|$)`)
	engineSocket = regex.New(`(?m)^\s*-\s*['"]?(?:/var)?/run/(?:docker|containerd/containerd|crio/crio|podman/podman)\.sock:[^\s:'"]+(?::rw)?['"]?\s*$`)
	allRights    = regex.New(`(?m)^\s*privileged:\s*(?:true|yes|on)\b|^\s*pid:\s*['"]?host|SYS_ADMIN|cap_add:\s*\[?\s*['"]?ALL`)
	deviceMount  = regex.New(`(?m)^\s*-\s*['"]?/dev/(?:sd|nvme|mem|vd)|^\s*-\s*['"]?/(?:etc|root|proc|sys):/[\w/.-]*['"]?\s*$`)
)

// manifest judges a resource of a cluster that gets the whole node.
func (r *reading) manifest(text string) {
	if hostRoot.MatchString(text) && nodeRights.MatchString(text) && !readsOnly.MatchString(text) {
		r.breaks(PrivilegeEscalation)
	}
	binds := bindsRole.MatchString(text) && adminRole.Matches(text)
	if binds && anybodyBound.MatchString(text) || everyRight.MatchString(text) || raisesRights.MatchString(text) || entersNode.MatchString(text) && nodeRights.MatchString(text) {
		r.breaks(PrivilegeEscalation)
	}
	if systemJob.MatchString(text) && systemSpace.MatchString(text) && farCall.MatchString(text) {
		r.breaks(Persistence)
	}
}

// manifests judges a tool that applies the text of a resource.
func (r *reading) manifests(leaves []leaf) {
	if !r.tool.any("kubectl", "kubernetes", "k8s", "oc", "openshift", "helm", "cluster") {
		return
	}
	for _, l := range leaves {
		if l.text && strings.Contains(l.value, "kind") && len(l.value) < maxWritten && r.spend(2*costSearch*len(l.value)) {
			r.manifest(l.value)
			if bindsRole.MatchString(l.value) && adminRole.Matches(l.value) {
				r.breaks(PrivilegeEscalation)
			}
		}
	}
}

// Rights in a cluster, as Kubernetes' guide to good practice of RBAC warns of them: everything to
// somebody whom nobody named, all verbs on all there is, and the verbs that give oneself more.
var (
	anybodyBound = regex.New(`system:(?:unauthenticated|anonymous|authenticated|serviceaccounts\b)|kind['"]?:\s*['"]?ServiceAccount['"]?\s*[,\n]\s*['"]?name['"]?:\s*['"]?default\b`)
	everyRight   = regex.New(`(?s)kind['"]?:\s*['"]?(?:Cluster)?Role['"]?\s*[,\n}].*apiGroups['"]?:\s*(?:\[\s*['"]\*['"]\s*\]|\n\s*-\s*['"]\*['"])\s*,?\s*['"]?resources['"]?:\s*(?:\[\s*['"]\*['"]\s*\]|\n\s*-\s*['"]\*['"])\s*,?\s*['"]?verbs['"]?:\s*(?:\[\s*['"]\*['"]|\n\s*-\s*['"]\*['"])`)
	raisesRights = regex.New(`(?s)kind['"]?:\s*['"]?(?:Cluster)?Role['"]?\s*[,\n}].*verbs['"]?:\s*(?:\[[^\]]*|(?:\n\s*-\s*['"]?\w+['"]?)*\n\s*-\s*)['"]?(?:escalate|bind|impersonate)\b`)
	entersNode   = regex.New(`\bnsenter\b|\bchroot['",\s]+/host`)

	// A job among those of the cluster itself that calls an address without a name.
	systemJob   = regex.New(`kind['"]?:\s*['"]?(?:CronJob|DaemonSet|Deployment)\b`)
	systemSpace = regex.New(`namespace['"]?:\s*['"]?kube-(?:system|public|node-lease)\b`)
	farCall     = regex.New(`(?m)(?:command|args)['"]?:[^\n]*\b` + farAddress + `|^\s*-\s[^\n]*\b` + farAddress + `(?::\d+|['"\s]|$)`)
)

var (
	hostRoot   = regex.New(`hostPath:\s*\{\s*path:\s*['"]?/['"]?\s*[,}]|hostPath:\s*\n\s*path:\s*['"]?/['"]?\s*(?:\n|$)`)
	nodeRights = regex.New(`privileged:\s*true|hostPID:\s*true`)
	readsOnly  = regex.New(`readOnly:\s*true`)
)

// everydayLines reports whether a text has lines of this form and, besides comments, no others.
func everydayLines(text string, form *regexp.Regexp) bool {
	some := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !form.MatchString(line):
			return false
		default:
			some = true
		}
	}
	return some
}

// hookLine is a line of a hook in the repository that only starts what checks the work.
var hookLine = regexp.MustCompile(`^(?:exec )?(?:set -[eux]+(?: -o pipefail|o pipefail)?|\. "\$\(dirname (?:--? )?"?\$0"?\)/_/husky\.sh"|(?:(?:npx|pnpm|yarn|npm|bun|bunx)(?: (?:run|exec|dlx|--no|--no-install|--silent|-s|--|-w))* (?:[\w:@/.-]*(?:lint|format|fmt|test|check|type|tsc|prettier|eslint|biome|stylelint|commitlint|build|vitest|jest|mocha|knip|cspell)[\w:.-]*)(?: (?:--?[\w-]+(?:=[\w./-]+)?|"?\$1"?|\.|src|[\w./-]+))*|(?:make|just|task) [\w-]*(?:lint|format|fmt|test|check|build)[\w-]*|go (?:test|vet|fmt|build)(?: [\w./-]+)*|cargo (?:test|fmt|clippy|check)(?: [\w./-]+)*|(?:pytest|ruff|black|mypy|flake8|isort|gofmt|golangci-lint|rubocop|phpstan|pre-commit|shellcheck|hadolint|yamllint|gitleaks|typos)(?: (?:[\w./=-]+|"?\$[1@]"?|\$\(git (?:diff|ls-files)(?: [\w.='"*:/-]+)*\)))*|(?:poetry|uv) run (?:pytest|ruff|black|mypy)(?: [\w./=-]+)*|echo (?:'[^'$\x60]*'|"[^"$\x60]*"|[\w .:-]+))(?: && |$| \|\| exit 1$)+)+$`)

// profileLine is a line of the start file of a shell that only sets how the shell looks,
// completes and remembers.
var profileLine = regexp.MustCompile(`^(?:plugins=\([\w\s.-]*\)|plugins\+=\([\w\s.-]*\)|(?:export )?(?:ZSH_THEME|HISTSIZE|SAVEHIST|HISTFILESIZE|HISTCONTROL|HIST_STAMPS|LANG|LC_\w+|TERM|COLORTERM|CLICOLOR|LSCOLORS|TZ|DISABLE_\w+|ENABLE_CORRECTION|COMPLETION_WAITING_DOTS|CASE_SENSITIVE|HYPHEN_INSENSITIVE|ZSH_\w*HIGHLIGHT\w*|FZF_DEFAULT_OPTS|BAT_THEME|KEYTIMEOUT)=(?:"[^"$\x60]*"|'[^']*'|[\w.:/-]*)|(?:export )?(?:EDITOR|VISUAL|PAGER)=["']?(?:vim?|nvim|nano|emacs|hx|micro|code(?: --wait)?|less(?: -\w+)?|bat)["']?|(?:setopt|unsetopt|shopt -s|bindkey|autoload|zstyle) [\w '":*.^\[\]{}=-]+|alias (?:ll|la|l|lt|gs|gst|gd|gl|glog|gp|gco|gc|ga|\.\.|\.\.\.|k|dc|dcu|tf|py|c)=(?:'[\w ./-]*'|"[\w ./-]*"|[\w./-]+)|source <\((?:kubectl|helm|gh|docker|npm|pip|rustup|deno|kind|minikube|flux|argocd|terraform) completion(?: -s)? (?:bash|zsh)\)|eval "\$\((?:starship init|direnv hook|zoxide init|mise activate|rbenv init -|pyenv init -|fnm env|thefuck --alias)(?: (?:bash|zsh|--use-on-cd))?\)"|export (?:NVM_DIR|PYENV_ROOT|SDKMAN_DIR|BUN_INSTALL|PNPM_HOME|GOPATH|GOROOT|JAVA_HOME|ANDROID_HOME|ANDROID_SDK_ROOT|VOLTA_HOME|DENO_INSTALL|RBENV_ROOT|ASDF_DIR|N_PREFIX|CARGO_HOME|RUSTUP_HOME|POETRY_HOME|WORKON_HOME|KUBECONFIG|DOTNET_ROOT|FLUTTER_ROOT|GRADLE_HOME|MAVEN_HOME|HOMEBREW_NO_\w+|DOCKER_BUILDKIT|COMPOSE_\w+|NEXT_TELEMETRY_DISABLED|DOTNET_CLI_TELEMETRY_OPTOUT|AWS_PROFILE|AWS_REGION|AWS_DEFAULT_REGION|GOOGLE_CLOUD_PROJECT)=(?:"(?:\$HOME)?(?:/opt|/usr/(?:local|lib))?[\w ./=@-]*"|(?:\$HOME|~)?[\w./=-]*|\$\(/usr/libexec/java_home(?: -v [\w.]+)?\)|"\$\(/usr/libexec/java_home(?: -v [\w.]+)?\)")|(?:\[ -s "(?:\$NVM_DIR/(?:nvm\.sh|bash_completion)|\$HOME/\.(?:nvm|sdkman/bin|asdf|bun)/[\w.-]+|\$BUN_INSTALL/_bun)" \] && )?(?:\.|source|\\\.) "?(?:\$NVM_DIR/(?:nvm\.sh|bash_completion)|\$HOME/\.(?:nvm|asdf)/[\w./-]+\.sh|\$HOME/\.sdkman/bin/sdkman-init\.sh|\$HOME/\.cargo/env|(?:\$HOME/|~/)\.fzf\.(?:zsh|bash)|(?:\$HOME|~)/\.bun/_bun|\$BUN_INSTALL/_bun|\$\(brew --prefix\)/[\w./-]+)"?|command -v pyenv >/dev/null \|\| export PATH="\$PYENV_ROOT/bin:\$PATH"|eval "\$\((?:/opt/homebrew/bin/brew shellenv|brew shellenv|pyenv virtualenv-init -|pyenv init --path|nodenv init -|fnm env --use-on-cd|atuin init (?:bash|zsh)|mcfly init (?:bash|zsh)|ssh-agent -s|opam env|luarocks path)\)"|export PATH="?(?:\$(?:PYENV_ROOT|BUN_INSTALL|PNPM_HOME|JAVA_HOME|ANDROID_HOME|GOPATH|VOLTA_HOME|DENO_INSTALL|CARGO_HOME|POETRY_HOME)(?:/[\w./-]+)?|/opt/homebrew/[\w./@-]+|/usr/local/(?:go/bin|opt/[\w./@-]+))(?::\$PATH)"?|export PATH="?\$PATH:(?:(?:\$HOME|~)/(?:\.local/bin|\.cargo/bin|go/bin|\.npm-global/bin|\.deno/bin|\.bun/bin|bin|\.dotnet/tools|\.composer/vendor/bin|\.pub-cache/bin|flutter/bin|Library/Android/sdk/[\w-]+)|/usr/local/go/bin|\$GOPATH/bin|\$\(go env GOPATH\)/bin|\$ANDROID_HOME/[\w-]+)"?|path\+=\([\w ./$~-]*\)|alias [a-z][\w-]{0,15}=(?:'(?:git|docker|docker compose|kubectl|npm|pnpm|yarn|make|terraform|bundle|cargo|go|python3?|ls|eza|bat|cd|nvim|vim|tmux|mvn|gradle|\./gradlew|composer|php artisan|rails|poetry|uv|pytest)(?: [\w ./:=@-]*)?'|"(?:git|docker|docker compose|kubectl|npm|pnpm|yarn|make|terraform|bundle|cargo|go|ls|eza|bat|cd)(?: [\w ./:=@-]*)?")|export PATH="?(?:\$HOME|~)/(?:\.local/bin|\.cargo/bin|go/bin|\.npm-global/bin|\.deno/bin|\.bun/bin):\$PATH"?)$`)

// everydayText reports whether what a call writes into a file that starts code is what
// such a file has on any day. An edit is judged by what it puts in.
func everydayText(name string, leaves []leaf) bool {
	form := everydayForm(name)
	if form == nil {
		return false
	}
	some := false
	for _, l := range leaves {
		if l.text && newText[l.key] {
			if some = everydayLines(l.value, form); !some {
				return false
			}
		}
	}
	return some
}

// everydayForm is the form of the lines that a file which starts code has on any day.
func everydayForm(name string) *regexp.Regexp {
	switch {
	case strings.Contains(name, ".husky/"), strings.Contains(name, ".git/hooks/"):
		return hookLine
	case profileName[path.Base(name)]:
		return profileLine
	case name == "/etc/hosts":
		return knownHost
	case strings.HasPrefix(name, "/etc/ssh/sshd_config.d/"):
		return hardenedLogin
	}
	return nil
}

var profileName = words(".bashrc .zshrc .profile .bash_profile .zprofile .zshenv .bash_aliases")
