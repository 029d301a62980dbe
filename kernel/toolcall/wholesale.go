package toolcall

import (
	"slices"
	"strings"
)

// Business tools delete what others work with by verbs of their own: a calendar is cleared,
// tickets are destroyed in bulk, a resource is deleted by a condition with all that hangs on
// it. One row by its id, one event, a range of cells is anybody's daily work.

var (
	takingVerbs   = words("delete destroy purge wipe erase truncate expunge remove drop del")
	emptyingVerbs = words("clear empty purge wipe erase truncate reset deleteall removeall nuke")
	manyWords     = words("many all bulk batch mass multiple everything every")

	// gatheredThings hold what many people have put there.
	gatheredThings = words("calendar calendars mailbox mailboxes inbox audience audiences drive drives catalog catalogue base bases spreadsheet spreadsheets workbook workbooks ledger register course courses classroom cohort store shop archive archives addressbook crm tracker wiki database databases customers contacts patients orders products tickets students employees members leads invoices")

	// recordNames are what a business keeps one by one.
	recordNames = words("customers contacts patients patient orders products tickets invoices employees students members subscribers leads deals accounts records events bookings appointments appointment observations observation encounters encounter shipments payments transactions users persons people companies articles posts pages documents files images studies series courses grades cases matters claims policies claim contracts reviews messages conversations threads entries items rows cards issues tasks objects assets devices locations")

	// trivialThings is what nobody misses.
	trivialThings = words("cache caches cached cookie cookies draft drafts notification notifications completed done spam junk filter filters selection formatting format style styles temp tmp test tests sandbox staging demo breakpoint breakpoints highlight highlights cart basket session sessions undo clipboard screen console output form forms field fields input inputs terminal search alert alerts badge badges label labels tag tags reaction reactions validation validations conditional rule rules template templates preview previews dismissed read expired recent trash bin recyclebin history error errors warning warnings memory context")

	// hardMark are the members that leave no way back, and silentMark those that leave no trace.
	hardMark   = newExpression(`permanent|hard(?:delete|remove)|^hard$|purge|expunge|skip(?:the)?(?:trash|recyclebin|bin)|bypass(?:trash|recyclebin)|norecover|unrecoverable|irreversible|(?:delete|remove|drop|purge|empty)\w*(?:revision|version|history|backup|recyclebin|trash|archive)|cascade|^forcedelete`)
	silentMark = newExpression(`(?:skip|no|disable|without|suppress|bypass|omit)(?:the)?(?:history|audit\w*|log(?:ging|s)?|journal|versions?|versioning|revisions?|trail|tracking|changelog)$`)

	// partKeys are the members that pick a part of a container.
	partKeys = newExpression(`^(?:ranges?|cells?|columns?|rows?|filter\w*|query|q|where|criteria|\w+ids|events?|eventid|items?|from|to|since|until|before|after|start\w*|end\w*|time(?:min|max)|older\w*|labels?|status|dates?|day|week|month|period|folder|category|section|field\w*|user|author|sender)$`)

	// pickKeys are the members whose value may mean every thing there is, and kindKeys those
	// that only say of which kind the things are.
	pickKeys = newExpression(`^(?:\w*ids?|uuids?|guids?|keys?|names?|emails?|filter\w*|query|q|where|selector|criteria|condition\w*|items?|records?|rows?|ranges?|cells?|search\w*|list|scope|target|object\w*|entit\w*|members?|accounts?|users?)$`)
	kindKeys = newExpression(`^(?:object|objecttype|objects|type|table|entity|entitytype|resource|list|collection|mode|format|reason|comment|note|description|message|source|module|kind|confirm\w*|account|portal|tenant|workspace|site|store|shop|database|db|set|value|values)$|token|key$`)
	idKeys   = newExpression(`(?:ids?|uuids?|emails?|numbers?)$`)
)

// inBulk judges what a call takes away of what many have put there.
func (r *reading) inBulk(d dealing) {
	taking, emptying, many := d.any(takingVerbs), d.any(emptyingVerbs), d.any(manyWords)
	changes := d.has["update"] || d.has["patch"] || d.has["overwrite"] || d.has["replace"]
	if !taking && !emptying && (!changes || !many) {
		return
	}
	every, some, one, hard, silent := d.scope()
	valued := d.any(recordNames) || d.ofKind(recordNames)
	switch {
	case d.any(trivialThings):
	case silent && many:
		r.breaks(DestructiveOperation)
	case !taking && !emptying:
	case many && (valued || d.any(gatheredThings)) && (every || !some || d.has["all"] && !d.narrows() || hard && !d.few()):
		r.breaks(DestructiveOperation)
	case every && !one && valued:
		r.breaks(DestructiveOperation)
	case emptying && d.clears() && !d.narrows():
		r.breaks(DestructiveOperation)
	case d.wholeSheets(hard):
		r.breaks(DestructiveOperation)
	}
	if taking {
		r.deletesByCondition(d, hard)
	}
}

