package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// neverReads lists commands that handle a file without showing it.
var neverReads = words("source . ls ll stat file chmod chown touch mkdir rm unlink test [ [[ ssh-keygen ssh ssh-add git cd pushd echo printf chattr du which find")

// credentials judges a command that would show credentials.
func (s *shell) credentials(name string, argv []string) {
	switch {
	case s.let != wholeText:
	case name == "printenv" && (len(argv) == 1 || secretName.Matches(strings.Join(argv, " "))), name == "set" && len(argv) == 1, name == "env" && len(argv) == 1:
		s.breaks(CredentialAccess)
	}
	if neverReads[name] || name == "sed" && editsInPlace(argv) || name == "openssl" && opensNothing.MatchString(strings.Join(argv[1:], " ")) {
		return
	}
	read := argv[1:]
	if (name == "cp" || name == "install" || name == "ln") && len(read) > 1 {
		read = read[:len(read)-1] // the last is written
	}
	if hunts(name, argv) {
		s.breaks(CredentialAccess)
	}
	if name == "tar" || name == "bsdtar" {
		s.packsCredentials(argv)
	}
	for n, w := range read {
		if ownSecrets(read, n) && !slices.ContainsFunc(read, printsEnvironment.MatchString) {
			continue
		}
		if i := strings.IndexAny(w, "@="); i >= 0 && name != "sed" && !strings.HasPrefix(w, "--exclude") {
			s.opened(argv, w[i+1:])
		}
		if !strings.HasPrefix(w, "-") {
			s.opened(argv, w)
		}
	}
}

// opened judges a file that a command reads.
func (s *shell) opened(argv []string, name string) {
	if p := s.resolve(name); file.IsCredential(p) && !s.withholds(argv, p) {
		s.breaks(CredentialAccess)
	}
}

// ownSecrets reports whether a word is, or has, the file of a flag that a program takes its own
// secrets from.
func ownSecrets(argv []string, n int) bool {
	if flag, _, joined := strings.Cut(argv[n], "="); joined && flag != "" && flag[0] == '-' && handsOverFile[flag] {
		return true
	}
	return n > 0 && strings.HasPrefix(argv[n-1], "-") && handsOverFile[argv[n-1]]
}

// handsOverFile are the flags whose file a program takes its own secrets from. It shows none
// of them, as a service that is started with its settings does not.
var handsOverFile = words("--env-file --env-files --password-file --passphrase-file --vault-password-file --vault-pass-file -pass -passin -passout --key --cert --cacert --tlskey --tlscert --ssl-key --ssl-cert --sslkey --sslcert --private-key --identity --identity-file --kubeconfig --key-file --cert-file --keyfile --certfile --client-key --client-certificate --from-env-file")

// printsEnvironment is what prints the settings of a program that is started with them.
var printsEnvironment = regex.New(`(?:^|[\s;&|/])(?:env|printenv|set|export|declare)(?:[\s;&|]|$)|environ`)

// opensNothing is what openssl tells of a key or a certificate without the key.
var opensNothing = regex.New(`^(?:(?:x509|req|crl|rsa|pkey|ec) (?:.* )?-noout\b|verify\b|s_client\b)`)

// packsCredentials judges what tar packs from the folders that it goes to.
func (s *shell) packsCredentials(argv []string) {
	folder := ""
	for i, w := range argv[1:] {
		switch previous := argv[i]; {
		case previous == "-C" || previous == "--directory":
			folder = w + "/"
		case strings.HasPrefix(w, "--directory="):
			folder = strings.TrimPrefix(w, "--directory=") + "/"
		case folder != "" && !strings.HasPrefix(w, "-") && file.IsCredential(s.resolve(folder+w)):
			s.breaks(CredentialAccess)
		}
	}
}

// editsInPlace reports whether sed puts one text in the place of another in its files, and
// neither prints, runs nor writes elsewhere what they hold: its whole script is s/a/b/.
func editsInPlace(argv []string) bool {
	var words []string
	inPlace := false
	for _, w := range argv[1:] {
		switch {
		case strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place"):
			inPlace = true
		case w == "-E" || w == "-r" || w == "":
		case strings.HasPrefix(w, "-"):
			return false
		default:
			words = append(words, w)
		}
	}
	if !inPlace || len(words) < 2 || len(words[0]) < 4 || words[0][0] != 's' || !strings.ContainsRune("/|#,@", rune(words[0][1])) {
		return false
	}
	parts := strings.Split(words[0], words[0][1:2])
	return len(parts) == 4 && strings.Trim(parts[3], "gIi0123456789") == "" && !strings.ContainsAny(words[0], "\n\\")
}

