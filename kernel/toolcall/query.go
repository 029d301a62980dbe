package toolcall

import (
	"net/url"
	"slices"
	"strings"

	"github.com/DataDog/go-sqllexer"

	"github.com/caddy-lex/lex/kernel/toolcall/regex"
)

// maxVerbs bounds the verbs of one statement that are judged, each in linear
// time; no honest statement nests as many.
const maxVerbs = 16

// query judges SQL statement by statement. A lexer is enough for that, and unlike
// a parser it reads every dialect.
func (r *reading) query(text string) {
	if !r.spend(2 * costScreen * len(text)) {
		return
	}
	if openParentheses(text) > maxOpen {
		r.unreadable()
		return
	}
	text = r.plainText(text)
	if strings.Contains(text, "\\") || strings.HasPrefix(text, "system ") {
		r.clientCommands(text)
	}
	if strings.Contains(text, "/*!") {
		text = executable.ReplaceAllString(text, " $1 ")
	}
	text = withTemplate(text)
	if !sqlVerb.Matches(text) && !r.readsAll(text) {
		return
	}
	if !r.spend(costQuery * len(text)) {
		return
	}
	all := statements(text)
	made := temporaries(all)
	r.values = make(sqlValues)
	r.values.assign(all)
	testing := r.testing && !strings.Contains(text, `\c`)
	for _, statement := range all {
		testing = testing && !isWord(statement, 0, "USE")
		if r.losesScratch(statement, made) || testing && (losesRows(statement) || r.testServer && losesServers(statement)) || r.ordinaryRights(statement) {
			continue
		}
		r.reachesBeyond(statement)
		if r.certain {
			r.accounts(statement)
		}
		if r.spend(costWord) && (r.destructive(statement) || r.certain && shortDelete(statement)) {
			r.breaks(DestructiveQuery)
			return
		}
	}
}

// readsAll reports whether a text that surely is SQL may list secrets.
func (r *reading) readsAll(text string) bool { return r.certain && secretWords.Matches(text) }

// secretWords are the parts of the names of columns and tables that hold secrets.
var secretWords = regex.NewScreen(regex.New(`(?i)pass|pwd|secret|key|token|\bpan\b|cvv|cvc|card|cc_|ssn|social|credential|track`))

// injected finds SQL that breaks out of a value: a quote or a number, then a
// clause.
func (r *reading) injected(text string) {
	if len(text) < maxPacked && strings.ContainsAny(text, " /+\t\n") && numeric.MatchString(comments.ReplaceAllString(text, " ")) {
		r.breaks(DestructiveQuery)
		return
	}
	if strings.Contains(text, "%27") || strings.Contains(text, "%22") {
		if plain, err := url.QueryUnescape(text); err == nil {
			text = plain
		}
	}
	if !strings.ContainsAny(text, `'";`) {
		return
	}
	if strings.Contains(text, "/*") {
		text = comments.ReplaceAllString(text, " ")
	}
	if injection.MatchString(text) {
		r.breaks(DestructiveQuery)
		return
	}
	if _, after, found := strings.Cut(text, ";"); found {
		r.query(after)
	}
}

