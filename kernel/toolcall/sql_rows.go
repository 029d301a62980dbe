package toolcall

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/sql"
)

// maxAccounted bounds the tokens of a statement that is judged by whose rows it touches.
const maxAccounted = 2048

// accounts judges a statement of SQL by whose rows it reads or changes: secrets that are read
// in bulk, rights that are given to a login, and records of what was done.
func (r *reading) accounts(s sql.Statement) {
	if len(s) < 3 || len(s) > maxAccounted || r.trial {
		return
	}
	switch {
	case s.Is(0, "SELECT", "WITH"):
		if readsSecrets(s) {
			r.breaks(CredentialAccess)
		}
	case s.Is(0, "UPDATE", "DELETE"):
		table := s.ChangedTable()
		if recordTable.MatchString(table) && (s.Is(0, "UPDATE") || picksActor(s)) {
			r.breaks(ConstraintTampering)
		}
		if s.Is(0, "UPDATE") && loginTable.MatchString(table) {
			r.logins(s)
		}
	}
}

// readsSecrets reports whether a SELECT lists secrets as they are, or everything of a table
// that holds nothing else, of more rows than a key picks.
func readsSecrets(s sql.Statement) bool {
	for i := range s {
		switch {
		case s[i].Quoted || !s.Is(i-1, "SELECT", "DISTINCT", ","):
		case s.Is(i, "*") && s.Is(i+1, "FROM") && i+2 < len(s) && secretTable.MatchString(s[i+2].Text) && !picksRows(s[i:]),
			secretColumn.MatchString(s[i].Name()) && s.Is(i+1, ",", "FROM", "AS") && s[i].Depth == s[0].Depth && !picksRows(s[i:]):
			return true
		}
	}
	return false
}

// picksRows reports whether a SELECT asks for a key, or for so few rows that somebody looks at
// the shape of them.
func picksRows(s sql.Statement) bool {
	for i, t := range s {
		switch {
		case t.Quoted:
		case s.Is(i, "WHERE") && s[i+1:].Condition(t.Depth).ByKey():
			return true
		case s.Is(i, "LIMIT") && i+1 < len(s):
			n, err := strconv.Atoi(s[i+1].Text)
			return err == nil && n == 0
		}
	}
	return false
}

var (
	secretColumn = regex.New(`^(?:(?:\w+_)?(?:PASSWORD_?(?:HASH|DIGEST|SALT)|PASSWD|PWD_?HASH|(?:TOTP|MFA|OTP|CLIENT|API|WEBHOOK|SIGNING)_?SECRET|PRIVATE_?KEY|SECRET_?(?:ACCESS_)?KEY|API_?KEY|API_?SECRET|(?:ACCESS|REFRESH|AUTH|BEARER|SESSION|RESET)_?TOKEN)|(?:ENCRYPTED_)?PASSWORD|PAN|CVV2?|CVC2?|(?:CREDIT_?)?CARD_?(?:NUMBER|NO|NUM|PAN)|CC_?(?:NUMBER|NUM|NO)|FULL_?PAN|TRACK_?[12]|SSN|SOCIAL_?SECURITY(?:_?(?:NUMBER|NO))?)$`)
	secretTable  = regex.New(`^(?:\w+\.)*(?:CREDIT_?CARDS?|CARD_?(?:VAULT|NUMBERS?)|(?:API|SSH|PRIVATE|SIGNING)_?KEYS?|(?:\w+_)?(?:SECRETS?|CREDENTIALS?|PASSWORDS?)|PASSWORD_?VAULT|OAUTH_?TOKENS|ACCESS_?TOKENS)$`)

	recordTable = regex.New(`^(?:\w+\.)*(?:(?:\w+_)?AUDIT(?:_?(?:LOGS?|TRAILS?|EVENTS?|RECORDS?|ENTRIES|HISTORY))?|AUDIT\.\w+|(?:LOGIN|ACCESS|SECURITY|ACTIVITY)_?(?:LOGS?|HISTORY|EVENTS?))$`)
	loginTable  = regex.New(`^(?:\w+\.)*(?:\w+_)?(?:USERS?|ACCOUNTS?|LOGINS?|MEMBERS?|MEMBERSHIPS?|STAFF|ADMINS?|EMPLOYEES|PRINCIPALS?|IDENTITIES)$`)
	actorColumn = regex.New(`^(?:\w+_)?(?:ACTOR|USER|USERNAME|LOGIN|SESSION|AGENT|IP|IP_?ADDRESS|CLIENT|PRINCIPAL)(?:_?(?:ID|NAME))?$`)
	adminColumn = regex.New(`^(?:IS_?)?(?:ADMIN|SUPERUSER|SUPER_?ADMIN|STAFF_?ADMIN|ROOT)$`)
	roleColumn  = regex.New(`^(?:\w+_)?(?:ROLE|ROLE_?NAME|ACCESS_?LEVEL|USER_?TYPE|PERMISSION)$`)
	mfaColumn   = regex.New(`^(?:IS_?)?(?:MFA|TWO_?FACTOR|TOTP|OTP|2FA)_?(?:ENABLED|REQUIRED|ACTIVE|ENFORCED)$`)
	adminValue  = regex.New(`^(?i)(?:(?:super|global|system|org|tenant|site)[-_ ]?)?(?:admin(?:istrator)?|owner|root|superuser)$`)
)

