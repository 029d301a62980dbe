package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
)

// baselineWait is how long the governed answer waits for the baseline.
const baselineWait = 5 * time.Second

// What receipts and metrics call POST /lex/govern, plain and streamed.
const (
	endpointGovern = "lex/govern"
	dialectLex     = "lex"
)

// The values of governed_source.
const (
	sourceGoverned = "governed"
	sourceFallback = "raw_fallback"
	sourceNone     = "unavailable" // no call came to its end
)

// A governCall is one accepted request to /lex/govern, plain or streamed. It makes
// two calls to the model: the governed one with the constitutional context, and
// the baseline without.
type governCall struct {
	*request
	r        *http.Request
	body     governRequest
	started  time.Time
	messages []wire.Message // the conversation as the governed call gets it
	assessed *govern.Assessed
	timing   timing

	source            string // governed_source; "" is null
	baseline          string
	baselineJudgement *detect.Judgement // nil when there is no baseline
	injected          bool              // remembered turns went into the governed call
}

// govern serves POST /lex/govern.
func (g *request) govern(w http.ResponseWriter, r *http.Request) error {
	c, err := g.admit(w, r)
	if err != nil {
		return err
	}
	text, err := c.generate(r.Context())
	if outcome := outcomeOf(r.Context(), err); outcome != kernel.Answered {
		if _, unwritten := c.commit(r, c.assessed.NotJudged("no output"), outcome, c.policy.governor.Sent("", "")); unwritten != nil {
			return g.fail(r.Context(), "commit", unwritten)
		}
		if outcome != kernel.ClientGone {
			c.refundQuota(r.Context())
		}
		return c.failed(outcome, err)
	}
	text = c.assessed.CutEchoes(text)
	judged, receipt, err := c.commitAnswer(r.Context(), text, kernel.Answered, c.policy.governor.Sent("", text))
	if err != nil {
		return g.fail(r.Context(), "commit", err)
	}
	if receipt.Turn.Refused {
		text = c.policy.RefusalText
	}
	return writeJSON(w, http.StatusOK, c.result(judged, receipt, text))
}

// admit makes every check on a request in the interface's order and assesses its
// prompt.
func (g *request) admit(w http.ResponseWriter, r *http.Request) (*governCall, error) {
	c := &governCall{request: g, r: r, started: time.Now()}
	g.endpoint, g.dialectName = endpointGovern, dialectLex
	apiErr := g.authenticate(w, r, false)
	if apiErr == nil {
		c.body, apiErr = decodeGovern(w, r, g.policy)
	}
	if apiErr == nil {
		apiErr = g.consumeQuota(r.Context(), w)
	}
	if apiErr != nil {
		return nil, g.reject(apiErr)
	}
	opened, err := g.policy.governor.Open(r.Context(), govern.Request{
		Mode: kernel.Mode(g.handler.Mode), Namespace: g.caller.namespace,
		Key: govern.SessionKey(g.caller.namespace, c.body.SessionID), PublicID: c.body.SessionID,
		Label: c.body.Turn, Eval: g.auth.isEval(r, c.body.SessionID),
		Endpoint: endpointGovern, Dialect: dialectLex, Model: g.handler.Model, Started: c.started, TraceID: g.traceID,
		Reading: govern.Reading{RefuseHistory: g.handler.History == "refuse"},
	})
	if err != nil {
		return nil, g.fail(r.Context(), "session", err)
	}
	if c.assessed, err = c.assess(r.Context(), opened); err != nil {
		return nil, g.fail(r.Context(), "session", err)
	}
	g.setTurnHeader(w.Header(), opened)
	c.timing.Assess = milliseconds(time.Since(c.started))
	setPlaceholders(r, turnPlaceholders(opened, c.assessed.Turn, ""))
	traceAssessed(r.Context(), &c.assessed.Turn)
	return c, nil
}

// assess assesses the prompt, and the conversation before it if there is one.
func (c *governCall) assess(ctx context.Context, opened *govern.Opened) (*govern.Assessed, error) {
	if c.body.Messages == nil {
		return opened.Assess(ctx, opened.ReadPrompt(c.body.Prompt))
	}
	assessed, messages, err := opened.AssessConversation(ctx, c.body.Messages)
	c.messages = messages
	return assessed, err
}

// A reply is the result of one call to the model.
type reply struct {
	text  string
	usage wire.Usage
	err   error
}

// generate asks the model, with the constitutional context and, as the option
// baseline allows, without, and returns the text to govern. For a refused prompt
// there is no governed call.
func (c *governCall) generate(ctx context.Context) (string, error) {
	defer c.measure(&c.timing.Generate)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.cutShort(ctx); err != nil {
		return "", err
	}
	baseline := c.startBaseline(ctx)
	if c.assessed.Turn.Refused {
		if baseline == nil {
			c.assessed.Opened.Coverage.BytesForwarded = 0
		}
		c.baseline = awaitReply(baseline, baselineWait).text
		return "", nil
	}
	return c.choose(ctx, baseline, c.callModel(ctx, c.governedAsk(false)))
}

