package toolcall

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/sql"
)

// dynamic reads the SQL that a statement builds and runs: DO $$…$$, EXEC('…'),
// PREPARE … FROM '…', SET @q = '…'. Literals are read one by one and joined, as
// CONCAT would.
func (r *reading) dynamic(s sql.Statement) bool {
	if !s.Is(0, "DO", "EXEC", "EXECUTE", "PREPARE", "SET", "DECLARE", "CALL", "BEGIN", "SELECT", "FOR", "IF", "LOOP", "WHILE", "CREATE") || r.nested > maxNested {
		return false
	}
	if s.Is(0, "SELECT") && !s.Is(1, "DBLINK", "DBLINK_EXEC", "QUERY_TO_XML", "QUERY_TO_XML_AND_XMLSCHEMA") && !s.Is(len(s)-1, "GEXEC") {
		return false
	}
	if s.Is(0, "CREATE") && !s[:min(len(s), 6)].HasAfter(0, "FUNCTION", "PROCEDURE", "EVENT", "TRIGGER") {
		return false
	}
	if s.Is(0, "BEGIN", "FOR", "IF", "LOOP", "WHILE") && !s.HasAfter(0, "EXECUTE", "EXEC") {
		return false
	}
	var texts []string
	var built strings.Builder // of literals and codes, in their order
	var format string         // that the literals behind it are put into
	var values []string       // these
	for i, t := range s {
		if t.Quoted {
			text := s.Made(i)
			texts = append(texts, t.Value(), text)
			built.WriteString(text)
			switch {
			case format == "" && s.Is(i-2, "FORMAT", "FORMATMESSAGE", "PRINTF"):
				format = text
			case format != "":
				values = append(values, text)
			}
		}
		if !t.Quoted && strings.HasPrefix(t.Text, "0X") && len(t.Text) < maxWritten {
			if raw, err := hex.DecodeString(strings.ToLower(t.Text[2:])); err == nil {
				texts = append(texts, strings.ReplaceAll(string(raw), "\x00", ""))
			}
		}
		if s.Is(i-2, "CHAR", "CHR", "NCHAR") && s.Is(i-1, "(") {
			if c, err := strconv.Atoi(t.Text); err == nil && c > 8 && c < 127 {
				built.WriteByte(byte(c))
			}
		}
	}
	if format != "" {
		texts = append(texts, sql.Filled(format, values))
	}
	r.nested++
	defer func() { r.nested-- }()
	for _, text := range append(append(texts, built.String()), r.values.Chains(s)...) {
		if !r.spend(costQuery * len(text)) {
			return true
		}
		if !sqlVerb.Matches(text) {
			continue
		}
		if strings.HasSuffix(text, " ") {
			text += sql.Unnamed // what the program puts there
		}
		inner := sql.Statements(text)
		made := temporaries(inner)
		r.values.Assign(inner)
		for _, statement := range inner {
			r.reachesBeyond(statement)
			if !r.losesScratch(statement, made) && r.destructive(statement) {
				return true
			}
		}
	}
	return false
}

// payeeChange reports whether a change replaces the account that somebody is paid to, or the
// password of a login, of more rows than a key picks.
func payeeChange(s sql.Statement, i int) bool {
	if !s.Is(i, "UPDATE") {
		return false
	}
	at := slices.IndexFunc(s[i:], func(t sql.Token) bool { return !t.Quoted && t.Text == "SET" })
	if at < 0 {
		return false
	}
	set := s[i+at+1:]
	end := slices.IndexFunc(set, func(t sql.Token) bool { return !t.Quoted && t.Text == "WHERE" })
	if end < 0 {
		return false // of every row, which is judged elsewhere
	}
	replaced := false
	for j := range set[:end] {
		column := set[j].Name()
		if !set.Is(j+1, "=") || !paidTo.MatchString(column) || j > 0 && !set.Is(j-1, ",") {
			continue
		}
		replaced = replaced || ofLiterals(set[j+2:end])
	}
	return replaced && !set[end+1:].Condition(set[end].Depth).ByKey()
}

// ofLiterals reports whether the value that an assignment begins with is made of literals and
// of calls, and of no column: every row gets the same.
func ofLiterals(s sql.Statement) bool {
	some := false
	for i, t := range s {
		switch {
		case t.Text == "," && t.Depth == s[0].Depth:
			return some
		case t.Quoted || sql.IsNumber(t.Text):
			some = true
		case sql.IsName(t.Text) && !s.Is(i+1, "(") && !s.Is(i, "N", "E", "AS", "TEXT", "VARCHAR", "CHAR"):
			return false
		}
	}
	return some
}

