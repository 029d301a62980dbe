package caddymodule

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// An interception is one call of a caller's own to the model's API, on its way
// through.
type interception struct {
	*request
	r       *http.Request
	dialect wire.Dialect
	started time.Time
	call    wire.Request
	body    []byte        // as it is forwarded
	parsing time.Duration // how long the dialect took to read the call
	opened  *govern.Opened

	resembling bool // on a path that the dialect does not claim: another server may read it
}

// intercept governs a call in a dialect that we read, and answers it in that
// dialect whatever happens.
func (g *request) intercept(w http.ResponseWriter, r *http.Request, endpoint string, d wire.Dialect) {
	g.endpoint, g.dialectName = endpoint, d.Name()
	c := &interception{request: g, r: r, dialect: d, started: time.Now()}
	if err := c.serve(r.Context(), w); err != nil {
		c.answerError(w, err)
	}
}

// serve takes a call from the prompt to the answer. It returns an error only if
// nothing has been written.
func (c *interception) serve(ctx context.Context, w http.ResponseWriter) error {
	// Identify the caller by its Lex key, by its credential for the provider or by its
	// address, which also keeps the sessions of callers apart. Choose the policy, and
	// count the request.
	if apiErr := c.authenticate(w, c.r, true); apiErr != nil {
		return c.reject(apiErr)
	}

	// Read the call. The dialect parses exactly the bytes that are forwarded, so
	// compressed bodies are rejected, and those in another charset than UTF-8.
	if encoded(c.r.Header) || inOtherCharset(c.r.Header) {
		return c.reject(errEncodedBody)
	}
	body, apiErr := readBody(w, c.r, c.app.Limits.Body)
	if apiErr != nil {
		return c.reject(apiErr)
	}
	return c.serveBody(ctx, w, body)
}

// serveBody is serve of an authenticated call whose body is there.
func (c *interception) serveBody(ctx context.Context, w http.ResponseWriter, body []byte) error {
	if apiErr := c.parse(body); apiErr != nil {
		return c.reject(apiErr)
	}

	// The plan of the caller's key counts the calls that were accepted.
	if apiErr := c.consumeQuota(ctx, w); apiErr != nil {
		return c.reject(apiErr)
	}

	// Open the session that the caller names, or the one that the resent
	// conversation continues. Assess what the newest turn says; clean the history.
	if err := c.openSession(ctx); err != nil {
		return err
	}
	assessed, err := c.assess(ctx)
	if err != nil {
		return c.fail(ctx, "session", err)
	}
	setPlaceholders(c.r, turnPlaceholders(c.opened, assessed.Turn, "")) // for matchers behind lex
	traceAssessed(ctx, &assessed.Turn)

	// Refuse: without asking the model, as an answer in the caller's dialect.
	coverage, attack := c.opened.Coverage, assessed.Turn.Refused
	if len(coverage.Unknown) > 0 && c.forbidsUnknown() && !attack {
		if err := assessed.RefuseUnknown(); err != nil {
			return c.fail(ctx, "session", err)
		}
	}
	if assessed.Turn.Refused {
		coverage.BytesForwarded = 0
		judged := assessed.NotJudged("refused before generation")
		if !attack {
			return c.refuseWith(ctx, w, errUnknownContent, judged)
		}
		receipt, err := c.commit(c.r, judged, kernel.Refused, c.policy.governor.Sent("", ""))
		if err != nil {
			return c.fail(ctx, "commit", err)
		}
		c.writeRefusal(w, receipt)
		return nil
	}

	// Decide on the calls that the caller asks a server of tools for.
	if run, err := c.decideRequested(ctx, w, assessed); !run {
		return err
	}

	// Forward. Whatever the next handlers write goes through the answerWriter to
	// governedAnswer, which judges the answer, commits the turn and lets the answer
	// go, or sends what stands in its place.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := newClientSide(w, c.app.metrics.streams)
	answer := c.newAnswer(assessed, client, cancel)
	aw := newAnswerWriter(client, answer, cancel, c.app.Limits.Body, c.dialect.Framing(), func(h http.Header) { c.setTurnHeader(h, c.opened) })
	panicked, err := false, ctx.Err() // the client may have left, or Caddy ended, while a guard was asked
	if err != nil {
		coverage.BytesForwarded = 0
		c.asked.Store(true) // hanging up makes no call free
	} else {
		panicked, err = c.callNext(aw, c.upstreamRequest(ctx))
	}
	aw.finish(err)
	answer.close(ctx)
	if panicked && !client.replaced {
		panic(http.ErrAbortHandler) // the client must see that the answer is cut
	}
	return nil
}

