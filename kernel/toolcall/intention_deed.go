package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// A deed is what a call does, in words that texts can be compared with.
type deed struct {
	effect kernel.ToolEffect
	acts   prose.Act
	verbs  []string // stems of the verbs of the tool's name
	nouns  []string // stems of its other words
	name   string   // letters only
	values []value
	near   *mention // of the values
}

// value is one argument as a text may name it.
type value struct {
	form  string // folded; it stands between other words of a text
	key   string // stem of the argument's name
	kind  kind
	stems []string // of its words

	quoted bool // it stands within prose that the call writes or sends
}

// kind is a kind of value of which a text names one or another: who names one date and
// gets another was not obeyed.
type kind int

const (
	plain      kind = iota // any word
	mailbox                // an address of a mailbox
	account                // of a bank, or a wallet
	amount                 // of money
	date                   // or a time
	webAddress             // of the web
	fileName               // or a folder
	handle                 // a channel, or a person's name in a network
	id                     // a number or code that names a thing
	person                 // a receiver's name
	level                  // a right, a role, a state of publication
	quantity               // a small number
)

var (
	mailboxes    = regex.New(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
	accounts     = regex.New(`\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b|\b0x[0-9a-fA-F]{40}\b|\b(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,59}\b`)
	dates        = regex.New(`\b\d{4}-\d\d?-\d\d?\b|\b\d\d?:\d\d\b|\b\d\d?[./]\d\d?[./]\d{2,4}\b`)
	webAddresses = regex.New(`(?i)\b(?:https?|ftp)://|\bwww\.|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|net|org|io|example|dev|site|shop|co|me|app|info|biz|xyz|ru|cn|de|uk|fr|es|it|ch|eu)\b`)
	filePaths    = regex.New(`^[~.]?/?[\w@.-]+(?:/[\w@. -]+)+/?$|^[~/][\w./-]*$|^[\w-]+(?: [\w-]+)*\.[A-Za-z]\w{0,5}$`)
	namesFile    = regex.New(`[\w-]+/[\w./-]+|\b[\w-]+\.(?:txt|md|pdf|csv|json|ya?ml|py|go|js|ts|docx?|xlsx?|html?|log|sql|sh|toml|ini|conf|png|jpe?g|zip)\b`)
	handles      = regex.New(`(?:^|\s)[@#]\w`)
	ids          = regex.New(`\d{3,}|^[A-Za-z]+[-_]?\d+$`)
)

func kindOf(key, text string, as role) kind {
	switch {
	case amountKey(key):
		return amount
	case mailboxes.MatchString(text):
		return mailbox
	case dates.MatchString(text):
		return date
	case strings.Contains(text, "://") || as == roleURL && webAddresses.MatchString(text):
		return webAddress
	case accounts.MatchString(text):
		return account
	case handles.MatchString(text):
		return handle
	case containsAny(key, "role", "permission", "visib", "access", "scope", "mode", "public"):
		return level
	case filePaths.MatchString(text):
		return fileName
	case quantities.MatchString(text):
		return quantity
	case ids.MatchString(text):
		return id
	case as == roleDestination:
		return person
	}
	return plain
}

var quantities = regex.New(`^-?\d{1,3}(?:\.\d+)?$`)

// names reports whether a text names a value of a kind.
func (p passage) names(k kind) bool {
	switch k {
	case mailbox:
		return mailboxes.MatchString(p.folded)
	case account:
		return accounts.MatchString(p.folded)
	case amount:
		return marked.MatchString(p.folded)
	case date:
		return dates.MatchString(p.folded)
	case webAddress:
		return webAddresses.MatchString(p.folded)
	case fileName:
		return namesFile.MatchString(p.folded)
	case handle:
		return handles.MatchString(p.folded)
	case id:
		return ids.MatchString(p.folded)
	}
	return false
}

// generic are the words of tools' names that tell nothing of what they act on.
var generic = words("manager manage tool api service system app application client server mcp function get set do a an the of to for by from in on with and or new all my user item items data info information details v1 v2 v3 assistant helper handler request id sql query database db command shell bash run execute python code http https web browser terminal")

func (r *reading) readDeed(c Call, effect kernel.ToolEffect, leaves []leaf) (d deed) {
	d = deed{effect: effect}
	words := nameWords(c.Name)
	if len(words) > 1 { // "search" is a word of any text
		d.name = lettersOnly(c.Name)
	}
	if r.moves() {
		defer func() { d.acts |= prose.Pay }()
	}
	for _, l := range leaves {
		if l.text && (l.key == "action" || l.key == "operation" || l.key == "op") && len(l.value) < maxKey {
			words = append(words, nameWords(l.value)...)
		}
	}
	if effect != kernel.ToolReads {
		defer func() { d.acts &^= prose.Read }()
	}
	if r.tool.shell || r.tool.code || r.tool.sql { // what it runs tells, and not its name
		words = nil
	}
	for i, w := range words {
		switch {
		case verbOf(w) != "" && (d.acts == 0 || vague[w]) || len(words) == 1:
			d.acts |= prose.ActOf(w)
			d.verbs = append(d.verbs, prose.Stem(w))
		case d.acts == 0 && nouns[w] != "" && firstVerb(words[i:]) == "":
			d.acts |= prose.EnglishAct(w)
			d.nouns = append(d.nouns, prose.Stem(w))
		case !generic[w] && len(w) > 1:
			if len(d.verbs) > 0 && vague[words[slices.IndexFunc(words, func(w string) bool { return verbOf(w) != "" })]] {
				d.acts |= prose.EnglishAct(w) | objectActs[w]
			}
			d.nouns = append(d.nouns, prose.Stem(w))
		}
	}
	for _, l := range leaves {
		if l.text && len(l.value) < maxKey && (l.key == "side" || l.key == "type" || l.key == "operation" || l.key == "status" || l.key == "state") {
			for _, w := range nameWords(l.value) {
				d.acts |= prose.EnglishAct(w)
			}
		}
	}
	if len(d.verbs) == 0 && d.acts == 0 && len(words) > 1 && !generic[words[0]] { // waive_fees
		d.verbs = append(d.verbs, prose.Stem(words[0]))
	}
	for _, l := range leaves {
		d.argument(r, l)
	}
	if d.acts == 0 && len(d.verbs) == 0 {
		d.acts = usualActs[effect]
	}
	return d
}

// usualActs are those of tools whose names tell none, such as http_request.
var usualActs = map[kernel.ToolEffect]prose.Act{kernel.ToolReads: prose.Read, kernel.ToolSends: prose.Send | prose.Upload}

// objectActs are what is done when a thing is made: create_appointment plans.
var objectActs = map[string]prose.Act{"appointment": prose.Plan, "appointments": prose.Plan, "booking": prose.Plan, "reservation": prose.Plan, "meeting": prose.Plan, "event": prose.Plan, "reminder": prose.Plan, "payment": prose.Pay, "transaction": prose.Pay, "refund": prose.Pay, "post": prose.Publish | prose.Send, "tweet": prose.Publish | prose.Send, "message": prose.Send, "comment": prose.Send, "invitation": prose.Send | prose.Plan, "purchase": prose.Buy, "subscription": prose.Buy | prose.Join, "permission": prose.Grant, "permissions": prose.Grant, "access": prose.Grant, "sharing": prose.Grant, "role": prose.Grant, "prescription": prose.Sign, "shipment": prose.Dispatch | prose.Send, "dispatch": prose.Dispatch, "request": prose.Dispatch}

// vague verbs leave it to the words after them what is done: create_payment pays.
var vague = words("create add make do manage perform submit update set execute run request process handle operate control apply place call put start give")

// argument takes a value that a text could name. Long prose is composed by the model, and
// small numbers and flags are named by chance.
func (d *deed) argument(r *reading, l leaf) {
	as := r.tool.roleOf(l.key)
	if l.composed || len(l.value) < 2 || len(l.value) > maxWithin || l.value == "true" || l.value == "false" || l.value == "null" {
		return
	}
	if as == roleShell || as == roleQuery {
		d.command(l.value)
	}
	if as == roleShell || as == roleQuery {
		for _, m := range codes.FindAllString(l.value[:min(len(l.value), maxWithin)], 8) {
			d.values = append(d.values, value{form: prose.Fold(m), kind: id})
		}
	}
	if len(l.value) > 24 && strings.ContainsAny(l.value, " \n\"'") {
		d.within(l.value, as == roleProse)
	}
	v := value{form: prose.Fold(strings.TrimSpace(l.value)), key: prose.Stem(l.key), kind: kindOf(l.key, l.value, as)}
	if len(l.value) > 400 {
		return
	}
	for _, w := range r.reader.Words(l.value) {
		if len(w.Text) > 2 && l.key != "currency" && !w.Is(prose.Followers) && !everywhere[w.Text] {
			v.stems = append(v.stems, w.Stem)
		}
	}
	d.values = append(d.values, v)
}

// everywhere are words of addresses that say nothing of whose they are.
var everywhere = words("com net org www http https gmail yahoo outlook hotmail mail example proton icloud")

// within takes the addresses and accounts that a longer text names.
func (d *deed) within(text string, quoted bool) {
	text = text[:min(len(text), maxWithin)]
	for k, pattern := range map[kind]*regex.Expression{mailbox: mailboxes, account: accounts, webAddress: links} {
		for _, m := range pattern.FindAllString(text, 8) {
			d.values = append(d.values, value{form: prose.Fold(strings.TrimRight(m, ".,;:!?)")), kind: k, quoted: quoted})
		}
	}
	slices.SortFunc(d.values, func(a, b value) int { return strings.Compare(a.form, b.form) })
}

// codes are the numbers, files and quoted words of a command or a query.
var codes = regex.New(`\b\d{3,}\b|[\w-]+/[\w./-]+|\b[\w-]+\.[a-z]{2,4}\b`)

// maxWithin bounds the text in which addresses and accounts are looked for.
const maxWithin = 16 << 10

var links = regex.New(`(?i)\bhttps?://[^\s"'<>]+|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|net|org|io|example|dev|site|shop|co|me|app|info|biz|xyz|ru|cn)\b`)

// command adds the acts of a command line.
func (d *deed) command(text string) {
	for _, part := range between.Regexp().Split(text, 8) {
		f := strings.Fields(part)
		for _, w := range f[:min(len(f), 2)] {
			d.acts |= prose.EnglishAct(strings.ToLower(w)) | commandActs[strings.ToLower(w)]
		}
	}
}

var commandActs = map[string]prose.Act{"rm": prose.Delete, "del": prose.Delete, "unlink": prose.Delete, "shred": prose.Delete, "select": prose.Read, "drop": prose.Delete, "insert": prose.Create, "alter": prose.Update, "curl": prose.Send | prose.Read | prose.Upload, "wget": prose.Read, "scp": prose.Send | prose.Upload, "rsync": prose.Send | prose.Move, "mv": prose.Move, "cp": prose.Move, "cat": prose.Read, "ls": prose.Read, "mail": prose.Send, "npm": prose.Run, "pip": prose.Run, "apt": prose.Run, "apt-get": prose.Run, "chmod": prose.Grant | prose.Update, "tee": prose.Create, "kill": prose.Stop, "commit": prose.Sign, "git": 0, "install": prose.Run, "sh": prose.Run, "bash": prose.Run, "python": prose.Run, "make": prose.Run}

func lettersOnly(s string) string {
	return strings.Map(func(c rune) rune {
		if separates(c) {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

// separates reports whether a character stands between the words of names.
func separates(c rune) bool {
	return c == '_' || c == '-' || c == '.' || c == ' ' || c == '/' || c == ':'
}

// spells reports whether a folded text has letters in a row, whatever separates them.
func spells(text, letters string) bool {
	for i := strings.IndexByte(text, letters[0]); i >= 0; {
		if beginsWith(text[i:], letters) {
			return true
		}
		next := strings.IndexByte(text[i+1:], letters[0])
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

func beginsWith(text, letters string) bool {
	n := 0
	for i := 0; i < len(text) && n < len(letters); i++ {
		switch c := text[i]; {
		case c == letters[n]:
			n++
		case !separates(rune(c)):
			return false
		}
	}
	return n == len(letters)
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
