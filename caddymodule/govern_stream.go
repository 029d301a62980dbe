package caddymodule

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// keepAlive is how often a stream that says nothing sends a comment, so that
// load balancers do not take the silence for a dead connection.
const keepAlive = 10 * time.Second

// doneEvent closes every stream of /lex/govern/stream: the plain answer's
// members, and the error if there was one.
type doneEvent struct {
	Done bool `json:"done"`
	result
	Error string `json:"error,omitempty"`
	Code  string `json:"code,omitempty"`
}

// governStream serves POST /lex/govern/stream.
func (g *request) governStream(w http.ResponseWriter, r *http.Request) error {
	t, err := g.admit(w, r)
	if err != nil {
		return err
	}
	s := &tokenStream{w: w}
	stop := s.keepAlive(keepAlive)
	text, err := t.stream(r.Context(), s)
	stop()
	if outcome := outcomeOf(r.Context(), err); outcome != kernel.Answered && !s.violated() {
		t.failStream(s, outcome)
		return nil
	}
	t.finishStream(s, text)
	return nil
}

// finishStream settles the turn, lets out the tokens that were kept back for
// it, or the refusal in their place, and ends with the one done event.
func (t *governTurn) finishStream(s *tokenStream, text string) {
	t.x.stopEcho(text)
	whole := t.app.sent(s.sent(), text)
	if err := t.settle(text, whole); err != nil {
		t.storeFailed("commit", err)
		t.refundQuota(t.http.Context())
		s.fail(t.result(s.sent()), errGovernor)
		return
	}
	if t.x.turn.Refused {
		s.drop()
		s.token(t.app.Policy.RefusalText)
	} else {
		s.flush()
	}
	s.event(doneEvent{Done: true, result: t.result(whole(t.x.turn))})
}

// failStream records a turn that has no answer and says so.
func (t *governTurn) failStream(s *tokenStream, outcome kernel.Outcome) {
	s.drop()
	t.x.notJudged("no complete output")
	sent := s.sent()
	apiErr := failureOf(outcome)
	if err := t.commit(outcome, t.app.sent(sent, sent)); err != nil {
		t.storeFailed("commit", err)
		apiErr = errGovernor
	}
	if outcome != kernel.ClientGone {
		t.source = sourceNone
		t.refundQuota(t.http.Context())
	}
	s.fail(t.result(sent), apiErr)
}

// stream asks the model for the governed answer in pieces and returns its
// whole text. Where nothing of it could be had the raw answer stands in.
func (t *governTurn) stream(ctx context.Context, s *tokenStream) (string, error) {
	if t.x.turn.Refused {
		return t.generate(ctx)
	}
	defer t.clock(&t.timing.Generate)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	raw := t.startRaw(ctx)
	governed := t.streamModel(ctx, s)
	if governed.err != nil && s.sent() != "" {
		return "", governed.err // a second answer must not follow half of the first
	}
	text, err := t.choose(raw, governed)
	if err == nil && t.source == sourceFallback {
		s.out = t.newOutflow(t.x, cancel, s.write)
		s.whole(text)
	}
	return text, err
}

// streamModel makes the governed call and passes its tokens on as the checks
// release them.
func (t *governTurn) streamModel(ctx context.Context, s *tokenStream) arm {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.handler.Timeout))
	defer cancel()
	s.out = t.newOutflow(t.x, cancel, s.write)
	got := &streamAnswer{answer: newAnswer(t.app.Limits.Body), out: s.out, stop: cancel}
	path, body := askDialect.Ask(t.governedAsk(true))
	err := t.ask(ctx, got, t.http, path, body)
	text := strings.Join(s.out.close(), "") // one choice is asked for
	switch {
	case s.out.violated():
		return arm{text: text} // conclude judges it once more and refuses
	case s.out.tooLarge():
		return arm{err: errAnswerTooLarge}
	case err != nil:
		return arm{err: err}
	case !got.events:
		a := readAnswer(got.answer)
		s.whole(a.text)
		return a
	case !got.ok() || !got.finished || text == "":
		return arm{err: errProvider}
	}
	return arm{text: text}
}

