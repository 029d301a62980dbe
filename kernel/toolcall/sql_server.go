package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/sql"
)

// A statement of SQL may reach beyond its rows: it makes somebody the server's master, runs
// programs, lets a warehouse send what it holds to elsewhere, gives its tables to another account,
// opens a login, or turns off what records and masks. Each maker has words of its own for it, from
// its manual, so they stand in tables by the first word of the statement. To load from the own
// store and to export to a stage of the own, to show grants and policies, to start a job and to
// back up to a disk are everyday.
var statementRules = func() map[string][]wordRule {
	out := make(map[string][]wordRule)
	for _, rule := range []struct {
		patterns  patterns
		invariant Invariant
	}{
		{serverRights, PrivilegeEscalation},
		{handedOut, DataExfiltration},
		{unmasked, ConstraintTampering},
		{serverLogins, Persistence},
		{serverPrograms, RemoteCodeExecution},
		{shortLived, DestructiveQuery},
		{serverSecrets, CredentialAccess},
	} {
		for name, e := range rule.patterns {
			out[name] = append(out[name], wordRule{e, rule.invariant})
		}
	}
	return out
}()

// maxStatement bounds what is compared of one statement.
const maxStatement = 400

// reachesBeyond judges a statement by its first words. Some dialects end a statement with a line,
// so the word may stand anywhere.
func (r *reading) reachesBeyond(s sql.Statement) {
	verbs := 0
	for i, t := range s {
		rules := statementRules[t.Text]
		if len(rules) == 0 || t.Quoted || i > 0 && s.Is(i-1, "ON", "FOR", "=", ".", "SHOW", "DESCRIBE", "DESC") {
			continue
		}
		if verbs++; verbs > maxVerbs || !r.spend(costQuery*min(len(s)-i, maxStatement)) {
			return
		}
		line := statementLine(s[i+1:])
		for _, rule := range rules {
			if rule.pattern.MatchString(line) {
				r.breaks(rule.invariant)
			}
		}
	}
}

// statementLine is the beginning of a statement in one spelling: its tokens with one space
// between them, and no marks around names.
func statementLine(s sql.Statement) string {
	var b strings.Builder
	for _, t := range s {
		if b.Len() > maxStatement {
			break
		}
		b.WriteString(strings.Trim(t.Text, "`\"[]"))
		b.WriteByte(' ')
	}
	return statementSigns.Replace(b.String())
}

// statementSigns joins the parts of a name that the lexer cuts.
var statementSigns = strings.NewReplacer(" . ", ".", " ,", ",", " = ", "=", " => ", "=")

// farAddress is one that is of no private network, as far as its first number tells.
const farAddress = `(?:[2-9]\d*|1[1-6]\d?|17[013-9]|18\d|19[013-9])\.\d+\.\d+\.\d+`

// serverRoles rule a server or all its data.
const serverRoles = `(?:SYSADMIN|SECURITYADMIN|SERVERADMIN|DB_OWNER|DB_SECURITYADMIN|##MS_SERVERSTATEMANAGER##|##MS_LOGINMANAGER##|ACCOUNTADMIN|ORGADMIN|SYSDBA|DBA|SYSOPER|IMP_FULL_DATABASE|EXP_FULL_DATABASE|SUPERUSER|ROLE_ADMIN|ALL_ADMIN|CLOUDSQLSUPERUSER|RDS_SUPERUSER|METASTORE_ADMIN)\b`

