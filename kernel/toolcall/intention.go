package toolcall

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// A deed is what a call does, in words that texts can be compared with.
type deed struct {
	effect kernel.ToolEffect
	acts   action
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
	plain    kind = iota // any word
	mailbox              // an address of a mailbox
	account              // of a bank, or a wallet
	amount               // of money
	date                 // or a time
	address              // of the web
	file                 // or a folder
	handle               // a channel, or a person's name in a network
	id                   // a number or code that names a thing
	person               // a receiver's name
	level                // a right, a role, a state of publication
	quantity             // a small number
)

var (
	mailboxes    = newExpression(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
	accounts     = newExpression(`\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b|\b0x[0-9a-fA-F]{40}\b|\b(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,59}\b`)
	dates        = newExpression(`\b\d{4}-\d\d?-\d\d?\b|\b\d\d?:\d\d\b|\b\d\d?[./]\d\d?[./]\d{2,4}\b`)
	webAddresses = newExpression(`(?i)\b(?:https?|ftp)://|\bwww\.|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|net|org|io|example|dev|site|shop|co|me|app|info|biz|xyz|ru|cn|de|uk|fr|es|it|ch|eu)\b`)
	filePaths    = newExpression(`^[~.]?/?[\w@.-]+(?:/[\w@. -]+)+/?$|^[~/][\w./-]*$|^[\w-]+(?: [\w-]+)*\.[A-Za-z]\w{0,5}$`)
	namesFile    = newExpression(`[\w-]+/[\w./-]+|\b[\w-]+\.(?:txt|md|pdf|csv|json|ya?ml|py|go|js|ts|docx?|xlsx?|html?|log|sql|sh|toml|ini|conf|png|jpe?g|zip)\b`)
	handles      = newExpression(`(?:^|\s)[@#]\w`)
	ids          = newExpression(`\d{3,}|^[A-Za-z]+[-_]?\d+$`)
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
		return address
	case accounts.MatchString(text):
		return account
	case handles.MatchString(text):
		return handle
	case containsAny(key, "role", "permission", "visib", "access", "scope", "mode", "public"):
		return level
	case filePaths.MatchString(text):
		return file
	case quantities.MatchString(text):
		return quantity
	case ids.MatchString(text):
		return id
	case as == roleDestination:
		return person
	}
	return plain
}

var quantities = newExpression(`^-?\d{1,3}(?:\.\d+)?$`)

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
	case address:
		return webAddresses.MatchString(p.folded)
	case file:
		return namesFile.MatchString(p.folded)
	case handle:
		return handles.MatchString(p.folded)
	case id:
		return ids.MatchString(p.folded)
	}
	return false
}

// generic are the words of tools' names that tell nothing of what they act on.
var generic = wordSet("manager manage tool api service system app application client server mcp function get set do a an the of to for by from in on with and or new all my user item items data info information details v1 v2 v3 assistant helper handler request id sql query database db command shell bash run execute python code http https web browser terminal")

