package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
)

// rawGrace is how long the governed answer waits for its ungoverned twin.
const rawGrace = 5 * time.Second

// The values of governed_source.
const (
	sourceGoverned = "governed"
	sourceFallback = "raw_fallback"
	sourceNone     = "unavailable" // no arm came to its end
)

// A governTurn is one accepted request to /lex/govern, plain or streamed.
type governTurn struct {
	*request
	http   *http.Request
	body   governRequest
	x      *exchange
	timing timing

	source    string // governed_source; "" is null
	raw       string
	rawSignal *detect.Judgement // nil when there is no raw answer
	injected  bool              // earlier turns went into the governed arm
}

// govern serves POST /lex/govern.
func (g *request) govern(w http.ResponseWriter, r *http.Request) error {
	t, err := g.admit(w, r)
	if err != nil {
		return err
	}
	text, err := t.generate(r.Context())
	if outcome := outcomeOf(r.Context(), err); outcome != kernel.Answered {
		return t.fail(outcome)
	}
	text = t.x.withoutEcho(text)
	sent := t.app.sent("", text)
	if err := t.settle(text, sent); err != nil {
		return g.failed(r, "commit", err)
	}
	return writeJSON(w, http.StatusOK, t.result(sent(t.x.turn)))
}

// admit makes every check on a request in the interface's order and assesses
// its prompt.
func (g *request) admit(w http.ResponseWriter, r *http.Request) (*governTurn, error) {
	started := time.Now()
	g.endpoint = endpointGovern
	if apiErr := g.authenticate(w, r); apiErr != nil {
		return nil, g.reject(apiErr)
	}
	body, apiErr := decodeGovern(w, r, &g.app.Policy)
	if apiErr == nil {
		apiErr = g.consumeQuota(r.Context(), w)
	}
	if apiErr != nil {
		return nil, g.reject(apiErr)
	}
	t := &governTurn{request: g, http: r, body: body, x: g.openGovern(r, body, started)}
	if err := t.assess(r.Context()); err != nil {
		return nil, g.failed(r, "session", err)
	}
	t.setTurnHeader(w.Header(), t.x)
	t.timing.Assess = milliseconds(time.Since(started))
	setPlaceholders(r, t.x.placeholders())
	return t, nil
}

// authenticate checks key and rate.
func (g *request) authenticate(w http.ResponseWriter, r *http.Request) *apiError {
	var apiErr *apiError
	if g.caller, apiErr = g.identify(r.Context(), r, false); apiErr != nil {
		return apiErr
	}
	rate := g.app.Limits.Anonymous
	if g.caller.keyed {
		rate = g.app.Limits.Keyed
	}
	return g.take(r.Context(), w, rate, g.caller.subject("govern"))
}

func (g *request) openGovern(r *http.Request, body governRequest, started time.Time) *exchange {
	return &exchange{
		app: g.app, engine: g.engine, mode: kernel.Mode(g.handler.Mode), namespace: g.caller.namespace,
		key: sessionKey(g.caller.namespace, body.SessionID), publicID: body.SessionID,
		label: body.Turn, eval: g.isEval(r, body.SessionID),
		endpoint: endpointGovern, dialect: dialectLex, model: g.handler.Model,
		prompt: body.Prompt, started: started, asking: messageDigest(strconv.Itoa(body.Turn) + " " + body.Prompt),
	}
}

func (t *governTurn) assess(ctx context.Context) error {
	if err := t.x.open(ctx); err != nil {
		return err
	}
	t.x.cover("request.prompt", detectorLocal, len(t.body.Prompt))
	t.x.coverage.BytesForwarded = len(t.body.Prompt)
	return t.x.assess(ctx, []detect.Text{{Source: detect.User, Body: t.body.Prompt}}, nil)
}

// arm is what one call to the model came to.
type arm struct {
	text string
	err  error
}