var paidTo = regex.New(`^(?:\w+_)?(?:IBAN|BIC|SWIFT(?:_CODE)?|BANK_?ACCOUNT\w*|ACCOUNT_?(?:NUMBER|NO)|ROUTING_?(?:NUMBER|NO)|SORT_?CODE|PAYOUT_?(?:ACCOUNT|ADDRESS|EMAIL|METHOD)|WALLET(?:_?ADDRESS)?|PAYPAL(?:_?EMAIL)?|KONTO\w*|PASSWORD(?:_?HASH|_?DIGEST)?|PASSWD|MFA_?SECRET|TOTP_?SECRET)$`)

// servedFile is a file that a server would run or show.
var servedFile = regex.New(`\.(?:php\d?|phtml|jsp|jspx|asp|aspx|ashx|cgi|html?|sh|py|pl|rb|so)$|^/(?:var/www|srv|usr|opt|root|home/[^/]+/\.)`)

// leadsOut reports whether a name that a query reads lies outside the database's own
// folder.
func leadsOut(name string) bool {
	return strings.Contains(name, "://") || file.IsOutside(strings.ToLower(name))
}

// workspaceData are files of data in the workspace. A server would not read or write there: it
// takes only whole paths.
var workspaceData = regex.New(`(?i)^(?:\./)?\w[\w-]*(?:/[\w*-]+)*\.(?:csv|tsv|parquet|jsonl?|arrow)$`)

// loadedObject is an object of a cloud's store, which a warehouse loads by its own rights.
var loadedObject = regex.New(`^(?i)(?:s3|gs|gcs|azure|abfss?|wasbs?)://[\w.-]+/`)

// leavesDatabase finds statements that read or write files, load code, or make an
// account that may do anything.
func leavesDatabase(s sql.Statement) bool {
	switch {
	case s.Is(0, "COPY"):
		for i := range s {
			if s.Is(i, "TO", "FROM", "INTO") && i+1 < len(s) && s[i+1].Quoted && !workspaceData.MatchString(s[i+1].Value()) && (!s.Is(i, "FROM") || !loadedObject.MatchString(s[i+1].Value())) {
				return true
			}
		}
	case s.Is(0, "LOAD"):
		return s.Is(1, "DATA", "XML") && s.HasAfter(0, "INFILE")
	case s.Is(0, "VACUUM") && s.HasAfter(0, "RETAIN"):
		return s.Is(len(s)-2, "0")
	case s.Is(0, "ATTACH", "VACUUM"):
		for _, t := range s {
			if name := strings.ToLower(t.Value()); t.Quoted && (file.IsOutside(name) || servedFile.MatchString(name)) {
				return true
			}
		}
	case s.Is(0, "PRAGMA"):
		return s.HasAfter(0, "WRITABLE_SCHEMA", "TRUSTED_SCHEMA", "LOAD_EXTENSION")
	case s.Is(0, "UNLOAD"):
		return s.HasAfter(0, "TO")
	case s.Is(0, "BULK"):
		return s.Is(1, "INSERT")
	case s.Is(0, "EXPORT"):
		return s.Is(1, "DATA", "DATABASE", "TABLE")
	case s.Is(0, "PURGE"):
		if keepsDays.MatchString(s.String()) {
			return false
		}
		return s.Is(1, "BINARY", "MASTER", "RECYCLEBIN", "DBA_RECYCLEBIN", "TABLE")
	case s.Is(0, "RESET"):
		return s.Is(1, "MASTER", "BINARY", "SLAVE")
	case s.Is(0, "SET"):
		return s.Is(1, "GLOBAL") && s.HasAfter(1, "GENERAL_LOG_FILE", "SLOW_QUERY_LOG_FILE", "GENERAL_LOG", "LOCAL_INFILE", "SECURE_FILE_PRIV", "LOG_BIN_TRUST_FUNCTION_CREATORS", "READ_ONLY") || s.Is(1, "ROLE") && s.Is(2, "POSTGRES", "ADMIN", "RDS_SUPERUSER") || s.Is(1, "SESSION") && s.Is(2, "AUTHORIZATION")
	case s.Is(0, "ALTER"):
		return s.HasAfter(0, "DISABLE") && s.HasAfter(0, "SECURITY", "TRIGGER", "AUDIT") || s.Is(1, "DATABASE") && s.HasAfter(1, "SINGLE_USER", "OFFLINE") || s.Is(3, "DELETE", "UPDATE") && !s[3:].Restricted() || keepsNothing(s)
	case s.Is(0, "DETACH"):
		return s.Is(1, "TABLE", "DATABASE") && s.HasAfter(1, "PERMANENTLY") // it comes back with no restart
	case s.Is(0, "SYSTEM"):
		return s.Is(1, "SHUTDOWN", "KILL")
	case s.Is(0, "RESTORE"):
		return s.Is(1, "DATABASE") && s.HasAfter(1, "REPLACE")
	case s.Is(0, "INSERT"):
		return s.Is(1, "INTO") && s.Is(2, "MYSQL") || s.Is(1, "OVERWRITE") && !s.HasAfter(1, "PARTITION")
	case s.Is(0, "CREATE"):
		return createsPower(s)
	case s.Is(0, "EXEC", "EXECUTE"):
		return s.Is(1, "SP_CONFIGURE") && s.HasAfter(1, ",") || s.Is(1, "SP_OAMETHOD", "SP_ADDSRVROLEMEMBER", "SP_ADDEXTENDEDPROC")
	}
	for i := range s {
		if s.Is(i, "OPENROWSET", "OPENDATASOURCE") && s.Is(i+1, "(") {
			return true
		}
	}
	return false
}

