package toolcall

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// governedFile names the files that constrain an agent: the proxy's
// configuration, its policy and constitution, the permissions of agent
// harnesses, and the rules of the system's own audit.
var governedFile = regexp.MustCompile(`(?i)(?:^|/)(?:Caddyfile(?:\.(?:prod|production|staging|live|local|dev))?|caddy\.json|constitution\.(?:txt|md)|lex[-_.](?:policy|config|tools)\.\w+|(?:guardrails?|moderation|tool[-_]?policy|safety[-_]policy|agent[-_]policy)\.(?:ya?ml|json|toml|co|txt)|\.claude/settings(?:\.local)?\.json|\.codex/config\.toml|\.cursor/(?:mcp|permissions)\.json|\.mcp\.json|etc/(?:audit/.*|rsyslog\.(?:conf|d/.*)|caddy/.*))$`)

// governed judges a file about to be changed.
func (r *reading) governed(name string) {
	if governedFile.MatchString(name) {
		r.breaks(ConstraintTampering)
	}
}

var (
	loosens = regexp.MustCompile(`^(?:disable|bypass|skip|ignore|turnoff|override|no)(?:all)?(?:guardrails?|safety|moderation|policy|policies|governance|governor|audit|auditing|audits|logging|approvals?|permissions?|safetychecks?|interceptor|checks)$|^dangerously`)
	guards  = regexp.MustCompile(`^(?:guardrails?|safety|moderation|governance|governor|audit|auditing|auditlog|interceptor|safetychecks?|requireapproval|policyenforcement)(?:enabled)?$`)
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
	line := strings.Join(argv, " ")
	if tamperCommand.MatchString(line) || caddySocket.MatchString(line) {
		s.breaks(ConstraintTampering)
	}
	if name == "unset" && strings.Contains(line, "HISTFILE") {
		s.breaks(ConstraintTampering)
	}
	if name == "rm" || name == "shred" || name == "truncate" {
		for _, n := range operands(argv) {
			if strings.HasPrefix(s.resolve(n), "/var/log/") || strings.HasSuffix(n, ".bash_history") {
				s.breaks(ConstraintTampering)
			}
		}
	}
}

var tamperCommand = regexp.MustCompile(`^(?:\S*/)?(?:` + strings.Join([]string{
	`caddy (?:reload|stop|adapt .*--overwrite)\b`,
	`(?:systemctl|service) (?:\S+ )*(?:stop|disable|mask|kill|restart) (?:\S+ )*(?:caddy|auditd|rsyslog|syslog|systemd-journald|falco|fluentd|apparmor|firewalld|ufw)\b`,
	`service (?:caddy|auditd|rsyslog|syslog) (?:stop|restart)`,
	`(?:pkill|killall)(?: -\S+)* (?:caddy|auditd|rsyslogd|falco)\b`,
	`kill (?:-\S+ )*caddy$`,
	`history -[cw]`,
	`journalctl .*--(?:vacuum|rotate)`,
	`setenforce 0`,
	`auditctl -[eD]`,
	`ufw disable`,
	`(?:iptables|nft) (?:-F|--flush|flush)`,
	`(?i:set-mppreference .*disable)`,
	`wevtutil(?:\.exe)? cl\b`,
	`\S+ .*--dangerously-`,
}, "|") + `)`)

// administers reports whether an address is an endpoint that governs the agent:
// Lex's own (docs/http.md), or the administrative API of Caddy, which listens on
// port 2019 of the machine itself unless it is configured otherwise.
func administers(a endpoint) bool {
	if a.port == "2019" {
		return true
	}
	text, err := url.PathUnescape(a.path)
	if err != nil {
		text = a.path
	}
	p := strings.ToLower(path.Clean("/" + text))
	return lexAdministration.MatchString(p) || a.loopback && caddyAdministration.MatchString(p)
}

var (
	lexAdministration   = regexp.MustCompile(`^(?:/[^/]+)?/admin/(?:keys|sessions|benchmarks)(?:/|$)|^/lex/admin(?:/|$)`)
	caddyAdministration = regexp.MustCompile(`^/(?:load|stop|adapt|config/(?:apps|admin|logging|storage).*|id/.+|pki/ca/.*|reverse_proxy/upstreams)$`)
)

// caddySocket is Caddy's administrative API by a socket instead of a port.
var caddySocket = regexp.MustCompile(`--unix-socket[= ]\S*(?:caddy|admin)\S*`)
