package toolcall

import (
	"slices"
	"strings"
)

// keepsUp reports whether a call of sudo is the everyday upkeep of a machine of one's own:
// packages by their names from the sources that the machine has, a service that starts again,
// a look at states and logs, and files of the workspace that become one's own. What is run is
// judged like any command beside this.
func (s *shell) keepsUp(argv []string) bool {
	if programName(argv[0]) != "sudo" {
		return false
	}
	rest := argv[1:]
	for len(rest) > 0 && (rest[0] == "-n" || rest[0] == "-E" || rest[0] == "-H") {
		rest = rest[1:]
	}
	if len(rest) == 0 || strings.ContainsRune(rest[0], '/') {
		return false
	}
	if slices.ContainsFunc(rest, func(w string) bool { return strings.Contains(w, "..") || packageFile.MatchString(w) }) {
		return false
	}
	if (rest[0] == "-u" || rest[0] == "-iu") && len(rest) > 2 {
		return asksPostgres.MatchString(strings.Join(rest[1:], " ")) || givesUpRights.MatchString(strings.Join(rest[1:], " "))
	}
	switch rest[0] {
	case "chown":
		return s.takesBack(operands(rest))
	case "setcap":
		return s.bindsLowPorts(rest)
	}
	e := upkeepCommands[rest[0]]
	return e != nil && e.MatchString(strings.Join(rest[1:], " "))
}

// asksPostgres is a question to a database server as its owner, who is not root, or a database
// or an extension that one makes for an application. The query is judged like any beside this.
var asksPostgres = newExpression(`^postgres (?:psql (?:-d [\w-]+ |-[AtXqx]+ |-v ON_ERROR_STOP=1 )*(?:-l$|-[AtXqx]*c (?i:(?:select|show|explain|vacuum|analyze|reindex|create database|\\[dlz])\b.*|create extension (?:if not exists )?"?(?:` + plainExtensions + `)"?(?: (?:with )?schema \w+| cascade)*;?$))|(?:createdb|vacuumdb|reindexdb|analyzedb)(?: [\w.=-]+)*|pg_isready(?: [\w./-]+)*|pg_lsclusters)$`)

// plainExtensions are those of Postgres that reach neither files nor other servers.
const plainExtensions = `pg_trgm|uuid-ossp|pgcrypto|postgis\w*|hstore|citext|vector|unaccent|btree_gi[ns]t?|pg_stat_statements|timescaledb|ltree|intarray|tablefunc|cube|earthdistance|fuzzystrmatch|pg_partman|isn|xml2|pgvector|bloom|seg`

// givesUpRights is a program of the application that runs as the account of a web server, which
// may less than whoever asks for it.
var givesUpRights = newExpression(`^(?:www-data|nginx|apache|http|_www) (?:-- )?(?:php(?:\d[\d.]*)? (?:\S*/)?(?:artisan|occ|bin/console|wp-cli\.phar)|wp|composer|test|ls|stat) .*`)

// takesBack reports whether files of the workspace get an owner who is not root: those that lie
// there wherever the shell has gone to and links lead.
func (s *shell) takesBack(words []string) bool {
	return len(words) > 1 && !rootOwner.MatchString(words[0]) && !slices.ContainsFunc(words[1:], func(w string) bool {
		return !plainFolder.MatchString(w) || !plainFolder.MatchString(s.resolve(strings.TrimSuffix(w, "/")))
	})
}

var (
	rootOwner   = newExpression(`(?i)root|(?:^|:)0`)
	plainFolder = newExpression(`^(?:\./)?[\w.-][\w./-]*$`)
)

// packageFile is a file that some clients install by its name alone.
var packageFile = newExpression(`\.(?:deb|rpm|apk)$`)

