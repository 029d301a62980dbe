package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// patterns are expressions by the name of a command, matched against its words
// after the name. What no command of that name says is never searched for.
type patterns map[string]*regex.Expression

// byCommand makes patterns of lines "names: expression". Several lines about one
// name are alternatives; an expression begins where the words do.
func byCommand(lines ...string) patterns {
	alternatives := make(map[string][]string)
	for _, line := range lines {
		names, expression, _ := strings.Cut(line, ": ")
		for _, name := range strings.Fields(names) {
			alternatives[name] = append(alternatives[name], expression)
		}
	}
	out := make(patterns, len(alternatives))
	for name, list := range alternatives {
		out[name] = regex.New(`^(?:` + strings.Join(list, "|") + `)`)
	}
	return out
}

// commandRules are the invariants that a command breaks by its words alone.
var commandRules = []struct {
	patterns  patterns
	invariant Invariant
}{
	{irreversibleCommands, DestructiveCommand},
	{codeCommands, RemoteCodeExecution},
	{escalationCommands, PrivilegeEscalation},
	{persistenceCommands, Persistence},
	{credentialCommands, CredentialAccess},
	{tamperCommands, ConstraintTampering},
	{exfiltrationCommands, DataExfiltration},
	{databaseCommands, DestructiveQuery},
	{lostServices, DestructiveOperation},
	{handedServices, PrivilegeEscalation},
	{openedServices, DataExfiltration},
	{watchedServices, ConstraintTampering},
	{shownByHistory, CredentialAccess},
	{shownServices, CredentialAccess},
	{plantedServices, Persistence},
	{fetchedServices, RemoteCodeExecution},
}

// wordRule is one of them, of one command.
type wordRule struct {
	pattern   *regex.Expression
	invariant Invariant
}

// wordRules are all of them by the name of the command.
var wordRules = func() map[string][]wordRule {
	out := make(map[string][]wordRule)
	for _, rule := range commandRules {
		for name, e := range rule.patterns {
			out[name] = append(out[name], wordRule{e, rule.invariant})
		}
	}
	return out
}()

// dropsScratch reports whether dropdb drops a database of tests on this machine.
func dropsScratch(argv []string) bool {
	named := 0
	for _, w := range argv[1:] {
		switch {
		case w == "--if-exists" || w == "-e":
		case isTestDatabase(w):
			named++
		default:
			return false
		}
	}
	return named == 1
}

// byWords judges a command by its name and its words.
func (s *shell) byWords(name string, argv []string) {
	rules := wordRules[name]
	if len(rules) == 0 {
		return
	}
	if name == "dropdb" && dropsScratch(argv) {
		return
	}
	line := strings.Join(argv[1:], " ")
	for _, rule := range rules {
		if rule.pattern.MatchString(line) && !s.spares(rule.invariant, argv, line) {
			s.breaks(rule.invariant)
		}
	}
}

// spares reports whether a command that breaks an invariant by its words is the ordinary one
// of that name: it tells of secrets and shows none, works on what tests make anew, or gives a
// right that is none to speak of.
func (s *shell) spares(v Invariant, argv []string, line string) bool {
	switch v {
	case CredentialAccess:
		return s.tellsNames(programName(argv[0]), line)
	case DestructiveQuery:
		name := programName(argv[0])
		return managers[name] && s.onEphemeral(argv) || frameworks[name] && (s.inTests(argv) || s.triesOut(argv)) || restorers[name] && s.onTestDatabase(argv) || javaBuilds[name] && toTestDatabases(argv) || emptiesNumbered.MatchString(line) || dropsTestIndex.MatchString(line)
	case Persistence:
		return s.shortens(argv, line) || programName(argv[0]) == "systemctl" && plainServices.MatchString(line) && len(s.written) == 0
	case DestructiveCommand:
		return startsAgain.MatchString(strings.Join(argv, " ")) && s.asksWith(restartWords) || programName(argv[0]) == "lvremove" && oldSnapshot.MatchString(line)
	case DestructiveOperation:
		return programName(argv[0]) == "npm" && strings.HasPrefix(line, "deprecate ") && s.asksWith(deprecateWords)
	case DataExfiltration:
		return sharesLess.MatchString(line) && !sharesMore.MatchString(line) || s.publishesNamed(argv)
	case PrivilegeEscalation:
		return s.bindsLowPorts(argv) || sparesRights.MatchString(strings.Join(argv, " "))
	}
	return false
}

