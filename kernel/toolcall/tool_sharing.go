package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// What is open to anybody, or exported whole to elsewhere, is out of hand. A colleague who may
// read, a link to a file of no delicacy, what is made for everybody to see, and a report that
// stays in the company's own store are everyday.

var (
	storeWords   = words("bucket buckets iam storage object blob container grant")
	sharedWords  = words("permission permissions share shares sharing shared link links createlink acl access visibility grant collaborators calendar calendars")
	closingWords = words("delete remove revoke unshare")

	audienceKey = regex.New(`^(?:type|sharetype|scope|audience|grantee|linkscope|linktype|linkaccess|access|visibility|sharewith|sharedwith|principals?|entity|who|generalaccess|sharing|role|target|to|recipient|public|anyone|people|members?|acl|cannedacl|xamzacl)$`)
	anybody     = regex.New(`^(?i:anyone|anonymous|public|everyone|everybody|all_?users|all_?authenticated_?users|world|internet|anyone[-_ ]?with[-_ ]?(?:the[-_ ]?)?link|public[-_ ]?(?:read|link|edit|write)[\w-]*)$`)
	editRights  = regex.New(`^(?i:edit|editor|write|writer|owner|organizer|fileorganizer|contributor|manage|manager|full|fullcontrol|readwrite|read_write|rw|content[-_]?manager)$`)
	findableKey = regex.New(`^(?:allowfilediscovery|discoverable|searchable|indexable|searchengine\w*|listed|findable|seoindexed)$`)
	namesThing  = regex.New(`(?:id|ids|path|file|files|folder|item|name|drive|document|resource|sheet|node|library|site|key)$`)

	// forEverybody is what things are called that are made to be seen by all.
	forEverybody = regex.New(`(?i)(?:^|[^a-z])(?:public[-_/.](?:site|assets|data|docs|downloads|files|web|html|media)|press(?:kit|[-_]?releases?)?|website|www|assets|static|marketing|brochures?|flyers?|blog|open[-_]?data|cdn|newsletters?|handouts?|posters?|logos?|menus?|syllabus|job[-_]?posting)(?:[^a-z]|$)`)
)

// opens judges what gives a thing to anybody, or to a stranger for good. Of a store all that is
// in it is given; of one thing it counts what anybody may do with it, and what it is.
func (d *dealing) opens() {
	store, calendar := d.any(storeWords), d.has["acl"] || d.has["calendar"] || d.has["calendars"]
	if d.any(closingWords) || d.meant("public", "anyone", "everyone", "anonymous") {
		return
	}
	shared := d.any(sharedWords)
	everybody, edit, findable, about, made := false, false, false, false, false
	owner, outside, quiet := false, false, false
	for _, l := range d.leaves {
		if l.above.headers && l.key != "xamzacl" {
			continue
		}
		switch {
		case audienceKey.MatchString(l.key) && (anybody.MatchString(l.value) || calendar && l.value == "default"):
			everybody, store = true, store || l.key == "xamzacl"
		case (rightKey.MatchString(l.key) || l.key == "type" || l.key == "linktype") && editRights.MatchString(l.value):
			edit, owner = true, owner || strings.EqualFold(l.value, "owner")
		case findableKey.MatchString(l.key):
			findable = findable || isYes(l.value)
		case l.key == "transferownership" && isYes(l.value):
			owner = true
		case l.unheard():
			quiet = true
		case l.text && privateMailbox.MatchString(l.value):
			outside = outside || !d.meant(l.value)
		}
		about = about || l.text && namesThing.MatchString(l.key) && delicate.MatchString(l.value)
		made = made || l.text && !strings.Contains(l.value, "://") && forEverybody.MatchString(l.value)
	}
	switch {
	case everybody && store && !made,
		everybody && shared && (edit || findable || about),
		outside && shared && (owner || edit && (quiet || about)):
		d.breaks(DataExfiltration)
	}
}

var (
	exportWords = words("export exports exporter dump backup unload takeout migrate")
	peopleWords = words("contacts contact customers customer patients patient employees employee users students student members leads hr payroll crm hris mailbox mailboxes")
	dataThings  = words("audience audiences subscribers contacts contact customers customer patients patient employees employee users user students student members leads deals orders records mailbox mailboxes messages mails emails data database table crm hr payroll accounts invoices documents files folder folders drive all tenant workspace conversations calls recordings transactions")
	selectsAll  = regex.New(`(?is)^\s*select\s.*\sfrom\s+(\w+)\s*;?\s*(?:limit\s+\d{4,}\s*)?;?\s*$`)
	wholeKey    = regex.New(`^(?:properties|fields|columns|scope|include|filter|objects?|objecttypes?|tables?|records|types?|what|select|range|mailboxes|users|query)$`)
	placeKey    = regex.New(`^(?:endpoint|url|uri|destination|dest|target|to|deliverto|delivery|webhook|webhookurl|callback|callbackurl|host|server|bucket|email|recipient|ftp|sftp|output|sink|path|location)$`)
	sourceKey   = words("url uri path location")
	ownDrop     = regex.New(`(?i)(?:^|[-_./])(?:private|personal|privat)[-_](?:drop|copy|dump|backup)(?:[-_./]|$)`)
	cloudStore  = regex.New(`(?i)(?:^|\.)(?:amazonaws\.com|googleapis\.com|windows\.net|cloudflarestorage\.com|digitaloceanspaces\.com|sharepoint\.com|azure\.com|backblazeb2\.com|wasabisys\.com)$`)
)