// scope tells which of the things a call is about: every one of them, some that it picks, one
// by its number; and whether it says that nothing is kept and that nothing is recorded.
func (d dealing) scope() (every, some, one, hard, silent bool) {
	for _, l := range d.leaves {
		picks := pickKeys.MatchString(l.key) || l.above.filter
		switch {
		case methodKeys[l.key], l.above.headers:
		case hardMark.MatchString(l.key):
			hard = hard || isYes(l.value) || strings.EqualFold(l.value, "delete")
		case silentMark.MatchString(l.key):
			silent = silent || isYes(l.value)
		case picks && everyOne.MatchString(strings.TrimSpace(l.value)):
			every = true
		case l.value == "", l.value == "{}", doingKeys[l.key]:
		case l.above.filter, !kindKeys.MatchString(l.key) && (l.text || picks):
			some = true
			one = one || idKeys.MatchString(l.key)
		}
		if l.text && doingKeys[l.key] && strings.Contains(l.value, "/") {
			_, query, asks := strings.Cut(l.value, "?")
			some = some || asks && query != "" || oneThing.MatchString(lastSegment(l.value))
			one = one || oneThing.MatchString(lastSegment(l.value))
		}
	}
	return every, some, one, hard, silent
}

// ofKind reports whether a member that says of which kind the things are names one of a set.
func (d dealing) ofKind(set map[string]bool) bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		kind := strings.ToLower(l.value)
		return l.text && kindMembers[l.key] && (set[kind] || set[kind+"s"])
	})
}

var kindMembers = words("object objecttype objects type table entity entitytype resource module kind")

// few reports whether a call names its things one by one, and not more of them than somebody
// has looked at.
func (d dealing) few() bool {
	named := 0
	for _, l := range d.leaves {
		if pickKeys.MatchString(l.key) {
			if everyOne.MatchString(strings.TrimSpace(l.value)) {
				return false
			}
			named += 1 + strings.Count(l.value, ",")
		}
	}
	return named > 0 && named <= 50
}

// clears reports whether the verb of a call stands beside a container.
func (d dealing) clears() bool {
	for i, w := range d.words {
		if emptyingVerbs[w] && (i > 0 && gatheredThings[d.words[i-1]] || i+1 < len(d.words) && gatheredThings[d.words[i+1]]) {
			return true
		}
	}
	return false
}

// narrows reports whether some member picks a part of a container, or says that it was made
// to be lost.
func (d dealing) narrows() bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return partKeys.MatchString(l.key) && l.value != "" && l.value != "{}" && !everyOne.MatchString(l.value) || l.text && isEphemeral(mailboxName(l.value))
	})
}

// mailboxName is a value without the domain of a mailbox.
func mailboxName(value string) string {
	name, _, _ := strings.Cut(value, "@")
	return name
}

// oneThing is how one thing among others is called.
var oneThing = newExpression(`^(?:[\w.~-]*\d[\w.~-]*|[\w.+-]+@[\w.-]+|[A-Za-z0-9_-]{16,})$`)

func lastSegment(place string) string {
	place, _, _ = strings.Cut(place, "?")
	place = strings.TrimRight(place, "/")
	return place[strings.LastIndexByte(place, '/')+1:]
}

// wholeSheets reports whether the ranges that a call clears are whole sheets: one that is
// cleared is filled again, and several are a book.
func (d dealing) wholeSheets(hard bool) bool {
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
var openRange = newExpression(`^(?:'[^']+'|[^!:]+)!\$?([A-Za-z]{1,3})\$?1?:\$?([A-Za-z]{1,3})$`)

// deletesByCondition judges the requests of a call that delete by a condition, or a container.
func (r *reading) deletesByCondition(d dealing, hard bool) {
	if !slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return l.text && strings.EqualFold(l.value, "DELETE") && (methodKeys[l.key] || l.key == "op" || l.key == "operation")
	}) {
		return
	}
	for _, l := range d.leaves {
		if !l.text || roleOfKey(l.key) != roleURL && l.key != "path" && l.key != "resource" && l.key != "route" {
			continue
		}
		host, place := cutAddress(l.value)
		_, query, asks := strings.Cut(l.value, "?")
		place, _, _ = strings.Cut(place, "?")
		last := lastSegment(place)
		switch {
		case ownHost.MatchString(host), place == "", slices.ContainsFunc(nameWords(place), func(w string) bool { return trivialThings[w] }):
		case !oneThing.MatchString(last) && (recordNames[strings.ToLower(last)] || last != strings.ToLower(last)) && lostWith.MatchString(query):
			r.breaks(DestructiveOperation)
		case !asks && recordNames[strings.ToLower(last)] && len(nameWords(last)) == 1 && !d.bodyPicks():
			r.breaks(DestructiveOperation)
		case audience.MatchString(place) && (hard || audienceTool.MatchString(strings.ToLower(r.name)+" "+host)):
			r.breaks(DestructiveOperation)
		}
	}
}

