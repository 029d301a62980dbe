package caddymodule

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// mayCarryPrompt reports whether a request that no dialect claims could bring
// text to a model: it has a body, or it opens a connection of another protocol
// (a realtime API over WebSocket). What does neither is not ours.
func mayCarryPrompt(r *http.Request) bool { return upgrades(r) || carriesBody(r) }

// carriesBody reports whether a request has a body, whatever its method.
func carriesBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

func upgrades(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || r.Method == http.MethodConnect
}

// opensWebSocket reports whether a request asks for a WebSocket on a path that no
// dialect claims. That is how realtime APIs are spoken to; every other upgrade
// (h2c above all) is a way around what is read here.
func opensWebSocket(r *http.Request) bool {
	_, claimed := wire.Match(r.URL.Path)
	return !claimed && (r.Method == http.MethodConnect || strings.EqualFold(r.Header.Get("Upgrade"), "websocket"))
}

// What becomes of what no dialect knows: the values of Handler.Unknown.
const (
	unknownInspect = "inspect"
	unknownObserve = "observe"
	unknownPass    = "pass"
	unknownBlock   = "block"
)

// inspectsUnknown reports whether what no dialect knows is read loosely.
func (g *request) inspectsUnknown() bool { return g.handler.Unknown == unknownInspect }

// noDialect is why nothing of an answer or request could be read.
const noDialect = "no dialect for this endpoint"

// interceptUnknown serves a request on a path that no dialect claims, by the
// option `unknown`. Where it is to be inspected a body that resembles a dialect
// is read as one, any other text loosely, and an attack is refused; everything
// else is forwarded, with a receipt that says what was read, and that the answer
// was not.
func (g *request) interceptUnknown(w http.ResponseWriter, r *http.Request) {
	var apiErr *apiError
	if g.caller, apiErr = g.identify(r.Context(), r, true); apiErr != nil {
		g.answerError(w, apiErr)
		return
	}
	if !mayCarryPrompt(r) {
		g.ungoverned = passCleanly(w, g.handler.outbound(r.Context(), r), g.next, nil)
		return
	}
	if apiErr = g.take(r.Context(), w, g.app.Limits.Intercepted, g.caller.subject("intercepted")); apiErr == nil && g.handler.Unknown == unknownPass {
		apiErr = g.consumeQuota(r.Context(), w)
	}
	if apiErr != nil {
		g.answerError(w, apiErr)
		return
	}
	if g.handler.Unknown == unknownPass {
		g.ungoverned = passCleanly(w, g.handler.outbound(r.Context(), r), g.next, nil)
		return
	}
	body, apiErr := readBody(w, r, g.app.Limits.Body)
	if apiErr != nil {
		g.answerError(w, apiErr)
		return
	}
	if d := g.resembled(r, body); d != nil {
		g.interceptResembling(w, r, d, body)
		return
	}
	if len(body) == 0 && !upgrades(r) {
		g.pass(w, r, body, nil)
		return
	}
	if apiErr := g.consumeQuota(r.Context(), w); apiErr != nil {
		g.answerError(w, apiErr)
		return
	}
	g.recordUnknown(w, r, body)
}

// resembled is the dialect that a body on a foreign path can be read as.
func (g *request) resembled(r *http.Request, body []byte) wire.Dialect {
	d, ok := wire.Resembles(body)
	if !ok || !g.inspectsUnknown() || r.Header.Get("Content-Encoding") != "" {
		return nil
	}
	if _, err := d.Request(body); err != nil {
		return nil // its looks deceive
	}
	return d
}

// interceptResembling assesses a request that only looks like a dialect's. What
// its API answers is not known, so the answer passes unread, and a refusal is
// an HTTP error: that is one in every API, while the refusal message of another
// one would break the caller's SDK.
func (g *request) interceptResembling(w http.ResponseWriter, r *http.Request, d wire.Dialect, body []byte) {
	t := &interceptTurn{request: g, http: r, dialect: d, body: body}
	started := time.Now()
	apiErr := t.parse()
	if apiErr == nil {
		apiErr = t.consumeQuota(r.Context(), w)
	}
	if apiErr != nil {
		t.reject(w, apiErr)
		return
	}
	t.x = t.open(started)
	t.x.endpoint = endpointOf(nil)
	if err := t.assess(r.Context()); err != nil {
		t.failed(w, "session", err)
		return
	}
	g.concludeUnread(w, r, t.x, t.body)
}

// recordUnknown reads a body loosely, if it is to be read and can be, writes the
// receipt, and forwards or refuses the request.
func (g *request) recordUnknown(w http.ResponseWriter, r *http.Request, body []byte) {
	x, err := g.unknownExchange(r.Context(), r, body)
	if err != nil {
		g.storeFailed("session", err)
		g.refundQuota(r.Context())
		writeError(w, errGovernor)
		return
	}
	g.concludeUnread(w, r, x, body)
}

