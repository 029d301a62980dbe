package toolcall

import (
	"regexp"
	"strings"
)

// accountFile names the files that say who may do what on a machine.
var accountFile = regexp.MustCompile(`(?:^|/)etc/(?:sudoers(?:\.d/.*)?|doas\.conf|passwd|shadow|gshadow|group|pam\.d/.*|polkit-1/.*|security/.*|ssh/sshd_config(?:\.d/.*)?)$`)

// escalation judges a command that would gain rights.
func (s *shell) escalation(name string, argv []string) {
	line := strings.Join(argv, " ")
	if escalationCommand.MatchString(line) || adminRole.MatchString(line) && grantsRole.MatchString(line) {
		s.breaks(PrivilegeEscalation)
	}
	s.persists(line)
	if name == "chmod" || name == "install" || name == "chown" {
		s.modes(argv)
	}
	if name == "su" || name == "runuser" {
		s.breaks(PrivilegeEscalation)
	}
}

var setID = regexp.MustCompile(`^(?:[ugoa]*[+=][rwxXt]*s[rwxXst]*|0?[2467][0-7]{3})$`)

// worldWritable is a mode that lets everybody write.
var worldWritable = regexp.MustCompile(`^(?:0?[0-7]{2}[2367]|[ug]*[oa][ugoa]*[+=][rx]*w.*|\+[rx]*w.*)$`)

// modes finds set-user-id bits and system files opened to everybody.
func (s *shell) modes(argv []string) {
	names := operands(argv)
	for i, n := range names {
		if i == 0 && setID.MatchString(n) {
			s.breaks(PrivilegeEscalation)
		}
		if i > 0 && (worldWritable.MatchString(names[0]) || programName(argv[0]) == "chown") && isVital(s.resolve(n)) {
			s.breaks(PrivilegeEscalation)
		}
	}
}

var escalationCommand = regexp.MustCompile(`^(?:\S*/)?(?:` + strings.Join([]string{
	`(?:docker|podman|nerdctl) .*(?:--privileged|--pid[= ]host|--cap-add[= ](?:ALL|SYS_ADMIN)|docker\.sock|(?:-v|--volume)[= ]?/(?:etc|root)?:|--mount \S*source=/,)`,
	`setcap\b`,
	`visudo\b`,
	`usermod .*(?:sudo|wheel|docker|admin|root)\b`,
	`(?:gpasswd|adduser) .*\b(?:sudo|wheel|docker)\b`,
	`useradd .*-(?:o|ou|u) ?0\b`,
	`passwd root\b|chpasswd\b`,
	`(?:insmod|modprobe|kexec)\b`,
	`net localgroup administrators .*/add`,
	`(?i:set-executionpolicy (?:bypass|unrestricted))`,
}, "|") + `)`)

var (
	adminRole  = regexp.MustCompile(`(?i)\b(?:cluster-admin|AdministratorAccess|roles/(?:owner|editor|iam\.securityAdmin)|system:masters)\b`)
	grantsRole = regexp.MustCompile(`\b(?:create|apply|attach-\S+-policy|put-\S+-policy|add-iam-policy-binding|bind|patch|set-iam-policy)\b`)
)

// setting judges a scalar by its name: some tools gain rights, or lose their
// guard, by one switch.
func (r *reading) setting(l leaf) {
	on := l.value == "true" || l.value == "1"
	off := l.value == "false" || l.value == "0" || l.value == "off" || l.value == "disabled"
	switch {
	case on && (l.key == "privileged" || l.key == "hostpid" || l.key == "hostnetwork" || l.key == "allowprivilegeescalation"):
		r.breaks(PrivilegeEscalation)
	case (l.key == "role" || l.key == "roleref" || l.key == "clusterrole" || l.key == "policyarn" || l.key == "name" && l.above.roleRef) && adminRole.MatchString(l.value):
		r.breaks(PrivilegeEscalation)
	case on && loosens.MatchString(l.key), off && guards.MatchString(l.key):
		r.breaks(ConstraintTampering)
	}
}
