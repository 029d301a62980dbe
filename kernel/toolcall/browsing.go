package toolcall

// A browser knows who its user is: it shows the passwords that it keeps, and its pages hold
// the sessions of their sites.

// passwordPage judges a text that opens the page on which a browser shows its passwords.
func (r *reading) passwordPage(text string) {
	if r.tool.any("browser", "navigate", "page", "tab", "goto", "open", "chrome", "playwright", "puppeteer", "selenium", "visit", "web", "computer", "desktop", "screen") || opensPage.MatchString(text) {
		r.breaks(CredentialAccess)
	}
}

var (
	opensPage = newExpression(`(?i)^\s*(?:chrome|edge|brave|opera|vivaldi|chromium|about):|\b(?:goto|navigate|get|open|newPage|start|xdg-open|location)\b`)

	// leaves is what sends from a page to elsewhere.
	pageSends  = newExpression(`(?i)\bfetch\s*\(|XMLHttpRequest|sendBeacon|new\s+Image\b|\.src\s*=|location(?:\.href)?\s*=|WebSocket|axios|\$\.(?:post|get|ajax)|window\.open|\.action\s*=`)
	wholeStore = newExpression(`document\.cookie\s*(?:[,;)}\]+\x60]|$)|(?:stringify|entries|assign|URLSearchParams|btoa|encodeURIComponent|escape)\s*\(\s*(?:\{\s*(?:\.\.\.)?|\{\},\s*)?(?:window\.)?(?:document\.cookie|(?:local|session)Storage)\b|\{\s*\.\.\.(?:local|session)Storage|(?:local|session)Storage\.(?:getItem\(|\[)[^)\]]*(?i:token|auth|session|jwt|secret|key|user)|indexedDB\.(?:open|databases)`)
	typedKeys  = newExpression(`addEventListener\(\s*['"]key(?:down|press|up)`)

	// shownPassword is what stands in a field for a password, when it is read.
	shownPassword = newExpression(`(?i)querySelector(?:All)?\([^)\n]*type=\\?["']?password[^)\n]*\)\s*\]?\s*(?:\.\.\.)?[^;=\n]{0,60}\.value\b\s*(?:[^=.\s]|$|==|\.(?:trim|toString)\()`)
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

// savedLogins are the files in which programs keep the logins of their users.
var savedLogins = newExpression(`(?i)(?:^|/)\.?filezilla/(?:sitemanager|recentservers|filezilla)\.xml$|(?:^|/)(?:winscp\.ini|confcons\.xml|wcx_ftp\.ini|signons\.sqlite|credentials-config\.json|coreftp\.cfg|\.smbcredentials|\.cifscredentials)$|\.remmina$|(?:^|/)sequel (?:pro|ace)/.*favorites\.plist$|martin prikryl/winscp 2/sessions|(?:^|/)\.?(?:ws_ftp|cuteftp|smartftp|flashfxp)/.*\.(?:ini|dat|xml)$|(?:^|/)heidisql.*\.(?:ini|txt)$|(?:^|/)\.dbvis/.*\.xml$|(?:^|/)\.purple/accounts\.xml$|(?:^|/)psi/.*accounts\.xml$|(?:^|/)robo3t\.json$`)
