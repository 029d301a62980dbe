package toolcall

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/toolcall/regex"
)

// dynamic reads the SQL that a statement builds and runs: DO $$…$$, EXEC('…'),
// PREPARE … FROM '…', SET @q = '…'. Literals are read one by one and joined, as
// CONCAT would.
func (r *reading) dynamic(s []token) bool {
	if !isWord(s, 0, "DO", "EXEC", "EXECUTE", "PREPARE", "SET", "DECLARE", "CALL", "BEGIN", "SELECT", "FOR", "IF", "LOOP", "WHILE", "CREATE") || r.nested > maxNested {
		return false
	}
	if isWord(s, 0, "SELECT") && !isWord(s, 1, "DBLINK", "DBLINK_EXEC", "QUERY_TO_XML", "QUERY_TO_XML_AND_XMLSCHEMA") && !isWord(s, len(s)-1, "GEXEC") {
		return false
	}
	if isWord(s, 0, "CREATE") && !anyWordAfter(s[:min(len(s), 6)], 0, "FUNCTION", "PROCEDURE", "EVENT", "TRIGGER") {
		return false
	}
	if isWord(s, 0, "BEGIN", "FOR", "IF", "LOOP", "WHILE") && !anyWordAfter(s, 0, "EXECUTE", "EXEC") {
		return false
	}
	var texts []string
	var built strings.Builder // of literals and codes, in their order
	var format string         // that the literals behind it are put into
	var values []string       // these
	for i, t := range s {
		if t.quoted {
			text := madeOf(s, i)
			texts = append(texts, unquoted(t.text), text)
			built.WriteString(text)
			switch {
			case format == "" && isWord(s, i-2, "FORMAT", "FORMATMESSAGE", "PRINTF"):
				format = text
			case format != "":
				values = append(values, text)
			}
		}
		if !t.quoted && strings.HasPrefix(t.text, "0X") && len(t.text) < maxWritten {
			if raw, err := hex.DecodeString(strings.ToLower(t.text[2:])); err == nil {
				texts = append(texts, strings.ReplaceAll(string(raw), "\x00", ""))
			}
		}
		if isWord(s, i-2, "CHAR", "CHR", "NCHAR") && isWord(s, i-1, "(") {
			if c, err := strconv.Atoi(t.text); err == nil && c > 8 && c < 127 {
				built.WriteByte(byte(c))
			}
		}
	}
	if format != "" {
		texts = append(texts, filled(format, values))
	}
	r.nested++
	defer func() { r.nested-- }()
	for _, text := range append(append(texts, built.String()), r.values.chains(s)...) {
		if !r.spend(costQuery * len(text)) {
			return true
		}
		if !sqlVerb.Matches(text) {
			continue
		}
		if strings.HasSuffix(text, " ") {
			text += unnamed // what the program puts there
		}
		inner := statements(text)
		made := temporaries(inner)
		r.values.assign(inner)
		for _, statement := range inner {
			r.reachesBeyond(statement)
			if !r.losesScratch(statement, made) && r.destructive(statement) {
				return true
			}
		}
	}
	return false
}

// madeOf is what the function around a literal makes of it, where the statement tells.
func madeOf(s []token, i int) string {
	text := unquoted(s[i].text)
	if !isWord(s, i-1, "(") {
		return text
	}
	next := func(n int) string { // the literal or the number so many arguments later
		if at := i + 2*n; at < len(s) && isWord(s, at-1, ",") {
			return unquoted(s[at].text)
		}
		return ""
	}
	switch {
	case isWord(s, i-2, "REVERSE"):
		runes := []rune(text)
		slices.Reverse(runes)
		return string(runes)
	case isWord(s, i-2, "REPLACE") && next(1) != "":
		return strings.ReplaceAll(text, next(1), next(2))
	case isWord(s, i-2, "TRANSLATE"):
		if made, is := translated([]string{"tr", next(1), next(2)}, text); is {
			return made
		}
	case isWord(s, i-2, "LEFT"):
		if n, err := strconv.Atoi(next(1)); err == nil && n >= 0 && n < len(text) {
			return text[:n]
		}
	case isWord(s, i-2, "RIGHT"):
		if n, err := strconv.Atoi(next(1)); err == nil && n >= 0 && n < len(text) {
			return text[len(text)-n:]
		}
	case isWord(s, i-2, "SUBSTR", "SUBSTRING", "MID"):
		from, err := strconv.Atoi(next(1))
		n, err2 := strconv.Atoi(next(2))
		if err == nil && err2 == nil && from > 0 && n >= 0 && from-1+n <= len(text) {
			return text[from-1 : from-1+n]
		}
	case isWord(s, i-2, "UNHEX", "DECODE", "HEXTORAW", "HEX_DECODE_STRING", "FROM_HEX"):
		if raw, err := hex.DecodeString(strings.ToLower(text)); err == nil {
			return strings.ToUpper(string(raw))
		}
	}
	return text
}