// parse reads the body in the dialect. With the option unknown inspect, a member that
// the dialect does not know is read as text, so that it is cleaned like every other
// part. On the path of another API so is what the dialect keeps from its models.
func (c *interception) parse(body []byte) *apiError {
	if c.body != nil && bytes.Equal(body, c.body) {
		return nil
	}
	began := time.Now()
	defer func() { c.parsing += time.Since(began) }()
	call, err := c.dialect.Request(body)
	if err != nil {
		return errBadRequest.withMessage(err.Error())
	}
	if c.inspectsUnknown() {
		govern.FillUnknown(call.Parts, body)
	}
	if c.resembling {
		call.Parts = append(call.Parts, loose.Rest(body, call.Parts)...)
	}
	c.call, c.body = call, body
	if reader, ok := c.dialect.(wire.AnswerReader); ok {
		c.dialect = reader.Answering(call)
	}
	return nil
}

// openSession opens the session of the call. It is named by the header, else by the
// conversation that the call names, else found by the answer that the call goes on from,
// else by the conversation that it resends. Members that name a person (user,
// safety_identifier) name no session. A refusal of ours that the call goes on from must be
// known, because no provider knows it.
//
// Who asks a server of tools for its list, or listens to it, says nothing, but what the server
// says then belongs to the session.
func (c *interception) openSession(ctx context.Context) error {
	talk := govern.NewConversation(c.caller.namespace, c.call.Parts)
	id := c.sessionID()
	named := id != "" && (len(c.call.Parts) > 0 || asksToolServer(c.dialect)) // who only fetches an answer takes no step in it
	if talk.Previous = c.call.Fetches; c.call.HistoryPath != "" {
		talk.Previous = c.call.Previous
	}
	turn := c.interceptedTurn(c.started)
	turn.Endpoint, turn.Dialect, turn.Model = c.endpoint, c.dialect.Name(), c.call.Model
	turn.Conversation, turn.Eval, turn.RefusalID = talk, c.auth.isEval(c.r, id), c.refusalID
	turn.PublicID, turn.Kept = talk.PublicID(), c.call.Kept
	turn.Fetches, turn.FetchesRest = c.call.Fetches, c.call.FetchesRest
	turn.Answerer, _ = c.dialect.(wire.CallAnswerer)
	switch {
	case named:
		turn.Key = govern.SessionKey(c.caller.namespace, id)
		turn.PublicID = govern.PublicID(turn.Key)
	case c.call.Session != "":
		turn.Key = govern.ConversationKey(c.caller.namespace, c.call.Session)
		turn.PublicID = govern.PublicID(turn.Key)
	case asksToolServer(c.dialect): // what it is asked tells no conversation
		turn.Key = govern.SessionKey(c.caller.namespace, randomID())
		turn.PublicID = govern.PublicID(turn.Key)
	case c.call.Previous != "":
		turn.Key, turn.Unnamed = govern.AnswerKey(c.caller.namespace, c.call.Previous), true
	default:
		turn.Key, turn.Unnamed = cmp.Or(talk.Past(), govern.SessionKey(c.caller.namespace, randomID())), true
	}
	opened, err := c.policy.governor.Open(ctx, turn)
	if err != nil {
		return c.fail(ctx, "session", err)
	}
	if c.call.PreviousOurs && !opened.KnowsPrevious() {
		c.refundQuota(ctx)
		return c.reject(errPreviousUnknown)
	}
	c.opened = opened
	return nil
}

