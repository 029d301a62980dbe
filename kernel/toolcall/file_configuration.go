package toolcall

import (
	"path"
	"regexp"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Whoever looks after machines writes in the folders of the operating system: the settings of a
// web server, of a database, of the rotation of logs, and the pages that a server serves. Such a
// file starts nothing by itself and lets nobody in. What starts programs, names accounts, resolves
// names or records what was done is not among them.

// serviceSettings are the settings of services, and served the files that a web server serves.
var serviceSettings = regex.New(`^/etc/(?:` + strings.Join([]string{
	`(?:nginx|apache2|httpd|haproxy|varnish|traefik|keepalived|lighttpd|postgresql(?:-common)?|pgbouncer|mysql|mariadb|my\.cnf\.d|redis|memcached|mongodb?|rabbitmq|elasticsearch|opensearch|kibana|logstash|grafana|prometheus|alertmanager|loki|tempo|mimir|telegraf|influxdb|zabbix|collectd|chrony|php|php-fpm\.d|dovecot|postfix|named|bind|unbound|dnsmasq\.d|kea|netplan|sysctl\.d|logrotate\.d|fail2ban|containers|consul\.d|nomad\.d|mosquitto|tuned|multipath|lvm|snmp|samba|fonts|X11|vim|default/grub\.d|letsencrypt/renewal|iscsi|nut|pgbackrest|patroni|etcd|minio|clickhouse-server|cassandra|kafka|zookeeper|neo4j|solr|tomcat\d*|openvpn/ccd)/[\w@.+-]+(?:/[\w@.+-]+){0,4}`, //nolint:misspell // Mosquitto is a broker of messages
	`(?:fstab|hostname|timezone|localtime|locale\.(?:gen|conf)|default/(?:locale|keyboard)|sysctl\.conf|logrotate\.conf|my\.cnf|mongod\.conf|redis\.conf|memcached\.conf|chrony\.conf|ntp\.conf|dnsmasq\.conf|haproxy\.cfg|multipath\.conf|docker/daemon\.json|containerd/config\.toml|adjtime|nanorc|vconsole\.conf|dhcpcd\.conf|dhcp/dhcpd\.conf)`,
}, "|") + `)$`)

var served = regex.New(`^/(?:var/www|srv/www|usr/share/nginx/html)/[\w@.+-]+(?:/[\w@.+ -]+)*/?$`)

// isConfiguration reports whether a file, named plainly and without a pattern, is one of them.
func isConfiguration(name string) bool {
	return serviceSettings.MatchString(name) && !strings.Contains(name, "..") || served.MatchString(name)
}

// installed is a program that is put where those of the machine's owner lie. One with the name of
// a command of the system would run in its place.
var installed = regex.New(`^/usr/local/(?:bin|sbin|lib|share|etc|libexec)/[\w][\w@.+-]*(?:/[\w@.+-]+)*/?$`)

var systemCommands = words("sh bash zsh dash sudo su doas ls cat cp mv rm ps top kill ssh sshd scp sftp login passwd id whoami who w last find grep awk sed tar gzip curl wget git python python3 perl ruby node npm pip pip3 env systemctl service cron crontab at journalctl netstat ss ip ifconfig iptables mount df du chmod chown ln mkdir which man less more vi vim nano apt apt-get dnf yum dpkg rpm gpg openssl make gcc docker kubectl test true false echo printf date hostname uname")

// isInstalled reports whether a name is one of a program that its owner adds to a machine.
func isInstalled(name string) bool {
	return installed.MatchString(name) && !systemCommands[path.Base(name)]
}

// knownHost is a line of /etc/hosts that gives a name to an address of this machine or of the own
// network. One that leads a name elsewhere would lead everybody there who trusts the name.
var knownHost = regexp.MustCompile(`^(?:127\.\d+\.\d+\.\d+|::1|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+|0\.0\.0\.0)(?:\s+[\w.-]+)+$`)

// hardenedLogin is a line for the server of ssh that lets fewer in than before.
var hardenedLogin = regexp.MustCompile(`^(?:PermitRootLogin (?:no|prohibit-password)|(?:PasswordAuthentication|KbdInteractiveAuthentication|ChallengeResponseAuthentication|PermitEmptyPasswords|X11Forwarding|AllowTcpForwarding|AllowAgentForwarding|PermitTunnel|PermitUserEnvironment|GatewayPorts) no|PubkeyAuthentication yes|MaxAuthTries [1-6]|MaxSessions \d|LoginGraceTime \d{1,2}|ClientAlive(?:Interval|CountMax) \d+|(?:AllowGroups|AllowUsers|DenyUsers|DenyGroups) [\w -]+|LogLevel (?:VERBOSE|INFO)|UsePAM yes|(?:Ciphers|MACs|KexAlgorithms) [\w@.,-]+)$`)

// rotation finds the scripts that the rotation of logs runs.
var rotation = regex.New(`(?s)\b(?:prerotate|postrotate|firstaction|lastaction|preremove)\b\s*\n(.*?)\n\s*endscript\b`)

// rotationCommands are the commands in the settings of logrotate.
func rotationCommands(text string) []string {
	var out []string
	for _, m := range rotation.FindAllStringSubmatch(text, maxRecipes) {
		out = append(out, m[1])
	}
	return out
}
