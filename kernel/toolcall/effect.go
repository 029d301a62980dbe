package toolcall

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// effectOf returns what a tool does to the world, and whether what it does is grave and
// cannot be undone: it moves money, deletes, acts on doors and machines, changes who
// may do what, or speaks to many. Arguments tell it best where they are commands,
// queries or requests; then the verb of the tool's name; then its description. MCP's
// hints make a tool graver, or a tool of which nothing else is known a reading one: the
// server that gives them may lie, so they never excuse a verb.
func effectOf(c Call) (kernel.ToolEffect, bool) {
	words := nameWords(c.Name)
	if !argumentsTell(readTool(c.Name), words) {
		return effectWith(c, words, nil)
	}
	leaves, err := readArguments(c.Arguments, &budget{ctx: context.Background()})
	if err != nil {
		leaves = nil
	}
	return effectWith(c, words, leaves)
}

// effectWith is effectOf with arguments that were read already.
func effectWith(c Call, words []string, leaves []leaf) (kernel.ToolEffect, bool) {
	e, grave := effectOfArguments(readTool(c.Name), words, leaves)
	if e == "" {
		e = effectOfName(c.Name)
	}
	if e == "" && c.Definition != nil {
		e = effectOfDescription(c.Definition.Description)
	}
	if d := c.Definition; d != nil {
		e = hinted(e, d)
		grave = grave || isTrue(d.Destructive)
	}
	if e == "" {
		e = kernel.ToolOther
	}
	return e, e != kernel.ToolReads && (grave || graveWords(words, e))
}

func isTrue(b *bool) bool { return b != nil && *b }

func hinted(e kernel.ToolEffect, d *Definition) kernel.ToolEffect {
	switch {
	case isTrue(d.ReadOnly) && !isTrue(d.Destructive) && (e == "" || e == kernel.ToolOther):
		return kernel.ToolReads
	case isTrue(d.Destructive) && (e == "" || e == kernel.ToolReads):
		return kernel.ToolWrites
	case d.ReadOnly != nil && !*d.ReadOnly && e == kernel.ToolReads:
		return kernel.ToolOther
	}
	return e
}

// verbs are words that name an act wherever they stand in a tool's name. Of several,
// the first tells: get_order_updates reads. nouns are words that are acts only in a
// name without a verb: email, post.
var (
	verbs = effectTable(map[kernel.ToolEffect]string{
		kernel.ToolReads:  "get fetch read list search find lookup query show view describe retrieve check count browse inspect summarize summarise analyze analyse calculate compute compare download scan monitor preview explain validate verify detect translate classify select peek stat poll track recall load see parse extract estimate convert listen locate discover recommend navigate goto visit scrape crawl display whois ask dump return tail grep ls cat glob consult measure predict forecast export scroll",
		kernel.ToolWrites: "create add update edit modify insert append write save put patch delete remove drop rename move copy replace upsert merge archive restore schedule reschedule cancel book reserve assign unassign enable disable activate deactivate turn start stop unlock mark toggle register unregister configure apply approve reject grant revoke erase destroy purge wipe terminate kill truncate reset rotate upgrade install uninstall commit play pause resume make generate manage leave join subscribe unsubscribe follow unfollow like rate block unblock ban unban mute promote demote attach detach link unlink pin unpin star complete finish adjust increase decrease allow deny permit prescribe administer steer land brew heat cool dim water arm disarm ring switch control draft autofill fill accept decline confirm sign import sync unfriend give format overwrite empty trash discard provision deprovision dispense rent hire scale reboot restart shutdown mkdir touch chmod chown rm mv cp",
		kernel.ToolSends:  "send forward reply transfer pay wire publish upload tweet retweet share invite notify broadcast submit push deliver purchase buy withdraw donate refund remit reimburse dispatch dial announce transmit respond unsend disburse sell trade stake deploy release checkout",
		kernel.ToolOther:  "run execute exec eval invoke launch spawn call delegate",
	})
	nouns = effectTable(map[kernel.ToolEffect]string{
		kernel.ToolReads:  "weather wikipedia news wolfram calculator calculate time date status info information details history balance log logs search stats help version docs forecast summary metadata geocode directions definition dictionary whoami",
		kernel.ToolWrites: "set lock open close clear order schedule store change note alarm thermostat deposit reservation booking goal door robot go reminder timer",
		kernel.ToolSends:  "email mail gmail message sms text post tweet payment payout transaction notification chat webhook slack comment invitation",
		kernel.ToolOther:  "shell bash terminal command cmd python powershell code script",
	})
)

