package caddymodule

import (
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// mayCarryPrompt reports whether a request that no dialect claims could bring
// text to a model: it has a body, or it opens a connection of another protocol
// (a realtime API over WebSocket). What does neither is not ours.
func mayCarryPrompt(r *http.Request) bool { return upgrades(r) || carriesBody(r) }

// carriesBody reports whether a request has a body, whatever its method.
func carriesBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody && !tunnels(r)
}

// tunnels reports whether a request opens a WebSocket over HTTP/2 or HTTP/3 (RFC 8441, RFC 9220).
// Its stream has the frames of the WebSocket and no body, and does not end before the WebSocket
// does. reverse_proxy knows such requests by the same signs, and asks its upstream for an upgrade.
func tunnels(r *http.Request) bool {
	return r.Method == http.MethodConnect &&
		(r.ProtoMajor == 2 && r.Header.Get(":protocol") == "websocket" || r.ProtoMajor == 3 && r.Proto == "websocket")
}

func upgrades(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || r.Method == http.MethodConnect
}

func asksWebSocket(r *http.Request) bool {
	return r.Method == http.MethodConnect || strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// opensWebSocket reports whether a request asks for a WebSocket on a path that no
// dialect claims. That is how realtime APIs are spoken to; every other upgrade
// (h2c above all) is a way around what is read here.
func (h *Handler) opensWebSocket(r *http.Request) bool {
	_, claimed := h.dialect(r)
	return !claimed && asksWebSocket(r)
}

// asksWebSocketForCalls reports whether a request asks for a WebSocket where a dialect's calls are
// governed. Without its upgrade it would be a GET that no provider knows there, and clients that
// go on over HTTP when they are told to (426) would try again and again.
func (h *Handler) asksWebSocketForCalls(r *http.Request) bool {
	_, claimed := h.dialect(r)
	return claimed && asksWebSocket(r)
}

// noModelText is why nothing of an answer had to be read.
const noModelText = "carries no text of a model"

// What becomes of what no dialect knows: the values of Handler.Unknown.
const (
	unknownInspect = "inspect"
	unknownObserve = "observe"
	unknownPass    = "pass"
	unknownBlock   = "block"
)

// noDialect is why nothing of an answer or request could be read.
const noDialect = "no dialect for this endpoint"

// onlyWords is why nothing of a request was judged although its texts are read.
const onlyWords = "no text but single words"

// inUnknownCharset is why not all of a request counts as read: a server may know the charset.
const inUnknownCharset = "in a charset that is not known; read as UTF-8"

// notAsEncoded is why not all of a request counts as read: a server may undo the encoding.
const notAsEncoded = "encoded otherwise than its header says; read as it is and as far as it decodes"

// What receipts and metrics call a path that no dialect claims, and a body that none
// can read.
const (
	endpointUnknown = "unknown"
	dialectUnknown  = "unknown"
)

// unknownDialect has the errors that are answered where no dialect is known.
var unknownDialect, _ = wire.Named("openai")

// interceptOther governs a request on a path that no dialect claims, by what is known
// of the path and by the option `unknown`. It returns an error as long as nothing is
// written and the path is not known.
func (g *request) interceptOther(w http.ResponseWriter, r *http.Request, known wire.Endpoint) error {
	g.known, g.endpoint, g.dialectName = known, cmp.Or(known.Name, endpointUnknown), dialectUnknown
	err := g.serveOther(w, r)
	if err == nil {
		return nil
	}
	if d, claimed := g.handler.dialect(r); claimed {
		g.failures.answerIn(w, r, d, err)
	} else if g.isKnown() {
		g.failures.answerIn(w, r, known.Family, err)
	} else {
		return err
	}
	return nil
}

// isKnown reports whether the request is for an endpoint of a provider that is no call
// of a model.
func (g *request) isKnown() bool { return g.known.Name != "" }

// isWatched reports whether nothing is refused for its texts. The upstream must be
// asked at the very path that was looked at, which two headers can change.
func (g *request) isWatched(h http.Header) bool {
	return g.known.Treatment == wire.Watched && h.Get("X-Original-Url") == "" && h.Get("X-Rewrite-Url") == ""
}

// serveOther is interceptOther, whose errors have no shape yet.
func (g *request) serveOther(w http.ResponseWriter, r *http.Request) error {
	ctx, started := r.Context(), time.Now()

	// A request without text for a model is not governed; where a key is required
	// its caller must have one all the same.
	if !mayCarryPrompt(r) {
		var apiErr *apiError
		if g.caller, apiErr = g.auth.identify(ctx, r, true); apiErr != nil {
			return g.reject(apiErr)
		}
		g.app.metrics.ungoverned.WithLabelValues(withoutText).Inc()
		g.ungoverned = passCleanly(w, g.handler.outbound(ctx, r), g.next, nil)
		return nil
	}
	if apiErr := g.authenticate(w, r, true); apiErr != nil {
		return g.reject(apiErr)
	}
	if g.handler.asksWebSocketForCalls(r) {
		return g.reject(errWebSocket)
	}
	if g.handler.Unknown == unknownPass {
		if apiErr := g.consumeQuota(ctx, w); apiErr != nil {
			return g.reject(apiErr)
		}
		g.app.metrics.ungoverned.WithLabelValues(wasPassed).Inc()
		g.ungoverned = g.passCounted(ctx, w, g.handler.outboundUnread(ctx, r), nil)
		return nil
	}

	// Read the body. Without one there is nothing to assess.
	var body []byte
	if !tunnels(r) {
		var apiErr *apiError
		if body, apiErr = readBody(w, r, g.app.Limits.Body); apiErr != nil {
			return g.reject(apiErr)
		}
	}
	if len(body) == 0 && !upgrades(r) {
		g.app.metrics.ungoverned.WithLabelValues(withoutText).Inc()
		g.pass(w, r, body, nil)
		return nil
	}

	// A body may leave no doubt which API it is for.
	if d, ok := wire.MatchBody(r.URL, body); ok && !encoded(r.Header) && !inOtherCharset(r.Header) {
		g.dialectName = d.Name()
		c := &interception{request: g, r: r, dialect: d, started: started, resembling: true}
		if err := c.serveBody(ctx, w, body); err != nil {
			c.answerError(w, err)
		}
		return nil
	}

	// A body that resembles a dialect is read as one. What its API answers is not
	// known, so the answer passes unread, and a refusal is an HTTP error: that is one
	// in every API, while the refusal of another dialect would break the caller's
	// SDK.
	if d := g.resembled(r, body); d != nil {
		g.dialectName = d.Name()
		c := &interception{request: g, r: r, dialect: d, started: started, resembling: true}
		if err := c.serveResembling(ctx, w, body); err != nil {
			if c.opened != nil {
				c.setTurnHeader(w.Header(), c.opened)
			}
			g.failures.answerIn(w, r, g.errorShape(d), err)
		}
		return nil
	}
	if apiErr := g.consumeQuota(ctx, w); apiErr != nil {
		return g.reject(apiErr)
	}
	assessed, err := g.assessUnknown(ctx, r, body, started)
	if err != nil {
		return g.fail(ctx, "session", err)
	}
	return g.passUnread(w, r, assessed, body)
}

// resembled is the dialect that a body on a foreign path can be read as.
func (g *request) resembled(r *http.Request, body []byte) wire.Dialect {
	d, ok := wire.Resembles(body)
	if !ok || !g.inspectsUnknown() || encoded(r.Header) || g.isWatched(r.Header) { // a watched body stays as it is
		return nil
	}
	if _, err := d.Request(body); err != nil {
		return nil // not valid in that dialect after all
	}
	return d
}

// errorShape is the shape of errors on this path: its family's if it is known, or that
// of the dialect whose clients probably call it.
func (g *request) errorShape(d wire.Dialect) errorShape {
	if g.isKnown() {
		return g.known.Family
	}
	return d
}

func (c *interception) serveResembling(ctx context.Context, w http.ResponseWriter, body []byte) error {
	if apiErr := c.parse(body); apiErr != nil {
		return c.reject(apiErr)
	}
	if apiErr := c.consumeQuota(ctx, w); apiErr != nil {
		return c.reject(apiErr)
	}
	if err := c.openSession(ctx); err != nil {
		return err
	}
	assessed, err := c.assess(ctx)
	if err != nil {
		return c.fail(ctx, "session", err)
	}
	return c.passUnread(w, c.r, assessed, c.body)
}

// assessUnknown assesses a body in no dialect, as far as it is to be read and can
// be. The session is one of its own unless the caller names one. Unread traffic
// never joins a session of read turns, so it cannot lower that session's pressure.
func (g *request) assessUnknown(ctx context.Context, r *http.Request, body []byte, started time.Time) (*govern.Assessed, error) {
	var texts, silent []wire.Part
	var unreadable error
	watched := g.isWatched(r.Header)
	loosely := (g.inspectsUnknown() || watched && g.handler.Unknown == unknownBlock) && len(body) > 0
	if loosely {
		texts, silent, unreadable = loose.Body(r.Header.Get("Content-Type"), codings(r.Header), body, g.app.Limits.Body)
	}
	input, media, read := govern.ReadParts(texts)

	turn := g.interceptedTurn(started)
	turn.Endpoint, turn.Dialect = g.endpoint, dialectUnknown
	if watched {
		turn.Mode, turn.Watched = kernel.Observe, true
	}
	if id := r.Header.Get("X-Lex-Session"); read && !watched && validSessionID(id) {
		turn.Key, turn.Eval = govern.SessionKey(g.caller.namespace, id), g.auth.isEval(r, id)
	} else {
		turn.Key = govern.SessionKey(g.caller.namespace, randomID())
	}
	turn.PublicID = govern.PublicID(turn.Key)
	opened, err := g.policy.governor.Open(ctx, turn)
	if err != nil {
		return nil, err
	}

	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	coverage := opened.Coverage
	coverage.BytesForwarded = len(body)
	textKnown := g.isKnown() && g.known.Treatment != wire.Unread
	if !read {
		why := noDialect
		if textKnown && loosely && unreadable == nil {
			why = onlyWords
		}
		coverage.NotKnown("request", why+": "+mediaName(kind), len(body))
		g.app.metrics.uninspected.WithLabelValues("request").Inc()
		return opened.NotRead(why)
	}
	inspected := max(0, len(body)-media) // files can be larger than the body that they are packed in
	if unreadable != nil {               // only the texts beside it were read
		inspected = min(inspected, textSize(texts))
		why := string(wire.File) + ": a part that is no text"
		switch {
		case errors.Is(unreadable, loose.ErrCoding):
			why = notAsEncoded
		case errors.Is(unreadable, loose.ErrCharset):
			why = inUnknownCharset
		}
		coverage.Skip("request", why, max(0, len(body)-media-inspected))
	}
	if media > 0 {
		coverage.Skip("request", string(wire.File)+": in base64", media)
	}
	for _, p := range silent {
		coverage.SkipOnce("request", string(p.Kind), p.Bytes)
		inspected = max(0, inspected-p.Bytes)
	}
	if !textKnown {
		coverage.NotKnown("request", noDialect+": "+mediaName(kind)+"; its texts were read", 0)
	}
	coverage.Inspect("request", govern.DetectorLocal, inspected)
	return opened.Assess(ctx, input)
}

// textSize is the size of the texts among the parts.
func textSize(parts []wire.Part) (bytes int) {
	for _, p := range parts {
		bytes += len(p.Text)
	}
	return bytes
}

// coverAnswer records what an answer carries that nobody reads, and returns why nobody
// does. uninspected says that there may be something of a model in it.
func (g *request) coverAnswer(coverage *govern.Coverage) (why string, uninspected bool) {
	switch {
	case !g.isKnown() || g.known.Carries == wire.Text:
		coverage.NotKnown("response", noDialect, 0)
		return noDialect, true
	case g.known.Carries != "":
		coverage.Skip("response", string(g.known.Carries)+": not read by a detector on this path", 0)
		return noDialect, true
	}
	coverage.Skip("response", noModelText, 0)
	return noModelText, false
}

// passUnread commits the turn of a request whose answer is not read, and then forwards
// or refuses the request.
func (g *request) passUnread(w http.ResponseWriter, r *http.Request, assessed *govern.Assessed, body []byte) error {
	opened, attack := assessed.Opened, assessed.Turn.Refused
	if g.forbidsUnknown() && !g.isWatched(r.Header) && !attack {
		if err := assessed.RefuseUnknown(); err != nil {
			return g.fail(r.Context(), "session", err)
		}
	}
	setPlaceholders(r, turnPlaceholders(opened, assessed.Turn, ""))
	traceAssessed(r.Context(), &assessed.Turn)
	var refusal *apiError
	switch {
	case attack:
		refusal = errPolicyRefusal.withMessage(g.policy.RefusalText)
	case assessed.Turn.Refused:
		refusal = errUnknownBlocked
	}
	outcome, why, told, uninspected := kernel.Refused, "refused before generation", "", false
	left := refusal == nil && r.Context().Err() != nil // the client, or Caddy ended, while a guard was asked
	switch {
	case refusal != nil:
		opened.Coverage.BytesForwarded, told = 0, refusal.Message
	case left:
		opened.Coverage.BytesForwarded, outcome, why = 0, kernel.ClientGone, "no output"
		g.asked.Store(true) // hanging up makes no call free
	default:
		outcome = kernel.Answered
		why, uninspected = g.coverAnswer(opened.Coverage)
	}
	receipt, err := g.commit(r, assessed.NotJudged(why), outcome, sentAs(told))
	if err != nil {
		g.setTurnHeader(w.Header(), opened)
		return g.fail(r.Context(), "commit", err)
	}
	if left {
		panic(http.ErrAbortHandler)
	}
	if refusal != nil {
		g.setReceiptHeaders(w.Header(), opened, receipt)
		writeDialectError(w, r, g.errorShape(unknownDialect), refusal)
		return nil
	}
	if uninspected {
		g.noteUnread(r, receipt.ID)
	}
	g.pass(w, r, body, func(h http.Header) {
		g.setReceiptHeaders(h, opened, receipt)
		if uninspected && g.tellsClient() {
			h.Set(uninspectedHeader, "answer")
		}
	})
	return nil
}

// uninspectedHeader tells the client what was not inspected.
const uninspectedHeader = "X-Lex-Uninspected"

// noteUnread shows the operator that answers pass unread: in a metric, and in the
// log once for each form of a path.
func (g *request) noteUnread(r *http.Request, receipt string) {
	g.app.metrics.uninspected.WithLabelValues("answer").Inc()
	if path := formOf(r.URL.Path); g.handler.unread.first(path) {
		g.handler.logger.Warn("no dialect claims this path: its answers pass uninspected; see the options dialect and unknown",
			zap.String("path", path), zap.String("receipt_id", receipt))
	}
}

// formOf is a path as the log may show it: the words and versions of known APIs, and * for
// all else, which may be the name of a model, a text or a credential.
func formOf(path string) string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i, s := range segments {
		if low := strings.ToLower(s); !wordsOfAPIs()[low] && !versionOfAPI.MatchString(low) {
			segments[i] = "*"
		}
	}
	return "/" + strings.Join(segments[:min(len(segments), maxForm)], "/")
}

