package sql

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

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

// ByKey reports whether a condition asks for one key, or for some, whatever else it asks for.
func (s Statement) ByKey() bool { return len(s) <= maxCondition && byKey(s, 0) }

// byKey reads a condition that stands in so many others: each of its alternatives asks for a
// key, and one of what has to hold together.
func byKey(s Statement, nested int) bool {
	s = unparenthesised(s)
	if len(s) == 0 || nested > maxAlternation {
		return false
	}
	asks := func(part Statement) bool { return byKey(part, nested+1) }
	if parts := splitAt(s, s[0].Depth, "OR", "||"); len(parts) > 1 {
		return !slices.ContainsFunc(parts, func(part Statement) bool { return !asks(part) })
	}
	if parts := splitAt(s, s[0].Depth, "AND", "&&"); len(parts) > 1 {
		return slices.ContainsFunc(parts, asks)
	}
	for j := range s {
		column := s[j].Name()
		if s.Is(j, "NOT") {
			return false
		}
		if s.Is(j+1, "=", "IN") && pickingColumn.MatchString(column) && !endsInID.MatchString(column) {
			return !s.Is(j+2, "(") || !s.Is(j+3, "SELECT")
		}
	}
	return false
}

var pickingColumn = regex.New(`^(?:\w*_)?(?:ID|UUID|GUID|EMAIL|NO|NUMBER|CODE|IBAN|KEY|REF|NAME|USERNAME|LOGIN|SLUG|SKU|OID|PK)$|^\w+ID$`)

// endsInID are words that only end as the names of keys do.
var endsInID = regex.New(`^(?:\w+_)?(?:IS)?(?:PRE|UN)?(?:PAID|VALID|INVALID|VOID|BID|GRID|ANDROID|MID|HYBRID)$`)

// NeverMatches reports whether a condition compares two numbers that differ: each row is then
// one that the source has not.
func (s Statement) NeverMatches() bool {
	for len(s) > 2 && s[0].Text == "(" && s[len(s)-1].Text == ")" {
		s = s[1 : len(s)-1]
	}
	return len(s) == 3 && s[1].Text == "=" && s[0].Text != s[2].Text && IsNumber(s[0].Text) && IsNumber(s[2].Text)
}

// Restricted reports whether a change has a WHERE of its own that a row can fail.
func (s Statement) Restricted() bool {
	for i, t := range s {
		if t.Text == "WHERE" && !t.Quoted && t.Depth == s[0].Depth {
			c := s[i+1:].Condition(t.Depth)
			return !c.AlwaysTrue() && !selectsItself(c, s.ChangedTable())
		}
	}
	return false
}

// Condition is the condition that a statement begins with: it ends where the next clause
// of that depth begins.
func (s Statement) Condition(depth int) Statement {
	for i, t := range s {
		if t.Depth < depth || t.Depth == depth && s.Is(i, "RETURNING", "ORDER", "LIMIT", "GROUP") {
			return s[:i]
		}
	}
	return s
}

// AlwaysTrue reports whether a condition holds for every row. It knows the shapes
// that people write to get past a check for WHERE: 1=1, 'a'='a', id=id, true,
// x OR 1=1, NOT false, 1 IS NOT NULL, name LIKE '%'. An empty condition holds for
// every row too. It takes time linear in the condition.
func (s Statement) AlwaysTrue() bool {
	if len(s) <= maxCondition {
		return alwaysTrue(s, 0)
	}
	for _, p := range splitAt(s, s[0].Depth, "OR", "||") {
		if len(p) <= maxComparison && alwaysTrue(p, 0) {
			return true
		}
	}
	return false
}

