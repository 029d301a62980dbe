package caddymodule

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/logging"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// redacted stands in logs for a credential.
const redacted = "REDACTED"

// credentialWords are what the names of headers and query parameters that carry
// credentials have in common. They are looked for anywhere in a name: what is
// hidden from a log without need costs little, a key in a log costs the key.
var credentialWords = []string{
	"key", "token", "secret", "password", "passwd", "pwd", "passphrase", "auth",
	"credential", "signature", "cookie", "jwt", "bearer", "session",
}

// credentialNames are names without such a word: "sig" signs Azure's addresses,
// OpenAI's realtime API takes a browser's key as a WebSocket subprotocol, and whoever
// knows the last event of a tool server's stream can go on reading it.
var credentialNames = []string{"sig", "sec-websocket-protocol", "last-event-id"}

// argumentHeaders begins the names of the headers in which the Model Context Protocol
// repeats arguments of a tool call.
const argumentHeaders = "mcp-param-"

// usualHeaders are headers that most requests have, of which none is a credential.
var usualHeaders = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Connection", "Content-Length", "Content-Type", "Traceparent", "User-Agent",
	"Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id",
}

// isCredential reports whether a header or a query parameter of this name is to
// be taken for a credential.
func isCredential(name string) bool {
	if slices.Contains(usualHeaders, name) {
		return false
	}
	name = strings.ToLower(name)
	if slices.Contains(credentialNames, name) || strings.HasPrefix(name, argumentHeaders) {
		return true
	}
	for _, word := range credentialWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// safeToLog returns a copy of a request that a log may show: nothing in its
// headers or its query is a credential. It is for logs alone.
func safeToLog(r *http.Request) *http.Request {
	out := r.WithContext(r.Context())
	makeSafeToLog(out)
	return out
}

// makeSafeToLog gives a request such headers and such a query.
func makeSafeToLog(r *http.Request) {
	r.RequestURI = safeURI(r.RequestURI)
	whole := r.Header // which others may read
	var header http.Header
	for name, values := range whole {
		safe := safeValues(name, values)
		if slices.Equal(safe, values) {
			continue
		}
		if header == nil {
			header = maps.Clone(whole)
			r.Header = header
		}
		header[name] = safe
	}
}

// safeValues hides credentials, and those in the query of an address: Referer
// and X-Forwarded-Uri hold addresses. Values with nothing to hide are returned as they are.
func safeValues(name string, values []string) []string {
	credential := isCredential(name)
	safe := func(v string) string {
		if credential {
			return redacted
		}
		return safeURI(v)
	}
	if !slices.ContainsFunc(values, func(v string) bool { return safe(v) != v }) {
		return values
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = safe(v)
	}
	return out
}

// safeURI hides the credentials in an address's query and before its host. The
// rest is left byte for byte as it came.
func safeURI(uri string) string {
	uri = withoutUserinfo(uri)
	path, query, found := strings.Cut(uri, "?")
	if !found {
		return uri
	}
	var out strings.Builder
	out.WriteString(path + "?")
	for query != "" {
		pair, separator := query, ""
		if end := strings.IndexAny(query, "&;"); end >= 0 {
			pair, separator = query[:end], query[end:end+1]
		}
		out.WriteString(safePair(pair) + separator)
		query = query[len(pair)+len(separator):]
	}
	return out.String()
}

func safePair(pair string) string {
	name, _, valued := strings.Cut(pair, "=")
	plain, err := url.QueryUnescape(name)
	if valued && (err != nil || isCredential(plain)) {
		return name + "=" + redacted
	}
	return pair
}

func withoutUserinfo(uri string) string {
	scheme, rest, found := strings.Cut(uri, "://")
	if !found {
		return uri
	}
	authority := rest[:min(len(rest), strings.IndexAny(rest+"/", "/?#"))]
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return uri
	}
	return scheme + "://" + redacted + rest[at:]
}

// showsCredential reports whether Caddy's own error log would print a
// credential with this request. It hides some headers by itself.
func showsCredential(r *http.Request) bool {
	if safeURI(r.RequestURI) != r.RequestURI {
		return true
	}
	for name, values := range r.Header {
		switch name {
		case "Authorization", "Proxy-Authorization", "Cookie":
			continue
		}
		for i, v := range safeValues(name, values) {
			if v != values[i] {
				return true
			}
		}
	}
	return false
}

func init() {
	caddy.RegisterModule(LogFilter{})
}

// LogFilter keeps credentials out of the requests that Caddy itself logs, such
// as in its access log: it is a filter for the fields `request` and `uri` of
// the filter encoder and knows every name that Lex takes for a credential's.
type LogFilter struct{}

// CaddyModule returns the Caddy module information.
func (LogFilter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "caddy.logging.encoders.filter.lex",
		New: func() caddy.Module { return new(LogFilter) },
	}
}

// UnmarshalCaddyfile sets up the filter from Caddyfile tokens. Syntax:
//
//	request lex
//	uri lex
func (*LogFilter) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume filter name
	return noMoreArguments(d)
}

// Filter hides the credentials of a request or an address; every other field
// stays.
func (LogFilter) Filter(field zapcore.Field) zapcore.Field {
	if field.Type == zapcore.StringType {
		return zap.String(field.Key, safeURI(field.String))
	}
	r, ok := field.Interface.(caddyhttp.LoggableHTTPRequest)
	if !ok {
		return field
	}
	r.Request = safeToLog(r.Request)
	return zap.Object(field.Key, r)
}

// Interface guards
var (
	_ logging.LogFieldFilter = LogFilter{}
	_ caddyfile.Unmarshaler  = (*LogFilter)(nil)
)