// cutShort returns why the model is not asked any more, if the client left or Caddy ended while
// a guard was asked.
func (c *governCall) cutShort(ctx context.Context) error {
	err := ctx.Err()
	if err != nil {
		c.assessed.Opened.Coverage.BytesForwarded = 0
		c.asked.Store(true) // hanging up makes no call free
	}
	return err
}

// choose takes the governed reply, or the baseline if only that one arrived. It does
// not wait long for the baseline. A baseline that saw messages which were removed from
// the governed call does not stand in for it.
func (c *governCall) choose(ctx context.Context, baseline <-chan reply, governed reply) (string, error) {
	if governed.err == nil {
		traceTokens(ctx, governed.usage)
		c.baseline, c.source = awaitReply(baseline, baselineWait).text, sourceGoverned
		return governed.text, nil
	}
	if c.removed() {
		return "", errors.Join(errProvider, governed.err)
	}
	fallback := awaitReply(baseline, time.Duration(c.handler.Timeout))
	if fallback.err != nil {
		return "", errors.Join(errProvider, governed.err)
	}
	traceTokens(ctx, fallback.usage)
	c.assessed.System = "" // the baseline was given none
	c.baseline, c.source = fallback.text, sourceFallback
	return fallback.text, nil
}

// removed reports whether messages were removed from the governed call.
func (c *governCall) removed() bool { return !slices.Equal(c.messages, c.body.Messages) }

// startBaseline begins the ungoverned call, or returns nil when there is none.
func (c *governCall) startBaseline(ctx context.Context) <-chan reply {
	refused := c.assessed.Turn.Refused || c.removed() // then or now
	runs := c.handler.Baseline == "always" || (c.handler.Baseline == "unless_refused" && !refused)
	if !runs {
		return nil
	}
	done := make(chan reply, 1)
	go func() { done <- c.callModel(ctx, c.baselineAsk()) }()
	return done
}

// baselineAsk is the prompt alone, or the conversation as the caller sent it.
func (c *governCall) baselineAsk() wire.Ask {
	ask := wire.Ask{Model: c.handler.Model, Prompt: c.body.Prompt}
	ask.System, ask.History = beforePrompt(c.body.Messages)
	return ask
}

// beforePrompt separates the messages before the last one into the application's
// instructions, for which every API has a place of their own, and the conversation.
func beforePrompt(messages []wire.Message) (system string, history []wire.Message) {
	for _, m := range messages[:max(0, len(messages)-1)] {
		if m.Role == wire.System {
			system = joinTexts(system, m.Text)
		} else {
			history = append(history, m)
		}
	}
	return system, history
}

// joinTexts puts two texts one below the other.
func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// awaitReply waits for a reply, at most for limit.
func awaitReply(call <-chan reply, limit time.Duration) reply {
	if call == nil {
		return reply{err: errProvider}
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-call:
		return r
	case <-timer.C:
		return reply{err: errProvider}
	}
}

// governedAsk is the prompt with the constitutional context of its identity mode, and
// with the conversation that the caller sent or else the session's remembered turns.
func (c *governCall) governedAsk(stream bool) wire.Ask {
	ask := wire.Ask{Model: c.handler.Model, Prompt: c.body.Prompt, Stream: stream, System: c.assessed.GiveContext(c.body.IdentityMode)}
	if c.messages != nil {
		instructions, history := beforePrompt(c.messages)
		ask.System, ask.History = joinTexts(ask.System, instructions), history
		return ask
	}
	for _, m := range c.assessed.Opened.Remembered() {
		ask.History = append(ask.History,
			wire.Message{Role: wire.User, Text: m.Prompt}, wire.Message{Role: wire.Assistant, Text: m.Output})
	}
	c.injected = len(ask.History) > 0
	return ask
}

// callModel makes one call that is read whole.
func (c *governCall) callModel(ctx context.Context, ask wire.Ask) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.handler.Timeout))
	defer cancel()
	call := c.handler.asks.Ask(ask)
	got := newRecorder(c.app.Limits.Body)
	if err := c.ask(ctx, got, c.r, call); err != nil {
		return reply{err: err}
	}
	if got.decode() != nil {
		return reply{err: c.undecoded()}
	}
	var usage wire.Usage
	usage.Read(got.body.Bytes())
	c.app.metrics.countTokens(c.handler.asks.Name(), usage)
	answer := readReply(got, c.handler.asks)
	answer.usage = usage
	return answer
}

// readReply takes the text out of a whole answer.
func readReply(got *recorder, d wire.Reader) reply {
	if !got.ok() {
		return reply{err: errorStatus(got)}
	}
	response, err := d.Response(got.body.Bytes())
	if err != nil || response.Err {
		return reply{err: errProvider} // not the dialect's JSON, or a failure in it
	}
	text := response.Text()
	if text == "" {
		return reply{err: errProvider}
	}
	return reply{text: text}
}