// assess assesses the call, with the results of tools that the client does not know of and
// without what was removed.
func (c *interception) assess(ctx context.Context) (*govern.Assessed, error) {
	if apiErr := c.parse(c.opened.AnswerBlocked(c.call, c.body)); apiErr != nil {
		return nil, apiErr // of a body that we have changed
	}
	assessed, body, err := c.opened.AssessMessages(ctx, c.call, c.body)
	if err != nil {
		return nil, err
	}
	c.body = body
	c.opened.Timing.Read += c.parsing
	return assessed, nil
}

// sessionID is the id of the session that the caller names, or "". A server of tools
// gives its clients one.
func (c *interception) sessionID() string {
	if id := c.r.Header.Get("X-Lex-Session"); validSessionID(id) {
		return id
	}
	if server, ok := c.dialect.(wire.ToolServer); ok {
		return c.r.Header.Get(server.SessionHeader())
	}
	return ""
}

// interceptedTurn is what all turns of intercepted traffic have in common.
func (g *request) interceptedTurn(started time.Time) govern.Request {
	return govern.Request{
		Mode: kernel.Mode(g.handler.Mode), Namespace: g.caller.namespace, KeyID: g.caller.key.ID, Started: started, TraceID: g.traceID,
		Reading: govern.Reading{
			Limit: g.handler.InspectLimit, RefuseOversize: g.handler.Oversize == "refuse",
			RefuseHistory: g.handler.History == "refuse", Unknown: g.inspectsUnknown(),
			ToolResults: govern.ToolResults(g.handler.ToolResults),
		},
	}
}

// inspectsUnknown reports whether what no dialect knows is read loosely.
func (g *request) inspectsUnknown() bool { return g.handler.Unknown == unknownInspect }

// forbidsUnknown reports whether the operator lets nothing pass that no dialect knows. In
// the mode observe that is recorded and nothing is kept back.
func (g *request) forbidsUnknown() bool { return g.handler.Unknown == unknownBlock }

// blocksUnknown reports whether what no dialect knows is kept from passing.
func (g *request) blocksUnknown() bool {
	return g.forbidsUnknown() && g.handler.Mode == string(kernel.Enforce)
}

// refuseWith records a turn that is refused with an error, and returns the error.
func (c *interception) refuseWith(ctx context.Context, w http.ResponseWriter, e *apiError, judged *govern.Judged) error {
	receipt, err := c.commit(c.r, judged, kernel.Refused, sentAs(e.Message))
	if err != nil {
		return c.fail(ctx, "commit", err)
	}
	c.setReceiptHeaders(w.Header(), c.opened, receipt)
	return e
}

// writeRefusal sends the refusal of a committed turn, as the first and only bytes
// of the answer.
func (c *interception) writeRefusal(w http.ResponseWriter, receipt *govern.Receipt) {
	c.setReceiptHeaders(w.Header(), c.opened, receipt)
	refusal := c.refusal(receipt)
	whole := c.dialect.Refusal(refusal)
	switch {
	case c.handler.RefuseWith.As == "status":
		e := errPolicyRefusal.withMessage(c.policy.RefusalText).withStatus(c.handler.RefuseWith.Status)
		writeDialectError(w, c.r, c.dialect, e)
	case whole == nil:
		writeDialectError(w, c.r, c.dialect, errPolicyRefusal.withMessage(c.policy.RefusalText))
	case c.call.Stream:
		h := w.Header()
		h.Set("Content-Type", c.dialect.Framing().ContentType())
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(c.dialect.Stream().Refusal(refusal)) // a failure means that the client left
	default:
		_ = writeBody(w, http.StatusOK, "application/json", whole)
	}
}