// newOutflow builds the flow of one exchange; without enforcement nothing is
// kept back. What a check flags ends the call to the model as well: it may be
// silent for long.
func (g *request) newOutflow(x *exchange, stop context.CancelFunc, write func([]byte) error) *outflow {
	window := g.handler.HoldBack.Bytes
	if x.mode != kernel.Enforce {
		window = 0
	}
	flagged := func(text string) bool {
		bad := x.capitulates(text)
		if bad {
			stop()
		}
		return bad
	}
	return newOutflow(window, time.Duration(g.handler.HoldBack.Duration), g.app.Limits.Body, flagged, write)
}

// streamAnswer reads a sub-request's answer: event by event when it is an
// event stream, else whole.
type streamAnswer struct {
	*answer
	out      *outflow
	stop     context.CancelFunc
	events   bool
	finished bool // the frame with the finish reason came
	sse      wire.SSE
}

// WriteHeader learns how the answer is framed.
func (a *streamAnswer) WriteHeader(status int) {
	a.answer.WriteHeader(status)
	media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	a.events = a.ok() && media == "text/event-stream"
}

// Write hands the tokens of complete events to the flow.
func (a *streamAnswer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.events {
		return a.answer.Write(p)
	}
	if err := a.sse.Push(p); err != nil {
		return 0, err
	}
	for {
		frame, ok := a.sse.Next()
		if !ok {
			return len(p), nil
		}
		if err := a.event(frame); err != nil {
			return 0, err
		}
	}
}

func (a *streamAnswer) event(frame wire.Frame) error {
	if frame.Comment {
		return nil
	}
	event, err := askDialect.Event(frame)
	if err != nil || event.Err {
		return errProvider
	}
	a.finished = a.finished || event.Finish != ""
	for _, d := range event.Deltas {
		if d.Text == "" || (d.Kind != wire.Text && d.Kind != wire.RefusalText) {
			continue
		}
		if !a.out.add(tokenFrame(d.Text), []wire.Delta{{Kind: wire.Text, Text: d.Text}}) {
			a.stop()
			return context.Canceled
		}
	}
	return nil
}

// tokenFrame is one token event.
func tokenFrame(text string) wire.Frame {
	data, _ := json.Marshal(map[string]string{"token": text}) // strings always encode
	return wire.Frame{Raw: wire.AppendEvent(nil, data), Data: data}
}

// tokenStream is the client's side of a stream. The header leaves with the
// first byte, so that a failure before it is still an ordinary error.
type tokenStream struct {
	w   http.ResponseWriter
	out *outflow // nil until the model is asked

	mu    sync.Mutex
	begun bool
}

// write sends complete events.
func (s *tokenStream) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	return sendNow(s.w, p)
}

// keepAlive sends comments until the returned function is called; after that
// none is on its way any more.
func (s *tokenStream) keepAlive(every time.Duration) (stop func()) {
	ticker := time.NewTicker(every)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				_ = s.write(wire.AppendComment(nil, "keep-alive"))
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}

func (s *tokenStream) token(text string) { _ = s.write(tokenFrame(text).Raw) }

func (s *tokenStream) event(e doneEvent) {
	data, err := json.Marshal(e)
	if err == nil { // numbers of a result are finite
		_ = s.write(wire.AppendEvent(nil, data))
	}
}

// fail ends the stream with its error: as an ordinary answer while nothing was
// sent, else in the done event. A stream never ends in silence.
func (s *tokenStream) fail(res result, e *apiError) {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		writeError(s.w, e)
		return
	}
	s.event(doneEvent{Done: true, result: res, Error: e.Message, Code: e.Code})
}

func (s *tokenStream) sent() string {
	if s.out == nil {
		return ""
	}
	return s.out.sentText()
}

// violated reports whether a check stopped the stream: then its turn ends in the
// refusal, also when the client has left meanwhile.
func (s *tokenStream) violated() bool { return s.out != nil && s.out.violated() }

func (s *tokenStream) flush() {
	if s.out != nil {
		s.out.flush()
	}
}

func (s *tokenStream) drop() {
	if s.out != nil {
		s.out.drop()
	}
}

// whole makes one token of an answer that came in one piece.
func (s *tokenStream) whole(text string) {
	if text != "" {
		s.out.add(tokenFrame(text), []wire.Delta{{Kind: wire.Text, Text: text}})
	}
	s.out.close()
}
