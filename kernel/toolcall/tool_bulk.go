package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Business tools delete what others work with by verbs of their own: a calendar is cleared,
// tickets are destroyed in bulk, all members are deactivated, a resource is deleted by a
// condition with all that hangs on it. One row by its id, one event, a range of cells is
// anybody's daily work, and so is everything of a kind that the user speaks of.

var (
	takingVerbs   = words("delete destroy purge wipe erase truncate expunge remove drop del")
	emptyingVerbs = words("clear empty purge wipe erase truncate reset deleteall removeall nuke")
	stoppingVerbs = words("terminate deactivate suspend disable revoke")
	manyWords     = words("many all bulk batch mass multiple everything every")

	// gatheredThings hold what many people have put there.
	gatheredThings = words("calendar calendars mailbox mailboxes inbox audience audiences drive drives catalog catalogue base bases spreadsheet spreadsheets workbook workbooks ledger register course courses classroom cohort store shop archive archives addressbook crm tracker wiki database databases customers contacts patients orders products tickets students employees members leads invoices project projects repo repos repository repositories bucket buckets table tables volumes snapshots backup backups instance instances server servers mail gmail messages emails ats hr hris candidates applicants workspace workspaces site sites channel channels vault vaults boards postfach postfächer kalender kunden patienten mitarbeiter rechnungen bestellungen clientes facturas pedidos contactos clients factures commandes clienti fatture ordini") //nolint:misspell // Spanish and Italian

	// recordNames are what a business keeps one by one.
	recordNames = words("customer customers contacts patients patient order orders products tickets invoice invoices employees students member members subscribers leads deals account accounts record records events bookings appointments appointment observation observations encounters encounter shipments payments transactions user users persons people companies articles posts pages document documents files images studies series courses grades cases matters claims policies claim contracts reviews messages conversations threads entries items rows cards issues tasks objects assets devices locations candidates applicants applications payslips subscriptions")

	// trivialThings is what nobody misses.
	trivialThings = words("cache caches cached cookie cookies draft drafts notification notifications completed done spam junk filter filters selection formatting format style styles temp tmp test tests sandbox staging demo breakpoint breakpoints highlight highlights cart basket session sessions undo clipboard screen console output form forms field fields input inputs terminal search alert alerts badge badges label labels tag tags reaction reactions validation validations conditional rule rules template templates preview previews dismissed read expired recent trash bin recyclebin history error errors warning warnings memory context")

	// hardMark are the members that leave no way back, and silentMark those that leave no trace.
	hardMark   = regex.New(`permanent|hard(?:delete|remove)|^hard$|purge|expunge|skip(?:the)?(?:trash|recyclebin|bin)|bypass(?:trash|recyclebin)|norecover|unrecoverable|irreversible|(?:delete|remove|drop|purge|empty)\w*(?:revision|version|history|backup|recyclebin|trash|archive)|cascade|^forcedelete`)
	silentMark = regex.New(`(?:skip|no|disable|without|suppress|bypass|omit)(?:the)?(?:history|audit\w*|log(?:ging|s)?|journal|versions?|versioning|revisions?|trail|tracking|changelog)$`)

	// goneKey and goneValue are how a change deletes.
	goneKey   = regex.New(`^(?:is)?(?:deleted|removed|purged|erased|destroyed)$`)
	goneValue = regex.New(`^(?i:deleted|removed|purged|erased|destroyed|gelöscht|supprimé|eliminado|eliminato)$`) //nolint:misspell // Spanish and Italian

	// partKeys are the members that pick a part of a container.
	partKeys = regex.New(`^(?:ranges?|cells?|columns?|rows?|filter\w*|query|q|where|criteria|\w+ids|events?|eventid|items?|from|to|since|until|before|after|start\w*|end\w*|time(?:min|max)|older\w*|labels?|status|dates?|day|week|month|period|folder|category|section|field\w*|user|author|sender)$`)

	// kindKeys are the members that only say of which kind the things are.
	kindKeys    = regex.New(`^(?:object|objecttype|objects|type|table|entity|entitytype|resource|list|collection|mode|format|reason|comment|note|description|message|source|module|kind|confirm\w*|account|portal|tenant|workspace|site|store|shop|database|db|set|value|values)$|token|key$`)
	kindMembers = words("object objecttype objects type table entity entitytype resource module kind")
	idKeys      = regex.New(`(?:ids?|uuids?|emails?|numbers?)$`)
)

