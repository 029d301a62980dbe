package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// escapeFile names the files by which a kernel is told what to start outside of a container.
var escapeFile = regex.New(`(?:^|/)(?:release_agent|notify_on_release|core_pattern|uevent_helper|sysrq-trigger)$|^/proc/sys/(?:kernel/modprobe|fs/binfmt_misc/.*)$|^/proc/(?:1|\d+)/root/`)

// otherRoot is the root that another process sees, which for the first is the machine's.
var otherRoot = regex.New(`/proc/\d+/root(?:/|$)`)

// escalation judges a command that would gain rights.
func (s *shell) escalation(name string, argv []string) {
	if givesRoles[name] {
		if line := strings.Join(argv, " "); adminRole.Matches(line) && grantsRole.MatchString(line) {
			s.breaks(PrivilegeEscalation)
		}
	}
	if name == "chmod" || name == "install" || name == "chown" {
		s.modes(argv)
	}
	if name == "su" || name == "runuser" {
		s.breaks(PrivilegeEscalation)
	}
}

// bindsLowPorts lets a program of the workspace take a port under 1024, and nothing else.
func (s *shell) bindsLowPorts(argv []string) bool {
	return len(argv) == 3 && lowPorts.MatchString(argv[1]) && !strings.Contains(argv[2], "..") && plainFolder.MatchString(s.resolve(argv[2]))
}

var lowPorts = regex.New(`^(?i:cap_net_bind_service)[=+]+[eip]+$`)

var setID = regex.New(`^(?:(?:[ugoa]*[-+=][rwxXst]*,)*[ugoa]*[+=][rwxXt]*s[rwxXst]*(?:,[ugoa]*[-+=][rwxXst]*)*|0?[2467][0-7]{3})$`)

// worldWritable is a mode that lets everybody write.
var worldWritable = regex.New(`^(?:0?[0-7]{2}[2367]|[ug]*[oa][ugoa]*[+=][rx]*w.*|\+[rx]*w.*)$`)

// modes finds set-user-id bits and system files opened to everybody.
func (s *shell) modes(argv []string) {
	names := operands(argv)
	for i, n := range names {
		if i == 0 && setID.MatchString(n) {
			s.breaks(PrivilegeEscalation)
		}
		if i > 0 && (worldWritable.MatchString(names[0]) || programName(argv[0]) == "chown") && file.IsVital(s.resolve(n)) {
			s.breaks(PrivilegeEscalation)
		}
	}
}

