package file

import (
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
	`\.?(?:psql|mysql|python|node_repl|rediscli|sqlite|ash|fish|sh)_history$|consolehost_history\.txt$|fish_history$`,
	`(?:google/chrome|chromium|microsoft/edge|brave-browser|opera software[^/]*|vivaldi)/(?:user data)(?:/(?:default|profile \d+))?$|\.config/(?:google-chrome|chromium|brave[^/]*|microsoft-edge)(?:/(?:default|profile \d+))?$|application support/(?:google/chrome|firefox|bravesoftware[^/]*)(?:/(?:default|profiles))?$|\.?mozilla/firefox/?(?:profiles)?(?:/[^/]*\.default[^/]*)?$`,
	`gcloud/(?:credentials\.db|access_tokens\.db|legacy_credentials(?:/.*)?|application_default_credentials\.json)$`,
	`kubeconfig(?:\.ya?ml)?$|\.kube(?:/(?:\*|cache/.*token.*))?$|id_[a-z0-9]+_sk$`,
}, "|") + `)`)

// sampleFile names the files of the same look that hold none.
var sampleFile = regex.New(`(?i)\.(?:example|sample|template|dist|defaults?|schema|tpl|md|test)$|\.pub$`)

// secretFiles are the files in which programs keep logins, and those of credentials.
var secretFiles = regex.NewScreen(savedLogins, credentialFile)

// IsCredential reports whether a file, or one that a pattern stands for, holds keys, tokens or
// passwords.
func IsCredential(name string) bool {
	found := secretFiles.Matching(name, false)
	return found&1 != 0 || found&2 != 0 && !sampleFile.MatchString(name) || matchesCredential(name)
}

// wellKnown are credential files that a pattern is compared with, folder by folder.
var wellKnown = cutPaths(".ssh/id_rsa .ssh/id_ed25519 .aws/credentials .kube/config .docker/config.json .config/gcloud/credentials.db etc/shadow .env .netrc .npmrc .pypirc .git-credentials .pgpass .vault-token .gnupg/secring.gpg")

// matchesCredential reports whether a shell's pattern can stand for a well-known
// credential file. As in a shell, a pattern stands for a leading dot only where it
// has one.
func matchesCredential(pattern string) bool { return standsForAny(pattern, wellKnown) }

// savedLogins are the files in which programs keep the logins of their users.
var savedLogins = regex.New(`(?i)(?:^|/)\.?filezilla/(?:sitemanager|recentservers|filezilla)\.xml$|(?:^|/)(?:winscp\.ini|confcons\.xml|wcx_ftp\.ini|signons\.sqlite|credentials-config\.json|coreftp\.cfg|\.smbcredentials|\.cifscredentials)$|\.remmina$|(?:^|/)sequel (?:pro|ace)/.*favorites\.plist$|martin prikryl/winscp 2/sessions|(?:^|/)\.?(?:ws_ftp|cuteftp|smartftp|flashfxp)/.*\.(?:ini|dat|xml)$|(?:^|/)heidisql.*\.(?:ini|txt)$|(?:^|/)\.dbvis/.*\.xml$|(?:^|/)\.purple/accounts\.xml$|(?:^|/)psi/.*accounts\.xml$|(?:^|/)robo3t\.json$`)
