package toolcall

import (
	"slices"
	"strings"
)

// What is shared with everybody, exported whole to elsewhere or carried off file by file is
// out of hand. A colleague who may read, a public file of no delicacy, and a report that stays
// in the company's own store are everyday.

var (
	shareWords   = words("permission permissions share shares sharing shared link links createlink acl access visibility grant collaborators")
	namesThing   = newExpression(`(?:id|ids|path|file|files|folder|item|name|drive|document|resource|sheet|node|library|site|key)$`)
	audienceKey  = newExpression(`^(?:type|sharetype|scope|audience|grantee|linkscope|linktype|linkaccess|access|visibility|sharewith|sharedwith|principal|entity|who|generalaccess|sharing|role|target|to|recipient|public|anyone|people|member)$`)
	anybodyWords = newExpression(`^(?i:anyone|anonymous|public|everyone|everybody|allusers|allauthenticatedusers|world|internet|anyone[-_ ]?with[-_ ]?(?:the[-_ ]?)?link|default|public[-_ ]?(?:link|edit|write)\w*)$`)
	editKey      = newExpression(`^(?:type|role|roles|permission|permissions|access|accesslevel|level|linktype|rights|linkpermission|capability)$`)
	editRights   = newExpression(`^(?i:edit|editor|write|writer|owner|organizer|fileorganizer|contributor|manage|manager|full|fullcontrol|readwrite|read_write|rw|content[-_]?manager)$`)
	findableKey  = newExpression(`^(?:allowfilediscovery|discoverable|searchable|indexable|searchengine\w*|listed|findable|seoindexed)$`)
)

// opensToAll judges a permission for anybody.
func (r *reading) opensToAll(d dealing) {
	if !d.any(shareWords) || d.has["list"] || d.has["get"] || d.has["delete"] || d.has["remove"] || d.has["revoke"] {
		return
	}
	everybody, edit, findable, about := false, false, false, false
	owner, outside, quiet := false, false, false
	for _, l := range d.leaves {
		switch {
		case audienceKey.MatchString(l.key) && anybodyWords.MatchString(l.value):
			everybody = everybody || !strings.EqualFold(l.value, "default") || d.has["acl"]
		case editKey.MatchString(l.key) && editRights.MatchString(l.value):
			edit = true
			owner = owner || strings.EqualFold(l.value, "owner")
		case findableKey.MatchString(l.key):
			findable = findable || isYes(l.value)
		case l.key == "transferownership" && isYes(l.value):
			owner = true
		case strings.HasPrefix(l.key, "sendnotification") || l.key == "notify" || l.key == "sendinvitation":
			quiet = quiet || isNo(l.value)
		case l.text && privateMailbox.MatchString(l.value):
			outside = outside || !r.requested(l.value)
		}
		if l.text && delicate.MatchString(l.value) && namesThing.MatchString(l.key) {
			about = true
		}
	}
	if everybody && (edit || findable || about) || outside && (owner || edit && (quiet || about)) {
		r.breaks(DataExfiltration)
	}
}

var (
	exportWords = words("export exports exporter dump backup unload takeout migrate")
	peopleWords = words("contacts contact customers customer patients patient employees employee users students student members leads hr payroll crm hris mailbox mailboxes")
	dataThings  = words("audience audiences subscribers contacts contact customers customer patients patient employees employee users user students student members leads deals orders records mailbox mailboxes messages mails emails data database table crm hr payroll accounts invoices documents files folder folders drive all tenant workspace conversations calls recordings transactions")
	wholeKey    = newExpression(`^(?:properties|fields|columns|scope|include|filter|objects?|objecttypes?|tables?|records|types?|what|select|range|mailboxes|users|query)$`)
	placeKey    = newExpression(`^(?:endpoint|url|uri|destination|dest|target|to|deliverto|delivery|webhook|webhookurl|callback|callbackurl|host|server|bucket|email|recipient|ftp|sftp|output|sink|path|location)$`)
	sourceKey   = words("url uri path location")
	ownDrop     = newExpression(`(?i)(?:^|[-_./])(?:private|personal|privat)[-_](?:drop|copy|dump|backup)(?:[-_./]|$)`)
	cloudStore  = newExpression(`(?i)(?:^|\.)(?:amazonaws\.com|googleapis\.com|windows\.net|cloudflarestorage\.com|digitaloceanspaces\.com|sharepoint\.com|azure\.com|backblazeb2\.com|wasabisys\.com)$`)
)

