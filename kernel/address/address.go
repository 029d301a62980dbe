package address

import (
	"cmp"
	"encoding/hex"
	"net/netip"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/caddy-lex/lex/kernel/regex"
)

var (
	// ignored are the characters that the URL standard drops anywhere.
	ignored = strings.NewReplacer("\t", "", "\n", "", "\r", "")

	// lenient are the schemes whose slashes may be missing, or backslashes.
	lenient = regex.New(`(?i)^(https?|wss?|ftp|file|jar):[/\\]*[^/\\]`)
)

// An Address is what a text names, as the client that connects will understand it.
type Address struct {
	Host, Port, Path string
	Query            string
	Internal         bool // loopback, private, link-local or a metadata name
	Loopback         bool
	Nearby           bool // the host is a name without a dot, of this network
	Disguised        bool // the host is spelt to look like another
	Foreign          bool // the scheme is not of the web
	Collects         bool // the host exists to catch what others send
}

// Parse reads a text as a browser does (the WHATWG URL standard), because the
// tools behind it do: 0x7f.1, 2130706433 and fullwidth digits are addresses.
func Parse(text string) (Address, bool) {
	text = ignored.Replace(strings.TrimSpace(text))
	if p, plain := plain(text); plain {
		p.look(text, false)
		return p, true
	}
	scheme, _, found := strings.Cut(text, "://")
	if m := lenient.FindStringSubmatch(text); m != nil {
		scheme, found = m[1], true
	}
	if !found {
		text = "http://" + strings.TrimPrefix(text, "//")
		scheme = "http"
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss", "ftp", "ftps":
	case "file", "gopher", "dict", "ldap", "ldaps", "tftp", "jar", "netdoc", "php", "expect", "smb", "phar", "view-source", "telnet", "imap", "pop3", "smtp", "rtsp", "ssh2", "zip", "compress.zlib", "glob", "unix", "http+unix", "sftp", "rmi", "iiop":
		return Address{Foreign: true}, true
	default:
		return Address{}, false
	}
	if authority := authorityOf(text); len(authority) > maxAuthority {
		return Address{Foreign: true}, !strings.Contains(authority, " ")
	}
	text, tail := shortened(text)
	if dots.MatchString(tail) {
		return Address{Foreign: true}, !strings.Contains(text, " ")
	}
	u, err := whatwg.Parse(zone.ReplaceAllString(text, "]"))
	if err != nil {
		// What one parser refuses another may take: the name before a zero byte.
		return Address{Foreign: true}, found && strings.ContainsAny(authorityOf(text), "%@")
	}
	p := Address{Host: strings.TrimSuffix(u.Hostname(), "."), Port: u.Port(), Path: u.Pathname(), Query: u.Query()}
	p.look(text, u.Username() != "")
	return p, true
}

// plain cuts an address in which the parser of the URL standard would change nothing:
// of http or https, to a name in lower case whose last part is of letters, without a user, a
// port, a fragment, an escape or a folder that begins with a dot. Most addresses are such.
func plain(text string) (Address, bool) {
	rest, is := strings.CutPrefix(text, "https://")
	if !is {
		rest, is = strings.CutPrefix(text, "http://")
	}
	if !is || len(text) > maxSegments {
		return Address{}, false
	}
	before, query, _ := strings.Cut(rest, "?")
	end := strings.IndexByte(before, '/')
	if end < 0 {
		end = len(before)
	}
	host, path := before[:end], before[end:]
	last := host[strings.LastIndexByte(host, '.')+1:]
	if !consistsOf(host, isLabel) || !consistsOf(last, isLower) || !consistsOf(path, isUnescaped) || !consistsOf(query, isUnescaped) {
		return Address{}, false
	}
	if last == "" || host[0] == '.' || host[0] == '-' || strings.Contains(host, "..") || strings.Contains(host, "--") || strings.Contains(host, "-.") || strings.Contains(host, ".-") || strings.Contains(path, "/.") {
		return Address{}, false
	}
	return Address{Host: host, Path: cmp.Or(path, "/"), Query: query}, len(host) <= maxLabel
}

