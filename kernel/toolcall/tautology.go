package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/toolcall/regex"
)

// alwaysTrue reports whether a condition holds for every row. It knows the shapes
// that people write to get past a check for WHERE: 1=1, 'a'='a', id=id, true,
// x OR 1=1, NOT false, 1 IS NOT NULL, name LIKE '%'. An empty condition holds for
// every row too.
func alwaysTrue(s []token, nested int) bool {
	s = unparenthesised(s)
	if len(s) == 0 || nested > maxAlternation {
		return true
	}
	depth := s[0].depth
	if parts := splitAt(s, depth, "OR", "||"); len(parts) > 1 {
		for _, p := range parts {
			if alwaysTrue(p, nested+1) {
				return true
			}
		}
		return complementary(parts)
	}
	if parts := splitAt(s, depth, "AND", "&&"); len(parts) > 1 && !betweenValues(s) {
		for _, p := range parts {
			if !alwaysTrue(p, nested+1) {
				return false
			}
		}
		return true
	}
	return constantComparison(s) || namesNothing(s) || failsNoRow(s)
}

// failsNoRow finds the comparisons that every row passes because of what they compare: a
// column with itself, a length with nothing, the time of a row's making with now, a key with
// numbers that no key has, and a look for any row at all.
func failsNoRow(s []token) bool {
	if len(s) > maxComparison || len(s) < 3 {
		return false
	}
	text := joinTokens(s)
	if isWord(s, 0, "EXISTS") && !strings.Contains(text, " WHERE ") && !strings.Contains(text, " HAVING ") {
		return true
	}
	if m := sizeCompared.FindStringSubmatch(text); m != nil {
		return true
	}
	if s[0].quoted || !isName(s[0].text) {
		return false
	}
	column := s[0].text[strings.LastIndexByte(s[0].text, '.')+1:]
	value := s[len(s)-1].text
	switch {
	case isWord(s, 1, "<", "<=") && madeAt.MatchString(column):
		return nowFunction.MatchString(joinTokens(s[2:]))
	case isWord(s, 1, ">", ">=") && len(s) == 3 && s[2].quoted:
		return longAgo.MatchString(unquoted(value))
	case isWord(s, 1, "<", "<=") && len(s) == 3 && keyColumn(column):
		return isNumber(value) && len(value) > 9
	case isWord(s, 1, "NOT") && isWord(s, 2, "IN") && len(s) == 6 && keyColumn(column):
		return s[4].text == "0" || s[4].text == "-1"
	case isWord(s, 1, "BETWEEN") && len(s) == 5:
		return s[2].text == s[0].text && s[4].text == s[0].text
	case isWord(s, 1, "IN", "=") && len(s) == 5 && isWord(s, 2, "("):
		return s[3].text == s[0].text
	case isWord(s, len(s)-2, "~", "~*", "REGEXP", "RLIKE") && s[len(s)-1].quoted && len(s) < 7:
		return strings.Trim(unquoted(value), "^$.*") == ""
	}
	return false
}

var (
	sizeCompared = regex.New(`^(?:(?:CHAR_|CHARACTER_|OCTET_)?LENGTH|LEN|ABS|DATALENGTH) \( [\w.]+ \) (?:>= 0|> -\d+)$`)
	madeAt       = regex.New(`^(?:CREATED|INSERTED|ADDED|UPDATED|MODIFIED|DATE_CREATED|DATE_ADDED)(?:_?(?:AT|ON|DATE|TIME|TS))?$`)
	nowFunction  = regex.New(`^(?:(?:NOW|GETDATE|SYSDATE|GETUTCDATE|SYSDATETIME|CURRENT_TIMESTAMP|DATETIME) \( (?:'NOW' )?\)|CURRENT_TIMESTAMP|CURRENT_DATE|SYSDATE|SYSTIMESTAMP|LOCALTIMESTAMP)$`)
	longAgo      = regex.New(`^(?:0001|1[0-8]\d\d|19[0-6]\d|1970)-\d\d-\d\d`)
)

func betweenValues(s []token) bool {
	return len(s) == 5 && isWord(s, 1, "BETWEEN") && isValue(s[0]) && isValue(s[2]) && isValue(s[4])
}

