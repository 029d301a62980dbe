package toolcall

import (
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/sql"
)

// Rights in a database are given and taken every day. What is ordinary of that: rights that become
// fewer, and rights to one thing, or of one person, that the user speaks of. Everything, everybody,
// and the right to pass rights on are never ordinary.

// ordinaryRights reports whether a statement changes rights, settings or an account as administrators
// do all day.
func (r *reading) ordinaryRights(s sql.Statement) bool {
	for len(s) > 0 && s[len(s)-1].Text == ";" {
		s = s[:len(s)-1]
	}
	if len(s) < 3 || len(s) > maxRights {
		return false
	}
	switch {
	case s.Is(0, "REVOKE"):
		return r.takesBack(s)
	case s.Is(0, "GRANT"):
		return r.givesOne(s)
	case s.Is(0, "ALTER") && s.Is(1, "USER", "ROLE", "LOGIN"):
		return r.narrows(s[2:])
	case s.Is(0, "ALTER") && s.Is(1, "EXTENSION"):
		return s.Is(3, "UPDATE")
	case s.Is(0, "EXEC", "EXECUTE") && s.Is(1, "SP_CONFIGURE"):
		return len(s) == 5 && s[2].Quoted && s.Is(3, ",") && ordinarySetting(s[2].Value(), s[4].Text)
	}
	return false
}

// maxRights bounds the tokens of a statement that is read here.
const maxRights = 64

// takesBack reports whether a REVOKE takes the powers of the server from somebody, or anything from
// somebody of whom the user speaks, and not from somebody else than the user speaks of.
func (r *reading) takesBack(s sql.Statement) bool {
	from := slices.IndexFunc(s, func(t sql.Token) bool { return !t.Quoted && t.Text == "FROM" })
	if from < 0 || from == len(s)-1 {
		return false
	}
	spokenOf := r.speaksOf(s[from+1:])
	if !spokenOf && r.asked {
		return false
	}
	return from == 2 && serverPower.MatchString(s[1].Text) || isScratch(s[len(s)-1].Value()) || spokenOf && r.asksWith(goesWords)
}

// serverPower are roles that reach beyond the rows of a database.
var serverPower = regex.New(`^(?:PG_(?:READ|WRITE)_SERVER_FILES|PG_EXECUTE_SERVER_PROGRAM|RDS_SUPERUSER|ACCOUNTADMIN|SECURITYADMIN|SYSADMIN|DBA|SYSDBA|SUPER)$`)

// givesOne reports whether a GRANT gives rights to rows of one thing, or of some, where the user speaks
// of that or of whom they are given to, or a role gets what it is for by its name.
func (r *reading) givesOne(s sql.Statement) bool {
	on := slices.IndexFunc(s, func(t sql.Token) bool { return !t.Quoted && t.Text == "ON" })
	to := slices.IndexFunc(s, func(t sql.Token) bool { return !t.Quoted && t.Text == "TO" })
	if on < 0 || to < on+2 || to == len(s)-1 || s.HasAfter(0, "OPTION", "PUBLIC") {
		return false
	}
	if namesSecrets(s[on+1 : to]) {
		return false
	}
	for _, t := range s[1:on] {
		if !rowRights[t.Text] && !viewerRole.MatchString(t.Text) {
			return false
		}
	}
	thing := s[on+1 : to]
	reads := on == 2 && (s.Is(1, "SELECT", "USAGE") || viewerRole.MatchString(s[1].Text))
	if thing.Is(0, "SCHEMA", "DATABASE", "WAREHOUSE") && !reads {
		return false
	}
	if !reads && slices.ContainsFunc(thing, func(t sql.Token) bool { return strings.Contains(t.Text, "*") || t.Text == "ALL" }) {
		return false
	}
	if thing.Is(0, "*") || thing.Is(0, "ALL") && !thing.Is(2, "IN") {
		return false
	}
	if whom := s[to+1].Value(); to == len(s)-2 && !thing.HasAfter(-1, "ALL", "*", "SCHEMA", "DATABASE") && (reads && readersRole.MatchString(whom) || writersRole.MatchString(whom)) {
		return true
	}
	return r.asksWith(accessWords) && (r.speaksOf(thing) || r.speaksOf(s[to+1:]))
}

var (
	rowRights = words("SELECT INSERT UPDATE DELETE USAGE REFERENCES ,")
	// writersRole is a role by whose name a program works with the rows of tables.
	writersRole = regex.New(`(?i)_(?:rw|app|svc|service|writer|etl|loader|worker)$`)

	viewerRole = regex.New("(?i)^`?roles/[\\w.]*(?:viewer|user)`?$")
)

