package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Programs and lines of commands carry data off piece by piece, in ways of which each step is
// ordinary: each file of a folder is posted, rows about persons go to where nobody signs in,
// a name is asked for that is made of data, a fresh repository is pushed with copies in it.
// A program that signs in somewhere has an account there, and a report goes to the own network.

var (
	listsFolder   = regex.New(`(?i)\b(?:readdir(?:Sync)?|listdir|scandir|walk|i?glob(?:Sync)?|rglob|iterdir|children|entries)\s*\(|\bDir\.(?:glob|children|entries)|\bDir\[`)
	readsFiles    = regex.New(`(?i)readFileSync|readFile\s*\(|createReadStream|\bopen\s*\(|read_bytes|read_text|file_get_contents|File\.(?:read|open|binread)|CURLFile`)
	queriesRows   = regex.New(`(?is)read_sql\w*\s*\(|\bfetchall\s*\(|\.execute\s*\(|getDataRange\s*\(|getValues\s*\(|findMany\s*\(|\bfetch_all\b`)
	personalWords = regex.New(`(?i)geburt|birth|diagnos|versicher|insurance|iban|konto|bank|salar|gehalt|passport|ausweis|phone|telefon|e-?mail|address|anschrift|adresse|patient|ssn|social_security|card_?number|kunden|customer|employee|mitarbeiter|student|schueler|getDataRange|getContacts`)

	postsTo = regex.New(`(?is)\b(?:requests|httpx|session|axios|http|got|superagent|client|HTTParty|Faraday|RestClient)\s*\.\s*(?:post|put|patch|request)\s*\(.{0,120}?['"\x60](https?://[^'"\x60\s]+)|\bfetch\s*\(\s*['"\x60](https?://[^'"\x60\s]+)['"\x60].{0,40}?\{.{0,200}?method['"]?\s*:\s*['"](?:POST|PUT)|\bUrlFetchApp\.fetch\s*\(\s*['"\x60](https?://[^'"\x60\s]+).{0,200}?payload|\burlopen\s*\(\s*(?:\w+\.)*(?:Request\s*\(\s*)?['"](https?://[^'"\s]+)['"]\s*,\s*(?:data\s*=)?|\bcurl_init\s*\(\s*['"](https?://[^'"\s]+)`)

	// signedIn is what a program says that has an account where it sends.
	signedIn = regex.New(`(?i)authorization|bearer|api[-_]?key|x-\w+-token|access_?token|\bauth\s*=|\bauth\s*:|oauth|Signature=|X-Amz-|\.login\(|client_secret|boto3|credentials|apikey`)
)

// postedRecords judges a program that sends each file of a folder, or the rows of a query
// about persons, to somewhere it has no account.
func (r *reading) postedRecords(text string) {
	found := postsTo.FindAllStringSubmatch(text, maxMatches)
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
	eachUpload = regex.New(`(?s)(?:\bfor\s+\w+\s+in\s[^\n;]*[;\n]\s*do\b|\bread\s+(?:-\w+\s+)*\w+\s*[;\n]\s*do\b|\bxargs\b|\bparallel\b|-exec\s).{0,300}?\bcurl\s[^\n;|]*(?:@"?(?:\$\{?\w|\{\})|(?:-T|--upload-file)\s+"?(?:\$|\{\}))`)
	curlSigned = regex.New(`\s(?:-u|--user|--netrc|-n|--oauth2-bearer|-E|--cert|-b|--cookie)\b`)
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
	asksForLabel  = regex.New(`\b(?:dig|nslookup|host|drill|kdig|delv|ping6?|getent|resolvectl|Resolve-DnsName)\b[^\n;|&]*[\s"'](?:\$\{?\w+\}?|\{\}|\$\([^)\n]*\))\.[\w$.{}-]+\.[a-z]{2,24}\b`)
	fromEncoder   = regex.New(`(?:xxd|base(?:32|64)|\bod|hexdump)\b[^;&\n]*\|\s*(?:[^;&\n|]*\|\s*)*(?:while|xargs|parallel)\b|\bfor\s+\w+\s+in\s+(?:\$\(|\x60)[^\n;]*(?:xxd|base(?:32|64)|\bod|hexdump)\b|\b(?:dig|nslookup|host|drill|kdig|delv|ping6?|getent|resolvectl)\b[^\n;|&]*(?:\$\(|\x60)[^)\n]*(?:xxd|base(?:32|64)|\bod|hexdump)\b|<\s*<\([^)\n]*(?:xxd|base(?:32|64)|\bod|hexdump)\b|Resolve-DnsName`)
	decodesOnly   = regex.New(`\bbase(?:32|64)\s+(?:-d|-D|--decode)\b|\bxxd\s+-r`)
	resolvesLabel = regex.New(`(?:gethostbyname\w*|getaddrinfo|\bresolve\w*|dns\.(?:lookup|resolve\w*)|GetHostEntry|GetHostAddresses|dns_get_record|checkdnsrr)\s*\([^\n]{0,120}(?:\+\s*['"]\.|\}\.|\.\s*['"]\.)[\w.{}-]*\.[a-z]{2,24}\b`)
)

// nameTunnel judges what carries data in the names that it asks for.
func (r *reading) nameTunnel(text string) {
	if asksForLabel.MatchString(text) && fromEncoder.MatchString(text) && !decodesOnly.MatchString(text) || resolvesLabel.MatchString(text) {
		r.breaks(DataExfiltration)
	}
}

var (
	freshRepository = regex.New(`\bgit\b[^\n;&|]*\binit\b`)
	copiedData      = regex.New(`(?:^|[\s;&|])(?:cp|mv|rsync|ln|tar|install)\s[^\n;&|]*\s?(?:/(?:srv|mnt|data|var|home|opt|backups?|media|nas|shares?|Volumes)/|~/|\\\\)|(?:^|[\s;&|])(?:pg_dump|mysqldump|mongodump|sqlite3|pg_dumpall)\s`)
	pushedTo        = regex.New(`\bpush\b[^\n;&|]*?\s['"]?(https?://[^\s'"]+|[\w.-]+@[\w.-]+:[^\s'"]+)`)
	remoteAdded     = regex.New(`\bremote\s+add\s+\S+\s+['"]?(https?://[^\s'"]+|[\w.-]+@[\w.-]+:[^\s'"]+)`)
)

// pushedData judges a repository that is made to carry copied data off.
func (r *reading) pushedData(text string) {
	if !freshRepository.MatchString(text) || !copiedData.MatchString(text) {
		return
	}
	for _, e := range []*regex.Expression{pushedTo, remoteAdded} {
		for _, m := range e.FindAllStringSubmatch(text, maxMatches) {
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