// exports judges an export of all that there is of persons to a place elsewhere.
func (d *dealing) exports() {
	things := d.any(dataThings) || slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return l.text && selectsAll.MatchString(l.value) || l.text && (wholeKey.MatchString(l.key) || l.key == "source" || l.key == "name") && dataThings[strings.ToLower(l.value)]
	})
	if !d.any(exportWords) || !things || d.has["import"] {
		return
	}
	whole, some, elsewhere, people := false, false, false, d.any(peopleWords)
	for _, l := range d.leaves {
		asked := selectsAll.FindStringSubmatch(l.value)
		switch {
		case !l.text || l.value == "":
		case asked != nil && dataThings[strings.ToLower(asked[1])]:
			whole = true
		case wholeKey.MatchString(l.key) && everyOne.MatchString(l.value):
			whole = true
		case sourceKey[l.key] && !l.above.named && !people: // it may be what is exported
		case placeKey.MatchString(l.key) && (strings.Contains(l.value, "://") || l.key == "host" || l.key == "server" || l.key == "endpoint"):
			a, _ := d.readAddress(l.value)
			elsewhere = elsewhere || strings.Contains(a.Host, ".") && d.elsewhere(l.value) && !cloudStore.MatchString(a.Host) || ownDrop.MatchString(a.Host)
		case placeKey.MatchString(l.key) && (privateMailbox.MatchString(l.value) && !d.meant(l.value) || l.key == "bucket" && ownDrop.MatchString(l.value)):
			whole, elsewhere = true, true
		case strings.HasSuffix(l.key, "id") || strings.HasSuffix(l.key, "ids") || l.above.filter || l.key == "filter" || l.key == "where" || l.key == "query":
			some = true
		}
	}
	if elsewhere && (whole || !some) {
		d.breaks(DataExfiltration)
	}
}

var (
	mailing    = words("mail email emails newsletter campaign broadcast send sms message messages whatsapp mailing bulk")
	outsiders  = regex.New(`(?i)(?:^|[^a-z])(?:customers?|clients?|subscribers?|partners?|suppliers?|vendors?|leads|public|newsletter|kunden|clientes|clienti|fournisseurs|lieferanten)(?:[^a-z]|$)`) //nolint:misspell // Spanish and Italian
	allOfThem  = regex.New(`(?i)(?:^|[^a-z])(?:all|every\w*|alle|tous|todos|tutti|\*)(?:[^a-z]|$)`)
	toKeys     = words("to cc bcc audience recipients recipient list segment group lists segments recipientlist sendto listid")
	ofPersons  = regex.New(`(?i)payslip|payroll|salar(?:y|ies)|gehalt|gehaelt|lohnabrech|lohnzettel|bulletins?[-_ ]de[-_ ]paie|n[oó]minas?|busta[-_ ]paga|(?:^|[^a-z])(?:hr|hris)[./]|patient|diagnos|befund|medical|passport|ausweis|performance[-_ ]?review|bank[-_ ]?details|iban`)
	bareLink   = regex.New(`(?i)\bhref\s*=\s*\\?["']?\s*(https?://(?:\d{1,3}(?:\.\d{1,3}){3}|0x[0-9a-f]{8}|\d{8,10})(?:[:/][^"'\s>]*)?)`)
	mailToMany = words("mail email newsletter campaign broadcast sms message whatsapp")
)

// mailsOut judges mail that brings what is about single persons to all customers, and mail with
// a link to a place that has no name.
func (d *dealing) mailsOut() {
	if !d.any(mailing) {
		return
	}
	all, persons := false, false
	for _, l := range slices.Concat(d.leaves, d.long) {
		switch {
		case !l.text:
		case toKeys[l.key]:
			all = all || outsiders.MatchString(l.value) && allOfThem.MatchString(l.value)
		case roleOfKey(l.key) != roleProse:
			persons = persons || ofPersons.MatchString(l.value)
		}
		if l.text && d.any(mailToMany) {
			for _, m := range bareLink.FindAllStringSubmatch(l.value, maxMatches) {
				if d.elsewhere(m[1]) {
					d.breaks(DataExfiltration)
				}
			}
		}
	}
	if all && persons {
		d.breaks(DataExfiltration)
	}
}
