package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// otherLanguages are the queries of databases that do not speak SQL which lose everything of
// a kind: what they look like, what picks some of it, and the words of a tool's name where the
// query alone does not tell its language.
var otherLanguages = []struct {
	loses     *regex.Expression
	picks     *regex.Expression
	tools     string
	invariant Invariant
}{
	// Cypher: what is matched has neither a property nor a condition.
	{
		regex.New(`(?is)^\s*(?:(?:call\s*\{|optional|profile|explain|unwind\b.{0,80}?)\s*)*match\b.*\b(?:delete\b|remove\s+\w+[.:]|set\s+\w+\s*=\s*\{\s*\})`),
		regex.New(`(?is)\bwhere\s+(?:[^t1(]|t[^r]|1\s*[^=\s])|\(\s*\w*\s*(?::\s*[\w:|&]+\s*)?\{|\[\s*\w*\s*(?::\s*[\w:|]+)?(?:\*[\d.]*)?\s*\{|\(\s*\w*\s*:\s*\w*(?i:test|tmp|temp|staging|scratch)`), "", DestructiveQuery,
	},
	{regex.New(`(?is)\bapoc\.(?:periodic\.(?:iterate|commit)|cypher\.\w+)\s*\(.*\b(?:detach\s+)?delete\b`), regex.New(`(?is)\bwhere\b|\(\s*\w*\s*(?::\w+)?\s*\{`), "", DestructiveQuery},
	{regex.New(`(?i)\bcall\s+(?:apoc\.schema\.assert\s*\(\s*\{\s*\}\s*,\s*\{\s*\}|db\.(?:dropIndexes|clearQueryCaches)|dbms\.(?:killConnections|shutdown))`), nil, "", DestructiveQuery},
	{regex.New(`(?i)\bload\s+csv\b.*\bfrom\s+['"](?:file:///(?:etc|root|home|proc)|https?://(?:169\.254|localhost|127\.|10\.|192\.168\.|metadata))`), nil, "", ServerSideRequestForgery},
	// Gremlin
	{regex.New(`\bg\.[VE]\(\)(?:\.(?:hasLabel|limit|dedup)\([^()]*\))*\.drop\(`), nil, "", DestructiveQuery},
	// SPARQL
	{regex.New(`(?i)\bdelete\s+(?:where\s*)?\{\s*(?:graph\s+\S+\s*\{\s*)?\?\w+\s+\?\w+\s+\?\w+\s*\.?\s*\}|(?:^|;)\s*(?:drop|clear)\s+(?:silent\s+)?(?:all|default|named|graph\s+[<\w])`), nil, "sparql rdf graph triple triplestore fuseki virtuoso graphdb stardog blazegraph neptune", DestructiveQuery},
	// AQL and SurrealQL
	{regex.New(`(?is)^\s*for\s+\w+\s+in\s+\w+\s+remove\b`), regex.New(`(?i)\bfilter\b`), "", DestructiveQuery},
	{regex.New(`(?i)(?:^|;)\s*(?:remove\s+(?:table|database|namespace)\s+\w|delete\s+(?:only\s+)?\w+\s*;?\s*$)`), nil, "surreal surrealdb", DestructiveQuery},
	// series of time
	{regex.New(`(?i)(?:^|;)\s*drop\s+(?:series|shard|retention\s+policy)\b`), regex.New(`(?i)\bwhere\b`), "", DestructiveQuery},
	// Kusto
	{regex.New(`(?im)^\s*\.(?:drop\s+(?:tables?|databases?|extents|columns?|materialized-view|function)|clear\s+(?:tables?|database|materialized-view)|purge\s+(?:tables?|materialized-view)|delete\s+table|alter(?:-merge)?\s+(?:table|database)\s+\S+\s+policy\s+retention\s+softdelete\s*=\s*0)\b`), nil, "", DestructiveQuery},
	// the searches of logs
	{regex.New(`(?is)\|\s*delete\s*$`), nil, "splunk spl siem logs loki", ConstraintTampering},
	{regex.New(`(?is)\b(?:index|sourcetype)\s*=.*\|\s*delete\s*$`), nil, "", ConstraintTampering},
}

// queriesElsewhere judges a query in another language than SQL.
func (r *reading) queriesElsewhere(l leaf) {
	if !l.text || len(l.value) > maxWritten || !languageOfQueries.Matches(l.value) || !r.spend(costSearch*len(l.value)) {
		return
	}
	for _, language := range otherLanguages {
		if language.tools != "" && !r.tool.any(strings.Fields(language.tools)...) {
			continue
		}
		if language.loses.MatchString(l.value) && (language.picks == nil || !language.picks.MatchString(l.value)) {
			r.breaks(language.invariant)
		}
	}
}

// languageOfQueries finds the words without which none of these queries loses anything.
var languageOfQueries = regex.NewScreen(regex.New(`(?i)\b(?:delete|drop|remove|clear|purge|drop_all|dropIndexes|apoc|load\s+csv)\b|\bset\s+\w+\s*=\s*\{`))

// queryLanguageKeys are what the arguments are called that hold such queries.
var queryLanguageKeys = words("query q cypher statement statements spl search sparql update aql gremlin traversal kql csl flux command script sql input request")