// filled puts values into the places of a format; what no literal fills is a name.
func filled(format string, values []string) string {
	return formatPlace.ReplaceAllStringFunc(format[:min(len(format), maxWritten)], func(string) string {
		if len(values) == 0 {
			return unnamed
		}
		value := values[0]
		values = values[1:]
		return value
	})
}

var formatPlace = regex.New(`%(?:\d\$)?[-\d]*[SIL]|\{\}`)

// payeeChange reports whether a change replaces the account that somebody is paid to, or the
// password of a login, of more rows than a key picks.
func payeeChange(s []token, i int) bool {
	if !isWord(s, i, "UPDATE") {
		return false
	}
	at := slices.IndexFunc(s[i:], func(t token) bool { return !t.quoted && t.text == "SET" })
	if at < 0 {
		return false
	}
	set := s[i+at+1:]
	end := slices.IndexFunc(set, func(t token) bool { return !t.quoted && t.text == "WHERE" })
	if end < 0 {
		return false // of every row, which is judged elsewhere
	}
	replaced := false
	for j := range set[:end] {
		column := set[j].text[strings.LastIndexByte(set[j].text, '.')+1:]
		if !isWord(set, j+1, "=") || !paidTo.MatchString(column) || j > 0 && !isWord(set, j-1, ",") {
			continue
		}
		replaced = replaced || ofLiterals(set[j+2:end])
	}
	return replaced && !byKey(condition(set[end+1:], set[end].depth))
}

// ofLiterals reports whether the value that an assignment begins with is made of literals and
// of calls, and of no column: every row gets the same.
func ofLiterals(s []token) bool {
	some := false
	for i, t := range s {
		switch {
		case t.text == "," && t.depth == s[0].depth:
			return some
		case t.quoted || isNumber(t.text):
			some = true
		case isName(t.text) && !isWord(s, i+1, "(") && !isWord(s, i, "N", "E", "AS", "TEXT", "VARCHAR", "CHAR"):
			return false
		}
	}
	return some
}

// byKey reports whether a condition asks for one key, or for some.
func byKey(s []token) bool {
	for j := range s {
		column := s[j].text[strings.LastIndexByte(s[j].text, '.')+1:]
		if isWord(s, j, "OR", "NOT") {
			return false
		}
		if isWord(s, j+1, "=", "IN") && pickingColumn.MatchString(column) {
			return !isWord(s, j+2, "(") || !isWord(s, j+3, "SELECT")
		}
	}
	return false
}

var (
	paidTo        = regex.New(`^(?:\w+_)?(?:IBAN|BIC|SWIFT(?:_CODE)?|BANK_?ACCOUNT\w*|ACCOUNT_?(?:NUMBER|NO)|ROUTING_?(?:NUMBER|NO)|SORT_?CODE|PAYOUT_?(?:ACCOUNT|ADDRESS|EMAIL|METHOD)|WALLET(?:_?ADDRESS)?|PAYPAL(?:_?EMAIL)?|KONTO\w*|PASSWORD(?:_?HASH|_?DIGEST)?|PASSWD|MFA_?SECRET|TOTP_?SECRET)$`)
	pickingColumn = regex.New(`^(?:\w*_)?(?:ID|UUID|GUID|EMAIL|NO|NUMBER|CODE|IBAN|KEY|REF|NAME|USERNAME|LOGIN|SLUG|SKU|OID|PK)$|^\w+ID$`)
)

