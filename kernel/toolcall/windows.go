package toolcall

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/address"
	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// windows reads a text for PowerShell or cmd. There is no parser for them here:
// the text is put into one spelling (their escapes dropped, joined literals
// joined, aliases written out), cut into commands, and each is judged.
func (r *reading) windows(text string) {
	if r.nested > maxNested {
		r.unreadable()
		return
	}
	if !r.spend(costCommand + 2*costJudge*len(text)) {
		return
	}
	packed, written := code.PowerShellDecodes(text), strings.ToLower(text)
	text = windowsVariables(windowsSpelling(text))
	if strings.Contains(text, "-alias ") {
		text = windowsVariables(text) // what an alias stands for may be a variable
	}
	text = windowsLoops(text)
	fetches := windowsFetch.Matches(text)
	if (packed || windowsDecodes.Matches(text)) && windowsRun.Matches(text) {
		r.breaks(RemoteCodeExecution)
	}
	if fetches {
		for _, found := range address.In(text, maxMatches) {
			if !strings.Contains(written, found) { // it was put together
				r.target(found, triesOut(found) || r.asksHealth(found))
			}
		}
	}
	if windowsLetters.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
	if fetches && (windowsRun.Matches(text) || runsWhatItFetched(text)) {
		r.breaks(RemoteCodeExecution)
	}
	if strings.Contains(text, "setvalue(") && windowsHidden.Matches(text) {
		r.breaks(ConstraintTampering)
	}
	r.windowsTogether(text)
	r.losesEvery(text)
	for line := range strings.Lines(text) {
		r.windowsLineRules(line)
	}
	for _, line := range windowsCommands(inFolders(text)) {
		r.windowsPipeline(strings.Split(line, "|"))
	}
	for _, block := range windowsBlock.FindAllStringSubmatch(text, maxBlocks) {
		for _, line := range windowsCommands(block[1]) {
			r.windowsPipeline(strings.Split(line, "|"))
		}
	}
}

// windowsLetters calls a command whose name is put together of the letters of a variable of the
// system, which nobody does who wants to be read (ATT&CK T1027.010).
var windowsLetters = regex.New(`(?:[&.]|\biex|\binvoke-expression)\s*\(+\s*(?:-join\s*\(?)?(?:\$(?:pshome|env:comspec|shellid|verbosepreference|env:public|env:windir|env:programfiles|\{env:comspec\})|\[string\]\$verbosepreference)(?:\.tostring\(\))?\[`)

// windowsCommands cuts a text behind each command, at ||, &&, & and ; and where a line ends.
func windowsCommands(text string) (out []string) {
	begin := 0
	for i := 0; i < len(text); i++ {
		twice := i+1 < len(text) && text[i+1] == text[i]
		switch c := text[i]; {
		case c == '|' && twice, c == '&', c == ';', c == '\n':
			out = append(out, text[begin:i])
			if twice && (c == '|' || c == '&') {
				i++
			}
			begin = i + 1
		}
	}
	return append(out, text[begin:])
}

// windowsLineRules judges a line by the patterns of which it holds a literal.
func (r *reading) windowsLineRules(line string) {
	if windowsLooks.MatchString(line) && !windowsActs.MatchString(line) {
		return
	}
	found := windowsScreen.Matching(line, false)
	for i, rule := range windowsRules {
		if found&(1<<i) != 0 && (rule.invariant != CredentialAccess || !windowsTellsNames(line)) {
			r.breaks(rule.invariant)
		}
	}
}

// windowsLooks is a line that asks for objects of the system and shows them, and windowsActs
// finds what one may do with them in its blocks.
var (
	windowsLooks = regex.New(`^\s*(?:get-ciminstance|get-wmiobject|gcim|gwmi)\b[^;|&]*(?:\|\s*(?:select-object|select|format-table|ft|format-list|fl|where-object|where|\?|sort-object|sort|measure-object|measure)\b[^;|&]*)*$`)
	windowsActs  = regex.New(`delete|remove|invoke|terminate|\.put\b|create|set-`)
)

// windowsTellsNames reports whether a listing of the environment is cut down to names, or to the
// variables of a program by the beginning of their names.
func windowsTellsNames(line string) bool {
	m := windowsNames.FindStringSubmatch(line)
	return m != nil && !secretWord.MatchString(m[1])
}

var windowsNames = regex.New(`^\s*\(?(?:get-childitem|gci|dir|ls) env:\s*(?:\)\.name\s*$|\|\s*(?:select-object|select) (?:-expandproperty )?name\s*$|\|\s*(?:where-object|where|\?) \{?\s*(?:\$_\.)?name -(?:like|match|eq) ['"]?\^?([a-z_]{3,})\*?['"]?\s*\}?(?:\s*\|\s*(?:format-table|ft|select-object|select|sort-object|sort|out-string)[\w ,-]*)*\s*$)`)