func effectTable(words map[kernel.ToolEffect]string) map[string]kernel.ToolEffect {
	out := make(map[string]kernel.ToolEffect)
	for e, list := range words {
		for _, w := range strings.Fields(list) {
			out[w] = e
		}
	}
	return out
}

// effectOfName reads the last part of a name first: mcp__search__delete_index deletes.
func effectOfName(name string) kernel.ToolEffect {
	last := name[strings.LastIndexAny(name, "./:")+1:]
	if i := strings.LastIndex(last, "__"); i >= 0 {
		last = last[i+2:]
	}
	words := nameWords(last)
	e := effectOfWords(words)
	if firstVerb(words) == "" {
		e = effectOfWords(nameWords(name))
	}
	return leaving(e, nameWords(name))
}

// effectOfWords reads the words of a name, or returns "".
func effectOfWords(words []string) kernel.ToolEffect {
	e := firstVerb(words)
	for i, w := range words { // get_or_create, download_and_run
		if w == "and" || w == "or" || w == "then" {
			e = worse(e, firstVerb(words[i+1:]))
		}
	}
	if e == "" && names(words, "open") && names(words, "browser page url link tab file website document") {
		return kernel.ToolReads
	}
	if e == "" {
		for _, w := range words {
			e = worse(e, nouns[w])
		}
	}
	return leaving(e, words)
}

// leaving makes a send of a write that moves money or makes what others will see.
func leaving(e kernel.ToolEffect, words []string) kernel.ToolEffect {
	if e == kernel.ToolWrites && (names(words, money) || creates(words) && names(words, messages)) {
		return kernel.ToolSends
	}
	return e
}

func firstVerb(words []string) kernel.ToolEffect {
	for _, w := range words {
		if e := verbOf(w); e != "" {
			return e
		}
	}
	return ""
}

// verbOf returns the effect of a verb; of one in another language by the act that it
// means.
func verbOf(w string) kernel.ToolEffect {
	if e := verbs[w]; e != "" {
		return e
	}
	if prose.EnglishAct(w) != 0 || nouns[w] != "" || len(w) < 3 {
		return ""
	}
	switch a := prose.ActOf(w); {
	case a == 0:
		return ""
	case a&(prose.Send|prose.Publish|prose.Pay|prose.Buy|prose.Upload) != 0:
		return kernel.ToolSends
	case a&^prose.Read != 0:
		return kernel.ToolWrites
	}
	return kernel.ToolReads
}

// creates reports whether a name makes what others will see: create_post, make_payment.
func creates(words []string) bool {
	return names(words, "create add make write submit insert schedule new") && !names(words, "draft template")
}

const (
	messages = "post tweet email mail message comment sms invitation invite notification announcement newsletter reply transaction story reel"
	money    = "payment payments pay transaction transactions funds money refund refunds payout payouts withdrawal withdrawals transfer transfers wire remittance donation charge charges"
)

func names(words []string, list string) bool {
	for w := range strings.FieldsSeq(list) {
		if slices.Contains(words, w) {
			return true
		}
	}
	return false
}

// effectOrder goes from the least to the most that an effect does.
var effectOrder = []kernel.ToolEffect{"", kernel.ToolReads, kernel.ToolOther, kernel.ToolWrites, kernel.ToolSends}

func worse(a, b kernel.ToolEffect) kernel.ToolEffect {
	if slices.Index(effectOrder, b) > slices.Index(effectOrder, a) {
		return b
	}
	return a
}

