package toolcall

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/address"
	"github.com/caddy-lex/lex/kernel/regex"
)

// Tools for daily work have no language: the words of their names, of the members that say
// what is done, and of the addresses that they ask are all there is. A dealing holds these, and
// each file of a reader asks it one thing: who gets rights (tool_rights.go), what is passed on
// (tool_forwarding.go), what is opened or carried out (tool_sharing.go), what is lost (tool_bulk.go,
// tool_retention.go), whose money moves (tool_money.go), which names lead elsewhere (tool_names.go), what is
// no longer heard (tool_silences.go), what an agent allows itself (tool_limits.go), and what becomes of a
// house (tool_premises.go).

// dealing is what a call of a tool for daily work says of itself.
type dealing struct {
	*reading
	words  []string        // of the name, then of what the members say is done, in order
	has    map[string]bool // the same
	hosts  []string        // words of the host that is asked
	told   []string        // what the name and each of these members say, in words
	leaves []leaf          // that are short enough for a name, a number or an address
	long   []leaf          // the texts among the others
	empty  []string        // members that hold an empty list
	acts   bool            // it does more than read
	trial  bool            // on this machine, or where things are tried out
}

// deals judges a call of a tool for daily work. The settings of an agent count whatever tool
// changes them, and a house where it is only tried out; all else is judged of calls that change
// something which is in use.
func (r *reading) deals(leaves []leaf, raw []byte, q request) {
	if r.tool.sql || !r.spend(costWord*len(leaves)+costScreen*len(raw)) {
		return
	}
	d := r.dealingOf(r.name, leaves, q)
	d.empty = emptyLists(raw)
	d.limits()
	d.plugsIn()
	if r.tool.shell || r.tool.code {
		return
	}
	if d.any(queryWords) {
		d.mutations(leaves)
	}
	d.premises()
	d.exports() // which many tools call reading
	d.changes()
}

// dealsBy judges a request that a command or a program makes as that of a tool.
func (r *reading) dealsBy(q request) {
	if r.spend(costWord * len(q.body)) {
		r.dealingOf("", q.body, q).changes()
	}
}

// changes judges what a call changes of what is in use.
func (d *dealing) changes() {
	if !d.acts || d.trial || !d.spend(costWord*(len(d.leaves)+len(d.words))) {
		return
	}
	d.rights()
	d.forwards()
	d.opens()
	d.mailsOut()
	d.losesMany()
	d.forgets()
	d.money()
	d.renames()
	d.silences()
}

// queryWords name tools that take queries in GraphQL.
var queryWords = words("graphql gql")

// doingKeys are the members whose value says what is done, as the name of a tool would.
var doingKeys = words("method call op operation action verb function fn endpoint path resource service subcommand command cmd args argv domain api url route type event cmdlet procedure rpc methodname functionname operationname")

// maxSameKey bounds the members of one name that are compared: a table that is imported has
// thousands.
const maxSameKey = 64

func (r *reading) dealingOf(name string, leaves []leaf, q request) *dealing {
	d := &dealing{reading: r, has: make(map[string]bool), acts: r.effect != kernel.ToolReads, trial: r.trial}
	d.says(name)
	alike := make(map[string]int)
	for _, l := range leaves {
		if alike[l.key]++; alike[l.key] > maxSameKey {
			continue
		}
		if len(l.value) > maxValue {
			if l.text {
				d.long = append(d.long, l)
			}
			continue
		}
		d.leaves = append(d.leaves, l)
		if l.text && doingKeys[l.key] && !strings.ContainsAny(l.value, " \n") {
			d.says(askedPlace(l.value))
		}
	}
	if q.address != "" {
		d.acts = q.method != "GET" && q.method != "HEAD"
		host, place := cutAddress(q.address[:min(len(q.address), maxValue)])
		d.says(place)
		d.hosts = nameWords(host)
		d.trial = d.trial || ownHost.MatchString(host) || trialPlace.MatchString(place) || trialPlace.MatchString(strings.Split(host, ".")[0])
	}
	return d
}

// says notes the words of a name.
func (d *dealing) says(name string) {
	words := nameWords(name)
	d.words, d.told = append(d.words, words...), append(d.told, strings.Join(words, " "))
	for _, w := range words {
		d.has[w] = true
	}
}

// askedPlace is what an address asks for, without its host and its query.
func askedPlace(text string) string {
	if strings.Contains(text, "://") {
		_, text = cutAddress(text)
	}
	place, _, _ := strings.Cut(text, "?")
	return place
}

// any reports whether one of the words is in a set. A service is known by its host as well.
func (d *dealing) any(set map[string]bool) bool { return oneOf(d.words, set) || oneOf(d.hosts, set) }

func oneOf(words []string, set map[string]bool) bool {
	return slices.ContainsFunc(words, func(w string) bool { return set[w] })
}

// meant reports whether the user's own words name one of these: what is said so is the user's.
// A word is looked up as a word, and an address as what it leads to.
func (d *dealing) meant(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		if strings.ContainsAny(n, "@./:") {
			return d.request.named(n)
		}
		return d.asked && n != "" && d.request.word(strings.ToLower(n))
	})
}

// meantAll reports whether the user speaks of all there are of something.
func (d *dealing) meantAll() bool { return d.meant(allWords...) }

