package toolcall

import (
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// sqlClients are the clients of databases, with the flags that carry a query.
var sqlClients = map[string]options{
	"psql": {values: "dhpUvFRPTLofn", text: "c", longText: "--command"}, "pgcli": {values: "hpUd", text: "c"}, "usql": {text: "c", longText: "--command"},
	"mysql": {values: "uhPDS", text: "e", longText: "--execute --init-command"}, "mariadb": {values: "uhPDS", text: "e", longText: "--execute --init-command"}, "mycli": {values: "uhPDS", text: "e"},
	"sqlite3": {longText: "-cmd"}, "sqlite": {}, "litecli": {text: "e"}, "duckdb": {text: "cs"},
	"sqlcmd": {values: "SdUPi", text: "qQ"}, "osql": {values: "SdUPi", text: "qQ"}, "isql": {values: "SdUP"}, "sqlplus": {}, "tsql": {},
	"clickhouse-client": {text: "q", longText: "--query"}, "clickhouse": {text: "q", longText: "--query"}, "clickhouse-local": {text: "q", longText: "--query"},
	"cockroach": {text: "e", longText: "--execute"}, "snowsql": {text: "q", longText: "--query"}, "snow": {text: "q", longText: "--query"},
	"bq": {}, "cqlsh": {text: "e", longText: "--execute"}, "trino": {longText: "--execute"}, "presto": {longText: "--execute"},
	"hive": {text: "e"}, "beeline": {text: "e", values: "unp"}, "impala-shell": {text: "q"}, "spark-sql": {text: "e"},
	"influx": {longText: "-execute --execute"}, "turso": {}, "wrangler": {longText: "--command"}, "redis-cli": {values: "hpanu"}, "valkey-cli": {values: "hpanu"},
}

// sqlClient reads the queries that a client gets as arguments.
func (s *shell) sqlClient(argv []string) {
	flags := sqlClients[programName(argv[0])]
	defer func(before bool) { s.testing = before }(s.testing)
	s.testing = s.onTestDatabase(argv)
	for i := 1; i < len(argv); i++ {
		if text, next, found := flags.program(argv, i); found {
			s.surely(text)
			i = next - 1
			continue
		}
		if text, known := s.written[path.Base(strings.TrimPrefix(argv[i], "--file="))]; known {
			s.surely(text)
		}
		if strings.ContainsAny(argv[i], " \t\n") {
			s.surely(strings.TrimPrefix(strings.TrimPrefix(argv[i], "--command="), "--execute="))
		}
	}
}

func isSQLClient(name string) bool {
	_, known := sqlClients[name]
	return known
}

// mongo reads the program that MongoDB's shell gets.
func (s *shell) mongo(argv []string) {
	flags := options{values: "uph", long: "--host --port --username --password --authenticationDatabase --file", longText: "--eval"}
	names, host := options{values: flags.values, long: flags.long + " --eval"}.operandsOf(argv), valueOf(argv, "--host", "--host=")
	defer func(before bool) { s.testing = before }(s.testing)
	s.testing = isTestDatabase(wordAt(names, 0)) && (host == "" || ownDatabaseHost.MatchString(host))
	for i := 1; i < len(argv); i++ {
		if text, next, found := flags.program(argv, i); found {
			s.code(text)
			i = next - 1
		}
	}
}

// surely reads a text that is a query and no sentence.
func (s *shell) surely(text string) {
	before := s.certain
	s.certain = true
	s.query(text)
	s.certain = before
}

// documents judges a call to a database of documents: code that runs in the server,
// and operations on every document.
func (r *reading) documents(leaves []leaf) {
	operation, filtered, passed, everything, everywhere := "", false, false, false, false
	stores := r.tool.stores()
	for _, l := range leaves {
		switch {
		case serverCode[l.key]:
			r.breaks(DestructiveQuery)
		case l.text && stores && mongoProgram.MatchString(l.value):
			r.code(l.value)
		case l.text && everyIndex.MatchString(l.value) && stores:
			everywhere = true
		case l.text && operationKeys[l.key] && len(l.value) < maxKey:
			operation = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(l.value))
		case losingSwitches[l.key] && (l.value == "true" || l.value == "1") && (stores || r.tool.any("pinecone", "qdrant", "weaviate", "chroma", "milvus", "dgraph", "vector", "vectors", "cache", "queue")):
			r.breaks(DestructiveQuery)
		case (filterKeys[l.key] || l.key == "$or" || l.key == "$and" && !filtered) && l.value == "{}":
			everything = true
		case l.above.filter && vacuous(l):
			passed = true
		case filterKeys[l.key] || l.above.filter:
			filtered = true
		case strings.HasPrefix(l.key, "$") && operators[l.key] && !stores:
			r.breaks(DestructiveQuery) // an operator where a value belongs
		}
	}
	if operation == "" {
		operation = strings.ToLower(strings.Join(strings.Fields(spaced(r.name)), ""))
	}
	switch {
	case r.testing:
	case everywhere && strings.Contains(operation, "delete"):
		r.breaks(DestructiveQuery)
	case dropsAll.MatchString(operation) && stores:
		r.breaks(DestructiveQuery)
	case changesMany.MatchString(operation) && (everything || !filtered && (passed || stores)):
		r.breaks(DestructiveQuery)
	}
}

// stores reports whether the tool is a database of documents or keys.
func (t tool) stores() bool {
	return t.sql || t.any("mongo", "mongosh", "mongodb", "documentdb", "collection", "couchdb", "couch", "firestore", "dynamo", "dynamodb", "elastic", "elasticsearch", "opensearch", "cosmos", "nosql", "documents", "redis", "index")
}

var (
	serverCode    = words("$where $function $accumulator $out mapreduce")
	operators     = words("$ne $gt $gte $lt $lte $regex $nin $in $exists $or $expr $not")
	operationKeys = words("operation op action method command cmd function")
	filterKeys    = words("filter query q selector where criteria match condition")
	dropsAll      = regex.New(`drop(?:database|collection|index|indexes|table)?s?$|^(?:mongo(?:db)?)?drop|delete(?:table|database|bucket|keyspace)$|deleteindex|deletecollection|flushall|flushdb|emptycollection`)
	everyIndex    = regex.New(`^/?(?:_all|\*)(?:/|$)`)
	changesMany   = regex.New(`deletemany|updatemany|removeall|deleteall|deletebyquery|updatebyquery|bulkdelete|^remove$|^delete$`)
)