// maxLabel is the length of the longest name between two dots (RFC 1035).
const maxLabel = 63

func consistsOf(text string, of func(byte) bool) bool {
	for i := range len(text) {
		if !of(text[i]) {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isLabel(c byte) bool { return isLower(c) || isDigit(c) || c == '.' || c == '-' }

// isUnescaped reports whether a character stands in paths and queries as it is.
func isUnescaped(c byte) bool {
	return alphanumeric(c) || strings.IndexByte("/-_.~=&+,:;@!$*()", c) >= 0
}

// zone is the interface behind an address of the link, which the URL standard
// refuses and other parsers take (RFC 6874).
var zone = regex.New(`(?i)%25[\w.-]+\]`)

// maxAuthority bounds the part of an address that names the host, in bytes. A
// name has at most 253 characters (RFC 1035), each three bytes when it is
// escaped; the parser takes quadratic time for what stands before an @.
const maxAuthority = 1 << 10

// maxSegments bounds the folders of an address that are parsed, in quadratic
// time again. What is cut off matters only if it climbs back.
const maxSegments = 256

var dots = regex.New(`(?i)(?:\.|%2e){2}`)

// shortened cuts the path of an address, and returns what it cut.
func shortened(text string) (string, string) {
	path, rest := text, ""
	if end := strings.IndexAny(text, "?#"); end >= 0 {
		path, rest = text[:end], text[end:]
	}
	segments := 0
	for i := range len(path) {
		if path[i] == '/' || path[i] == '\\' {
			if segments++; segments > maxSegments {
				return path[:i] + rest, path[i:]
			}
		}
	}
	return text, ""
}

func authorityOf(text string) string {
	_, after, _ := strings.Cut(text, ":")
	after = strings.TrimLeft(after, `/\`)
	if end := strings.IndexAny(after, `/\?#`); end >= 0 {
		after = after[:end]
	}
	return after
}

// look fills what follows from the host.
func (p *Address) look(text string, userinfo bool) {
	ip, err := netip.ParseAddr(strings.Trim(p.Host, "[]"))
	if err == nil {
		ip = embedded(ip.Unmap())
		p.Loopback = ip.IsLoopback() || ip.IsUnspecified()
		p.Internal = p.Loopback || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || shared.Contains(ip) || reserved.Contains(ip) || benchmark.Contains(ip) || wireserver.Contains(ip) || protocols.Contains(ip)
		p.Disguised = !strings.Contains(text, strings.Trim(p.Host, "[]")) || userinfo
	}
	if err != nil && p.Host != "" && !strings.Contains(p.Host, ".") && strings.Contains(text, "://") && !strings.Contains(p.Host, "%") {
		p.Nearby = true
	}
	if localName.Matches(p.Host) {
		p.Internal, p.Loopback = true, p.Host == "localhost" || dockerHost.MatchString(p.Host)
	}
	if inner, ok := wildcardName(p.Host); ok && inner {
		p.Internal, p.Disguised = true, true
	}
	p.Collects = collector.Matches(p.Host)
}

var (
	shared         = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598; a cloud's metadata too
	reserved       = netip.MustParsePrefix("0.0.0.0/8")
	wireserver     = netip.MustParsePrefix("168.63.129.16/32") // Azure's
	protocols      = netip.MustParsePrefix("192.0.0.0/24")     // RFC 6890; Oracle's metadata
	benchmark      = netip.MustParsePrefix("198.18.0.0/15")    // RFC 2544
	translate      = netip.MustParsePrefix("64:ff9b::/96")     // RFC 6052
	translateLocal = netip.MustParsePrefix("64:ff9b:1::/48")   // RFC 8215
	compatible     = netip.MustParsePrefix("::/96")            // RFC 4291, deprecated and still parsed
	sixToFour      = netip.MustParsePrefix("2002::/16")        // RFC 3056
	localName      = regex.NewScreen(regex.New(`(?:^|\.)(?:localhost|localdomain|internal|intranet|corp|svc|cluster\.local|localtest\.me|lvh\.me|vcap\.me|lacolhost\.com|readme\.localtest\.me|instance-data|metadata|lan|home\.arpa|intra|private|localhost6|ip6-localhost|ip6-loopback)$|\.local$|^metadata\.(?:google|goog|platformequinix\.com|packet\.net|tencentyun\.com|udhost|aliyun|azure)|^kubernetes\.(?:default|docker)|^(?:metadata|instance-data|kubernetes)$|^169\.254\.`))
	wildcard       = regex.New(`\.(?:nip\.io|sslip\.io|xip\.io|rbndr\.us|1u\.ms|local-ip\.(?:co|medicmobile\.org)|traefik\.me|backname\.io|ip\.hackattic\.com)$`)
	decimal        = regex.New(`(?:^|[.-])(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})(?:[.-]|$)`)
	hexadecimal    = regex.New(`(?:^|[.-])([0-9a-f]{8})(?:[.-]|$)`)
	collector      = regex.NewScreen(regex.New(`(?i)(?:^|\.)(?:webhook\.site|requestbin\.(?:com|net)|requestcatcher\.com|pipedream\.net|interact\.sh|oast\.(?:pro|live|site|online|fun|me|com)|burpcollaborator\.net|oastify\.com|canarytokens\.com|dnslog\.cn|ceye\.io|beeceptor\.com|postb\.in|hookbin\.com|webhook\.cool|requestrepo\.com|mockbin\.(?:org|io)|putsreq\.com|requestinspector\.com|ptsv[23]\.com|dnsbin\.zhack\.ca|bin\.(?:sh|st)|webhook\.test|typedwebhook\.tools|interactsh\.com|oastify\.com|eyes\.sh|log\.xn--9tr\.com|hyuga\.\w+)$`))
)

// embedded returns the IPv4 address that a translation prefix carries.
func embedded(ip netip.Addr) netip.Addr {
	b := ip.As16()
	switch {
	case ip.Is6() && !ip.IsLoopback() && !ip.IsUnspecified() && compatible.Contains(ip), translate.Contains(ip), translateLocal.Contains(ip):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(ip):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return ip
}

// wildcardName finds public names that resolve to the address they spell.
func wildcardName(host string) (bool, bool) {
	if !wildcard.MatchString(host) {
		return false, false
	}
	name := wildcard.ReplaceAllString(host, "")
	var found []string
	for rest := name; ; {
		m := decimal.Regexp().FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		found = append(found, rest[m[2]:m[3]]+"."+rest[m[4]:m[5]]+"."+rest[m[6]:m[7]]+"."+rest[m[8]:m[9]])
		rest = rest[m[3]:]
	}
	for rest := name; ; {
		m := hexadecimal.Regexp().FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		if raw, err := hex.DecodeString(rest[m[2]:m[3]]); err == nil {
			found = append(found, netip.AddrFrom4([4]byte(raw)).String())
		}
		rest = rest[m[3]:]
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; strings.Contains(last, "--") {
		found = append(found, strings.ReplaceAll(last, "-", ":")) // sslip.io spells IPv6 with dashes
	}
	for _, f := range found {
		if ip, err := netip.ParseAddr(f); err == nil && (ip.IsLoopback() || ip.IsUnspecified() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || reserved.Contains(ip)) {
			return true, true
		}
	}
	return false, len(found) > 0
}

// dockerHost is what a container calls the machine that it runs on.
var dockerHost = regex.New(`^(?:(?:host|gateway)\.docker\.internal|host\.containers\.internal)$`)

// IsLocalName reports whether a name is of this machine or of the own network, or of a service of
// metadata.
func IsLocalName(host string) bool { return localName.Matches(host) }

// IsCollector reports whether a host exists to catch what others send.
func IsCollector(host string) bool { return collector.Matches(host) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func alphanumeric(c byte) bool {
	return isDigit(c) || isLower(c) || c >= 'A' && c <= 'Z'
}