// effectOfDescription reads the verb that a description opens with, as descriptions
// do: "Sends an email", "Use this tool to delete a file".
func effectOfDescription(text string) kernel.ToolEffect {
	words := nameWords(text[:min(len(text), 400)])
	for i, w := range words[:min(len(words), 12)] {
		for _, form := range []string{w, strings.TrimSuffix(w, "s"), strings.TrimSuffix(w, "es")} {
			if e := verbs[form]; e != "" && (i == 0 || e != kernel.ToolOther) {
				return e
			}
		}
	}
	return ""
}

// graveWords reports whether a tool that changes the world does so for good.
func graveWords(words []string, e kernel.ToolEffect) bool {
	switch {
	case names(words, "agent assistant handoff"): // transfer_to_agent moves no money
		return false
	case names(words, money+" transact withdraw donate remit reimburse buy purchase trade sell invest stake swap disburse deposit checkout"):
		return true
	case names(words, "delete destroy purge wipe erase truncate drop terminate shred decommission deprovision unregister rm format empty"):
		return true
	case names(words, "lock unlock door doors gate garage dispatch emergency traffic vehicle robot drone valve pump furnace oven disarm dispense thermostat elevator siren brake engine plc actuator reactor"):
		return true
	case names(words, "password passwords credential credentials permission permissions role roles grant revoke access mfa otp authentication authenticator login iam privilege privileges admin token secret ssh apikey impersonate promote"):
		return true
	case names(words, "key keys") && names(words, "api ssh signing access encryption"):
		return true
	case names(words, "publish tweet retweet broadcast announce announcement newsletter press release"):
		return true
	case e == kernel.ToolSends && names(words, "post posts reel story facebook linkedin instagram twitter reddit mastodon tiktok youtube blog"):
		return !names(words, "message messages dm http request webhook")
	case names(words, "place") && names(words, "order"):
		return true
	}
	return false
}

// argumentsTell reports whether the effect of a tool of that name may stand in its arguments.
func argumentsTell(t tool, words []string) bool {
	return t.shell || t.sql || t.code || t.words["query"] || len(words) <= 3 || talksHTTP(t) ||
		names(words, "manage action operation operate control do perform")
}

func talksHTTP(t tool) bool {
	return t.any("http", "https", "request", "requests", "curl", "fetch", "api", "rest", "webhook", "url")
}

// effectOfArguments reads what the arguments of a shell, a database or an HTTP client
// do, and the verb that a tool of many acts takes as an argument. It returns "" where
// the arguments do not tell.
func effectOfArguments(t tool, words []string, leaves []leaf) (e kernel.ToolEffect, grave bool) {
	if !argumentsTell(t, words) {
		return "", false
	}
	for _, l := range leaves {
		switch as := t.roleOf(l.key); {
		case !l.text:
		case t.shell && as == roleShell:
			one, hard := effectOfCommand(l.value)
			e, grave = worse(e, one), grave || hard
		case as == roleCode:
			e = worse(e, effectOfCode(l.value))
		case as == roleQuery || t.sql && as == roleUnknown || l.key == "query" && !t.search:
			one, hard := effectOfQuery(l.value)
			e, grave = worse(e, one), grave || hard
		case l.key == "action" || l.key == "operation" || l.key == "verb" || l.key == "op":
			act := nameWords(l.value[:min(len(l.value), maxKey)])
			if one := effectOfWords(act); one != "" {
				e, grave = worse(e, one), grave || graveWords(act, one)
			}
		}
	}
	if e == "" && talksHTTP(t) {
		return effectOfRequest(leaves, words)
	}
	return e, grave
}

