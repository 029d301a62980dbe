package toolcall

import (
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/sql"
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
	all := sql.Statements(text)
	made := temporaries(all)
	r.values = make(sql.Values)
	r.values.Assign(all)
	testing := r.testing && !strings.Contains(text, `\c`)
	for _, statement := range all {
		testing = testing && !statement.Is(0, "USE")
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

	// numeric is the same where the value is a number, which needs no quote.
	numeric = regex.New(`(?i)^\s*-?\w{1,40}\s*\)*\s+(?:(?:or|and)\s+(?:sleep|benchmark|pg_sleep|extractvalue|updatexml|exists|ascii|substring|waitfor)\s*\(|(?:or|and)\s+\(?\s*select\b|waitfor\s+delay\b|procedure\s+analyse|having\s+\d+\s*=\s*\d+|order\s+by\s+\d+\s*(?:--|#)|and\s+\d+\s*=\s*\d+|or\s+\d+\s*=\s*\d+)|^\s*-?\d+\s*\)*\s+(?:or\s+(?:not\s+)?['"]?(?:\d+|true)['"]?\s*(?:--|#|(?:=|<|>|like\b)\s*['"]?\d)|union\s+(?:all\s+)?select\b)`)

	injection = regex.New(`(?i)^[^'"]*['"]\s*\)*\s*(?:(?:--|#)\s*$|(?:or|and)\s*(?:not\s*)?\(?\s*(?:select|exists|ascii|substr\w*|length|if|case)\b|waitfor\s+delay|having\s+\d|order\s+by\s+\d+\s*(?:--|#)|into\s+(?:outfile|dumpfile)|(?:or|and)\s+['"(]+\s*['")]*\s*(?:=|<|>|like\b)|(?:or|and|\|\||&&)\s+(?:not\s+)?['"(]*\w+['"]*\s*(?:=|<|>|like|is|in)\s*['"(]*\w*|(?:and|or)\s+(?:sleep|benchmark|pg_sleep|extractvalue|updatexml)\s*\(|union\s+(?:all\s+)?select\b|;\s*(?:drop|delete|update|insert|truncate|alter|exec|shutdown|create|grant|copy)\b)`)
)

// destructive judges one statement.
func (r *reading) destructive(s sql.Statement) bool {
	s = onEach(s)
	if !r.spend(costSearch*len(s)) || r.dynamic(s) || leavesDatabase(s) || mergesAll(s) {
		return true
	}
	verbs := 0
	for i, t := range s {
		if t.Quoted {
			continue
		}
		if s.Is(i, "DELETE", "UPDATE", "GRANT", "REVOKE", "ALTER") && (startsStatement(s, i) || s.Is(0, "WITH", "EXPLAIN") && changesRows(s, i)) {
			if verbs++; verbs > maxVerbs || !r.spend(costQuery*(len(s)-i)) {
				return true
			}
		}
		if area, _, _ := strings.Cut(t.Text, "."); t.Text == "MYSQL.USER" || t.Text == "MYSQL.DB" || reaching[area] && s.Is(i+1, "(", ".") {
			return true
		}
		switch t.Name() {
		case "DROP":
			if s.Is(0, "ALTER") && s.Is(1, "TABLE") && i > 0 && i+1 < len(s) && !s.Is(i+1, "CONSTRAINT", "INDEX", "KEY", "DEFAULT", "PRIMARY", "FOREIGN", "NOT", "CHECK", "IDENTITY", "EXPRESSION", "UNIQUE", "STATISTICS") && !s.Is(i-1, "ON") {
				return true
			}
			if startsStatement(s, i) && s.Is(i+1, droppedObjects...) && i+2 < len(s) || i > 0 && s.Is(0, "ALTER") && s.Is(i+1, "COLUMN") {
				return true
			}
		case "TRUNCATE":
			if startsStatement(s, i) && r.certain && i+1 < len(s) || s.Is(0, "ALTER") && s.Is(i+1, "PARTITION") {
				return true
			}
			if startsStatement(s, i) && (s.Is(i+1, "TABLE") && len(s) > i+2 || len(s) == i+2 || s.Is(i+2, "CASCADE", "RESTART", ",")) {
				return true
			}
		case "DELETE", "UPDATE":
			if (startsStatement(s, i) || s.Is(0, "WITH", "EXPLAIN")) && changesRows(s, i) && (!s[i:].Restricted() || payeeChange(s, i)) {
				return true
			}
		case "GRANT", "REVOKE":
			if startsStatement(s, i) && !letsIn(s, i) && s.HasAfter(i, "TO", "FROM") && (s.HasAfter(i, "ON") || s.Is(i+1, "ALL") || i+3 < len(s)) && isRight(s, i+1) {
				return true
			}
		case "ALTER":
			if startsStatement(s, i) && s.Is(i+1, "USER", "ROLE", "SYSTEM") && !s.Is(i+4, plainSettings...) && s.HasAfter(i, "SUPERUSER", "SET", "WITH", "PASSWORD", "IDENTIFIED") {
				return true
			}
		case "OUTFILE", "DUMPFILE":
			if i > 0 && s.Is(i-1, "INTO") {
				return true
			}
		case "PROGRAM":
			if s.Is(0, "COPY") && i > 0 && s.Is(i-1, "TO", "FROM") {
				return true
			}
		case "XP_CMDSHELL", "SP_OACREATE", "XP_REGWRITE", "XP_DIRTREE":
			return len(s) > 1
		case "SHUTDOWN":
			if startsStatement(s, i) && (len(s) == 1 || s.Is(i+1, "WITH", "IMMEDIATE", "ABORT", "NOWAIT", "TRANSACTIONAL")) {
				return true
			}
		case "UTL_HTTP", "UTL_INADDR", "UTL_TCP", "UTL_SMTP", "HTTPURITYPE", "DBMS_LDAP", "DBMS_SCHEDULER", "DBMS_JAVA", "SYS_EXEC", "SYS_EVAL", "XP_FILEEXIST", "XP_SUBDIRS", "XP_REGREAD", "XP_INSTANCE_REGREAD", "DBLINK_CONNECT", "LO_GET", "PG_STAT_FILE", "PG_LS_LOGDIR", "PG_LS_WALDIR", "PG_FILE_WRITE", "DATABASE_TO_XML", "SCHEMA_TO_XML", "TABLE_TO_XML", "WRITEFILE", "READFILE", "XMLTYPE_FROM_FILE", "LOAD_XML", "PG_RELOAD_CONF", "PG_TERMINATE_BACKEND":
			if s.Is(i+1, "(", ".") {
				return true
			}
		case "READ_PARQUET", "READ_CSV", "READ_CSV_AUTO", "READ_JSON":
			if s.Is(i+1, "(") && i+2 < len(s) && s[i+2].Quoted && leadsOut(s[i+2].Value()) && !loadedObject.MatchString(s[i+2].Value()) {
				return true
			}
		case "URL", "FILE", "S3", "READ_TEXT", "READ_BLOB", "REMOTE", "EXECUTABLE":
			if s.Is(i+1, "(") && i+2 < len(s) && s[i+2].Quoted && leadsOut(s[i+2].Value()) {
				return true
			}
		case "PG_SHADOW", "PG_AUTHID":
			if i > 0 && s.Is(i-1, "FROM", "JOIN", ".") {
				return true
			}
		case "LOAD_FILE", "LOAD_EXTENSION", "PG_READ_FILE", "PG_READ_BINARY_FILE", "PG_LS_DIR", "LO_EXPORT", "LO_IMPORT", "DBMS_XSLPROCESSOR", "UTL_FILE":
			if s.Is(i+1, "(", ".") {
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
func startsStatement(s sql.Statement, i int) bool {
	return i == 0 || s.Is(0, "PREPARE") && s.Is(i-1, "AS") || s.Is(i-1, "BEGIN", "THEN", "EXPLAIN", "ANALYZE", "DO", "AS", "(") && !s.Is(i-1, "AS") || s.Is(i-1, "IMMEDIATE") || s.Is(0, "CREATE") && s.Is(i-1, "ROW", "INSTEAD", "ALSO", "DO")
}

// letsIn tells the right to name what is in a schema, or to read one table, given to one role,
// from the rights to change something or to read everything. A schema may be read by a role
// that is for that by its name, and what everybody may can be taken back.
func letsIn(s sql.Statement, i int) bool {
	narrow := s.Is(i+1, "USAGE") && s.Is(i+2, "ON") && s.Is(i+3, "SCHEMA", "SEQUENCE", "TYPE", "DOMAIN", "LANGUAGE", "WAREHOUSE") ||
		s.Is(i+1, "SELECT") && s.Is(i+2, "ON") && !s.Is(i+3, "SCHEMA", "DATABASE")
	end := len(s) - 1
	for s.Is(end, ";") {
		end--
	}
	everybody := false // and not a schema of that name
	for j := i + 1; j < end; j++ {
		everybody = everybody || s.Is(j, "TO", "FROM", "GROUP", "ROLE") && s.Is(j+1, "PUBLIC")
	}
	if s.Is(i, "GRANT") && narrow && !everybody && !s.HasAfter(i, "OPTION", "ALL", "*", ",") && !namesSecrets(s[i:]) {
		return true
	}
	whole := s.Is(i, "GRANT") && s.Is(i+1, "SELECT") && s.Is(i+2, "ON") && s.Is(i+3, "ALL") && s.Is(i+4, "TABLES", "VIEWS", "SEQUENCES") && s.Is(i+5, "IN") && s.Is(i+6, "SCHEMA")
	seat := s.Is(i, "GRANT") && s.Is(i+1, "ROLE") && end == i+5 && s.Is(i+3, "TO") && s.Is(i+4, "USER", "ROLE") && readersRole.MatchString(s[i+2].Text)
	shuts := s.Is(i, "REVOKE") && s.Is(end-1, "FROM") && s.Is(end, "PUBLIC")
	return seat || shuts || whole && end == i+9 && s.Is(i+8, "TO") && readersRole.MatchString(s[end].Text)
}

// readersRole is a role by whose name it only reads.
var readersRole = regex.New(`(?i)(?:^|_)(?:ro|read(?:er|ers|only|_only)?|report(?:s|er|ing)?|viewers?|metabase|grafana|looker|tableau|superset|bi|analysts?|analytics)(?:_|$)`)

// onEach drops the clause that says on which machines of a cluster a statement runs.
func onEach(s sql.Statement) sql.Statement {
	for i := range s[:min(len(s), 8)] {
		if s.Is(i, "ON") && s.Is(i+1, "CLUSTER") && i+3 < len(s) {
			return slices.Concat(s[:i], s[i+3:])
		}
	}
	return s
}

func isRight(s sql.Statement, i int) bool {
	return s.Is(i, "ALL", "SELECT", "INSERT", "UPDATE", "DELETE", "USAGE", "EXECUTE", "CREATE", "CONNECT", "ALTER", "DROP", "SUPERUSER", "DBA", "SYSADMIN", "ROLE", "CONTROL", "REFERENCES", "FILE", "RELOAD", "PROCESS") || s.HasAfter(i, "ON") || len(s) == i+3
}

// changesRows tells a statement from the same verb in a clause: FOR UPDATE,
// ON DELETE CASCADE.
func changesRows(s sql.Statement, i int) bool {
	if i > 0 && s.Is(i-1, "FOR", "ON", "KEY", "DO") && (!s.Is(i-1, "DO") || !s.Is(0, "CREATE")) {
		return false
	}
	if s[i].Text == "DELETE" {
		return s.Is(i+1, "FROM") && i+2 < len(s)
	}
	for j := i + 2; j < len(s) && j < i+12; j++ {
		if s.Is(j, "SET") {
			return true
		}
	}
	return false
}
