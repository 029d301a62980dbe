package toolcall

import (
	"net/url"
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/address"
	"github.com/caddy-lex/lex/kernel/regex"
)

// governedFile names the files that constrain an agent: the proxy's
// configuration, its policy and constitution, the permissions of agent
// harnesses, and the rules of the system's own audit.
var governedFile = regex.NewScreen(regex.New(`(?i)(?:^|/)(?:Caddyfile(?:\.(?:prod|production|staging|live|local|dev))?|caddy\.json|constitution\.(?:txt|md)|lex[-_.](?:policy|config|tools)\.\w+|(?:guardrails?|moderation|governor|tool[-_]?polic(?:y|ies)|safety[-_]policy|agent[-_]polic(?:y|ies))\.(?:ya?ml|json|toml|co|txt|rego|cedar)|\.claude/settings(?:\.local)?\.json|\.codex/config\.toml|\.cursor/(?:mcp|permissions)\.json|\.mcp\.json|(?:var/lib|opt|data|srv)/(?:lex|caddy)(?:/.*)?|lex\.(?:db(?:\.journal)?|log|jsonl)|lex/(?:lex|receipts)\.\w+(?:\.journal)?|var/log/(?:caddy|lex)(?:/.*)?|\.gemini/settings\.json|\.vscode/mcp\.json|claude_desktop_config\.json|managed-settings\.json|opencode\.json|etc/(?:audit/.*|lex(?:/.*)?|rsyslog\.(?:conf|d/.*)|caddy/.*))$`))

// governed judges a file about to be changed.
func (r *reading) governed(name string) {
	if governedFile.Matches(name) {
		r.breaks(ConstraintTampering)
	}
}

var (
	loosens = regex.New(`^(?:disable|bypass|skip|ignore|turnoff|override|no)(?:all)?(?:guardrails?|safety|moderation|policy|policies|governance|governor|audit|auditing|audits|logging|approvals?|permissions?|safetychecks?|interceptor|checks)$|^dangerously`)
	guards  = regex.New(`^(?:guardrails?|safety|moderation|governance|governor|audit|auditing|auditlog|interceptor|safetychecks?|requireapproval|policyenforcement)(?:enabled)?$`)
)

// toolName judges tools that are made to change the rules.
func (r *reading) toolName() {
	t := r.tool
	rules := t.any("guardrail", "guardrails", "governor", "governance", "constitution", "moderation", "interceptor", "safety")
	records := t.any("audit", "audits", "logging", "monitoring", "telemetry")
	stops := t.any("disable", "bypass", "override", "stop", "remove", "delete", "off", "clear", "suspend", "unset")
	if rules && (stops || t.any("set", "update", "edit", "write", "change", "modify", "configure")) || records && stops {
		r.breaks(ConstraintTampering)
	}
}

// tampers judges a command that would stop the guard or blind its records.
func (s *shell) tampers(name string, argv []string) {
	for i, w := range argv {
		if strings.HasPrefix(w, "--unix-socket") && caddySocket.Matches(w+" "+wordAt(argv, i+1)) || strings.HasPrefix(w, "--dangerously-") {
			s.breaks(ConstraintTampering)
		}
	}
	switch name {
	case "unset":
		if strings.HasPrefix(wordAt(operands(argv), 0), "HIST") {
			s.breaks(ConstraintTampering)
		}
	case "rm", "shred", "truncate", "unlink":
		for _, n := range operands(argv) {
			s.erases(n)
		}
	case "nc", "ncat", "netcat", "telnet":
		if names := operands(argv); len(names) == 2 && names[1] == "2019" {
			s.breaks(ConstraintTampering)
		}
	}
}

// recordFile names the files that record what was done.
var recordFile = regex.NewScreen(regex.New(`^/var/log/|(?:^|/)\.(?:bash|zsh|ash|python|node_repl|psql|mysql|sqlite)_history$|(?:^|/)(?:fish_history|ConsoleHost_history\.txt)$`))

// erases judges a record that a command removes or empties.
func (s *shell) erases(name string) {
	if recordFile.Matches(s.resolve(name)) {
		s.breaks(ConstraintTampering)
	}
}

// guardServices are the services that govern, record or protect.
const guardServices = `(?:(?:caddy|lex)(?:[-_@]\S*)?|auditd|rsyslogd?|syslog(?:-ng|d)?|systemd-journald|falco|fluentd|fluent-bit|td-agent|filebeat|auditbeat|promtail|vector|osqueryd?|wazuh-agent|ossec|splunkd?|datadog-agent|falcon-sensor|sysmon|apparmor|firewalld|ufw|clamav-daemon|fail2ban)`