// unknownExchange is the exchange of a body in no dialect. The session is one of
// its own unless the caller names one, and traffic that is not read belongs to
// none that is: it cannot calm it.
func (g *request) unknownExchange(ctx context.Context, r *http.Request, body []byte) (*exchange, error) {
	x := &exchange{
		app: g.app, engine: g.engine, mode: kernel.Mode(g.handler.Mode), namespace: g.caller.namespace,
		endpoint: endpointOf(nil), dialect: "unknown", started: time.Now(), inspectLimit: g.handler.InspectLimit, oversize: g.handler.Oversize,
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	parts, err := g.readUnknown(r, body)
	texts, instructions, files := looseTexts(parts)
	read := len(texts)+len(instructions) > 0
	if id := r.Header.Get("X-Lex-Session"); read && validSessionID(id) {
		x.key, x.eval = sessionKey(g.caller.namespace, id), g.isEval(r, id)
	} else {
		x.key = sessionKey(g.caller.namespace, randomID())
	}
	x.publicID = publicID(x.key)
	if err := x.open(ctx); err != nil {
		return nil, err
	}
	x.coverage.BytesForwarded = len(body)
	if !read {
		x.unknown("request", noDialect+": "+mediaName(media), len(body))
		x.notRun(detectorLocal, noDialect)
		g.app.metrics.uninspected.WithLabelValues("request").Inc()
		return x, x.step()
	}
	if err != nil {
		x.skip("request", "a part that is no text", 0)
	}
	if files > 0 {
		x.skip("request", "files", files)
	}
	x.unknown("request", noDialect+": "+mediaName(media)+"; its texts were read", 0)
	x.cover("request", detectorLocal, len(body)-files)
	var said strings.Builder // what is committed to
	for _, t := range texts {
		said.WriteString(t.Body)
	}
	x.prompt = said.String()
	return x, x.assess(ctx, texts, instructions)
}

// readUnknown are the texts of a body in no dialect, as far as they are wanted
// and can be read.
func (g *request) readUnknown(r *http.Request, body []byte) ([]wire.Part, error) {
	if !g.inspectsUnknown() || len(body) == 0 {
		return nil, nil
	}
	return bodyTexts(r.Header, body, g.app.Limits.Body)
}

// concludeUnread writes the receipt of a request whose answer nobody reads, and
// then forwards or refuses it.
func (g *request) concludeUnread(w http.ResponseWriter, r *http.Request, x *exchange, body []byte) {
	setPlaceholders(r, x.placeholders())
	outcome, refusal := kernel.Answered, (*apiError)(nil)
	switch {
	case x.turn.Refused:
		refusal = errPolicyRefusal.withMessage(g.app.Policy.RefusalText)
		outcome = kernel.Refused
	case g.blocksUnknown():
		refusal, outcome = errUnknownBlocked, kernel.Refused
	}
	if refusal != nil {
		x.coverage.BytesForwarded = 0
		x.notJudged("refused before generation")
	} else {
		x.unknown("response", noDialect, 0)
		x.notJudged(noDialect)
	}
	err := x.commit(r.Context(), outcome, func(kernel.Turn) string {
		if refusal != nil {
			return refusal.Message
		}
		return ""
	})
	setPlaceholders(r, x.placeholders())
	if err != nil {
		g.storeFailed("commit", err)
		g.refundQuota(r.Context())
		g.setTurnHeader(w.Header(), x)
		writeError(w, errGovernor)
		return
	}
	tell := func(h http.Header) { g.tellUnread(h, x) }
	if refusal != nil {
		tell(w.Header())
		w.Header().Del(uninspectedHeader)
		writeDialectError(w, askDialect, refusal, refusal.Status)
		return
	}
	g.noteUnread(r)
	g.pass(w, r, body, tell)
}

// uninspectedHeader tells the client what of an exchange nobody looked at.
const uninspectedHeader = "X-Lex-Uninspected"

// tellUnread names the turn and its receipt, and says that the answer was not
// inspected.
func (g *request) tellUnread(h http.Header, x *exchange) {
	g.setTurnHeader(h, x)
	if g.handler.Headers == "none" || x.mode == kernel.Observe {
		return
	}
	h.Set("X-Lex-Receipt-Id", x.receipt.ID)
	h.Set(uninspectedHeader, "answer")
}

// noteUnread shows the operator that answers pass unread: in a metric, and in the
// log once a path.
func (g *request) noteUnread(r *http.Request) {
	g.app.metrics.uninspected.WithLabelValues("answer").Inc()
	if g.handler.unread.first(r.URL.Path) {
		g.handler.logger.Warn("no dialect claims this path: its answers pass uninspected; see the option unknown", zap.String("path", excerpt(r.URL.Path, 120)))
	}
}

// seenPaths remembers a bounded number of paths.
type seenPaths struct {
	mu   sync.Mutex
	seen map[string]bool
}

// maxSeenPaths is how many paths are remembered; the log says nothing of more.
const maxSeenPaths = 256

// first reports whether a path is new.
func (s *seenPaths) first(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[path] || len(s.seen) == maxSeenPaths {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[string]bool)
	}
	s.seen[path] = true
	return true
}

