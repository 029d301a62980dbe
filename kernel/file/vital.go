package file

import (
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// vital names what a machine or a person cannot lose: the root, the folders
// directly below it but temporary ones, the system's folders at any depth, and
// homes as a whole.
var vital = regex.New(`^(?:` + strings.Join([]string{
	`/[*.?]*`,
	`/(?:bin|boot|dev|etc|lib|lib32|lib64|proc|root|sbin|sys|usr|System|Library|Applications|Windows)(?:/.*)?`,
	`/(?:home|Users|var|opt|srv|mnt|media|run|data|app|backups?)(?:/[*]*)?`,
	`/(?:home|Users)/[^/]+(?:/[*.]*)?`,
	`/var/(?:lib|log|backups?|spool|mail|www|cache)(?:/[*]*)?`,
	`/var/lib/(?:postgres\w*|pgsql|mysql|mariadb|mongo\w*|redis|docker|containerd|etcd|kubelet|rancher|libvirt|dpkg|rpm|elasticsearch|influxdb|grafana|prometheus|jenkins|gitlab|clickhouse|cassandra|neo4j|rabbitmq|kafka|zookeeper|consul|vault)(?:/.*)?`,
	`~[^/]*(?:/[*.]*)?`,
	`~/\.(?:ssh|gnupg|aws|config|kube)(?:/.*)?`,
	`(?:~|/(?:home|Users)/[^/]+)/(?:Documents|Desktop|Pictures|Photos|Movies|Music|Videos|Library|Mail|OneDrive|Dropbox|Nextcloud)(?:/[*.]*)?`,
	`/(?:mnt|media|Volumes|srv)/[^/]+(?:/[*.]*)?`,
	`[A-Za-z]:/?[*.]*`,
	`[A-Za-z]:/?(?i:windows|program files)(?:/.*)?`,
	`[A-Za-z]:/?(?i:users)(?:/[^/]*)?(?:/[*.]*)?`,
}, "|") + `)$`)

// IsVital reports whether a place, or one that a pattern stands for, is what a machine or a
// person cannot lose.
func IsVital(p string) bool { return vital.MatchString(p) || vitalPattern(p) }

// vitalPattern reports whether a pattern of the shell stands for one of the folders
// below the root that cannot be lost.
func vitalPattern(p string) bool {
	if !strings.HasPrefix(p, "/") || !strings.ContainsAny(p, "*?[") || len(p) > maxPattern {
		return false
	}
	first, rest, below := strings.Cut(p[1:], "/")
	if !strings.ContainsAny(first, "*?[") {
		return false
	}
	for _, folder := range rootFolders {
		if match, err := path.Match(first, folder); err != nil || !match {
			continue
		}
		if !below || vital.MatchString("/"+folder+"/"+rest) {
			return true
		}
	}
	return false
}

// rootFolders are the folders below the root that a machine or a person needs.
var rootFolders = strings.Fields("etc usr var home bin lib boot root opt srv Users System Library")

var device = regex.New(`^/dev/(?:sd|nvme|hd|vd|xvd|disk|mmcblk|mapper/|md|dm-|mem|kmem|rdisk|loop\d|` + Unknown + `$)`)

// IsDevice reports whether a name is that of a disk, or of memory. What nobody knows of
// /dev may be one.
func IsDevice(p string) bool { return device.MatchString(p) }

// IsCache reports whether a path is a cache, or what is in one, of which a program makes the content
// anew.
func IsCache(p string) bool { return cacheFolder.MatchString(p) && !strings.Contains(p, "..") }

var cacheFolder = regex.New(`^(?:~|/(?:home|Users)/[\w.-]+|/Library|/volume\d+|C:/Windows)/(?:[\w. -]+/)*(?:[Cc]aches?|@tmp|DerivedData|SoftwareDistribution/Download)(?:/[\w.* -]+)*/?\*?$`)
