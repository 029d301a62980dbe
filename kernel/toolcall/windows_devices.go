package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Switches, routers and firewalls are told what to do line by line, in the languages of their
// makers. To show, to save, to name a port and to let one service to one host are a network's day.

// onDevices judges the lines that a tool sends to a device of a network.
func (r *reading) onDevices(leaves []leaf) {
	if !oneOf(nameWords(r.name), deviceWords) {
		return
	}
	var lines []string
	for _, l := range leaves {
		if l.text && deviceKeys[l.key] && len(l.value) < maxWritten {
			lines = append(lines, l.value)
		}
	}
	text := strings.ToLower(strings.Join(lines, "\n"))
	if text == "" || !r.spend(costSearch*len(text)) {
		return
	}
	for _, rule := range deviceRules {
		if rule.pattern.MatchString(text) {
			r.breaks(rule.invariant)
		}
	}
}

var (
	deviceWords = words("netmiko napalm nornir ssh device router switch firewall network ios nxos eos junos fortigate fortios panos paloalto asa cisco juniper arista mikrotik cli netconf restconf")
	deviceKeys  = words("lines line commands command config configs configuration cmd cmds script input")

	deviceRules = []wordRule{
		// Everything let in from outside, what is recorded, and who is asked who they are.
		{regex.New(`(?s)access-list (?:extended |standard )?\S*(?:out|wan|inet|internet|edge|untrust)\S*.{0,400}\bpermit ip any[46]? any|access-list \S+ (?:extended )?permit ip any[46]? any[46]?\s*(?:\n|$)|set srcaddr "?all"?.{0,300}set dstaddr "?all"?.{0,300}set service "?all"?.{0,300}set action accept|rulebase security rules \S+ .*source any .*destination any .*action allow|security policies from-zone untrust .*match (?:source|destination)-address any.*permit|/ip firewall filter (?:remove|disable) `), ConstraintTampering},
		{regex.New(`(?m)^\s*no (?:logging(?: (?:host|on|server|trap|buffered|\d\S*).*)?|snmp-server enable.*|archive|ip access-group .*|access-group .*|ip verify .*|ntp authenticate|service timestamps.*)\s*$|set (?:logtraffic|utm-status|status) disable[^\n]*\n(?:[^\n]*\n){0,4}\s*end|delete (?:deviceconfig|shared log-settings|system syslog)|^\s*clear (?:logging|log)\b`), ConstraintTampering},
		{regex.New(`(?m)^\s*username \S+ .*privilege 15\b|^\s*no aaa (?:new-model|authentication.*)|^\s*no login\s*$|set accprofile "?super_admin|set system login user \S+ class super-user|snmp-server community \S+ rw\b|mgt-config users \S+ .*superuser yes|/user add .*group=full|^\s*enable (?:secret|password) \d? ?\S`), PrivilegeEscalation},
		{regex.New(`(?m)^\s*(?:do )?(?:write erase|erase (?:startup-config|nvram:|flash:)\S*|delete (?:/\S+ )+(?:flash|bootflash|nvram):\S*|format (?:flash|bootflash|disk\d):|execute (?:factoryreset|formatlogdisk|erase-disk)|request system (?:zeroize|storage cleanup no-confirm)|load (?:factory-default|override terminal)|request system private-data-reset|/system reset-configuration)`), DestructiveOperation},
		{regex.New(`copy (?:running-config|startup-config|run|start|flash:\S*) (?:tftp|ftp|scp|https?|sftp)://(?:\S+@)?` + farAddress + `|monitor session \d+ destination .*ip (?:address )?` + farAddress + `|execute backup (?:full-)?config \S+ \S+ ` + farAddress), DataExfiltration},
	}
)