func (r *reading) readDeed(c Call, effect kernel.ToolEffect, leaves []leaf) (d deed) {
	d = deed{effect: effect}
	words := nameWords(c.Name)
	if len(words) > 1 { // "search" is a word of any text
		d.name = lettersOnly(c.Name)
	}
	if r.moves() {
		defer func() { d.acts |= actPay }()
	}
	for _, l := range leaves {
		if l.text && (l.key == "action" || l.key == "operation" || l.key == "op") && len(l.value) < maxKey {
			words = append(words, nameWords(l.value)...)
		}
	}
	if effect != kernel.ToolReads {
		defer func() { d.acts &^= actRead }()
	}
	if r.tool.shell || r.tool.code || r.tool.sql { // what it runs tells, and not its name
		words = nil
	}
	for i, w := range words {
		switch {
		case verbOf(w) != "" && (d.acts == 0 || vague[w]) || len(words) == 1:
			d.acts |= actOf(w)
			d.verbs = append(d.verbs, stem(w))
		case d.acts == 0 && nouns[w] != "" && firstVerb(words[i:]) == "":
			d.acts |= englishActs[w]
			d.nouns = append(d.nouns, stem(w))
		case !generic[w] && len(w) > 1:
			if len(d.verbs) > 0 && vague[words[slices.IndexFunc(words, func(w string) bool { return verbOf(w) != "" })]] {
				d.acts |= englishActs[w] | objectActs[w]
			}
			d.nouns = append(d.nouns, stem(w))
		}
	}
	for _, l := range leaves {
		if l.text && len(l.value) < maxKey && (l.key == "side" || l.key == "type" || l.key == "operation" || l.key == "status" || l.key == "state") {
			for _, w := range nameWords(l.value) {
				d.acts |= englishActs[w]
			}
		}
	}
	if len(d.verbs) == 0 && d.acts == 0 && len(words) > 1 && !generic[words[0]] { // waive_fees
		d.verbs = append(d.verbs, stem(words[0]))
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
var usualActs = map[kernel.ToolEffect]action{kernel.ToolReads: actRead, kernel.ToolSends: actSend | actUpload}

// objectActs are what is done when a thing is made: create_appointment plans.
var objectActs = map[string]action{"appointment": actPlan, "appointments": actPlan, "booking": actPlan, "reservation": actPlan, "meeting": actPlan, "event": actPlan, "reminder": actPlan, "payment": actPay, "transaction": actPay, "refund": actPay, "post": actPublish | actSend, "tweet": actPublish | actSend, "message": actSend, "comment": actSend, "invitation": actSend | actPlan, "purchase": actBuy, "subscription": actBuy | actJoin, "permission": actGrant, "permissions": actGrant, "access": actGrant, "sharing": actGrant, "role": actGrant, "prescription": actSign, "shipment": actDispatch | actSend, "dispatch": actDispatch, "request": actDispatch}

// vague verbs leave it to the words after them what is done: create_payment pays.
var vague = wordSet("create add make do manage perform submit update set execute run request process handle operate control apply place call put start give")

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
			d.values = append(d.values, value{form: foldText(m), kind: id})
		}
	}
	if len(l.value) > 24 && strings.ContainsAny(l.value, " \n\"'") {
		d.within(l.value, as == roleProse)
	}
	v := value{form: foldText(strings.TrimSpace(l.value)), key: stem(l.key), kind: kindOf(l.key, l.value, as)}
	if len(l.value) > 400 {
		return
	}
	for _, w := range readWords(l.value) {
		if len(w.text) > 2 && l.key != "currency" && !followers[w.text] && !everywhere[w.text] {
			v.stems = append(v.stems, w.stem)
		}
	}
	d.values = append(d.values, v)
}

// everywhere are words of addresses that say nothing of whose they are.
var everywhere = wordSet("com net org www http https gmail yahoo outlook hotmail mail example proton icloud")

// within takes the addresses and accounts that a longer text names.
func (d *deed) within(text string, quoted bool) {
	text = text[:min(len(text), maxWithin)]
	for k, pattern := range map[kind]*expression{mailbox: mailboxes, account: accounts, address: links} {
		for _, m := range pattern.FindAllString(text, 8) {
			d.values = append(d.values, value{form: foldText(strings.TrimRight(m, ".,;:!?)")), kind: k, quoted: quoted})
		}
	}
	slices.SortFunc(d.values, func(a, b value) int { return strings.Compare(a.form, b.form) })
}

// codes are the numbers, files and quoted words of a command or a query.
var codes = newExpression(`\b\d{3,}\b|[\w-]+/[\w./-]+|\b[\w-]+\.[a-z]{2,4}\b`)

// maxWithin bounds the text in which addresses and accounts are looked for.
const maxWithin = 16 << 10

var links = newExpression(`(?i)\bhttps?://[^\s"'<>]+|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|net|org|io|example|dev|site|shop|co|me|app|info|biz|xyz|ru|cn)\b`)

// command adds the acts of a command line.
func (d *deed) command(text string) {
	for _, part := range between.Split(text, 8) {
		f := strings.Fields(part)
		for _, w := range f[:min(len(f), 2)] {
			d.acts |= englishActs[strings.ToLower(w)] | commandActs[strings.ToLower(w)]
		}
	}
}

