package toolcall

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"net/url"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// address judges an argument that a tool would request.
func (r *reading) address(text string) {
	here := r.tool.any("browser", "playwright", "puppeteer", "preview", "devtools", "curl", "wget")
	for _, one := range addresses(text) {
		r.target(one, here || one == text && r.gets && (triesOut(one) || r.asksHealth(one)))
	}
}

// deviceProtocols are in the names of tools that speak to machines and no web servers: whatever they
// connect to is in the own network.
var deviceProtocols = strings.Fields("modbus s7 plc opcua bacnet knx dnp3 iec61850 iec104 profinet snmp ipmi redfish netconf netmiko onvif scp sftp ssh rsync winrm")

// isDeviceAddress reports whether a text is a private address or a name of the own network, and no
// address of a page, of this machine or of a service of metadata.
func (r *reading) isDeviceAddress(text string) bool {
	if strings.Contains(text, "://") {
		return false
	}
	_, host, found := strings.Cut(text, "@")
	if !found {
		host = text
	}
	host, _, _ = strings.Cut(host, ":")
	return privateHost.MatchString(host) || deviceName.MatchString(host) && !strings.Contains(host, "metadata")
}

// deviceName is a name of the own network.
var deviceName = regex.New(`^[\w-]+(?:\.[\w-]+)*\.(?:internal|local|lan|corp|intranet|home\.arpa)$`)

// asksHealth reports whether an address is of a place where a server of this machine or of the
// own network says how it is.
func (r *reading) asksHealth(text string) bool {
	if healthPlace.MatchString(text) {
		return true
	}
	a, ok := r.readAddress(text)
	return ok && !a.disguised && !a.foreign && a.query == "" && healthPath.MatchString(a.path) && (a.loopback || privateHost.MatchString(a.host) || a.nearby && !localName.Matches(a.host))
}

// triesOut reports whether an address is of a server that a developer runs to try a program
// out: on the loopback address, spelt as it is, at a port that such servers take, and no place
// of a server's administration.
func triesOut(text string) bool {
	if !tryOut.MatchString(text) {
		return false
	}
	place := strings.ToLower(text[strings.Index(text, "://")+3:])
	return !strings.ContainsAny(place, "%\\") && !strings.Contains(place, "..") && !delicatePlace.MatchString(place)
}

var (
	tryOut = regex.New(`^https?://(?:localhost|127\.0\.0\.1|\[::1\]):(?:30\d\d|4000|4200|4321|5000|5001|517\d|5500|6006|8000|8888)(?:[/?]|$)|^https?://(?:localhost|127\.0\.0\.1):8080/api/[a-z]`)

	// monitored are the places where a server tells how it is, and privateHost is one of the own
	// network, none of them a service of metadata.
	monitored   = regex.New(healthPath.String() + `|^/(?:(?:actuator|-|api)/)?(?:metrics|status|prometheus)$`)
	privateHost = regex.New(`^(?:10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+|[\w{}$-]+(?:\.[\w{}$-]+){0,3}\.(?:svc|svc\.cluster\.local|corp|intranet|lan))$`)

	// dockerHost is what a container calls the machine that it runs on.
	dockerHost = regex.New(`^(?:(?:host|gateway)\.docker\.internal|host\.containers\.internal)$`)

	// healthPath is where servers say whether they are up, and of which version they are.
	healthPath = regex.New(`^/(?:(?:actuator|-|_|api|api/v\d|v\d|internal|rest|_cluster)/)?_?(?:health(?:z|y|-?check)?|ready|readyz|live|livez|liveness|readiness|ping|version)(?:/(?:live|ready|liveness|readiness))?/?$`)

	// healthPlace is where any server of this machine says how it is.
	healthPlace = regex.New(`^https?://(?:localhost|127\.0\.0\.1|\[::1\]):\d{4,5}/(?:actuator/health|-/(?:healthy|ready)|_cluster/health|api/v1/query\?query=\w+|healthz?|readyz?|livez?|ping|version)$`)

	delicatePlace = regex.New(`[/?=&.](?:\.|_|admin|manage|actuator|config|debug|env|heapdump|dump|secret|token|credential|password|key|internal|console|script|jolokia|latest|@fs|computemetadata|containers|v1/kv|api/v1/(?:secrets|pods|nodes|namespaces)|exec|shell|eval|proxy|fetch|url)`)
)

