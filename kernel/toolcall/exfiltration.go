package toolcall

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// packedSecret reports whether the query or the path of an address carries, in base64
// or hexadecimal digits, a secret or what the session has just read.
func (r *reading) packedSecret(text string) bool {
	if !strings.Contains(text, "://") || len(text) > maxPacked {
		return false
	}
	for _, m := range packedData.FindAllString(text, maxRedirects) {
		for _, raw := range unpackedForms(m) {
			if secret.matches(raw) || len(raw) >= 2*grams && r.untrusted.named(raw) {
				return true
			}
		}
	}
	return false
}

var packedData = newExpression(`[A-Za-z0-9+_-]{16,}={0,2}`)

// unpackedForms are the readable texts that a value may stand for.
func unpackedForms(value string) []string {
	var out []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := encoding.DecodeString(strings.TrimRight(value, "=")); err == nil && printable(raw) {
			out = append(out, string(raw))
			break
		}
	}
	if raw, err := hex.DecodeString(value); err == nil && printable(raw) {
		out = append(out, string(raw))
	}
	return out
}

// sent judges an argument of a tool whose arguments leave for elsewhere.
// Headers are exempt: a key belongs there.
func (r *reading) sent(l leaf) {
	if r.tool.roleOf(l.key) == roleURL && r.tool.requests() && (secret.matches(l.value) || r.packedSecret(l.value)) {
		r.breaks(DataExfiltration)
	}
	if !r.tool.sends || roleOfKey(l.key) == roleShell {
		return
	}
	if headers.MatchString(l.key) || l.above.headers {
		return
	}
	if secret.matches(l.value) || r.packedSecret(l.value) {
		r.breaks(DataExfiltration)
	}
	if host := r.hostIn(l); dropSite.matches(host) && r.tool.any("post", "upload", "put", "send", "publish", "share") && !r.asksFor(host) {
		r.breaks(DataExfiltration)
	}
}

var headers = newExpression(`headers?$|^authorization$|^apikey$|^auth$|^token$|^cookies?$|^accesstoken$|^bearer$`)

func (r *reading) hostIn(l leaf) string {
	if !strings.Contains(l.value, "://") && roleOfKey(l.key) != roleURL {
		return ""
	}
	a, _ := r.readAddress(l.value)
	return a.host
}

// images finds pictures that carry data away: the program that renders one
// requests an address whose query holds the data (AML.T0077).
func (r *reading) images(text string) {
	if !strings.Contains(text, "](") && !strings.Contains(text, "<img") {
		return
	}
	for _, address := range pictures(text) {
		if !r.spend(costPlace*len(address) + costWord) {
			return
		}
		a, ok := readAddress(address)
		if !ok || r.asksFor(a.host) {
			continue
		}
		if carriesData(a.query) || secret.matches(address) || r.observed(a.host) && a.query != "" {
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
	linked  = newExpression(`^\s*<?([a-zA-Z]+://[^\s)>]+)`)
	sourced = newExpression(`src\s*=\s*["']?([a-zA-Z]+://[^\s"'>]+)`)
)

// encoded is what data looks like once it is packed into an address.
var encoded = newExpression(`^[A-Za-z0-9+/_=-]{24,}$|\{\{|\$\{|<[a-z_]+>`)

func carriesData(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(pair, "=")
		if v, err := url.QueryUnescape(value); err == nil && (encoded.MatchString(v) || strings.Count(v, " ") > 3) {
			return true
		}
	}
	return false
}