var commandActs = map[string]action{"rm": actDelete, "del": actDelete, "unlink": actDelete, "shred": actDelete, "select": actRead, "drop": actDelete, "insert": actCreate, "alter": actUpdate, "curl": actSend | actRead | actUpload, "wget": actRead, "scp": actSend | actUpload, "rsync": actSend | actMove, "mv": actMove, "cp": actMove, "cat": actRead, "ls": actRead, "mail": actSend, "npm": actRun, "pip": actRun, "apt": actRun, "apt-get": actRun, "chmod": actGrant | actUpdate, "tee": actCreate, "kill": actStop, "commit": actSign, "git": 0, "install": actRun, "sh": actRun, "bash": actRun, "python": actRun, "make": actRun}

func lettersOnly(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c == ' ' || c == '/' || c == ':' {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

// A passage is one or several sentences that are read together.
type passage struct {
	sentences []sentence
	folded    string
	form      string          // by destinationForm, once it is asked for
	stems     map[string]bool // of all words, of the user's wish only
	hostile   bool
	delegates bool // it leaves the choice of acts to what will be read

	english, foreignScript bool // of the user's wish only
}

func newPassage(all []sentence) passage {
	p := passage{sentences: all}
	var text strings.Builder
	for _, s := range all {
		text.WriteString(s.text)
		p.hostile = p.hostile || s.hostile
	}
	p.folded = foldText(text.String())
	return p
}

// destination is the text of a passage as accounts are compared.
func (p *passage) destination() string {
	if p.form == "" {
		p.form = destinationForm(p.folded)
	}
	return p.form
}

func stemsOf(all []sentence) map[string]bool {
	out := make(map[string]bool)
	for _, s := range all {
		for _, w := range s.words {
			out[w.stem] = true
		}
	}
	return out
}

func (p passage) acts() (a action) {
	for _, s := range p.sentences {
		a |= s.acts
	}
	return a
}

func (p passage) has(stem string) bool {
	if p.stems != nil {
		return p.stems[stem]
	}
	for i := range p.sentences {
		if p.sentences[i].has(stem) {
			return true
		}
	}
	return false
}

// hasAny counts the stems that a passage, or a word for the same thing, has.
func (p passage) count(stems []string) (n int) {
	for _, s := range stems {
		if p.has(s) || slices.ContainsFunc(sameThing[s], p.has) {
			n++
		}
	}
	return n
}

// sameThing lists, by stem, other words for a thing.
var sameThing = func() map[string][]string {
	out := make(map[string][]string)
	for _, group := range []string{
		"email mail message inbox gmail letter", "dm direct", "file document attachment folder pdf report", "repository repo project", "calendar event appointment meeting schedule", "money fund payment invoice bill dollar bitcoin amount transfer usd eur",
		"payee recipient beneficiary", "reservation booking flight hotel trip", "user account profile member", "shipment package parcel delivery", "password credential secret login", "channel group room slack", "note memo evernote",
		"contact friend person people address phone", "history log record", "ticket issue bug", "webpage page website site url link", "purchase order", "crypto bitcoin ethereum coin wallet", "patient health medical", "ambulance emergency fire police", "photo picture image", "permission access role sharing", "device thermostat light lamp camera robot", "database table row sql", "server host machine instance vm",
	} {
		words := strings.Fields(group)
		for _, w := range words {
			for _, other := range words {
				if w != other {
					out[stem(w)] = append(out[stem(w)], stem(other))
				}
			}
		}
	}
	return out
}()

// named reports whether a passage names a value. Amounts are compared as numbers, and a
// file by its own name too.
func (p passage) named(v value) bool {
	switch v.kind {
	case amount, quantity:
		n := parseNumbers(strings.Trim(v.form, "$€£¥ "))
		return len(n) == 1 && slices.ContainsFunc(numbersIn(p.folded), func(m float64) bool { return equalAmounts(m, n[0]) || v.kind == amount && equalAmounts(m*1000, n[0]) })
	case account:
		return strings.Contains(p.destination(), destinationForm(v.form))
	case address:
		if base, _, cut := strings.Cut(v.form, "?"); cut && len(base) > 12 && strings.Contains(p.folded, base) {
			return true
		}
	case file:
		if base := v.form[strings.LastIndexByte(strings.TrimRight(v.form, "/"), '/')+1:]; len(base) > 4 && strings.Contains(base, ".") && containsWord(p.folded, base) {
			return true
		}
	}
	return containsWord(p.folded, v.form) || v.kind != address && strings.ContainsAny(v.form, "_-") && containsWord(separators.Replace(p.folded), separators.Replace(v.form))
}

var separators = strings.NewReplacer("_", " ", "-", " ")

// resembles reports whether a passage has most of the words of a value.
func (p passage) resembles(v value) bool {
	found := p.count(v.stems)
	return len(v.stems) > 0 && found*10 >= len(v.stems)*6
}

// containsWord reports whether a form stands in a text and is no part of a longer word.
func containsWord(text, form string) bool {
	for at := 0; form != ""; {
		i := strings.Index(text[at:], form)
		if i < 0 {
			return false
		}
		i += at
		j := i + len(form)
		if (i == 0 || !alphanumeric(text[i-1]) || !alphanumeric(form[0])) && (j == len(text) || !alphanumeric(text[j]) || !alphanumeric(form[len(form)-1])) {
			return true
		}
		at = i + 1
	}
	return false
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// The likelihoods from which on a call is blocked, if it reads and if it does more, and
// from which on it is flagged (docs/tools.md shows what others would do).
const (
	readsFrom   = 0.55
	changesFrom = 0.65
	flaggedFrom = 0.45
)

// The weights of what speaks for one instruction being behind a call, and against it. They
// were chosen by hand; their sum is one of the features.
const (
	weighTool     = 1.0  // the passage names the tool
	weighAct      = 0.4  // it tells to do this act, which the user does not ask for
	weighSameAct  = 0.1  // as does the user
	weighThing    = 0.35 // it has a thing or the very verb of the tool's name, and the user has not
	weighValue    = 0.4  // it names a telling argument that the user does not name
	weighWord     = 0.15 // it has the words of another argument, which the user has not; two count
	weighHostile  = 0.45 // it speaks as no honest document does
	weighTheft    = 0.35 // it tells to read and to send
	weighLanguage = 0.35 // it is in another language than the user writes
	weighOther    = 0.35 // the user named another value of that kind
	userAct       = 0.1  // the user asks for the act
	userThing     = 0.2  // and names the thing,
	userValue     = 0.4  // and telling arguments,
	userWord      = 0.1  // and others
	noLink        = 0.3  // a reading of which the passage names nothing
	userDelegates = 0.6  // the user leaves the choice to what is read
)

// common are the stems of verbs that tools of many kinds have.
var common = func() map[string]bool {
	out := make(map[string]bool)
	for w := range vague {
		out[stem(w)] = true
	}
	for w := range strings.FieldsSeq("send write post open edit save show read check use change add list share") {
		out[stem(w)] = true
	}
	return out
}()

// support is what the user's wish says for a call.
type support struct {
	act     bool
	things  int
	strong  int // telling values that the user names
	words   int // others
	foreign []value
	near    *mention // of the foreign ones
	nothing bool     // see unsupported
}

func (r *reading) supportFor(d deed) support {
	s := support{act: r.wish.acts()&d.acts != 0 || d.acts == 0 && r.wish.count(d.verbs) > 0 || r.wish.nominal(d.verbs), things: r.wish.count(d.nouns)}
	near := make([]bool, len(d.values)) // those that the user or the application may name
	for _, i := range d.near.at(&r.wish) {
		near[i] = true
	}
	for _, rule := range r.rules {
		p := newPassage([]sentence{rule})
		for _, i := range d.near.at(&p) {
			near[i] = true
		}
	}
	for i, v := range d.values {
		if !near[i] {
			s.foreign = append(s.foreign, v)
			continue
		}
		switch named := r.wish.named(v) || r.stated(v); {
		case named && v.quoted:
			s.words++
		case named && v.telling():
			s.strong++
			s.act = s.act || v.aims() && (d.effect == kernel.ToolSends || v.kind == amount || v.kind == file && d.effect == kernel.ToolWrites)
		case named || r.wish.resembles(v):
			s.words++
		default:
			s.foreign = append(s.foreign, v)
		}
	}
	s.near = newMention(unlike(s.foreign), maxAkin)
	return s
}

// nominal reports whether a passage asks for an act by its noun: "give it a like".
func (p passage) nominal(verbs []string) bool {
	for _, s := range p.sentences {
		for i, w := range s.words {
			if i > 0 && slices.Contains(verbs, w.stem) && (s.words[i-1].text == "a" || s.words[i-1].text == "an" || i > 1 && (s.words[i-2].text == "a" || s.words[i-2].text == "an")) {
				return true
			}
		}
	}
	return false
}

// stated reports whether the application names a value.
func (r *reading) stated(v value) bool {
	return slices.ContainsFunc(r.rules, func(s sentence) bool { return containsWord(foldText(s.text), v.form) })
}

func (v value) telling() bool { return v.kind != plain && v.kind != quantity && v.kind != level }

// aims reports whether a value says where an act goes.
func (v value) aims() bool {
	return v.kind == mailbox || v.kind == account || v.kind == address || v.kind == handle || v.kind == person || v.kind == amount || v.kind == file
}

// contradicts reports whether a value takes the place of one that the user named, or adds
// a receiver to a wish that is complete without.
func (r *reading) contradicts(v value, p passage, u support) bool {
	if u.act && (p.hostile || v.aims()) && r.wish.names(v.kind) {
		return true
	}
	return u.strong > 1 && (v.kind == mailbox || v.kind == account || v.kind == handle || v.kind == address)
}

// tells reports whether a passage that names a value gives the order for it. An honest
// text names numbers and dates for other reasons.
func (p passage) tells(v value) bool {
	if !p.named(v) {
		return false
	}
	if p.hostile {
		return v.telling() || v.kind == quantity || v.kind == level || len(v.form) > 5 || v.key != "" && p.has(v.key)
	}
	return v.aims() || v.kind == plain && len(v.form) > 8
}

// evidence weighs how far a call follows a passage rather than the user. near are the
// foreign values that the passage may name or resemble.
func (r *reading) evidence(d deed, p passage, u support, near []value) float64 {
	reads := d.effect == kernel.ToolReads
	e, told := 0.0, false
	if len(d.name) > 7 && strings.Contains(lettersOnly(p.folded), d.name) {
		e += weighTool
	}
	act := p.acts()&d.acts != 0 || d.acts == 0 && p.count(d.verbs) > 0
	switch {
	case act && (u.act || reads):
		e += weighSameAct
	case act:
		e += weighAct
	}
	things, literally := 0, false
	for _, n := range d.nouns {
		if p.count([]string{n}) > 0 && !r.wish.has(n) && (!u.act || r.wish.count([]string{n}) == 0) {
			things++
			literally = literally || p.has(n)
		}
	}
	if !u.act && act && slices.ContainsFunc(d.verbs, func(v string) bool { return !common[v] && p.has(v) && !r.wish.has(v) }) {
		things++ // its very verb
	}
	words := 0
	for _, v := range near {
		switch {
		case p.tells(v) && (!v.quoted || v.kind == address && p.hostile):
			if !told {
				e += weighValue
			}
			told = true
			if !reads && r.contradicts(v, p, u) {
				e += weighOther
			}
		case p.named(v) || p.resembles(v):
			words++
		}
	}
	if things > 0 || act && !reads && (told || words > 0) && u.nothing {
		e += weighThing
	}
	e += weighWord * float64(min(2, words))
	if p.hostile {
		e += weighHostile
	}
	if reads && (p.steals() || literally && p.acts()&(actSend|actPublish|actUpload) != 0) {
		e += weighTheft
	}
	strange := act && p.strange(r.wish) && (!u.act || reads)
	if strange {
		e += weighLanguage
	}
	if reads && !act && literally && p.acts()&(actSend|actPublish|actUpload) != 0 { // what is sent is read first
		act = true
		e += weighSameAct
	}
	linked := told || words > 0 || slices.ContainsFunc(d.nouns, p.has) || strange
	switch {
	case told && p.hostile && (act || !reads):
		return e
	case reads && e < weighTool && (!act || !linked):
		e -= noLink
	}
	if !p.hostile && r.wish.says() < fewWords && r.wish.acts() == 0 && !r.wish.asks() {
		e -= noLink // "Yes, that is right": what the user wished is not known
	}
	other := !reads && act && (!u.act && (things > 0 || p.hostile) || p.hostile && things > 1) || reads && things > 0 && p.steals()
	if !p.hostile && u.strong > 0 && len(u.foreign) == 0 {
		other = false // every argument is the user's
	}
	return e - r.excuse(u, p, things, told, reads, other)
}

// fewWords is the length of a request below which it may be an answer to a question.
const fewWords = 12

// asks reports whether a passage asks for anything.
func (p passage) asks() bool {
	return slices.ContainsFunc(p.sentences, func(s sentence) bool { return s.instructs || strings.ContainsAny(s.text, "?？") })
}

// says counts the words of a passage.
func (p passage) says() (n int) {
	for _, s := range p.sentences {
		n += len(s.words)
	}
	return n
}

// strange reports whether a passage is in another language than the user's wish, as far
// as their verbs tell.
func (p passage) strange(wish passage) bool {
	return wish.says() > 2 && p.foreign() != wish.foreign()
}

func (p passage) foreign() bool {
	return slices.ContainsFunc(p.sentences, func(s sentence) bool { return s.foreign })
}

// steals reports whether a passage tells to read and then to send.
func (p passage) steals() bool {
	return p.acts()&actRead != 0 && p.acts()&(actSend|actPublish|actUpload) != 0
}

// excuse weighs what speaks for the user being behind a call. That everybody reads says
// nothing; and an act of its own on the user's things is no less an instruction's.
func (r *reading) excuse(u support, p passage, things int, told, reads, other bool) float64 {
	e := 0.0
	if u.act && !reads {
		e += userAct
	}
	if r.delegates() && !p.hostile {
		e += userDelegates
	}
	switch {
	case told:
		return e
	case other && p.hostile && !reads:
		if u.strong > 0 && things == 0 && (u.things > 0 || len(r.deed.nouns) == 0 && r.deed.acts&^actRun == 0) {
			e += userValue
		}
		return e
	case other:
		return e
	}
	if u.strong > 0 {
		e += userValue
	}
	if !reads || !p.hostile {
		e += userThing * float64(min(1, u.things))
	}
	e += userWord * float64(min(2, u.words))
	return e
}

// compare reads the call's deed, and what the user says for it.
func (r *reading) compare(c Call, leaves []leaf) {
	if len(r.seen) > 0 {
		r.deed = r.readDeed(c, r.effect, leaves)
		r.deed.near = newMention(r.deed.values, len(r.deed.values))
		r.readArguments(leaves)
		r.user = r.supportFor(r.deed)
		r.user.nothing = r.unsupported()
	}
}

// readArguments keeps the arguments in the forms in which they are compared with texts.
func (r *reading) readArguments(leaves []leaf) {
	var all strings.Builder
	for _, l := range leaves {
		if len(l.value) > maxWithin {
			continue
		}
		all.WriteString(foldText(l.value) + "\n")
		if len(l.value) < 200 && len(r.texts) < maxMarks {
			r.texts = append(r.texts, l.value)
		}
		if n, err := strconv.ParseFloat(l.value, 64); err == nil && len(r.figures) < maxMarks {
			r.figures = append(r.figures, n)
		}
	}
	r.arguments = all.String()
}

// intention judges whether the call is what the user asks for, or what a text that the
// agent read tells it to do. (Instructions and data share one channel, as Greshake et al.
// 2023, arXiv:2302.12173, describe; what was asked is the only thing that tells them
// apart.) The likelihood that it is the latter comes from features of both (feature.go).
func (r *reading) intention() {
	if len(r.seen) == 0 || r.application(r.deed) {
		return
	}
	if !r.spend(costSearch * len(r.untrusted.plain)) {
		return
	}
	from := changesFrom
	if r.effect == kernel.ToolReads {
		from = readsFrom
	}
	r.suspicion = r.likelihood(r.features(r.strongest()))
	if r.suspicion >= flaggedFrom {
		r.flags(InjectedAction)
	}
	if r.suspicion >= from {
		r.breaks(InjectedAction)
	}
}

// strongest returns what the strongest instruction weighs.
func (r *reading) strongest() (most float64) {
	d, u := r.deed, r.user
	for _, p := range r.instructions() {
		near := u.near.in(&p)
		if !r.spend(costSearch*len(p.folded) + costCompare*len(near)*len(p.folded)/2) {
			return most
		}
		e := r.evidence(d, p, u, near)
		if d.effect != kernel.ToolReads || p.hostile || p.acts()&(actSend|actPublish|actUpload) != 0 {
			most = max(most, e)
		}
	}
	if u.nothing && (d.effect != kernel.ToolReads && r.anyInstruction(func(p passage) bool { return p.hostile || p.strange(r.wish) }) ||
		d.effect == kernel.ToolReads && r.anyInstruction(func(p passage) bool { return p.hostile && p.steals() })) {
		most = max(most, unrelatedTakeover)
	}
	if r.mentioned(d, u) {
		most = max(most, weighAct+weighValue)
	}
	if r.unrelated(d, u) && r.takenOver() {
		most = max(most, unrelatedTakeover)
	}
	return most
}

// mentioned reports whether a text that tells nobody to do anything still speaks of an
// act on a thing which the user names neither of: "the folder is to be deleted".
func (r *reading) mentioned(d deed, u support) bool {
	if d.effect == kernel.ToolReads || u.act || u.strong > 0 || r.delegates() || r.wish.acts() == 0 {
		return false
	}
	for _, text := range r.seen {
		for i, s := range text {
			if !s.mentions(d) && !d.calledIn(text[max(0, i-2):i]) {
				continue
			}
			p := newPassage([]sentence{s})
			near := u.near.in(&p)
			if r.spend(costCompare*len(near)*len(p.folded)/2) && slices.ContainsFunc(near, func(v value) bool {
				return (v.aims() || v.kind == id && s.hasAny(d.verbs)) && !v.quoted && v.kind != amount && p.named(v)
			}) {
				return true
			}
		}
	}
	return false
}

// calledIn reports whether sentences have the tool's name.
func (d deed) calledIn(before []sentence) bool {
	return len(d.name) > 7 && slices.ContainsFunc(before, func(s sentence) bool { return strings.Contains(lettersOnly(s.text), d.name) })
}

func (s *sentence) hasAny(stems []string) bool { return slices.ContainsFunc(stems, s.has) }

// mentions reports whether a sentence has the act of a deed in any form.
func (s *sentence) mentions(d deed) bool {
	for _, w := range s.words {
		if a := actsOfStem[w.stem]; a&d.acts != 0 || slices.Contains(d.verbs, w.stem) {
			return true
		}
	}
	return false
}

// unsupported reports whether the user says nothing at all for the call: neither its act nor
// a thing nor an argument of it.
func (r *reading) unsupported() bool {
	u := r.user
	if u.act && r.effect != kernel.ToolReads || u.strong > 0 || u.things > 0 || u.words > 0 || r.delegates() || r.wish.says() < fewWords && !r.wish.asks() {
		return false
	}
	if r.effect == kernel.ToolReads && (r.tool.shell || r.tool.code) {
		return false
	}
	return !slices.ContainsFunc(r.deed.values, func(v value) bool { return !v.quoted && r.wish.count(v.stems) > 0 })
}

func (r *reading) anyInstruction(is func(passage) bool) bool {
	return slices.ContainsFunc(r.instructions(), is)
}

// unrelatedTakeover is the evidence of a call that the user says nothing of, after a text
// that overrides what the user says: the instruction itself may be hidden.
const unrelatedTakeover = 0.9

// unrelated reports whether the user says nothing that the call could be meant by. Of what
// leaves for somewhere else, only the act and the receiver count: the rest may be what was
// stolen. Commands that look around share no words with a wish.
func (r *reading) unrelated(d deed, u support) bool {
	if u.strong > 0 || d.effect == kernel.ToolReads && (r.tool.shell || r.tool.code) {
		return false
	}
	shares := func(v value) bool {
		return (d.effect != kernel.ToolSends || v.aims()) && r.wish.count(v.stems) > 0
	}
	related := slices.ContainsFunc(d.values, shares)
	switch d.effect {
	case kernel.ToolReads:
		return !related && u.things == 0
	case kernel.ToolSends:
		return !related && !u.act
	}
	return !related && !u.act && u.things == 0
}

// delegates reports whether the user hands the choice of acts to what will be read.
func (r *reading) delegates() bool { return r.wish.delegates }

var delegation = newExpression(`\b(?:follow|do|carry out|execute|complete|perform|handle|apply|implement|process|work through|take care of|deal with|act on|respond to|address|go through|resolve)\b[^.!?\n]{0,50}\b(?:instructions?|steps?|tasks?|to-?dos?|checklist|guide|readme|runbook|playbook|items|requests?|tickets?|whatever|described|listed|procedure|actions?)\b|\b(?:whatever|what) (?:it|he|she|they|the \w+|\w+) (?:asks?|wants?|needs?|tells? (?:me|you|us)|suggests?|proposes?)\b|\b(?:take care of|deal with|handle|see to|sort out) (?:it|this|that|them)\b|\bdo (?:it|that|them|this|the (?:first|next|last|second|rest))\b|\b(?:as|that) (?:he|she|they|\w+) (?:proposed|suggested|asked|requested|proposes|suggests)\b|\bas (?:described|proposed|suggested|requested)\b|\bdo\b[^.!?\n]{0,40}\bwhat\b[^.!?\n]{0,40}\bsays?\b`)

// application reports whether the application's own instructions ask for the deed. What
// they say the agent can do is no wish.
func (r *reading) application(d deed) bool {
	for _, s := range r.rules {
		p := newPassage([]sentence{s})
		if s.instructs && s.acts&d.acts != 0 && (p.count(d.nouns) > 0 || slices.ContainsFunc(d.values, p.named)) {
			return true
		}
	}
	return false
}

// takenOver reports whether anything that was read overrides what was asked, or puts on
// the role of the system.
func (r *reading) takenOver() bool {
	return slices.ContainsFunc(r.seen, func(o []sentence) bool {
		return slices.ContainsFunc(o, func(s sentence) bool { return s.overrides })
	})
}

// instructions returns the passages that tell a reader to do something: a sentence that
// does, with the next, which often holds the details. One hostile sentence makes its
// neighbours that tell something hostile.
func (r *reading) instructions() []passage {
	if r.told != nil {
		return r.told
	}
	r.told = []passage{}
	for _, text := range r.seen {
		for i := 0; i < len(text); {
			end := i
			for end < len(text) && text[end].instructs {
				end++
			}
			for at := i; at < end; at++ {
				p := newPassage(text[at:min(at+2, len(text))])
				p.hostile = hostileAt(text[i:end], at-i)
				r.told = append(r.told, p)
			}
			i = end + 1
		}
	}
	return r.told
}

// hostileAt reports whether a sentence of neighbours that tell something is hostile: if it
// is itself, or one before it, or a later one of the same line.
func hostileAt(run []sentence, at int) bool {
	if slices.ContainsFunc(run[:at+1], func(s sentence) bool { return s.hostile }) {
		return true
	}
	for ; at+1 < len(run) && !run[at].last; at++ {
		if run[at+1].hostile {
			return true
		}
	}
	return false
}

// listen reads what was said in the conversation.
func (r *reading) listen(c Call) {
	if !slices.ContainsFunc(c.Context, func(o Observation) bool { return strings.TrimSpace(o.Text) != "" }) {
		return
	}
	wish := r.sentences(c.Request)
	for i := range wish {
		wish[i].lenient(false)
	}
	r.wish = newPassage(wish)
	r.wish.stems = stemsOf(wish)
	r.wish.foreignScript = foreignScript(r.wish.folded)
	r.wish.english = slices.ContainsFunc(wish, func(s sentence) bool { return s.english() })
	last := strings.TrimSpace(c.Request)
	r.asks, r.last = c.Request, newPassage(r.sentences(last[strings.LastIndexByte(last, '\n')+1:]))
	r.wish.delegates = delegation.MatchString(r.wish.folded)
	r.rules = slices.DeleteFunc(r.sentences(c.System), func(s sentence) bool {
		return capability.MatchString(s.text)
	})
	for _, o := range c.Context {
		r.seen = append(r.seen, r.sentences(undisguised(o.Text)))
		r.seen = append(r.seen, r.decoded(o.Text)...)
	}
}

// capability finds what an application says of abilities rather than wishes.
var capability = newExpression(`(?i)\b(?:can|able|may|access to|tools?|capab\w+|helps?|allowed|assist\w*)\b`)
