package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Whoever gets the mail and the calls of others knows their secrets, and passes for them. A
// rule that sorts mail, a colleague who gets a copy, and the calls of one who is away are
// everyday; what goes to a stranger unseen, and every line at once, is not.

// forwards judges what sends mail and calls of others on to somebody.
func (d *dealing) forwards() {
	d.forwardsMail()
	d.divertsCalls()
}

var (
	mailRules    = words("exchange filter filters rule rules messagerules mailbox autoforwarding forwarding forwardingaddresses delegate delegates transport")
	wholeMailKey = regex.New(`^(?:forwardingsmtpaddress|forwardingaddress|blindcopyto|redirectmessageto)$`)
	wholeMail    = words("autoforwarding forwarding delegate delegates")
	forwardKey   = regex.New(`^(?:auto)?(?:forward|redirect|weiterleit|umleit|transfert|reenvi|inoltr|doorstur)\w*$|^delegate(?:email)?$|^blindcopyto$`)

	// moneyMail is what mail is about that thieves wait for.
	moneyMail = regex.New(`(?i)\b(?:invoice|payment|wire|iban|password|reset|verification|2fa|otp|bank|contract|acquisition|merger|payroll)\b`)
)

// forwardsMail judges a rule that sends mail to a stranger: all of it, or what its owner is
// not to see.
func (d *dealing) forwardsMail() {
	if !d.any(mailRules) {
		return
	}
	whole := d.any(wholeMail)
	for _, l := range d.leaves {
		to := l.above.forwards || forwardKey.MatchString(l.key) || whole && strings.Contains(l.key, "email")
		if !to || !l.text || !strings.Contains(l.value, "@") || d.meant(l.value) || d.ownDomain(l.value) {
			continue
		}
		if whole || wholeMailKey.MatchString(l.key) || slices.ContainsFunc(d.leaves, hidesMail) {
			d.breaks(DataExfiltration)
		}
	}
}

// ownDomain reports whether another member is an address of the same organisation.
func (d *dealing) ownDomain(address string) bool {
	domain := address[strings.LastIndexByte(address, '@'):]
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return l.text && l.value != address && len(l.value) >= len(domain) && strings.EqualFold(l.value[len(l.value)-len(domain):], domain)
	})
}

// hidesMail reports whether a member of a rule keeps mail from its owner's eyes, or picks what
// is about money and logins, or everything.
func hidesMail(l leaf) bool {
	value := strings.ToUpper(l.value)
	switch {
	case l.key == "removelabelids" || l.key == "disposition":
		return value == "INBOX" || value == "UNREAD" || value == "TRASH" || value == "ARCHIVE"
	case l.key == "delete" || l.key == "markasread" || l.key == "permanentdelete" || l.key == "skipinbox" || l.key == "trash":
		return isYes(value)
	case l.key == "keepcopy":
		return isNo(value)
	case l.text && len(l.value) < maxKey*4:
		return l.value == "*" || moneyMail.MatchString(l.value) && !strings.Contains(l.value, "@")
	}
	return false
}

var (
	forwardWords = words("forward forwarding forwards divert diversion redirect relay reroute callforward callforwarding")
	lineWords    = words("call calls telephony phone number line voice pbx sip sms extension mobile twilio trunk texts messages")
	lineKeys     = words("number numbers line lines extension extensions scope calls from source did dids phone users user")
	keptOpen     = words("disablechangepin disablepin lockchanges preventchange lock")
	codeWords    = regex.New(`(?i)\b(?:otp|tan|code|verification|one[- ]?time|2fa|mfa|passcode|einmal\w*|bestätigung\w*)\b|\\d\{[4-8]\}`)
	smsWords     = words("sms message messages texts")
	dialWords    = words("dial call phone ussd telephony mobile modem sip")

	// forwardCode diverts all calls of a line when it is dialled.
	forwardCode = regex.New(`^\s*\*{1,2}(?:21|002|004|72)\*?\s*\+?\d{5,}`)
)

// divertsCalls judges what sends the calls and messages of others to another number.
func (d *dealing) divertsCalls() {
	diverts := d.any(forwardWords) && d.any(lineWords)
	all, hidden, codes := d.has["all"], false, false
	for _, l := range d.leaves {
		switch {
		case l.text && d.any(dialWords) && forwardCode.MatchString(l.value):
			d.breaks(DataExfiltration)
		case l.unheard(), keptOpen[l.key] && isYes(l.value):
			hidden = true
		case lineKeys[l.key] && (everyOne.MatchString(l.value) || strings.EqualFold(l.value, "main")):
			all = true
		case l.text && d.any(smsWords) && codeWords.MatchString(l.value):
			codes = true
		}
	}
	if diverts && (all || hidden || codes) {
		d.breaks(DataExfiltration)
	}
}
