package file_test

import (
	"slices"
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
			[]string{"/", "/*", "/etc", "/etc/nginx", "/usr/lib/x", "/home", "/home/ann", "/home/ann/*", "~", "~/*", "~/.ssh", "~/Documents", "/var/lib/mysql", "/mnt/disk", "C:/", "C:/Windows/System32", "/e*", "/?tc", "/[eu]tc/x"},
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
			[]string{"//?/c:/x", "//server", "c:/code/build", "//server/temp"},
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
