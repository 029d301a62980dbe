package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Commands of Windows have names that say what they do, so what is grave of them stands in
// tables by name, in lower case: who rules a directory (windows_directory.go), what guards and records
// (windows_defences.go), secrets of the system (windows_dumping.go), what brings things back (windows_recovery.go), and
// what an organisation rents (windows_tenancy.go). A command that only lists is in none of them, unless
// what it lists is secret.
var cmdletRules = func() map[string][]wordRule {
	out := make(map[string][]wordRule)
	for _, rule := range []struct {
		patterns  patterns
		invariant Invariant
	}{
		{directoryRights, PrivilegeEscalation},
		{tenantRights, PrivilegeEscalation},
		{directoryLosses, DestructiveOperation},
		{dumpedSecrets, CredentialAccess},
		{loweredDefences, ConstraintTampering},
		{unheardTenants, ConstraintTampering},
		{lostRecovery, DestructiveCommand},
		{lostTenants, DestructiveOperation},
		{openedTenants, DataExfiltration},
		{plantedCmdlets, Persistence},
		{fetchedCmdlets, RemoteCodeExecution},
	} {
		for name, e := range rule.patterns {
			out[name] = append(out[name], wordRule{e, rule.invariant})
		}
	}
	return out
}()

// cmdlet judges a command of Windows by its name and by the words behind it, and behind
// the commands that get what it finds.
func (r *reading) cmdlet(name string, words, behind []string) {
	rules := cmdletRules[strings.ToLower(name)]
	if len(rules) == 0 {
		return
	}
	line := strings.Join(words, " ")
	if len(behind) > 0 {
		rest := strings.Join(behind, "|")
		line += " |" + cmdletSigns.Replace(rest[:min(len(rest), maxValue)])
	}
	if line = strings.ToLower(line); !r.spend(costWord+costScreen*len(line)*len(rules)) || strings.Contains(line, "-whatif") {
		return
	}
	for _, rule := range rules {
		if rule.pattern.MatchString(line) && (rule.invariant != DataExfiltration || !staysInside(line)) {
			r.breaks(rule.invariant)
		}
	}
}

// staysInside reports whether all mailboxes that a command names are of one organisation.
func staysInside(line string) bool {
	found := mailDomain.FindAllStringSubmatch(line, maxPlaces)
	for _, m := range found {
		if m[1] != found[0][1] {
			return false
		}
	}
	return len(found) > 1
}

var mailDomain = regex.New(`@([\w-]+(?:\.[\w-]+)+)`)

// cmdletSigns drops the signs around the words of PowerShell.
var cmdletSigns = strings.NewReplacer(`"`, "", "'", "", "(", " ", ")", " ", "{", " ", "}", " ", ",", " ")

// cmdletTool judges a tool whose arguments name a command of PowerShell and its parameters.
func (r *reading) cmdletTool(leaves []leaf) {
	name := ""
	for _, l := range leaves {
		if l.text && cmdletKeys[l.key] && cmdletName.MatchString(l.value) {
			name = l.value
		}
	}
	if name == "" || len(leaves) > maxProgramWords {
		return
	}
	var line []string
	for _, l := range leaves {
		switch {
		case l.value == name || l.composed || len(l.value) > maxValue:
		case cmdletBoth[l.key]:
			line = append(line, l.value)
		default:
			line = append(line, "-"+l.key, l.value)
		}
	}
	r.cmdlet(name, line, nil)
}

var (
	cmdletKeys = words("cmdlet command cmd name action operation method function commandname")
	cmdletBoth = words("args arguments argv parameters params")
	cmdletName = regex.New(`^[A-Z][a-zA-Z]{2,11}-[A-Z][A-Za-z0-9]{2,60}$`)
)