// keepsNothing finds what lets a table forget its past at once, or its rows after seconds.
func keepsNothing(s sql.Statement) bool {
	for i := range s {
		switch {
		case s.Is(i, "DATA_RETENTION_TIME_IN_DAYS") && s.Is(i+1, "=") && s.Is(i+2, "0"),
			s.Is(i, "TTL") && s.Is(len(s)-1, "SECOND", "MINUTE"),
			s.Is(i, "UNSET") && s.Is(i+1, "NETWORK_POLICY"),
			s.Is(i, "NETWORK_POLICY") && i+2 < len(s) && s[i+2].Value() == "":
			return true
		}
	}
	return false
}

func createsPower(s sql.Statement) bool {
	if s.Is(1, "OR") && s.Is(3, "TABLE") && len(s) > 5 {
		for i := 5; i+1 < len(s); i++ {
			if s.Is(i, "FROM") && s[i+1].Text == s[4].Text {
				return true // the table is made of a part of itself
			}
		}
	}
	at := 1
	for s.Is(at, "OR", "REPLACE") {
		at++
	}
	switch {
	case s.Is(at, "USER", "ROLE"):
		return s.HasAfter(at, "SUPERUSER", "CREATEROLE", "SYSADMIN")
	case s.Is(at, "EXTENSION"):
		return strings.HasSuffix(s.String(), "U") && strings.Contains(s.String(), " PL") || s.HasAfter(at, "DBLINK", "FILE_FDW")
	case s.Is(at, "FUNCTION", "PROCEDURE"):
		for i := range s {
			if s.Is(i, "LANGUAGE") && (s.Is(i+1, "C", "PLPYTHONU", "PLPYTHON3U", "PLPERLU", "PLSH") || s.Is(i+1, "'C'")) {
				return true
			}
		}
		return s.HasAfter(at, "SONAME")
	}
	return false
}