// alwaysTrue reads a condition that stands in so many others.
func alwaysTrue(s Statement, nested int) bool {
	s = unparenthesised(s)
	if len(s) == 0 || nested > maxAlternation {
		return true
	}
	depth := s[0].Depth
	if parts := splitAt(s, depth, "OR", "||"); len(parts) > 1 {
		for _, p := range parts {
			if alwaysTrue(p, nested+1) {
				return true
			}
		}
		return complementary(parts)
	}
	if parts := splitAt(s, depth, "AND", "&&"); len(parts) > 1 && (!s.Is(1, "BETWEEN") || len(s) != 5) {
		for _, p := range parts {
			if !alwaysTrue(p, nested+1) {
				return false
			}
		}
		return true
	}
	if s.Is(0, "NOT") {
		if holds, simple := opposed(unparenthesised(s[1:])); simple && alwaysTrue(holds, nested+1) {
			return true
		}
	}
	return constantComparison(s) || namesNothing(s) || failsNoRow(s)
}

// opposed is the condition that holds exactly where a comparison of two fails.
func opposed(s Statement) (Statement, bool) {
	if len(s) != 3 || s[1].Quoted {
		return nil, false
	}
	if s.Is(1, "IS") && s.Is(2, "NULL") {
		return Statement{s[0], s[1], {Text: "NOT", Depth: s[1].Depth}, s[2]}, true
	}
	other, known := opposite[s[1].Text]
	return Statement{s[0], {Text: other, Depth: s[1].Depth}, s[2]}, known
}

// failsNoRow finds the comparisons that every row passes because of what they compare: a
// column with itself, a length with nothing, the time of a row's making with now, a key with
// numbers that no key has, and a look for any row at all.
func failsNoRow(s Statement) bool {
	if len(s) > maxComparison || len(s) < 3 {
		return false
	}
	text := s.String()
	if s.Is(0, "EXISTS") && !strings.Contains(text, " WHERE ") && !strings.Contains(text, " HAVING ") {
		return true
	}
	if m := sizeCompared.FindStringSubmatch(text); m != nil {
		return true
	}
	if s[0].Quoted || !IsName(s[0].Text) {
		return false
	}
	column := s[0].Name()
	value := s[len(s)-1].Text
	switch {
	case s.Is(1, "<", "<=") && madeAt.MatchString(column):
		return nowFunction.MatchString(s[2:].String())
	case s.Is(1, ">", ">=") && len(s) == 3 && s[2].Quoted:
		return longAgo.MatchString(s[2].Value())
	case s.Is(1, "<", "<=") && len(s) == 3 && keyColumn(column):
		return IsNumber(value) && len(value) > 9
	case s.Is(1, "NOT") && s.Is(2, "IN") && len(s) == 6 && keyColumn(column):
		return s[4].Text == "0" || s[4].Text == "-1"
	case s.Is(1, "BETWEEN") && len(s) == 5:
		everything := keyColumn(column) && (s.Is(2, "0", "1") || strings.HasPrefix(s[2].Text, "-")) && IsNumber(value) && len(value) > 9
		return everything || s[2].Text == s[0].Text && s[4].Text == s[0].Text
	case s.Is(1, "IN", "=") && len(s) == 5 && s.Is(2, "("):
		return s[3].Text == s[0].Text
	case s.Is(len(s)-2, "~", "~*", "REGEXP", "RLIKE") && s[len(s)-1].Quoted && len(s) < 7:
		return strings.Trim(s[len(s)-1].Value(), "^$.*") == ""
	}
	return false
}

var (
	sizeCompared = regex.New(`^(?:(?:CHAR_|CHARACTER_|OCTET_)?LENGTH|LEN|ABS|DATALENGTH) \( [\w.]+ \) (?:>= 0|> -\d+)$`)
	madeAt       = regex.New(`^(?:CREATED|INSERTED|ADDED|UPDATED|MODIFIED|DATE_CREATED|DATE_ADDED)(?:_?(?:AT|ON|DATE|TIME|TS))?$`)
	nowFunction  = regex.New(`^(?:(?:NOW|GETDATE|SYSDATE|GETUTCDATE|SYSDATETIME|CURRENT_TIMESTAMP|DATETIME) \( (?:'NOW' )?\)|CURRENT_TIMESTAMP|CURRENT_DATE|SYSDATE|SYSTIMESTAMP|LOCALTIMESTAMP)$`)
	longAgo      = regex.New(`^(?:0001|1[0-8]\d\d|19[0-6]\d|1970)-\d\d-\d\d`)
)

