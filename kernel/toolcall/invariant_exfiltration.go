package toolcall

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/address"
	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// packedSecret reports whether the query or the path of an address carries, in base64
// or hexadecimal digits, a secret or what the session has just read.
func (r *reading) packedSecret(text string) bool {
	if !strings.Contains(text, "://") || len(text) > maxPacked {
		return false
	}
	for _, m := range packedData.FindAllString(text, maxMatches) {
		for _, raw := range unpackedForms(m) {
			if secret.Matches(raw) || namedSecret.MatchString(raw) || len(raw) >= 2*grams && r.untrusted.named(raw) {
				return true
			}
		}
	}
	_, query, found := strings.Cut(text, "?")
	if plain, err := url.QueryUnescape(query); found && err == nil && strings.Contains(query, "%3") {
		return namedSecret.MatchString(plain)
	}
	return false
}

// namedSecret is a secret beside its name, as files of settings have it.
var namedSecret = regex.New(`(?i)(?:^|[^a-z0-9])(?:[a-z0-9]{1,20}[_-]){0,4}(?:password|passwd|secret|(?:access|refresh|auth|session|bearer)[_-]?token|(?:api|access|deploy|private|secret|signing)[_-]?key|credentials?)(?:[_-][a-z0-9]{1,20})?\s?[=:]\s?[^\s=&]{6,}|\bAKIA[A-Z0-9]|\bsecret[-_]access[-_]key`)

// carriedByMail judges a file of others, or one that is called like what nobody sends about,
// that goes with a message or an upload to somebody whom the user did not name.
func (r *reading) carriedByMail(leaves []leaf) {
	if !r.tool.sends || r.tool.shell || r.tool.code {
		return
	}
	sensitive := slices.ContainsFunc(leaves, func(l leaf) bool {
		if !l.text || len(l.value) > maxValue || !attachedKeys[l.key] && roleOfKey(l.key) != rolePath {
			return false
		}
		name := file.Slashed(l.value)
		return privateFile.MatchString(name) && guardedName.MatchString(name) && !shownFile.MatchString(name)
	})
	named := func(l leaf) bool {
		role := roleOfKey(l.key)
		return l.text && (role == roleDestination || role == roleURL) && (r.request.named(l.value) || r.asksFor(r.hostIn(l)))
	}
	if sensitive && !slices.ContainsFunc(leaves, named) {
		r.breaks(DataExfiltration)
	}
}

var (
	attachedKeys = words("attachment attachments attach attached attachmentpath attachmentpaths attachmenturl upload media document documents")
	shownFile    = regex.New(`(?i)\.(?:png|jpe?g|svg|gif|webp|html?|md)$`)
	guardedName  = regex.New(`(?i)payroll|salar(?:y|ies)|\biban|_iban|customers?\b|customers?[_.-]|clients?[_.-]|passport|\bssn|password|secret|credential|\bbackups?/|[_.-](?:dump|backup)\b|\.(?:sql|dump|bak|pst|kdbx|sqlite3?|db|mdb)(?:\.\w+)?$|patients?|medical|/hr/|employees|tax[_-]?returns?|bank[_-]|cards?[_-]|contracts?/`)
)

var packedData = regex.New(`[A-Za-z0-9+_-]{16,}={0,2}`)

// unpackedForms are the readable texts that a value may stand for.
func unpackedForms(value string) []string {
	var out []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := encoding.DecodeString(strings.TrimRight(value, "=")); err == nil && code.Printable(raw) {
			out = append(out, string(raw))
			break
		}
	}
	if raw, err := hex.DecodeString(value); err == nil && code.Printable(raw) {
		out = append(out, string(raw))
	}
	return out
}

// handsOverLogin judges a message that tells somebody a login with its password, or holds a secret
// in base64. What the user gave to be told is the user's.
func (r *reading) handsOverLogin(leaves []leaf) {
	if !r.tool.sends && !r.tool.any("calendar", "event", "events", "invite", "meeting", "chat", "reply") || r.tool.shell || r.tool.code {
		return
	}
	for _, l := range leaves {
		if !l.text || l.above.headers || len(l.value) > maxPacked || headers.MatchString(l.key) || !r.spend(costSearch*len(l.value)) {
			continue
		}
		if m := toldLogin.FindStringSubmatch(l.value); m != nil && realPassword.MatchString(m[1]) && !r.request.named(m[1]) {
			r.breaks(DataExfiltration)
		}
		for _, packed := range packedData.FindAllString(l.value, maxMatches) {
			for _, raw := range unpackedForms(packed) {
				if secret.Matches(raw) || namedSecret.MatchString(raw) {
					r.breaks(DataExfiltration)
				}
			}
		}
	}
}