// inFolders writes the root of a drive in place of what a command after a change to it
// calls the current folder.
func inFolders(text string) string {
	at := windowsEnters.FindStringIndex(text)
	if at == nil {
		return text
	}
	return text[:at[1]] + windowsHere.ReplaceAllString(text[at[1]:], `${1}c:\*${2}`)
}

var (
	windowsEnters = regex.New(`\b(?:cd|chdir|set-location|sl|push-location|pushd)\s+(?:/d\s+|-path\s+)?['"]?(?:[a-z]:\\?(?:windows|users|program files)?|\\|\\\\[\w.-]+\\[^\s;&'"]+)['"]?\s*(?:[;&\n]|$)`)
	windowsHere   = regex.New(`(\s)(?:\*|\*\.\*|\.|\.\\\*)(\s|$|["'])`)
)

// maxBlocks bounds the script blocks of one text that are read on their own.
const maxBlocks = 64

var windowsBlock = regex.New(`[{(]([^{}()]*)[)}]`)

// windowsVariables writes the values of variables in place of their names, where the
// text gives them as literals.
func windowsVariables(text string) string {
	var pairs []string
	for _, m := range windowsSets.FindAllStringSubmatch(text, maxBlocks) {
		switch {
		case m[1] != "" && len(m[2]) < maxValue:
			pairs = append(pairs, m[0], m[0], "$"+m[1], strings.Trim(m[2], " "), "${"+m[1]+"}", strings.Trim(m[2], " "))
		case m[3] != "" && len(m[4]) < maxValue:
			pairs = append(pairs, "%"+m[3]+"%", m[4], "!"+m[3]+"!", m[4])
			pairs = append(pairs, windowsCuts(text, m[3], m[4])...)
		}
	}
	for _, m := range windowsTable.FindAllStringSubmatch(text, maxPlaces) {
		flags := ""
		for member := range strings.FieldsFuncSeq(m[2], func(c rune) bool { return c == ';' || c == '\n' }) {
			name, value, is := strings.Cut(member, "=")
			if !is {
				continue
			}
			flags += " -" + strings.TrimSpace(name) + " " + strings.Replace(strings.TrimSpace(value), "$true", "", 1)
		}
		pairs = append(pairs, " @"+m[1], flags)
	}
	for _, m := range windowsAlias.FindAllStringSubmatch(text, maxBlocks) {
		pairs = append(pairs, "; "+m[1]+" ", "; "+m[2]+" ", "\n"+m[1]+" ", "\n"+m[2]+" ", "| "+m[1]+" ", "| "+m[2]+" ", "{ "+m[1]+" ", "{ "+m[2]+" ")
	}
	for _, m := range windowsFormat.FindAllStringSubmatch(text, maxBlocks) {
		pairs = append(pairs, m[0], windowsFormatted(m[1], m[2]))
	}
	for _, m := range windowsCodes.FindAllString(text, maxBlocks) {
		if word := code.Spelled(windowsCode.ReplaceAllString(m, "$1,") + "32"); word != "" {
			pairs = append(pairs, m, strings.ToLower(strings.TrimSpace(word)))
		}
	}
	if len(pairs) == 0 {
		return text
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// windowsCuts pairs what cmd cuts out of a variable, and puts into it, with what that is.
func windowsCuts(text, name, value string) []string {
	var out []string
	for _, m := range windowsCut.FindAllStringSubmatch(text, maxPlaces) {
		if m[1] != name {
			continue
		}
		if m[4] != "" {
			out = append(out, m[0], strings.ReplaceAll(value, m[4], m[5]))
			continue
		}
		from, _ := strconv.Atoi(m[2])
		if from < 0 {
			from += len(value)
		}
		from = min(max(from, 0), len(value))
		length, err := strconv.Atoi(m[3])
		switch {
		case err != nil:
			length = len(value) - from
		case length < 0:
			length = max(len(value)+length-from, 0)
		}
		out = append(out, m[0], value[from:min(from+length, len(value))])
	}
	return out
}

var (
	windowsCut    = regex.New(`[%!](\w+):(?:~(-?\d{1,4})(?:,(-?\d{1,4}))?|([^=%!\n]{1,40})=([^%!\n]{0,40}))[%!]`)
	windowsTable  = regex.New(`\$(\w+)\s*=\s*@\{([^{}]{1,400})\}`)
	windowsSets   = regex.New(`\$(\w+)\s*=\s*((?:'[^'\n]*'|"[^"\n]*")(?:\s*,\s*(?:'[^'\n]*'|"[^"\n]*"))*)|\bset\s+"?(\w+)=([^&|\n"]*[^&|\n" ])`)
	windowsAlias  = regex.New(`\b(?:set-alias|new-alias|sal|nal)\s+(?:-name\s+)?['"]?(\w+)['"]?\s+(?:-value\s+)?['"]?([a-z-]+)`)
	windowsSends  = regex.New(`\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|curl|wget)\b|\.upload(?:file|data|string)\b|send-mailmessage|start-bitstransfer`)
	windowsFormat = regex.New(`['"]((?:\{\d\})+)['"]\s*-f\s*((?:['"][^'"\n]*['"]\s*,?\s*)+)`)
	windowsCodes  = regex.New(`(?:\[char\]\s*\d{2,3}\s*\+?\s*)+`)
	windowsCode   = regex.New(`\[char\]\s*(\d{2,3})\s*\+?\s*`)
)

// windowsFormatted is what PowerShell's -f makes of its pieces.
func windowsFormatted(order, pieces string) string {
	words := code.Strings(pieces)
	var b strings.Builder
	for i := 1; i < len(order); i += 3 {
		b.WriteString(wordAt(words, int(order[i]-'0')))
	}
	return b.String()
}

// windowsLoops writes what a loop runs over in place of its variable.
func windowsLoops(text string) string {
	for _, m := range windowsFor.FindAllStringSubmatch(text, maxPlaces) {
		name, over, folder := m[2]+m[4], m[3]+m[5], m[1]
		if strings.TrimSpace(over) == "*" || strings.HasPrefix(over, "*.") && folder != "" {
			over = strings.TrimSuffix(folder, `\`) + `\` + strings.TrimSpace(over)
		}
		if len(over) >= maxValue || strings.Count(text, name) >= maxBlocks {
			continue
		}
		plain := text
		text = strings.NewReplacer(m[0], m[0], "%"+name, over, "$"+name, over).Replace(text)
		for _, item := range strings.Fields(over)[:min(len(strings.Fields(over)), maxPlaces)] {
			text += "\n" + strings.NewReplacer(m[0], "", "%%"+name, item, "%"+name, item, "$"+name, item).Replace(plain[:min(len(plain), maxValue)])
		}
	}
	return text
}

var windowsFor = regex.New(`\bfor\s+(?:/[dlf]\s+|/r\s+(\S+)\s+)*%{1,2}(\w)\s+in\s+\(([^)]*)\)\s+do\b|\bforeach\s*\(\s*\$(\w+)\s+in\s+([^)]*)\)`)

// runsWhatItFetched reports whether a program that the text downloads stands in it
// once more.
func runsWhatItFetched(text string) bool {
	for _, m := range windowsSaved.FindAllStringSubmatch(text, maxBlocks) {
		name := path.Base(strings.ReplaceAll(m[1], `\`, "/"))
		if strings.Count(text, name) > 1 && !strings.Contains(name, "://") {
			return true
		}
	}
	return false
}

var windowsSaved = regex.New(`(?:-outfile|-o|-destination|downloadfile\s*\([^,]*,|-output|/transfer\s+\S+(?:\s+/\S+)*\s+\S+)\s*['"]?([^\s'"();]+\.(?:exe|ps1|bat|cmd|msi|dll|vbs|js|hta|scr|py|com))\b`)

// windowsPipeline judges commands, each of which gets what the one before found.
func (r *reading) windowsPipeline(commands []string) {
	var found []string
	for i, command := range commands {
		words := windowsWords(command)
		for len(words) > 0 && (words[0] == "&" || words[0] == "." || strings.HasSuffix(words[0], "=") || len(words[0]) == 2 && words[0][0] == '/') {
			words = words[1:]
		}
		if len(words) > 2 && words[1] == "=" {
			words = words[2:]
		}
		if len(words) == 0 {
			continue
		}
		r.cmdlet(programName(words[0]), words[1:], commands[i+1:])
		targets := windowsTargets(words[1:])
		words[0] = strings.TrimLeft(words[0], "@")
		for _, w := range words[1:] {
			if strings.Contains(w, " ") && windowsRemoval.MatchString(w) && r.nested < maxNested {
				r.nested++
				r.windows(w)
				r.nested--
			}
		}
		if windowsWrites[programName(words[0])] || strings.Contains(command, ">") {
			for _, t := range targets {
				if file.StartsCode(t) || profileFile.MatchString(t) {
					r.breaks(Persistence)
				}
			}
		}
		if strings.Contains(command, "method") {
			r.windowsRequest(command)
		}
		if windowsSends.MatchString(command) {
			for _, t := range targets {
				if file.IsCredential(t) || personalFolder.MatchString(t) {
					r.breaks(DataExfiltration)
				}
			}
		}
		switch name := programName(words[0]); {
		case strings.HasSuffix(words[0], "]::getfiles"), strings.HasSuffix(words[0], "]::getdirectories"), strings.HasSuffix(words[0], "]::enumeratefiles"):
			found = append(found, targets...)
		case file.OnDrive(file.Slashed(words[0])) && len(commands) > 1:
			found = append(found, windowsTargets(words)...)
		case strings.HasSuffix(words[0], "]::delete"), strings.Contains(command, ").delete"):
			for _, t := range append(targets, windowsTargets(words[:1])...) {
				r.windowsLoses(t)
				if strings.Contains(command, ").delete") && file.IsSharedOnWindows(t) {
					r.breaks(DestructiveCommand)
				}
			}
		case name == "do" || name == "start" || name == "call" || name == "if" || name == "for" || name == "foreach" || name == "foreach-object" || name == "%" || name == "?" || name == "forfiles":
			if name == "forfiles" && windowsRemoval.MatchString(command) {
				for _, t := range targets {
					r.windowsLoses(t)
					if !slices.Contains(words, "/d") && !slices.Contains(words, "/m") && file.IsSharedOnWindows(t) {
						r.breaks(DestructiveCommand)
					}
				}
			}
			if strings.Contains(command, "$_.delete(") {
				for _, t := range found {
					r.windowsLoses(t)
				}
				r.windowsShares(words, nil, found, commands)
			}
			if at := slices.IndexFunc(words[1:], func(w string) bool {
				return windowsRemoves[programName(strings.TrimLeft(w, "@"))] || strings.HasSuffix(w, "]::delete")
			}); at >= 0 {
				for _, t := range append(windowsTargets(words[at+2:]), found...) {
					r.windowsLoses(t)
				}
			}
		case name == "robocopy" && len(targets) > 1 && (slices.Contains(words, "/mir") || slices.Contains(words, "/purge")):
			r.windowsLoses(targets[1])
			if emptyFolder.MatchString(targets[0]) && file.IsSharedOnWindows(targets[1]) {
				r.breaks(DestructiveCommand)
			}
		case name == "set-content" || name == "sc":
			r.windowsShares(words, targets[:min(len(targets), 1)], found, commands)
		case windowsOpens.MatchString(words[0]):
			for _, t := range targets {
				if file.IsCredential(t) {
					r.breaks(CredentialAccess)
				}
			}
		case windowsLists[name]:
			found = append(found, targets...)
		case windowsRemoves[name]:
			if slices.Contains(words, "-whatif") {
				continue
			}
			for _, t := range append(targets, found...) {
				r.windowsLoses(t)
			}
			if !windowsMoves[name] {
				r.windowsShares(words, targets, found, commands)
			}
		case windowsReads[name]:
			for _, t := range append(targets, found...) {
				if file.IsCredential(t) {
					r.breaks(CredentialAccess)
				}
			}
		case isWindowsShell(name) || name == "start":
			if program, given := windowsProgram(words); given && name != "start" {
				r.nested++
				r.windows(program)
				r.nested--
			}
		}
	}
}

// windowsLoses judges a target that a command removes.
func (r *reading) windowsLoses(target string) {
	p := file.Clean(strings.TrimPrefix(strings.TrimPrefix(target, "//?/"), "//./"))
	if (file.IsVital(p) || windowsVital.MatchString(p)) && !windowsPassing.MatchString(p) {
		r.breaks(DestructiveCommand)
	}
	if recordFile.Matches(p) {
		r.breaks(ConstraintTampering)
	}
}

// windowsPassing is what a machine of Windows makes again, and administrators clear: what waits to
// be printed or installed, and what is left of crashes.
var windowsPassing = regex.New(`(?i)^[a-z]:/windows/(?:temp|prefetch|minidump|softwaredistribution/download|system32/spool/printers|ccmcache)/[^.]?[^/]*(?:/[^.][^/]*)*$`)

// windowsShares judges the folders of others that a command takes away with all that is in
// them, or that a listing has named for it. Where a filter picks some files, nobody knows which.
func (r *reading) windowsShares(words, targets, found, commands []string) {
	line := strings.Join(commands, " ")
	if windowsPicks.MatchString(line) {
		return
	}
	whole := slices.ContainsFunc(words, func(w string) bool {
		return w == "/s" || w == "-r" || len(w) > 3 && w[0] == '-' && abbreviates(w[1:], "recurse")
	})
	for _, t := range targets {
		if (whole || strings.ContainsAny(t, "*?")) && file.IsSharedOnWindows(t) {
			r.breaks(DestructiveCommand)
		}
	}
	for _, t := range found {
		if file.IsSharedOnWindows(t) && !slices.ContainsFunc(found, file.IsPassing) {
			r.breaks(DestructiveCommand)
		}
	}
}

var (
	windowsMoves = words("move-item move mi")
	windowsPicks = regex.New(`\b(?:where-object|where)\b|\|\s*\?|lastwritetime|creationtime|-first\b`)
)

// windowsOpens are the members of files that give their text.
var windowsOpens = regex.New(`\]::(?:readall(?:text|lines|bytes)|readlines|open(?:read|text)?|copy)$`)

var windowsRemoval = regex.New(`\b(?:remove-item|rd|rmdir|del|erase|format|ri|rm|clear-content|vssadmin|cipher)\b`)

// windowsSpelling is the text in one spelling, in lower case.
func windowsSpelling(text string) string {
	text = windowsSigns.Replace(code.PowerShellDecoded(text))
	text = joinedLiterals.ReplaceAllString(text, "")
	return windowsFolders(code.PowerShell(strings.ToLower(text)))
}

// windowsFolders writes a folder that a command puts together as one word.
func windowsFolders(text string) string {
	if strings.Contains(text, "$(") {
		text = windowsInner.ReplaceAllString(text, "$1")
	}
	if strings.Contains(text, "getfolderpath") {
		text = windowsSpecial.ReplaceAllStringFunc(text, func(m string) string {
			folder := windowsSpecial.FindStringSubmatch(m)[1]
			return `"~\` + strings.TrimPrefix(folder, "my") + `"`
		})
	}
	if strings.Contains(text, "join-path") {
		text = windowsJoin.ReplaceAllString(text, `"$1\$2"`)
	}
	return text
}

var (
	windowsInner   = regex.New(`\$\((\$[\w:]+)\)`)
	windowsSpecial = regex.New(`\[(?:system\.)?environment\]::getfolderpath\(\s*['"]?(?:\[[\w.+]+\]::)?(\w+)['"]?\s*\)`)
	windowsJoin    = regex.New(`\(?\bjoin-path\s+(?:-path\s+)?['"]?([^\s'"()]+)['"]?\s+(?:-childpath\s+)?['"]?([^\s'"();|]+)['"]?\)?`)
)

// windowsSigns are those that are dropped, or have another spelling; a line that goes on is one.
var windowsSigns = strings.NewReplacer("`\r\n", " ", "`\n", " ", "^\r\n", " ", "^\n", " ", "|\r\n", "| ", "|\n", "| ", "`", "", "^", "", "\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`, "\u2013", "-")

// windowsWords cuts a command at its spaces and brackets; what stands in quotes is one
// word.
func windowsWords(command string) []string {
	var out []string
	var word []byte
	quote, begun := byte(0), false
	flush := func() {
		if begun && len(bytes.TrimSpace(word)) > 0 {
			out = append(out, string(word))
		}
		word, begun = word[:0], false
	}
	for i := range len(command) {
		switch c := command[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '(' || c == ')' || c == '{' || c == '}' || c == ','):
			flush()
		default:
			word = append(word, c)
			begun = true
		}
	}
	flush()
	return out
}

// windowsTargets are the words that are no flags, as paths.
func windowsTargets(argv []string) []string {
	out := make([]string, 0, len(argv))
	for _, w := range argv {
		if strings.HasPrefix(w, "-") || len(w) == 2 && w[0] == '/' {
			continue
		}
		if w = file.Slashed(w); strings.ContainsAny(w, "$%") { // where all places begin
			w = windowsPlaces.Replace(w)
		}
		out = append(out, w)
	}
	return out
}

var (
	joinedLiterals = regex.New(`(?:'\s*\+\s*'|"\s*\+\s*")`)
	windowsPlaces  = strings.NewReplacer("$env:comspec", "c:/windows/system32/cmd.exe", "${env:comspec}", "c:/windows/system32/cmd.exe", "%comspec%", "c:/windows/system32/cmd.exe", "$env:userprofile", "~", "%userprofile%", "~", "$home", "~", "%systemroot%", "c:/windows", "$env:systemroot", "c:/windows", "%windir%", "c:/windows", "$env:windir", "c:/windows", "%systemdrive%", "c:", "$env:systemdrive", "c:", "$env:homedrive", "c:", "%homedrive%", "c:", "%homepath%", "/users/me", "$env:homepath", "/users/me", "$env:programfiles", "c:/program files", "%programfiles%", "c:/program files", "$env:programdata", "c:/programdata", "%programdata%", "c:/programdata", "$env:public", "c:/users/public", "%public%", "c:/users/public", "$env:localappdata", "~/appdata/local", "%localappdata%", "~/appdata/local", "$env:appdata", "~/appdata/roaming", "%appdata%", "~/appdata/roaming", "${env:userprofile}", "~", "${env:systemroot}", "c:/windows")
	windowsVital   = regex.New(`^[a-z]:/?(?:[*.]*|users(?:/[^/]*)?(?:/[*.]*)?|users/[^/]*/(?:documents|desktop|appdata|downloads|pictures)(?:/[*.]*)?|(?:windows|program files(?: \(x86\))?|programdata|boot|recovery|system volume information)(?:/.*)?)$|^/users(?:/[^/]*)?(?:/[*.]*)?$|^/windows(?:/.*)?$|^~/(?:documents|desktop|appdata(?:/(?:local|roaming))?|pictures|videos|music|onedrive[^/]*|\.ssh|\.aws|\.kube)(?:/[*.]*)?$|^[a-z]:/inetpub(?:/wwwroot)?(?:/[*.]*)?$`)
	windowsRemoves = words("remove-item ri rm del erase rd rmdir clear-content clear-item sdelete sdelete64 sdelete.exe move-item move mi")
	windowsLists   = words("get-childitem gci dir ls get-item gi resolve-path")
	windowsReads   = words("get-content gc cat type more copy-item copy cp select-string sls findstr compress-archive xcopy robocopy certutil")
	windowsFetch   = regex.NewScreen(regex.New(`\b(?:invoke-webrequest|iwr|invoke-restmethod|irm|wget|curl|downloadstring|downloadfile|downloaddata|start-bitstransfer|openread)\b`))
	windowsRun     = regex.NewScreen(regex.New(`\b(?:invoke-expression|iex|scriptblock\]::create|getscriptblock|\.invoke\(|reflection\.assembly|start-process|saps|invoke-command|icm)(?:\b|$)|\.invoke\(|[&.]\s*\(\s*(?:gcm|get-command)\b`))
)

// windowsRequest judges the request that a command makes.
func (r *reading) windowsRequest(command string) {
	m := windowsMethod.FindStringSubmatch(command)
	if m == nil {
		return
	}
	for _, found := range address.In(command, 1) {
		r.asksServer(request{method: strings.ToUpper(m[1]), address: found})
	}
}

// windowsMethod is that of a request.
var windowsMethod = regex.New(`\s-(?:method|custommethod)\s+['"]?(delete|post|put|patch)\b`)

// windowsHidden finds the members of PowerShell that nobody but PowerShell should set: by
// them it is told to have its scripts scanned and recorded.
var windowsHidden = regex.ScreenOf(`nonpublic`, `amsi(?:utils|initfailed|context)`, `cachedgrouppolicysettings`, `etwprovider`)

// profileFile is the script that PowerShell runs when it starts.
var profileFile = regex.New(`^\$profile(?:\.\w+)?$|profile\.ps1$`)

// windowsWrites are the commands that put a file where they are told.
var windowsWrites = words("copy-item copy cp cpi move-item move mi set-content sc add-content ac out-file new-item ni tee-object tee xcopy robocopy")

// windowsDecodes finds what makes code of what nobody can read.
var windowsDecodes = regex.ScreenOf(`frombase64string`, `\[char\]\s*\(`, `\[char\[\]\]`, `gzipstream|deflatestream`, `\[convert\]::to(?:char|int|byte)`)

// registryWrite is what changes the registry, before the key that it changes.
const registryWrite = `(?:\bset-gp(?:pref)?registryvalue\b|\breg(?:\.exe)?"?\s+(?:add|copy|restore)\b|\b(?:set|new|copy)-itemproperty\b|\b(?:new|set)-item\b|[.:]setvalue\(|createsubkey\(|regwrite\b)`

// windowsRules are commands that need no operands to be judged.
var windowsRules = []struct {
	pattern   *regex.Expression
	invariant Invariant
}{
	{regex.New(`\bformat-volume\b|\bclear-disk\b|\binitialize-disk\b|\bremove-partition\b|\bvssadmin(?:\.exe)?\s+(?:delete|` + shrinksShadows + `)|\bwbadmin\s+delete\b|\bformat(?:\.com)?\s+[a-z]:|\bcipher\s+/w|\bdiskpart\b|\bshadowcopy\s+delete\b|\bwmic\b.*\bdelete\b|\bbcdedit\s+/(?:set|delete)|\bwin32_shadowcopy\b|\bremove-azresourcegroup\b|\bremove-(?:vm|azvm|azsqldatabase|azstorageaccount|adorganizationalunit)\b.*-(?:force|confirm)|\bget-psdrive\b.*\bremove-item\b|\bget-ad\w+\s+-filter\s+\*.*remove-ad|\bstop-computer\b|\bshutdown(?:\.exe)?\s+[/-][srp]\b|\breg(?:\.exe)?\s+delete\s+"?hk(?:lm|cr|ey_local_machine)|\bremove-item\b.*\bhklm:|\bfsutil\s+file\s+setzerodata|\bclear-recyclebin\b.*-force|\bcleanmgr\b.*/verylowdisk|\bset-content\b.*physicaldrive|>\s*\\\\\.\\physicaldrive|\breset-computer\s|\bsystemreset\b|\bnew-partition\b.*clear|\brepair-volume\b.*offline|%0\s*\|\s*%0`), DestructiveCommand},
	{regex.New(`\bcertutil(?:\.exe)?\b.*-(?:urlcache|decode)\b.*[&;\n]|\bmshta(?:\.exe)?\s+(?:https?|javascript|vbscript):|\bregsvr32(?:\.exe)?\b.*/i:\S*://|\bbitsadmin\b.*/transfer\b.*[&;\n]|\brundll32(?:\.exe)?\s+(?:javascript:|\S*://)|\bmsiexec(?:\.exe)?\b.*\s\S*https?://|\bwmic\b.*\bprocess\s+call\s+create\b|\btcpclient\b.*\bgetstream\b|-(?:w|win|window|windowstyle)\w*\s+h\w*.*\s-(?:e|ec|enc\w*)\s+[a-z0-9+/=]{16,}|\s-(?:e|ec|enc\w*)\s+[a-z0-9+/=]{16,}.*-(?:w|win|windowstyle)\w*\s+h|\breflection\.assembly\]::load\(|\binvoke-wmimethod\b.*\bcreate\b|\bwmic\b.*\bcall\s+create|\bcscript\b.*://|\binstallutil\b.*://|\bmsbuild\b.*://|\bodbcconf\b.*/a|\binvoke-cimmethod\b.*win32_process|\badd-type\b.*dllimport.*virtualalloc|frombase64string.*\b(?:iex|invoke-expression)\b|\b(?:iex|invoke-expression)\b.*frombase64string`), RemoteCodeExecution},
	{regex.New(`\bnet1?(?:\.exe)?\s+user\s+\S+.*/add\b|\bnew-localuser\b|\benablelua\b|\badd-adgroupmember\b.*admins|\bpsexec(?:64)?(?:\.exe)?\b.*\s-s\b|\bicacls(?:\.exe)?\s+"?[a-z]:\\(?:windows|users|program files)?\\?"?\s.*/grant|\btakeown(?:\.exe)?\b.*/f\s+"?[a-z]:\\(?:windows)?|\bsecedit\b.*/configure|\bgrant-\w*userright|\bntrights\b|-verb\s+runas\b|\brunas\s+/user|\bnet1?\s+localgroup\s+administrators\b.*/add|\badd-localgroupmember\b.*administrators|\bset-executionpolicy\s+(?:-\S+\s+)*(?:bypass|unrestricted)|\bfdenytsconnections\b["']?\s+(?:/t\s+\w+\s+/d\s+|-value\s+)?0\b|\bnet1?(?:\.exe)?\s+user\s+"?(?:guest|administrator)"?\s.*/active:yes|\bnetsh(?:\.exe)?\s+interface\s+portproxy\s+add\b|\bdisable-bitlocker\b|\bmanage-bde(?:\.exe)?\s+-(?:off|protectors\s+-(?:delete|disable))|\brunasppl\b.*\s0\b|\buselogoncredential\b.*\s1\b|` + registryWrite + `.*(?:\\(?:ms-settings|mscfile|exefile|folder|appx\w+|launcher\.\w+)\\(?:shell|curver)|\bdelegateexecute\b|\\environment["']?\s.*(?:windir|systemroot|cor_profiler)|consentprompt\w+|localaccounttokenfilterpolicy|alwaysinstallelevated|filteradministratortoken|promptonsecuredesktop)|\bmklink\b.*\s[a-z]:\\(?:windows|users|program)`), PrivilegeEscalation},
	{regex.New(registryWrite + `.*(?:currentversion\\(?:run|policies\\explorer\\run|explorer\\(?:user )?shell folders|windows\\(?:load|run)\b|winlogon)|image file execution options|silentprocessexit|appinit_dlls|appcertdlls|active setup\\installed components|command processor["']?\s.*autorun|userinitmprlogonscript|notification packages|timeproviders\\|print\\providers|lsaextensionconfig|scrnsave\.exe|inprocserver32|print\\monitors|security packages|authentication packages|bootexecute|session manager\\knowndlls|services\\\w+.*(?:imagepath|servicedll))`), Persistence},
	{regex.New(`\bschtasks(?:\.exe)?\s+/create\b|\bregister-scheduledtask\b|\breg(?:\.exe)?\s+add\s+.*\\currentversion\\run|\bnew-service\b|\bsc(?:\.exe)?\s+create\b|\b__eventfilter\b|\bcommandlineeventconsumer\b|\bactivescripteventconsumer\b|\.registertask(?:definition)?\(`), Persistence},
	{regex.New(`\.(?:aspx?|ashx|asmx|cshtml|jspx?|php\d?|phtml)\b.*` + servedShell), RemoteCodeExecution},
	{regex.New(`\bpasswordvault\b.*(?:retrieve|new-object)|\.retrievepassword\(|\.retrieveall\(|\bprotecteddata\]::unprotect\b|\.defaultpassword\b|\bget-adreplaccount\b|\bget-laps\w*password\b|ms-mcs-admpwd(?:[^e\w]|$)|\bcredread\w*\(|\bget-itemproperty(?:value)?\b.*winlogon.*password`), CredentialAccess},
	{regex.New(strings.Join(loweredSettings, "|")), ConstraintTampering},
	{regex.New(`\[adsi\].{0,20}cn=` + rulers + `.*\.(?:add|put|putex)\(`), PrivilegeEscalation},
	{regex.New(`\b(?:add|set)-content\b.*\\drivers\\etc\\hosts\b|>\s*"?\S*\\drivers\\etc\\hosts\b|\bset-dnsclient(?:serveraddress|nrptrule)\b.*-(?:serveraddresses|nameservers)|\badd-dnsclientnrptrule\b|\bnetsh(?:\.exe)?\s+interface\s+(?:ipv?[46]?\s+)?(?:set|add)\s+dns\w*\b|\bnetsh(?:\.exe)?\s+winhttp\s+set\s+proxy\b|internet settings['"]?\s.*\bproxyserver\b\s+\S|\b(?:limit|remove)-eventlog\b|globalsession\.clearlog`), ConstraintTampering},
	{regex.New(`\bremove-dnsserver(?:zone|resourcerecord)\b.*-force|\bget-(?:aduser|adcomputer|mailbox|adgroup|smbshare|service|vm)\b(?:\s+-(?:filter|resultsize)\s+\S+)?\s*\|\s*(?:remove|disable|stop)-\w+|\bget-azresourcegroup\b\s*\|\s*remove-|\bremove-mailbox\b.*-confirm:\s*\$false`), DestructiveOperation},
	{regex.New(`\bnew-inboxrule\b.*-(?:forwardto|redirectto|forwardasattachmentto)\b.*-(?:deletemessage|markasread|stopprocessingrules)|\bset-mailbox\b.*-forwardingsmtpaddress\b[ :]+\S*@|\bnew-smbshare\b.*-path\s+['"]?[a-z]:\\?['"]?\s.*everyone|\bgrant-smbshareaccess\b.*everyone.*full`), DataExfiltration},
	{regex.New(`\badd-mailboxpermission\b.*fullaccess|\badd-rolegroupmember\b.*(?:organization management|discovery management)|\bnew-managementroleassignment\b|\benable-psremoting\b.*trustedhosts\s+\*|\btrustedhosts\b\s+(?:-value\s+)?['"]?\*|\bnew-netfirewallrule\b.*\binbound\b.*\ballow\b.*\b(?:3389|445|5985|22)\b|\bset-acl\s+(?:-path\s+)?['"]?[a-z]:\\?['"]?\s`), PrivilegeEscalation},
	{regex.New(`(?:get-childitem|gci|dir|ls|get-item|gi)\s+(?:-path\s+)?env:(?:\\?\*|\s|\||$)|getenvironmentvariables\(|(?:^|[&;\n]|\bcmd(?:\.exe)?\s+/c\s+"?)\s*set\s*(?:$|["&;\n|>])|\bconvertfrom-securestring\b.*-asplaintext|\bget-secret\b|\bnetsh\b.*\bkey=clear|\breg(?:\.exe)?\s+query\b.*(?:password|winlogon|putty)|\bfindstr\b.*/s.*(?:passw|secret|token)|\bkeymgr\b|consolehost_history\.txt|\bget-clipboard\b.*passw|networkcredential\(|getnetworkcredential|\bprocdump\b.*lsass|\blsass\b.*\.dmp|\breg(?:\.exe)?\s+save\s+hklm\\(?:sam|system|security)\b|\bcmdkey\s+/list|\bvaultcmd\s+/list|\bget-storedcredential\b|\bmimikatz\b|\bcomsvcs\.dll\b.*minidump|\bntdsutil\b.*\b(?:ifm|set dsrm password|authoritative restore)\b`), CredentialAccess},
	{regex.New(`\bauditpol(?:\.exe)?\s+/(?:clear|remove|set\b.*disable)|\b(?:stop|set|remove|suspend)-service\b.*\b(?:eventlog|windefend|sysmon\w*|mpssvc|sense|caddy|lex\w*)\b|\b(?:sc|net)(?:\.exe)?\s+(?:stop|delete|config)\s+"?(?:eventlog|windefend|sysmon\w*|mpssvc|sense|caddy|lex)\b|\bfsutil\s+usn\s+deletejournal|\b(?:remove|limit)-eventlog\b|\bclear-history\b|historysavestyle\s+savenothing|\bremove-item\b.*(?:historysavepath|psreadline|consolehost_history)|\badd-mppreference\b.*-exclusion|\bdisable-windowsoptionalfeature\b.*defender|\buninstall-windowsfeature\b.*defender|\blogman\s+stop|\bwevtutil(?:\.exe)?\s+(?:sl|clear-log)\b|disable(?:antispyware|realtimemonitoring)\b.*(?:\b1\b|0x0*1\b|true\b)|\bset-netfirewallprofile\b.*-enabled\s+\$?false|\btaskkill(?:\.exe)?\b.*\b(?:msmpeng|sysmon\w*|caddy|lex)(?:\.exe)?\b|\bstop-process\b.*\b(?:caddy|lex|sysmon\w*|msmpeng)\b|\bset-mppreference\b.*-disable\w+(?:[ :]+(?:\$?true|1)\b|\s*$|\s+-)|\bwevtutil(?:\.exe)?\s+cl\b|\bclear-eventlog\b|amsi(?:utils|initfailed|scanbuffer)|\benablescriptblock(?:invocation)?logging\b.*\b0\b|\benablemodulelogging\b.*\b0\b|\benabletranscripting\b.*\b0\b|\bcomplus_etwenabled\b|\bpowershell(?:\.exe)?\s.*-v(?:er\w*)?\s+2\b|\bfltmc(?:\.exe)?\s+unload\b|\bmpcmdrun(?:\.exe)?\b.*-removedefinitions|eventlogsession\]::globalsession\.clearlog|\bsc(?:\.exe)?\s+config\s+"?(?:eventlog|windefend|sysmon\w*|mpssvc|sense)\b.*disabled|\bstop-transcript\b.*;|\bnetsh\s+advfirewall\s+set\b.*\boff\b`), ConstraintTampering},
}

var windowsScreen = func() *regex.Screen {
	patterns := make([]*regex.Expression, 0, len(windowsRules))
	for _, rule := range windowsRules {
		patterns = append(patterns, rule.pattern)
	}
	return regex.NewScreen(patterns...)
}()
