package caddymodule

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// mayCarryPrompt reports whether a request that no dialect claims could bring
// text to a model: it has a body, or it opens a connection of another protocol
// (a realtime API over WebSocket). What does neither is not ours.
func mayCarryPrompt(r *http.Request) bool {
	return upgrades(r) || r.ContentLength != 0 && r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

func upgrades(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || r.Method == http.MethodConnect
}

// interceptUnknown serves a request on a path that no dialect claims. JSON that
// resembles a dialect is assessed as one; the rest is forwarded with a receipt
// that says it was not inspected, or refused, as configured.
func (g *request) interceptUnknown(w http.ResponseWriter, r *http.Request) {
	var apiErr *apiError
	if g.caller, apiErr = g.identify(r.Context(), r, true); apiErr != nil {
		writeError(w, apiErr)
		return
	}
	if g.handler.Unknown == "pass" || !mayCarryPrompt(r) {
		g.ungoverned = g.next.ServeHTTP(w, g.handler.outbound(r.Context(), r))
		return
	}
	body, apiErr := readBody(w, r, g.app.Limits.Body)
	if apiErr != nil {
		writeError(w, apiErr)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if d := resembled(r, body); d != nil {
		g.interceptResembling(w, r, d)
		return
	}
	if len(body) == 0 && !upgrades(r) {
		g.pass(w, r, body)
		return
	}
	if apiErr := g.takeRun(r.Context(), w); apiErr != nil {
		writeError(w, apiErr)
		return
	}
	g.recordUnknown(w, r, body)
}

// resembled is the dialect that a body on a foreign path can be read as.
func resembled(r *http.Request, body []byte) wire.Dialect {
	d, ok := wire.Resembles(body)
	if !ok || r.Method != http.MethodPost {
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
func (g *request) interceptResembling(w http.ResponseWriter, r *http.Request, d wire.Dialect) {
	t := g.readCall(w, r, d)
	if t == nil {
		return
	}
	t.x.endpoint = endpointOf(nil)
	if err := t.assess(r.Context()); err != nil {
		t.failed(w, "session", err)
		return
	}
	setPlaceholders(r, t.x.placeholders())
	t.x.unknown("response", noDialect, 0)
	if t.x.turn.Refused {
		t.x.coverage.BytesForwarded = 0
	}
	if t.blocksUnknown() && !t.x.turn.Refused {
		t.refuseUnknown(w)
		return
	}
	t.x.notJudged(noDialect)
	if err := t.commit(kernel.Answered, t.app.sent("", "")); err != nil {
		t.failed(w, "commit", err)
		return
	}
	t.tell(w.Header())
	if t.x.turn.Refused {
		writeDialectError(w, d, &apiError{http.StatusForbidden, t.app.Policy.RefusalText, "policy_refusal"}, http.StatusForbidden)
		return
	}
	g.pass(w, r, t.body)
}

// noDialect is why nothing of an answer or request could be read.
const noDialect = "no dialect for this endpoint"

var (
	errUnknownBlocked  = &apiError{http.StatusForbidden, "This endpoint is not governed here, and requests that cannot be inspected are not forwarded.", "unknown_endpoint"}
	errProviderMissing = &apiError{http.StatusBadGateway, "The service behind the governor could not be reached.", "upstream_failed"}
)

// recordUnknown writes the receipt of a request that nobody can read, and then
// forwards or refuses it.
func (g *request) recordUnknown(w http.ResponseWriter, r *http.Request, body []byte) {
	block := g.blocksUnknown()
	x, err := g.unknownExchange(r, body, block)
	if err != nil {
		g.storeFailed("session", err)
		g.giveBackRun(r.Context())
		writeError(w, errGovernor)
		return
	}
	outcome, answer := kernel.Answered, g.app.sent("", "")
	if block {
		outcome, answer = kernel.Refused, func(kernel.Turn) string { return errUnknownBlocked.Message }
	}
	if err := x.commit(r.Context(), outcome, answer); err != nil {
		g.storeFailed("commit", err)
		g.giveBackRun(r.Context())
		writeError(w, errGovernor)
		return
	}
	setPlaceholders(r, x.placeholders())
	if block {
		writeError(w, errUnknownBlocked)
		return
	}
	g.pass(w, r, body)
}

// unknownExchange is an exchange without evidence: the session is one of its
// own, so that traffic which nobody reads cannot calm another session.
func (g *request) unknownExchange(r *http.Request, body []byte, block bool) (*exchange, error) {
	key := sessionKey(g.caller.namespace, randomID())
	x := &exchange{
		app: g.app, engine: g.engine, mode: kernel.Mode(g.handler.Mode), key: key, publicID: publicID(key),
		endpoint: endpointOf(nil), dialect: "unknown", started: time.Now(),
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	x.unknown("request", noDialect+": "+bounded(media), len(body))
	x.unknown("response", noDialect, 0)
	x.notRun(detectorLocal, noDialect)
	x.notJudged(noDialect)
	if !block {
		x.coverage.BytesForwarded = len(body)
	}
	if err := x.open(r.Context()); err != nil {
		return nil, err
	}
	return x, x.step()
}

// bounded keeps a header value that ends in a receipt short and plain.
func bounded(media string) string {
	if media == "" || len(media) > 60 || strings.ContainsFunc(media, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "other content"
	}
	return media
}

// pass forwards a request whose body was read.
func (g *request) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	out := g.handler.outbound(r.Context(), r)
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.ContentLength = int64(len(body))
	g.passOn(w, out)
}

// passOn runs the next handlers and answers for them when they fail: Caddy's
// own error log would print the request's headers and query, keys included.
func (g *request) passOn(w http.ResponseWriter, r *http.Request) {
	err := g.next.ServeHTTP(w, r)
	if err == nil {
		return
	}
	g.behindFailed(r.Context(), err)
	if status := statusOf(err); status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		writeError(w, &apiError{status, http.StatusText(status) + ".", "upstream_error"})
		return
	}
	writeError(w, errProviderMissing)
}