var (
	// toldLogin is a name to log in with, and the password behind it.
	toldLogin    = regex.New(`(?i)\b(?:user(?:name)?|login|log-in|account|admin|benutzer(?:name)?|utilisateur|usuario)\b\s*(?:name\b)?\s*(?:is|lautet|:|=)?\s*["']?[\w.@+-]{2,60}["']?[\s,;/|]{1,4}(?:(?:and|und|et|with|mit)\s+)?(?:the\s+)?(?:pass(?:word|wort|wd|e)?|pw|pwd|kennwort|contraseña)\b\s*(?:is|lautet|:|=)?\s*["']?([^\s"'<>,]{7,64})`)
	realPassword = regex.New(`\d.*[^\w.]|[^\w.].*\d|[A-Z].*\d.*[a-z]|[a-z].*\d.*[A-Z]|[A-Z].*[a-z].*\d`)
)

// sent judges an argument of a tool whose arguments leave for elsewhere.
// Headers are exempt: a key belongs there.
func (r *reading) sent(l leaf) {
	if r.tool.roleOf(l.key) == roleURL && r.tool.requests() && (secret.Matches(l.value) || r.packedSecret(l.value)) {
		r.breaks(DataExfiltration)
	}
	if !r.tool.sends || roleOfKey(l.key) == roleShell {
		return
	}
	if headers.MatchString(l.key) || l.above.headers {
		return
	}
	if secret.Matches(r.plainText(l.value)) || r.packedSecret(l.value) {
		r.breaks(DataExfiltration)
	}
	if host := r.hostIn(l); dropSite.Matches(host) && r.tool.any("post", "upload", "put", "send", "publish", "share") && !r.asksFor(host) {
		r.breaks(DataExfiltration)
	}
}

var headers = regex.New(`headers?$|^authorization$|^apikey$|^auth$|^token$|^cookies?$|^accesstoken$|^bearer$`)

func (r *reading) hostIn(l leaf) string {
	if !strings.Contains(l.value, "://") && roleOfKey(l.key) != roleURL {
		return ""
	}
	a, _ := r.readAddress(l.value)
	return a.Host
}

// images finds pictures that carry data away: the program that renders one
// requests an address whose query holds the data (AML.T0077).
func (r *reading) images(text string) {
	if !strings.Contains(text, "](") && !strings.Contains(text, "<img") {
		return
	}
	for _, picture := range pictures(text) {
		if !r.spend(costPlace*len(picture) + costWord) {
			return
		}
		a, ok := address.Parse(picture)
		if !ok || r.asksFor(a.Host) {
			continue
		}
		if carriesData(a.Query) || secret.Matches(picture) || r.observed(a.Host) && a.Query != "" {
			r.breaks(DataExfiltration)
		}
	}
}

// pictures finds the addresses of the pictures in Markdown and HTML. It cuts
// the text first, so that no part of it is searched twice.
func pictures(text string) []string {
	var out []string
	label, rest, found := strings.Cut(text, "](")
	for found {
		label = label[strings.LastIndexByte(label, ']')+1:]
		next, after, more := strings.Cut(rest, "](")
		if m := linked.FindStringSubmatch(next); m != nil && strings.Contains(label, "![") {
			out = append(out, m[1])
		}
		label, rest, found = next, after, more
	}
	_, rest, found = strings.Cut(text, "<img")
	for found {
		var tag string
		tag, rest, found = strings.Cut(rest, "<img")
		tag, _, _ = strings.Cut(tag, ">")
		if m := sourced.FindStringSubmatch(tag); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

var (
	linked  = regex.New(`^\s*<?([a-zA-Z]+://[^\s)>]+)`)
	sourced = regex.New(`src\s*=\s*["']?([a-zA-Z]+://[^\s"'>]+)`)
)

// encoded is what data looks like once it is packed into an address.
var encoded = regex.New(`^[A-Za-z0-9+/_=-]{24,}$|\{\{|\$\{|<[a-z_]+>`)

func carriesData(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(pair, "=")
		if v, err := url.QueryUnescape(value); err == nil && (encoded.MatchString(v) || strings.Count(v, " ") > 3) {
			return true
		}
	}
	return false
}
