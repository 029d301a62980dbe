package toolcall

import "strings"

// A house that is opened, and a telephone whose calls go elsewhere, are lost without a
// computer being touched. One door for a visitor, lights, heating, and the calls of one who is
// away are what such tools are for.

// guardsOff are the acts that leave a house open, by what they are done to.
var guardsOff = map[string]*expression{
	"alarm":  newExpression(`alarm\w*[./_ :-]*(?:\w+[./_ :-]+)?(?:disarm|off|disable|deactivate|unset|silence)|(?:disarm|disable|deactivate)[./_ :-]*(?:the[./_ :-]*)?(?:\w+[./_ :-]+)?alarm|disarm`),
	"lock":   newExpression(`(?:lock|door|garage|gate|entrance|cover)s?[./_ :-]+(?:\w+[./_ :-]+)?(?:unlock|open)|\bunlock|(?:open|release)[./_ :-]*(?:all[./_ :-]*)?(?:doors?|garages?|gates?|locks?|entrances?)`),
	"camera": newExpression(`(?:camera|cctv|nvr|doorbell|recorder|motion|sensor|siren|smoke)\w*[./_ :-]+(?:\w+[./_ :-]+)?(?:turn_?off|off|disable|stop|deactivate|privacy)|(?:turn_?off|disable|stop|deactivate)[./_ :-]*(?:all[./_ :-]*)?(?:cameras?|cctv|recording|sirens?|sensors?)`),
}

var (
	houseWords = words("home house hass assistant smart smarthome alarm alarms lock locks door doors garage gate gates camera cameras cctv security access building iot device devices entity scene automation automations premises doorbell siren knx zigbee")
	otherLocks = words("account user users file files db database table row state terraform git mutex document page record session sim")
	unattended = newExpression(`^(?:trigger|triggers|schedule|cron|at|time|when|platform|recurrence|rrule|every)$`)
	rescues    = newExpression(`(?i)smoke|fire|rauch|brand|gas|co2?_alarm|leak|panic|evacuat`)
	secretCode = newExpression(`(?i)\{\{[^}]*(?:secret|code|pin)[^}]*\}\}|!secret\b|\$\{?[A-Z_]*(?:PIN|CODE|SECRET)`)
)

// premises judges a call to the devices of a house.
func (r *reading) premises(d dealing) {
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
	if !r.spend(3 * costSearch * len(text)) {
		return
	}
	kinds, alarm := 0, false
	for name, act := range guardsOff {
		if act.MatchString(text) {
			kinds++
			alarm = alarm || name == "alarm"
		}
	}
	if kinds > 1 || kinds == 1 && (!rescue && (all || alone) || alarm && code) {
		r.breaks(PrivilegeEscalation)
	}
}

var (
	forwardWords = words("forward forwarding forwards divert diversion redirect relay reroute callforward callforwarding")
	lineWords    = words("call calls telephony phone number line voice pbx sip sms extension mobile twilio trunk texts messages")
	lineKeys     = words("number numbers line lines extension extensions scope calls from source did dids phone users user")
	everyLine    = newExpression(`^(?i:all|\*|every\w*|any|main|all[_ -]\w+)$`)
	unannounced  = newExpression(`^(?:announce|notify|notification|notifyuser|playannouncement|tone)$`)
	keptOpen     = newExpression(`^(?:disablechangepin|disablepin|lockchanges|preventchange|lock|hidefromuser|silent|stealth|hidden)$`)
	codeWords    = newExpression(`(?i)\b(?:otp|tan|code|verification|one[- ]?time|2fa|mfa|passcode|einmal\w*|bestätigung\w*)\b|\\d\{[4-8]\}`)

	// forwardCode diverts all calls of a line when it is dialled.
	forwardCode = newExpression(`^\s*\*{1,2}(?:21|002|004|72)\*?\s*\+?\d{5,}`)
)

// diverts judges what sends the calls and messages of others to another number.
func (r *reading) diverts(d dealing) {
	for _, l := range d.leaves {
		if l.text && forwardCode.MatchString(l.value) && r.tool.any("dial", "call", "phone", "ussd", "telephony", "mobile", "modem", "sip") {
			r.breaks(DataExfiltration)
		}
	}
	if !d.any(forwardWords) || !d.any(lineWords) || d.has["get"] || d.has["list"] {
		return
	}
	all, hidden, codes := d.has["all"], false, false
	for _, l := range d.leaves {
		switch {
		case unannounced.MatchString(l.key):
			hidden = hidden || isNo(l.value)
		case keptOpen.MatchString(l.key):
			hidden = hidden || isYes(l.value)
		case lineKeys[l.key] && everyLine.MatchString(l.value):
			all = true
		case l.text && codeWords.MatchString(l.value) && r.tool.any("sms", "message", "messages", "texts"):
			codes = true
		}
	}
	if all || hidden || codes {
		r.breaks(DataExfiltration)
	}
}
