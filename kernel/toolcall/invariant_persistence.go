package toolcall

import "github.com/caddy-lex/lex/kernel/file"

// planted judges a file about to be changed.
func (r *reading) planted(name string) {
	if file.GrantsRights(name) && !r.everyday {
		r.breaks(PrivilegeEscalation)
	}
	if file.StartsCode(name) && !r.everyday {
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
