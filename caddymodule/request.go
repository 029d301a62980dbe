package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

// A request is one HTTP request on its way through the handler, with the
// store it holds.
type request struct {
	handler *Handler
	app     *App
	shared  *sharedStore
	policy  *Policy
	next    caddyhttp.Handler

	auth     authenticator
	limits   limiter
	failures failureReporter

	caller caller

	traceID               string        // of the trace that the request belongs to, or ""
	endpoint, dialectName string        // as receipts and metrics name them
	known                 wire.Endpoint // where the path is no call of a model, but known
	quota                 *planRun      // what this request was counted as, if it has a plan
	asked                 atomic.Bool   // the model was called

	failure    sync.Once // around the line about what failed behind lex
	ungoverned error     // of the handlers after lex, where lex governs nothing
}

func newRequest(h *Handler, e *sharedStore, next caddyhttp.Handler) *request {
	failures := failureReporter{h.app, e.health}
	return &request{
		handler: h, app: h.app, shared: e, policy: h.policy, next: next,
		auth:   authenticator{store: e.store, locks: e.locks, secrets: &h.app.Secrets, requireKey: h.RequireKey, failures: failures},
		limits: limiter{e.store}, failures: failures,
	}
}

// commit makes a turn durable, counts it, tells the subscribers of events and
// shows it to the access log.
func (g *request) commit(r *http.Request, j *govern.Judged, outcome kernel.Outcome, sent govern.SentText) (*govern.Receipt, error) {
	receipt, err := j.Commit(r.Context(), outcome, sent)
	if errors.Is(err, wire.ErrCalls) {
		return receipt, err // it is committed again, as refused
	}
	g.app.metrics.governance.observe(&j.Opened.Timing)
	traceCommitted(r.Context(), g.asks(), j.Opened, receipt)
	setPlaceholders(r, turnPlaceholders(j.Opened, receipt.Turn, receipt.ID))
	if err != nil {
		g.app.metrics.receipts.WithLabelValues(receipt.Kind, "false").Inc()
		return receipt, err
	}
	g.shared.health.record(nil)
	g.app.publish(j.Opened, receipt)
	for _, call := range receipt.Calls {
		g.app.publishCall(j.Opened, call)
	}
	return receipt, nil
}

// asks names the dialect in which the model is asked.
func (g *request) asks() string {
	if g.endpoint == endpointGovern {
		return g.handler.asks.Name()
	}
	return g.dialectName
}

// publish counts a committed turn and tells the subscribers.
func (a *App) publish(o *govern.Opened, r *govern.Receipt) {
	if r.Kind == store.KindToolCall {
		a.publishCall(o, r)
		return
	}
	a.logTurn(o, r)
	a.metrics.requests.WithLabelValues(o.Endpoint, o.Dialect, string(r.Outcome)).Inc()
	a.metrics.receipts.WithLabelValues(r.Kind, "true").Inc()
	if r.Level.Counted() && !o.Eval {
		a.metrics.severity.WithLabelValues(string(r.Turn.AttackType)).Observe(r.Turn.Severity)
	}
	a.metrics.margin.Observe(r.Turn.M)
	if r.Turn.Intervened {
		a.metrics.interventions.WithLabelValues(r.Turn.Raw.Weakest().String()).Inc()
	}
	for _, d := range o.Coverage.Detectors {
		a.metrics.detectorRuns.WithLabelValues(d.Name, string(d.Outcome)).Inc()
	}
	for _, u := range o.Coverage.Uncovered() {
		a.metrics.uncovered.WithLabelValues(o.Dialect, u.Direction, u.Kind).Add(float64(u.Bytes))
	}
	primary := r.Turn.PrimaryReason()
	if primary != "" {
		a.metrics.refusals.WithLabelValues(string(primary), string(o.Mode)).Inc()
	}
	if !r.Turn.Refused && !r.Turn.Intervened {
		return
	}
	data := map[string]any{"receipt_id": r.ID, "endpoint": o.Endpoint, "attack_type": string(r.Turn.AttackType)}
	if r.Turn.Refused {
		data["reason"] = string(primary)
		a.emit("lex_refused", data)
	}
	if r.Turn.Intervened {
		a.emit("lex_intervened", data)
	}
}

