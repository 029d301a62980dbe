package file

import (
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// InSystem reports whether a place is a folder of the operating system, or in one.
func InSystem(place string) bool { return systemFolder.MatchString(place) }

// IsOutside reports whether a name climbs out of the working folder or names
// a folder of the operating system.
func IsOutside(name string) bool {
	if strings.ContainsRune(name, 0) || strings.HasPrefix(name, "//") {
		return true
	}
	clean := Clean(name)
	switch {
	case strings.HasPrefix(clean, "~") && !strings.HasPrefix(clean, "~/") && clean != "~" && strings.Contains(clean, "/"):
		return true // the home of somebody else
	case windowsFolder.MatchString(clean):
		return true
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return true
	case OnDrive(clean):
		return systemDrive.MatchString(clean)
	}
	return systemFolder.MatchString(clean)
}

var (
	systemFolder = regex.New(`^/(?:etc|root|proc|sys|dev|boot|bin|sbin|lib|lib32|lib64|usr/(?:local/)?(?:bin|sbin|lib|libexec|etc)|usr/(?:share|include)|private/(?:etc|var)|var/(?:run|lib|log|spool|mail|backups|www)|run|System|Library/(?:Launch\w+|Keychains|Preferences)|(?i:windows|winnt|program files(?: \(x86\))?|programdata)|(?:mnt|cygdrive)/[a-z]/(?i:windows|program files|users)|[a-z]/(?i:windows))(?:/|$)`)
	systemDrive  = regex.New(`(?i)^[a-z]:/(?:windows|boot|program files|programdata|users/(?:all users|administrator))`)
	// windowsFolder is a folder of Windows by its variable or its short name.
	windowsFolder = regex.New(`(?i)^(?:%(?:systemroot|windir|programfiles(?:\(x86\))?|programdata|systemdrive|allusersprofile)%|\$env:(?:systemroot|windir|programfiles|programdata|systemdrive))(?:/|$)|^[a-z]:/(?:progra~\d|window~\d|docume~\d|users/(?:default|public|all users))(?:/|$)|^[a-z]:\.\.(?:/|$)|^\?\?/|^globalroot/`)
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

// IsConfiguration reports whether a file, named plainly and without a pattern, has settings of a
// service or pages that a server serves. Whoever looks after machines writes such files. They
// start nothing by themselves and let nobody in: what starts programs, names accounts, resolves
// names or records what was done is not among them.
func IsConfiguration(name string) bool {
	return serviceSettings.MatchString(name) && !strings.Contains(name, "..") || served.MatchString(name)
}

// installed is a program that is put where those of the machine's owner lie. One with the name of
// a command of the system would run in its place.
var installed = regex.New(`^/usr/local/(?:bin|sbin|lib|share|etc|libexec)/[\w][\w@.+-]*(?:/[\w@.+-]+)*/?$`)

var systemCommands = prose.Set("sh bash zsh dash sudo su doas ls cat cp mv rm ps top kill ssh sshd scp sftp login passwd id whoami who w last find grep awk sed tar gzip curl wget git python python3 perl ruby node npm pip pip3 env systemctl service cron crontab at journalctl netstat ss ip ifconfig iptables mount df du chmod chown ln mkdir which man less more vi vim nano apt apt-get dnf yum dpkg rpm gpg openssl make gcc docker kubectl test true false echo printf date hostname uname")

// IsInstalled reports whether a name is one of a program that its owner adds to a machine.
func IsInstalled(name string) bool {
	return installed.MatchString(name) && !systemCommands[path.Base(name)]
}