// generate asks the model, with the constitutional context and, as the
// baseline allows, without, and returns the text to govern. A refused prompt
// runs no governed arm.
func (t *governTurn) generate(ctx context.Context) (string, error) {
	defer t.clock(&t.timing.Generate)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	raw := t.startRaw(ctx)
	if t.x.turn.Refused {
		t.x.notJudged("refused before generation")
		if raw == nil {
			t.x.coverage.BytesForwarded = 0
		}
		t.raw = t.waitRaw(raw, rawGrace).text
		return "", nil
	}
	governed := t.callModel(ctx, t.governedAsk(false))
	return t.choose(raw, governed)
}

// choose takes the governed answer, or the raw one when only that arrived. A
// raw answer that is late is left out.
func (t *governTurn) choose(raw <-chan arm, governed arm) (string, error) {
	if governed.err == nil {
		t.raw, t.source = t.waitRaw(raw, rawGrace).text, sourceGoverned
		return governed.text, nil
	}
	fallback := t.waitRaw(raw, time.Duration(t.handler.Timeout))
	if fallback.err != nil {
		return "", errors.Join(errProvider, governed.err)
	}
	t.raw, t.source, t.x.system = fallback.text, sourceFallback, "" // it was given none
	return fallback.text, nil
}

// startRaw begins the ungoverned call, or returns nil when there is none.
func (t *governTurn) startRaw(ctx context.Context) <-chan arm {
	run := t.handler.Baseline == "always" || (t.handler.Baseline == "unless_refused" && !t.x.turn.Refused)
	if !run {
		return nil
	}
	done := make(chan arm, 1)
	go func() { done <- t.callModel(ctx, wire.Ask{Model: t.handler.Model, Prompt: t.body.Prompt}) }()
	return done
}

func (t *governTurn) waitRaw(raw <-chan arm, grace time.Duration) arm {
	if raw == nil {
		return arm{err: errProvider}
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-raw:
		return a
	case <-timer.C:
		return arm{err: errProvider}
	}
}

// governedAsk is the prompt with the constitutional context of its identity
// mode and the session's remembered turns.
func (t *governTurn) governedAsk(stream bool) wire.Ask {
	t.x.system = systemContext(t.body.IdentityMode, t.app.constitution, t.x.turn)
	ask := wire.Ask{Model: t.handler.Model, Prompt: t.body.Prompt, Stream: stream, System: t.x.system}
	for _, m := range t.x.memory.Turns {
		ask.History = append(ask.History,
			wire.Message{Role: wire.User, Text: m.Prompt}, wire.Message{Role: wire.Assistant, Text: m.Output})
	}
	t.injected = len(ask.History) > 0
	return ask
}

// callModel makes one call that is read whole.
func (t *governTurn) callModel(ctx context.Context, ask wire.Ask) arm {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.handler.Timeout))
	defer cancel()
	path, body := askDialect.Ask(ask)
	got := newAnswer(t.app.Limits.Body)
	if err := t.ask(ctx, got, t.http, path, body); err != nil {
		return arm{err: err}
	}
	return readAnswer(got)
}

// readAnswer takes the text out of a whole answer.
func readAnswer(got *answer) arm {
	if !got.ok() {
		return arm{err: errProvider}
	}
	response, err := askDialect.Response(got.body.Bytes())
	if err != nil {
		return arm{err: errProvider} // not the dialect's JSON
	}
	text := response.Text()
	if text == "" {
		return arm{err: errProvider}
	}
	return arm{text: text}
}

// settle concludes on the text, if there is one, and commits the turn.
func (t *governTurn) settle(text string, sent sentText) error {
	if t.source != "" {
		if err := t.concludeOn(text); err != nil {
			return err
		}
	}
	t.judgeRaw()
	defer t.clock(&t.timing.Commit)()
	return t.commit(kernel.Answered, sent)
}

// commit makes the turn durable and shows it to the access log.
func (t *governTurn) commit(outcome kernel.Outcome, sent sentText) error {
	err := t.x.commit(t.http.Context(), outcome, sent)
	setPlaceholders(t.http, t.x.placeholders())
	return err
}