var (
	sqlVerb = regex.NewScreen(regex.New(`(?i)\b(?:drop|truncate|delete|update|grant|alter|copy|merge|do|prepare|load|create|declare|openrowset|dblink_exec|query_to_xml|xp_cmdshell|sp_oacreate|outfile|dumpfile|load_file|load_extension|pg_read_file|pg_ls_dir|lo_export|lo_import|exec|execute|shutdown|revoke|attach|pragma|vacuum|insert|kill|set|purge|reset|bulk|export|utl_\w+|dbms_\w+|httpuritype|xp_\w+|sys_(?:exec|eval)|lo_get|readfile|writefile|edit|url|file|read_\w+|unload|dblink|pg_terminate_backend|pg_shadow|pg_authid|mysql\.(?:user|db)|replace|noaudit|backup|call|begin|sql_logins|user\$|link\$|select\s+.*\bfrom\s+mysql\.user)\b`))

	// executable is MySQL's conditional comment: a comment to every other
	// reader, code to the server.
	executable = regex.New(`(?s)/\*!\d*(.*?)\*/`)

	comments = regex.New(`(?s)/\*.*?\*/`)

	// plainComments are those that no quote can begin or end in.
	plainComments = regex.New(`/\*[^'"*!]*\*/`)

	// dashedName is a quoted name of a project, which the lexer takes for a subtraction.
	dashedName = regex.New("`[A-Za-z][\\w-]*(?:\\.[\\w-]+)*`")

	// numeric is the same where the value is a number, which needs no quote.
	numeric = regex.New(`(?i)^\s*-?\w{1,40}\s*\)*\s+(?:(?:or|and)\s+(?:sleep|benchmark|pg_sleep|extractvalue|updatexml|exists|ascii|substring|waitfor)\s*\(|(?:or|and)\s+\(?\s*select\b|waitfor\s+delay\b|procedure\s+analyse|having\s+\d+\s*=\s*\d+|order\s+by\s+\d+\s*(?:--|#)|and\s+\d+\s*=\s*\d+|or\s+\d+\s*=\s*\d+)|^\s*-?\d+\s*\)*\s+(?:or\s+(?:not\s+)?['"]?(?:\d+|true)['"]?\s*(?:--|#|(?:=|<|>|like\b)\s*['"]?\d)|union\s+(?:all\s+)?select\b)`)

	injection = regex.New(`(?i)^[^'"]*['"]\s*\)*\s*(?:(?:--|#)\s*$|(?:or|and)\s*(?:not\s*)?\(?\s*(?:select|exists|ascii|substr\w*|length|if|case)\b|waitfor\s+delay|having\s+\d|order\s+by\s+\d+\s*(?:--|#)|into\s+(?:outfile|dumpfile)|(?:or|and)\s+['"(]+\s*['")]*\s*(?:=|<|>|like\b)|(?:or|and|\|\||&&)\s+(?:not\s+)?['"(]*\w+['"]*\s*(?:=|<|>|like|is|in)\s*['"(]*\w*|(?:and|or)\s+(?:sleep|benchmark|pg_sleep|extractvalue|updatexml)\s*\(|union\s+(?:all\s+)?select\b|;\s*(?:drop|delete|update|insert|truncate|alter|exec|shutdown|create|grant|copy)\b)`)
)

// token is a word or sign of SQL, in upper case; quoted tells a literal.
type token struct {
	text   string
	quoted bool
	depth  int // of parentheses
}

// statements splits a text at its semicolons, without comments and spaces.
func statements(text string) [][]token {
	all := make([]token, 0, len(text)/usualToken) // of all statements, one behind the other
	var ends []int
	depth := 0
	if strings.Contains(text, "/*") {
		text = plainComments.ReplaceAllString(text, " ") // the lexer loses what follows SCHEMA/**/
	}
	if strings.Contains(text, "`") {
		text = dashedName.ReplaceAllStringFunc(text, func(name string) string { return strings.ReplaceAll(name, "-", "_") })
	}
	lexer := sqllexer.New(text)
	for n := 0; n <= len(text); n++ {
		t := lexer.Scan()
		switch t.Type {
		case sqllexer.EOF:
			return cutAt(all, ends)
		case sqllexer.SPACE, sqllexer.COMMENT, sqllexer.MULTILINE_COMMENT:
			continue
		}
		value := strings.ToUpper(strings.TrimSpace(t.Value))
		switch value {
		case "":
			continue
		case "(":
			depth++
		case ")":
			depth--
		case ";":
			ends, depth = append(ends, len(all)), 0
			continue
		}
		quoted := t.Type == sqllexer.STRING || t.Type == sqllexer.INCOMPLETE_STRING || t.Type == sqllexer.DOLLAR_QUOTED_STRING
		if t.Type == sqllexer.QUOTED_IDENT {
			value = strings.Trim(value, "\"`[]")
		}
		all = append(all, token{value, quoted, depth})
	}
	return cutAt(all, ends)
}

// usualToken is how long the tokens of most queries are, with the space behind them.
const usualToken = 4

