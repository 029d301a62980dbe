package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// writerState is where an answer is on its way to the client.
type writerState int

const (
	stateOpen      writerState = iota // no status yet
	stateBuffering                    // read whole before anything leaves
	stateStreaming                    // an event stream, let out as the checks release it
	statePassing                      // settled: only what carries no text follows
	stateDone                         // answered by us; what follows is thrown away
)

// A governedWriter stands between the handlers after lex and the client, and
// lets a governed answer out no sooner than its receipt is durable: a whole
// answer not at all, a stream not its terminal frame. It takes its writes from
// one goroutine at a time, flushes from another as well: reverse_proxy flushes
// from a timer (caddyserver/caddy, modules/caddyhttp/reverseproxy/streaming.go).
type governedWriter struct {
	*caddyhttp.ResponseWriterWrapper
	t      *interceptTurn
	cancel context.CancelFunc // ends the upstream call

	sending  sync.Mutex // around every write to and flush of the client's side
	mu       sync.Mutex
	state    writerState
	status   int
	body     bytes.Buffer // of a buffered answer
	tooLarge bool
	sse      wire.SSE
	out      *outflow
	tail     []byte // frames from the first terminal one on
	finishes int    // terminal frames seen
	provider bool   // the provider reported an error in the stream
}

func newGovernedWriter(w http.ResponseWriter, t *interceptTurn, cancel context.CancelFunc) *governedWriter {
	return &governedWriter{
		ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, t: t, cancel: cancel,
	}
}

// WriteHeader decides how the answer is read. Informational responses pass.
func (w *governedWriter) WriteHeader(status int) {
	if status >= 100 && status < 200 {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != stateOpen {
		return
	}
	w.status = status
	dropLexHeaders(w.Header())
	if !w.isStream() {
		w.state = stateBuffering
		return
	}
	w.state = stateStreaming
	w.Header().Del("Content-Length") // a refusal may shorten the stream
	w.out = w.t.newOutflow(w.t.x, w.cancel, w.send)
	w.ResponseWriter.WriteHeader(status)
}

// isStream reports whether the answer is an event stream that can be read.
func (w *governedWriter) isStream() bool {
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	return w.status == http.StatusOK && media == "text/event-stream" && !encoded(w.Header())
}

func encoded(h http.Header) bool {
	coding := h.Get("Content-Encoding")
	return coding != "" && !strings.EqualFold(coding, "identity")
}

// dropLexHeaders keeps an upstream from speaking in our name.
func dropLexHeaders(h http.Header) {
	for name := range h {
		if strings.HasPrefix(strings.TrimPrefix(name, http.TrailerPrefix), "X-Lex-") {
			delete(h, name)
		}
	}
}

var errStopped = errors.New("the answer was stopped")

// Write takes bytes of the answer. It fails once nothing more will leave, so
// that the handlers stop reading upstream.
func (w *governedWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK) // without effect after the first
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case stateBuffering:
		if int64(w.body.Len()+len(p)) > w.t.app.Limits.Body {
			w.tooLarge = true
			return 0, errAnswerTooLarge
		}
		return w.body.Write(p)
	case stateStreaming, statePassing:
		return w.writeEvents(p)
	}
	return 0, errStopped
}