// extent is how much of what there is a call is about.
type extent struct {
	every, some, one bool // every thing, some that it picks, one by its number
	gone             bool // a member says that they are deleted
	hard, silent     bool // it says that nothing is kept, and that nothing is recorded
}

// losesMany judges what a call takes away of what many have put there.
func (d *dealing) losesMany() {
	of := d.extent()
	if d.wipesFleet(of) {
		d.breaks(DestructiveOperation)
	}
	taking, emptying, stopping, many := d.any(takingVerbs) || of.gone, d.any(emptyingVerbs), d.any(stoppingVerbs), d.any(manyWords)
	changes := many && (d.has["update"] || d.has["patch"] || d.has["overwrite"] || d.has["replace"])
	if !taking && !emptying && !stopping && !changes || oneOf(d.words, trivialThings) || d.meantAll() {
		return
	}
	records, gathered := d.any(recordNames) || d.ofKind(recordNames), d.any(gatheredThings)
	all := of.every || (d.has["all"] || d.has["everything"]) && !d.narrows()
	switch {
	case of.silent && many, !changes && (records || gathered) && all && !of.one, of.every && of.hard && !of.one:
	case !taking && !emptying:
		return
	case many && (records || gathered) && (!of.some || of.hard && !d.few()):
	case emptying && d.clears() && !d.narrows():
	case d.wholeSheets(of.hard):
	case taking && d.deletesByCondition(of.hard):
	default:
		return
	}
	d.breaks(DestructiveOperation)
}

// wipesFleet reports whether a call brings all phones and computers of an organisation back to
// what they were when they were bought. One that is lost is wiped by its number.
func (d *dealing) wipesFleet(of extent) bool {
	if !d.any(wipingVerbs) || !d.any(fleetWords) || of.one && !of.every || d.meantAll() {
		return false
	}
	return of.every || slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return wholeFleet.MatchString(l.key) && isYes(l.value) || l.text && everyOne.MatchString(l.value) && !l.above.headers
	})
}

var (
	wipingVerbs = words("wipe erase retire factoryreset reset obliterate reimage")
	fleetWords  = words("device devices intune jamf mdm emm computer computers endpoint endpoints phone phones tablet tablets kandji mosyle airwatch autopilot managed")
	wholeFleet  = regex.New(`^(?:all|every)(?:computers|devices|users|mobiledevices|endpoints|members)?$`)
)

// extent tells how much of what there is a call is about.
func (d *dealing) extent() (of extent) {
	for _, l := range d.leaves {
		switch {
		case methodKeys[l.key], l.above.headers:
		case goneKey.MatchString(l.key) && isYes(l.value), l.key == "status" && goneValue.MatchString(l.value):
			of.gone = true
		case hardMark.MatchString(l.key):
			of.hard = of.hard || isYes(l.value) || strings.EqualFold(l.value, "delete")
		case silentMark.MatchString(l.key):
			of.silent = of.silent || isYes(l.value)
		case l.everything():
			of.every = true
		case isNothing(l.value), doingKeys[l.key]:
		case l.above.filter, !kindKeys.MatchString(l.key) && (l.text || l.picks()):
			of.some = true
			of.one = of.one || idKeys.MatchString(l.key)
		}
		if l.text && doingKeys[l.key] && strings.Contains(l.value, "/") {
			_, query, asks := strings.Cut(l.value, "?")
			one := oneThing.MatchString(lastSegment(l.value))
			of.some = of.some || asks && query != "" || one
			of.one = of.one || one
		}
	}
	return of
}

// ofKind reports whether a member that says of which kind the things are names one of a set.
func (d *dealing) ofKind(set map[string]bool) bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		kind := strings.ToLower(l.value)
		return l.text && kindMembers[l.key] && (set[kind] || set[kind+"s"])
	})
}

// few reports whether a call names its things one by one, and not more of them than somebody
// has looked at.
func (d *dealing) few() bool {
	named := 0
	for _, l := range d.leaves {
		switch {
		case l.everything():
			return false
		case l.picks():
			named += 1 + strings.Count(l.value, ",")
		}
	}
	return named > 0 && named <= 50
}

// clears reports whether the verb of a call stands beside a container.
func (d *dealing) clears() bool {
	for i, w := range d.words {
		if emptyingVerbs[w] && (i > 0 && gatheredThings[d.words[i-1]] || i+1 < len(d.words) && gatheredThings[d.words[i+1]]) {
			return true
		}
	}
	return false
}