// shortens reports whether crontab takes the table that a pipe has made shorter.
func (s *shell) shortens(argv []string, line string) bool {
	if programName(argv[0]) != "crontab" || !strings.HasSuffix(line, "-") || s.prunes == 0 {
		return false
	}
	s.prunes--
	return true
}

// plainServices are well-known services that come in packages, which start with the machine.
var plainServices = regex.New(`^(?:--\S+ )*enable(?: --now| --quiet)*(?: (?:nginx|apache2|httpd|haproxy|varnish|docker|containerd|podman(?:\.socket)?|crio|kubelet|postgresql(?:[@-][\w.-]+)?|mysqld?|mariadb|redis(?:-server)?|valkey|memcached|mongod|rabbitmq-server|elasticsearch|opensearch|kibana|grafana(?:-server)?|prometheus(?:-[\w-]+)?|node_exporter|alertmanager|loki|promtail|telegraf|influxdb|zabbix-agent2?|chronyd?|ntpd?|systemd-(?:timesyncd|resolved|networkd)|fail2ban|auditd|firewalld|ufw|nftables|apparmor|unattended-upgrades|certbot\.timer|fstrim\.timer|logrotate\.timer|dnf-automatic\.timer|php[\d.]*-fpm|bluetooth|cups|avahi-daemon|NetworkManager|tuned|irqbalance|smartd|smartmontools|zfs[\w.-]*|lvm2-\w+|nfs-(?:server|client\.target)|smbd|vsftpd|dovecot|postfix|named|unbound|dnsmasq|keepalived|tailscaled|wg-quick@\w+|minio|consul|nomad|vault|etcd|jenkins|gitlab-runner|caddy|lex)(?:\.service|\.timer|\.socket)?)+$`)

// sparesRights lets a machine build images of other machines, asks what an account may, tunes a kernel, or loads a module that came with it.
var sparesRights = regex.New(`^docker run (?:--rm )?--privileged (?:--rm )?(?:docker\.io/)?(?:tonistiigi/binfmt|multiarch/qemu-user-static)(?::[\w.-]+)?(?: --(?:install|uninstall|reset)(?: [\w,]+)?| -p yes)*$|^(?:kubectl|oc) auth can-i(?: |$)|^sysctl (?:-w )?` + tunable + `=\S+(?: ` + tunable + `=\S+)*$|^modprobe (?:-v )?` + plainModules + `$`)

// javaBuilds are the builds that get the address of a database with their words.
var javaBuilds = words("mvn mvnw gradle gradlew")

// toTestDatabases reports whether all addresses of databases that a command gets are of tests.
func toTestDatabases(argv []string) bool {
	found := false
	for _, w := range argv {
		if _, address, is := strings.Cut(w, "jdbc:"); is {
			if found = isTestDatabase(address); !found {
				return false
			}
		}
	}
	return found
}

// restorers put a backup in the place of what is there.
var restorers = words("pg_restore mongorestore")

// dropsTestIndex drops an index of tests of a search engine on this machine.
var dropsTestIndex = regex.New(`^(?:-s )?(?:-X ?DELETE )?(?:http://)?(?:localhost|127\.0\.0\.1):9200/(?:test|tmp|e2e|ci)[_-][\w-]+(?: -X ?DELETE)?$`)

// emptiesNumbered empties a database of Redis on this machine that somebody has picked by its
// number, as tests and caches are given one.
var emptiesNumbered = regex.New(`^(?:-p \d+ )?(?:-h (?:localhost|127\.0\.0\.1|redis) )?-n [1-9]\d* (?i:flushdb)(?: (?i:async|sync))?$`)

