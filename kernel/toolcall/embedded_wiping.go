package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Commands and programs delete one by one what a server lists: a loop over a listing, or a
// query without a condition. A listing that is filtered before, this machine, what is called
// staging, and a class of tests are for daily work.

var (
	loopOverList = regex.New(`(?s)\bfor\s+(\w+)\s+in\s+(?:\$\(|\x60)([^\n;]*?(?:curl|http|wget|xh)\b[^\n;]*?)(?:\)|\x60)\s*[;\n]+\s*do\b(.*?)\bdone\b`)
	pipedList    = regex.New(`(?s)\b((?:curl|http|wget|xh)\b[^\n;]*?)\|\s*(?:while\s+(?:IFS=\S*\s+)?read\s+(?:-\w+\s+)*\w+\s*[;\n]+\s*do\b|(?:xargs|parallel)\b)(.*)`)
	deletesEach  = regex.New(`(?:-X\s*|--request[= ]|\s)DELETE\b[^\n;]*(?:\$\{?\w+|\{\})`)
	picksOf      = regex.New(`select\(|\bgrep\b|\bawk\b|\bhead\b|\btail\b|\bsed -n|[?&](?:[a-z_]*(?:status|state|filter|query|q|before|older|tag|label|name|type|search)[a-z_]*)=`)
)

// deletingLoop judges a loop that deletes what a server lists.
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
	for _, m := range loopOverList.FindAllStringSubmatch(text, maxMatches) {
		judge(m[2], m[3])
	}
	for _, m := range pipedList.FindAllStringSubmatch(text, maxMatches) {
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
	testClass      = regex.New(`(?i)@isTest\b`)
	emptiesBin     = regex.New(`(?i)\bemptyRecycleBin\s*\(`)
	deletesRecords = regex.New(`(?i)\bdelete\s+[\[\w]|\bDatabase\.delete\s*\(|\bdeleteImmediate\s*\(`)
	deletesQueried = regex.New(`(?i)\b(?:delete\s*|Database\.delete\s*\(\s*)\[\s*SELECT\s+[\w, ]+\s+FROM\s+\w+\s*(?:LIMIT\s+\d{3,}\s*)?\]`)
)