var serverRights = byCommand(
	`ALTER: SERVER ROLE \S+ ADD MEMBER|ROLE `+serverRoles+` ADD MEMBER|LOGIN SA (?:ENABLE|WITH PASSWORD)|DATABASE \S+ SET TRUSTWORTHY ON|AUTHORIZATION ON (?:DATABASE|SCHEMA|SERVER)|USER \S+ (?:SET )?(?:DEFAULT_ROLE=?'?`+serverRoles+`|CREATEUSER)|USER SYS(?:TEM)? IDENTIFIED|GROUP \S*ADMIN\S* ADD USER`,
	`EXEC EXECUTE CALL: (?:\S+\.)*(?:SP_ADDROLEMEMBER N? ?'DB_(?:OWNER|SECURITYADMIN|DDLADMIN)'|SP_ADDSRVROLEMEMBER|SP_ADDROLEMEMBER @ROLENAME=N? ?'DB_OWNER')|AS (?:LOGIN|USER) ?=? ?N? ?'(?:SA|DBO)'`,
	`GRANT: (?:ROLE )?`+serverRoles+`.*\bTO\b|CONTROL SERVER|IMPERSONATE (?:ANY )?LOGIN|IMPERSONATE ON|ALTER ANY (?:LOGIN|DATABASE|SERVER)|UNSAFE ASSEMBLY|EXTERNAL ACCESS ASSEMBLY|ANY PRIVILEGE|BECOME USER|OWNERSHIP ON (?:DATABASE|ACCOUNT|SCHEMA|WAREHOUSE)\b.*\b(?:PUBLIC|ROLE PUBLIC)|MANAGE GRANTS|IMPORTED PRIVILEGES.*\bPUBLIC\b|ALL PRIVILEGES ON (?:CATALOG|METASTORE|ACCOUNT|ANY FILE)|DV_OWNER|ALTER SYSTEM|EXEMPT ACCESS POLICY|ADMINISTER (?:DATABASE TRIGGER|KEY MANAGEMENT)|SELECT ANY (?:DICTIONARY|TABLE)`,
	`CREATE: (?:OR REPLACE )?USER .*\b(?:CREATEUSER|DEFAULT_ROLE=?'?`+serverRoles+`)|(?:OR REPLACE )?DIRECTORY \S+ AS '/(?:ETC|ROOT|HOME|PROC|)(?:/|')`,
)

// Stages, shares, connections and functions by which data leaves, and links to a server outside.
var handedOut = byCommand(
	`CREATE: (?:OR REPLACE )?(?:TEMP(?:ORARY)? )?(?:STAGE|EXTERNAL STAGE)\b.*URL=?'(?:S3\w*|GCS|AZURE)://.*(?:AWS_KEY_ID|AWS_SECRET_KEY|AZURE_SAS_TOKEN|AWS_TOKEN)|(?:OR REPLACE )?(?:SECURE )?EXTERNAL FUNCTION\b.* AS 'HTTPS?://|(?:OR REPLACE )?FUNCTION\b.*REMOTE WITH CONNECTION.*ENDPOINT=?'HTTPS?://|(?:OR REPLACE )?NETWORK RULE\b.*EGRESS.*'(?:0\.0\.0\.0|\*)|(?:OR REPLACE )?NOTIFICATION INTEGRATION\b.*WEBHOOK_URL=?'HTTPS?://|(?:OR REPLACE )?RECIPIENT (?:IF NOT EXISTS )?\S+ USING ID|(?:OR REPLACE )?(?:ORGANIZATION |EXTERNAL )?LISTING\b|(?:PUBLIC )?DATABASE LINK\b.*USING '.*(?:\d+\.\d+\.\d+\.\d+|HOST=?[A-Z0-9-]+\.[A-Z])|SUBSCRIPTION\b.*CONNECTION '.*HOST=|ENDPOINT \S+ STATE=STARTED`,
	`ALTER: SHARE \S+ (?:ADD|SET) ACCOUNTS|DATABASE \S+ ENABLE (?:REPLICATION|FAILOVER) TO ACCOUNTS|(?:FAILOVER|REPLICATION) GROUP \S+ .*ALLOWED_ACCOUNTS|DATASHARE \S+ SET PUBLICACCESSIBLE=? ?TRUE|LISTING \S+ (?:PUBLISH|SET STATE=PUBLISHED)`,
	`GRANT: USAGE ON DATASHARE \S+ TO (?:ACCOUNT|NAMESPACE)|SELECT ON SHARE \S+ TO RECIPIENT|.*\b(?:TO|GROUP) ['"]?(?:SPECIALGROUP:)?ALL(?:AUTHENTICATED)?USERS\b`,
	`CALL SELECT: (?:\S+\.)?SYSTEM ?\$ ?SEND_EMAIL \(.*(?:SELECT|ARRAY_AGG|OBJECT_CONSTRUCT|LISTAGG)`,
	`BACKUP: (?:DATABASE|LOG) .*TO (?:DISK=? ?N? ?'\\\\`+farAddress+`|URL=? ?N? ?'HTTPS?://)`,
	`EXEC EXECUTE CALL: (?:\S+\.)*SP_ADDLINKEDSERVER .*(?:\d+\.\d+\.\d+\.\d+|'[A-Z0-9-]+(?:\.[A-Z0-9-]+)*\.(?:COM|NET|ORG|IO|EXAMPLE|TEST)')|(?:\S+\.)*SP_SEND_DBMAIL .*@RECIPIENTS=N? ?'.*@(?:GMAIL|OUTLOOK|PROTON|YAHOO|GMX|HOTMAIL).*@(?:QUERY|ATTACH)|(?:\S+\.)*SP_INVOKE_EXTERNAL_REST_ENDPOINT`,
	`INSERT: (?:INTO )?(?:TABLE )?FUNCTION (?:REMOTE|REMOTESECURE|S3|GCS|URL|HDFS|AZUREBLOBSTORAGE|MYSQL|POSTGRESQL) \( ?'(?:\d+\.\d+\.\d+\.\d+|[A-Z0-9.-]+:\d+|HTTPS?://)|OVERWRITE (?:LOCAL )?DIRECTORY '(?:S3\w*|GS|ABFSS?|HDFS|WASBS?)://`,
)