// cutAt cuts tokens into statements at the places where some end.
func cutAt(all []token, ends []int) [][]token {
	out := make([][]token, 0, len(ends)+1)
	begin := 0
	for _, end := range ends {
		out = append(out, all[begin:end:end])
		begin = end
	}
	return append(out, all[begin:])
}

// destructive judges one statement.
func (r *reading) destructive(s []token) bool {
	s = onEach(s)
	if !r.spend(costSearch*len(s)) || r.dynamic(s) || leavesDatabase(s) || mergesAll(s) {
		return true
	}
	verbs := 0
	for i, t := range s {
		if t.quoted {
			continue
		}
		if isWord(s, i, "DELETE", "UPDATE", "GRANT", "REVOKE", "ALTER") && (startsStatement(s, i) || isWord(s, 0, "WITH", "EXPLAIN") && changesRows(s, i)) {
			if verbs++; verbs > maxVerbs || !r.spend(costQuery*(len(s)-i)) {
				return true
			}
		}
		if area, _, _ := strings.Cut(t.text, "."); t.text == "MYSQL.USER" || t.text == "MYSQL.DB" || reaching[area] && isWord(s, i+1, "(", ".") {
			return true
		}
		switch t.text[strings.LastIndexByte(t.text, '.')+1:] {
		case "DROP":
			if isWord(s, 0, "ALTER") && isWord(s, 1, "TABLE") && i > 0 && i+1 < len(s) && !isWord(s, i+1, "CONSTRAINT", "INDEX", "KEY", "DEFAULT", "PRIMARY", "FOREIGN", "NOT", "CHECK", "IDENTITY", "EXPRESSION", "UNIQUE", "STATISTICS") && !isWord(s, i-1, "ON") {
				return true
			}
			if startsStatement(s, i) && isWord(s, i+1, droppedObjects...) && i+2 < len(s) || i > 0 && isWord(s, 0, "ALTER") && isWord(s, i+1, "COLUMN") {
				return true
			}
		case "TRUNCATE":
			if startsStatement(s, i) && r.certain && i+1 < len(s) || isWord(s, 0, "ALTER") && isWord(s, i+1, "PARTITION") {
				return true
			}
			if startsStatement(s, i) && (isWord(s, i+1, "TABLE") && len(s) > i+2 || len(s) == i+2 || isWord(s, i+2, "CASCADE", "RESTART", ",")) {
				return true
			}
		case "DELETE", "UPDATE":
			if (startsStatement(s, i) || isWord(s, 0, "WITH", "EXPLAIN")) && changesRows(s, i) && (!hasRestrictingWhere(s[i:]) || payeeChange(s, i)) {
				return true
			}
		case "GRANT", "REVOKE":
			if startsStatement(s, i) && !letsIn(s, i) && anyWordAfter(s, i, "TO", "FROM") && (anyWordAfter(s, i, "ON") || isWord(s, i+1, "ALL") || i+3 < len(s)) && isRight(s, i+1) {
				return true
			}
		case "ALTER":
			if startsStatement(s, i) && isWord(s, i+1, "USER", "ROLE", "SYSTEM") && !isWord(s, i+4, plainSettings...) && anyWordAfter(s, i, "SUPERUSER", "SET", "WITH", "PASSWORD", "IDENTIFIED") {
				return true
			}
		case "OUTFILE", "DUMPFILE":
			if i > 0 && isWord(s, i-1, "INTO") {
				return true
			}
		case "PROGRAM":
			if isWord(s, 0, "COPY") && i > 0 && isWord(s, i-1, "TO", "FROM") {
				return true
			}
		case "XP_CMDSHELL", "SP_OACREATE", "XP_REGWRITE", "XP_DIRTREE":
			return len(s) > 1
		case "SHUTDOWN":
			if startsStatement(s, i) && (len(s) == 1 || isWord(s, i+1, "WITH", "IMMEDIATE", "ABORT", "NOWAIT", "TRANSACTIONAL")) {
				return true
			}
		case "UTL_HTTP", "UTL_INADDR", "UTL_TCP", "UTL_SMTP", "HTTPURITYPE", "DBMS_LDAP", "DBMS_SCHEDULER", "DBMS_JAVA", "SYS_EXEC", "SYS_EVAL", "XP_FILEEXIST", "XP_SUBDIRS", "XP_REGREAD", "XP_INSTANCE_REGREAD", "DBLINK_CONNECT", "LO_GET", "PG_STAT_FILE", "PG_LS_LOGDIR", "PG_LS_WALDIR", "PG_FILE_WRITE", "DATABASE_TO_XML", "SCHEMA_TO_XML", "TABLE_TO_XML", "WRITEFILE", "READFILE", "XMLTYPE_FROM_FILE", "LOAD_XML", "PG_RELOAD_CONF", "PG_TERMINATE_BACKEND":
			if isWord(s, i+1, "(", ".") {
				return true
			}
		case "READ_PARQUET", "READ_CSV", "READ_CSV_AUTO", "READ_JSON":
			if isWord(s, i+1, "(") && i+2 < len(s) && s[i+2].quoted && leadsOut(unquoted(s[i+2].text)) && !loadedObject.MatchString(unquoted(s[i+2].text)) {
				return true
			}
		case "URL", "FILE", "S3", "READ_TEXT", "READ_BLOB", "REMOTE", "EXECUTABLE":
			if isWord(s, i+1, "(") && i+2 < len(s) && s[i+2].quoted && leadsOut(unquoted(s[i+2].text)) {
				return true
			}
		case "PG_SHADOW", "PG_AUTHID":
			if i > 0 && isWord(s, i-1, "FROM", "JOIN", ".") {
				return true
			}
		case "LOAD_FILE", "LOAD_EXTENSION", "PG_READ_FILE", "PG_READ_BINARY_FILE", "PG_LS_DIR", "LO_EXPORT", "LO_IMPORT", "DBMS_XSLPROCESSOR", "UTL_FILE":
			if isWord(s, i+1, "(", ".") {
				return true
			}
		}
	}
	return false
}