func betweenValues(s Statement) bool {
	return len(s) == 5 && s.Is(1, "BETWEEN") && isValue(s[0]) && isValue(s[2]) && isValue(s[4])
}

// namesNothing reports whether a condition names no column: it then holds for all
// rows or for none, and tells no row from another. What plainly fails is left out.
func namesNothing(s Statement) bool {
	if len(s) > maxComparison || len(s) == 1 || s[0].Quoted && len(s) == 1 {
		return false
	}
	if len(s) == 3 && isValue(s[0]) && isValue(s[2]) {
		return false // constantComparison has judged it
	}
	for i, t := range s {
		switch {
		case t.Quoted || IsNumber(t.Text) || s.Is(i+1, "(") && IsName(t.Text):
		case s.Is(i, conditionWords...):
		case IsName(t.Text) || strings.ContainsAny(t.Text, "?$:@"):
			return false
		}
	}
	return true
}

var conditionWords = strings.Fields("AND OR NOT IS NULL TRUE FALSE IN LIKE BETWEEN EXISTS SELECT CASE WHEN THEN ELSE END ANY ALL SOME ARRAY")

// IsName reports whether a token is a name or a word of the language.
func IsName(text string) bool {
	return text != "" && (text[0] >= 'A' && text[0] <= 'Z' || text[0] == '_' || text[0] >= 0x80)
}

// selectsItself finds id IN (SELECT id FROM users) on users: every row is in it.
func selectsItself(s Statement, table string) bool {
	s = unparenthesised(s)
	text := strings.ReplaceAll(strings.ReplaceAll(s[:min(len(s), maxComparison)].String(), " = ANY ", " IN "), " = SOME ", " IN ")
	column, rest, found := strings.Cut(text, " IN ( SELECT ")
	if !found || table == "" || strings.Contains(column, " ") {
		return false
	}
	rest, found = strings.CutPrefix(rest, column+" FROM "+table+" ")
	return found && (rest == ")" || rest == "WHERE TRUE )" || rest == "WHERE 1 = 1 )" || rest == "WHERE 1 )")
}

// ChangedTable is the table that a DELETE or UPDATE names.
func (s Statement) ChangedTable() string {
	for i := range s {
		if s.Is(i, "FROM", "UPDATE") && i+1 < len(s) {
			return s[i+1].Text
		}
	}
	return ""
}