// narrows reports whether what stands behind ALTER USER takes powers from an account, or shuts one
// out of which the user speaks or that was made for a while.
func (r *reading) narrows(s sql.Statement) bool {
	if len(s) < 2 {
		return false
	}
	rest := statementLine(s[1:])
	return fewerPowers.MatchString(rest) && !ownAccount.MatchString(s[0].Text) || shutOut.MatchString(rest) && (r.asksWith(goesWords) && r.speaksOf(s[:1]) || isScratch(strings.Trim(s[0].Text, "'\"`")))
}

var (
	fewerPowers = regex.New(`^(?:WITH )?(?:(?:NOSUPERUSER|NOCREATEROLE|NOCREATEDB|NOREPLICATION|NOBYPASSRLS|NOINHERIT|UNSET PASSWORD|SET NETWORK_POLICY ?= ?\w+|CONNECTION LIMIT [1-9]\d*) ?)+$`)
	ownAccount  = regex.New(`(?i)^(?:postgres|root|sa|sys|system|admin|administrator)$`)
	shutOut     = regex.New(`^(?:WITH )?(?:(?:NOLOGIN|DISABLE|ACCOUNT LOCK|PASSWORD EXPIRE|SET DISABLED ?= ?TRUE|ABORT ALL QUERIES) ?)+$`)
)

// ordinarySetting reports whether a setting of SQL Server is turned off, or opens nothing.
func ordinarySetting(name, value string) bool {
	return value == "0" && openingSetting.MatchString(name) || harmlessSetting.MatchString(name)
}

// openingSetting is one that lets programs run or others in.
var openingSetting = regex.New(`(?i)^(?:xp_cmdshell|ole automation procedures|clr enabled|external scripts enabled|ad hoc distributed queries|remote access|remote admin connections|cross db ownership chaining|database mail xps|hadoop connectivity|allow updates)$`)

var harmlessSetting = regex.New(`(?i)^(?:show advanced options|(?:max|min) server memory \(MB\)|max degree of parallelism|cost threshold for parallelism|backup compression default|optimize for ad hoc workloads|max worker threads|remote query timeout \(s\)|fill factor \(%\))$`)

// namesSecrets reports whether one of the things holds passwords, keys or cards.
func namesSecrets(things sql.Statement) bool {
	return slices.ContainsFunc(things, func(t sql.Token) bool {
		return t.Text == "PG_AUTHID" || t.Text == "PG_SHADOW" || secretTable.MatchString(t.Text)
	})
}

var (
	// goesWords are how people say that somebody's rights end, and accessWords that they begin.
	goesWords   = regex.New(`(?i)\b(?:revok\w*|withdraw\w*|take\w* (?:\w+ )?(?:away|off|out)|remov\w*|drop\w*|delet\w*|disabl\w*|lock\w*|block\w*|deactivat\w*|off-?board\w*|left|leaves|leaving|ended|ends|terminat\w*|expired|last day|entzieh\w*|entfern\w*|sperr\w*|deaktivier\w*|lösch\w*|weg|verlässt|ausgeschieden|letzter tag|gekündigt|désactiv\w*|retir\w*|supprim\w*|dernier jour|quitt\w*|bloque\w*|revoc\w*|quita\w*|desactiv\w*|elimin\w*|odbierz|usuń|zablokuj|odszedł|odeszła|verwijder\w*|blokkeer)\b`)
	accessWords = regex.New(`(?i)\b(?:grant\w*|giv\w*|access|rights?|permissions?|roles?|user|account|needs?|allow\w*|read\w*|write|rw|let|les\w*|zugriff\w*|rechte?|berechtig\w*|braucht|dürfen|gib|schreib\w*|donne\w*|accès|droits?|lecture|écriture|acceso|permis\w*|lectura|dale|acesso|leitura|accesso|lettura|odczyt\w*|dostęp|uprawn\w*|daj|rola|toegang|lezen|leesrechten)\b`)
)

// speaksOf reports whether the user speaks of one of the names: of a part of it that tells one
// from another.
func (r *reading) speaksOf(names sql.Statement) bool {
	if !r.asked || len(r.asks) > maxNamingRequest {
		return false
	}
	asks := strings.NewReplacer("_", " ", ".", " ").Replace(strings.ToLower(r.asks))
	for _, t := range names {
		for part := range strings.FieldsFuncSeq(strings.ToLower(t.Text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			if len(part) >= minNamed && !commonName[part] && !grantWords[part] && r.spend(costSearch*len(asks)) && namedAlone(asks, part) {
				return true
			}
		}
	}
	return false
}

// grantWords are the words of such statements that are no names.
var grantWords = words("table tables schema database view views sequence sequences user users role roles group select insert update delete usage from with grant account admin read write all")