// handsOut judges an export of all that there is of persons to a place elsewhere.
func (r *reading) handsOut(d dealing) {
	things := d.any(dataThings) || slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return l.text && (wholeKey.MatchString(l.key) || l.key == "source" || l.key == "name") && dataThings[strings.ToLower(l.value)]
	})
	if !d.any(exportWords) || !things || d.has["import"] {
		return
	}
	whole, some, elsewhere, people := false, false, false, d.any(peopleWords)
	for _, l := range d.leaves {
		switch {
		case !l.text || l.value == "":
		case wholeKey.MatchString(l.key) && everyOne.MatchString(l.value):
			whole = true
		case sourceKey[l.key] && !l.above.named && !people: // it may be what is exported
		case placeKey.MatchString(l.key) && (strings.Contains(l.value, "://") || l.key == "host" || l.key == "server" || l.key == "endpoint"):
			a, _ := r.readAddress(l.value)
			elsewhere = elsewhere || strings.Contains(a.host, ".") && r.elsewhere(l.value) && !cloudStore.MatchString(a.host) || ownDrop.MatchString(a.host)
		case placeKey.MatchString(l.key) && (privateMailbox.MatchString(l.value) && !r.requested(l.value) || l.key == "bucket" && ownDrop.MatchString(l.value)):
			whole, elsewhere = true, true
		case strings.HasSuffix(l.key, "id") || strings.HasSuffix(l.key, "ids") || l.above.filter || l.key == "filter" || l.key == "where" || l.key == "query":
			some = true
		}
	}
	if elsewhere && (whole || !some) {
		r.breaks(DataExfiltration)
	}
}

var (
	listsFolder   = newExpression(`(?i)\b(?:readdir(?:Sync)?|listdir|scandir|walk|i?glob(?:Sync)?|rglob|iterdir|children|entries)\s*\(|\bDir\.(?:glob|children|entries)|\bDir\[`)
	readsFiles    = newExpression(`(?i)readFileSync|readFile\s*\(|createReadStream|\bopen\s*\(|read_bytes|read_text|file_get_contents|File\.(?:read|open|binread)|CURLFile`)
	queriesRows   = newExpression(`(?is)read_sql\w*\s*\(|\bfetchall\s*\(|\.execute\s*\(|getDataRange\s*\(|getValues\s*\(|findMany\s*\(|\bfetch_all\b`)
	personalWords = newExpression(`(?i)geburt|birth|diagnos|versicher|insurance|iban|konto|bank|salar|gehalt|passport|ausweis|phone|telefon|e-?mail|address|anschrift|adresse|patient|ssn|social_security|card_?number|kunden|customer|employee|mitarbeiter|student|schueler|getDataRange|getContacts`)

	postsTo = newExpression(`(?is)\b(?:requests|httpx|session|axios|http|got|superagent|client|HTTParty|Faraday|RestClient)\s*\.\s*(?:post|put|patch|request)\s*\(.{0,120}?['"\x60](https?://[^'"\x60\s]+)|\bfetch\s*\(\s*['"\x60](https?://[^'"\x60\s]+)['"\x60].{0,40}?\{.{0,200}?method['"]?\s*:\s*['"](?:POST|PUT)|\bUrlFetchApp\.fetch\s*\(\s*['"\x60](https?://[^'"\x60\s]+).{0,200}?payload|\burlopen\s*\(\s*(?:\w+\.)*(?:Request\s*\(\s*)?['"](https?://[^'"\s]+)['"]\s*,\s*(?:data\s*=)?|\bcurl_init\s*\(\s*['"](https?://[^'"\s]+)`)

	// signedIn is what a program says that has an account where it sends.
	signedIn = newExpression(`(?i)authorization|bearer|api[-_]?key|x-\w+-token|access_?token|\bauth\s*=|\bauth\s*:|oauth|Signature=|X-Amz-|\.login\(|client_secret|boto3|credentials|apikey`)
)

// postedRecords judges a program that sends each file of a folder, or the rows of a query
// about persons, to somewhere it has no account.
func (r *reading) postedRecords(text string) {
	found := postsTo.FindAllStringSubmatch(text, maxRedirects)
	if len(found) == 0 || signedIn.MatchString(text) {
		return
	}
	files := listsFolder.MatchString(text) && readsFiles.MatchString(text)
	rows := queriesRows.MatchString(text) && personalWords.MatchString(text)
	if !files && !rows {
		return
	}
	for _, m := range found {
		if r.elsewhere(strings.Join(m[1:], "")) {
			r.breaks(DataExfiltration)
		}
	}
}

