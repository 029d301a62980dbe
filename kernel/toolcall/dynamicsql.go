package toolcall

import (
	"strings"
)

// dynamic reads the SQL that a statement builds and runs: DO $$…$$, EXEC('…'),
// PREPARE … FROM '…', SET @q = '…'. Literals are read one by one and joined, as
// CONCAT would.
func (r *reading) dynamic(s []token) bool {
	if !isWord(s, 0, "DO", "EXEC", "EXECUTE", "PREPARE", "SET", "DECLARE", "CALL", "BEGIN", "SELECT") || r.nested > maxNested {
		return false
	}
	if isWord(s, 0, "SELECT") && !isWord(s, 1, "DBLINK", "DBLINK_EXEC", "QUERY_TO_XML", "QUERY_TO_XML_AND_XMLSCHEMA") {
		return false
	}
	if isWord(s, 0, "BEGIN") && !anyWordAfter(s, 0, "EXECUTE", "EXEC") {
		return false
	}
	var texts []string
	for _, t := range s {
		if t.quoted {
			texts = append(texts, unquoted(t.text))
		}
	}
	r.nested++
	defer func() { r.nested-- }()
	for _, text := range append(texts, strings.Join(texts, "")) {
		if !r.spend(costQuery * len(text)) {
			return true
		}
		if !sqlVerb.MatchString(text) {
			continue
		}
		for _, statement := range statements(text) {
			if r.destructive(statement) {
				return true
			}
		}
	}
	return false
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

// leavesDatabase finds statements that read or write files, load code, or make an
// account that may do anything.
func leavesDatabase(s []token) bool {
	switch {
	case isWord(s, 0, "COPY"):
		for i := range s {
			if isWord(s, i, "TO", "FROM") && i+1 < len(s) && s[i+1].quoted {
				return true
			}
		}
	case isWord(s, 0, "LOAD"):
		return isWord(s, 1, "DATA", "XML") && anyWordAfter(s, 0, "INFILE")
	case isWord(s, 0, "ATTACH"):
		for _, t := range s {
			if t.quoted && outside(strings.ToLower(unquoted(t.text))) {
				return true
			}
		}
	case isWord(s, 0, "CREATE"):
		return createsPower(s)
	case isWord(s, 0, "EXEC", "EXECUTE"):
		return isWord(s, 1, "SP_CONFIGURE", "SP_OAMETHOD", "SP_ADDSRVROLEMEMBER", "SP_ADDEXTENDEDPROC")
	}
	for i := range s {
		if isWord(s, i, "OPENROWSET", "OPENDATASOURCE") && isWord(s, i+1, "(") {
			return true
		}
	}
	return false
}

func createsPower(s []token) bool {
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

// dropsTemporary reports whether a DROP names only tables that were made to be
// dropped: those called tmp or temp, and those that the same text made so.
func dropsTemporary(s []token, made map[string]bool) bool {
	if !isWord(s, 0, "DROP") || !isWord(s, 1, "TABLE", "TEMPORARY", "TEMP") {
		return false
	}
	names := 0
	for i := 2; i < len(s); i++ {
		if isWord(s, i, "IF", "EXISTS", "TABLE", ",", "CASCADE", "RESTRICT") {
			continue
		}
		name := strings.Trim(s[i].text, "`\"[]'")
		name = name[strings.LastIndexByte(name, '.')+1:]
		if !strings.HasPrefix(name, "TMP") && !strings.HasPrefix(name, "TEMP_") && !strings.HasPrefix(name, "#") && !made[name] {
			return false
		}
		names++
	}
	return names > 0
}

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
				return alwaysTrueLong(s[i+1:j]) && (anyWordAfter(s, j, "DELETE") || anyWordAfter(s, j, "UPDATE"))
			}
		}
	}
	return false
}

// shortDelete finds the DELETE of the dialects that need no FROM right after it.
// It is for arguments that are surely SQL: in a sentence anything follows delete.
func shortDelete(s []token) bool {
	if !isWord(s, 0, "DELETE") || len(s) < 2 || isWord(s, 1, "FROM") || s[1].quoted {
		return false
	}
	return !hasRestrictingWhere(s)
}