// maxForm is how many segments the log shows of a path.
const maxForm = 12

var versionOfAPI = regexp.MustCompile(`^v[0-9]{1,2}((alpha|beta)[0-9]{0,2})?$`)

// wordsOfAPIs are the words in the paths of known endpoints and calls.
var wordsOfAPIs = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	for _, e := range wire.Endpoints() {
		for _, path := range e.Paths {
			for word := range strings.FieldsFuncSeq(path, func(c rune) bool { return strings.ContainsRune("/|*+", c) }) {
				words[word] = true
			}
		}
	}
	// What governed calls have besides, and what often stands before.
	for _, word := range []string{"api", "chat", "completions", "generate", "mcp", "messages", "openai", "responses"} {
		words[word] = true
	}
	return words
})

// seenPaths remembers a bounded number of forms of paths.
type seenPaths struct {
	mu   sync.Mutex
	seen map[string]bool
}

// maxSeenPaths is how many are remembered; the log says nothing of more.
const maxSeenPaths = 256

// first reports whether a form is new.
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

// outboundUnread is outbound for a request on a path that no dialect claims, which may open a
// WebSocket and nothing else.
func (h *Handler) outboundUnread(ctx context.Context, r *http.Request) *http.Request {
	out := h.outbound(ctx, r)
	if !h.opensWebSocket(r) {
		out.Header = out.Header.Clone()
		dropHopHeaders(out.Header)
	}
	return out
}

