package toolcall

import (
	"regexp"
	"strings"
)

// windows reads a text for PowerShell or cmd. There is no parser for them here:
// the text is put into one spelling (their escapes dropped, joined literals
// joined, aliases written out), cut into commands, and each is judged.
func (r *reading) windows(text string) {
	if r.nested > maxNested {
		r.unreadable()
		return
	}
	if !r.spend(costWord + 2*costJudge*len(text)) {
		return
	}
	text = windowsSpelling(text)
	fetches := windowsFetch.MatchString(text)
	if fetches && windowsRun.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
	for _, rule := range windowsRules {
		if rule.pattern.MatchString(text) {
			r.breaks(rule.invariant)
		}
	}
	for _, line := range windowsLine.Split(text, -1) {
		r.windowsPipeline(strings.Split(line, "|"))
	}
}

// windowsPipeline judges commands, each of which gets what the one before found.
func (r *reading) windowsPipeline(commands []string) {
	var found []string
	for _, command := range commands {
		words := windowsWords(command)
		for len(words) > 0 && (words[0] == "&" || words[0] == "." || strings.HasSuffix(words[0], "=")) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		targets := windowsTargets(words[1:])
		switch name := programName(words[0]); {
		case windowsLists[name]:
			found = append(found, targets...)
		case windowsRemoves[name]:
			for _, t := range append(targets, found...) {
				if p := cleanPath(t); isVital(p) || windowsVital.MatchString(p) {
					r.breaks(DestructiveCommand)
				}
			}
		case windowsReads[name]:
			for _, t := range append(targets, found...) {
				if isCredentialFile(t) {
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

// windowsSpelling is the text in one spelling, in lower case.
func windowsSpelling(text string) string {
	text = strings.NewReplacer("`", "", "^", "", "\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`, "\u2013", "-").Replace(text)
	text = joinedLiterals.ReplaceAllString(text, "")
	return strings.ToLower(text)
}

// windowsWords cuts a command at its spaces, quotes and brackets removed.
func windowsWords(command string) []string {
	return strings.FieldsFunc(command, func(c rune) bool { return strings.ContainsRune(" \t\r'\"(){},", c) })
}

// windowsTargets are the words that are no flags, as paths.
func windowsTargets(argv []string) []string {
	var out []string
	for _, w := range argv {
		if strings.HasPrefix(w, "-") || len(w) == 2 && w[0] == '/' {
			continue
		}
		w = strings.ReplaceAll(w, `\`, "/")
		out = append(out, windowsPlaces.Replace(w))
	}
	return out
}

var (
	windowsLine    = regexp.MustCompile(`\|\||&&|[;\n&]`)
	joinedLiterals = regexp.MustCompile(`(?:'\s*\+\s*'|"\s*\+\s*")`)
	windowsPlaces  = strings.NewReplacer("$env:userprofile", "~", "%userprofile%", "~", "$home", "~", "%systemroot%", "c:/windows", "$env:systemroot", "c:/windows", "%windir%", "c:/windows", "$env:windir", "c:/windows", "%systemdrive%", "c:", "$env:systemdrive", "c:")
	windowsVital   = regexp.MustCompile(`^[a-z]:/?(?:[*.]*|(?:windows|users|program files|programdata)(?:/.*)?)$`)
	windowsRemoves = words("remove-item ri rm del erase rd rmdir clear-content")
	windowsLists   = words("get-childitem gci dir ls get-item gi")
	windowsReads   = words("get-content gc cat type more copy-item copy cp")
	windowsFetch   = regexp.MustCompile(`\b(?:invoke-webrequest|iwr|invoke-restmethod|irm|wget|curl|downloadstring|downloadfile|downloaddata|start-bitstransfer|openread)\b`)
	windowsRun     = regexp.MustCompile(`\b(?:invoke-expression|iex|scriptblock\]::create|reflection\.assembly|start-process|saps|invoke-command|icm)\b`)
)

// windowsRules are commands that need no operands to be judged.
var windowsRules = []struct {
	pattern   *regexp.Regexp
	invariant Invariant
}{
	{regexp.MustCompile(`\bformat-volume\b|\bclear-disk\b|\binitialize-disk\b|\bremove-partition\b|\bvssadmin(?:\.exe)?\s+(?:delete|resize)\b|\bwbadmin\s+delete\b|\bformat(?:\.com)?\s+[a-z]:|\bcipher\s+/w|\bdiskpart\b|\bshadowcopy\s+delete\b|\bbcdedit\s+/set\b`), DestructiveCommand},
	{regexp.MustCompile(`\bcertutil(?:\.exe)?\b.*-(?:urlcache|decode)\b.*[&;\n]|\bmshta(?:\.exe)?\s+(?:https?|javascript|vbscript):|\bregsvr32(?:\.exe)?\b.*/i:\S*://|\bbitsadmin\b.*/transfer\b.*[&;\n]|\brundll32(?:\.exe)?\s+(?:javascript:|\S*://)|\bmsiexec(?:\.exe)?\b.*\s\S*https?://|\bwmic\b.*\bprocess\s+call\s+create\b|frombase64string.*\b(?:iex|invoke-expression)\b|\b(?:iex|invoke-expression)\b.*frombase64string`), RemoteCodeExecution},
	{regexp.MustCompile(`-verb\s+runas\b|\brunas\s+/user|\bnet1?\s+localgroup\s+administrators\b.*/add|\badd-localgroupmember\b.*administrators|\bset-executionpolicy\s+(?:-\S+\s+)*(?:bypass|unrestricted)`), PrivilegeEscalation},
	{regexp.MustCompile(`\bschtasks(?:\.exe)?\s+/create\b|\bregister-scheduledtask\b|\breg(?:\.exe)?\s+add\s+.*\\currentversion\\run|\b(?:set|new)-itemproperty\b.*\\currentversion\\run|\bnew-service\b|\bsc(?:\.exe)?\s+create\b`), Persistence},
	{regexp.MustCompile(`\breg(?:\.exe)?\s+save\s+hklm\\(?:sam|system|security)\b|\bcmdkey\s+/list|\bvaultcmd\s+/list|\bget-storedcredential\b|\bmimikatz\b|\bcomsvcs\.dll\b.*minidump|\bntdsutil\b`), CredentialAccess},
	{regexp.MustCompile(`\bset-mppreference\b.*-disable|\bwevtutil(?:\.exe)?\s+cl\b|\bclear-eventlog\b|\bnetsh\s+advfirewall\s+set\b.*\boff\b`), ConstraintTampering},
}