// allWords are what people say for all there are, in the languages of offices.
var allWords = strings.Fields("all every everything everyone everybody each entire whole alle allen alles jeder jede jeden sämtliche gesamte ganze tous toutes tout chaque todos todas todo cada tutti tutte tutto ogni alla alle allemaal wszystkie wszystkich")

// everyOne is what a member says that means all there are.
var everyOne = regex.New(`^(?i:all|any|every(?:one|body|thing)?|\*|\*\.\*|\*:\*|%|\{\}|true|1 ?= ?1|/|\.\*|group\.all\w*|all[-_ ][\w -]+)$|\{\{\s*range\(|\brange\(\d`)

// pickKeys are the members that pick the things that a call is about.
var pickKeys = regex.New(`^(?:\w*ids?|uuids?|guids?|keys?|names?|emails?|filter\w*|query|q|where|selectors?|selection|criteria|condition\w*|items?|records?|rows?|ranges?|cells?|search\w*|list|scope|targets?|object\w*|entit\w*|members?|accounts?|users?|customers?|orders?|payments|recipients|charges|monitors?|loopover|foreach|applyto|all)$`)

// picks reports whether a member picks the things that a call is about, and everything whether
// it picks all there are.
func (l leaf) picks() bool { return l.above.filter || pickKeys.MatchString(l.key) }

func (l leaf) everything() bool {
	return l.picks() && (everyOne.MatchString(strings.TrimSpace(l.value)) || l.text && everyMail.MatchString(l.value))
}

// everyMail is a search in a mailbox that finds all of it.
var everyMail = regex.New(`(?i)^\s*(?:(?:in:(?:anywhere|all|mail|inbox|\*)|is:(?:any|all)|older_than:0\w?|newer_than:\d{2,}y|after:(?:19\d\d|200\d)\S*|before:20[3-9]\d\S*|larger:[01]\w?|size:[01]\w?|smaller:\d+[gG]\w?|from:\*|to:\*|subject:\*|received[<>]=\d{4}-\S+|\*|or|and)(?:\s+|$))+$`)

// isYes and isNo are the ways to switch something.
func isYes(value string) bool { return yesNo[strings.ToLower(value)] == 1 }
func isNo(value string) bool  { return yesNo[strings.ToLower(value)] == 2 }

var yesNo = map[string]int{
	"true": 1, "1": 1, "yes": 1, "on": 1, "enabled": 1, "always": 1,
	"false": 2, "0": 2, "no": 2, "off": 2, "none": 2, "never": 2, "disabled": 2,
}

// isNothing reports whether a member is there and says nothing.
func isNothing(value string) bool { return value == "" || value == "null" || value == "{}" }

// unheard reports whether a member says that nobody is told of what is done.
func (l leaf) unheard() bool {
	return silentKey.MatchString(l.key) && isYes(l.value) || noticeKey.MatchString(l.key) && isNo(l.value)
}

var (
	silentKey = regex.New(`^(?:suppress|skip|disable|mute|hide|no)(?:all)?(?:notifications?|notices?|emails?|alerts?|notify|invitations?)$|^(?:silent(?:ly)?|stealth|hidden|hidefromuser)$`)
	noticeKey = regex.New(`^(?:send|notify)(?:notifications?\w*|invitations?|vendor|employee|payee|customer|owner|user|email)?$|^(?:announce|notification|playannouncement|tone)$`)
)

// amountOf is a number in a member, or 0.
func amountOf(l leaf) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(l.value), "_", ""), 64)
	if err != nil {
		return 0
	}
	return n
}

// elsewhere reports whether an address leads out of the user's own network, to a host that the
// user has not named.
func (r *reading) elsewhere(text string) bool {
	a, ok := r.readAddress(text)
	return ok && a.Host != "" && !a.Internal && !a.Nearby && !a.Loopback && !r.asksFor(a.Host) && !ownNetwork.MatchString(a.Host)
}

// addressesOf are the addresses that a text names.
func addressesOf(text string) []string { return address.In(text, maxMatches) }

var (
	ownNetwork = regex.New(`(?:^|\.)(?:corp|intern|internal|intranet|lan|office)\.`)

	// privateMailbox is a mailbox that anybody can open, at a provider of them.
	privateMailbox = regex.New(`(?i)@(?:[\w-]+\.)*(?:gmail|googlemail|outlook|hotmail|live|yahoo|ymail|gmx|web|aol|icloud|proton(?:mail)?|pm|tutanota|tuta|mail|yandex|zoho|t-online|freenet|free-?mail|mailbox|posteo|hushmail|mailinator|guerrillamail|tempmail|orange|libero|qq|163)\.[a-z.]{2,12}$`)

	// delicate is what concerns persons, money or secrets, in the languages of offices.
	delicate = regex.New(`(?i)salar|payroll|gehalt|gehaelt|gehält|lohn|personal(?:akt|daten|file)|employee|mitarbeiter|patient|diagnos|medical|krank|befund|health|mandat|mandant|klient|clients?(?:[ _/.-]|$)|contract|vertrag|vertraeg|(?:^|[^a-z])(?:hr|kyc|id|ids|tax)(?:[^a-z]|$)|passport|ausweis|reisepass|steuer|bank|iban|konto|konten|account(?:s|ing)|invoice|rechnung|buchung|fibu|finan[cz]|student|schueler|schüler|noten|grades|zeugnis|complaint|beschwerde|legal|recht|confidential|vertraulich|geheim|secret|kunden|customer|geburt|birth|versicher|insur|audit|vorstand|board|strateg`)
)