// pass forwards a request whose body was read, and answers for the next handlers
// when they fail: Caddy's own error log would print the request's headers and
// query, keys included.
func (g *request) pass(w http.ResponseWriter, r *http.Request, body []byte, tell func(http.Header)) {
	out := g.handler.outboundUnread(r.Context(), r)
	if !tunnels(r) {
		setBody(out, body)
	}
	begun := false
	err := g.passCounted(r.Context(), w, out, func(h http.Header) {
		begun = true
		if tell != nil {
			tell(h)
		}
	})
	switch {
	case err != nil:
		g.behindEnded(r.Context(), err)
	case begun || !upgrades(r):
		return
	default: // reverse_proxy drops an answer 101 to a request that went on without its upgrade
		g.refundQuota(r.Context())
	}
	if begun {
		panic(http.ErrAbortHandler) // an error of ours must not follow half of an answer
	}
	e := cmp.Or(refusedBehind(err), errProviderMissing)
	if tell != nil {
		tell(w.Header())
		w.Header().Del(uninspectedHeader) // the answer is ours
	}
	if g.isKnown() {
		writeDialectError(w, r, g.known.Family, e)
		return
	}
	writeError(w, e)
}

// passCounted forwards a request that may count on a plan. As nobody reads the answer, its
// status and its end tell whether the provider failed. ctx is the request's.
func (g *request) passCounted(ctx context.Context, w http.ResponseWriter, r *http.Request, tell func(http.Header)) error {
	failed := true // as long as nothing has ended: a panic tells that the answer broke off
	defer func() {
		if failed {
			g.refundQuota(ctx)
		}
	}()
	g.asked.Store(true)
	err := passCleanly(w, r, g.next, func(status int, h http.Header) {
		if providerFailed(status) {
			g.refundQuota(ctx) // before the client has the answer, and leaves
		}
		if tell != nil {
			tell(h)
		}
	})
	failed = err != nil && providerFailed(statusOf(err))
	return err
}