// target judges one address. A command line runs on the agent's own machine,
// where the loopback address is ordinary; a tool that fetches runs on a server,
// where only what a developer tries out is.
func (r *reading) target(text string, local bool) {
	if !r.spend(costWord + costPlace*len(text)) {
		return
	}
	if name, is := strings.CutPrefix(text, "file://"); is && r.tool.any("aws", "az", "gcloud", "oci") { // how their options say that a file has the value
		r.file(name)
		return
	}
	a, ok := r.readAddress(text)
	if !ok {
		return
	}
	if administers(a) {
		r.breaks(ConstraintTampering)
	}
	if a.host != "" && !a.internal {
		r.outward = true
	}
	if a.collects && !r.asksFor(a.host) {
		r.breaks(DataExfiltration)
	}
	switch {
	case a.nearby && !local && strings.Contains(text, "://") && !r.asksFor(a.host):
		r.breaks(ServerSideRequestForgery)
	case a.foreign:
		r.breaks(ServerSideRequestForgery)
	case a.internal && local && !a.disguised && (a.loopback || monitored.MatchString(a.path) && privateHost.MatchString(a.host)):
	case a.internal && !r.asksFor(a.host), a.disguised && a.internal:
		r.breaks(ServerSideRequestForgery)
	}
	if strings.Contains(lowerEscapes(text), "%2e%2e") || strings.Contains(lowerEscapes(text), "..%2f") {
		r.breaks(PathTraversal)
	}
}

var (
	// ignored are the characters that the URL standard drops anywhere.
	ignored = strings.NewReplacer("\t", "", "\n", "", "\r", "")

	// lenient are the schemes whose slashes may be missing, or backslashes.
	lenient = regex.New(`(?i)^(https?|wss?|ftp|file|jar):[/\\]*[^/\\]`)
)

// endpoint is an address as the client that connects will understand it.
type endpoint struct {
	host, port, path string
	query            string
	internal         bool // loopback, private, link-local or a metadata name
	loopback         bool
	nearby           bool // the host is a name without a dot, of this network
	disguised        bool // the host is spelt to look like another
	foreign          bool // the scheme is not of the web
	collects         bool // the host exists to catch what others send
}

// readAddress reads an address once, however often a call names it.
func (r *reading) readAddress(text string) (endpoint, bool) {
	if known, done := r.endpoints[text]; done {
		return known.endpoint, known.is
	}
	a, is := readAddress(text)
	if len(text) < maxAuthority {
		r.endpoints[text] = knownEndpoint{a, is}
	}
	return a, is
}

// knownEndpoint is an address that was read before in the same call.
type knownEndpoint struct {
	endpoint endpoint
	is       bool
}

// readAddress parses as a browser does (the WHATWG URL standard), because the
// tools behind it do: 0x7f.1, 2130706433 and fullwidth digits are addresses.
func readAddress(text string) (endpoint, bool) {
	text = ignored.Replace(strings.TrimSpace(text))
	if p, plain := plainEndpoint(text); plain {
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
		return endpoint{foreign: true}, true
	default:
		return endpoint{}, false
	}
	if authority := authorityOf(text); len(authority) > maxAuthority {
		return endpoint{foreign: true}, !strings.Contains(authority, " ")
	}
	text, tail := shortened(text)
	if dots.MatchString(tail) {
		return endpoint{foreign: true}, !strings.Contains(text, " ")
	}
	u, err := whatwg.Parse(zone.ReplaceAllString(text, "]"))
	if err != nil {
		// What one parser refuses another may take: the name before a zero byte.
		return endpoint{foreign: true}, found && strings.ContainsAny(authorityOf(text), "%@")
	}
	p := endpoint{host: strings.TrimSuffix(u.Hostname(), "."), port: u.Port(), path: u.Pathname(), query: u.Query()}
	p.look(text, u.Username() != "")
	return p, true
}

