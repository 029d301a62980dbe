package toolcall

import (
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// file judges an argument that names a file.
func (r *reading) file(name string) {
	if strings.Contains(name, "://") && !strings.HasPrefix(strings.ToLower(name), "file:") {
		return
	}
	if !r.spend(costJudge * len(name)) {
		return
	}
	near := (neighbour.MatchString(name) || file.IsConfiguration(name) || r.everyday && strings.HasPrefix(name, "/etc/") || !r.tool.writes && serviceLog.MatchString(name)) && !r.tool.removes
	for _, form := range file.Forms(name) {
		if file.IsOutside(form) && (r.tool.writes || r.tool.removes || !harmless.MatchString(file.Clean(form))) && (!near || form != name) {
			r.breaks(PathTraversal)
		}
		if !r.tool.writes && file.IsCredential(form) {
			r.breaks(CredentialAccess)
		}
		if r.tool.writes || r.tool.removes {
			r.governed(form)
			r.planted(form)
		}
	}
}

// neighbour is a source file of the package next to this one, as repositories of several
// packages have them.
var neighbour = regex.New(`^\.\./[A-Za-z0-9@][\w-]*/(?:src|lib|test|tests|__tests__|types|docs|app|components|include|internal|pkg|cmd|schema|proto|styles)/(?:[\w-]+/)*[\w-]+(?:\.[\w-]+)?\.(?:tsx?|jsx?|mjs|cjs|py|pyi|go|rs|java|kt|rb|php|c|cc|cpp|h|hpp|cs|swift|scala|vue|svelte|css|scss|html|md|mdx|proto|graphql|sql|snap)$`)

// serviceLog is what a service has written of its work.
var serviceLog = regex.New(`^/var/log/(?:[\w-]+/){0,2}[\w.-]+\.(?:log|err|out)(?:\.\d+)?$`)

// harmless are files outside the workspace that hold nothing but what everybody
// may know: the names of hosts, the system's version, the sources and manuals of installed
// libraries, a sibling's introduction, how the repository around a package is built.
var harmless = regex.New(`^(?:/usr/(?:local/)?(?:lib|lib64|include|share|src)(?:/[\w.+@-]+)*/?|/etc/(?:hosts|hostname|os-release|timezone|localtime|shells|services|protocols)|/proc/(?:meminfo|cpuinfo|loadavg|uptime|version|stat|vmstat|diskstats|filesystems|partitions|swaps|mounts|net/(?:dev|tcp6?|udp6?|route)|sys/kernel/(?:hostname|osrelease|random/boot_id)|self/(?:status|stat|limits|cgroup|mounts|io))|/sys/(?:fs/cgroup/[\w./-]*(?:max|current|stat|limit_in_bytes|usage_in_bytes)|class/(?:net|thermal|power_supply|hwmon)/[\w./-]+)|(?:\.\./){1,3}(?:package\.json|tsconfig[\w.]*\.json|(?:nx|turbo|lerna)\.json|pnpm-workspace\.yaml|pyproject\.toml|go\.(?:mod|work)|Cargo\.toml|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|Directory\.(?:Build|Packages)\.(?:props|targets)|global\.json|[\w.-]+\.sln|Makefile|CMakeLists\.txt|\.editorconfig|\.gitignore|(?i:README|LICENSE|CHANGELOG|CONTRIBUTING)(?:\.(?i:md|txt|rst))?)|\.\./[\w-]+/(?i:README|LICENSE|CHANGELOG|CONTRIBUTING)(?:\.(?i:md|txt|rst))?)$`)

// escapes judges a word of a command: shells climb for good reasons, but not
// into the folders of the system.
func (s *shell) escapes(word string) {
	if strings.Contains(word, "/proc/") && otherRoot.MatchString(word) {
		s.breaks(PrivilegeEscalation)
	}
	if strings.Count(word, "..") < 2 {
		return
	}
	for _, form := range file.Forms(word) {
		if climb.MatchString(file.Clean(form)) {
			s.breaks(PathTraversal)
		}
	}
}

var climb = regex.New(`^(?:\.\./){2,}(?:etc|root|proc|sys|dev|boot|home|var|usr)(?:/|$)`)

// writes judges a file that a shell text writes to.
func (s *shell) writes(name string) {
	p := s.resolve(name)
	switch {
	case p == "/dev/null" || p == "/dev/stdout" || p == "/dev/stderr" || strings.HasPrefix(p, "/dev/fd/") || p == "/dev/tty":
		return
	case file.IsDevice(p), strings.ContainsAny(p, "*?[") && file.IsVital(p):
		s.breaks(DestructiveCommand)
	case escapeFile.MatchString(p):
		s.breaks(PrivilegeEscalation)
	case file.StartsCode(p) || file.GrantsRights(p):
		s.planted(p)
	case strings.HasPrefix(p, "/var/log/"):
		s.breaks(ConstraintTampering)
	case file.InSystem(p) && !file.IsConfiguration(p) && !file.IsInstalled(p):
		s.breaks(PathTraversal)
	}
	s.governed(p)
}

// reads judges a file that a shell text reads.
func (s *shell) reads(name string) {
	if file.IsCredential(s.resolve(name)) {
		s.breaks(CredentialAccess)
	}
}

// fileEffects finds the files that a command writes by its own operands.
func (s *shell) fileEffects(name string, argv []string) {
	s.unpacks(name, argv)
	if !worksOnFiles[name] {
		return
	}
	names := operands(argv)
	switch name {
	case "tee", "truncate", "touch":
		for _, n := range names {
			if p := s.resolve(n); name == "tee" && s.usual[p] {
				delete(s.usual, p)
				continue
			}
			s.writes(n)
		}
	case "ln":
		if len(names) > 1 {
			s.writes(names[len(names)-1])
			s.erases(names[len(names)-1])
			s.linksTo(names[0], names[len(names)-1])
		} else if len(names) == 1 {
			s.linksTo(names[0], path.Base(names[0]))
		}
	case "cp", "mv", "install", "rsync":
		if len(names) > 1 {
			s.writes(names[len(names)-1])
			if names[0] == "/dev/null" {
				s.losesEach(names[1:])
			}
		}
	case "sed", "perl":
		if hasFlag(argv, 'i', "--in-place") && len(names) > 1 {
			for _, n := range names[1:] {
				s.writes(n)
			}
		}
	case "rm", "unlink", "shred", "chmod", "chown", "setfacl", "vi", "vim", "nano", "ed", "dd", "chattr":
		for _, n := range names {
			s.governed(s.resolve(strings.TrimPrefix(n, "of=")))
		}
	}
	if name == "mv" && len(names) > 1 {
		s.governed(s.resolve(names[0]))
	}
}

// worksOnFiles are the commands whose operands are files that they write or change.
var worksOnFiles = words("tee truncate touch ln cp mv install rsync sed perl rm unlink shred chmod chown setfacl vi vim nano ed dd chattr")

// unpacks judges an archive that is unpacked over the system: into its folders, or to wherever
// the names in it lead.
func (s *shell) unpacks(name string, argv []string) {
	if !archivers[name] {
		return
	}
	line := strings.Join(argv[1:], " ") + " "
	to, extracts := "", false
	switch name {
	case "tar", "bsdtar", "gtar":
		extracts = unpacksTar.MatchString(line)
		to = s.tarFolder(argv)
		if extracts && leadsAnywhere.MatchString(line) {
			s.breaks(PathTraversal)
		}
	case "unzip", "7z", "7za", "unrar":
		extracts = true
		to = valueOf(argv, "-d", "-o/")
		if leadsAnywhere7z.MatchString(line) {
			s.breaks(PathTraversal)
		}
	}
	if extracts && to != "" && to != unknownText && overSystem.MatchString(s.resolve(to)) {
		s.breaks(PathTraversal)
	}
}

var archivers = words("tar bsdtar gtar unzip 7z 7za unrar")

var (
	unpacksTar      = regex.New(`^(?:-?[a-zA-Z]*x[a-zA-Z]*|(?:\S+ )*(?:-[a-zA-Z]*x[a-zA-Z]*|--extract|--get)) `)
	leadsAnywhere   = regex.New(`(?:^|\s)(?:-?[a-zA-Z]*P[a-zA-Z]*|--absolute-names|--absolute-paths) `)
	leadsAnywhere7z = regex.New(` (?:-spf|-:) `)
	overSystem      = regex.New(`^(?:/|/(?:etc|root|bin|sbin|boot|home|var/spool/cron)(?:/.*)?|~/\.ssh)$`)
)
