package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// errProvider is the failure of a model's answer: not reached, not a success,
// not readable. Its cause never leaves the process, because it may name
// addresses and keys.
var errProvider = errors.New("the provider failed")

// ask sends one request of our own to the handlers after lex and writes their
// answer to w. It is a new request, so that two may run at once: its own
// variables, route groups and replacer, which falls back to the parent's
// placeholders. The caller's credentials and cookies do not go along.
func (g *request) ask(ctx context.Context, w http.ResponseWriter, parent *http.Request, call wire.Call) (err error) {
	// A panic of a handler (reverse_proxy aborts that way) must not end the
	// process: net/http recovers its own goroutine only.
	defer func() {
		if p := recover(); p != nil {
			err = g.recovered(ctx, p)
		}
	}()
	r, err := g.subrequest(ctx, w, parent, call)
	if err != nil {
		return err
	}
	g.asked.Store(true)
	err = g.next.ServeHTTP(w, r)
	g.behindEnded(ctx, err)
	if err != nil {
		return errProvider // its text may hold the query or an address
	}
	if unhandled(r) {
		g.logFailure(causeNoHandler)
		return errProvider
	}
	return nil
}

// unhandled reports whether a request reached the end of the handlers and none took it, as
// Caddy notes there: such as a reverse_proxy for other paths only.
func unhandled(r *http.Request) bool {
	is, _ := caddyhttp.GetVar(r.Context(), "unhandled").(bool)
	return is
}

