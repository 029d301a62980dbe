package toolcall

import (
	"net/url"
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
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
	near := (neighbour.MatchString(name) || isConfiguration(name) || r.everyday && strings.HasPrefix(name, "/etc/") || !r.tool.writes && serviceLog.MatchString(name)) && !r.tool.removes
	for _, form := range pathForms(name) {
		if outside(form) && (r.tool.writes || r.tool.removes || !harmless.MatchString(cleanPath(form))) && (!near || form != name) {
			r.breaks(PathTraversal)
		}
		if !r.tool.writes && isCredentialFile(form) {
			r.breaks(CredentialAccess)
		}
		if r.tool.writes || r.tool.removes {
			r.governed(form)
			r.planted(form)
		}
	}
}

// outside reports whether a file name climbs out of the working folder or names
// a folder of the operating system.
func outside(name string) bool {
	if strings.ContainsRune(name, 0) || strings.HasPrefix(name, "//") {
		return true
	}
	clean := cleanPath(name)
	switch {
	case strings.HasPrefix(clean, "~") && !strings.HasPrefix(clean, "~/") && clean != "~" && strings.Contains(clean, "/"):
		return true // the home of somebody else
	case windowsFolder.MatchString(clean):
		return true
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return true
	case drive.MatchString(clean):
		return systemDrive.MatchString(clean)
	}
	return systemFolder.MatchString(clean)
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

var (
	systemFolder = regex.New(`^/(?:etc|root|proc|sys|dev|boot|bin|sbin|lib|lib32|lib64|usr/(?:local/)?(?:bin|sbin|lib|libexec|etc)|usr/(?:share|include)|private/(?:etc|var)|var/(?:run|lib|log|spool|mail|backups|www)|run|System|Library/(?:Launch\w+|Keychains|Preferences)|(?i:windows|winnt|program files(?: \(x86\))?|programdata)|(?:mnt|cygdrive)/[a-z]/(?i:windows|program files|users)|[a-z]/(?i:windows))(?:/|$)`)
	systemDrive  = regex.New(`(?i)^[a-z]:/(?:windows|boot|program files|programdata|users/(?:all users|administrator))`)
	// windowsFolder is a folder of Windows by its variable or its short name.
	windowsFolder = regex.New(`(?i)^(?:%(?:systemroot|windir|programfiles(?:\(x86\))?|programdata|systemdrive|allusersprofile)%|\$env:(?:systemroot|windir|programfiles|programdata|systemdrive))(?:/|$)|^[a-z]:/(?:progra~\d|window~\d|docume~\d|users/(?:default|public|all users))(?:/|$)|^[a-z]:\.\.(?:/|$)|^\?\?/|^globalroot/`)
	// stripped is the spelling that survives a filter which removes "../" once.
	stripped = strings.NewReplacer("....//", "../", `....\/`, "../", "..././", "../", `..../\`, "../", `...\.\`, "../", "..;/", "../", ".../...//", "../", `....\\`, "../")
	// overlong are encodings of dot and slash that old decoders accept.
	overlong = strings.NewReplacer("%c0%2e", ".", "%e0%40%ae", ".", "%c0%5c", "/", "%c0%9v", "/", "%f0%80%80%ae", ".", "%f0%80%80%af", "/", "%c0%2f", "/", "%u2024", ".", "%uff0e", ".", "%uff0f", "/", "%u002f", "/", "%u005c", "/", `\u002e`, ".", `\u002f`, "/", "&#46;", ".", "&#47;", "/", "&#x2e;", ".", "&#x2f;", "/", "%c0%ae", ".", "%c0%af", "/", "%e0%80%ae", ".", "%e0%80%af", "/", "%c1%9c", "/", "%u002e", ".", "%u2215", "/", "%u2216", "/")
	// wide are characters that normalise to a dot or a slash.
	wide = strings.NewReplacer("\uff0e", ".", "\uff0f", "/", "\uff3c", "/", "\u2215", "/", "\u2044", "/", "\u2024", ".", "\u2025", "..", "\u29f8", "/", "\u2026", "...", "\ufe52", ".", "\ufe68", "/", "\u29f5", "/", "\u3002", ".", "\uff61", ".", "\u200b", "", "\u200d", "", "\u2060", "", "\ufeff", "", "\u202e", "", "\u00ad", "")
)

// pathForms returns a file name as written and as the layers below may decode
// it.
func pathForms(name string) []string {
	forms := []string{slashed(name)}
	text := strings.TrimPrefix(name, "file://")
	for range 3 {
		next := text
		if strings.ContainsAny(text, `%\&`) { // with which all encodings begin
			next = overlong.Replace(lowerEscapes(text))
			if decoded, err := url.PathUnescape(next); err == nil {
				next = decoded
			}
		}
		if !prose.IsASCII(next) {
			next = wide.Replace(next)
		}
		if next == text {
			break
		}
		text = next
		forms = append(forms, slashed(text))
	}
	if strings.Contains(name, "..") {
		if s := stripped.Replace(name); s != name {
			forms = append(forms, slashed(s))
		}
	}
	return forms
}

var escape = regex.New(`%[0-9A-Fa-fuU][0-9A-Fa-f]{1,4}`)

func lowerEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	return escape.ReplaceAllStringFunc(s, strings.ToLower)
}

func slashed(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// escapes judges a word of a command: shells climb for good reasons, but not
// into the folders of the system.
func (s *shell) escapes(word string) {
	if strings.Contains(word, "/proc/") && otherRoot.MatchString(word) {
		s.breaks(PrivilegeEscalation)
	}
	if strings.Count(word, "..") < 2 {
		return
	}
	for _, form := range pathForms(word) {
		if climb.MatchString(cleanPath(form)) {
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
	case isDevice(p), strings.ContainsAny(p, "*?[") && isVital(p):
		s.breaks(DestructiveCommand)
	case escapeFile.MatchString(p):
		s.breaks(PrivilegeEscalation)
	case isPersistence(p) || isAccountFile(p):
		s.planted(p)
	case strings.HasPrefix(p, "/var/log/"):
		s.breaks(ConstraintTampering)
	case systemFolder.MatchString(p) && !isConfiguration(p) && !isInstalled(p):
		s.breaks(PathTraversal)
	}
	s.governed(p)
}

// reads judges a file that a shell text reads.
func (s *shell) reads(name string) {
	if isCredentialFile(s.resolve(name)) {
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