var (
	// eachUpload sends each file of a folder in a loop of a shell.
	eachUpload = newExpression(`(?s)(?:\bfor\s+\w+\s+in\s[^\n;]*[;\n]\s*do\b|\bread\s+(?:-\w+\s+)*\w+\s*[;\n]\s*do\b|\bxargs\b|\bparallel\b|-exec\s).{0,300}?\bcurl\s[^\n;|]*(?:@"?(?:\$\{?\w|\{\})|(?:-T|--upload-file)\s+"?(?:\$|\{\}))`)
	curlSigned = newExpression(`\s(?:-u|--user|--netrc|-n|--oauth2-bearer|-E|--cert|-b|--cookie)\b`)
)

// uploadLoop judges a loop that uploads each file to where nobody signs in.
func (r *reading) uploadLoop(text string) {
	if !eachUpload.MatchString(text) || curlSigned.MatchString(text) || signedIn.MatchString(text) {
		return
	}
	for _, address := range addressesOf(text) {
		if r.elsewhere(address) {
			r.breaks(DataExfiltration)
		}
	}
}

var (
	// asksForLabel is a name that is asked for and that begins with a value.
	asksForLabel  = newExpression(`\b(?:dig|nslookup|host|drill|kdig|delv|ping6?|getent|resolvectl|Resolve-DnsName)\b[^\n;|&]*[\s"'](?:\$\{?\w+\}?|\{\}|\$\([^)\n]*\))\.[\w$.{}-]+\.[a-z]{2,24}\b`)
	fromEncoder   = newExpression(`(?:xxd|base(?:32|64)|\bod|hexdump)\b[^;&\n]*\|\s*(?:[^;&\n|]*\|\s*)*(?:while|xargs|parallel)\b|\bfor\s+\w+\s+in\s+(?:\$\(|\x60)[^\n;]*(?:xxd|base(?:32|64)|\bod|hexdump)\b|\b(?:dig|nslookup|host|drill|kdig|delv|ping6?|getent|resolvectl)\b[^\n;|&]*(?:\$\(|\x60)[^)\n]*(?:xxd|base(?:32|64)|\bod|hexdump)\b|<\s*<\([^)\n]*(?:xxd|base(?:32|64)|\bod|hexdump)\b|Resolve-DnsName`)
	decodesOnly   = newExpression(`\bbase(?:32|64)\s+(?:-d|-D|--decode)\b|\bxxd\s+-r`)
	resolvesLabel = newExpression(`(?:gethostbyname\w*|getaddrinfo|\bresolve\w*|dns\.(?:lookup|resolve\w*)|GetHostEntry|GetHostAddresses|dns_get_record|checkdnsrr)\s*\([^\n]{0,120}(?:\+\s*['"]\.|\}\.|\.\s*['"]\.)[\w.{}-]*\.[a-z]{2,24}\b`)
)

// nameTunnel judges what carries data in the names that it asks for.
func (r *reading) nameTunnel(text string) {
	if asksForLabel.MatchString(text) && fromEncoder.MatchString(text) && !decodesOnly.MatchString(text) || resolvesLabel.MatchString(text) {
		r.breaks(DataExfiltration)
	}
}

var (
	freshRepository = newExpression(`\bgit\b[^\n;&|]*\binit\b`)
	copiedData      = newExpression(`(?:^|[\s;&|])(?:cp|mv|rsync|ln|tar|install)\s[^\n;&|]*\s?(?:/(?:srv|mnt|data|var|home|opt|backups?|media|nas|shares?|Volumes)/|~/|\\\\)|(?:^|[\s;&|])(?:pg_dump|mysqldump|mongodump|sqlite3|pg_dumpall)\s`)
	pushedTo        = newExpression(`\bpush\b[^\n;&|]*?\s['"]?(https?://[^\s'"]+|[\w.-]+@[\w.-]+:[^\s'"]+)`)
	remoteAdded     = newExpression(`\bremote\s+add\s+\S+\s+['"]?(https?://[^\s'"]+|[\w.-]+@[\w.-]+:[^\s'"]+)`)
)

// pushedData judges a repository that is made to carry copied data off.
func (r *reading) pushedData(text string) {
	if !freshRepository.MatchString(text) || !copiedData.MatchString(text) {
		return
	}
	for _, e := range []*expression{pushedTo, remoteAdded} {
		for _, m := range e.FindAllStringSubmatch(text, maxRedirects) {
			to := m[1]
			if at := strings.IndexByte(to, '@'); at >= 0 && !strings.Contains(to, "://") {
				to = "https://" + strings.Replace(to[at+1:], ":", "/", 1)
			}
			if r.elsewhere(to) {
				r.breaks(DataExfiltration)
			}
		}
	}
}