// unmasked takes away what masks, records or restricts.
var unmasked = byCommand(
	`ALTER: (?:TABLE|VIEW) \S+ (?:MODIFY|ALTER) (?:COLUMN )?\S+ (?:UNSET MASKING POLICY|DROP MASKED|SET MASKING POLICY \S*(?:NONE|NULL))|(?:TABLE|VIEW) \S+ (?:DROP ALL ROW ACCESS POLICIES|DROP ROW ACCESS POLICY|UNSET AGGREGATION POLICY|UNSET PROJECTION POLICY|(?:DISABLE|NO FORCE) ROW LEVEL SECURITY)|(?:ACCOUNT|USER \S+) UNSET (?:NETWORK_POLICY|AUTHENTICATION POLICY|PASSWORD POLICY|SESSION POLICY)|ACCOUNT SET (?:REQUIRE_STORAGE_INTEGRATION_FOR_STAGE_\w+|PREVENT_UNLOAD_TO_INLINE_URL)=FALSE|(?:SERVER|DATABASE) AUDIT (?:SPECIFICATION )?\S+ (?:FOR \S+ )?WITH \(? ?STATE=OFF|SECURITY POLICY \S+ WITH \(? ?STATE=OFF|SYSTEM SET AUDIT_\w+=?(?:NONE|FALSE)|DATABASE (?:\S+ )?(?:FLASHBACK OFF|NOARCHIVELOG|SET ENCRYPTION OFF)|SYSTEM SET \w*UNIFIED_AUDIT\w*=?FALSE`,
	`DROP: (?:SERVER AUDIT|DATABASE AUDIT|AUDIT POLICY|(?:ALL )?ROW ACCESS POLIC|MASKING POLICY|NETWORK POLICY|SECURITY POLICY|RESTORE POINT|PASSWORD POLICY|AUTHENTICATION POLICY|SESSION POLICY|TAG BASED)`,
	`NOAUDIT: .*\S`,
	`EXEC EXECUTE CALL BEGIN: (?:\S+\.)*(?:DBMS_AUDIT_MGMT\.(?:CLEAN_AUDIT_TRAIL|INIT_CLEANUP|SET_LAST_ARCHIVE)|DBMS_RLS\.(?:DROP_POLICY|ENABLE_POLICY .*FALSE)|DBMS_REDACT\.(?:DROP_POLICY|DISABLE_POLICY)|DBMS_FGA\.(?:DROP_POLICY|DISABLE_POLICY)|SP_CYCLE_ERRORLOG|SP_AUDIT_WRITE)`,
	`DELETE: (?:FROM )?(?:SYS\.)?(?:AUD ?\$|FGA_LOG ?\$|UNIFIED_AUDIT_TRAIL)`,
	`TRUNCATE: TABLE (?:SYS\.)?(?:AUD ?\$|FGA_LOG ?\$)`,
)

