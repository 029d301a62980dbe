package toolcall

import "github.com/caddy-lex/lex/kernel/regex"

// A browser knows who its user is: it shows the passwords that it keeps, and its pages hold
// the sessions of their sites.

// passwordPage judges a text that opens the page on which a browser shows its passwords.
func (r *reading) passwordPage(text string) {
	if r.tool.any("browser", "navigate", "page", "tab", "goto", "open", "chrome", "playwright", "puppeteer", "selenium", "visit", "web", "computer", "desktop", "screen") || opensPage.MatchString(text) {
		r.breaks(CredentialAccess)
	}
}

var (
	opensPage = regex.New(`(?i)^\s*(?:chrome|edge|brave|opera|vivaldi|chromium|about):|\b(?:goto|navigate|get|open|newPage|start|xdg-open|location)\b`)

	// leaves is what sends from a page to elsewhere.
	pageSends  = regex.New(`(?i)\bfetch\s*\(|XMLHttpRequest|sendBeacon|new\s+Image\b|\.src\s*=|location(?:\.href)?\s*=|WebSocket|axios|\$\.(?:post|get|ajax)|window\.open|\.action\s*=`)
	wholeStore = regex.New(`document\.cookie\s*(?:[,;)}\]+\x60]|$)|(?:stringify|entries|assign|URLSearchParams|btoa|encodeURIComponent|escape)\s*\(\s*(?:\{\s*(?:\.\.\.)?|\{\},\s*)?(?:window\.)?(?:document\.cookie|(?:local|session)Storage)\b|\{\s*\.\.\.(?:local|session)Storage|(?:local|session)Storage\.(?:getItem\(|\[)[^)\]]*(?i:token|auth|session|jwt|secret|key|user)|indexedDB\.(?:open|databases)`)
	typedKeys  = regex.New(`addEventListener\(\s*['"]key(?:down|press|up)`)

	// shownPassword is what stands in a field for a password, when it is read.
	shownPassword = regex.New(`(?i)querySelector(?:All)?\([^)\n]*type=\\?["']?password[^)\n]*\)\s*\]?\s*(?:\.\.\.)?[^;=\n]{0,60}\.value\b\s*(?:[^=.\s]|$|==|\.(?:trim|toString)\()`)
)

// pageSecrets judges a script of a page that sends the session of its user, what it types, or
// the passwords that were filled in.
func (r *reading) pageSecrets(text string) {
	if shownPassword.MatchString(text) {
		r.breaks(CredentialAccess)
	}
	if !pageSends.MatchString(text) || !wholeStore.MatchString(text) && !typedKeys.MatchString(text) {
		return
	}
	for _, address := range addressesOf(text) {
		if r.elsewhere(address) {
			r.breaks(DataExfiltration)
		}
	}
}

// pageScript judges a script that an address holds, which runs in the page that is open. What such
// a script asks of the page's own server and sends to another host is the session's.
func (r *reading) pageScript(text string) {
	r.code(text)
	r.pageSecrets(text)
	if !pageAsks.MatchString(text) || !pageSends.MatchString(text) {
		return
	}
	for _, address := range addressesOf(text) {
		if r.elsewhere(address) {
			r.breaks(DataExfiltration)
		}
	}
}

// pageAsks is a request to the own server of a page, or all that the page shows.
var pageAsks = regex.New(`(?i)\bfetch\s*\(\s*['"\x60]/[^/]|\.open\s*\(\s*['"]get['"]\s*,\s*['"]/[^/]|(?:inner|outer)(?:html|text)\b|document\.body|document\.forms`)

// soldPage judges a page of a shop, whose customers type what they pay with: a script in it that hands a
// form, a customer or the session to another host (as Magecart does, ATT&CK T1056.003).
func (r *reading) soldPage(text string) {
	text = withPackedScripts(text)
	if !formTaken.MatchString(text) || !pageSends.MatchString(text) && !pageTakesScript.MatchString(text) {
		return
	}
	for _, address := range append(addressesOf(text), bareAddresses(text)...) {
		if r.elsewhere(address) {
			r.breaks(DataExfiltration)
		}
	}
}

var (
	formTaken       = regex.New(`(?i)new FormData\s*\(|document\.cookie|\{\{-?\s*(?:customer|checkout|order)(?:\.(?:email|orders|addresses?|phone|default_address|note))?\s*(?:\||-?\}\})|addEventListener\(\s*\\?['"](?:submit|key\w+|input|change)\\?['"]|localStorage|\bcc[-_]?(?:num|number|cvc|cvv)|card[-_]?(?:number|cvc|cvv)`)
	pageTakesScript = regex.New(`(?i)<script[^>]*\ssrc\s*=\s*\\?["'](?:https?:)?//`)
	bareHost        = regex.New(`["'\x60(=]//([a-z0-9-]+(?:\.[a-z0-9-]+)+/?[^\s"'\x60)]{0,100})`)
	packedText      = regex.New(`\batob\(\s*\\?['"]([A-Za-z0-9+/=]{16,})\\?['"]`)
)

// withPackedScripts writes behind a text what its scripts unpack.
func withPackedScripts(text string) string {
	for _, m := range packedText.FindAllStringSubmatch(text, maxMatches) {
		if plain, is := unpackedText(m[1]); is {
			text += "\n" + plain
		}
	}
	return text
}

// bareAddresses are those that a page names without a scheme.
func bareAddresses(text string) []string {
	var out []string
	for _, m := range bareHost.FindAllStringSubmatch(text, maxMatches) {
		out = append(out, "https://"+m[1])
	}
	return out
}