// refusal returns what the dialect writes a refusal from. The refusal of a request for
// structured output has a fixed place, since SDKs throw if prose stands for JSON.
func (c *interception) refusal(receipt *govern.Receipt) wire.Refusal {
	place := wire.Place(c.handler.RefuseWith.As)
	if c.call.Structured {
		place = wire.OnlyRefusal
	}
	return wire.Refusal{
		ID: receipt.ID, Model: c.call.Model, Text: c.policy.RefusalText,
		Created: c.started.Unix(), Choices: c.call.Choices, Place: place, Reply: c.call.Reply, TellsUsage: c.call.TellsUsage,
	}
}

// refusalID returns the id of the answer that refuses a turn, in dialects in which a
// later call can go on from it.
func (c *interception) refusalID(receiptID string) string {
	whole := c.dialect.Refusal(wire.Refusal{ID: receiptID, Text: c.policy.RefusalText, Created: c.started.Unix()})
	if whole == nil {
		return ""
	}
	response, err := c.dialect.Response(whole)
	if err != nil {
		return "" // a test of package wire would have failed
	}
	return response.ID
}

// upstreamRequest returns the caller's request with the body that was read and without
// the headers that are addressed to Lex. It asks for an answer without an encoding, and
// for all of it (RFC 9110, 14.2): a stored answer in pieces could not be judged. It
// cannot turn the connection into another protocol (RFC 9110, 7.6.1 and 7.8), which
// could not be read.
func (c *interception) upstreamRequest(ctx context.Context) *http.Request {
	r := c.handler.outbound(ctx, c.r)
	r.Header = r.Header.Clone()
	dropHopHeaders(r.Header)
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Del("Range")
	r.Header.Del("If-Range")
	if listens(c.dialect, r.Method) && len(c.body) == 0 {
		return r // as it came
	}
	r.Header.Set("Content-Length", strconv.Itoa(len(c.body)))
	setBody(r, c.body)
	return r
}

// callNext runs the next handlers. A panic becomes an error: reverse_proxy reports
// an answer that broke off that way, and the turn must still be committed.
func (g *request) callNext(w http.ResponseWriter, r *http.Request) (panicked bool, err error) {
	ctx := r.Context()
	defer func() {
		if p := recover(); p != nil {
			panicked, err = true, g.recovered(ctx, p)
		}
	}()
	g.asked.Store(true)
	err = g.next.ServeHTTP(w, r)
	g.behindEnded(ctx, err)
	return false, err
}

// answerError answers the call with an error in its dialect.
func (c *interception) answerError(w http.ResponseWriter, err error) {
	if c.opened != nil {
		c.setTurnHeader(w.Header(), c.opened)
	}
	c.failures.answerIn(w, c.r, c.dialect, err)
}

// An errorShape writes the body of an error as the clients of an API read it: a
// [wire.Dialect] or a [wire.Family].
type errorShape interface {
	Error(e wire.Error) []byte
}

// answerIn answers with err in the shape of an API and reports its cause. A failure of
// our own is a 503 there, which no SDK takes for an answer.
func (f failureReporter) answerIn(w http.ResponseWriter, r *http.Request, shape errorShape, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = errGovernor.because("answer", err)
	}
	f.report(e)
	if errors.Is(e, errGovernor) {
		e = e.withStatus(http.StatusServiceUnavailable)
	}
	writeDialectError(w, r, shape, e)
}

// writeDialectError answers a request in the shape that the caller's SDK reads: that of the
// API, unless the SDK reads another. An error that will not go away soon says so, since SDKs
// repeat some statuses.
func writeDialectError(w http.ResponseWriter, r *http.Request, shape errorShape, e *apiError) {
	if family, ok := wire.SDKFamily(r.Header); ok {
		shape = family
	}
	passing := e.Status >= http.StatusInternalServerError || e.Status == http.StatusTooManyRequests || e.Status == http.StatusTooEarly
	if !passing || errors.Is(e, errPlanExhausted) || errors.Is(e, errAnswerSize) {
		w.Header().Set("X-Should-Retry", "false")
	}
	_ = writeBody(w, e.Status, "application/json", shape.Error(wire.Error{Status: e.Status, Code: e.Code, Message: e.Message}))
}
