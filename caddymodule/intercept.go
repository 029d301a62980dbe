package caddymodule

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// An interceptTurn is one call of a caller's own to the model's API, on its
// way through.
type interceptTurn struct {
	*request
	http    *http.Request
	dialect wire.Dialect
	call    wire.Request
	body    []byte
	x       *exchange
}

// intercept governs a call in a dialect that we read.
func (g *request) intercept(w http.ResponseWriter, r *http.Request, d wire.Dialect) {
	t := g.readCall(w, r, d)
	if t == nil {
		return
	}
	if err := t.assess(r.Context()); err != nil {
		t.failed(w, "session", err)
		return
	}
	setPlaceholders(r, t.x.placeholders())
	switch {
	case t.x.turn.Refused:
		t.refuse(w)
	case len(t.x.coverage.Unknown) > 0 && t.blocksUnknown():
		t.refuseUnknown(w, errUnknownContent)
	default:
		t.forward(w)
	}
}

// blocksUnknown reports whether what no dialect knows is kept from passing.
func (g *request) blocksUnknown() bool {
	return g.handler.Unknown == "block" && g.handler.Mode == string(kernel.Enforce)
}

// refuseUnknown answers a request with parts that nobody can read.
func (t *interceptTurn) refuseUnknown(w http.ResponseWriter, e *apiError) {
	t.x.notJudged("refused before generation")
	t.x.coverage.BytesForwarded = 0
	err := t.commit(kernel.Refused, func(kernel.Turn) string { return e.Message })
	if err != nil {
		t.failed(w, "commit", err)
		return
	}
	t.tell(w.Header())
	writeDialectError(w, t.dialect, e, e.Status)
}

// readCall identifies the caller and reads the request; nil means that it has
// answered, in the caller's dialect.
func (g *request) readCall(w http.ResponseWriter, r *http.Request, d wire.Dialect) *interceptTurn {
	t := &interceptTurn{request: g, http: r, dialect: d}
	started := time.Now()
	apiErr := t.authenticate(w)
	if apiErr == nil {
		apiErr = t.read(w)
	}
	if apiErr == nil {
		apiErr = t.consumeQuota(r.Context(), w)
	}
	if apiErr != nil {
		t.reject(w, apiErr)
		return nil
	}
	t.x = t.open(started)
	return t
}

func (t *interceptTurn) authenticate(w http.ResponseWriter) *apiError {
	var apiErr *apiError
	if t.caller, apiErr = t.identify(t.http.Context(), t.http, true); apiErr != nil {
		return apiErr
	}
	return t.take(t.http.Context(), w, t.app.Limits.Intercepted, t.caller.subject("intercepted"))
}

// read takes the body as it came; it is parsed by the dialect, and exactly
// these bytes are forwarded, but for what the history loses.
func (t *interceptTurn) read(w http.ResponseWriter) *apiError {
	if c := t.http.Header.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return errEncodedBody // what is not read is not forwarded
	}
	var apiErr *apiError
	if t.body, apiErr = readBody(w, t.http, t.app.Limits.Body); apiErr != nil {
		return apiErr
	}
	return t.parse()
}

func (t *interceptTurn) parse() *apiError {
	call, err := t.dialect.Request(t.body)
	if err != nil {
		return errBadRequest.withMessage(err.Error())
	}
	t.call = call
	if t.inspectsUnknown() { // as a text a member that nobody knows is cleaned like the others
		for i := range call.Parts {
			if p := &call.Parts[i]; p.Kind == wire.Unknown && p.Message > 0 {
				p.Text = looseText(*p, t.body)
			}
		}
	}
	return nil
}

// open begins the exchange on the session that the caller names, else on the
// one that the resent conversation leads to.
func (t *interceptTurn) open(started time.Time) *exchange {
	talk := newConversation(t.caller.namespace, t.call.Parts)
	id := t.http.Header.Get("X-Lex-Session")
	named := validSessionID(id)
	x := &exchange{
		app: t.app, engine: t.engine, mode: kernel.Mode(t.handler.Mode), eval: t.isEval(t.http, id), namespace: t.caller.namespace,
		endpoint: endpointOf(t.dialect), dialect: t.dialect.Name(), model: t.call.Model,
		prompt: t.call.Prompt(), started: started, talk: &talk, snapshots: !named,
		key: talk.past(), publicID: publicID(talk.opening()),
		asking: talk.present(), said: newestDigests(t.call.Parts), inspectLimit: t.handler.InspectLimit, oversize: t.handler.Oversize,
	}
	switch {
	case named:
		x.key = sessionKey(t.caller.namespace, id)
		x.publicID = publicID(x.key)
	case x.key == "":
		x.key = sessionKey(t.caller.namespace, randomID())
	}
	return x
}

func (t *interceptTurn) assess(ctx context.Context) error {
	if err := t.x.open(ctx); err != nil {
		return err
	}
	removed, judged, err := t.readHistory(ctx)
	if err != nil {
		return err
	}
	newest, instructions := t.x.coverNewest(t.body, t.call.Parts, t.inspectsUnknown())
	if err := t.x.assess(ctx, append(judged, newest...), instructions); err != nil {
		return err
	}
	if len(removed) > 0 {
		t.body = wire.Redact(t.body, removed, removedText)
	}
	t.x.coverage.BytesForwarded = len(t.body)
	return nil
}

// refuse answers a refused prompt without asking the model.
func (t *interceptTurn) refuse(w http.ResponseWriter) {
	t.x.notJudged("refused before generation")
	t.x.coverage.BytesForwarded = 0
	if err := t.commit(kernel.Refused, t.app.sent("", "")); err != nil {
		t.failed(w, "commit", err)
		return
	}
	t.writeRefusal(w)
}