// hunts reports whether a command searches for secrets beyond the workspace.
func hunts(name string, argv []string) bool {
	if name != "grep" && name != "egrep" && name != "rg" && name != "ag" && name != "ack" && name != "fgrep" && name != "zgrep" {
		return false
	}
	words := operands(argv)
	for i, w := range argv {
		if (w == "-e" || w == "--regexp") && secretPattern.MatchString(wordAt(argv, i+1)) {
			words = append([]string{argv[i+1]}, words...)
		}
	}
	if len(words) < 2 || !secretPattern.MatchString(words[0]) {
		return false
	}
	return slices.ContainsFunc(words[1:], func(w string) bool { return wideFolder.MatchString(file.Clean(w)) })
}

var (
	secretPattern = regex.New(`(?i)passw|secret|api.?key|token|akia|private.?key|begin.{0,20}key|credential|aws_`)
	wideFolder    = regex.New(`^(?:/|~|/(?:home|root|etc|Users|var|opt|srv|proc|mnt)(?:/[^/]*)?|/home/[^/]+|\.\./\.\.(?:/.*)?)$`)
)

// searches judges a tool that searches files: for secrets in folders beyond the
// workspace, or for the files that hold them.
func (r *reading) searches(leaves []leaf) {
	if !r.tool.any("splunk", "kusto", "adx", "sentinel", "grep", "search", "find", "glob", "rg", "ripgrep", "locate") {
		return
	}
	for _, l := range leaves {
		if l.text && searchKeys[l.key] && len(l.value) <= maxValue && (r.tool.any("splunk") && splunkDeletes.MatchString(l.value) || r.tool.any("kusto", "adx", "sentinel") && kustoDrops.MatchString(l.value)) {
			r.breaks(ConstraintTampering)
		}
	}
	hunts, wide := false, false
	for _, l := range leaves {
		switch {
		case !l.text || len(l.value) > maxValue:
		case searchKeys[l.key]:
			hunts = hunts || secretPattern.MatchString(l.value)
			if strings.ContainsAny(l.value, "/") && file.IsCredential(l.value) {
				r.breaks(CredentialAccess)
			}
		case r.tool.roleOf(l.key) == rolePath:
			wide = wide || wideFolder.MatchString(file.Clean(l.value))
		}
	}
	if hunts && wide {
		r.breaks(CredentialAccess)
	}
}

// What takes the records themselves away in the languages of their searches.
var (
	splunkDeletes = regex.New(`\|\s*delete\s*(?:$|\|)`)
	kustoDrops    = regex.New(`^\s*\.(?:drop|purge|clear|delete)\b`)
)

var searchKeys = words("pattern query regex regexp glob include search text term expression content")

