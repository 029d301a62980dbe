package toolcall

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// destroys finds the commands whose effect cannot be taken back.
func (s *shell) destroys(name string, argv []string) {
	line := strings.Join(argv, " ")
	switch {
	case name == "rm" || name == "rmdir" || name == "del" || name == "erase" || name == "rd" || name == "Remove-Item" || name == "ri":
		s.remove(name, argv)
	case strings.HasPrefix(name, "mkfs"), name == "wipefs", name == "blkdiscard", name == "mke2fs", name == "sgdisk", name == "sfdisk":
		s.breaks(DestructiveCommand)
	case name == "shred" || name == "srm" || name == "wipe":
		s.removes(operands(argv))
	case name == "dd":
		for _, w := range argv {
			if target, ok := strings.CutPrefix(w, "of="); ok && isDevice(target) {
				s.breaks(DestructiveCommand)
			}
		}
	case (name == "chmod" || name == "chown" || name == "chgrp") && hasFlag(argv, 'R', "--recursive"):
		if names := operands(argv); len(names) > 1 {
			s.removes(names[1:])
		}
	case name == "rsync" && rsyncDeletes.MatchString(line):
		if names := operands(argv); len(names) > 1 {
			s.removes(names[len(names)-1:])
		}
	case name == "git" && slices.Contains(argv, "clean"):
		s.removes(operands(argv)[1:])
	case name == "mv" && len(operands(argv)) > 1:
		names := operands(argv)
		s.removes(names[:len(names)-1])
	case irreversible.MatchString(line):
		s.breaks(DestructiveCommand)
	case irreversibleOperation(argv):
		s.breaks(DestructiveOperation)
	}
}

// irreversible lists commands of whole systems, clusters and clouds.
var irreversible = regexp.MustCompile(`^(?:\S*/)?(?:` + strings.Join([]string{
	`(?:shutdown|reboot|halt|poweroff|init [06])\b`,
	`kill (?:-9|-KILL|-s KILL) -1\b`,
	`dropdb\b`,
	`vssadmin(?:\.exe)? delete shadows`,
	`format(?:\.com)? [A-Za-z]:`,
	`diskutil erase`,
	`cryptsetup (?:luksErase|erase)`,
	`lvremove\b|vgremove\b|zpool destroy\b|zfs destroy -[rR]`,
	`parted\b.*\b(?:mklabel|rm)\b`,
}, "|") + `)`)

func (s *shell) remove(name string, argv []string) {
	names := operands(argv)
	recursive := hasFlag(argv, 'r', "--recursive") || hasFlag(argv, 'R', "-Recurse") || hasFlag(argv, 0, "/s") || hasFlag(argv, 0, "/S")
	for _, w := range argv {
		if w == "--no-preserve-root" {
			s.breaks(DestructiveCommand)
		}
	}
	if recursive || name == "Remove-Item" {
		s.removes(names)
		return
	}
	for _, n := range names {
		if p := s.resolve(n); isVital(p) && (strings.HasSuffix(p, "*") || strings.HasPrefix(p, "/etc/") || strings.HasPrefix(p, "/boot/")) {
			s.breaks(DestructiveCommand)
		}
	}
}

// removes judges the targets of a recursive removal.
func (s *shell) removes(names []string) {
	for _, n := range names {
		p := s.resolve(n)
		if isVital(p) || isDevice(p) || s.folder == "" && (p == "." || p == ".." || p == "*" || p == ".git" || strings.HasPrefix(p, "../..")) {
			s.breaks(DestructiveCommand)
		}
	}
}

// vital names what a machine or a person cannot lose: the root, the folders
// directly below it but temporary ones, the system's folders at any depth, and
// homes as a whole.
var vital = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`/[*.?]*`,
	`/(?:bin|boot|dev|etc|lib|lib32|lib64|proc|root|sbin|sys|usr|System|Library|Applications|Windows)(?:/.*)?`,
	`/(?:home|Users|var|opt|srv|mnt|media|run|data|app|backups?)(?:/[*]*)?`,
	`/(?:home|Users)/[^/]+(?:/[*.]*)?`,
	`/var/(?:lib|log|backups?|spool|mail|www|cache)(?:/[*]*)?`,
	`~[^/]*(?:/[*.]*)?`,
	`~/\.(?:ssh|gnupg|aws|config|kube)(?:/.*)?`,
	`[A-Za-z]:/?[*.]*`,
	`[A-Za-z]:/?(?i:windows|users|program files)(?:/.*)?`,
}, "|") + `)$`)

func isVital(p string) bool { return vital.MatchString(p) }

var device = regexp.MustCompile(`^/dev/(?:sd|nvme|hd|vd|xvd|disk|mmcblk|mapper/|md|dm-|mem|kmem|rdisk|loop\d)`)

func isDevice(p string) bool { return device.MatchString(p) }

// operands are the words after the command that are no flags.
func operands(argv []string) []string {
	var out []string
	plain := false
	for _, w := range argv[1:] {
		switch {
		case w == "--":
			plain = true
		case !plain && (strings.HasPrefix(w, "-") && len(w) > 1 || len(w) == 2 && w[0] == '/' && w[1] != '*' && strings.ContainsRune("sSqQfF", rune(w[1]))):
		default:
			out = append(out, w)
		}
	}
	return out
}

func hasFlag(argv []string, short byte, long string) bool {
	for _, w := range argv[1:] {
		switch {
		case w == "--":
			return false
		case w == long:
			return true
		case strings.HasPrefix(w, "--"):
			// GNU accepts any unambiguous prefix of a long flag: --recur.
			if len(w) > 4 && strings.HasPrefix(long, w) {
				return true
			}
		case short != 0 && strings.HasPrefix(w, "-") && strings.IndexByte(w, short) > 0:
			return true
		}
	}
	return false
}

// cleanPath is path.Clean that leaves a home at the front alone.
func cleanPath(p string) string {
	p = path.Clean(p)
	if strings.HasPrefix(p, "//") {
		p = p[1:]
	}
	return p
}