// ReadFrom keeps io.Copy from going around Write (the wrapper's own would).
func (w *governedWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// FlushError flushes only what has been let out: before that there is nothing
// below to flush, and flushing would commit a header too early
// (caddyserver/caddy#6144).
func (w *governedWriter) FlushError() error {
	w.mu.Lock()
	released := w.state == stateStreaming || w.state == statePassing
	w.mu.Unlock()
	if !released {
		return nil
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// send writes frames to the client at once.
func (w *governedWriter) send(frames []byte) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	if _, err := w.ResponseWriter.Write(frames); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *governedWriter) writeEvents(p []byte) (int, error) {
	if err := w.sse.Push(p); err != nil {
		return 0, err
	}
	for {
		frame, ok := w.sse.Next()
		if !ok {
			return len(p), nil
		}
		if w.state == statePassing {
			w.afterwards(frame)
		} else if !w.event(frame) {
			w.cancel()
			return 0, errStopped
		}
	}
}

// afterwards sends what follows the settled answer: usage and the end mark.
// Text that comes this late was judged by nobody and is left out.
func (w *governedWriter) afterwards(frame wire.Frame) {
	event, err := w.t.dialect.Event(frame)
	late := slices.ContainsFunc(event.Deltas, func(d wire.Delta) bool { return d.Text != "" }) ||
		slices.ContainsFunc(event.Unknown, func(path string) bool { return strings.HasPrefix(path, "choices") })
	if err == nil && !late {
		_ = w.send(frame.Raw) // a failure means that the client left
	}
}

// event takes one frame of the stream and reports whether to go on. From the
// first terminal frame on everything waits for the receipt, because clients
// stop reading there.
func (w *governedWriter) event(frame wire.Frame) bool {
	event, err := w.t.dialect.Event(frame)
	if err != nil {
		event = wire.Event{Unknown: []string{"frame"}}
	}
	w.note(event)
	if len(event.Unknown) > 0 && w.t.blocksUnknown() {
		w.settleStream(kernel.Aborted)
		return false
	}
	if event.Finish != "" {
		w.finishes++
	}
	if w.finishes == 0 && !event.Done && !event.Err {
		return w.out.add(frame, event.Deltas)
	}
	w.out.read(event.Deltas)
	w.tail = append(w.tail, frame.Raw...)
	switch {
	case event.Err:
		w.settleStream(kernel.ProviderFailed)
	case event.Done || w.finishes >= w.t.call.Choices:
		w.settleStream(kernel.Answered)
	}
	return w.state == statePassing || w.state == stateStreaming
}

// note records what the checks cannot read.
func (w *governedWriter) note(event wire.Event) {
	w.provider = w.provider || event.Err
	for _, path := range event.Unknown {
		w.t.x.unknownOnce("response."+path, "not known to the dialect")
	}
	for _, d := range event.Deltas {
		if d.Kind != wire.Text && d.Kind != wire.RefusalText {
			w.t.x.skipOnce("response."+string(d.Kind), "not read by a detector on this path", len(d.Text))
		}
	}
}

// settleStream concludes on the text that came, commits the turn and lets the
// rest of the stream out, or ends it.
func (w *governedWriter) settleStream(outcome kernel.Outcome) {
	text := w.out.close()
	err := w.t.concludeAnswer(text)
	if err == nil {
		err = w.t.x.commit(w.t.http.Context(), outcome, w.streamSent(outcome, text))
	}
	switch {
	case err != nil:
		w.t.storeFailed("commit", err)
		w.end(w.t.dialect.ErrorEvent(wire.Error{Status: http.StatusServiceUnavailable, Code: errGovernor.Code, Message: errGovernor.Message}))
	case w.t.x.turn.Refused:
		w.end(append(w.comment(), w.t.dialect.RefusalStream(w.t.refusal(), w.out.begun())...))
	case outcome != kernel.Answered && !w.provider:
		w.end(append(w.comment(), w.t.dialect.ErrorEvent(wire.Error{Status: http.StatusBadGateway, Code: "upstream_aborted", Message: "The model's answer broke off."})...))
	default:
		w.out.flush()
		w.state = statePassing
		_ = w.send(append(w.comment(), w.tail...)) // a failure means that the client left
	}
}

// streamSent is what the client has read in the end.
func (w *governedWriter) streamSent(outcome kernel.Outcome, text string) sentText {
	begun := w.out.sentText()
	return func(turn kernel.Turn) string {
		switch {
		case turn.Refused:
			return begun + w.t.app.Policy.RefusalText
		case outcome == kernel.Aborted || outcome == kernel.ClientGone:
			return begun
		}
		return text
	}
}

// end closes a stream that must not go on with its last frames.
func (w *governedWriter) end(frames []byte) {
	w.out.drop()
	w.state = stateDone
	_ = w.send(frames) // a failure means that the client left
}

// comment tells the receipt's id in a stream, where it is known last.
func (w *governedWriter) comment() []byte {
	if w.t.handler.Headers == "none" || w.t.x.mode == kernel.Observe || !w.t.x.persisted {
		return nil
	}
	return wire.AppendComment(nil, "x-lex-receipt-id: "+w.t.x.receipt.ID)
}

// answered reports whether the client got a complete answer from us.
func (w *governedWriter) answered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state == stateDone
}

// finish settles what the handlers left: a whole answer, a stream without its
// end, an error or nothing.
func (w *governedWriter) finish(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state == stateStreaming:
		w.finishStream(ctx)
	case w.state == statePassing:
		_ = w.send(w.sse.Rest()) // what upstream left without its blank line
	case w.state == stateDone:
	case err != nil || w.tooLarge || w.state == stateOpen:
		w.finishFailure(ctx)
	default:
		w.finishWhole(ctx)
	}
}

