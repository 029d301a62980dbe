package file_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/file"
)

// What is told of a name, with names of which it is so and others of which it is not.
func TestNames(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		is      func(string) bool
		so, not []string
	}{
		"vital": {
			file.IsVital,
			[]string{"/", "/*", "/etc", "/etc/nginx", "/usr/lib/x", "/home", "/home/ann", "/home/ann/*", "~", "~/*", "~/.ssh", "~/Documents", "/var/lib/mysql", "/var/log/*", "/mnt/disk", "C:/", "C:/Users/ann/*", "C:/Windows/System32", "/e*", "/?tc", "/[eu]tc/x"},
			[]string{"", "build", "./build", "/tmp", "/tmp/x", "/home/ann/project", "~/project", "/var/lib/app/tmp", "/x*", "D:/code/build", "/opt/app/releases/3"},
		},
		"device": {
			file.IsDevice,
			[]string{"/dev/sda", "/dev/nvme0n1", "/dev/mapper/root", "/dev/mem", "/dev/" + file.Unknown},
			[]string{"/dev/null", "/dev/stdout", "/dev/tty", "dev/sda", "/dev/shm/x"},
		},
		"cache": {
			file.IsCache,
			[]string{"~/.npm/cache", "/home/ann/.cache/caches/x", "~/Library/Caches/x", "/Library/Caches"},
			[]string{"~/Library/Caches/../Mail", "/etc/cache", "~/project"},
		},
		"shared": {
			file.IsShared,
			[]string{"/mnt/nas/photos", "/srv/finance", "/data/customers", "/backups/db"},
			[]string{"/mnt/data/x", "/mnt/c/Users", "/srv/tmp", "/data/build/out", "/srv/../etc", "/home/ann", "/mnt/nas/a/b/c/d/e"},
		},
		"shared on Windows": {
			file.IsSharedOnWindows,
			[]string{"//server/finance", "d:/shares/hr", "e:/backups"},
			[]string{"//?/c:/x", "//./pipe/data", "//server", "c:/code/build", "//server/temp"},
		},
		"in a shared root": {file.InSharedRoot, []string{"/mnt/nas/a/b/c/d/e", "/srv/tmp"}, []string{"/home/ann", "mnt/x"}},
		"missed by nobody": {file.IsPassing, []string{"a.tmp", "x/b.log", "c.pyc", ".DS_Store"}, []string{"a.txt", "db.sqlite"}},
		"data":             {file.HoldsData, []string{"a.db", "x.sqlite3", "y.PARQUET", "z.dump"}, []string{"a.txt", "db"}},
		"others' data":     {file.HoldsOthersData, []string{"/srv/app/users.db", "/var/lib/app/x.sqlite", "/data/payroll/a.csv"}, []string{"/home/ann/x.db", "/srv/tmp/x.db", "/srv/app/report.pdf"}},
		"a credential": {
			file.IsCredential,
			[]string{"~/.ssh/id_rsa", ".env", "app/.env.production", "/etc/shadow", "~/.aws/credentials", ".kube/config", "x.pfx", "~/.s?h/id_r*", ".e*v", "FileZilla/sitemanager.xml"},
			[]string{".env.example", "id_rsa.pub", "~/.ssh/known_hosts", "README.md", "environment.yml", "*", "src/*.go"},
		},
		"code that starts later": {
			file.StartsCode,
			[]string{"~/.bashrc", "/etc/crontab", "/etc/cron.d/x", "~/.ssh/authorized_keys", ".git/hooks/pre-commit", "/etc/systemd/system/x.service", "~/.b*rc", "~/Library/LaunchAgents/x.plist"},
			[]string{"bashrc.md", "docs/crontab.txt", "~/.ssh/known_hosts", ".github/workflows/ci.yml"},
		},
		"rights": {file.GrantsRights, []string{"/etc/sudoers", "/etc/sudoers.d/x", "/etc/passwd", "/etc/pam.d/su", "/etc/pas?wd"}, []string{"/etc/hosts", "passwd", "sudoers.md"}},
		"outside": {
			file.IsOutside,
			[]string{"../x", "a/../../x", "/etc/hosts", "//host/share", "~bob/x", "C:/Windows/win.ini", "%SYSTEMROOT%/x", "a\x00b", "/var/log/syslog"},
			[]string{"a/b", "a/../b", "/home/ann/x", "~/x", "~", "D:/code/x", "/app/x", "/tmp/x"},
		},
		"in the system":   {file.InSystem, []string{"/etc/x", "/usr/bin/x", "/proc/1"}, []string{"/home/ann", "/opt/x", "etc/x"}},
		"a configuration": {file.IsConfiguration, []string{"/etc/nginx/nginx.conf", "/etc/fstab", "/var/www/html/index.html"}, []string{"/etc/passwd", "/etc/nginx/../passwd", "/etc/systemd/system/x.service"}},
		"installed":       {file.IsInstalled, []string{"/usr/local/bin/tool", "/usr/local/share/x/y"}, []string{"/usr/local/bin/sudo", "/usr/bin/tool", "/usr/local/bin/../x"}},
		"on a drive":      {file.OnDrive, []string{"C:/x", "d:"}, []string{"/c/x", "ab:c"}},
	} {
		for _, name := range c.so {
			if !c.is(name) {
				t.Errorf("%q is not %s", name, what)
			}
		}
		for _, name := range c.not {
			if c.is(name) {
				t.Errorf("%q is %s", name, what)
			}
		}
	}
}