// plainEndpoint cuts an address in which the parser of the URL standard would change nothing:
// of http or https, to a name in lower case whose last part is of letters, without a user, a
// port, a fragment, an escape or a folder that begins with a dot. Most addresses are such.
func plainEndpoint(text string) (endpoint, bool) {
	rest, is := strings.CutPrefix(text, "https://")
	if !is {
		rest, is = strings.CutPrefix(text, "http://")
	}
	if !is || len(text) > maxSegments {
		return endpoint{}, false
	}
	before, query, _ := strings.Cut(rest, "?")
	end := strings.IndexByte(before, '/')
	if end < 0 {
		end = len(before)
	}
	host, path := before[:end], before[end:]
	last := host[strings.LastIndexByte(host, '.')+1:]
	if !consistsOf(host, isLabel) || !consistsOf(last, isLower) || !consistsOf(path, isUnescaped) || !consistsOf(query, isUnescaped) {
		return endpoint{}, false
	}
	if last == "" || host[0] == '.' || host[0] == '-' || strings.Contains(host, "..") || strings.Contains(host, "--") || strings.Contains(host, "-.") || strings.Contains(host, ".-") || strings.Contains(path, "/.") {
		return endpoint{}, false
	}
	return endpoint{host: host, path: cmp.Or(path, "/"), query: query}, len(host) <= maxLabel
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
func (p *endpoint) look(text string, userinfo bool) {
	ip, err := netip.ParseAddr(strings.Trim(p.host, "[]"))
	if err == nil {
		ip = embedded(ip.Unmap())
		p.loopback = ip.IsLoopback() || ip.IsUnspecified()
		p.internal = p.loopback || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || shared.Contains(ip) || reserved.Contains(ip) || benchmark.Contains(ip) || wireserver.Contains(ip) || protocols.Contains(ip)
		p.disguised = !strings.Contains(text, strings.Trim(p.host, "[]")) || userinfo
	}
	if err != nil && p.host != "" && !strings.Contains(p.host, ".") && strings.Contains(text, "://") && !strings.Contains(p.host, "%") {
		p.nearby = true
	}
	if localName.Matches(p.host) {
		p.internal, p.loopback = true, p.host == "localhost" || dockerHost.MatchString(p.host)
	}
	if inner, ok := wildcardName(p.host); ok && inner {
		p.internal, p.disguised = true, true
	}
	p.collects = collector.Matches(p.host)
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
	dropSite       = regex.NewScreen(regex.New(`(?i)(?:^|\.)(?:pastebin\.com|transfer\.sh|0x0\.st|file\.io|termbin\.com|anonfiles\.com|paste\.ee|ix\.io|bashupload\.com|temp\.sh|gofile\.io|webhook\.cool|requestrepo\.com|mockbin\.(?:org|io)|putsreq\.com|filebin\.net|wetransfer\.com|litter\.catbox\.moe|uguu\.se|pixeldrain\.com|controlc\.com|rentry\.co|privatebin\.net|ghostbin\.(?:co|me|com)|justpaste\.it|localhost\.run|loca\.lt|localtunnel\.me|bore\.pub|dpaste\.(?:com|org)|hastebin\.com|paste\.rs|catbox\.moe|sprunge\.us|clbin\.com|oshi\.at|tmpfiles\.org|ngrok(?:-free)?\.(?:io|app|dev)|trycloudflare\.com|serveo\.net|discord(?:app)?\.com|api\.telegram\.org)$`))
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

var inText = regex.New(`(?i)\b[a-z][a-z0-9+.-]{1,15}://[^\s"'<>\x60|]+`)

// addressesIn finds at most n of what inText matches. In a text of ASCII the signs behind
// the scheme tell where.
func addressesIn(text string, n int) (found []string) {
	if !prose.IsASCII(text) {
		return inText.FindAllString(text, n)
	}
	for from := 0; len(found) < n; {
		signs := strings.Index(text[from:], "://")
		if signs < 0 {
			return found
		}
		signs += from
		end := signs + 3
		for end < len(text) && !strings.ContainsRune(" \t\n\f\r\"'<>`|", rune(text[end])) {
			end++
		}
		begin, is := schemeAt(text, from, signs)
		if from = signs + 3; is && end > from {
			found, from = append(found, text[begin:end]), end
		}
	}
	return found
}

// schemeAt returns where the scheme begins that ends at a place, and not before from.
func schemeAt(text string, from, end int) (int, bool) {
	begin := end
	for begin > max(from, end-maxScheme) && (alphanumeric(text[begin-1]) || strings.IndexByte("+.-", text[begin-1]) >= 0) {
		begin--
	}
	for ; begin < end-1; begin++ {
		if alphanumeric(text[begin]) && !isDigit(text[begin]) && (begin == 0 || !alphanumeric(text[begin-1]) && text[begin-1] != '_') {
			return begin, true
		}
	}
	return 0, false
}

// maxScheme is the length of the longest scheme.
const maxScheme = 16

// addresses finds the addresses of an argument: the whole of it, those within,
// and those a redirecting service is asked to go to.
func addresses(text string) []string {
	found := addressesIn(text, 64)
	if whole := ignored.Replace(strings.TrimSpace(text)); !strings.Contains(whole, " ") && len(text) < 4096 && (len(found) != 1 || found[0] != text) {
		found = append(found, text)
	}
	for _, f := range found[:min(len(found), maxRedirects)] {
		found = append(found, redirected(f)...)
	}
	return found
}

// maxRedirects bounds the addresses of one argument that are searched for others.
const maxRedirects = 8

// redirected finds the addresses that an address carries in its query or its path,
// for a service that will go there: encoded once, twice, or in base64.
func redirected(text string) []string {
	_, after, found := strings.Cut(text, "://")
	if !found || len(text) > 4096 || !strings.ContainsAny(after, "/?") {
		return nil
	}
	rest := after[strings.IndexAny(after, "/?"):]
	var out []string
	for range 3 {
		out = append(out, addressesIn(strings.TrimLeft(rest, "/?"), maxRedirects)...)
		for _, m := range relativeTarget.FindAllStringSubmatch(rest, maxRedirects) {
			out = append(out, "http:"+m[1])
		}
		for _, m := range packedTarget.FindAllString(rest, maxRedirects) {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				if raw, err := encoding.DecodeString(strings.TrimRight(m, "=")); err == nil {
					out = append(out, addressesIn(string(raw), 1)...)
					break
				}
			}
		}
		next, err := url.PathUnescape(rest)
		if err != nil || next == rest {
			break
		}
		rest = next
	}
	return out
}

var (
	// relativeTarget is an address without its scheme as a parameter's value.
	relativeTarget = regex.New(`[?&][\w.-]+=(//[^&/\s]+[^&\s]*)`)

	// packedTarget is base64 that begins with http.
	packedTarget = regex.New(`aHR0c[A-Za-z0-9+/_-]{8,}=*`)
)
