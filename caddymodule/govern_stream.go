package caddymodule

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// keepAlive is how often a stream that says nothing sends a comment, so that load
// balancers do not take the silence for a dead connection.
const keepAlive = 10 * time.Second

// doneEvent closes every stream of /lex/govern/stream: the plain answer's
// members, and the error if there was one.
type doneEvent struct {
	Done bool `json:"done"`
	result
	Error string `json:"error,omitempty"`
	Code  string `json:"code,omitempty"`
}

// governStream serves POST /lex/govern/stream: it asks for the governed answer in
// pieces, lets them out as the checks release them, commits the turn, and ends
// with the one done event.
func (g *request) governStream(w http.ResponseWriter, r *http.Request) error {
	c, err := g.admit(w, r)
	if err != nil {
		return err
	}
	s := &tokenStream{w: w, streams: g.app.metrics.streams}
	defer s.end()
	stop := s.keepAlive(keepAlive) // also while the answer is judged and committed
	gate, text, err := c.stream(r.Context(), s)
	defer gate.Drop() // of what is not to leave

	// What a check stopped ends in the refusal, also when the client has left
	// meanwhile. Without an answer the turn ends in an error, and of half of one that is
	// judged and committed to which the client has read.
	outcome, begun := outcomeOf(r.Context(), err), gate.Sent()
	var failure *apiError
	switch {
	case gate.Flagged():
		outcome = kernel.Answered
	case outcome != kernel.Answered:
		gate.Drop()
		text, failure = begun, c.failed(outcome, err)
		if begun != "" && outcome == kernel.ProviderFailed {
			outcome, failure = kernel.Aborted, errUpstreamBroken
		}
	}

	// Commit the turn, then let out the tokens that were kept back for it, or the
	// refusal in their place.
	if failure == nil {
		c.assessed.RefuseEchoes(text)
	}
	judged, receipt, err := c.commitAnswer(r.Context(), text, outcome, c.policy.governor.Sent(begun, text))
	stop()
	if failure != nil && outcome != kernel.ClientGone {
		c.source = sourceNone
		c.refundQuota(r.Context())
	}
	switch {
	case err != nil:
		return s.fail(c, judged, receipt, begun, g.fail(r.Context(), "commit", err))
	case receipt.Turn.Refused:
		gate.Drop()
		s.token(c.policy.RefusalText)
		text = begun + c.policy.RefusalText
	case failure != nil:
		return s.fail(c, judged, receipt, begun, failure)
	default:
		gate.Flush()
	}
	s.event(doneEvent{Done: true, result: c.result(judged, receipt, text)})
	return nil
}

// stream asks the model for the governed answer in pieces and returns its whole
// text, with the gate that its tokens pass. Where nothing of it could be had the
// baseline stands in.
func (c *governCall) stream(ctx context.Context, s *tokenStream) (*govern.Gate, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.assessed.Turn.Refused {
		text, err := c.generate(ctx)
		return c.newGate(s, cancel), text, err
	}
	defer c.measure(&c.timing.Generate)()
	if err := c.cutShort(ctx); err != nil {
		return c.newGate(s, cancel), "", err
	}
	baseline := c.startBaseline(ctx)
	gate, governed := c.streamModel(ctx, s)
	if governed.err != nil && gate.Sent() != "" {
		return gate, "", governed.err // a second answer must not follow half of the first
	}
	text, err := c.choose(ctx, baseline, governed)
	if err == nil && c.source == sourceFallback {
		gate.Drop()
		gate = c.newGate(s, cancel)
		appendWhole(gate, text)
	}
	return gate, text, err
}

func (c *governCall) newGate(s *tokenStream, stop context.CancelFunc) *govern.Gate {
	return c.assessed.NewGate(c.gateConfig(func(frames []wire.Frame) error { return s.write(appendRaw(nil, frames)...) }), stop)
}

// streamModel makes the governed call and passes its tokens on as the checks
// release them.
func (c *governCall) streamModel(ctx context.Context, s *tokenStream) (*govern.Gate, reply) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.handler.Timeout))
	defer cancel()
	asks := c.handler.asks
	call := asks.Ask(c.governedAsk(true))
	gate := c.newGate(s, cancel)
	got := &streamRecorder{
		recorder: newRecorder(c.app.Limits.Body), gate: gate, stop: cancel, framing: asks.Framing(),
		frames: wire.NewSplitter(asks.Framing(), int(min(c.app.Limits.Body, math.MaxInt))), events: asks.Events(),
	}
	err := c.ask(ctx, got, c.r, call)
	switch {
	case err != nil:
	case got.decode() != nil:
		err = c.undecoded()
	default:
		err = got.readDecoded()
	}
	if last, ok := got.frames.Last(); ok && err == nil && got.streamed {
		err = got.event(last)
	}
	if !got.streamed {
		got.usage.Read(got.body.Bytes())
	}
	c.app.metrics.countTokens(asks.Name(), got.usage)
	traceTokens(ctx, got.usage)
	text := strings.Join(gate.Close(), "") // one choice is asked for
	switch {
	case gate.Flagged():
		return gate, reply{text: text} // it is judged once more, and refused
	case gate.Full():
		return gate, reply{err: errAnswerTooLarge}
	case err != nil:
		return gate, reply{err: err}
	case !got.streamed:
		whole := readReply(got.recorder, asks)
		appendWhole(gate, whole.text)
		return gate, whole
	case !got.ok():
		return gate, reply{err: errorStatus(got.recorder)}
	case !got.finished || text == "":
		return gate, reply{err: errProvider}
	}
	return gate, reply{text: text}
}