// finishStream ends a stream that a check stopped, that the client left or
// that upstream broke off.
func (w *governedWriter) finishStream(ctx context.Context) {
	switch {
	case w.out.violated:
		w.settleStream(kernel.Answered)
	case ctx.Err() != nil:
		w.settleStream(kernel.ClientGone)
	default:
		w.settleStream(kernel.Aborted)
	}
}

// finishFailure answers for handlers that did not.
func (w *governedWriter) finishFailure(ctx context.Context) {
	outcome := kernel.ProviderFailed
	if ctx.Err() != nil {
		outcome = kernel.ClientGone
	}
	w.t.x.notRun(detectorJudge, "no output")
	w.state = stateDone
	if err := w.t.x.commit(ctx, outcome, nothingSent); err != nil {
		w.t.failed(w.ResponseWriter, "commit", err)
		return
	}
	w.t.tell(w.Header())
	writeDialectError(w.ResponseWriter, w.t.dialect, errUpstream, errUpstream.Status)
}

var errUpstream = &apiError{http.StatusBadGateway, "The model provider could not be reached or its answer could not be read.", "upstream_failed"}

// finishWhole judges a whole answer and sends it, or the refusal in its place.
func (w *governedWriter) finishWhole(ctx context.Context) {
	text, outcome := w.read()
	if len(w.t.x.coverage.Unknown) > 0 && w.t.blocksUnknown() {
		dropBodyHeaders(w.Header())
		w.finishFailure(ctx)
		return
	}
	err := w.t.concludeAnswer(text)
	if err == nil {
		err = w.t.x.commit(w.t.http.Context(), outcome, func(turn kernel.Turn) string {
			if turn.Refused {
				return w.t.app.Policy.RefusalText
			}
			return text
		})
	}
	w.state = stateDone
	switch {
	case err != nil:
		dropBodyHeaders(w.Header())
		w.t.failed(w.ResponseWriter, "commit", err)
	case w.t.x.turn.Refused:
		dropBodyHeaders(w.Header())
		w.t.writeRefusal(w.ResponseWriter)
	default:
		w.t.tell(w.Header())
		w.Header().Set("Content-Length", strconv.Itoa(w.body.Len()))
		w.ResponseWriter.WriteHeader(w.status)
		_, _ = w.ResponseWriter.Write(w.body.Bytes()) // a failure means that the client left
	}
}

// read takes the text out of a buffered answer and records its coverage.
func (w *governedWriter) read() (string, kernel.Outcome) {
	switch {
	case w.status >= http.StatusBadRequest:
		w.t.x.skip("response", "the provider's error", w.body.Len())
		return "", kernel.ProviderFailed
	case encoded(w.Header()):
		w.t.x.unknown("response", "content encoding", w.body.Len())
		return "", kernel.Answered
	}
	response, err := w.t.dialect.Response(w.body.Bytes())
	if err != nil {
		w.t.x.unknown("response", "not the dialect's JSON", w.body.Len())
		return "", kernel.Answered
	}
	return w.t.x.coverResponse(response.Parts), kernel.Answered
}

// concludeAnswer judges the text of an answer; without text there is nothing
// to judge.
func (t *interceptTurn) concludeAnswer(text string) error {
	if text == "" {
		t.x.notRun(detectorJudge, "no output text")
		return nil
	}
	if t.call.Stream {
		t.x.coverAnswer("response", len(text))
	}
	return t.x.conclude(text)
}

// dropBodyHeaders takes away what described the body that is replaced.
func dropBodyHeaders(h http.Header) {
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Digest", "Content-Md5", "Accept-Ranges", "Last-Modified"} {
		h.Del(name)
	}
}

// Interface guards
var (
	_ http.ResponseWriter                       = (*governedWriter)(nil)
	_ io.ReaderFrom                             = (*governedWriter)(nil)
	_ interface{ FlushError() error }           = (*governedWriter)(nil)
	_ interface{ Unwrap() http.ResponseWriter } = (*governedWriter)(nil)
)