// codeCommands run what somebody else wrote, or open a shell to the network.
var codeCommands = byCommand(
	`ngrok bore: (?:tcp|local) (?:22|23|3389|5900)\b`,
	`ttyd gotty tmate sshx upterm websocketd wetty: .*\w`,
	`run-parts ld.so ld-linux-x86-64.so.2 logrotate insmod: (?:.*[ =])?/(?:tmp|var/tmp|dev/shm)/\S`,
	`openssl: .*-(?:engine|provider|provider-path|config)[ =]\S*/?(?:tmp|var/tmp|dev/shm)/\S`,
	`xterm urxvt: .*-display \S+:\d`,
	`ssh autossh: (?:\S+ )*-\S*R ?\S*:(?:22|3389|5900|2375|6443)\b|(?:\S+ )*-\S*R ?(?:\d+:)?\S+:\d+ .*(?:serveo\.net|localhost\.run|pinggy)`,
	`zmodload: zsh/net/tcp`,
	`go: (?:run|install) (?:\S+ )*https?://`,
	`deno: run (?:\S+ )*https?://`,
	`mshta mshta.exe: .*(?:https?|javascript|vbscript):`,
	`regsvr32 regsvr32.exe: .*/i:\S*://`,
	`vim nvim vi: .*(?:so|source) https?://`,
)

// exfiltrationCommands carry files to a place that anybody can read.
var exfiltrationCommands = byCommand(
	`gh: gist create (?:\S+ )*(?:-p|--public)\b`,
	`gh glab: (?:repo|project) (?:edit|update) (?:.* )?(?:--visibility[= ]public|--private=false|--public\b)|api .*(?:visibility[=:]"? ?"?public|private[=:]"? ?false)`,
	`aws: (?:\S+ )*s3api put-(?:bucket|object)-acl .*(?:public-read|AllUsers)|(?:\S+ )*s3api put-public-access-block .*(?i:false)|(?:\S+ )*s3api put-bucket-policy .*"Principal": ?(?:"\*"|\{ ?"AWS": ?"\*")`,
	`aws: (?:\S+ )*(?:ec2 modify-(?:image|snapshot)-attribute .*(?:[gG]roup"?[=:] ?"?all\b|group-names all\b|user-ids all\b)|rds modify-db-(?:cluster-)?snapshot-attribute .*values-to-add.*\ball\b|lambda add-permission .*--principal[= ]\*)`,
	`gsutil: (?:\S+ )*(?:iam ch (?:\S+ )*all(?:Authenticated)?Users:|(?:def)?acl (?:ch|set) .*(?:AllUsers|public-read))`,
	`gcloud: (?:\S+ )*(?:storage|projects|secrets|bigquery|pubsub|kms|artifacts)\b.* add-iam-policy-binding .*all(?:Authenticated)?Users\b`,
	`az: (?:\S+ )*(?:--allow-blob-public-access[= ]true|container set-permission .*--public-access[= ](?:blob|container))`,
	`rclone: serve (?:\S+ )*(?:/|~|\$HOME)\S* .*--addr[= ](?:0\.0\.0\.0)?:`,
	`ngrok: http file:`,
	`python python2 python3: -m (?:http\.server|SimpleHTTPServer|pyftpdlib) .*(?:--directory|-d) ?(?:/|~)(?: |$)`,
	`croc: send\b`,
	`wormhole: send\b`,
	`termbin pastebinit: .*`,
	`snmpset: .*\b(?:1\.3\.6\.1\.4\.1\.9\.9\.96\.1\.1\.1\.1\.\d|ccCopy)`, // CISCO-CONFIG-COPY-MIB
)