// bodyPicks reports whether some member beside the address says what is deleted.
func (d dealing) bodyPicks() bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return pickKeys.MatchString(l.key) && l.value != "" && l.value != "{}" && !everyOne.MatchString(l.value)
	})
}

var (
	lostWith     = newExpression(`(?i)(?:^|&)_?(?:cascade|expunge|hard(?:delete)?|permanent\w*|purge|force|skip_?trash|delete_?all|all|everything|recursive)=(?:delete|true|1|yes|all)\b`)
	audience     = newExpression(`(?i)/(?:lists|audiences|segments|calendars|mailboxes|bases|catalogs|courses|drives|spaces|boards)/[^/]+$`)
	audienceTool = newExpression(`table|sheet|mail|campaign|newsletter|crm|marketing|subscri|audience|calendar|base|catalog|learn|drive`)
)

// deletingLoop finds the commands that delete, one by one, what a server lists.
var (
	loopOverList = newExpression(`(?s)\bfor\s+(\w+)\s+in\s+(?:\$\(|\x60)([^\n;]*?(?:curl|http|wget|xh)\b[^\n;]*?)(?:\)|\x60)\s*[;\n]+\s*do\b(.*?)\bdone\b`)
	pipedList    = newExpression(`(?s)\b((?:curl|http|wget|xh)\b[^\n;]*?)\|\s*(?:while\s+(?:IFS=\S*\s+)?read\s+(?:-\w+\s+)*\w+\s*[;\n]+\s*do\b|(?:xargs|parallel)\b)(.*)`)
	deletesEach  = newExpression(`(?:-X\s*|--request[= ]|\s)DELETE\b[^\n;]*(?:\$\{?\w+|\{\})`)
	picksOf      = newExpression(`select\(|\bgrep\b|\bawk\b|\bhead\b|\btail\b|\bsed -n|[?&](?:[a-z_]*(?:status|state|filter|query|q|before|older|tag|label|name|type|search)[a-z_]*)=`)
)

func (r *reading) deletingLoop(text string) {
	judge := func(list, body string) {
		if !deletesEach.MatchString(body) || picksOf.MatchString(list) {
			return
		}
		for _, address := range addressesOf(body + " " + list) {
			host, place := cutAddress(address)
			if !ownHost.MatchString(host) && !trialPlace.MatchString(strings.Split(host, ".")[0]) && !trialPlace.MatchString(place) {
				r.breaks(DestructiveOperation)
			}
		}
	}
	for _, m := range loopOverList.FindAllStringSubmatch(text, maxRedirects) {
		judge(m[2], m[3])
	}
	for _, m := range pipedList.FindAllStringSubmatch(text, maxRedirects) {
		judge(m[1], m[2])
	}
}

// wipesOrg judges a program of a customer platform that deletes what a query without a
// condition finds, and what would bring it back.
func (r *reading) wipesOrg(text string) {
	if testClass.MatchString(text) {
		return
	}
	if deletesQueried.MatchString(text) || emptiesBin.MatchString(text) && deletesRecords.MatchString(text) {
		r.breaks(DestructiveOperation)
	}
}

var (
	testClass      = newExpression(`(?i)@isTest\b`)
	emptiesBin     = newExpression(`(?i)\bemptyRecycleBin\s*\(`)
	deletesRecords = newExpression(`(?i)\bdelete\s+[\[\w]|\bDatabase\.delete\s*\(|\bdeleteImmediate\s*\(`)
	deletesQueried = newExpression(`(?i)\b(?:delete\s*|Database\.delete\s*\(\s*)\[\s*SELECT\s+[\w, ]+\s+FROM\s+\w+\s*(?:LIMIT\s+\d{3,}\s*)?\]`)
)