// publishCall counts a committed decision on a tool call and tells the subscribers.
func (a *App) publishCall(o *govern.Opened, r *govern.Receipt) {
	a.logCall(o, r)
	call := r.Turn.Call
	a.metrics.receipts.WithLabelValues(r.Kind, "true").Inc()
	a.metrics.toolCalls.WithLabelValues(o.Dialect, string(call.Decision), call.Invariant).Inc()
	if call.Decision == kernel.Blocked {
		a.emit("lex_tool_blocked", map[string]any{
			"receipt_id": r.ID, "endpoint": o.Endpoint, "invariant": call.Invariant, "rule": call.Rule,
		})
	}
}

// tellsClient reports whether the headers of answers tell of governance. The mode
// observe changes nothing that the client sees.
func (g *request) tellsClient() bool {
	return g.handler.Headers != "none" && g.handler.Mode == string(kernel.Enforce)
}

// setTurnHeader names the turn: it has a name before its answer's first byte, its
// receipt only after the last.
func (g *request) setTurnHeader(h http.Header, o *govern.Opened) {
	if g.tellsClient() {
		h.Set("X-Lex-Turn", o.TurnID)
	}
}

// setReceiptHeaders names the turn and its receipt, as configured.
func (g *request) setReceiptHeaders(h http.Header, o *govern.Opened, r *govern.Receipt) {
	g.setTurnHeader(h, o)
	if !g.tellsClient() || !r.Persisted {
		return
	}
	h.Set("X-Lex-Receipt-Id", r.ID)
	if g.handler.Headers != "full" {
		return
	}
	h.Set("X-Lex-Health-Band", string(r.Turn.Band))
	h.Set("X-Lex-Margin", strconv.FormatFloat(r.Turn.M, 'f', 4, 64))
	coverage := "partial"
	if o.Coverage.Complete() {
		coverage = "complete"
	}
	h.Set("X-Lex-Coverage", coverage)
}

// placeholders are what later matchers and the access log can read of a turn.
// They exist with zero values from the moment lex runs, because an expression
// over a placeholder that is not set is an error.
type placeholders struct {
	receiptID  string
	band       kernel.Band
	margin     float64
	attackType kernel.AttackType
	severity   float64
	refused    bool
	session    string
}

func turnPlaceholders(o *govern.Opened, t kernel.Turn, receiptID string) placeholders {
	return placeholders{
		receiptID: receiptID, band: t.Band, margin: t.M, attackType: t.AttackType,
		severity: t.Severity, refused: t.Refused, session: o.PublicID,
	}
}

// setPlaceholders publishes {http.lex.*}. Before the model is asked they hold
// the input side's values.
func setPlaceholders(r *http.Request, p placeholders) {
	if p.attackType == "" {
		p.attackType = kernel.NoAttack
	}
	repl := replacer(r)
	repl.Set("http.lex.receipt_id", p.receiptID)
	repl.Set("http.lex.health_band", string(p.band))
	repl.Set("http.lex.margin", p.margin)
	repl.Set("http.lex.attack_type", string(p.attackType))
	repl.Set("http.lex.severity", p.severity)
	repl.Set("http.lex.refused", p.refused)
	repl.Set("http.lex.session", p.session)
}

// reject counts a request that was not accepted, and returns why.
func (g *request) reject(e *apiError) error {
	g.app.metrics.requests.WithLabelValues(g.endpoint, g.dialectName, outcomeRejected).Inc()
	g.logRejected(e)
	return e
}

// fail counts a failure of our own, refunds the quota, and returns the error to answer
// with. ctx is the request's.
func (g *request) fail(ctx context.Context, operation string, err error) *apiError {
	g.refundQuota(ctx)
	g.app.metrics.requests.WithLabelValues(g.endpoint, g.dialectName, outcomeOfFailure(err)).Inc()
	return errGovernor.because(operation, err)
}