// unnamed stands for a name that a program makes.
const unnamed = "unnamed"

// servedFile is a file that a server would run or show.
var servedFile = regex.New(`\.(?:php\d?|phtml|jsp|jspx|asp|aspx|ashx|cgi|html?|sh|py|pl|rb|so)$|^/(?:var/www|srv|usr|opt|root|home/[^/]+/\.)`)

// leadsOut reports whether a name that a query reads lies outside the database's own
// folder.
func leadsOut(name string) bool {
	return strings.Contains(name, "://") || outside(strings.ToLower(name))
}

// unquoted returns what a literal holds, of a dollar quote as of an apostrophe.
func unquoted(literal string) string {
	literal = strings.TrimLeft(literal, "NEnel")
	if strings.HasPrefix(literal, "$") {
		if end := strings.IndexByte(literal[1:], '$'); end >= 0 {
			tag := literal[:end+2]
			return strings.TrimSuffix(strings.TrimPrefix(literal, tag), tag)
		}
	}
	return strings.ReplaceAll(strings.Trim(literal, "'"), "''", "'")
}

// workspaceData are files of data in the workspace. A server would not read or write there: it
// takes only whole paths.
var workspaceData = regex.New(`(?i)^(?:\./)?\w[\w-]*(?:/[\w*-]+)*\.(?:csv|tsv|parquet|jsonl?|arrow)$`)

// loadedObject is an object of a cloud's store, which a warehouse loads by its own rights.
var loadedObject = regex.New(`^(?i)(?:s3|gs|gcs|azure|abfss?|wasbs?)://[\w.-]+/`)

// leavesDatabase finds statements that read or write files, load code, or make an
// account that may do anything.
func leavesDatabase(s []token) bool {
	switch {
	case isWord(s, 0, "COPY"):
		for i := range s {
			if isWord(s, i, "TO", "FROM", "INTO") && i+1 < len(s) && s[i+1].quoted && !workspaceData.MatchString(unquoted(s[i+1].text)) && (!isWord(s, i, "FROM") || !loadedObject.MatchString(unquoted(s[i+1].text))) {
				return true
			}
		}
	case isWord(s, 0, "LOAD"):
		return isWord(s, 1, "DATA", "XML") && anyWordAfter(s, 0, "INFILE")
	case isWord(s, 0, "VACUUM") && anyWordAfter(s, 0, "RETAIN"):
		return isWord(s, len(s)-2, "0")
	case isWord(s, 0, "ATTACH", "VACUUM"):
		for _, t := range s {
			if name := strings.ToLower(unquoted(t.text)); t.quoted && (outside(name) || servedFile.MatchString(name)) {
				return true
			}
		}
	case isWord(s, 0, "PRAGMA"):
		return anyWordAfter(s, 0, "WRITABLE_SCHEMA", "TRUSTED_SCHEMA", "LOAD_EXTENSION")
	case isWord(s, 0, "UNLOAD"):
		return anyWordAfter(s, 0, "TO")
	case isWord(s, 0, "BULK"):
		return isWord(s, 1, "INSERT")
	case isWord(s, 0, "EXPORT"):
		return isWord(s, 1, "DATA", "DATABASE", "TABLE")
	case isWord(s, 0, "PURGE"):
		if keepsDays.MatchString(joinTokens(s)) {
			return false
		}
		return isWord(s, 1, "BINARY", "MASTER", "RECYCLEBIN", "DBA_RECYCLEBIN", "TABLE")
	case isWord(s, 0, "RESET"):
		return isWord(s, 1, "MASTER", "BINARY", "SLAVE")
	case isWord(s, 0, "SET"):
		return isWord(s, 1, "GLOBAL") && anyWordAfter(s, 1, "GENERAL_LOG_FILE", "SLOW_QUERY_LOG_FILE", "GENERAL_LOG", "LOCAL_INFILE", "SECURE_FILE_PRIV", "LOG_BIN_TRUST_FUNCTION_CREATORS", "READ_ONLY") || isWord(s, 1, "ROLE") && isWord(s, 2, "POSTGRES", "ADMIN", "RDS_SUPERUSER") || isWord(s, 1, "SESSION") && isWord(s, 2, "AUTHORIZATION")
	case isWord(s, 0, "ALTER"):
		return anyWordAfter(s, 0, "DISABLE") && anyWordAfter(s, 0, "SECURITY", "TRIGGER", "AUDIT") || isWord(s, 1, "DATABASE") && anyWordAfter(s, 1, "SINGLE_USER", "OFFLINE") || isWord(s, 3, "DELETE", "UPDATE") && !hasRestrictingWhere(s[3:]) || keepsNothing(s)
	case isWord(s, 0, "DETACH"):
		return isWord(s, 1, "TABLE", "DATABASE") && anyWordAfter(s, 1, "PERMANENTLY") // it comes back with no restart
	case isWord(s, 0, "SYSTEM"):
		return isWord(s, 1, "SHUTDOWN", "KILL")
	case isWord(s, 0, "RESTORE"):
		return isWord(s, 1, "DATABASE") && anyWordAfter(s, 1, "REPLACE")
	case isWord(s, 0, "INSERT"):
		return isWord(s, 1, "INTO") && isWord(s, 2, "MYSQL") || isWord(s, 1, "OVERWRITE") && !anyWordAfter(s, 1, "PARTITION")
	case isWord(s, 0, "CREATE"):
		return createsPower(s)
	case isWord(s, 0, "EXEC", "EXECUTE"):
		return isWord(s, 1, "SP_CONFIGURE") && anyWordAfter(s, 1, ",") || isWord(s, 1, "SP_OAMETHOD", "SP_ADDSRVROLEMEMBER", "SP_ADDEXTENDEDPROC")
	}
	for i := range s {
		if isWord(s, i, "OPENROWSET", "OPENDATASOURCE") && isWord(s, i+1, "(") {
			return true
		}
	}
	return false
}

