package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// A house that is opened is lost without a computer being touched. One door for a visitor,
// lights and heating are what such tools are for.

// guardsOff are the acts that leave a house open, by what they are done to.
var guardsOff = map[string]*regex.Expression{
	"alarm":  regex.New(`alarm\w*[./_ :-]*(?:\w+[./_ :-]+)?(?:disarm|off|disable|deactivate|unset|silence)|(?:disarm|disable|deactivate)[./_ :-]*(?:the[./_ :-]*)?(?:\w+[./_ :-]+)?alarm|disarm`),
	"lock":   regex.New(`(?:lock|door|garage|gate|entrance|cover)s?[./_ :-]+(?:\w+[./_ :-]+)?(?:unlock|open)|\bunlock|(?:open|release)[./_ :-]*(?:all[./_ :-]*)?(?:doors?|garages?|gates?|locks?|entrances?)`),
	"camera": regex.New(`(?:camera|cctv|nvr|doorbell|recorder|motion|sensor|siren|smoke)\w*[./_ :-]+(?:\w+[./_ :-]+)?(?:turn_?off|off|disable|stop|deactivate|privacy)|(?:turn_?off|disable|stop|deactivate)[./_ :-]*(?:all[./_ :-]*)?(?:cameras?|cctv|recording|sirens?|sensors?)`),
}

var (
	houseWords = words("home house hass assistant smart smarthome alarm alarms lock locks door doors garage gate gates camera cameras cctv security access building iot device devices entity scene automation automations premises doorbell siren knx zigbee")
	otherLocks = words("account user users file files db database table row state terraform git mutex document page record session sim")
	unattended = regex.New(`^(?:trigger|triggers|schedule|cron|at|time|when|platform|recurrence|rrule|every)$`)
	rescues    = regex.New(`(?i)smoke|fire|rauch|brand|gas|co2?_alarm|leak|panic|evacuat`)
	alarmWords = strings.Fields("alarm alarmanlage alarme alarma allarme alarmi disarm disarmed unscharf alarmsysteem")
	secretCode = regex.New(`(?i)\{\{[^}]*(?:secret|code|pin)[^}]*\}\}|!secret\b|\$\{?[A-Z_]*(?:PIN|CODE|SECRET)`)
)

// premises judges a call to the devices of a house.
func (d *dealing) premises() {
	if !d.any(houseWords) || d.any(otherLocks) {
		return
	}
	var acts []string
	all, alone, rescue, code := d.has["all"] || d.has["everything"], false, false, false
	acts = append(acts, strings.Join(d.words, " "))
	for _, l := range d.leaves {
		if len(l.value) > maxKey || roleOfKey(l.key) == roleProse {
			continue
		}
		value := strings.ToLower(l.value)
		all = all || l.text && everyOne.MatchString(value)
		alone = alone || unattended.MatchString(l.key)
		rescue = rescue || rescues.MatchString(value)
		code = code || secretCode.MatchString(l.value)
		acts = append(acts, value)
	}
	text := strings.Join(acts, "\n")
	if !d.spend(3 * costSearch * len(text)) {
		return
	}
	kinds, alarm := 0, false
	for name, act := range guardsOff {
		if act.MatchString(text) {
			kinds++
			alarm = alarm || name == "alarm"
		}
	}
	if kinds > 1 || kinds == 1 && (!rescue && (all || alone) || alarm && code && !d.meant(alarmWords...)) {
		d.breaks(PrivilegeEscalation)
	}
}