// upkeepCommands are what sudo may run: its words, as a whole.
var upkeepCommands = byCommand(
	`apt apt-get: `+upkeepFlags+`(?:update|upgrade)`+upkeepFlagsAfter+`$`,
	`apt apt-get: `+upkeepFlags+`install`+upkeepPackages+`$`,
	`dnf yum microdnf: `+upkeepFlags+`(?:(?:check-)?update|upgrade|makecache)`+upkeepFlagsAfter+`$`,
	`dnf yum microdnf: `+upkeepFlags+`install`+upkeepPackages+`$`,
	`apk: (?:--no-cache )?(?:update|upgrade)$`,
	`apk: (?:--no-cache )?add(?: --no-cache| [a-z0-9][\w.+=~-]*)+$`,
	`zypper: (?:(?:-n|--non-interactive|--quiet) )*(?:refresh|update|up)`+upkeepFlagsAfter+`$`,
	`zypper: (?:(?:-n|--non-interactive|--quiet) )*(?:install|in)`+upkeepPackages+`$`,
	`pacman: -Sy{0,2}u?(?: --noconfirm| --needed| [a-z0-9][\w.+-]*)*$`,
	`systemctl: (?:--no-pager )?(?:daemon-reload|list-units|list-timers|--failed)(?: --[\w=-]+)*$`,
	`systemctl: (?:--no-pager )?(?:status|restart|reload|try-restart|is-active|is-enabled|show)(?: --no-pager| -l| [\w@][\w@.-]*)+$`,
	`service: [\w@][\w@.-]* (?:status|restart|reload)$`,
	`journalctl: (?:-(?:u|t|n|p|S|U|g|o) ?[\w@][\w@.:-]*(?: \d[\d:]+)?(?: |$)|-[xefrkb]+(?: |$)|(?:-[SU] ?|--(?:since|until)[= ])-\d+\w+(?: |$)|--(?:unit|since|until|lines|priority|output|grep)[= ][\w@][\w@.:-]*(?: \d[\d:]+)?(?: |$)|--(?:since|until)[= ]\d+ (?:second|minute|min|hour|day|week)s? ago(?: |$)|--no-pager(?: |$))*$`,
	`journalctl: (?:--rotate )?--vacuum-(?:time[= ](?:[7-9]|[1-9]\d+)d(?:ays)?|time[= ]\d+(?:w|weeks?|months?)|size[= ](?:[1-9]\d{2,}M|\d+G))$`,
	`du df: (?:-[shkx]+ )*(?:--max-depth[= ]\d )?/[\w./-]*$`,
	`dmesg: (?:-[THwkx]+ ?|--(?:ctime|human|follow|level=[\w,]+) ?)*$`,
	`ss netstat: -[a-zA-Z]+$`,
	`lsof: (?:-[nPt]+ )*-i(?: ?(?:TCP|UDP|tcp|udp)?:?[\w,-]+)?(?: -[nPt]+)*(?: -sTCP:LISTEN)?$`,
	`iptables ip6tables: -(?:S|[nv]*L[nv]*)(?: (?:INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING))?(?: -[nv]+)*$`,
	`logrotate: (?:-[fdv]+ )*/etc/logrotate\.d/[\w.-]+$`,
	`ausearch aureport lastlog: .*`,
	`auditctl: -[ls]$`,
	`ufw: status(?: verbose| numbered)?$`,
	`nginx apachectl apache2ctl httpd: (?:-t|-T|-v|-V|configtest)$`,
	`certbot: (?:certificates|renew(?: --dry-run| -q| --quiet)*)$`,
	`docker podman: (?:ps|images|stats|info|version|(?:compose )?(?:ps|logs(?: -f| --follow| --tail[= ]\w+| -n ?\d+)*))(?: [\w.-]+)*$`,
	`tail head cat less zcat: (?:-[nfFc] ?\d* ?|--(?:lines|follow)(?:=\w+)? )*(?:/var/log/(?:nginx|apache2|httpd|mysql|postgresql|redis|php[\w.-]*|supervisor|app)/[\w.-]+|/var/log/(?:syslog|messages|auth\.log|secure|kern\.log|dpkg\.log|dmesg|boot\.log)(?:\.\d)?(?:\.gz)?)(?: \d+)?$`,
)

const (
	upkeepFlags      = `(?:(?:-y|-q|-qq|-yq|-qy|-yqq|--yes|--quiet|--assumeyes|--no-install-recommends) )*`
	upkeepFlagsAfter = `(?: -y| -q| -qq| -yq| --yes| --quiet| --assumeyes)*`
	upkeepPackages   = `(?: -y| -q| -qq| -yq| -qy| -yqq| --yes| --quiet| --assumeyes| --no-install-recommends| [a-zA-Z0-9][\w+:~-]*(?:\.[\w+~-]+)*(?:=[\w.+:~*-]+)?)+`
)