// serverLogins let somebody in later, or start something with the server.
var serverLogins = byCommand(
	`ALTER: USER \S+ SET (?:RSA_PUBLIC_KEY\w*|PASSWORD=|MINS_TO_BYPASS_MFA|DISABLE_MFA|MINS_TO_UNLOCK|TYPE=LEGACY_SERVICE)`,
	`CREATE: LOGIN \S+ WITH PASSWORD.*CHECK_POLICY=OFF|(?:OR REPLACE )?TRIGGER \S+ (?:ON ALL SERVER|AFTER (?:LOGON|STARTUP))`,
	`EXEC EXECUTE CALL: (?:\S+\.)*SP_PROCOPTION\b.*STARTUP.*(?:ON|TRUE|1)`,
)

// serverPrograms run programs on the machine of the server.
var serverPrograms = byCommand(
	`CREATE ALTER: ASSEMBLY\b.*(?:FROM 0X|PERMISSION_SET=(?:UNSAFE|EXTERNAL_ACCESS)|FROM '\\\\\\\\?\d|FROM N?'C:\\WINDOWS\\TEMP)`,
	`EXEC EXECUTE CALL: (?:\S+\.)*SP_ADD_JOBSTEP\b.*@SUBSYSTEM=? ?N? ?'(?:CMDEXEC|POWERSHELL|ACTIVESCRIPTING)'|(?:\S+\.)*SP_EXECUTE_EXTERNAL_SCRIPT\b.*(?:OS\.|SUBPROCESS|SYSTEM \(|SHELL)`,
)

// shortLived lets data expire within hours, and backups or logs go nowhere.
var shortLived = byCommand(
	`ALTER: (?:SCHEMA|DATABASE) \S+ SET OPTIONS \( ?DEFAULT_(?:TABLE|PARTITION)_EXPIRATION_DAYS=0(?:\.\d+)? |TABLE \S+ SET OPTIONS \( ?EXPIRATION_TIMESTAMP=(?:CURRENT_TIMESTAMP|TIMESTAMP_ADD \( ?CURRENT_TIMESTAMP \( \), INTERVAL \d+ (?:SECOND|MINUTE|HOUR))|ACCOUNT SET DATA_RETENTION_TIME_IN_DAYS=0|SCHEMA \S+ SET OPTIONS \( ?MAX_TIME_TRAVEL_HOURS=0`,
	`BACKUP: (?:DATABASE|LOG) .*TO DISK=? ?N? ?'NUL:?'`,
	`EXEC EXECUTE CALL: (?:\S+\.)*SP_MSFOREACH(?:DB|TABLE)\b.*(?:DROP|TRUNCATE|DELETE|OFFLINE)|(?:\S+\.)*SP_DELETE_(?:DATABASE_)?BACKUPHISTORY (?:@\w+=)?N?'?(?:20[3-9]\d|2[1-9]\d\d|\w+'$)|(?:\S+\.)*SP_DETACH_DB|(?:\S+\.)*SP_DROPSERVER`,
	`DROP: USER \S+ CASCADE|PLUGGABLE DATABASE|CATALOG \S+ CASCADE|(?:FAILOVER|REPLICATION) GROUP|SHARE `,
)

// serverSecrets are where servers keep the hashes of their passwords.
var serverSecrets = byCommand(
	`SELECT: (?:\*|.*\bPASSWORD_HASH\b.*) FROM (?:MASTER\.)?SYS\.SQL_LOGINS\b|.*\bFROM (?:SYS ?\. ?)?(?:USER ?\$|LINK ?\$)`,
)
