package toolcall

import (
	"path"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Most of what an administrator types begins with sudo, so that the word alone tells nothing.
// What counts is what runs with the rights of root: a program that does one known thing, such as
// to grow a volume or to let an address in, is judged by its words like any command, and by what
// only root can spoil. What could do anything (a shell, an interpreter, an editor, a program of
// the workspace) is a gain of rights.

// keepsUp reports whether a call of sudo is the upkeep of a machine. What is run is judged like
// any command beside this.
func (s *shell) keepsUp(argv []string) bool {
	if name := programName(argv[0]); name != "sudo" && name != "doas" {
		return false
	}
	rest := argv[1:]
	for len(rest) > 0 && (rest[0] == "-n" || rest[0] == "-E" || rest[0] == "-H") {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case "-u", "-iu", "-Hu", "-nu":
		return len(rest) > 2 && givesUpRights(rest[1], rest[2:])
	case "-v", "-k":
		return len(rest) == 1
	}
	return s.mayAsRoot(rest)
}

// mayAsRoot reports whether a command may run with the rights of root.
func (s *shell) mayAsRoot(argv []string) bool {
	name, from := path.Base(argv[0]), path.Dir(argv[0])
	if from != "." && !systemPrograms[from] || strings.HasPrefix(argv[0], "./") {
		return false
	}
	if slices.ContainsFunc(argv, func(w string) bool {
		return strings.Contains(w, "../") || w == ".." || packageFile.MatchString(w) && !worksOnFiles[name]
	}) {
		return false
	}
	line := strings.Join(argv[1:], " ")
	switch {
	case name == "chown":
		return s.takesBack(operands(argv))
	case name == "setcap":
		return s.bindsLowPorts(argv)
	case patient[name]:
		run := wrappedCommand(argv)
		return len(run) > 0 && s.mayAsRoot(run)
	case isShell(name):
		_, _, given := programOf(argv) // whose commands are judged one by one
		return given
	case s.rooted > 0 && (rootBuiltins[name] || len(argv) == 1 && assignment.MatchString(name)):
		return true
	}
	if e := rootSpoils[name]; e != nil && e.MatchString(line) {
		return false
	}
	if e := upkeepCommands[name]; e != nil && e.MatchString(line) {
		return true
	}
	beyond, known := administration[name]
	return known && (beyond == nil || !beyond.MatchString(line))
}

var (
	systemPrograms = words("/usr/bin /usr/sbin /bin /sbin /usr/local/bin /usr/local/sbin")

	// patient are the wrappers that only change when and how fast a command runs.
	patient = words("nice ionice nohup time timeout")

	// rootBuiltins are what a shell does by itself between the commands.
	rootBuiltins = words("echo printf cd pushd popd set export local readonly true false : test [ sleep exit return umask wait shift")
)

// givesUpRights reports whether a command runs as the account of a service, which may less than
// whoever asks for it. A shell that waits for commands could still do anything.
func givesUpRights(account string, argv []string) bool {
	if len(argv) > 1 && argv[0] == "--" {
		argv = argv[1:]
	}
	switch name := programName(argv[0]); {
	case !serviceAccount.MatchString(account) || strings.HasPrefix(argv[0], "-"):
		return false
	case escalates[name]:
		return false
	case isShell(name):
		_, _, given := programOf(argv) // which is judged
		return given
	case isInterpreter(name), isSQLClient(name):
		return len(argv) > 1
	}
	return true
}

// serviceAccount is the account of a service.
var serviceAccount = regex.New(`^(?:www-data|nginx|apache2?|http|_www|postgres|mysql|mariadb|redis|mongodb?|rabbitmq|elasticsearch|opensearch|kafka|zookeeper|influxdb|grafana|prometheus|node_exporter|jenkins|gitlab-runner|gitlab|git|gitea|minio|vault|consul|nomad|airflow|tomcat\d*|solr|nextcloud|matrix-synapse|asterisk|zabbix|nagios|icinga|postfix|bind|named|unbound|squid|haproxy|ntp|chrony|backup|borg|restic|deploy(?:er)?|app|web|rails|node|django|celery|php|puma|oracle|grid|sap\w*|steam|minecraft|homeassistant|pi-hole|pihole|plex|jellyfin|svc[-_]\w+|[\w-]+[-_]svc)$`)

// takesBack reports whether files get an owner who is not root: those of the workspace, wherever
// the shell has gone to and links lead, or of an application.
func (s *shell) takesBack(words []string) bool {
	return len(words) > 1 && !rootOwner.MatchString(words[0]) && !slices.ContainsFunc(words[1:], func(w string) bool {
		w = strings.TrimSuffix(w, "/")
		return !applicationFolder.MatchString(w) && (!plainFolder.MatchString(w) || !plainFolder.MatchString(s.resolve(w)))
	})
}

var (
	rootOwner   = regex.New(`(?i)root|(?:^|:)0`)
	plainFolder = regex.New(`^(?:\./)?[\w.-][\w./-]*$`)

	// applicationFolder is where an application, or what it keeps, lies.
	applicationFolder = regex.New(`^/(?:opt|srv|data|mnt|media|var/(?:www|opt|cache|log|lib)|home/[\w-]+|Users/[\w-]+|usr/local/share)/[\w][\w.@/-]*$`)
)

// rootSpoils is what root must not do with programs whose other uses are upkeep: open a way in for
// logins, shut everybody out, and take guards off the machine.
var rootSpoils = byCommand(
	`systemctl: (?:\S+ )*(?:start|enable|unmask) .*\b`+loginServices,
	`service: `+loginServices+` start`,
	`systemctl: (?:\S+ )*(?:stop|disable|mask) .*\bsshd?\b`,
	`service: sshd? stop`,
	`apt apt-get dnf yum zypper apk pacman snap: .*\b(?:remove|purge|erase|rm|del|-R\w*|autoremove)\b.* (?:sudo|openssh-server|systemd|libc6|linux-image\S*|kernel\S*|auditd?|rsyslog|syslog-ng|falco|clamav\S*|fail2ban|ufw|firewalld|nftables|iptables\S*|apparmor\S*|selinux\S*|aide|rkhunter|chkrootkit|osquery|wazuh\S*|ossec\S*|falcon\S*|crowdstrike\S*|sentinel\S*|splunk\S*|filebeat|auditbeat|promtail|vector|fluent\S*|td-agent|datadog\S*|caddy|lex|\*)(?: |$)`,
)

const loginServices = `(?:sshd?|telnet\w*|rsh|rlogin|rexec|xinetd|inetd|vsftpd|proftpd|ftpd|tftp\w*|x11vnc|\w*vnc\w*|xrdp|teamviewer\w*|anydesk|rustdesk|tmate|ttyd|shellinabox|ngrok|cloudflared|frpc?|cockpit|webmin|cron|crond|atd)\b`

// packageFile is a file that some clients install by its name alone.
var packageFile = regex.New(`\.(?:deb|rpm|apk)$`)

// upkeepCommands are what root may run of programs that could do more: their words, as a whole.
var upkeepCommands = byCommand(
	`apt apt-get: `+upkeepFlags+`(?:(?:update|upgrade|full-upgrade|dist-upgrade|autoremove(?: --purge)?|clean|autoclean|check)|(?:--fix-broken |-f )install)`+upkeepFlagsAfter+`$`,
	`apt apt-get: `+upkeepFlags+`(?:install|reinstall)`+upkeepPackages+`$`,
	`apt apt-get dnf yum zypper apk pacman: `+upkeepFlags+`(?:remove|purge|erase|rm|del|-R\w*)(?: -y| -q| --yes| --purge| --auto-remove| --noconfirm| [a-z][\w.+-]*\*?)+$`,
	`apt-mark: (?:un)?hold( [\w.+-]+)+$|show\w+$|(?:auto|manual)( [\w.+-]+)+$`,
	`dpkg: (?:--configure -a|-l|-L|-s|-S|--audit|--list|--status)(?: [\w./+*-]+)*$`,
	`dnf yum microdnf: `+upkeepFlags+`(?:(?:check-)?update|upgrade|makecache|autoremove|clean all)`+upkeepFlagsAfter+`$`,
	`dnf yum microdnf: `+upkeepFlags+`install`+upkeepPackages+`$`,
	`apk: (?:--no-cache )?(?:update|upgrade)$`,
	`apk: (?:--no-cache )?add(?: --no-cache| [a-z0-9][\w.+=~-]*)+$`,
	`zypper: (?:(?:-n|--non-interactive|--quiet) )*(?:refresh|update|up)`+upkeepFlagsAfter+`$`,
	`zypper: (?:(?:-n|--non-interactive|--quiet) )*(?:install|in)`+upkeepPackages+`$`,
	`pacman: -Sy{0,2}u?(?: --noconfirm| --needed| [a-z0-9][\w.+-]*)*$`,
	`snap: (?:install|refresh)(?: --(?:classic|channel=[\w./-]+)| [a-z0-9-]+)+$|(?:list|info|changes)\b.*$`,
	`systemctl: (?:--no-pager )?(?:daemon-reload|daemon-reexec|reset-failed|list-\S+|--failed|(?:status|restart|reload|try-restart|reload-or-restart|start|stop|enable|disable|is-active|is-enabled|is-failed|show|cat|unmask|mask)(?: --now| --no-pager| -l| --quiet| -q| [\w@][\w@.*-]*)+)(?: --[\w=-]+| [\w@.*-]+)*$`,
	`service: [\w@][\w@.-]* (?:status|restart|reload|start|stop)$`,
	`journalctl: (?:-(?:u|t|n|p|S|U|g|o) ?[\w@][\w@.:-]*(?: \d[\d:]+)?(?: |$)|-[xefrkb]+(?: |$)|(?:-[SU] ?|--(?:since|until)[= ])-\d+\w+(?: |$)|--(?:unit|since|until|lines|priority|output|grep)[= ][\w@][\w@.:-]*(?: \d[\d:]+)?(?: |$)|--(?:since|until)[= ]\d+ (?:second|minute|min|hour|day|week)s? ago(?: |$)|--no-pager(?: |$)|--disk-usage(?: |$))*$`,
	`journalctl: (?:--rotate )?--vacuum-(?:time[= ](?:[7-9]|[1-9]\d+)d(?:ays)?|time[= ]\d+(?:w|weeks?|months?)|size[= ](?:[1-9]\d{2,}M|\d+G))$`,
	`dmesg: (?:-[THwkx]+ ?|--(?:ctime|human|follow|level=[\w,]+) ?)*$`,
	`lsof: (?:-[nPt]+ )*-i(?: ?(?:TCP|UDP|tcp|udp)?:?[\w,-]+)?(?: -[nPt]+)*(?: -sTCP:LISTEN)?$`,
	`lsof: (?:-[nP]+ )*(?:\+L1|\+D /[\w./-]+|-p \d+|/[\w./-]+)$`,
	`logrotate: (?:-[fdv]+ )*/etc/logrotate\.(?:conf|d/[\w.-]+)$`,
	`ausearch aureport lastlog last lastb faillock: .*`,
	`faillock: --user [\w.-]+ --reset$`,
	`auditctl: -[ls]$|-w /[\w./-]+ -p [rwxa]+(?: -k [\w-]+)?$`,
	`augenrules: --(?:load|check)$`,
	`lvremove: `+snapshotVolume+`$`,
	`coredumpctl: (?:list|info)\b.*$`,
	`tmutil: (?:thinlocalsnapshots / \d+ \d|listlocalsnapshots /|listbackups|startbackup|status)$`,
	`suricata-update freshclam rkhunter sa-update: (?:-+[\w-]+ ?)*$`,
	`suricata: -T -c /etc/suricata/\S+$`,
	`pfctl: -n?f /etc/pf\.conf$|-s\w* ?\w*$|-t [\w-]+ -T (?:show|expire \d+|delete `+narrowAddress+`)$`,
	`smbpasswd: -[xd] [\w.-]+$`,
	`systemsetup: -get\w+$|-set(?:remotelogin|remoteappleevents|wakeonnetworkaccess) off$|-setusingnetworktime on$`,
	`launchctl: (?:list|print|blame)\b.*$|disable system/com\.apple\.(?:screensharing|telnetd|ftpd|RemoteDesktop[\w.]*)$`,
	`dseditgroup: -o (?:read|edit -d [\w.-]+ -t user) [\w.-]+$`,
	`pam-auth-update: --enable mkhomedir$`,
	`find: `+oldFolder+`(?: -(?:maxdepth|mindepth) \d| -type [fdl]| -(?:name|iname) \S+)* -[mac]time \+\d+(?: -type [fdl])*(?: -print)? (?:-delete|-exec rm -r?f? ?\{\} (?:\\;|;|\+))$`,
	`crontab: (?:-u [\w-]+ )?-l$`,
	`iptables ip6tables: (?:-[wnv] )*-(?:S|[nv]*L[nv]*)(?: (?:INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING|DOCKER-USER))?(?: -[nv]+| --line-numbers)*$`,
	`iptables ip6tables: (?:-w )?-(?:[IADC]) [\w-]+ (?:\d+ )?(?:.* )?(?:-s|--source|--src) `+narrowAddress+` (?:.* )?(?:-j|--jump) (?:DROP|REJECT|ACCEPT|LOG|RETURN)(?: .*)?$`,
	`iptables ip6tables: (?:-w )?-(?:[IADC]) INPUT (?:\d+ )?(?:-i \w+ )?-p (?:tcp|udp) (?:-m \w+ )*--dport (?:80|443|8080|8443|51820|123|53) (?:-m \w+ --ctstate \w+ )?-j ACCEPT$`,
	`iptables ip6tables: -D [\w-]+ \d+$`,
	`nft: (?:-a )?list .*`,
	`ufw: (?:status(?: verbose| numbered)?|reload|enable|logging (?:on|low|medium|high)|(?:insert \d+ )?(?:deny|reject|limit) .*|delete (?:allow|deny|limit|reject) .*|(?:--force )?delete \d+)$`,
	`ufw: allow (?:(?:in |proto (?:tcp|udp) )*from `+narrowAddress+`(?: .*)?|(?:in )?(?:\d+(?::\d+)?(?:/(?:tcp|udp))?|'?(?:Nginx|Apache|WWW)[ \w]*'?|OpenSSH|https?|ssh)(?: comment .*)?)$`,
	`firewall-cmd: (?:--(?:permanent|reload|state|list-\S+|get-\S+|zone=[\w-]+|(?:add|remove)-(?:service|port)=[\w/-]+|remove-\S+|timeout=\w+|add-rich-rule=.*(?:drop|reject).*|query-\S+)(?: |$))+$`,
	`fail2ban-client: (?:status|ping|reload|get)\b[^;|]*$|set [\w-]+ (?:(?:un)?banip|addignoreip|delignoreip) `+narrowAddress+`(?: `+narrowAddress+`)*$|unban `+narrowAddress+`$`,
	`nginx apachectl apache2ctl httpd: (?:-t|-T|-v|-V|configtest|graceful|restart|-s (?:reload|reopen))$`,
	`a2ensite a2dissite a2enmod a2dismod a2enconf: [\w.-]+(?: [\w.-]+)*$`,
	`certbot: (?:certificates|(?:renew|certonly|run|install|delete|revoke)?(?: ?(?:--(?:dry-run|quiet|nginx|apache|standalone|webroot|non-interactive|agree-tos|redirect|expand|force-renewal|keep-until-expiring|cert-name[= ][\w.-]+|email[= ]\S+|webroot-path[= ]\S+|domains?[= ]\S+)|-(?:q|n|d \S+|m \S+|w \S+)))*)$`,
	`e2fsck fsck xfs_repair: (?:-\w*n\w* )+/dev/\S+$`,
	`tailscale: (?:status|ip|ping|netcheck|version)\b.*$`,
	`wg: (?:show(?: \w+)?(?: (?:latest-handshakes|transfer|endpoints|peers))?)$`,
	`wg-quick: (?:up|down|save) \w+$`,
	`wg: set \w+ peer \S+ remove$`,
	`journalctl: --rotate$`,
	`sysctl: (?:-p(?: /etc/sysctl\.\S+)?|--system|-a|(?:-n )?[\w.]+|(?:-w )?`+tunable+`=\S+(?: `+tunable+`=\S+)*)$`,
	`modprobe: (?:-v )?`+plainModules+`$`,
	`visudo: -cf? ?\S*$`,
	`cloud-init: (?:status|query|analyze)\b.*$`,
)

// oldFolder holds what is thrown away once it is old.
const oldFolder = `/(?:tmp|var/tmp|var/cache|var/crash|var/lib/systemd/coredump)(?:/[\w.*-]+)*/?`

// narrowAddress is an address, or a network that is not much of the world.
const narrowAddress = `(?:\d+\.\d+\.\d+\.\d+(?:/(?:[89]|[12]\d|3[0-2]))?|[0-9a-fA-F]*:[0-9a-fA-F:]+(?:/(?:3[2-9]|[4-9]\d|1[0-2]\d))?)`

// tunable are the settings of a kernel that make it faster or larger, and guard nothing.
const tunable = `(?:vm\.(?:max_map_count|swappiness|overcommit_\w+|dirty_\w+|vfs_cache_pressure|nr_hugepages|min_free_kbytes|zone_reclaim_mode)|fs\.(?:file-max|nr_open|aio-max-nr|inotify\.\w+)|kernel\.(?:pid_max|threads-max|shm\w+|msg\w+|sem|sched_\w+|numa_balancing|panic|task_delayacct)|net\.(?:core\.\w+|ipv[46]\.(?:tcp_\w+|ip_local_port_range|neigh\.\w+\.gc_thresh\d)|netfilter\.nf_conntrack_\w+|bridge\.bridge-nf-call-\w+))`

// plainModules are modules of the kernel that come with it, for networks, disks and containers.
const plainModules = `(?:br_netfilter|overlay|ip_vs\w*|ip_tables|ip6?table_\w+|nf_\w+|nft_\w+|xt_\w+|wireguard|8021q|bonding|tun|tap|veth|bridge|dummy|vxlan|zfs|nbd|dm[_-]\w+|raid\d+|nfsd?|nfsv\d|cifs|fuse|rbd|ceph|xfs|ext4|btrfs|kvm\w*|vhost\w*|virtio\w*|nvidia\w*|amdgpu|i915|tcp_bbr|sch_\w+|softdog|watchdog|ipmi_\w+|coretemp|loop|v4l2loopback|snd[_-]\w+|usb[_-]?\w+)`

// administration are the programs that do one known thing each, with what they may not as root.
// What they do to files, accounts, disks and guards is judged beside this, by every reader.
var administration = exceptFor(
	`ls stat du df cp mv ln mkdir rmdir touch install rm cat head tail grep egrep fgrep zgrep zcat wc diff cmp md5sum sha256sum readlink file tree cut sort uniq tr gzip gunzip zstd xz truncate fallocate getfacl setfacl chgrp test basename dirname date:`,
	`tee: (?:^| )/(?:usr/(?:local/)?)?s?bin/`,
	`find: -(?:exec|execdir|ok|okdir|fprintf?|fls)\b`,
	`sed: (?:^| )-\w*[fs]|(?:^|[;{ '])[\d,$]*[ew](?: |$)`,
	`tar: --(?:to-command|checkpoint-action|use-compress-program|rsh-command|info-script)|(?:^| )-\w*[IF]`,
	`rsync: (?:^| )(?:-e|--rsh|--rsync-path)`,
	`lvextend lvcreate lvs vgs pvs lvdisplay vgdisplay pvdisplay pvscan vgscan lvscan pvresize vgextend pvcreate resize2fs xfs_growfs growpart partprobe fstrim smartctl lsblk blkid swapon swapoff mkswap dumpe2fs xfs_info tune2fs nfsstat showmount findmnt mount umount udevadm hdparm nvme mdadm zpool zfs btrfs multipath:`,
	`parted: (?:-s )?\S+ (?:mk|rm|resizepart|set)|-s .*(?:mk|rm)`,
	`fdisk: ^[^-]`,
	`ip: netns exec|(?:^| )-b(?:atch)?|\bflush\b|route (?:del\w*|replace|change) (?:default|0\.0\.0\.0/0)`,
	`ss netstat ethtool ping ping6 traceroute tracepath mtr arp arping nslookup dig host resolvectl systemd-resolve networkctl hostname whois conntrack iw iwconfig rfkill iftop nethogs vnstat bridge:`,
	`tcpdump: (?:^| )-\w*[zZ]|--postrotate`,
	`nmcli: (?:^| )edit\b`,
	`netplan: ^(?:set|rebind)`,
	`chmod: /etc/(?:g?shadow|sudoers|ssh/ssh_host)|^(?:-R )?[0-7]*7 /(?:etc|usr|var/lib|root)`,
	`update-alternatives: --(?:install|set) .*(?:/tmp|/home|/var/tmp|/dev/shm)`,
	`useradd adduser usermod: (?:^| )(?:-g|-G|-aG|--gid|--groups)[= ](?:0|root)\b|(?:-\w*p|--password|-\w*o|--non-unique)(?: |=|$)|/(?:etc|root)\b`,
	`groupadd groupmod gpasswd chage deluser userdel groupdel: (?:^| )(?:-\w*o|--non-unique|-M|-A) `,
	`passwd: (?:^| )(?:-\w*[du]\w*|--delete|--unlock)(?: |$)`,
	`kill pkill killall renice pgrep pidof ps pstree top htop iotop iostat vmstat mpstat sar pidstat free uptime w who lscpu lsmod lspci lsusb lshw dmidecode sensors nvidia-smi modinfo numastat slabtop:`,
	`hostnamectl timedatectl localectl loginctl locale-gen update-locale dpkg-reconfigure ldconfig update-ca-certificates update-ca-trust updatedb update-grub grub-mkconfig update-initramfs depmod needrestart ntpdate chronyc hwclock apt-cache apt-file dpkg-query debconf-show unattended-upgrade snapper restorecon getsebool:`,
	`docker podman nerdctl crictl ctr docker-compose kubectl k3s helm microk8s kubeadm etcdctl velero ceph rbd rados gluster pct qm virsh lxc incus:`,
	`gitlab-ctl gitlab-backup pg_ctlcluster pg_lsclusters pg_createcluster mysqladmin redis-cli rabbitmqctl rabbitmq-plugins postqueue postsuper postmap postconf newaliases asterisk nginx-config varnishadm varnishreload haproxy supervisorctl consul nomad monit zabbix_get rndc named-checkconf named-checkzone unbound-control squid exim mailq doveadm pihole opendkim-testkey apachectl php-fpm borg restic wpa_cli: `+otherConfiguration+``,
)

// otherConfiguration starts a service with settings that nobody has read.
const otherConfiguration = `(?:^| )(?:-f|-c|--config)[= ]?(?:/tmp|/dev/shm|/var/tmp|/home|\./)`

// exceptFor makes a table of lines "names: expression"; without an expression, a name is free of
// exceptions.
func exceptFor(lines ...string) map[string]*regex.Expression {
	out := make(map[string]*regex.Expression)
	for _, line := range lines {
		names, beyond, _ := strings.Cut(line, ":")
		var e *regex.Expression
		if beyond = strings.TrimSpace(beyond); beyond != "" {
			e = regex.New(beyond)
		}
		for name := range strings.FieldsSeq(names) {
			out[name] = e
		}
	}
	return out
}

const (
	upkeepFlags      = `(?:(?:-y|-q|-qq|-yq|-qy|-yqq|--yes|--quiet|--assumeyes|--no-install-recommends) )*`
	upkeepFlagsAfter = `(?: -y| -q| -qq| -yq| --yes| --quiet| --assumeyes)*`
	upkeepPackages   = `(?: -y| -q| -qq| -yq| -qy| -yqq| --yes| --quiet| --assumeyes| --no-install-recommends| [a-zA-Z0-9][\w+:~-]*(?:\.[\w+~-]+)*(?:=[\w.+:~*-]+)?)+`
)
