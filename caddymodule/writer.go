package caddymodule

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

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

// writeTime bounds one write to the client. Who does not read for that long is
// gone: the answer must not be kept for them.
const writeTime = time.Minute

// A governedWriter stands between the handlers after lex and the client, and
// lets a governed answer out no sooner than its receipt is durable: a whole
// answer not at all, a stream not its terminal frame. It takes its writes from
// one goroutine at a time, flushes from another as well: reverse_proxy flushes
// from a timer (caddyserver/caddy, modules/caddyhttp/reverseproxy/streaming.go).
// A write to a slow client blocks, and with it the reading of upstream.
type governedWriter struct {
	*caddyhttp.ResponseWriterWrapper
	t      *interceptTurn
	cancel context.CancelFunc // ends the upstream call
	before http.Header        // the headers before the handlers after lex ran

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
}

func newGovernedWriter(w http.ResponseWriter, t *interceptTurn, cancel context.CancelFunc) *governedWriter {
	return &governedWriter{
		ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, t: t, cancel: cancel,
		before: w.Header().Clone(),
	}
}

// WriteHeader decides how the answer is read. Informational responses pass,
// without what speaks in our name. A change of protocol is not among them: no
// header of ours asked for it, and nothing could be read behind it.
func (w *governedWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != stateOpen {
		return
	}
	dropLexHeaders(w.Header(), nil)
	if status == http.StatusSwitchingProtocols {
		w.state = stateBuffering // without a status it counts as no answer
		return
	}
	if status < http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = status
	if !w.isStream() {
		w.state = stateBuffering
		return
	}
	w.state = stateStreaming
	w.Header().Del("Content-Length") // a refusal may shorten the stream
	w.out = w.t.newOutflow(w.t.x, w.cancel, w.send)
	w.t.tell(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

// isStream reports whether the answer is an event stream that can be read as it
// comes.
func (w *governedWriter) isStream() bool {
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	return w.status < http.StatusMultipleChoices && media == "text/event-stream" && !encoded(w.Header())
}

func encoded(h http.Header) bool {
	coding := h.Get("Content-Encoding")
	return coding != "" && !strings.EqualFold(coding, "identity")
}

var (
	errStopped  = errors.New("the answer was stopped")
	errNoHijack = errors.New("a governed connection cannot be taken over")
)

// Hijack refuses: nothing would be read behind it.
func (w *governedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errNoHijack }

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
	return sendNow(w.ResponseWriter, frames)
}

// sendNow writes and flushes within writeTime. A writer that knows no deadlines
// is one of a test.
func sendNow(w http.ResponseWriter, p []byte) error {
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(writeTime))
	defer func() { _ = connection.SetWriteDeadline(time.Time{}) }()
	if _, err := w.Write(p); err != nil {
		return err
	}
	return connection.Flush()
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
// Text that comes this late was judged by nobody and is left out, and so is what
// cannot be read.
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
	event := w.t.readEvent(frame)
	w.note(event)
	if len(event.Unknown) > 0 && w.t.blocksUnknown() {
		w.settleStream(kernel.Refused, errUnknownAnswer)
		return false
	}
	if event.Finish != "" {
		w.finishes++
	}
	if w.finishes == 0 && !event.Done && !event.Err {
		return w.out.add(frame, event.Deltas)
	}
	w.tail = append(w.tail, frame.Raw...)
	switch {
	case !w.out.read(event.Deltas) || int64(len(w.tail)) > w.t.app.Limits.Body:
		w.settleStream(kernel.Aborted, errAnswerSize)
	case event.Err:
		w.settleStream(kernel.ProviderFailed, nil)
	case event.Done || w.finishes >= w.t.call.Choices:
		w.settleStream(kernel.Answered, nil)
	}
	return w.state == statePassing || w.state == stateStreaming
}

// readEvent reads a frame in the dialect. What is none of it is unknown; its
// texts are read loosely where the operator wants that, as text of the first
// choice: two JSON documents in one frame, a member that occurs twice, a NUL or
// a byte order mark do not keep every client from showing them.
func (t *interceptTurn) readEvent(frame wire.Frame) wire.Event {
	event, err := t.dialect.Event(frame)
	if err == nil {
		return event
	}
	event = wire.Event{Unknown: []string{"frame"}}
	if t.inspectsUnknown() {
		for _, p := range wire.LooseParts(bytes.ToValidUTF8(frame.Data, []byte("\uFFFD"))) {
			event.Deltas = append(event.Deltas, wire.Delta{Kind: wire.Text, Text: p.Text + " "})
		}
	}
	return event
}

// note records what the checks cannot read.
func (w *governedWriter) note(event wire.Event) {
	for _, path := range event.Unknown {
		w.t.x.unknownOnce("response."+path, "not known to the dialect")
	}
	for _, d := range event.Deltas {
		if !d.IsText() {
			w.t.x.skipOnce("response."+string(d.Kind), "not read by a detector on this path", len(d.Text))
		}
	}
}

// Interface guards
var (
	_ http.ResponseWriter                       = (*governedWriter)(nil)
	_ http.Hijacker                             = (*governedWriter)(nil)
	_ io.ReaderFrom                             = (*governedWriter)(nil)
	_ interface{ FlushError() error }           = (*governedWriter)(nil)
	_ interface{ Unwrap() http.ResponseWriter } = (*governedWriter)(nil)
)
