package toolcall

import (
	"regexp"
	"strings"
)

// persistence names the files that grant rights or start code later.
var persistence = regexp.MustCompile(`(?:^|/)(?:etc/(?:sudoers(?:\.d/.*)?|passwd|shadow|group|crontab|cron\.[a-z]+/.*|ld\.so\.preload|pam\.d/.*|profile(?:\.d/.*)?|rc\.local|systemd/system/.*|ssh/sshd_config)|\.ssh/(?:authorized_keys2?|rc)|var/spool/cron/.*|\.(?:bashrc|zshrc|profile|bash_profile|zprofile)|LaunchAgents(?:/.*)?|LaunchDaemons(?:/.*)?|\.config/(?:autostart|systemd/user|fish/(?:config\.fish|conf\.d)|environment\.d)(?:/.*)?|\.local/share/systemd/user(?:/.*)?|\.(?:bash_login|bash_logout|zshenv|zlogin|xinitrc|xprofile|xsession)|\.git/hooks/[a-z-]+|etc/(?:init\.d/.*|xdg/autostart/.*|udev/rules\.d/.*))$`)

func isPersistence(name string) bool { return persistence.MatchString(name) }

// escalation judges a command that would gain rights.
func (s *shell) escalation(name string, argv []string) {
	line := strings.Join(argv, " ")
	if escalationCommand.MatchString(line) || adminRole.MatchString(line) && grantsRole.MatchString(line) {
		s.breaks(PrivilegeEscalation)
	}
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
	`crontab (?:-u \S+ )?(?:[^-\s]\S*|-)$`,
	`systemctl (?:\S+ )*(?:enable|link|edit) .*(?:/|--user|--now)`,
	`systemctl --user enable\b`,
	`systemd-run .*--on-(?:calendar|boot|active|startup|unit)`,
	`launchctl (?:load|bootstrap|submit)\b`,
	`update-rc\.d\b`,
	`chkconfig .*\bon\b`,
	`git config (?:\S+ )*(?:core\.(?:hooksPath|fsmonitor|sshCommand|editor|pager)|alias\.\S+) \S`,
	`(?i:schtasks(?:\.exe)? /create)`,
	`(?i:reg(?:\.exe)? add \S*currentversion\\?run)`,
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