// commitAnswer judges the text, if there is one, and the baseline, and commits the
// turn. With an error the receipt says what could not be written, as far as that is
// known: a stream that began tells it at its end.
func (c *governCall) commitAnswer(ctx context.Context, text string, outcome kernel.Outcome, sent govern.SentText) (*govern.Judged, *govern.Receipt, error) {
	judged, err := c.judge(ctx, text, outcome)
	if err != nil {
		opened := c.assessed.Opened
		unwritten := &govern.Receipt{Turn: c.assessed.Turn, TurnID: opened.TurnID, PublicID: opened.PublicID}
		return c.assessed.NotJudged("the judgement is not valid"), unwritten, err
	}
	c.judgeBaseline()
	defer c.measure(&c.timing.Commit)()
	receipt, err := c.commit(c.r, judged, outcome, sent)
	return judged, receipt, err
}

func (c *governCall) judge(ctx context.Context, text string, outcome kernel.Outcome) (*govern.Judged, error) {
	switch {
	case outcome != kernel.Answered && text == "":
		return c.assessed.NotJudged("no output"), nil
	case outcome == kernel.Answered && c.source == "":
		return c.assessed.NotJudged("refused before generation"), nil
	}
	defer c.measure(&c.timing.Conclude)()
	c.assessed.Opened.Coverage.InspectAnswer("response.governed_output", len(text))
	return c.assessed.Judge(ctx, govern.Answer{text})
}

func (c *governCall) judgeBaseline() {
	if c.baseline == "" {
		return
	}
	defer c.measure(&c.timing.Conclude)()
	judgement := c.assessed.JudgeBaseline("response.raw_output", c.baseline)
	c.baselineJudgement = &judgement
}

// result returns the answer of the endpoint. If the output was refused, the baseline
// is not shown either: it may be the harmful answer that was just refused.
func (c *governCall) result(judged *govern.Judged, receipt *govern.Receipt, output string) result {
	res := newResult(c.policy.governor, judged, receipt)
	res.GovernedOutput, res.RawOutput = output, c.baseline
	res.RawSignal = signalOf(c.baselineJudgement, c.policy.governor.LocalJudge())
	withheld := c.handler.Raw == "withhold" && c.handler.Mode == string(kernel.Enforce) && c.baselineJudgement != nil && c.baselineJudgement.Capitulated
	if res.Refused && c.source != "" || withheld {
		res.RawOutput = ""
	}
	res.MemoryInjected, res.IdentityMode = c.injected, c.body.IdentityMode
	if c.source != "" {
		res.GovernedSource = &c.source
	}
	c.timing.Total = milliseconds(time.Since(c.started))
	res.Timing = c.timing
	return res
}

// measure adds the time until the returned function is called to a field.
func (c *governCall) measure(field *float64) func() {
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

// A providerError is a provider's answer to a call of our own that is not a success.
// It is an errProvider.
type providerError struct {
	status     int
	retryAfter string
}

// Error names the status.
func (p *providerError) Error() string {
	return fmt.Sprintf("the provider answered with %d", p.status)
}

// Unwrap returns errProvider.
func (p *providerError) Unwrap() error { return errProvider }

// lasts reports whether the same request will get the same answer until somebody
// changes the configuration: the key, the model, or the path.
func (p *providerError) lasts() bool {
	switch p.status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return p.status < http.StatusInternalServerError
}

// errorStatus is the error of an answer that is no success or cannot be read.
func errorStatus(got *recorder) error {
	if got.status < http.StatusMultipleChoices {
		return errProvider
	}
	return &providerError{got.status, got.header.Get("Retry-After")}
}

// failed returns the error that answers a turn with this outcome. If it was the
// provider who answered with an error, the log has its status, and the caller learns
// whether and when to ask again.
func (c *governCall) failed(outcome kernel.Outcome, err error) *apiError {
	if outcome == kernel.Aborted { // by us, on the way out
		return errGovernor
	}
	answer, ok := errors.AsType[*providerError](err)
	if !ok {
		if outcome == kernel.ProviderFailed {
			c.logFailure(causeNoText) // unless something else was logged
		}
		return errProviders
	}
	c.failure.Do(func() {
		c.handler.logger.Error("the model provider answered a call of our own with an error", zap.Int("status", answer.status))
	})
	if answer.lasts() {
		return errProviders.withMessage("The model provider refuses the call; retrying does not help before the operator has corrected its key, model or path.")
	}
	return errProviders.withRetryAfter(answer.retryAfter)
}

// An askingDialect also writes requests.
type askingDialect interface {
	wire.Dialect
	wire.Asker
}

// dialectToAsk finds the dialect in which /lex/govern asks the model.
func dialectToAsk(name string) (askingDialect, error) {
	d, _ := wire.Named(name)
	asks, ok := d.(askingDialect)
	if !ok {
		return nil, fmt.Errorf("upstream_dialect %q: give one of %s", name, strings.Join(wire.AskerNames(), ", "))
	}
	return asks, nil
}