// mediaTypes are those that a receipt names; a caller may write anything there.
var mediaTypes = []string{
	"application/json", "application/x-ndjson", "application/octet-stream", "application/x-www-form-urlencoded", "application/xml",
	"application/pdf", "multipart/form-data", "text/plain", "text/html", "image/png", "image/jpeg", "audio/mpeg", "audio/wav",
}

// mediaName is a media type as receipts name it.
func mediaName(media string) string {
	if slices.Contains(mediaTypes, media) {
		return media
	}
	return "other content"
}

// pass forwards a request whose body was read.
func (g *request) pass(w http.ResponseWriter, r *http.Request, body []byte, tell func(http.Header)) {
	out := g.handler.outbound(r.Context(), r)
	if !opensWebSocket(r) {
		out.Header = out.Header.Clone()
		dropHopHeaders(out.Header)
	}
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.ContentLength, out.TransferEncoding, out.Trailer = int64(len(body)), nil, nil
	g.passOn(w, out, tell)
}

// passOn runs the next handlers and answers for them when they fail: Caddy's
// own error log would print the request's headers and query, keys included.
func (g *request) passOn(w http.ResponseWriter, r *http.Request, tell func(http.Header)) {
	err := passCleanly(w, r, g.next, tell)
	if err == nil {
		return
	}
	g.behindFailed(r.Context(), err)
	if status := statusOf(err); status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		writeError(w, errUpstreamStatus.withStatus(status).withMessage(http.StatusText(status)+"."))
		return
	}
	writeError(w, errProviderMissing)
}

// passCleanly runs the next handlers for a request whose answer is not governed.
// Of the answer's headers that are in our name tell writes ours; nil writes none.
func passCleanly(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, tell func(http.Header)) error {
	pw := &passingWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, tell: tell}
	err := next.ServeHTTP(pw, r)
	dropLexHeaders(w.Header(), pw.ours) // of the trailers
	return err
}

// A passingWriter lets an answer through that is not governed, without what
// speaks in our name.
type passingWriter struct {
	*caddyhttp.ResponseWriterWrapper
	tell  func(http.Header)
	ours  http.Header // the headers that tell wrote
	final bool
}

// WriteHeader takes our names from the upstream's headers and writes our own.
func (w *passingWriter) WriteHeader(status int) {
	if w.final {
		return
	}
	dropLexHeaders(w.Header(), nil)
	if w.final = status >= http.StatusOK || status == http.StatusSwitchingProtocols; w.final && w.tell != nil {
		w.tell(w.Header())
		w.ours = lexHeaders(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer.
func (w *passingWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK) // without effect after the first
	return w.ResponseWriter.Write(p)
}

// ReadFrom writes the answer.
func (w *passingWriter) ReadFrom(r io.Reader) (int64, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError flushes what was written.
func (w *passingWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// lexHeaders are the headers in our name.
func lexHeaders(h http.Header) http.Header {
	ours := make(http.Header)
	for name, values := range h {
		if strings.HasPrefix(name, "X-Lex-") {
			ours[name] = values
		}
	}
	return ours
}

// dropLexHeaders keeps an upstream from speaking in our name, in headers, in
// trailers and in what announces trailers. What we wrote ourselves stays.
func dropLexHeaders(h, ours http.Header) {
	for name := range h {
		bare := http.CanonicalHeaderKey(strings.TrimPrefix(name, http.TrailerPrefix))
		if strings.HasPrefix(bare, "X-Lex-") {
			delete(h, name)
		}
	}
	for name, values := range ours {
		h[name] = values
	}
	announced := h.Values("Trailer")
	h.Del("Trailer")
	for _, line := range announced {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" && !strings.HasPrefix(http.CanonicalHeaderKey(name), "X-Lex-") {
				h.Add("Trailer", name)
			}
		}
	}
}

// Interface guards
var (
	_ io.ReaderFrom                   = (*passingWriter)(nil)
	_ interface{ FlushError() error } = (*passingWriter)(nil)
)
