package toolcall

import (
	"regexp"

	"github.com/caddy-lex/lex/kernel/regex"
)

// knownHost is a line of /etc/hosts that gives a name to an address of this machine or of the own
// network. One that leads a name elsewhere would lead everybody there who trusts the name.
var knownHost = regexp.MustCompile(`^(?:127\.\d+\.\d+\.\d+|::1|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+|0\.0\.0\.0)(?:\s+[\w.-]+)+$`)

// hardenedLogin is a line for the server of ssh that lets fewer in than before.
var hardenedLogin = regexp.MustCompile(`^(?:PermitRootLogin (?:no|prohibit-password)|(?:PasswordAuthentication|KbdInteractiveAuthentication|ChallengeResponseAuthentication|PermitEmptyPasswords|X11Forwarding|AllowTcpForwarding|AllowAgentForwarding|PermitTunnel|PermitUserEnvironment|GatewayPorts) no|PubkeyAuthentication yes|MaxAuthTries [1-6]|MaxSessions \d|LoginGraceTime \d{1,2}|ClientAlive(?:Interval|CountMax) \d+|(?:AllowGroups|AllowUsers|DenyUsers|DenyGroups) [\w -]+|LogLevel (?:VERBOSE|INFO)|UsePAM yes|(?:Ciphers|MACs|KexAlgorithms) [\w@.,-]+)$`)

// rotation finds the scripts that the rotation of logs runs.
var rotation = regex.New(`(?s)\b(?:prerotate|postrotate|firstaction|lastaction|preremove)\b\s*\n(.*?)\n\s*endscript\b`)

// rotationCommands are the commands in the settings of logrotate.
func rotationCommands(text string) []string {
	var out []string
	for _, m := range rotation.FindAllStringSubmatch(text, maxRecipes) {
		out = append(out, m[1])
	}
	return out
}
