package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/regex"
)

// collections judges what a program does to collections of documents: what its calls, with
// values in their places, take away of all documents, and the commands that it hands to the
// server.
func (r *reading) collections(text string, calls []code.Call) {
	if !documentStore.Matches(text) {
		return
	}
	for _, c := range calls {
		if !documentCalls[c.Name] {
			continue
		}
		args := code.Arguments(text, c.Open)
		receiver := code.Receiver(text, c.Start)
		first := ""
		if len(args) > 0 {
			first = compactJSON.Replace(args[0])
		}
		if !r.spend(costJudge*(len(first)+len(receiver)) + costWord) {
			return
		}
		switch c.Name {
		case "deleteMany", "delete_many", "updateMany", "update_many", "remove":
			if (c.Name != "remove" || strings.HasPrefix(receiver, "db")) && everyDocument.MatchString(first) {
				r.breaks(DestructiveQuery)
			}
		case "drop", "drop_collection":
			if oneCollection.MatchString(receiver) && !scratchCollection.MatchString(receiver) {
				r.breaks(DestructiveQuery)
			}
		case "runCommand", "adminCommand", "command", "bulkWrite", "bulk_write":
			if losingCommand.MatchString(first) {
				r.breaks(DestructiveQuery)
			}
		case "createUser", "grantRolesToUser", "updateUser":
			if allRoles.MatchString(compactJSON.Replace(strings.Join(args, ","))) {
				r.breaks(PrivilegeEscalation)
			}
		case "dropUser", "dropAllUsers", "dropAllRoles":
			if strings.HasPrefix(receiver, "db") {
				r.breaks(DestructiveQuery)
			}
		case "renameCollection":
			if len(args) > 1 && strings.TrimSpace(args[1]) == "true" {
				r.breaks(DestructiveQuery)
			}
		}
	}
}

var (
	documentStore = regex.NewScreen(regex.New(`\bdb\s*[.\[]|getSiblingDB|getCollection|[mM]ongo|\bcollection\(|\.model\(|deleteMany|delete_many`))
	documentCalls = words("deleteMany delete_many updateMany update_many remove drop drop_collection runCommand adminCommand command bulkWrite bulk_write createUser grantRolesToUser updateUser dropUser dropAllUsers dropAllRoles renameCollection")
	compactJSON   = strings.NewReplacer(" ", "", "\n", "", "\t", "", "'", "", `"`, "")

	// everyDocument is a filter without spaces and quotes that every document passes.
	everyDocument = regex.New(`^\{\}$|^\{(?:\$or:\[(?:.*,)?\{\}|\$and:\[(?:\{\},?)+\]\}|_id:\{\$(?:exists:(?:true|True|1)|ne:(?:null|None|undefined|0|-1)?|gte?:MinKey.*|lte?:MaxKey.*|nin:\[\])\}\}|\$expr:(?:true|True|1|\{\$eq:\[1,1\]\})\}|\$where:(?:true|1|return(?:true|1);?|function\(\)\{return(?:true|1);?\}|\(\)=>true)\}|\w+:(?:/\^?(?:\.\*)?\$?/|\{\$(?:in:\[/\^?(?:\.\*)?\$?/\]|regex:\^?(?:\.\*)?\$?)\})\})`)

	oneCollection     = regex.New(`^db\b|getCollection\(|getSiblingDB\(|\bcollection\(`)
	scratchCollection = regex.New(`(?i)(?:^|[.'"(\[_])(?:tmp|temp|test|scratch|staging|stg)(?:[._'"\d]|$)|_(?:tmp|temp|test|scratch|staging)(?:['".)\]]|$)`)
	losingCommand     = regex.New(`^\{?(?:dropDatabase|shutdown|dropAllUsersFromDatabase|dropAllRolesFromDatabase|drop|dropUser|dropIndexes|replSetStepDown)\b|[{,](?:dropDatabase|shutdown|drop):|deletes:\[\{q:\{\}|(?:deleteMany|delete_many):\{filter:\{\}|DeleteMany\(\{\}`)
	allRoles          = regex.New(`\b(?:root|dbOwner|userAdmin(?:AnyDatabase)?|dbAdminAnyDatabase|readWriteAnyDatabase|clusterAdmin|__system)\b`)
)

// mongoProgram is how a program for MongoDB's shell begins.
var mongoProgram = regex.New(`^\s*(?:(?:const|let|var)\s+\w+\s*=\s*)?(?:await\s+)?(?:db|rs|sh)\s*[.\[]|^\s*use\s+\w+[\s;]+db\.`)

// vacuous reports whether a member of a filter holds for every document.
func vacuous(l leaf) bool {
	switch l.key {
	case "$exists", "$expr":
		return l.value == "true" || l.value == "1"
	case "$ne":
		return l.value == "null"
	}
	return false
}

// losingSwitches are the members that make a call of a store lose everything.
var losingSwitches = words("deleteall dropall truncateall dropdatabase flushall clearall removeall purgeall")