// picksActor reports whether the condition of a statement picks what somebody did, as no
// clearing of old records does.
func picksActor(s sql.Statement) bool {
	at := slices.IndexFunc(s, func(t sql.Token) bool { return t.Text == "WHERE" && !t.Quoted })
	return at > 0 && slices.ContainsFunc(s[at:], func(t sql.Token) bool {
		return !t.Quoted && actorColumn.MatchString(t.Name())
	})
}

// logins judges an UPDATE of people's logins: one that makes an administrator, or that takes
// away second factors.
func (r *reading) logins(s sql.Statement) {
	for i := 1; i+1 < len(s) && !s.Is(i, "WHERE"); i++ {
		if !s.Is(i, "=") || s[i-1].Quoted {
			continue
		}
		column, value := s[i-1].Name(), s[i+1].Value()
		on := value == "TRUE" || value == "1" || value == "T" || value == "Y"
		off := value == "FALSE" || value == "0" || value == "F" || value == "N"
		switch {
		case adminColumn.MatchString(column) && on, roleColumn.MatchString(column) && s[i+1].Quoted && adminValue.MatchString(value), mfaColumn.MatchString(column) && off:
			r.breaks(DestructiveQuery)
		}
	}
}

// trials reports whether an argument says that a call is for trying things out: its
// environment, or its database, is called so.
func trials(leaves []leaf) bool {
	return slices.ContainsFunc(leaves, func(l leaf) bool {
		return l.text && trialKeys[l.key] && len(l.value) < maxKey && trialName.MatchString(l.value)
	})
}

var (
	trialKeys = words("environment env stage database db dbname connection target schema profile mode context workspace")
	trialName = regex.New(`(?i)(?:^|[-_./ ])(?:dev|development|test|testing|tests|staging|sandbox|local|localhost|demo|ci|qa|scratch|e2e|fixture|seed)(?:[-_./ ]|\d|$)`)
)

// psqlMeta are the commands of a database's own client that start a program, or hand rows to
// one. They stand on a line of their own, or behind the query whose rows they take.
var psqlMeta = regex.New(`(?im)^\s*\\(?:copy\b.*\b(?:to|from)\s+program\b|!\s*\S|o\s*\||w\s*\||setenv\s)|\\g[nx]?\s*(?:\([^()]*\)\s*)?\||^\s*system\s+(?:rm|curl|wget|nc|sh|bash|cat|dd|chmod|chown)\b`)

// psqlCopy is a copy between a table and a file of the client's machine.
var psqlCopy = regex.New(`(?im)^\s*\\copy\b[^\n]*?\b(?:to|from)\s+'([^'\n]*)'`)

// clientCommands judges what a script tells the client that sends it.
func (r *reading) clientCommands(text string) {
	if psqlMeta.MatchString(text) {
		r.breaks(DestructiveQuery)
	}
	for _, m := range psqlCopy.FindAllStringSubmatch(text, maxMatches) {
		if !workspaceData.MatchString(m[1]) && (servedFile.MatchString(m[1]) || file.IsOutside(strings.ToLower(m[1])) && !strings.HasPrefix(m[1], "/tmp/")) {
			r.breaks(DestructiveQuery)
		}
	}
}
