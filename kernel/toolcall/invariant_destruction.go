package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// destroys finds the commands whose effect cannot be taken back.
func (s *shell) destroys(name string, argv []string) {
	switch {
	case name == "rm" || name == "rmdir" || name == "del" || name == "erase" || name == "rd" || name == "Remove-Item" || name == "ri":
		s.remove(name, argv)
	case name == "rimraf":
		s.remove(name, append([]string{name, "-r"}, argv[1:]...))
	case strings.HasPrefix(name, "mkfs"), formats[name]:
		s.formats(argv)
	case name == "tar" && slices.Contains(argv, "--remove-files"):
		s.removes(append(operands(argv), s.tarFolder(argv)))
	case name == "truncate":
		s.removes(operands(argv))
		s.losesEach(operands(argv))
	case name == "shred" || name == "srm" || name == "wipe":
		s.removes(operands(argv))
		if hasFlag(argv, 'r', "--recursive") {
			s.loses(operands(argv))
		}
		s.losesEach(operands(argv))
	case name == "dd":
		for _, w := range argv {
			if target, ok := strings.CutPrefix(w, "of="); ok && (file.IsDevice(target) || file.IsVital(s.resolve(target))) && !s.deviceToGo(target) {
				s.breaks(DestructiveCommand)
			}
		}
	case (name == "chmod" || name == "chown" || name == "chgrp") && hasFlag(argv, 'R', "--recursive"):
		for _, n := range operands(argv)[min(1, len(operands(argv))):] {
			if p := s.resolve(n); (file.IsVital(p) || file.IsDevice(p)) && (name == "chmod" || !containerHome.MatchString(p)) {
				s.breaks(DestructiveCommand)
			}
		}
	case name == "git" && slices.Contains(argv, "clean"):
		s.removes(operands(argv)[1:])
	case name == "mv" && len(operands(argv)) > 1:
		names := operands(argv)
		s.removes(names[:len(names)-1])
	case irreversibleOperation(argv) && !s.onEphemeral(argv) && !s.unlocks(argv) && !endsOne(argv):
		s.breaks(DestructiveOperation)
	}
	s.mirrorLoses(name, argv)
}

// snapshotVolume is a snapshot of a volume by its name.
const snapshotVolume = `(?:-y |-f |--yes |--force )*(?:/dev/)?[\w-]+/(?:[\w-]+[-_])?snap(?:shot)?[-_]?[\w-]*`

var oldSnapshot = regex.New(`^` + snapshotVolume + `$`)

// endsOne reports whether a client of a cloud ends one thing that is made anew in a moment: a key, a
// role of one account, a lease, a place behind a load balancer, a machine that is stopped, images of
// pull requests.
func endsOne(argv []string) bool {
	e := singleEndings[programName(argv[0])]
	return e != nil && e.MatchString(strings.Join(argv[1:], " "))
}

var singleEndings = byCommand(
	`aws: iam delete-access-key(?: --(?:user-name|access-key-id|profile)[= ][\w.@+-]+)+$|elbv2 deregister-targets --target-group-arn[= ]\S+ --targets[= ]Id=[\w.-]+$`,
	`aws: ecr batch-delete-image --repository-name[= ][\w./-]+ --image-ids(?: imageTag=(?:pr|mr|dev|tmp|ci|feature|preview)-[\w.-]+)+$`,
	`az: role assignment delete(?: --(?:assignee|role|scope|resource-group|subscription)[= ](?:[\w.@/-]+|'[\w ]+'))+$|vm deallocate(?: (?:-g|-n|--resource-group|--name)[= ][\w.-]+){2}(?: --no-wait)?$`,
	`gcloud: iam service-accounts keys delete [\w]+ --iam-account[= ][\w.@-]+(?: --quiet| -q)?$`,
	`vault: lease revoke (?:-prefix )?\w[\w-]*/\w[\w-]*/[\w/-]+$`,
)

// containerHome is where images keep the program that they are made for.
var containerHome = regex.New(`^/(?:app|workspace|workspaces|code|usr/src/app)$`)