// appendWhole makes one token of an answer that came in one piece.
func appendWhole(gate *govern.Gate, text string) {
	if text != "" {
		gate.Append(tokenFrame(text), []wire.Delta{{Kind: wire.Text, Text: text}})
	}
	gate.Close()
}

// A streamRecorder reads the answer to a call of our own: event by event when it
// is a stream of its dialect, else whole.
type streamRecorder struct {
	*recorder
	gate     *govern.Gate
	stop     context.CancelFunc
	streamed bool
	ending   bool // the answer is complete only with the dialect's end of stream
	finished bool // the frame that ends the answer came
	framing  wire.Framing
	frames   wire.Splitter
	events   wire.EventReader
	usage    wire.Usage
}

// WriteHeader learns how the answer is framed.
func (s *streamRecorder) WriteHeader(status int) {
	s.recorder.WriteHeader(status)
	s.streamed = s.ok() && isStream(status, s.header, s.framing)
}

// readDecoded reads the events of a stream that came whole, because it was encoded.
func (s *streamRecorder) readDecoded() error {
	if s.streamed || !s.ok() || !isStream(s.status, s.header, s.framing) {
		return nil
	}
	s.streamed = true
	_, err := s.Write(s.body.Bytes())
	return err
}

// Write hands the tokens of complete events to the gate.
func (s *streamRecorder) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	if !s.streamed {
		return s.recorder.Write(p)
	}
	if err := s.frames.Push(p); err != nil {
		return 0, err
	}
	for {
		frame, ok := s.frames.Next()
		if !ok {
			return len(p), nil
		}
		if err := s.event(frame); err != nil {
			return 0, err
		}
	}
}

func (s *streamRecorder) event(frame wire.Frame) error {
	if frame.Comment {
		return nil
	}
	s.usage.Read(frame.Data)
	event, err := s.events.Event(frame)
	if err != nil || event.Err {
		return errProvider
	}
	s.ending = s.ending || event.Ending
	s.finished = s.finished || len(event.Finished) > 0 && !s.ending || event.MayEnd || event.Done && s.ending
	for _, d := range event.Deltas {
		if d.Text == "" || !d.IsText() {
			continue
		}
		if !s.gate.Append(tokenFrame(d.Text), []wire.Delta{{Kind: wire.Text, Text: d.Text}}) {
			s.stop()
			return context.Canceled
		}
	}
	return nil
}

// tokenFrame is one token event.
func tokenFrame(text string) wire.Frame {
	data, _ := encodeJSON(map[string]string{"token": text}) // strings always encode
	return wire.Frame{Raw: wire.AppendEvent(nil, data), Data: data}
}

// A tokenStream is the client's side of a stream. The header leaves with the first
// byte, so that a failure before it is still an ordinary error.
type tokenStream struct {
	w       http.ResponseWriter
	streams prometheus.Gauge // those that have begun

	mu    sync.Mutex
	begun bool
}

// end notes that nothing follows.
func (s *tokenStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		s.streams.Dec()
	}
}

// write sends complete events.
func (s *tokenStream) write(frames ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.streams.Inc()
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	return sendNow(s.w, frames...)
}

// keepAlive sends comments until the returned function is called; after that none
// is on its way any more.
func (s *tokenStream) keepAlive(every time.Duration) (stop func()) {
	return repeat(every, func() { _ = s.write(wire.AppendComment(nil, "keep-alive")) })
}

// repeat calls a function again and again, until the function that it returns has
// returned.
func repeat(every time.Duration, call func()) (stop func()) {
	var calling sync.Mutex
	var stopped bool
	var timer *time.Timer
	calling.Lock()
	defer calling.Unlock()
	timer = time.AfterFunc(every, func() {
		calling.Lock()
		defer calling.Unlock()
		if !stopped {
			call()
			timer.Reset(every)
		}
	})
	return func() {
		timer.Stop()
		calling.Lock()
		defer calling.Unlock()
		stopped = true
	}
}

func (s *tokenStream) token(text string) { _ = s.write(tokenFrame(text).Raw) }

func (s *tokenStream) event(e doneEvent) {
	data, err := encodeJSON(e)
	if err == nil { // numbers of a result are finite
		_ = s.write(wire.AppendEvent(nil, data))
	}
}

// fail ends the stream with its error: as an ordinary answer while nothing was
// sent, else in the done event. A stream never ends in silence.
func (s *tokenStream) fail(c *governCall, judged *govern.Judged, receipt *govern.Receipt, sent string, e *apiError) error {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		return e
	}
	c.failures.report(e)
	s.event(doneEvent{Done: true, result: c.result(judged, receipt, sent), Error: e.Message, Code: e.Code})
	return nil
}