// A name is read as all layers below may decode it.
func TestForms(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		`..\..\etc`:             "../../etc",
		"%2e%2e/etc":            "../etc",
		"%252e%252e%252fetc":    "../etc",
		"..%c0%afetc":           "../etc",
		"\uff0e\uff0e\u2215etc": "../etc",
		"....//etc":             "../etc",
		"file:///%65tc/passwd":  "/etc/passwd",
		"a b":                   "a b",
		"100%":                  "100%",
	} {
		if forms := file.Forms(name); !slices.Contains(forms, want) || forms[0] != file.Slashed(name) {
			t.Errorf("%q is %q", name, forms)
		}
	}
	for name, want := range map[string]string{"~/a/../b": "~/b", "//a//b/": "/a/b", "": ".", "a/./b": "a/b"} {
		if got := file.Clean(name); got != want {
			t.Errorf("%q is clean as %q", name, got)
		}
	}
}

// Every spelling of a dot, of a slash and of the way up that some layer below takes for one is
// read as one, and characters that show nothing are none.
func TestFormsOfEverySpelling(t *testing.T) {
	t.Parallel()
	for want, spellings := range map[string][]string{
		"dot": {
			"%2e", "%2E", "%252e", "%c0%2e", "%C0%AE", "%c0%ae", "%e0%40%ae", "%e0%80%ae", "%f0%80%80%ae", "%u2024", "%uff0e", "%uFF0E", "%u002e",
			`\u002e`, "&#46;", "&#x2e;", "\uff0e", "\u2024", "\ufe52", "\u3002", "\uff61",
		},
		"slash": {
			"%2f", "%5c", "%252f", "%c0%5c", "%c0%9v", "%c0%2f", "%c0%af", "%e0%80%af", "%f0%80%80%af", "%c1%9c", "%uff0f", "%u002f", "%u005c", "%u2215", "%u2216",
			`\u002f`, "&#47;", "&#x2f;", "\uff0f", "\uff3c", "\u2215", "\u2044", "\u29f8", "\ufe68", "\u29f5",
		},
		"both dots": {"\u2025", "%u2024%u2024"},
		"nothing":   {"\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u00ad", "%e2%80%8b"},
		"the way up": {
			"....//", `....\/`, "..././", `..../\`, `...\.\`, "..;/", ".../...//", `....\\`,
		},
	} {
		for _, spelling := range spellings {
			name := map[string]string{
				"dot": spelling + spelling + "/etc", "slash": ".." + spelling + "etc", "both dots": spelling + "/etc",
				"nothing": "." + spelling + "./etc", "the way up": spelling + "etc",
			}[want]
			forms := file.Forms(name)
			if !slices.ContainsFunc(forms, func(form string) bool { return file.Clean(form) == "../etc" }) {
				t.Errorf("%q, for %s, is %q", name, want, forms)
			}
		}
	}
	if three := file.Forms("\u2026/etc"); !slices.Contains(three, ".../etc") {
		t.Errorf("an ellipsis is %q", three)
	}
}

// A name for each kind of file that holds keys, tokens or passwords, starts code later or says who
// may do what.
func TestEachKindOfFile(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		is    func(string) bool
		names string
	}{
		"a credential": {file.IsCredential, `.ssh .ssh/ .ssh/identity .ssh/* backup/id_ed25519 .env.local etc/gshadow .aws .aws/sso/cache.json
			.config/gcloud .config/gcloud/access_tokens.db .azure/accessTokens.json .azure/msal_token_cache.bin .kube/config .docker/config.json
			.netrc .pgpass .npmrc .pypirc .git-credentials .my.cnf .vault-token .htpasswd .bash_history .zsh_history _netrc
			.gnupg .gnupg/secring.gpg .config/gh/hosts.yml .password-store/a.gpg proc/self/environ proc/1/mem run/secrets/db /var/run/secrets/x
			cookies.sqlite logins.json key4.db wallet.dat login.keychain-db gcp/credentials.json service-account-prod.json client_secret_1.json
			vault.kdbx a.jks a.p12 a.ppk Windows/System32/config/SAM C:/x/ntds.dit private.key server.pem tls-a.key privkey1.pem *.pem *.key
			.cargo/credentials.toml .gem/credentials .boto .s3cfg .databrickscfg .terraformrc .vault_pass.txt .vaultpass
			credentials.tfrc.json terraform.tfstate .config/rclone/rclone.conf .config/hub .config/op/a .config/doctl/config.yaml
			.config/github-copilot/hosts.json .config/composer/auth.json .config/sops/age.txt .config/git/credentials .config/stripe/config.toml
			containers/auth.json .composer/auth.json .m2/settings.xml .gradle/gradle.properties NuGet.Config .fly/config.yml .snowsql/config .snowflake/a.toml
			.claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .local/share/keyrings/a.keyring Library/Keychains/a
			.config/chromium/Default/Cookies x/Network/Cookies .mozilla/firefox/a/key4.db .thunderbird/a/cert9.db
			/etc/ssl/private/a.pem /etc/ssh/ssh_host_rsa_key /etc/kubernetes/admin.conf /etc/kubernetes/pki/a /etc/wireguard/wg0.conf /etc/openvpn/a /etc/ppp/chap-secrets
			/etc/exim4/passwd.client /etc/postfix/sasl_passwd /etc/mysql/debian.cnf /etc/security/opasswd /etc/NetworkManager/system-connections/a
			/var/lib/docker/swarm/a /var/lib/jenkins/secrets/a /var/lib/jenkins/credentials.xml proc/kcore proc/$$/environ /dev/kmem
			config/master.key config/credentials.yml.enc config/secrets.yml secrets.yaml secret.json wp-config.php .erlang.cookie .vnc/passwd .mylogin.cnf .subversion/auth/a
			app.keystore client.ovpn a.kdb a.keytab a.jceks a.bks a.pkcs12 unattend.xml sysprep.inf Groups.xml repair/sam RegBack/SYSTEM
			.psql_history .mysql_history .python_history .node_repl_history .rediscli_history .sqlite_history .ash_history ConsoleHost_history.txt fish_history
			.config/google-chrome/Default .mozilla/firefox gcloud/credentials.db gcloud/application_default_credentials.json
			kubeconfig.yaml .kube/cache/a-token .ssh/id_ed25519_sk filezilla/recentservers.xml winscp.ini confCons.xml wcx_ftp.ini signons.sqlite .smbcredentials a.remmina
			.dbvis/config70/a.xml .purple/accounts.xml robo3t.json heidisql_portable.ini`},
		"code that starts later": {file.StartsCode, `/etc/anacrontab /etc/at.allow /etc/cron.daily/x /etc/ld.so.preload /etc/ld.so.conf.d/x.conf /etc/profile /etc/profile.d/x.sh
			/etc/bash.bashrc /etc/environment /etc/zsh/zshrc /etc/rc.local /etc/rc3.d/S1 /etc/init.d/x /etc/inittab /etc/xdg/autostart/a.desktop /etc/udev/rules.d/1.rules
			/etc/modules-load.d/a.conf /etc/update-motd.d/1 /etc/NetworkManager/dispatcher.d/1 /etc/apt/apt.conf.d/1 /usr/lib/systemd/system/x.service /lib/systemd/user/a
			/var/spool/cron/root /var/spool/at/a .ssh/authorized_keys2 .ssh/rc .ssh/environment ProgramData/ssh/administrators_authorized_keys
			.zshrc .profile .bash_profile .zprofile .bash_login .bash_logout .bash_aliases .zshenv .zlogin .kshrc .cshrc .xinitrc .xprofile .xsession .pythonstartup .inputrc
			/Library/LaunchDaemons/x.plist /Library/StartupItems/x .config/autostart/a.desktop .config/systemd/user/a.service .config/fish/config.fish .config/fish/conf.d/a .config/environment.d/a
			.local/share/systemd/user/a .git/config .husky/pre-commit .gitconfig .config/git/config x/System32/../Windows/System32/Tasks/a WindowsPowerShell/profile.ps1
			PowerShell/Microsoft.VSCode_profile.ps1 site-packages/a.pth sitecustomize.py usercustomize.py .s?h/rc .git/h*ks/pre-commit /etc/ld.so.pr*`},
		"rights": {file.GrantsRights, `/etc/doas.conf /etc/shadow /etc/gshadow /etc/group /etc/polkit-1/rules.d/a /etc/security/limits.conf /etc/ssh/sshd_config /etc/ssh/sshd_config.d/a
			/etc/sud*rs /etc/sh?dow /etc/gr[o]up /etc/d*s.conf /etc/ssh/ssh?_config`},
	} {
		for _, name := range strings.Fields(c.names) {
			if !c.is(name) {
				t.Errorf("%q is not %s", name, what)
			}
		}
	}
	for _, name := range []string{"Login Data", "User Data/Default/Cookies", "Google/Chrome/User Data", "Start Menu/Programs/Startup/a.bat", "Application Support/Firefox/Profiles"} {
		if !file.IsCredential(name) && !file.StartsCode(name) {
			t.Errorf("%q is nothing", name)
		}
	}
	for _, name := range []string{"config.sample", ".env.template", ".env.dist", "credentials.json.default", "id_rsa.pub", ".npmrc.md"} {
		if file.IsCredential(name) {
			t.Errorf("%q is a credential", name)
		}
	}
}

// Whatever a name is, all is told of it, what implies something else tells that too, and the
// screens tell what their patterns do.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"~/.ssh/id_*", "/[", "%2e%2e%5c", "/*/?/[a-z]*", "C:\\Users\\*", "....//....//", file.Unknown, "\x00"} {
		f.Add(name)
	}
	told := []func(string) bool{
		file.IsVital, file.IsDevice, file.IsCache, file.IsShared, file.IsSharedOnWindows, file.InSharedRoot, file.IsPassing, file.HoldsData, file.HoldsOthersData,
		file.IsCredential, file.StartsCode, file.GrantsRights, file.IsOutside, file.InSystem, file.IsConfiguration, file.IsInstalled, file.OnDrive,
	}
	f.Fuzz(func(t *testing.T, name string) {
		forms := file.Forms(name)
		if len(forms) > 5 {
			t.Errorf("%d forms", len(forms))
		}
		for _, form := range append(forms, file.Clean(name)) {
			for _, is := range told {
				is(form)
			}
			if file.IsShared(form) && !file.InSharedRoot(form) || file.InSystem(form) && file.Clean(form) == form && !file.OnDrive(form) && !file.IsOutside(form) {
				t.Errorf("%q contradicts itself", form)
			}
			if clean := file.Clean(form); file.Clean(clean) != clean {
				t.Errorf("%q is clean as %q", form, clean)
			}
			patterns, matches := file.Screens(form)
			for i, p := range patterns {
				if matches[i] != p.MatchString(form) {
					t.Errorf("%q: the screen says %v of %s", form, matches[i], p)
				}
			}
		}
	})
}