// irreversibleCommands are those of whole systems.
var irreversibleCommands = byCommand(
	`shutdown: (?:-[hrPH]|now|\+?\d|/[srp])|(?:\S+ )*(?:now|\+\d+)`,
	`reboot halt poweroff: .*`,
	`init telinit: [06]\b`,
	`systemctl: (?:\S+ )*(?:poweroff|reboot|halt|kexec|emergency|rescue)\b`,
	`kill: (?:-9|-KILL|-s KILL|-SIGKILL) -1\b`,
	`killall5: .*`,
	`dropdb: .*\w`,
	`vssadmin vssadmin.exe: delete shadows`,
	`format format.com: [A-Za-z]:`,
	`diskutil: (?:erase|secureErase|partitionDisk|zeroDisk|reformat|apfs delete)`,
	`cryptsetup: (?:\S+ )*(?:luksErase|erase|luksFormat|reencrypt)`,
	`lvremove vgremove pvremove newfs: .*\w`,
	`ansible: (?:.* )?(?:-m|--module-name)[= ]\S*(?:lvol|lvg|zfs|filesystem|postgresql_db|mysql_db|mongodb_\w+|docker_volume|k8s|s3_bucket|ec2\w*|rds\w*|gcp_\w+|azure_rm_\w+) .*state=(?:absent|terminated)`,
	`zpool: (?:destroy|labelclear)\b`,
	`zfs: destroy .*-[rRf]`,
	`btrfs: subvolume delete\b`,
	`parted: .*\b(?:mklabel|mktable|rm)\b`,
	`mdadm: .*(?:--zero-superblock|--stop)`,
	`nvme: (?:format|sanitize|write-zeroes)\b`,
	`hdparm: .*(?:--security-erase|--trim-sector)`,
	`sg_format sg_sanitize badblocks: .*/dev/`,
	`fdisk cfdisk gdisk: /dev/`,
	`debugfs: .*-w\b`,
	`efibootmgr: .*(?:-B|--delete-bootnum)\b`,
	`crontab: (?:-u \S+ )?(?:-i )?-r\b`,
	`userdel deluser: .*\b(?:-\S*r\S*|--remove\S*)\b.*\w`,
	`umount: (?:\S+ )*(?:-\S*a\S*|/)(?: |$)`,
	`mount: .*remount.*\bro\b.* /$`,
	`setfacl: .*-R.* /$`,
	`docker podman: (?:rm|kill|stop) .*\$\(docker ps`,
)

// tarFolder is the folder that tar works in.
func (s *shell) tarFolder(argv []string) string {
	for i, w := range argv {
		if w == "-C" || w == "--directory" {
			return wordAt(argv, i+1)
		}
	}
	return unknownText
}

var formats = words("wipefs blkdiscard mke2fs sgdisk sfdisk mkswap")

// formats judges what makes a file system or a partition: in a file of the
// workspace it is a test's, anywhere else it takes what was there.
func (s *shell) formats(argv []string) {
	names := operands(argv)
	for _, n := range names {
		if p := s.resolve(n); strings.HasPrefix(p, "/dev/") && !s.deviceToGo(p) || p == unknownText {
			s.breaks(DestructiveCommand)
		}
	}
	if len(names) == 0 {
		s.breaks(DestructiveCommand)
	}
}

func (s *shell) remove(name string, argv []string) {
	names := operands(argv)
	recursive := hasFlag(argv, 'r', "--recursive") || hasFlag(argv, 'R', "-Recurse") || hasFlag(argv, 0, "/s") || hasFlag(argv, 0, "/S")
	for _, w := range argv {
		if w == "--no-preserve-root" {
			s.breaks(DestructiveCommand)
		}
	}
	if recursive || name == "Remove-Item" || name == "rmdir" && slices.Contains(names, "/") {
		s.removes(names)
		if recursive {
			s.loses(names)
		}
		return
	}
	s.losesEach(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.ContainsAny(n, "*?[") }))
	for _, n := range names {
		if p := s.resolve(n); file.IsVital(p) && !file.IsConfiguration(p) && (strings.HasSuffix(p, "*") || strings.HasPrefix(p, "/etc/") || strings.HasPrefix(p, "/boot/")) {
			s.breaks(DestructiveCommand)
		}
	}
}

// removes judges the targets of a recursive removal.
func (s *shell) removes(names []string) {
	for _, n := range names {
		p := s.resolve(n)
		if file.IsCache(p) || s.deviceToGo(p) {
			continue
		}
		if file.IsVital(p) || file.IsDevice(p) || s.folder == "" && (p == "." || p == ".." || p == "*" || p == ".git" || strings.HasPrefix(p, "../..")) {
			s.breaks(DestructiveCommand)
		}
	}
}

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
