package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/address"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// address judges an argument that a tool would request.
func (r *reading) address(text string) {
	here := r.tool.any("browser", "playwright", "puppeteer", "preview", "devtools", "curl", "wget")
	for _, one := range address.All(text) {
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
	return ok && !a.Disguised && !a.Foreign && a.Query == "" && healthPath.MatchString(a.Path) && (a.Loopback || privateHost.MatchString(a.Host) || a.Nearby && !address.IsLocalName(a.Host))
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
	if a.Host != "" && !a.Internal {
		r.outward = true
	}
	if a.Collects && !r.asksFor(a.Host) {
		r.breaks(DataExfiltration)
	}
	switch {
	case a.Nearby && !local && strings.Contains(text, "://") && !r.asksFor(a.Host):
		r.breaks(ServerSideRequestForgery)
	case a.Foreign:
		r.breaks(ServerSideRequestForgery)
	case a.Internal && local && !a.Disguised && (a.Loopback || monitored.MatchString(a.Path) && privateHost.MatchString(a.Host)):
	case a.Internal && !r.asksFor(a.Host), a.Disguised && a.Internal:
		r.breaks(ServerSideRequestForgery)
	}
	if strings.Contains(file.LowerEscapes(text), "%2e%2e") || strings.Contains(file.LowerEscapes(text), "..%2f") {
		r.breaks(PathTraversal)
	}
}

// readAddress reads an address once, however often a call names it.
func (r *reading) readAddress(text string) (address.Address, bool) {
	if known, done := r.endpoints[text]; done {
		return known.endpoint, known.is
	}
	a, is := address.Parse(text)
	if len(text) < maxKnown {
		r.endpoints[text] = knownEndpoint{a, is}
	}
	return a, is
}

// maxKnown is the length below which addresses are kept.
const maxKnown = 1 << 10

// knownEndpoint is an address that was read before in the same call.
type knownEndpoint struct {
	endpoint address.Address
	is       bool
}

// dropSite is a host where anybody may put a file down, or that forwards to a machine of
// somebody's.
var dropSite = regex.NewScreen(regex.New(`(?i)(?:^|\.)(?:pastebin\.com|transfer\.sh|0x0\.st|file\.io|termbin\.com|anonfiles\.com|paste\.ee|ix\.io|bashupload\.com|temp\.sh|gofile\.io|webhook\.cool|requestrepo\.com|mockbin\.(?:org|io)|putsreq\.com|filebin\.net|wetransfer\.com|litter\.catbox\.moe|uguu\.se|pixeldrain\.com|controlc\.com|rentry\.co|privatebin\.net|ghostbin\.(?:co|me|com)|justpaste\.it|localhost\.run|loca\.lt|localtunnel\.me|bore\.pub|dpaste\.(?:com|org)|hastebin\.com|paste\.rs|catbox\.moe|sprunge\.us|clbin\.com|oshi\.at|tmpfiles\.org|ngrok(?:-free)?\.(?:io|app|dev)|trycloudflare\.com|serveo\.net|discord(?:app)?\.com|api\.telegram\.org)$`))