// keepsNothing finds what lets a table forget its past at once, or its rows after seconds.
func keepsNothing(s []token) bool {
	for i := range s {
		switch {
		case isWord(s, i, "DATA_RETENTION_TIME_IN_DAYS") && isWord(s, i+1, "=") && isWord(s, i+2, "0"),
			isWord(s, i, "TTL") && isWord(s, len(s)-1, "SECOND", "MINUTE"),
			isWord(s, i, "UNSET") && isWord(s, i+1, "NETWORK_POLICY"),
			isWord(s, i, "NETWORK_POLICY") && i+2 < len(s) && unquoted(s[i+2].text) == "":
			return true
		}
	}
	return false
}

func createsPower(s []token) bool {
	if isWord(s, 1, "OR") && isWord(s, 3, "TABLE") && len(s) > 5 {
		for i := 5; i+1 < len(s); i++ {
			if isWord(s, i, "FROM") && s[i+1].text == s[4].text {
				return true // the table is made of a part of itself
			}
		}
	}
	at := 1
	for isWord(s, at, "OR", "REPLACE") {
		at++
	}
	switch {
	case isWord(s, at, "USER", "ROLE"):
		return anyWordAfter(s, at, "SUPERUSER", "CREATEROLE", "SYSADMIN")
	case isWord(s, at, "EXTENSION"):
		return strings.HasSuffix(joinTokens(s), "U") && strings.Contains(joinTokens(s), " PL") || anyWordAfter(s, at, "DBLINK", "FILE_FDW")
	case isWord(s, at, "FUNCTION", "PROCEDURE"):
		for i := range s {
			if isWord(s, i, "LANGUAGE") && (isWord(s, i+1, "C", "PLPYTHONU", "PLPYTHON3U", "PLPERLU", "PLSH") || isWord(s, i+1, "'C'")) {
				return true
			}
		}
		return anyWordAfter(s, at, "SONAME")
	}
	return false
}