// opposite has for each comparison the one that holds exactly where it fails.
var opposite = map[string]string{"=": "<>", "<>": "=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// contradicts reports whether one condition is the negation of the other.
func contradicts(a, b Statement) bool {
	if a.Is(0, "NOT") && unparenthesised(a[1:]).String() == b.String() {
		return true
	}
	if len(a) != len(b) || len(a) > maxComparison {
		return false
	}
	differ := false
	for i := range a {
		if a[i].Text == b[i].Text {
			continue
		}
		if differ || opposite[a[i].Text] != b[i].Text {
			return false
		}
		differ = true
	}
	return differ
}

// unparenthesised strips parentheses around the whole.
func unparenthesised(s Statement) Statement {
	opened, closed := 0, 0
	for s.Is(opened, "(") {
		opened++
	}
	for closed < len(s)-opened && s.Is(len(s)-1-closed, ")") {
		closed++
	}
	if opened == 0 || closed == 0 || s[len(s)-1].Depth < s[0].Depth-1 {
		return s
	}
	whole := min(opened, closed) // of the pairs, those that nothing between them closes
	for _, t := range s[opened : len(s)-closed] {
		whole = min(whole, t.Depth-s[0].Depth+1)
	}
	return s[max(whole, 0) : len(s)-max(whole, 0)]
}

// splitAt cuts at words of the given depth. An opening parenthesis already has
// the inner depth, so the depth of a condition is the least in it.
func splitAt(s Statement, depth int, at ...string) []Statement {
	for _, t := range s {
		depth = min(depth, t.Depth)
	}
	var out []Statement
	start := 0
	for i, t := range s {
		if t.Depth == depth && s.Is(i, at...) {
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// complementary finds x IS NULL OR x IS NOT NULL.
func complementary(parts []Statement) bool {
	for i, a := range parts[:min(len(parts), maxAlternation)] {
		for j, b := range parts[:min(len(parts), maxAlternation)] {
			if i != j && len(a) > 1 && contradicts(a, b) {
				return true
			}
		}
	}
	seen := make(map[string]bool)
	for _, p := range parts {
		seen[p.String()] = true
	}
	for text := range seen {
		if x, ok := strings.CutSuffix(text, " IS NULL"); ok && seen[x+" IS NOT NULL"] {
			return true
		}
	}
	return false
}

// String returns the tokens with a space between them.
func (s Statement) String() string {
	words := make([]string, len(s))
	for i, t := range s {
		words[i] = t.Text
	}
	return strings.Join(words, " ")
}

// constantComparison judges one comparison.
func constantComparison(s Statement) bool {
	switch {
	case len(s) == 1:
		return hexNumber(s[0].Text) || IsNumber(s[0].Text) && strings.Trim(s[0].Text, "0.") != "" || s.Is(0, "TRUE")
	case s.Is(0, "NOT"):
		return len(s) == 2 && (s.Is(1, "FALSE") || s[1].Text == "0")
	case len(s) >= 4 && s.Is(1, "IS") && s.Is(2, "NOT") && s.Is(3, "NULL"):
		return isValue(s[0]) || everyKey(s)
	case len(s) == 3 && s.Is(1, "LIKE", "ILIKE"):
		return strings.Trim(s[2].Text, "'\"%_") == "" && strings.Contains(s[2].Text, "%")
	case len(s) == 3 && s.Is(1, "~", "~*", "REGEXP", "RLIKE"):
		return strings.Trim(s[2].Text, "'\"^$.*") == ""
	case betweenValues(s):
		return true
	}
	return comparison(s)
}

// everyKey reports whether a condition on a key holds for every row that there is:
// keys are there, and begin at one.
func everyKey(s Statement) bool {
	if len(s) < 3 || s[0].Quoted {
		return false
	}
	value := s[2].Text
	if foreignKey.MatchString(s[0].Name()) && len(s) == 3 {
		return s[1].Text == ">" && strings.HasPrefix(value, "-") || s[1].Text == ">=" && (value == "0" || strings.HasPrefix(value, "-"))
	}
	if !keyColumn(s[0].Text) {
		return false
	}
	switch s[1].Text {
	case ">":
		return value == "0" || value == "-1" || value == "-"
	case ">=":
		return value == "0" || value == "1" || value == "-"
	case "<>", "!=":
		return value == "0" || value == "-1" || value == "-" || value == "''"
	case "IS":
		return len(s) == 4 && value == "NOT" && s[3].Text == "NULL"
	}
	return false
}

// foreignKey are columns that hold the keys of other tables. Some keep 0 for none, and no
// one a number below.
var foreignKey = regex.New(`^\w+_ID$`)

func keyColumn(name string) bool {
	name = name[strings.LastIndexByte(name, '.')+1:]
	return name == "ID" || name == "UUID" || name == "ROWID" || name == "_ID" || name == "GUID" || name == "CTID" || name == "PK" || name == "OID"
}

func comparison(s Statement) bool {
	if len(s) > maxComparison {
		return false
	}
	if everyKey(s) {
		return true
	}
	for i, t := range s {
		if t.Quoted || i == 0 || i == len(s)-1 {
			continue
		}
		values := len(s) == 3 && isValue(s[0]) && isValue(s[2])
		switch t.Text {
		case "=", "==", "<=>", ">=", "<=":
			return unchanged(s[:i].String()) == unchanged(s[i+1:].String()) || values && t.Text != "=" && t.Text != "=="
		case "<>", "!=", "<", ">":
			return values && s[0].Text != s[2].Text
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

func isValue(t Token) bool { return t.Quoted || IsNumber(t.Text) }

func hexNumber(s string) bool {
	digits, is := strings.CutPrefix(s, "0X")
	return is && strings.Trim(digits, "0123456789ABCDEF") == "" && strings.Trim(digits, "0") != ""
}

// IsNumber reports whether a token is a number without a sign.
func IsNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.") == ""
}