// writeRefusal sends the refusal of a committed turn, as the first and only
// bytes of the answer.
func (t *interceptTurn) writeRefusal(w http.ResponseWriter) {
	t.tell(w.Header())
	if t.handler.RefuseWith.As == "status" {
		writeDialectError(w, t.dialect, errPolicyRefusal.withMessage(t.app.Policy.RefusalText).withStatus(t.handler.RefuseWith.Status), t.handler.RefuseWith.Status)
		return
	}
	if t.call.Stream {
		h := w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(t.dialect.RefusalStream(t.refusal(), false)) // a failure means that the client left
		return
	}
	_ = writeBody(w, http.StatusOK, "application/json", t.dialect.Refusal(t.refusal()))
}

func (t *interceptTurn) refusal() wire.Refusal {
	return wire.Refusal{
		ID: t.x.receipt.ID, Model: t.call.Model, Text: t.app.Policy.RefusalText,
		Created: t.x.started.Unix(), Choices: t.call.Choices,
		Place: t.refusalPlace(),
	}
}

// refusalPlace is the configured one, but for structured output: prose in its
// place makes SDKs throw.
func (t *interceptTurn) refusalPlace() wire.Place {
	if t.call.Structured {
		return wire.OnlyRefusal
	}
	return wire.Place(t.handler.RefuseWith.As)
}

// commit makes the turn durable and shows it to the access log.
func (t *interceptTurn) commit(outcome kernel.Outcome, sent sentText) error {
	err := t.x.commit(t.http.Context(), outcome, sent)
	setPlaceholders(t.http, t.x.placeholders())
	return err
}

// tell names the turn, and its receipt once there is one, in the response
// headers, as configured.
func (t *interceptTurn) tell(h http.Header) {
	t.setTurnHeader(h, t.x)
	if t.handler.Headers == "none" || t.x.mode == kernel.Observe || !t.x.persisted {
		return
	}
	h.Set("X-Lex-Receipt-Id", t.x.receipt.ID)
	if t.handler.Headers != "full" {
		return
	}
	h.Set("X-Lex-Health-Band", string(t.x.turn.Band))
	h.Set("X-Lex-Margin", strconv.FormatFloat(t.x.turn.M, 'f', 4, 64))
	h.Set("X-Lex-Coverage", coverageWord(t.x.coverage))
}

func coverageWord(c kernel.Coverage) string {
	if c.Complete() {
		return "complete"
	}
	return "partial"
}

// forward sends the call on and governs the answer on its way back.
func (t *interceptTurn) forward(w http.ResponseWriter) {
	ctx, cancel := context.WithCancel(t.http.Context())
	defer cancel()
	gw := newGovernedWriter(w, t, cancel)
	err, panicked := t.callNext(gw, t.upstreamRequest(ctx))
	gw.finish(t.http.Context(), err)
	if panicked && !gw.answered() {
		panic(http.ErrAbortHandler) // the client must see that the answer is cut
	}
}

// upstreamRequest is the caller's request with the body that was read, without
// what is addressed to Lex, in no encoding that the checks cannot read, and
// without a way to turn the connection into another protocol (RFC 9110, 7.6.1
// and 7.8), in which nothing would be read any more.
func (t *interceptTurn) upstreamRequest(ctx context.Context) *http.Request {
	r := t.handler.outbound(ctx, t.http)
	r.Header = r.Header.Clone()
	dropHopHeaders(r.Header)
	r.Trailer = nil // what came behind the body was not read
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("Content-Length", strconv.Itoa(len(t.body)))
	r.Body = io.NopCloser(bytes.NewReader(t.body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(t.body)), nil }
	r.ContentLength = int64(len(t.body))
	r.TransferEncoding = nil
	return r
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

// callNext runs the next handlers. A panic becomes an error: reverse_proxy
// reports an answer that broke off that way, and the turn must be settled.
func (t *interceptTurn) callNext(w http.ResponseWriter, r *http.Request) (err error, panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			err, panicked = t.recovered(r.Context(), p), true
		}
	}()
	t.asked.Store(true)
	err = t.next.ServeHTTP(w, r)
	t.behindFailed(r.Context(), err)
	return err, false
}

// reject answers a call that was not accepted.
func (t *interceptTurn) reject(w http.ResponseWriter, e *apiError) {
	t.report(e)
	t.app.metrics.requests.WithLabelValues(endpointOf(t.dialect), t.dialect.Name(), outcomeRejected).Inc()
	writeDialectError(w, t.dialect, e, e.Status)
}

// failed answers a failure of our own. No SDK takes a 503 for an answer.
func (t *interceptTurn) failed(w http.ResponseWriter, operation string, err error) {
	t.storeFailed(operation, err)
	t.refundQuota(t.http.Context())
	t.app.metrics.requests.WithLabelValues(endpointOf(t.dialect), t.dialect.Name(), outcomeOfFailure(err)).Inc()
	t.tell(w.Header())
	writeDialectError(w, t.dialect, errGovernor, http.StatusServiceUnavailable)
}

// writeDialectError answers in the shape that the caller's SDK reads. What will
// not get better by itself says so, since SDKs repeat some statuses.
func writeDialectError(w http.ResponseWriter, d wire.Dialect, e *apiError, status int) {
	if status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		w.Header().Set("X-Should-Retry", "false")
	}
	_ = writeBody(w, status, "application/json", d.Error(wire.Error{Status: status, Code: e.Code, Message: e.Message}))
}

// endpointOf names a dialect's endpoint in metrics and receipts.
func endpointOf(d wire.Dialect) string {
	if d == nil {
		return "unknown"
	}
	return d.Name()
}