// effectOfRequest reads an HTTP request: its method tells, or else whether it has a
// body.
func effectOfRequest(leaves []leaf, words []string) (e kernel.ToolEffect, grave bool) {
	body, address := false, false
	for _, l := range leaves {
		switch l.key {
		case "method", "httpmethod", "verb", "requestmethod":
			switch strings.ToUpper(strings.TrimSpace(l.value)) {
			case "GET", "HEAD", "OPTIONS":
				return kernel.ToolReads, false
			case "DELETE":
				return kernel.ToolWrites, true
			case "POST", "PUT", "PATCH":
				return kernel.ToolSends, false
			}
		case "body", "data", "json", "payload", "form", "formdata", "files":
			body = body || l.value != ""
		case "url", "uri", "href", "endpoint", "link":
			address = true
		}
	}
	switch {
	case names(words, "post put patch upload send submit webhook delete") || !address:
		return "", false
	case body:
		return kernel.ToolSends, false
	}
	return kernel.ToolReads, false
}

var (
	readingCommand = words("ls cat head tail less more grep egrep fgrep rg pwd echo printf whoami id date uname df du free ps top wc sort uniq cut find which whereis file stat tree env printenv hostname uptime diff cmp man history awk jq yq ping dig nslookup host traceroute test true cd dir type lsblk lscpu ip ifconfig netstat ss basename dirname realpath md5sum sha256sum column seq cal ver systeminfo get-childitem get-content get-process")
	writingCommand = words("rm rmdir mv cp touch mkdir ln chmod chown tee dd truncate sed kill pkill killall systemctl service mount umount crontab useradd userdel passwd apt apt-get yum dnf brew pip npm yarn del erase copy move ren shred unlink tar unzip zip gzip patch install set-content remove-item new-item")
	sendingCommand = words("mail sendmail mutt scp sftp rsync ssh nc ncat netcat telnet ftp twine gsutil s3cmd rclone")
	erasing        = words("rm shred dd mkfs truncate del erase userdel remove-item")
	readingGit     = words("status log diff show branch blame grep remote describe rev-parse ls-files shortlog reflog")
	between        = regex.New(`[;|&\n]+`)
)

// effectOfCommand reads the first word of every command. It is no parser: what it
// cannot tell is Other, and the invariants read the command properly.
func effectOfCommand(text string) (e kernel.ToolEffect, grave bool) {
	if strings.TrimSpace(text) == "" || len(text) > 1<<14 {
		return kernel.ToolOther, false
	}
	e = kernel.ToolReads
	if strings.Contains(text, "$(") || strings.Contains(text, "`") || strings.Contains(text, "<(") {
		e = kernel.ToolOther
	}
	if redirects.MatchString(text) {
		e = kernel.ToolWrites
	}
	for _, part := range between.Regexp().Split(text, -1) {
		one, hard := effectOfOneCommand(strings.Fields(strings.ToLower(part)))
		e, grave = worse(e, one), grave || hard
	}
	return e, grave
}

// redirects finds output that goes to a file, which neither 2>&1 nor >/dev/null is.
var redirects = regex.New(`>>?\s*(?:[^&\s/>]|/(?:[^d]|d[^e]))`)

func effectOfOneCommand(f []string) (e kernel.ToolEffect, grave bool) {
	for len(f) > 1 && (f[0] == "sudo" || f[0] == "time" || f[0] == "nohup" || strings.Contains(f[0], "=")) {
		f = f[1:]
	}
	if len(f) == 0 {
		return "", false
	}
	rest := strings.Join(f[1:], " ")
	switch name := f[0]; {
	case name == "git":
		return effectOfGit(f[1:])
	case name == "curl" || name == "wget":
		if sentByCurl.MatchString(" " + rest) {
			return kernel.ToolSends, false
		}
		if strings.Contains(" "+rest, " -o") || name == "wget" {
			return kernel.ToolWrites, false
		}
		return kernel.ToolReads, false
	case name == "find" && (strings.Contains(rest, "-delete") || strings.Contains(rest, "-exec")):
		return kernel.ToolWrites, strings.Contains(rest, "-delete")
	case name == "sed" && !strings.Contains(" "+rest, " -i"):
		return kernel.ToolReads, false
	case (name == "tar" || name == "unzip") && strings.HasPrefix(strings.TrimPrefix(rest, "-"), "t"):
		return kernel.ToolReads, false
	case readingCommand[name]:
		return kernel.ToolReads, false
	case writingCommand[name]:
		return kernel.ToolWrites, erasing[name]
	case sendingCommand[name]:
		return kernel.ToolSends, false
	}
	return kernel.ToolOther, false
}