// namesNothing reports whether a condition names no column: it then holds for all
// rows or for none, and tells no row from another. What plainly fails is left out.
func namesNothing(s []token) bool {
	if len(s) > maxComparison || len(s) == 1 || s[0].quoted && len(s) == 1 {
		return false
	}
	if len(s) == 3 && isValue(s[0]) && isValue(s[2]) {
		return false // constantComparison has judged it
	}
	for i, t := range s {
		switch {
		case t.quoted || isNumber(t.text) || isWord(s, i+1, "(") && isName(t.text):
		case isWord(s, i, conditionWords...):
		case isName(t.text) || strings.ContainsAny(t.text, "?$:@"):
			return false
		}
	}
	return true
}

var conditionWords = strings.Fields("AND OR NOT IS NULL TRUE FALSE IN LIKE BETWEEN EXISTS SELECT CASE WHEN THEN ELSE END ANY ALL SOME ARRAY")

func isName(text string) bool {
	return text != "" && (text[0] >= 'A' && text[0] <= 'Z' || text[0] == '_' || text[0] >= 0x80)
}

// selectsItself finds id IN (SELECT id FROM users) on users: every row is in it.
func selectsItself(s []token, table string) bool {
	s = unparenthesised(s)
	text := strings.ReplaceAll(strings.ReplaceAll(joinTokens(s[:min(len(s), maxComparison)]), " = ANY ", " IN "), " = SOME ", " IN ")
	column, rest, found := strings.Cut(text, " IN ( SELECT ")
	if !found || table == "" || strings.Contains(column, " ") {
		return false
	}
	rest, found = strings.CutPrefix(rest, column+" FROM "+table+" ")
	return found && (rest == ")" || rest == "WHERE TRUE )" || rest == "WHERE 1 = 1 )" || rest == "WHERE 1 )")
}

// changedTable is the table that a DELETE or UPDATE names.
func changedTable(s []token) string {
	for i := range s {
		if isWord(s, i, "FROM", "UPDATE") && i+1 < len(s) {
			return s[i+1].text
		}
	}
	return ""
}