// losesScratch reports whether a statement drops or empties only what was made to be
// dropped: tables whose names say that they are temporary, staging or of tests, those that the
// same text made so, databases of tests, and what the user says by its name is to go.
func (r *reading) losesScratch(s []token, made map[string]bool) bool {
	at := 2
	switch {
	case isWord(s, 0, "DROP") && isWord(s, 1, "ROLE", "USER", "LOGIN"):
		at := 2
		if isWord(s, at, "IF") {
			at += 2
		}
		return at < len(s) && (len(s) == at+1 || isWord(s, at+1, "@") && len(s) == at+3) && (r.toGo(s[at].text) || isScratch(unquoted(s[at].text)))
	case isWord(s, 0, "DROP") && isWord(s, 1, "OWNED") && isWord(s, 2, "BY"):
		return len(s) == 4 && r.toGo(s[3].text)
	case isWord(s, 0, "REVOKE") && isWord(s, 2, "FROM"):
		return len(s) == 4 && r.toGo(s[3].text)
	case isWord(s, 0, "ALTER") && isWord(s, 1, "TABLE") && isWord(s, 3, "DROP") && isWord(s, 4, "PARTITION"):
		return len(s) == 6 && s[5].quoted && r.toGo(unquoted(s[5].text))
	case isWord(s, 0, "DROP") && isWord(s, 1, "TABLE", "TEMPORARY", "TEMP", "DATABASE", "SCHEMA"):
	case isWord(s, 0, "TRUNCATE") && !anyWordAfter(s, 0, "CASCADE"):
		at = 1
	case isWord(s, 0, "DELETE") && isWord(s, 1, "FROM") && len(s) == 3:
	case isWord(s, 0, "DELETE") && isWord(s, 1, "FROM") && len(s) == 5 && isWord(s, 3, "WHERE") && isWord(s, 4, "TRUE"): // as BigQuery wants it
		s = s[:3]
	default:
		return false
	}
	names := 0
	for i := at; i < len(s); i++ {
		if isWord(s, i, "IF", "EXISTS", "TABLE", "ONLY", ",", "CASCADE", "RESTRICT", "RESTART", "IDENTITY", "PURGE") {
			continue
		}
		name := strings.Trim(s[i].text, "`\"[]'")
		own := name[strings.LastIndexByte(name, '.')+1:]
		if !isScratch(name) && !made[own] && (isWord(s, 1, "DATABASE", "SCHEMA") || !r.toGo(own)) {
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
func temporaries(all [][]token) map[string]bool {
	made := make(map[string]bool)
	for _, s := range all {
		if isWord(s, 0, "CREATE") && isWord(s, 1, "TEMP", "TEMPORARY") && isWord(s, 2, "TABLE") {
			at := 3
			for isWord(s, at, "IF", "NOT", "EXISTS") {
				at++
			}
			if at < len(s) {
				made[s[at].text] = true
			}
		}
	}
	return made
}

// mergesAll finds a MERGE that changes every row: its condition always holds.
func mergesAll(s []token) bool {
	if !isWord(s, 0, "MERGE") {
		return false
	}
	for i := range s {
		if !isWord(s, i, "ON") || s[i].depth != s[0].depth {
			continue
		}
		for j := i + 1; j < len(s); j++ {
			if isWord(s, j, "WHEN") && s[j].depth == s[0].depth {
				return alwaysTrueLong(s[i+1:j]) && (anyWordAfter(s, j, "DELETE") || anyWordAfter(s, j, "UPDATE")) ||
					neverMatches(s[i+1:j]) && isWord(s, j+1, "NOT") && anyWordAfter(s, j, "SOURCE") && anyWordAfter(s, j, "DELETE")
			}
		}
	}
	return false
}

// neverMatches reports whether a condition compares two numbers that differ: each row is then
// one that the source has not.
func neverMatches(s []token) bool {
	for len(s) > 2 && s[0].text == "(" && s[len(s)-1].text == ")" {
		s = s[1 : len(s)-1]
	}
	return len(s) == 3 && s[1].text == "=" && s[0].text != s[2].text && isNumber(s[0].text) && isNumber(s[2].text)
}

// shortDelete finds the DELETE of the dialects that need no FROM right after it.
// It is for arguments that are surely SQL: in a sentence anything follows delete.
func shortDelete(s []token) bool {
	if !isWord(s, 0, "DELETE") || len(s) < 2 || isWord(s, 1, "FROM") || s[1].quoted {
		return false
	}
	return !hasRestrictingWhere(s)
}