// recovered notes the panic of a handler after lex. Its value is not logged: it
// may hold a piece of a prompt.
func (g *request) recovered(ctx context.Context, p any) error {
	if p != http.ErrAbortHandler { //nolint:errorlint // a panic value is compared as net/http does
		g.handler.logger.Error("a handler after lex panicked", zap.String("type", fmt.Sprintf("%T", p)), zap.ByteString("stack", debug.Stack()))
	} else {
		g.brokeOff(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errProvider
}

// undecoded notes that an answer to a call of our own could not be decoded.
func (g *request) undecoded() error {
	g.logFailure(causeEncoding)
	return errProvider
}

func (g *request) subrequest(ctx context.Context, w http.ResponseWriter, parent *http.Request, call wire.Call) (*http.Request, error) {
	target := url.URL{Scheme: "http", Host: parent.Host}
	path, query, _ := strings.Cut(call.Path, "?")
	target.Path, target.RawQuery = g.handler.UpstreamPath+path, query
	r, err := http.NewRequestWithContext(context.WithValue(ctx, governedKey{}, true), http.MethodPost, target.String(), bytes.NewReader(call.Body))
	if err != nil {
		return nil, fmt.Errorf("building a sub-request: %w", err)
	}
	r.RequestURI, r.RemoteAddr, r.TLS = target.RequestURI(), parent.RemoteAddr, parent.TLS
	r.Proto, r.ProtoMajor, r.ProtoMinor = parent.Proto, parent.ProtoMajor, parent.ProtoMinor
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept-Encoding", "identity") // the checks read the bytes as they come
	for name, value := range call.Header {
		r.Header.Set(name, value)
	}
	for _, name := range []string{"User-Agent", "Traceparent", "Tracestate"} {
		if v := parent.Header.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	parentReplacer := replacer(parent)
	if key := parentReplacer.ReplaceAll(g.handler.ProviderKey, ""); key != "" {
		name, value := g.handler.asks.Authorize(key)
		r.Header.Set(name, value)
	}
	return prepare(r, parent, parentReplacer, w), nil
}

// prepare gives r what handlers expect of a request that Caddy accepted.
func prepare(r, parent *http.Request, parentReplacer *caddy.Replacer, w http.ResponseWriter) *http.Request {
	server, _ := parent.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	repl := caddy.NewReplacer()
	r = caddyhttp.PrepareRequest(r, repl, w, server)
	repl.Map(parentReplacer.Get)
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	parentVars, _ := parent.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	maps.Copy(vars, parentVars)
	return r
}

func replacer(r *http.Request) *caddy.Replacer {
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		return repl
	}
	return caddy.NewReplacer()
}

// lexHeaderNames returns the names of the headers that are addressed to Lex, its keys
// included, which stay here, also when they were sent to a path that is not ours. An
// Authorization is known for ours by how Lex keys begin and by nothing else: comparing
// it with a secret would tell anyone who sees the request behind us whether he guessed
// it, as often as he likes.
func lexHeaderNames(h http.Header) (names []string) {
	for name := range h {
		if strings.HasPrefix(name, "X-Lex-") {
			names = append(names, name)
		}
	}
	if slices.ContainsFunc(h["Authorization"], isLexKey) {
		names = append(names, "Authorization")
	}
	return names
}

// withoutLexHeaders returns the request as it goes upstream. The original is left as it
// was, since access logs and later handlers of other routes read it.
func withoutLexHeaders(r *http.Request) *http.Request {
	drop := lexHeaderNames(r.Header)
	if len(drop) == 0 {
		return r
	}
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	for _, name := range drop {
		out.Header.Del(name)
	}
	return out
}

// dropFromOriginal does so for the handlers that Caddy gives the original to, once lex
// has failed with it: in its very headers, because Caddy has a request of its own with
// them. Placeholders, of access logs above all, keep what they showed.
func dropFromOriginal(r *http.Request) {
	repl := replacer(r)
	for _, name := range lexHeaderNames(r.Header) {
		for _, spelt := range []string{name, strings.ToLower(name)} {
			repl.Set("http.request.header."+spelt, strings.Join(r.Header[name], ","))
		}
		r.Header.Del(name)
	}
}

// setBody gives a request a body that was read. What came behind the body, its
// trailers, was not.
func setBody(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.ContentLength, r.TransferEncoding, r.Trailer = int64(len(body)), nil, nil
}

// hopHeaders are about one connection (RFC 9110, 7.6.1).
var hopHeaders = []string{"Connection", "Upgrade", "Http2-Settings", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding"}

func dropHopHeaders(h http.Header) {
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}

// A recorder keeps an answer in memory, for calls of our own that are read whole.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	limit  int64
}

func newRecorder(limit int64) *recorder {
	return &recorder{header: make(http.Header), limit: limit}
}

// Header returns the headers of the answer.
func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader keeps the first final status.
func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 && status >= http.StatusOK {
		rec.status = status
	}
}

// Write keeps the bytes, up to the limit.
func (rec *recorder) Write(p []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	if int64(rec.body.Len()+len(p)) > rec.limit {
		return 0, errAnswerTooLarge
	}
	return rec.body.Write(p)
}

// FlushError has nothing to flush.
func (rec *recorder) FlushError() error { return nil }

// decode undoes an encoding that upstream uses although it was not asked for.
func (rec *recorder) decode() error {
	if !encoded(rec.header) {
		return nil
	}
	plain, err := loose.Decode(rec.body.Bytes(), codings(rec.header), rec.limit)
	if err != nil {
		return fmt.Errorf("decoding the model's answer: %w", err)
	}
	rec.header.Del("Content-Encoding")
	rec.body = *bytes.NewBuffer(plain)
	return nil
}

// ok reports whether the answer is a success in an encoding that can be read.
func (rec *recorder) ok() bool {
	return rec.status >= 200 && rec.status < 300 && !encoded(rec.header)
}

// Interface guards
var (
	_ http.ResponseWriter             = (*recorder)(nil)
	_ interface{ FlushError() error } = (*recorder)(nil)
	_ io.Writer                       = (*recorder)(nil)
)

var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~@:-]+)+$`)

// checkUpstreamPath refuses what would not be a path once it stands before one.
func checkUpstreamPath(prefix string) error {
	if prefix != "" && (!plainPath.MatchString(prefix) || path.Clean(prefix) != prefix) {
		return fmt.Errorf("upstream_path %q: give a path such as /openai, without a slash at its end", prefix)
	}
	return nil
}

// governedKey marks in a context that lex has had the request.
type governedKey struct{}

func isGoverned(ctx context.Context) bool { return ctx.Value(governedKey{}) != nil }

// outbound returns the caller's request as the next handlers get it, for the
// time of ctx: without what is addressed to Lex, and below the path of the
// upstream's API. Trailers go nowhere: they come too late to be looked at.
func (h *Handler) outbound(ctx context.Context, r *http.Request) *http.Request {
	out := withoutLexHeaders(r).WithContext(context.WithValue(ctx, governedKey{}, true))
	out.Trailer = nil
	if h.UpstreamPath == "" || len(r.URL.Path) == 0 || r.URL.Path[0] != '/' { // OPTIONS *, CONNECT
		return out
	}
	out.URL = mounted(r.URL, h.UpstreamPath)
	out.RequestURI = out.URL.RequestURI()
	return out
}

// mounted returns an address with a prefix before its path, which is left as it
// was written. A path that begins with the prefix gets it once more: what the
// client asked for is a path of the API.
func mounted(address *url.URL, prefix string) *url.URL {
	out := *address
	out.Path = prefix + address.Path
	if address.RawPath != "" {
		out.RawPath = prefix + address.RawPath
	}
	return &out
}