// opposite has for each comparison the one that holds exactly where it fails.
var opposite = map[string]string{"=": "<>", "<>": "=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// contradicts reports whether one condition is the negation of the other.
func contradicts(a, b []token) bool {
	if isWord(a, 0, "NOT") && joinTokens(unparenthesised(a[1:])) == joinTokens(b) {
		return true
	}
	if len(a) != len(b) || len(a) > maxComparison {
		return false
	}
	differ := false
	for i := range a {
		if a[i].text == b[i].text {
			continue
		}
		if differ || opposite[a[i].text] != b[i].text {
			return false
		}
		differ = true
	}
	return differ
}

const (
	// maxComparison bounds the tokens of one comparison that may be constant.
	maxComparison = 64

	// maxCondition bounds the tokens of a condition that is read in depth; of
	// a longer one only the alternatives at its top are read.
	maxCondition = 2048

	// maxAlternation bounds OR and AND within each other. What is nested more
	// deeply was written to be misread, and counts as true.
	maxAlternation = 16
)

// alwaysTrueLong is alwaysTrue for conditions of any length, in linear time.
func alwaysTrueLong(s []token) bool {
	if len(s) <= maxCondition {
		return alwaysTrue(s, 0)
	}
	for _, p := range splitAt(s, s[0].depth, "OR", "||") {
		if len(p) <= maxComparison && alwaysTrue(p, 0) {
			return true
		}
	}
	return false
}

// unparenthesised strips parentheses around the whole.
func unparenthesised(s []token) []token {
	opened, closed := 0, 0
	for isWord(s, opened, "(") {
		opened++
	}
	for closed < len(s)-opened && isWord(s, len(s)-1-closed, ")") {
		closed++
	}
	if opened == 0 || closed == 0 || s[len(s)-1].depth < s[0].depth-1 {
		return s
	}
	whole := min(opened, closed) // of the pairs, those that nothing between them closes
	for _, t := range s[opened : len(s)-closed] {
		whole = min(whole, t.depth-s[0].depth+1)
	}
	return s[max(whole, 0) : len(s)-max(whole, 0)]
}

// splitAt cuts at words of the given depth. An opening parenthesis already has
// the inner depth, so the depth of a condition is the least in it.
func splitAt(s []token, depth int, at ...string) [][]token {
	for _, t := range s {
		depth = min(depth, t.depth)
	}
	var out [][]token
	start := 0
	for i, t := range s {
		if t.depth == depth && isWord(s, i, at...) {
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// complementary finds x IS NULL OR x IS NOT NULL.
func complementary(parts [][]token) bool {
	for i, a := range parts[:min(len(parts), maxAlternation)] {
		for j, b := range parts[:min(len(parts), maxAlternation)] {
			if i != j && len(a) > 1 && contradicts(a, b) {
				return true
			}
		}
	}
	seen := make(map[string]bool)
	for _, p := range parts {
		seen[joinTokens(p)] = true
	}
	for text := range seen {
		if x, ok := strings.CutSuffix(text, " IS NULL"); ok && seen[x+" IS NOT NULL"] {
			return true
		}
	}
	return false
}

func joinTokens(s []token) string {
	words := make([]string, len(s))
	for i, t := range s {
		words[i] = t.text
	}
	return strings.Join(words, " ")
}

// constantComparison judges one comparison.
func constantComparison(s []token) bool {
	switch {
	case len(s) == 1:
		return hexNumber(s[0].text) || isNumber(s[0].text) && strings.Trim(s[0].text, "0.") != "" || isWord(s, 0, "TRUE")
	case isWord(s, 0, "NOT"):
		return len(s) == 2 && (isWord(s, 1, "FALSE") || s[1].text == "0")
	case len(s) >= 4 && isWord(s, 1, "IS") && isWord(s, 2, "NOT") && isWord(s, 3, "NULL"):
		return isValue(s[0])
	case len(s) == 3 && isWord(s, 1, "LIKE", "ILIKE"):
		return strings.Trim(s[2].text, "'\"%") == "" && strings.Contains(s[2].text, "%")
	case len(s) == 3 && isWord(s, 1, "~", "~*", "REGEXP", "RLIKE"):
		return strings.Trim(s[2].text, "'\"^$.*") == ""
	case betweenValues(s):
		return true
	}
	return comparison(s)
}

// everyKey reports whether a condition on a key holds for every row that there is:
// keys are there, and begin at one.
func everyKey(s []token) bool {
	if len(s) < 3 || s[0].quoted || !keyColumn(s[0].text) {
		return false
	}
	value := s[2].text
	switch s[1].text {
	case ">":
		return value == "0" || value == "-1" || value == "-"
	case ">=":
		return value == "0" || value == "1" || value == "-"
	case "<>", "!=":
		return value == "0" || value == "-1" || value == "-" || value == "''"
	case "IS":
		return len(s) == 4 && value == "NOT" && s[3].text == "NULL"
	}
	return false
}

func keyColumn(name string) bool {
	name = name[strings.LastIndexByte(name, '.')+1:]
	return name == "ID" || name == "UUID" || name == "ROWID" || name == "_ID" || name == "GUID" || name == "CTID" || name == "PK" || name == "OID"
}

func comparison(s []token) bool {
	if len(s) > maxComparison {
		return false
	}
	if everyKey(s) {
		return true
	}
	for i, t := range s {
		if t.quoted || i == 0 || i == len(s)-1 {
			continue
		}
		values := len(s) == 3 && isValue(s[0]) && isValue(s[2])
		switch t.text {
		case "=", "==", "<=>", ">=", "<=":
			return unchanged(joinTokens(s[:i])) == unchanged(joinTokens(s[i+1:])) || values && t.text != "=" && t.text != "=="
		case "<>", "!=", "<", ">":
			return values && s[0].text != s[2].text
		}
	}
	return false
}

// unchanged drops the arithmetic that changes nothing.
func unchanged(side string) string {
	for _, nothing := range []string{" + 0", " - 0", " * 1", " / 1", " || ''"} {
		side = strings.TrimSuffix(side, nothing)
	}
	return side
}

func isValue(t token) bool { return t.quoted || isNumber(t.text) }

func hexNumber(s string) bool {
	digits, is := strings.CutPrefix(s, "0X")
	return is && strings.Trim(digits, "0123456789ABCDEF") == "" && strings.Trim(digits, "0") != ""
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.") == ""
}