var droppedObjects = strings.Fields("TABLE DATABASE SCHEMA COLUMN ROLE USER TABLESPACE KEYSPACE OWNED COLLECTION ALL CATALOG WAREHOUSE SERVER POLICY MEASUREMENT BUCKET PLUGGABLE LOGIN PUBLICATION SUBSCRIPTION GRAPH STREAM TOPIC SHARD DATASET RETENTION")

// plainSettings are what a person works with by default.
var plainSettings = strings.Fields("DEFAULT_WAREHOUSE DEFAULT_NAMESPACE DEFAULT_SECONDARY_ROLES COMMENT TIMEZONE")

// reaching are the packages of functions that leave the database.
var reaching = words("UTL_HTTP UTL_TCP UTL_SMTP UTL_FILE UTL_INADDR DBMS_LDAP DBMS_SCHEDULER DBMS_JAVA DBMS_XSLPROCESSOR HTTPURITYPE DBLINK")

// startsStatement reports whether a statement, or one that wraps it, begins at i.
func startsStatement(s []token, i int) bool {
	return i == 0 || isWord(s, 0, "PREPARE") && isWord(s, i-1, "AS") || isWord(s, i-1, "BEGIN", "THEN", "EXPLAIN", "ANALYZE", "DO", "AS", "(") && !isWord(s, i-1, "AS") || isWord(s, i-1, "IMMEDIATE") || isWord(s, 0, "CREATE") && isWord(s, i-1, "ROW", "INSTEAD", "ALSO", "DO")
}

// isWord reports whether token i is one of the words, unquoted.
func isWord(s []token, i int, wanted ...string) bool {
	if i < 0 || i >= len(s) || s[i].quoted {
		return false
	}
	for _, word := range wanted {
		if s[i].text == word {
			return true
		}
	}
	return false
}

// anyWordAfter reports whether one of the words stands after token i.
func anyWordAfter(s []token, i int, wanted ...string) bool {
	for j := i + 1; j < len(s); j++ {
		if isWord(s, j, wanted...) {
			return true
		}
	}
	return false
}

