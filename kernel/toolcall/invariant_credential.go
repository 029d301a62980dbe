package toolcall

import (
	"path"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// credentialFile names the files that hold keys, tokens and passwords.
var credentialFile = regex.New(`(?i)(?:^|/)(?:` + strings.Join([]string{
	`\.ssh(?:/(?:id_[a-z0-9_]+|identity|authorized_keys|\*)?)?$`,
	`id_(?:rsa|dsa|ecdsa|ed25519)$`,
	`\.env(?:\.[a-z0-9_-]+)*$`,
	`etc/(?:shadow|gshadow|master\.passwd|sudoers|krb5\.keytab)-?$`,
	`\.aws(?:/(?:credentials|sso/.*|\*)?)?$`,
	`\.config/gcloud(?:/(?:.*credentials.*|access_tokens\.db|legacy_credentials.*|\*)?)?$`,
	`\.azure(?:/(?:accesstokens\.json|msal_token_cache.*|\*)?)?$`,
	`\.kube/config$`,
	`\.docker/config\.json$`,
	`\.(?:netrc|pgpass|npmrc|pypirc|git-credentials|my\.cnf|vault-token|htpasswd|bash_history|zsh_history)$`,
	`_netrc$`,
	`\.gnupg(?:/.*)?$`,
	`\.config/gh/hosts\.yml$`,
	`\.password-store(?:/.*)?$`,
	`proc/[^/]+/(?:environ|mem)$`,
	`(?:run|var/run)/secrets(?:/.*)?$`,
	`(?:login data|cookies\.sqlite|logins\.json|key[34]\.db|wallet\.dat|login\.keychain(?:-db)?)$`,
	`credentials\.json$|service[-_]account[^/]*\.json$|client_secret[^/]*\.json$`,
	`(?:[^/]*\.)?(?:kdbx|jks|p12|pfx|ppk)$`,
	`windows/system32/config/(?:sam|system|security)$|ntds\.dit$`,
	`(?:private|server|tls|privkey)[^/]*\.(?:key|pem)$`,
	`\*\.(?:pem|key)$`,
	`\.cargo/credentials(?:\.toml)?$|\.gem/credentials$|\.boto$|\.s3cfg$|\.databrickscfg$|\.terraformrc$|\.vault_pass(?:\.txt)?$|\.vaultpass$`,
	`credentials\.tfrc\.json$|terraform\.tfstate(?:\.backup)?$|\.tfvars$`,
	`\.config/(?:rclone/rclone\.conf|hub|op/.*|doctl/config\.yaml|github-copilot/(?:hosts|apps)\.json|containers/auth\.json|composer/auth\.json|sops/.*|gh-copilot/.*|heroku/.*|git/credentials|fly/.*|stripe/config\.toml|netlify/config\.json|configstore/.*)$`,
	`containers/auth\.json$|\.composer/auth\.json$|\.m2/settings(?:-security)?\.xml$|\.gradle/gradle\.properties$|nuget\.config$|\.fly/config\.yml$|\.snowsql/config$|\.snowflake/.*\.toml$`,
	`\.(?:claude/\.credentials|codex/auth|gemini/oauth_creds)\.json$`,
	`\.local/share/keyrings/.*$|library/keychains/.*$|\.config/(?:google-chrome|chromium|brave[^/]*|microsoft-edge)/.*(?:cookies|login data|local state)$|user data/.*/(?:cookies|local state|web data|login data)$|network/cookies$`,
	`\.(?:mozilla|thunderbird)/.*(?:logins\.json|key4\.db|cookies\.sqlite|cert9\.db)$`,
	`etc/(?:ssl/private(?:/.*)?|ssh/ssh_host_[a-z0-9]+_key|kubernetes/(?:admin\.conf|pki/.*|kubelet\.conf)|rancher/.*\.yaml|wireguard/.*|openvpn/.*|ppp/.*-secrets|exim4/passwd\.client|postfix/sasl_passwd|mysql/debian\.cnf|security/opasswd|NetworkManager/system-connections(?:/.*)?)$`,
	`var/lib/(?:rancher/.*token|kubelet/.*kubeconfig|docker/swarm/.*|jenkins/(?:secrets/.*|credentials\.xml))$|proc/(?:kcore|keys|\$\$/environ|self/task/.*environ)$|dev/(?:mem|kmem)$`,
	`(?:config/)?master\.key$|config/(?:credentials\.yml\.enc|secrets\.ya?ml)$|(?:^|/)secrets?\.(?:ya?ml|json|toml|env|properties|ini)$|wp-config\.php$|\.erlang\.cookie$|\.htpasswd$|\.vnc/passwd$|\.mylogin\.cnf$|\.subversion/auth(?:/.*)?$`,
	`(?:[^/]*\.)?(?:keystore|ovpn|kdb|keytab|jceks|bks|pkcs12)$|unattend(?:ed)?\.xml$|sysprep\.(?:xml|inf)$|groups\.xml$|(?:repair|regback)/(?:sam|system|security)$`,
	`(?:psql|mysql|python|node_repl|rediscli|sqlite|ash|fish|sh)_history$|consolehost_history\.txt$|fish_history$`,
	`(?:google/chrome|chromium|microsoft/edge|brave-browser|opera software[^/]*|vivaldi)/(?:user data)(?:/(?:default|profile \d+))?$|\.config/(?:google-chrome|chromium|brave[^/]*|microsoft-edge)(?:/(?:default|profile \d+))?$|application support/(?:google/chrome|firefox|bravesoftware[^/]*)(?:/(?:default|profiles))?$|\.?mozilla/firefox/?(?:profiles)?(?:/[^/]*\.default[^/]*)?$`,
	`gcloud/(?:credentials\.db|access_tokens\.db|legacy_credentials(?:/.*)?|application_default_credentials\.json)$`,
	`kubeconfig(?:\.ya?ml)?$|\.kube(?:/(?:\*|cache/.*token.*))?$|id_[a-z0-9]+_sk$`,
}, "|") + `)`)

// sampleFile names the files of the same look that hold none.
var sampleFile = regex.New(`(?i)\.(?:example|sample|template|dist|defaults?|schema|tpl|md|test)$|\.pub$`)

// secretFiles are the files in which programs keep logins, and those of credentials.
var secretFiles = regex.NewScreen(savedLogins, credentialFile)

func isCredentialFile(name string) bool {
	found := secretFiles.Matching(name, false)
	return found&1 != 0 || found&2 != 0 && !sampleFile.MatchString(name) || matchesCredential(name)
}

// wellKnown are credential files that a pattern is compared with, folder by folder.
var wellKnown = cutPaths(".ssh/id_rsa .ssh/id_ed25519 .aws/credentials .kube/config .docker/config.json .config/gcloud/credentials.db etc/shadow .env .netrc .npmrc .pypirc .git-credentials .pgpass .vault-token .gnupg/secring.gpg")

// cutPaths cuts file names into their folders.
func cutPaths(names string) (out [][]string) {
	for name := range strings.FieldsSeq(names) {
		out = append(out, strings.Split(name, "/"))
	}
	return out
}

// matchesCredential reports whether a shell's pattern can stand for a well-known
// credential file. As in a shell, a pattern stands for a leading dot only where it
// has one.
func matchesCredential(pattern string) bool { return standsForAny(pattern, wellKnown) }

// standsForAny reports whether a shell's pattern can stand for one of the files, folder by
// folder.
func standsForAny(pattern string, files [][]string) bool {
	if !strings.ContainsAny(pattern, "*?[") || len(pattern) > maxValue {
		return false
	}
	parts := strings.Split(strings.ToLower(pattern), "/")
	return pattern != "*" && slices.ContainsFunc(files, func(known []string) bool {
		return len(parts) >= len(known) && slices.EqualFunc(parts[len(parts)-len(known):], known, standsFor)
	})
}

// standsFor reports whether a pattern stands for one folder or file.
func standsFor(pattern, name string) bool {
	dotted := pattern != "" && (pattern[0] == '.' || pattern[0] == '[')
	if dotted != (name[0] == '.') {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

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
	if file := s.resolve(name); isCredentialFile(file) && !s.withholds(argv, file) {
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
		case folder != "" && !strings.HasPrefix(w, "-") && isCredentialFile(s.resolve(folder+w)):
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
	return slices.ContainsFunc(words[1:], func(w string) bool { return wideFolder.MatchString(cleanPath(w)) })
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
			if strings.ContainsAny(l.value, "/") && isCredentialFile(l.value) {
				r.breaks(CredentialAccess)
			}
		case r.tool.roleOf(l.key) == rolePath:
			wide = wide || wideFolder.MatchString(cleanPath(l.value))
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
