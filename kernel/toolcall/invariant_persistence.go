package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// startsCode names the files that start code later, or open a login.
var startsCode = regex.NewScreen(regex.New(`(?:^|/)(?:` + strings.Join([]string{
	`etc/(?:crontab|anacrontab|at\.allow|cron\.[a-z]+/.*|ld\.so\.(?:preload|conf)|ld\.so\.conf\.d/.*|profile(?:\.d/.*)?|bash\.bashrc|bashrc|environment|zsh/.*|rc\.local|rc\d?\.d/.*|init\.d/.*|inittab|systemd/.*|xdg/autostart/.*|udev/rules\.d/.*|modules-load\.d/.*|update-motd\.d/.*|NetworkManager/dispatcher\.d/.*|apt/apt\.conf\.d/.*)`,
	`(?:usr/)?lib/systemd/(?:system|user)/.*`,
	`var/spool/(?:cron|at)/.*`,
	`\.ssh/(?:authorized_keys2?|rc|environment)|(?i:programdata/ssh)/(?:administrators_authorized_keys|sshd_config)`,
	`\.(?:bashrc|zshrc|profile|bash_profile|zprofile|bash_login|bash_logout|bash_aliases|zshenv|zlogin|zlogout|kshrc|cshrc|tcshrc|login|logout|xinitrc|xprofile|xsession|xsessionrc|pythonstartup|inputrc)`,
	`LaunchAgents(?:/.*)?|LaunchDaemons(?:/.*)?|StartupItems/.*`,
	`\.config/(?:autostart|autostart-scripts|systemd/user|fish/(?:config\.fish|conf\.d)|environment\.d)(?:/.*)?`,
	`\.local/share/systemd/user(?:/.*)?`,
	`\.git/(?:hooks/[a-z-]+|config)|\.husky/[a-z-]+|\.gitconfig|\.config/git/config`,
	`(?i:start menu/programs/startup)/.*`,
	`(?i:windows/system32/tasks)/.*`,
	`(?i:(?:windows)?powershell)/(?i:(?:microsoft\.\w+_)?profile\.ps1)`,
	`site-packages/[\w.-]+\.pth|sitecustomize\.py|usercustomize\.py`,
}, "|") + `)$`))

func isPersistence(name string) bool {
	return startsCode.Matches(name) || standsForAny(name, codeFiles)
}

// codeFiles are some of them that a pattern is compared with.
var codeFiles = cutPaths(".ssh/authorized_keys .ssh/authorized_keys2 .ssh/rc .bashrc .zshrc .profile .bash_profile etc/crontab etc/profile etc/rc.local etc/ld.so.preload .git/hooks/pre-commit")

// planted judges a file about to be changed.
func (r *reading) planted(name string) {
	if isAccountFile(name) && !r.everyday {
		r.breaks(PrivilegeEscalation)
	}
	if isPersistence(name) && !r.everyday {
		r.breaks(Persistence)
	}
}

var persistenceCommands = byCommand(
	`crontab: (?:-u \S+ )?(?:[^-\s]\S*|-)$|(?:\S+ )*-e\b`,
	`at batch: (?:\S+ )*-f `,
	`systemctl: (?:\S+ )*(?:enable|reenable|link|edit|preset|import-environment|set-environment) `,
	`systemd-run: .*--on-(?:calendar|boot|active|startup|unit)`,
	`launchctl: (?:load|bootstrap|submit|enable|setenv)\b`,
	`update-rc.d: .*\w`,
	`rc-update: add\b`,
	`chkconfig: .*\bon\b`,
	`loginctl: enable-linger\b`,
	`pm2: (?:startup|save)\b`,
	`git: config (?:\S+ )*(?:(?:core\.(?:fsmonitor|askPass|gitProxy)|include\.path|includeIf\.\S+|init\.templateDir|diff\.external|filter\.\S+) \S|core\.sshCommand (?:[^s]|s[^s])|core\.hooksPath [/~]|(?:core\.editor|core\.pager|sequence\.editor|pager\.\S+|alias\.\S+|credential\.\S*helper) \S*(?: \S+)*[!/|;&$])`,
	`ssh-copy-id: .*\w`,
	`npm: (?:config set|set) (?:\S+ )*(?:script-shell|onload-script|init-module|node-options)`,
	`schtasks schtasks.exe: (?i:(?:\S+ )*/create\b|(?:\S+ )*/change\b.*/(?:tr|ru|xml)\b)`,
	`reg reg.exe: (?i:add \S*currentversion\\?run|add .*\\(?:winlogon|image file execution options|appinit_dlls|userinit)\b)`,
	`sc sc.exe: (?i:create|config \S+ binpath)`,
)