var escalationCommands = byCommand(
	`docker podman nerdctl: .*(?:--privileged|--pid[= ]host|--userns[= ]host|--cap-add[= ](?:ALL|SYS_ADMIN|SYS_PTRACE|SYS_MODULE|all)|--security-opt[= ]?\S*unconfined|--device[= ]/dev/(?:sd|nvme|mem|kmsg)|docker\.sock|containerd\.sock|(?:-v|--volume)[= ]?/(?:etc|root|proc|boot|var/run|usr|home)?/?:|--mount \S*(?:source|src)=/(?:etc|root|proc)?,)`,
	`curl wget http: .*(?:docker|containerd|podman|crio)\S*\.sock`,
	`docker podman: (?:-H|--host)[= ]tcp://`,
	`curl wget http https xh: .*:237[56]/(?:v[\d.]+/)?(?:containers|images|exec|volumes|build|swarm|services|networks|secrets|plugins|commit)\b`,
	`ctr nerdctl buildah crictl runc: .*(?:--privileged|--cap-add[= ](?:ALL|SYS_ADMIN)|type=bind,src=/,)`,
	`mount: (?:\S+ )*-t ?(?:cgroup2?|proc|sysfs|securityfs|debugfs|devtmpfs) `,
	`mknod: (?:\S+ )*b \d+ \d+`,
	`lxc incus: .*security\.privileged[= ]true`,
	`kubectl oc: .*(?:"?privileged"?: ?true|"?hostPID"?: ?true|--privileged|--as(?:-group)?[= ]system:)`,
	`kubectl oc: (?:\S+ )*debug node/`,
	`oc: adm policy add-\S+ `,
	`setcap: .*\w`,
	`capsh: .*--(?:gid|uid|user)=(?:0|root)`,
	`vipw vigr sudoedit: .*`,
	`visudo: (?:$|[^-]|-[^c])`,
	`usermod: .*(?:sudo|wheel|docker|admin|root|lxd|disk|shadow|libvirt)\b|.*-(?:o|ou|u) ?0\b`,
	`gpasswd adduser addgroup: .*\b(?:sudo|wheel|docker|admin|root|lxd)\b`,
	`useradd: .*(?:-(?:o|ou|u) ?0\b|-\S*G ?\S*(?:sudo|wheel|docker|admin|root))`,
	`dseditgroup: .*-a \S+ .*admin`,
	`passwd: (?:\S+ )*root\b`,
	`chpasswd: .*`,
	`insmod modprobe kexec: .*\w`,
	`sysctl: (?:-\S+ )*(?:-w )?(?:kernel|vm|fs)\.\S+=`,
	`mount: (?:\S+ )*(?:/dev/(?:[svx]v?da\d*|nvme0n1(?:p\d+)?|dm-\d+|root\S*|mapper/\S*root\S*|disk/\S+) /|/dev/\S+ /(?:$|(?:host|mnt/host|tmp|root|etc|usr|bin)\b)|(?:--r?bind|-o \S*bind\S*) /)`,
	`net net1 net.exe: localgroup administrators .*/add|user \S+ .*/add`,
	`gdb strace: (?:\S+ )*-p ?1\b`,
	`machinectl: shell (?:root@|$)`,
	`newgrp: .*\b(?:docker|root|wheel|sudo)\b`,
	`aws: iam (?:attach|put)-\S+-policy .*(?:AdministratorAccess|IAMFullAccess|PowerUserAccess|"Action": ?"\*")`,
	`aws: iam (?:add-user-to-group|create-login-profile|update-login-profile|update-assume-role-policy|create-access-key|set-default-policy-version|create-policy-version)\b`,
	`az: role assignment create .*(?i:owner|contributor|administrator)`,
	`gh: api .*(?i:role=admin|permission=admin)`,
	`chmod chown: (?:\S+ )*--reference=/`,
	`Set-ExecutionPolicy set-executionpolicy: (?i:.*(?:bypass|unrestricted))`,
)

// givesRoles are the clients that can give a role.
var givesRoles = words("kubectl oc aws gcloud az gsutil gh terraform")

var (
	adminRole  = regex.NewScreen(regex.New(`(?i)\b(?:cluster-admin|AdministratorAccess|roles/(?:owner|editor|iam\.securityAdmin)|system:masters|roles/(?:iam|resourcemanager)\.\S*[aA]dmin)\b`))
	grantsRole = regex.New(`\b(?:create|apply|attach-\S+-policy|put-\S+-policy|add-iam-policy-binding|bind|patch|set-iam-policy)\b`)
)

// setting judges a scalar by its name: some tools gain rights, or lose their
// guard, by one switch.
func (r *reading) setting(l leaf) {
	on := l.value == "true" || l.value == "1"
	off := l.value == "false" || l.value == "0" || l.value == "off" || l.value == "disabled"
	switch {
	case on && (l.key == "privileged" || l.key == "hostpid" || l.key == "hostnetwork" || l.key == "allowprivilegeescalation"):
		r.breaks(PrivilegeEscalation)
	case (l.key == "role" || l.key == "roleref" || l.key == "clusterrole" || l.key == "policyarn" || l.key == "name" && l.above.roleRef) && adminRole.Matches(l.value):
		r.breaks(PrivilegeEscalation)
	case on && loosens.MatchString(l.key), off && guards.MatchString(l.key):
		r.breaks(ConstraintTampering)
	}
}