// registryTool judges a tool whose arguments say what is written where in the registry, as the
// command that does the same.
func (r *reading) registryTool(leaves []leaf) {
	if !r.tool.any("registry", "reg", "regedit", "winreg") || len(leaves) > maxProgramWords {
		return
	}
	key, name, value := "", "", ""
	for _, l := range leaves {
		switch {
		case len(l.value) > maxValue:
		case registryHives[l.key]:
			key = l.value + `\` + key
		case registryKeys[l.key]:
			key += l.value
		case registryNames[l.key]:
			name = l.value
		case registryValues[l.key]:
			value = l.value
		}
	}
	if key != "" && value != "" {
		r.windows(`reg add "` + key + `" /v ` + name + ` /d ` + value)
	}
}

var (
	registryHives  = words("hive root rootkey")
	registryKeys   = words("key path keypath subkey registrykey")
	registryNames  = words("name valuename property entry")
	registryValues = words("value data valuedata")
)

// inTwoPlaces are things that a text says in two places, such as a right that one command takes
// and another gives.
var inTwoPlaces = []struct {
	first, second *regex.Screen
	invariant     Invariant
}{
	{replicationRight, changesACL, PrivilegeEscalation},
	{ticketRequest, manyAccounts, CredentialAccess},
}

// windowsTogether judges what a text says in two places.
func (r *reading) windowsTogether(text string) {
	for _, pair := range inTwoPlaces {
		if pair.first.Matches(text) && pair.second.Matches(text) {
			r.breaks(pair.invariant)
		}
	}
}

// losesEvery judges a pipeline that lists everything of a kind that others work with, and loses
// each of it. Where something picks, or what is listed is on its way out, nobody knows.
func (r *reading) losesEvery(text string) {
	if !r.spend(costScreen*len(text)) || !strings.Contains(text, "get-") || !losesMany.Matches(text) || !r.spend(costSearch*len(text)) {
		return
	}
	for _, m := range listedInto.FindAllStringSubmatch(text[:min(len(text), maxWritten)], maxPlaces) {
		text = strings.NewReplacer("$"+m[1]+" |", m[2]+" |", "$"+m[1]+"|", m[2]+" |", "in $"+m[1]+")", "in "+m[2]+")").Replace(text)
	}
	for line := range strings.Lines(text) {
		for _, every := range []*regex.Expression{everyListed, everyLooped} {
			if m := every.FindStringSubmatch(line); m != nil && !waning.MatchString(m[1]) {
				r.breaks(DestructiveOperation)
			}
		}
	}
}

var (
	// everyListed is a listing that picks nothing, behind which each of it is lost; everyLooped is a
	// loop over one, and listedInto keeps one in a variable.
	everyListed = regex.New(`\bget-` + managedNouns + `\b(` + picksNothing + `)\s*\)?\s*\|\s*(?:(?:foreach-object|foreach|%)\s*\{[^}]*?|(?:select|select-object|sort|sort-object)\s[^|]*\|\s*)?` + losesOne)
	everyLooped = regex.New(`\bforeach\s*\(\s*\$\w+ in \(?get-` + managedNouns + `\b(` + picksNothing + `)\s*\)+\s*\{(?:[^}i]|i[^f])*?` + losesOne)
	listedInto  = regex.New(`\$(\w+)\s*=\s*@?\(?(get-` + managedNouns + `\b` + picksNothing + `)\s*\)?\s*(?:[;\n]|$)`)

	// losesMany finds what may lose something of an estate, which few scripts do.
	losesMany = regex.ScreenOf(losesOne)

	// waning is what a folder of a directory is called whose accounts are on their way out.
	waning = regex.New(`leaver|disabled|inactive|stale|former|temp|test|lab\b|sandbox|staging|retired|decommission|obsolete|alt\b`)
)

// managedNouns are the things that the commands of Windows work with and others need.
const managedNouns = `(?:ad(?:user|computer|group|object|serviceaccount|organizationalunit|account)|gpo|mg\w+|msol\w+|azuread\w+|entra\w+|az\w+|(?:exo)?mailbox|distributiongroup|unifiedgroup|team|spo\w+|pnp\w+|vm|vmhost|vmguest|vmharddiskdrive|vbr\w+|wb\w+|dpm\w+|dhcpserver\w+|dnsserver\w+|smbshare|cluster\w+|storagepool|virtualdisk|iisapppool|iissite|website|webapppool|printer|catemplate|intune\w*|npsclient|dfsn?\w*|scvirtualmachine|datastore|cm\w+)`

const (
	// picksNothing are the parameters of a listing that leave nothing out.
	picksNothing = `(?:\s+-(?:filter|identity|ldapfilter|name|vmname)\s+['"{(]*(?:\*|\(objectclass=\*\))['"})]*|\s+-(?:all|includeall|isprimordial|force)\b(?:[: ]?\$?(?:true|false))?|\s+-(?:resultsize|top|pagesize|limit|properties|property|server|searchscope|searchbase|resourcegroupname|erroraction|ea|computername|scopeid)\s+(?:'[^']*'|"[^"]*"|[^\s)]+)|\s+\*)*`

	// losesOne takes away, or locks out, one of what was listed.
	losesOne = `(?:(?:remove|disable|stop|clear|uninstall|revoke|reset|suspend|unregister|dismount|move)-` + managedNouns + `\b|set-(?:adaccountpassword|aduser|mguser|mailbox|msoluserpassword)\b[^|]*-(?:reset|enabled|accountenabled)\b|update-mguser\b[^|]*-accountenabled[: ]\$?false|invoke-mg\w+[^|]*/(?:wipe|retire|delete)\b)`
)
