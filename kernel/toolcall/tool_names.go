package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Whoever owns a name owns what people trust in it: they log in there, mail goes there, and a
// whole zone hangs on it. Records of pages, proofs of ownership, and an address of the own
// network are everyday.

var (
	nameWordsOfDNS = words("dns route53 rrsets nameserver nameservers recordsets changebatch")
	recordKind     = words("type recordtype")
	recordName     = words("name hostname recordname fqdn subdomain host")
	recordValue    = words("value content target data rdata ip records address")

	// trustedName is where people give their passwords, or their mail and money go.
	trustedName = regex.New(`^(?i:login|signin|auth|sso|idp|oauth2?|accounts?|id|secure|vpn|remote|mail|smtp|imap|webmail|owa|autodiscover|mx\d*|pay|payments?|checkout|bank(?:ing)?|online|portal|vault|adfs|okta|keycloak)(?:\.|$)`)
)

// renames judges changes of the names of a zone, and the loss of one.
func (d *dealing) renames() {
	if d.has["zone"] && d.any(takingVerbs) && (d.has["dns"] || d.has["delete"]) && !d.meantAll() {
		d.breaks(DestructiveOperation)
	}
	if !d.any(nameWordsOfDNS) {
		return
	}
	kind, name, value := "", "", ""
	for _, l := range d.leaves {
		switch {
		case !l.text:
		case recordKind[l.key]:
			kind = strings.ToUpper(l.value)
		case recordName[l.key]:
			name = l.value
		case recordValue[l.key]:
			value = l.value
		}
	}
	carries := kind == "MX" || kind == "NS" || kind == "SOA"
	switch {
	case d.any(takingVerbs):
		if carries || name == "@" {
			d.breaks(DestructiveOperation)
		}
	case kind == "" || kind == "TXT" || kind == "CAA" || kind == "SRV" || value == "" || d.meant(value):
	case carries || trustedName.MatchString(name):
		if a, known := d.readAddress(value); !known || !a.Internal {
			d.breaks(DestructiveOperation)
		}
	}
}