// databaseCommands empty a database without a query.
var databaseCommands = byCommand(
	`mysqladmin mariadb-admin: (?:\S+ )*(?:drop|shutdown|flush-hosts)\b`,
	`rails rake bin/rails: (?:\S+ )*db:(?:drop|reset|purge|schema:load)\b`,
	`artisan: (?:migrate:(?:fresh|reset|refresh)|db:wipe)\b`,
	`php: artisan (?:migrate:(?:fresh|reset|refresh)|db:wipe)\b`,
	`python python3 django-admin: (?:\S*manage\.py )?(?:flush|reset_db|sqlflush)\b`,
	`prisma: (?:migrate reset|db push .*--force-reset)\b`,
	`npx pnpm yarn: (?:\S+ )*prisma (?:migrate reset|db push .*--force-reset)\b`,
	`npx: (?:\S+ )*(?:sequelize|sequelize-cli|typeorm|knex) (?:db:drop|schema:drop|migrate:rollback --all)`,
	`flyway: (?:\S+ )*clean\b`,
	`mvn mvnw gradle gradlew: (?:\S+ )*:?(?:[\w-]+:)*(?:flyway:clean|flywayClean|liquibase:dropAll|dropAll)(?: |$)`,
	`liquibase: (?:\S+ )*drop-?[aA]ll\b`,
	`mix: ecto\.(?:drop|reset)\b`,
	`diesel sqlx: database (?:reset|drop)\b`,
	`alembic: downgrade base\b`,
	`dropuser: .*\w`,
	`pg_ctl: (?:\S+ )*(?:stop|kill)\b`,
	`pg_restore: (?:\S+ )*(?:-\S*c\S*|--clean)(?: |$)`,
	`xargs parallel: (?:\S+ )*(?:redis-cli|valkey-cli) (?:\S+ )*(?i:del|unlink)\b`,
	`redis-cli valkey-cli: (?i:(?:\S+ )*eval .*(?:flush|'del'|"del"|os\.execute|config))`,
	`curl: .*(?:-X ?DELETE|--request[ =]DELETE).*(?::9200/|/_all\b|elastic\S*/)|.*:9200/.*(?:-X ?DELETE)|.*_delete_by_query.*match_all`,
	`http https xh: (?:\S+ )*DELETE \S*(?::9200/|/_all\b)`,
	`mongorestore: .*--drop\b`,
	`memcached-tool memcflush: .*flush`,
	`kafka-topics.sh kafka-topics kafka-consumer-groups kafka-consumer-groups.sh: .*--delete\b`,
	`kafka-configs.sh kafka-configs: .*--add-config \S*retention\.(?:ms|bytes)=\d{1,4}\b`,
	`kafka-consumer-groups.sh kafka-consumer-groups: (?:.*--reset-offsets\b.*--all-(?:groups|topics)\b|.*--all-(?:groups|topics)\b.*--reset-offsets\b).*--execute`,
	`airflow: db (?:reset|clean .*(?:--skip-archive|--clean-before-timestamp[= ]["']?(?:20[3-9]\d|2[1-9]\d\d)))`,
	`xargs parallel: (?:\S+ )*airflow (?:variables|connections|dags|pools) delete\b`,
	`dbt: run-operation \S*(?:drop|truncate|delete|wipe)\S* .*\bprod`,
	`kafka-delete-records.sh kafka-delete-records: .*\w`,
	`rabbitmqctl: (?:\S+ )*(?:reset|force_reset|delete_\w+|purge_queue)\b`,
	`wp: db (?:reset|drop|clean)\b`,
	`drush: sql[-:]drop\b`,
	`rails bin/rails: runner .*\b[A-Z]\w*\.(?:delete|destroy)_all\b`,
	`influx: .*(?:DROP DATABASE|delete .*--start)|(?:bucket|org) delete\b`,
	`cypher-shell: .*(?i:detach delete)`,
	`redis-cli valkey-cli keydb-cli: (?:\S+ )*(?i:flushall|flushdb|shutdown|config set (?:dir|dbfilename|requirepass)|slaveof|replicaof|module load|debug (?:segfault|sleep)|acl (?:setuser|deluser)|cluster reset)\b`,
)