var tamperCommands = byCommand(
	`caddy: (?:reload|stop|adapt .*--overwrite|upgrade|add-package|remove-package)\b`,
	`systemctl: (?:\S+ )*(?:stop|disable|mask|kill|revert) (?:\S+ )*`+guardServices+`(?:\.\w+)?(?: |$)`,
	`systemctl: (?:\S+ )*restart (?:\S+ )*(?:caddy|lex)(?:[-_@]\S*)?(?:\.\w+)?(?: |$)`,
	`service: (?:\S+ )*`+guardServices+` (?:stop|disable)|(?:caddy|lex)(?:[-_@]\S*)? restart`,
	`rc-service: `+guardServices+` stop`,
	`supervisorctl: (?:stop|remove) .*`+guardServices,
	`launchctl: (?:unload|stop|bootout|remove|disable) .*(?:caddy|lex|audit)`,
	`brew: services (?:stop|kill) `+guardServices,
	`docker podman docker-compose: (?:\S+ )*(?:stop|kill|rm|down|pause|restart) (?:\S+ )*(?:\S*[-_/])?(?:caddy|lex|falco)(?:[-_]\S*)?(?: |$)`,
	`kubectl: (?:\S+ )*(?:delete|scale|patch|edit|rollout undo) .*(?:deploy(?:ment)?s?|ds|daemonset|sts|statefulset)s?[ /](?:\S*-)?(?:caddy|lex|falco|gatekeeper|kyverno)\b`,
	`kubectl: (?:\S+ )*delete (?:\S+ )*(?:validatingwebhookconfigurations?|mutatingwebhookconfigurations?|networkpolic(?:y|ies)|podsecuritypolic(?:y|ies))\b`,
	`helm: (?:\S+ )*(?:uninstall|delete) (?:\S*-)?(?:caddy|lex|falco|gatekeeper|kyverno)\b`,
	`pkill killall taskkill taskkill.exe: (?:\S+ )*(?i:`+guardServices+`)(?:\.exe)?(?: |$)`,
	`kill: (?:-\S+ )*`+guardServices+`$`,
	`history: (?:-\S+ )*-[cwd]`,
	`set: \+o history`,
	`shopt: -u(?:o)? (?:history|cmdhist|histappend)`,
	`journalctl: .*--(?:vacuum-files|vacuum-\w+[= ](?:0|[1-6](?:d|days?)?\b|\d+(?:s|sec|seconds?|m|min|minutes?|h|hours?|ms|K|KB|B)?(?: |$)|[1-9]\d?M|"))`,
	`dmesg: (?:\S+ )*(?:-c|-C|--clear|--read-clear)\b`,
	`setenforce: (?:0|(?i:permissive))`,
	`auditctl: (?:-[eD]|-d |-W )`,
	`augenrules aureport: .*--(?:delete|clear)`,
	`ufw: (?:--force )?(?:disable|reset)`,
	`iptables ip6tables nft: (?:\S+ )*(?:-F|--flush|flush|-X|-P \S+ ACCEPT)`,
	`firewall-cmd: .*--(?:panic-off|set-default-zone=trusted)`,
	`aa-teardown aa-disable aa-complain: .*`,
	`spctl: --(?:master|global)-disable`,
	`csrutil: disable`,
	`wevtutil wevtutil.exe: (?i:cl|sl .*/e:false|clear-log)\b`,
	`auditpol auditpol.exe: (?i:/(?:clear|remove|set .*disable))`,
	`fsutil fsutil.exe: (?i:usn deletejournal)`,
	`netsh netsh.exe: (?i:advfirewall .*\boff\b|firewall .*disable)`,
	`sc sc.exe net net.exe: (?i:(?:stop|delete) (?:eventlog|windefend|sense|sysmon\d*|mpssvc|caddy|lex))`,
	`aws: (?:\S+ )*cloudtrail (?:stop-logging|delete-trail|update-trail .*--(?:no-|s3-|cloud-?watch-|kms-|is-organization)|put-event-selectors|delete-event-data-store)`,
	`aws: (?:\S+ )*(?:guardduty (?:delete-detector|update-detector .*--no-enable|disassociate\S*)|configservice (?:stop|delete)-\S+|config (?:stop|delete)-\S+|securityhub (?:disable|delete)\S*|logs (?:delete-log-(?:group|stream)|delete-retention|put-retention-policy)|ec2 delete-flow-logs|macie2 disable\S*|inspector2 disable|cloudwatch (?:delete-alarms|disable-alarm-actions)|s3api put-bucket-logging|access-analyzer delete\S*)`,
	`gcloud: (?:\S+ )*logging (?:(?:sinks|buckets) (?:delete|update)|logs delete)`,
	`az: (?:\S+ )*monitor (?:diagnostic-settings delete|log-profiles delete|activity-log alert delete|log-analytics workspace delete)`,
	`git: (?:\S+ )*config .*receive\.denyNonFastForwards false`,
	`gh: api .*(?:-X|--method)[= ]?(?:DELETE|PUT) .*/protection`,
	`claude codex gemini cursor-agent aider copilot opencode goose: .*--(?:dangerously-\S+|yolo|bypass-\S+|dangerously_\S+|full-auto|yes-always|allow-all-tools)`,
	`npx: .*--(?:dangerously-\S+|yolo)`,
)

// administers reports whether an address is an endpoint that governs the agent:
// Lex's own (docs/http.md), or the administrative API of Caddy, which listens on
// port 2019 of the machine itself unless it is configured otherwise.
func administers(a address.Address) bool {
	if a.Port == "2019" {
		return true
	}
	text, err := url.PathUnescape(a.Path)
	if err != nil {
		text = a.Path
	}
	p := strings.ToLower(path.Clean("/" + text))
	return lexAdministration.MatchString(p) || a.Loopback && caddyAdministration.MatchString(p)
}

var (
	lexAdministration   = regex.New(`^(?:/[^/]+)?/admin/(?:keys|sessions|benchmarks)(?:/|$)|^/lex/admin(?:/|$)`)
	caddyAdministration = regex.New(`^/(?:load|stop|adapt|config/(?:apps|admin|logging|storage).*|id/.+|pki/ca/.*|reverse_proxy/upstreams)$`)
)

// caddySocket is Caddy's administrative API by a socket instead of a port.
var caddySocket = regex.NewScreen(regex.New(`--unix-socket[= ]\S*(?:caddy|admin)\S*`))