// narrows reports whether some member picks a part of a container, or says that it was made
// to be lost.
func (d *dealing) narrows() bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return partKeys.MatchString(l.key) && !isNothing(l.value) && !everyOne.MatchString(l.value) || l.text && isEphemeral(mailboxName(l.value))
	})
}

// mailboxName is a value without the domain of a mailbox.
func mailboxName(value string) string {
	name, _, _ := strings.Cut(value, "@")
	return name
}

// oneThing is how one thing among others is called.
var oneThing = regex.New(`^(?:[\w.~-]*\d[\w.~-]*|[\w.+-]+@[\w.-]+|[A-Za-z0-9_-]{16,})$`)

func lastSegment(place string) string {
	place, _, _ = strings.Cut(place, "?")
	place = strings.TrimRight(place, "/")
	return place[strings.LastIndexByte(place, '/')+1:]
}

// wholeSheets reports whether the ranges that a call clears are whole sheets: one that is
// cleared is filled again, and several are a book.
func (d *dealing) wholeSheets(hard bool) bool {
	if !d.has["clear"] && !d.has["delete"] {
		return false
	}
	whole := 0
	for _, l := range d.leaves {
		if l.key != "ranges" && l.key != "range" && l.key != "a1" && l.key != "sheets" {
			continue
		}
		m := openRange.FindStringSubmatch(strings.TrimSpace(l.value))
		wide := 0
		if m != nil {
			wide = column(m[2]) - column(m[1])
		}
		switch {
		case isEphemeral(l.value):
		case m == nil && (l.key != "sheets" || !d.has["clear"] || strings.Contains(l.value, "!")), m != nil && wide < 5:
		case hard, wide > 26:
			return true
		default:
			whole++
		}
	}
	return whole > 1
}

// openRange is a range of a sheet that begins with its first row and has no last one.
var openRange = regex.New(`^(?:'[^']+'|[^!:]+)!\$?([A-Za-z]{1,3})\$?1?:\$?([A-Za-z]{1,3})$`)

// column is a number of a column of a sheet by its letters.
func column(letters string) int {
	n := 0
	for _, c := range strings.ToUpper(letters) {
		n = n*26 + int(c-'A') + 1
	}
	return n
}

// deletesByCondition reports whether a call asks to delete by a condition, or a container.
func (d *dealing) deletesByCondition(hard bool) bool {
	if !slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return l.text && strings.EqualFold(l.value, "DELETE") && (methodKeys[l.key] || l.key == "op" || l.key == "operation")
	}) {
		return false
	}
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		if !l.text || roleOfKey(l.key) != roleURL && l.key != "path" && l.key != "resource" && l.key != "route" {
			return false
		}
		host, place := cutAddress(l.value)
		_, query, asks := strings.Cut(l.value, "?")
		place, _, _ = strings.Cut(place, "?")
		last := lastSegment(place)
		record := recordNames[strings.ToLower(last)]
		switch {
		case ownHost.MatchString(host), place == "", oneOf(nameWords(place), trivialThings):
			return false
		case !oneThing.MatchString(last) && (record || last != strings.ToLower(last)) && lostWith.MatchString(query):
			return true
		case !asks && record && len(nameWords(last)) == 1 && !d.bodyPicks():
			return true
		}
		return audience.MatchString(place) && (hard || audienceTool.MatchString(strings.ToLower(d.name)+" "+host))
	})
}

// bodyPicks reports whether some member beside the address says what is deleted.
func (d *dealing) bodyPicks() bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return pickKeys.MatchString(l.key) && !isNothing(l.value) && !everyOne.MatchString(l.value)
	})
}

var (
	lostWith     = regex.New(`(?i)(?:^|&)_?(?:cascade|expunge|hard(?:delete)?|permanent\w*|purge|force|skip_?trash|delete_?all|all|everything|recursive)=(?:delete|true|1|yes|all)\b`)
	audience     = regex.New(`(?i)/(?:lists|audiences|segments|calendars|mailboxes|bases|catalogs|courses|drives|spaces|boards)/[^/]+$`)
	audienceTool = regex.New(`table|sheet|mail|campaign|newsletter|crm|marketing|subscri|audience|calendar|base|catalog|learn|drive`)
)