// credentialCommands print tokens by design.
var credentialCommands = byCommand(
	`aws: (?:\S+ )*(?:get-secret-value|batch-get-secret-value|get-session-token|assume-role\S*|export-credentials|get-login-password|get-authorization-token|configure get (?:\S*\.)?aws_secret\S*|get-password-data)`,
	`aws: (?:\S+ )*ssm get-parameters?\S*\b.*--with-decryption`,
	`aws: (?:\S+ )*(?:iam create-access-key|kms decrypt)\b`,
	`gcloud: (?:\S+ )*(?:print-access-token|print-identity-token|print-refresh-token|versions access|keys create|kms decrypt)`,
	`az: (?:\S+ )*(?:account get-access-token|keyvault (?:secret|key) (?:show|download)|keys list|show-connection-string|list-keys|create-for-rbac|get-credentials)`,
	`gh: auth (?:token|status .*(?:-t|--show-token))`,
	`glab: auth status .*(?:-t|--show-token)`,
	`heroku: (?:\S+ )*(?:config\b|auth:token)`,
	`flyctl fly: (?:auth token|tokens create)`,
	`vercel netlify railway: (?:env (?:pull|ls|list)|variables|env:list)\b`,
	`doppler: secrets\b|run .*printenv`,
	`infisical: (?:secrets|export)\b`,
	`chamber: (?:read|export|list)\b`,
	`kubectl oc: (?:\S+ )*get (?:\S+ )*secrets?(?:[ /,]\S*)* .*(?:(?:-o|--output)[ =]?(?:json|yaml|go-template|template|custom-columns)|--template)`,
	`kubectl oc: (?:\S+ )*(?:config view\b.*--raw|create token\b|whoami -t|get --raw .*secrets|describe .*token)`,
	`helm: (?:\S+ )*get (?:values|manifest|all)\b`,
	`security: (?:find-(?:generic|internet)-password|dump-keychain|export|find-key)\b`,
	`vault: (?:kv get|read|token|print token|unwrap|login)\b`,
	`op: (?:read|item get|document get|inject)\b|run .*-- (?:\S*/)?(?:env|printenv|export|set|cat|echo|sh|bash)\b`,
	`pass gopass: (?:show|ls -|\w+/)`,
	`lpass: (?:show|export)\b`,
	`bw: (?:get|list|export)\b`,
	`keepassxc-cli: (?:show|export|clip)\b`,
	`secret-tool: (?:lookup|search)\b`,
	`keyring: get\b`,
	`keyctl: (?:print|pipe|read)\b`,
	`gpg gpg2: .*--export-secret-(?:sub)?keys`,
	`git: (?:\S+ )*(?:credential(?:-\S+)? (?:fill|get)|config .*extraheader)\b`,
	`docker-credential-desktop docker-credential-osxkeychain docker-credential-pass docker-credential-secretservice git-credential-store: get\b`,
	`npm: (?:token list|config get .*_auth)`,
	`sops: (?:\S+ )*(?:-d|--decrypt|decrypt|exec-env)\b`,
	`age: (?:\S+ )*(?:-d|--decrypt)\b`,
	`ansible-vault: (?:view|decrypt|edit)\b`,
	`terraform tofu: (?:state pull|output (?:\S+ )*(?:-json|-raw))\b`,
	`airflow: (?:variables|connections) export (?:-|/dev/stdout)(?: |$)|connections (?:list|get) .*(?:-o|--output)[= ](?:json|yaml|plain)`,
	`databricks: secrets get(?:-secret)?\b`,
	`pulumi: (?:config|stack output) .*--show-secrets`,
	`getent: g?shadow\b`,
	`unshadow john hashcat secretsdump.py secretsdump impacket-secretsdump mimikatz lazagne laZagne.py: .*`,
	`procdump procdump.exe gcore rundll32 rundll32.exe: .*(?:lsass|MiniDump|comsvcs|keymgr)`,
	`gcore: .*\d`,
	`reg reg.exe: (?i:save hklm\\?(?:sam|system|security))`,
	`cmdkey cmdkey.exe vaultcmd: (?i:.*/list)`,
	`netsh netsh.exe: (?i:wlan .*key=clear)`,
	`ps: [a-df-z]*e\w*(?: |$)`,
	`compgen: -\w*[ev]`,
	`docker podman: (?:container )?inspect .*Config\.Env`,
)

// secretName is what a variable is called when it holds a secret.
var secretName = regex.NewScreen(regex.New(`(?i)(?:SECRET|TOKEN|PASSW(?:OR)?D|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIALS?)(?:_|$|[^a-zA-Z0-9])`))

// secret finds values that are keys or tokens by their published formats.
var secret = regex.ScreenOf(
	`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
	`\bgh[pousr]_[A-Za-z0-9]{36,}`,
	`\bgithub_pat_[A-Za-z0-9_]{40,}`,
	`\bglpat-[A-Za-z0-9_-]{20,}`,
	`\bsk-(?:ant-|proj-|live-)?[A-Za-z0-9_-]{20,}`,
	`\b[sr]k_live_[A-Za-z0-9]{16,}`,
	`\bxox[abposr]-[A-Za-z0-9-]{10,}`,
	`\bAIza[0-9A-Za-z_-]{35}`,
	`\bya29\.[0-9A-Za-z_-]{20,}`,
	`\bnpm_[A-Za-z0-9]{36}`,
	`-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----`,
	`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
	`(?i)\baws_secret_access_key\s*[=:]\s*[A-Za-z0-9/+]{12,}`,
	`\b[A-Z][A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|API_?KEY|PRIVATE_KEY)[A-Z0-9_]*\s*=\s*[A-Za-z0-9+/_.-]{12,}`,
	`\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp)://[^\s:/@]+:[^\s@/]{6,}@`,
	`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`,
	`\bhf_[A-Za-z0-9]{30,}`,
	`\bdop_v1_[a-f0-9]{40,}`,
	`\bwhsec_[A-Za-z0-9]{20,}`,
	`(?m)^root:[^:\n]*:0:0:`,
)
