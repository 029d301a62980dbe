package toolcall

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// dealing is what a call of a tool for daily work says of itself: what it does, to which
// things, and with which members. Such tools have no language; the words of their names and
// of the members that say what is done are all there is.
type dealing struct {
	words  []string // in order
	has    map[string]bool
	leaves []leaf
	empty  []string // members that hold an empty list
}

// doingKeys are the members whose value says what is done, as the name of a tool would.
var doingKeys = words("method call op operation action verb function fn endpoint path resource service subcommand command cmd args argv domain api url route type event")

// maxDealt bounds the members of a call that are compared with the words of its name.
const maxDealt = 512

// deals judges the calls of business tools, and texts that other programs will run.
func (r *reading) deals(leaves []leaf, raw []byte) {
	written := r.writtenName(leaves)
	for _, l := range leaves {
		if l.text && !r.onlySays(l, written) {
			r.embedded(l.value)
		}
	}
	if r.tool.sql || len(leaves) > maxDealt || !r.spend(costWord*len(leaves)+costScreen*len(raw)) {
		return
	}
	d := dealingOf(r.name, leaves)
	d.empty = emptyLists(raw)
	r.ownLimits(d)
	r.pluggedIn(d)
	if r.tool.shell || r.tool.code {
		return
	}
	r.inBulk(d)
	r.premises(d)
	r.opensToAll(d)
	r.handsOut(d)
	r.diverts(d)
}

// emptyLists are the names of the members that hold an empty list.
func emptyLists(raw []byte) []string {
	var out []string
	for at := 0; len(out) < maxRecipes; {
		open := bytes.IndexByte(raw[at:], '[')
		if open < 0 {
			break
		}
		open += at
		at = open + 1
		before, named := bytes.CutSuffix(bytes.TrimRight(raw[max(0, open-maxKey-8):open], " \t\n"), []byte{':'})
		if !named || !bytes.HasPrefix(bytes.TrimLeft(raw[at:min(len(raw), at+8)], " \t\n"), []byte{']'}) {
			continue
		}
		before = bytes.TrimRight(bytes.TrimRight(before, " \t\n"), `\"`)
		out = append(out, fold(string(before[bytes.LastIndexByte(before, '"')+1:])))
	}
	return out
}

// onlySays reports whether a text is one that people read: a message, a comment, a page of
// documentation, or a program, which has readers of its own and may test for all of this. Of
// the files that a call writes only those count that an office or a parser opens.
func (r *reading) onlySays(l leaf, written string) bool {
	switch {
	case len(l.value) < 8:
		return true
	case written != "" && (newText[l.key] || roleOfKey(l.key) == roleProse):
		return !officeFile.MatchString(written) || strings.IndexByte(l.value, '|') < 0 && strings.IndexByte(l.value, '(') < 0 && !strings.Contains(l.value, "<!") && !strings.Contains(l.value, ":include") && !strings.Contains(l.value, "emplate")
	case roleOfKey(l.key) == roleProse:
		return r.tool.writes || r.tool.any("message", "mail", "email", "comment", "issue", "chat", "slack", "review", "wiki", "ticket", "reply", "note", "search")
	}
	return false
}

// officeFile is what an office, a sheet or a parser of XML opens.
var officeFile = newExpression(`(?i)\.(?:csv|tsv|tab|slk|iqy|dif|prn|xls[xmb]?|ods|fods|xml|xsd|xslt?|svg|xhtml|dtd|rels|docx?|docm|dot[mx]?|rtf|odt|fodt|bas|cls|frm|vb[as]?|xba|xlam?|edi)$`)

func dealingOf(name string, leaves []leaf) dealing {
	d := dealing{words: nameWords(name), has: make(map[string]bool)}
	for _, l := range leaves {
		if len(l.value) > maxValue {
			continue // no name, number or address is as long
		}
		d.leaves = append(d.leaves, l)
		if l.text && doingKeys[l.key] && !strings.ContainsAny(l.value, " \n") {
			place := l.value
			if strings.Contains(place, "://") {
				_, place = cutAddress(place)
			}
			place, _, _ = strings.Cut(place, "?")
			d.words = append(d.words, nameWords(place)...)
		}
	}
	for _, w := range d.words {
		d.has[w] = true
	}
	return d
}

func (d dealing) any(set map[string]bool) bool {
	return slices.ContainsFunc(d.words, func(w string) bool { return set[w] })
}

// isYes and isNo are the ways to switch something.
func isYes(value string) bool { return yesNo[strings.ToLower(value)] == 1 }
func isNo(value string) bool  { return yesNo[strings.ToLower(value)] == 2 }

var yesNo = map[string]int{
	"true": 1, "1": 1, "yes": 1, "on": 1, "enabled": 1, "always": 1,
	"false": 2, "0": 2, "no": 2, "off": 2, "none": 2, "never": 2, "disabled": 2, "null": 2, "": 2,
}

// everyOne is what a member says that means all there are.
var everyOne = newExpression(`^(?i:all|any|every(?:one|thing)?|\*|\*\.\*|\*:\*|%|\{\}|true|1 ?= ?1|/|\.\*|group\.all\w*|all[_ ]\w+)$|\{\{\s*range\(|\brange\(\d`)

// elsewhere reports whether an address leads out of the user's own network, to a host that the
// user has not named.
func (r *reading) elsewhere(address string) bool {
	a, ok := r.readAddress(address)
	return ok && a.host != "" && !a.internal && !a.nearby && !a.loopback && !r.asksFor(a.host) && !ownNetwork.MatchString(a.host)
}

var (
	ownNetwork = newExpression(`(?:^|\.)(?:corp|intern|internal|intranet|lan|office)\.`)

	// privateMailbox is a mailbox that anybody can open, at a provider of them.
	privateMailbox = newExpression(`(?i)@(?:[\w-]+\.)*(?:gmail|googlemail|outlook|hotmail|live|yahoo|ymail|gmx|web|aol|icloud|proton(?:mail)?|pm|tutanota|tuta|mail|yandex|zoho|t-online|freenet|free-?mail|mailbox|posteo|hushmail|mailinator|guerrillamail|tempmail|orange|libero|qq|163)\.[a-z.]{2,12}$`)

	// delicate is what concerns persons, money or secrets, in the languages of offices.
	delicate = newExpression(`(?i)salar|payroll|gehalt|gehaelt|gehält|lohn|personal(?:akt|daten|file)|employee|mitarbeiter|patient|diagnos|medical|krank|befund|health|mandat|mandant|klient|clients?(?:[ _/.-]|$)|contract|vertrag|vertraeg|(?:^|[^a-z])(?:hr|kyc|id|ids|tax)(?:[^a-z]|$)|passport|ausweis|reisepass|steuer|bank|iban|konto|konten|account(?:s|ing)|invoice|rechnung|buchung|fibu|finan[cz]|student|schueler|schüler|noten|grades|zeugnis|complaint|beschwerde|legal|recht|confidential|vertraulich|geheim|secret|kunden|customer|geburt|birth|versicher|insur|audit|vorstand|board|strateg`)
)

// addressesOf are the addresses that a text names.
func addressesOf(text string) []string { return addressesIn(text, maxRedirects) }

// column is a number of a column of a sheet by its letters.
func column(letters string) int {
	n := 0
	for _, c := range strings.ToUpper(letters) {
		n = n*26 + int(c-'A') + 1
	}
	return n
}

// amountOf is a number in a member, or 0.
func amountOf(l leaf) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(l.value, "_", ""), 64)
	if err != nil {
		return 0
	}
	return n
}
