package toolcall

import (
	"path"
	"regexp"
	"strings"
)

// credentialFile names the files that hold keys, tokens and passwords.
var credentialFile = regexp.MustCompile(`(?i)(?:^|/)(?:` + strings.Join([]string{
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
	`proc/(?:self|\d+|\*)/(?:environ|mem)$`,
	`(?:run|var/run)/secrets(?:/.*)?$`,
	`(?:login data|cookies\.sqlite|logins\.json|key[34]\.db|wallet\.dat|login\.keychain(?:-db)?)$`,
	`credentials\.json$|service[-_]account[^/]*\.json$|client_secret[^/]*\.json$`,
	`(?:[^/]*\.)?(?:kdbx|jks|p12|pfx|ppk)$`,
	`windows/system32/config/(?:sam|system|security)$|ntds\.dit$`,
	`(?:private|server|tls|privkey)[^/]*\.(?:key|pem)$`,
	`\*\.(?:pem|key)$`,
}, "|") + `)`)

// sampleFile names the files of the same look that hold none.
var sampleFile = regexp.MustCompile(`(?i)\.(?:example|sample|template|dist|defaults?|schema|tpl|md|test)$|\.pub$`)

func isCredentialFile(name string) bool {
	return matchesCredential(name) || credentialFile.MatchString(name) && !sampleFile.MatchString(name)
}

// wellKnown are credential files that a pattern is compared with, folder by folder.
var wellKnown = strings.Fields(".ssh/id_rsa .ssh/id_ed25519 .aws/credentials .kube/config .docker/config.json .config/gcloud/credentials.db etc/shadow .env .netrc .npmrc .pypirc .git-credentials .pgpass .vault-token .gnupg/secring.gpg")

// matchesCredential reports whether a shell's pattern can stand for a well-known
// credential file. As in a shell, a pattern stands for a leading dot only where it
// has one.
func matchesCredential(pattern string) bool {
	if !strings.ContainsAny(pattern, "*?[") || len(pattern) > maxValue {
		return false
	}
	parts := strings.Split(pattern, "/")
	for _, known := range wellKnown {
		want := strings.Split(known, "/")
		if len(parts) < len(want) {
			continue
		}
		matches := true
		for i, p := range parts[len(parts)-len(want):] {
			dotted := p != "" && (p[0] == '.' || p[0] == '[')
			ok, err := path.Match(strings.ToLower(p), want[i])
			matches = matches && ok && err == nil && dotted == (want[i][0] == '.')
		}
		if matches && pattern != "*" {
			return true
		}
	}
	return false
}

// neverReads lists commands that handle a file without showing it.
var neverReads = words("ls ll stat file chmod chown touch mkdir rm unlink test [ [[ ssh-keygen ssh ssh-add git cd pushd echo printf chattr du which find")

// credentials judges a command that would show credentials.
func (s *shell) credentials(name string, argv []string) {
	line := strings.Join(argv, " ")
	if credentialCommand.MatchString(line) {
		s.breaks(CredentialAccess)
	}
	switch {
	case name == "printenv" && (len(argv) == 1 || secretName.MatchString(line)), name == "set" && len(argv) == 1, name == "env" && len(argv) == 1:
		s.breaks(CredentialAccess)
	}
	if neverReads[name] {
		return
	}
	read := argv[1:]
	if (name == "cp" || name == "install" || name == "ln") && len(read) > 1 {
		read = read[:len(read)-1] // the last is written
	}
	for _, w := range read {
		if i := strings.IndexAny(w, "@="); i >= 0 && isCredentialFile(s.resolve(w[i+1:])) && !strings.HasPrefix(w, "--exclude") {
			s.breaks(CredentialAccess)
		}
		if !strings.HasPrefix(w, "-") && isCredentialFile(s.resolve(w)) {
			s.breaks(CredentialAccess)
		}
	}
}

// credentialCommand lists the commands that print tokens by design.
var credentialCommand = regexp.MustCompile(`^(?:\S*/)?(?:` + strings.Join([]string{
	`aws (?:\S+ )*(?:get-secret-value|get-session-token|export-credentials|get-login-password|configure get aws_secret\S*)`,
	`aws ssm get-parameters?\b.*--with-decryption`,
	`gcloud (?:\S+ )*(?:print-access-token|print-identity-token|versions access)`,
	`az (?:account get-access-token|keyvault secret show)`,
	`gh auth token`,
	`kubectl (?:\S+ )*get secrets?\b.*(?:-o|--output)`,
	`kubectl config view\b.*--raw`,
	`security (?:find-(?:generic|internet)-password|dump-keychain)`,
	`vault (?:kv get|read|token)`,
	`op (?:read|item get)|pass show|lpass show|bw get`,
	`gpg .*--export-secret-keys`,
	`git credential fill`,
	`heroku config\b|doppler secrets`,
	`mimikatz|secretsdump|lsass|procdump.*lsass|reg save hklm\\?(?:sam|system)`,
	`(?:env|printenv) ?\|`,
}, "|") + `)`)

// secretName is what a variable is called when it holds a secret.
var secretName = regexp.MustCompile(`(?i)(?:SECRET|TOKEN|PASSW(?:OR)?D|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIALS?)(?:_|$|[^a-zA-Z0-9])`)

// secret finds values that are keys or tokens by their published formats.
var secret = regexp.MustCompile(strings.Join([]string{
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
	`(?i)\baws_secret_access_key\s*[=:]\s*[A-Za-z0-9/+]{30,}`,
	`(?m)^root:[^:\n]*:0:0:`,
}, "|"))