func (t *governTurn) concludeOn(text string) error {
	defer t.clock(&t.timing.Conclude)()
	t.x.coverAnswer("response.governed_output", len(text))
	return t.x.conclude(t.http.Context(), text)
}

// judgeRaw weighs the ungoverned answer, so that who reads it knows what it is.
// The verdict moves no state: nobody governed this answer, and the session did
// not give it.
func (t *governTurn) judgeRaw() {
	if t.raw == "" {
		return
	}
	defer t.clock(&t.timing.Conclude)()
	reads := min(len(t.raw), maxJudged)
	t.x.cover("response.raw_output", detectorJudge, reads)
	if beyond := len(t.raw) - reads; beyond > 0 {
		t.x.skip("response.raw_output", "beyond what the judge reads", beyond)
	}
	verdict := t.x.judge(t.raw)
	t.x.ran(detectorJudge, verdict.Capitulated)
	t.rawSignal = &verdict
}

// withholdsRaw reports whether the operator keeps back the ungoverned answer
// that was found. Who only observes keeps back nothing.
func (t *governTurn) withholdsRaw() bool {
	return t.handler.Raw == "withhold" && t.x.mode == kernel.Enforce && t.rawSignal != nil && t.rawSignal.Capitulated
}

// result completes the exchange's part. The harmful twin of a refused output
// does not leave by the other door.
func (t *governTurn) result(governed string) result {
	res := t.x.result()
	res.GovernedOutput, res.RawOutput = governed, t.raw
	res.RawSignal = signalOf(t.rawSignal, t.app.localJudge())
	if res.Refused && t.source != "" || t.withholdsRaw() {
		res.RawOutput = ""
	}
	res.MemoryInjected, res.IdentityMode = t.injected, t.body.IdentityMode
	if t.source != "" {
		res.GovernedSource = &t.source
	}
	t.timing.Total = milliseconds(time.Since(t.x.started))
	res.Timing = t.timing
	return res
}

// clock adds the time until the returned function is called to a field.
func (t *governTurn) clock(field *float64) func() {
	began := time.Now()
	return func() { *field += milliseconds(time.Since(began)) }
}

// outcomeOf classifies the end of a generation.
func outcomeOf(ctx context.Context, err error) kernel.Outcome {
	switch {
	case err != nil && exits(ctx):
		return kernel.Aborted
	case clientLeft(ctx):
		return kernel.ClientGone
	case err != nil:
		return kernel.ProviderFailed
	}
	return kernel.Answered
}

// failureOf is what a turn that ended so is answered with.
func failureOf(outcome kernel.Outcome) *apiError {
	if outcome == kernel.Aborted { // by us, on the way out
		return errGovernor
	}
	return errProviders
}

// fail records a turn that has no answer, and returns the error to answer with.
func (t *governTurn) fail(outcome kernel.Outcome) error {
	t.x.notJudged("no output")
	if err := t.commit(outcome, t.app.sent("", "")); err != nil {
		return t.failed(t.http, "commit", err)
	}
	if outcome != kernel.ClientGone {
		t.refundQuota(t.http.Context())
	}
	return failureOf(outcome)
}

// failed is the error to answer a failure of our own with.
func (g *request) failed(r *http.Request, operation string, err error) error {
	g.refundQuota(r.Context())
	g.app.metrics.requests.WithLabelValues(g.endpoint, dialectLex, outcomeOfFailure(err)).Inc()
	return errGovernor.because(operation, err)
}

// reject counts a request that was not accepted, and returns why.
func (g *request) reject(e *apiError) error {
	g.app.metrics.requests.WithLabelValues(g.endpoint, dialectLex, outcomeRejected).Inc()
	return e
}

// askDialect is the dialect in which /lex/govern asks the model.
var askDialect = func() interface {
	wire.Dialect
	wire.Asker
} {
	d, _ := wire.Named("openai")
	return d.(interface {
		wire.Dialect
		wire.Asker
	})
}()
