package file

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// starters names the files that start code later, or open a login.
var starters = regex.NewScreen(regex.New(`(?:^|/)(?:` + strings.Join([]string{
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

// StartsCode reports whether a file, or one that a pattern stands for, starts code later or opens
// a login.
func StartsCode(name string) bool {
	return starters.Matches(name) || standsForAny(name, codeFiles)
}

// codeFiles are some of them that a pattern is compared with.
var codeFiles = cutPaths(".ssh/authorized_keys .ssh/authorized_keys2 .ssh/rc .bashrc .zshrc .profile .bash_profile etc/crontab etc/profile etc/rc.local etc/ld.so.preload .git/hooks/pre-commit")

// granters names the files that say who may do what on a machine.
var granters = regex.NewScreen(regex.New(`(?:^|/)etc/(?:sudoers(?:\.d/.*)?|doas\.conf|passwd|shadow|gshadow|group|pam\.d/.*|polkit-1/.*|security/.*|ssh/sshd_config(?:\.d/.*)?)$`))

// GrantsRights reports whether a file, or one that a pattern stands for, says who may do what on a
// machine.
func GrantsRights(name string) bool {
	return granters.Matches(name) || standsForAny(name, accountFiles)
}

var accountFiles = cutPaths("etc/sudoers etc/passwd etc/shadow etc/group etc/doas.conf etc/ssh/sshd_config")