var sentByCurl = regex.New(` (?:-d|--data\S*|-f|--form|-t|--upload-file|--post-\S+|--body-\S+|-x ?(?:post|put|patch|delete)|--request[= ](?:post|put|patch|delete))\b`)

func effectOfGit(f []string) (e kernel.ToolEffect, grave bool) {
	switch {
	case len(f) == 0 || strings.HasPrefix(f[0], "--"):
		return kernel.ToolReads, false
	case f[0] == "push":
		return kernel.ToolSends, slices.Contains(f, "--force") || slices.Contains(f, "-f")
	case readingGit[f[0]] && !slices.Contains(f, "-d"):
		return kernel.ToolReads, false
	}
	return kernel.ToolWrites, f[0] == "reset" && slices.Contains(f, "--hard") || f[0] == "clean"
}

// effectOfCode tells a computation, which reads, from a program that may do anything: it
// loads only what computes and calls nothing that reaches out.
func effectOfCode(text string) kernel.ToolEffect {
	if len(text) > 1<<14 || reachesOut.MatchString(text) {
		return kernel.ToolOther
	}
	for _, m := range imports.FindAllStringSubmatch(text, 32) {
		if !computes[m[1]] {
			return kernel.ToolOther
		}
	}
	return kernel.ToolReads
}

var (
	imports    = regex.New(`(?m)(?:^|;)\s*(?:import|from)\s+(\w+)`)
	computes   = words("math cmath statistics datetime calendar re json collections itertools functools fractions decimal random string numpy sympy pandas scipy time operator textwrap heapq bisect typing dataclasses")
	reachesOut = regex.New(`\b(?:open|exec|eval|compile|__import__|input|system|popen|spawn|fetch|require|write|save|to_csv|to_excel|to_sql|to_json|to_pickle|read_\w+|load|dump|remove|unlink|rename|mkdir|connect|request|requests|urlopen|socket|subprocess|getattr|setattr|globals|locals|builtins|Deno|process|fs|XMLHttpRequest)\b\s*[(.]|__|import\s*\(`)
)

// effectOfQuery reads the verbs of SQL. A question to a search engine has none.
func effectOfQuery(text string) (e kernel.ToolEffect, grave bool) {
	for part := range strings.SplitSeq(text, ";") {
		f := strings.Fields(strings.ToLower(sqlComments.ReplaceAllString(part, " ")))
		if len(f) == 0 {
			continue
		}
		if m := changingSQL.Regexp().FindString(part); m != "" && (f[0] == "with" || f[0] == "explain") {
			f[0] = strings.ToLower(m)
		}
		switch f[0] {
		case "select", "show", "describe", "desc", "explain", "pragma", "values", "with":
			e = worse(e, kernel.ToolReads)
		case "insert", "update", "create", "alter", "merge", "replace", "upsert", "set", "copy", "load", "refresh", "vacuum", "begin", "commit", "rename":
			e = worse(e, kernel.ToolWrites)
		case "delete", "drop", "truncate", "grant", "revoke":
			e, grave = worse(e, kernel.ToolWrites), true
		}
	}
	return e, grave
}

var (
	sqlComments = regex.New(`--[^\n]*|/\*.*?\*/`)
	changingSQL = regex.New(`(?i)\b(?:delete|update|insert)\b`)
)

// nameWords splits a name where its parts meet, in order and in lower case: send_email,
// sendEmail, mail.send, mcp__mail__send, HTTPGet. The prefix of an MCP client is left out.
func nameWords(name string) []string {
	var words []string
	letters := []rune(strings.TrimPrefix(name, "mcp__"))
	start := 0
	add := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(letters[start:end])))
		}
		start = end
	}
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c):
			add(i)
			start = i + 1
		case i > start && unicode.IsUpper(c) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			add(i)
		}
	}
	add(len(letters))
	return words
}