// letsIn tells the right to name what is in a schema, or to read one table, given to one role,
// from the rights to change something or to read everything. A schema may be read by a role
// that is for that by its name, and what everybody may can be taken back.
func letsIn(s []token, i int) bool {
	narrow := isWord(s, i+1, "USAGE") && isWord(s, i+2, "ON") && isWord(s, i+3, "SCHEMA", "SEQUENCE", "TYPE", "DOMAIN", "LANGUAGE", "WAREHOUSE") ||
		isWord(s, i+1, "SELECT") && isWord(s, i+2, "ON") && !isWord(s, i+3, "SCHEMA", "DATABASE")
	end := len(s) - 1
	for isWord(s, end, ";") {
		end--
	}
	everybody := false // and not a schema of that name
	for j := i + 1; j < end; j++ {
		everybody = everybody || isWord(s, j, "TO", "FROM", "GROUP", "ROLE") && isWord(s, j+1, "PUBLIC")
	}
	if isWord(s, i, "GRANT") && narrow && !everybody && !anyWordAfter(s, i, "OPTION", "ALL", "*", ",") && !namesSecrets(s[i:]) {
		return true
	}
	whole := isWord(s, i, "GRANT") && isWord(s, i+1, "SELECT") && isWord(s, i+2, "ON") && isWord(s, i+3, "ALL") && isWord(s, i+4, "TABLES", "VIEWS", "SEQUENCES") && isWord(s, i+5, "IN") && isWord(s, i+6, "SCHEMA")
	seat := isWord(s, i, "GRANT") && isWord(s, i+1, "ROLE") && end == i+5 && isWord(s, i+3, "TO") && isWord(s, i+4, "USER", "ROLE") && readersRole.MatchString(s[i+2].text)
	shuts := isWord(s, i, "REVOKE") && isWord(s, end-1, "FROM") && isWord(s, end, "PUBLIC")
	return seat || shuts || whole && end == i+9 && isWord(s, i+8, "TO") && readersRole.MatchString(s[end].text)
}

// readersRole is a role by whose name it only reads.
var readersRole = regex.New(`(?i)(?:^|_)(?:ro|read(?:er|ers|only|_only)?|report(?:s|er|ing)?|viewers?|metabase|grafana|looker|tableau|superset|bi|analysts?|analytics)(?:_|$)`)

// onEach drops the clause that says on which machines of a cluster a statement runs.
func onEach(s []token) []token {
	for i := range s[:min(len(s), 8)] {
		if isWord(s, i, "ON") && isWord(s, i+1, "CLUSTER") && i+3 < len(s) {
			return slices.Concat(s[:i], s[i+3:])
		}
	}
	return s
}

func isRight(s []token, i int) bool {
	return isWord(s, i, "ALL", "SELECT", "INSERT", "UPDATE", "DELETE", "USAGE", "EXECUTE", "CREATE", "CONNECT", "ALTER", "DROP", "SUPERUSER", "DBA", "SYSADMIN", "ROLE", "CONTROL", "REFERENCES", "FILE", "RELOAD", "PROCESS") || anyWordAfter(s, i, "ON") || len(s) == i+3
}

// changesRows tells a statement from the same verb in a clause: FOR UPDATE,
// ON DELETE CASCADE.
func changesRows(s []token, i int) bool {
	if i > 0 && isWord(s, i-1, "FOR", "ON", "KEY", "DO") && (!isWord(s, i-1, "DO") || !isWord(s, 0, "CREATE")) {
		return false
	}
	if s[i].text == "DELETE" {
		return isWord(s, i+1, "FROM") && i+2 < len(s)
	}
	for j := i + 2; j < len(s) && j < i+12; j++ {
		if isWord(s, j, "SET") {
			return true
		}
	}
	return false
}

// hasRestrictingWhere reports whether a change has a WHERE of its own that a row can fail.
func hasRestrictingWhere(s []token) bool {
	for i, t := range s {
		if t.text == "WHERE" && !t.quoted && t.depth == s[0].depth {
			c := condition(s[i+1:], t.depth)
			return !alwaysTrueLong(c) && !selectsItself(c, changedTable(s))
		}
	}
	return false
}

// condition ends where the next clause begins.
func condition(s []token, depth int) []token {
	for i, t := range s {
		if t.depth < depth || t.depth == depth && isWord(s, i, "RETURNING", "ORDER", "LIMIT", "GROUP") {
			return s[:i]
		}
	}
	return s
}