// losesScratch reports whether a statement drops or empties only what was made to be
// dropped: tables whose names say that they are temporary, staging or of tests, those that the
// same text made so, databases of tests, and what the user says by its name is to go.
func (r *reading) losesScratch(s sql.Statement, made map[string]bool) bool {
	at := 2
	switch {
	case s.Is(0, "DROP") && s.Is(1, "ROLE", "USER", "LOGIN"):
		at := 2
		if s.Is(at, "IF") {
			at += 2
		}
		return at < len(s) && (len(s) == at+1 || s.Is(at+1, "@") && len(s) == at+3) && (r.toGo(s[at].Text) || isScratch(s[at].Value()))
	case s.Is(0, "DROP") && s.Is(1, "OWNED") && s.Is(2, "BY"):
		return len(s) == 4 && r.toGo(s[3].Text)
	case s.Is(0, "REVOKE") && s.Is(2, "FROM"):
		return len(s) == 4 && r.toGo(s[3].Text)
	case s.Is(0, "ALTER") && s.Is(1, "TABLE") && s.Is(3, "DROP") && s.Is(4, "PARTITION"):
		return len(s) == 6 && s[5].Quoted && r.toGo(s[5].Value())
	case s.Is(0, "DROP") && s.Is(1, "TABLE", "TEMPORARY", "TEMP", "DATABASE", "SCHEMA"):
	case s.Is(0, "TRUNCATE") && !s.HasAfter(0, "CASCADE"):
		at = 1
	case s.Is(0, "DELETE") && s.Is(1, "FROM") && len(s) == 3:
	case s.Is(0, "DELETE") && s.Is(1, "FROM") && len(s) == 5 && s.Is(3, "WHERE") && s.Is(4, "TRUE"): // as BigQuery wants it
		s = s[:3]
	default:
		return false
	}
	names := 0
	for i := at; i < len(s); i++ {
		if s.Is(i, "IF", "EXISTS", "TABLE", "ONLY", ",", "CASCADE", "RESTRICT", "RESTART", "IDENTITY", "PURGE") {
			continue
		}
		name := strings.Trim(s[i].Text, "`\"[]'")
		own := name[strings.LastIndexByte(name, '.')+1:]
		if !isScratch(name) && !made[own] && (s.Is(1, "DATABASE", "SCHEMA") || !r.toGo(own)) {
			return false
		}
		names++
	}
	return names > 0
}

// keepsDays takes away the binary logs that are older than some days.
var keepsDays = regex.New(`^ ?PURGE BINARY LOGS BEFORE (?:NOW ?\( ?\)|CURRENT_TIMESTAMP|CURDATE ?\( ?\)) - INTERVAL (?:[3-9]|[1-9]\d+) DAY ?$`)

// isScratch reports whether a name, of a table in a schema perhaps, says that what it names may
// be lost.
func isScratch(name string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToUpper(name), "."), scratchName.MatchString)
}

var scratchName = regex.New(`^(?:#|TMP|(?:TEMP|STG|STAGING|SCRATCH|TEST|DEMO|UAT|QA|TST|SBX|PLAYGROUND|DUMMY|DENEME)_|(?:TEMP|STG|STAGING|SCRATCH|PLAYGROUND|UAT|DEMO|TST|SBX)$)|_(?:TMP|TEMP|STG|STAGING|SCRATCH|TEST|DEMO|UAT|QA|TST|SBX|PLAYGROUND|DUMMY|DENEME)\d*$|^(?:PR|MR|CI)_?\d+(?:_|$)|^(?:REVIEW_?APP|PREVIEW|SANDBOX|JEST|PYTEST)(?:_|$)|_(?:PREVIEW|SANDBOX|PR_?\d+)$`)

// temporaries lists the tables that the statements make for themselves.
func temporaries(all []sql.Statement) map[string]bool {
	made := make(map[string]bool)
	for _, s := range all {
		if s.Is(0, "CREATE") && s.Is(1, "TEMP", "TEMPORARY") && s.Is(2, "TABLE") {
			at := 3
			for s.Is(at, "IF", "NOT", "EXISTS") {
				at++
			}
			if at < len(s) {
				made[s[at].Text] = true
			}
		}
	}
	return made
}

// mergesAll finds a MERGE that changes every row: its condition always holds.
func mergesAll(s sql.Statement) bool {
	if !s.Is(0, "MERGE") {
		return false
	}
	for i := range s {
		if !s.Is(i, "ON") || s[i].Depth != s[0].Depth {
			continue
		}
		for j := i + 1; j < len(s); j++ {
			if s.Is(j, "WHEN") && s[j].Depth == s[0].Depth {
				return s[i+1:j].AlwaysTrue() && (s.HasAfter(j, "DELETE") || s.HasAfter(j, "UPDATE")) ||
					s[i+1:j].NeverMatches() && s.Is(j+1, "NOT") && s.HasAfter(j, "SOURCE") && s.HasAfter(j, "DELETE")
			}
		}
	}
	return false
}

// shortDelete finds the DELETE of the dialects that need no FROM right after it.
// It is for arguments that are surely SQL: in a sentence anything follows delete.
func shortDelete(s sql.Statement) bool {
	if !s.Is(0, "DELETE") || len(s) < 2 || s.Is(1, "FROM") || s[1].Quoted {
		return false
	}
	return !s.Restricted()
}
