package caddymodule

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// An answerReader governs an answer that an answerWriter takes from the handlers
// after lex. Its functions are called one at a time; of Whole and End exactly one
// is called, last.
type answerReader interface {
	// Frame takes the next frame of a stream and reports whether the stream goes on.
	// The header has left before the first frame.
	Frame(f wire.Frame) (more bool)
	// Whole takes the body of an answer that is not a stream.
	Whole(status int, body []byte)
	// End takes the whole frame that a stream ended in without an end of its own, if there
	// is one, and why there is no whole answer; nil if the handlers ended without an error.
	End(last *wire.Frame, err error)
}

var (
	errStopped        = errors.New("the answer was stopped")
	errAnswerTooLarge = errors.New("the answer is too large")
	errCutFrame       = errors.New("the answer ends within a frame or an array")
	errNoHijack       = errors.New("a governed connection cannot be taken over")
)

// writerState is how an answer is read.
type writerState int

const (
	stateOpen      writerState = iota // no status yet
	stateWhole                        // whole, before anything leaves
	stateStreaming                    // frame by frame; the header has left
	stateStopped                      // nothing of it is wanted any more
)

// An answerWriter stands between the handlers after lex and the client. It knows
// HTTP and nothing of governance: it decides whether an answer is a stream, takes
// it apart and hands it to its reader. It takes its writes from one goroutine at a
// time, flushes from another as well: reverse_proxy flushes from a timer
// (caddyserver/caddy, modules/caddyhttp/reverseproxy/streaming.go). A write to a
// slow client blocks, and with it the reading of upstream.
type answerWriter struct {
	*caddyhttp.ResponseWriterWrapper
	client *clientSide
	reader answerReader
	cancel context.CancelFunc // ends the upstream call
	limit  int64              // of a whole answer, in bytes
	tell   func(http.Header)  // gives a stream's header what it gets of ours
	// framing is the one that a stream has in the caller's dialect. An answer with
	// another is read whole.
	framing wire.Framing

	mu     sync.Mutex
	state  writerState
	status int
	body   bytes.Buffer // of a whole answer
	unread error        // why the answer cannot be read any further
	frames wire.Splitter
	ours   http.Header // what tell wrote
}

func newAnswerWriter(client *clientSide, reader answerReader, cancel context.CancelFunc, limit int64, framing wire.Framing, tell func(http.Header)) *answerWriter {
	return &answerWriter{
		ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: client.ResponseWriter},
		client:                client, reader: reader, cancel: cancel, limit: limit, tell: tell,
		framing: framing, frames: wire.NewSplitter(framing, int(min(limit, math.MaxInt))),
	}
}

// WriteHeader decides how the answer is read. Informational responses pass,
// without X-Lex-* headers. A change of protocol is not among them: no
// header of ours asked for it, and nothing could be read behind it.
func (w *answerWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != stateOpen {
		return
	}
	dropLexHeaders(w.Header(), nil)
	switch {
	case status == http.StatusSwitchingProtocols, status < http.StatusContinue: // net/http panics at the latter
		w.state = stateWhole // without a status it counts as no answer
	case status < http.StatusOK:
		w.ResponseWriter.WriteHeader(status)
	case isStream(status, w.Header(), w.framing) && !encoded(w.Header()):
		w.beginStream(status)
	default:
		w.state, w.status = stateWhole, status
	}
}

// isStream reports whether an answer is a stream that can be read frame by frame.
func isStream(status int, h http.Header, framing wire.Framing) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return status < http.StatusMultipleChoices && media == string(framing) && !inOtherCharset(h)
}

// beginStream lets the header of a stream leave.
func (w *answerWriter) beginStream(status int) {
	w.state, w.status = stateStreaming, status
	w.Header().Del("Content-Length") // a refusal may shorten the stream
	w.tell(w.Header())
	w.ours = lexHeaders(w.Header())
	w.client.begin()
	w.ResponseWriter.WriteHeader(status)
}

// unpackStream reads a stream that has come whole, because it was encoded. One that cannot be
// decoded stays whole. It fails as Write does.
func (w *answerWriter) unpackStream() error {
	h := w.Header()
	if !isStream(w.status, h, w.framing) || !encoded(h) {
		return nil
	}
	plain, err := loose.Decode(w.body.Bytes(), codings(h), w.limit)
	if err != nil {
		return nil //nolint:nilerr // it is read as it is
	}
	h.Del("Content-Encoding")
	dropDescription(h)
	w.beginStream(w.status)
	_, err = w.writeFrames(plain)
	return err
}

// inOtherCharset reports whether a header names a charset in which a body may read
// differently than in UTF-8, or several. JSON is in UTF-8 (RFC 8259, section 8.1), but
// some servers and clients go by the header: aiohttp in requests, httpx in streams.
func inOtherCharset(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Type"), func(line string) bool {
		_, params, err := mime.ParseMediaType(line)
		return strings.Contains(strings.ToLower(line), "charset") &&
			(err != nil || !loose.ReadsAsUTF8(params["charset"]))
	})
}

// encoded reports whether a body is in an encoding that hides its text.
func encoded(h http.Header) bool {
	for coding := range strings.SplitSeq(codings(h), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return true
		}
	}
	return false
}

// codings are the encodings of a body in the order in which they were applied.
func codings(h http.Header) string { return strings.Join(h.Values("Content-Encoding"), ",") }

// Write takes bytes of the answer. It fails once nothing more will leave, so that
// the handlers stop reading upstream.
func (w *answerWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK) // without effect after the first
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case stateWhole:
		if int64(w.body.Len()+len(p)) > w.limit {
			w.unread = errAnswerTooLarge
			return 0, w.unread
		}
		return w.body.Write(p)
	case stateStreaming:
		return w.writeFrames(p)
	}
	return 0, errStopped
}

// readPart is how many bytes of a stream are cut into frames at a time: frames that were cut
// and not read yet stay in memory, and one write may bring many.
const readPart = 1 << 10

// writeFrames reads what came of a stream. What leaves of it leaves together: models and
// the network bring many small frames at a time, and a packet for each of them costs more than
// everything else that is done with it.
func (w *answerWriter) writeFrames(p []byte) (n int, err error) {
	w.client.cork()
	defer w.client.uncork()
	for part := range slices.Chunk(p, readPart) {
		if err := w.readFrames(part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

func (w *answerWriter) readFrames(p []byte) error {
	failed := w.frames.Push(p)
	for {
		frame, ok := w.frames.Next()
		if !ok {
			w.unread = failed // the frames before the one that cannot be read were whole
			if errors.Is(failed, wire.ErrFrameTooLarge) {
				w.unread = errAnswerTooLarge
			}
			return w.unread
		}
		if !w.reader.Frame(w.inItsOwnName(frame)) {
			w.state = stateStopped
			w.cancel()
			return errStopped
		}
	}
}

// inItsOwnName takes the comments out of a frame that only we write: clients find the id of
// the receipt of a stream in one.
func (w *answerWriter) inItsOwnName(f wire.Frame) wire.Frame {
	if w.framing != wire.EventStream {
		return f
	}
	return f.WithoutComments("x-lex-")
}

// ReadFrom keeps io.Copy from going around Write (the wrapper's own would).
func (w *answerWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// FlushError flushes what was let out. Before that there is nothing below to
// flush, and flushing would commit a header too early (caddyserver/caddy#6144).
func (w *answerWriter) FlushError() error {
	w.mu.Lock()
	streaming := w.state == stateStreaming
	w.mu.Unlock()
	if !streaming {
		return nil
	}
	return w.client.flush()
}

// Hijack refuses: nothing would be read behind it.
func (w *answerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errNoHijack }

// finish hands over what the handlers left: a whole answer, the rest of a stream,
// an error or nothing. X-Lex-* trailers are dropped too.
func (w *answerWriter) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.state == stateWhole && w.unread == nil && w.status != 0 {
		err = w.unpackStream()
	}
	switch {
	case w.unread != nil:
		w.reader.End(nil, w.unread)
	case err == nil && w.state == stateWhole && w.status != 0:
		w.reader.Whole(w.status, w.body.Bytes())
	case w.state == stateStreaming:
		w.endStream(err)
	default:
		w.reader.End(nil, err)
	}
	w.client.uncork()
	w.client.end()
	if w.state == stateStreaming {
		dropLexHeaders(w.Header(), w.ours) // of the trailers, which access logs take for headers
	}
	dropTrailers(w.Header(), w.client.replaced)
	for name, value := range w.client.trailer {
		w.Header().Set(http.TrailerPrefix+name, value)
	}
}

// endStream hands over the end of a stream. A frame that broke off is no part of the answer:
// nothing could be read behind its bytes, and nobody knows what it was going to say.
func (w *answerWriter) endStream(err error) {
	last, ok := w.frames.Last()
	if !ok {
		w.reader.End(nil, err)
		return
	}
	whole, ok := w.frames.Ended(last)
	switch {
	case ok:
		whole = w.inItsOwnName(whole)
		w.reader.End(&whole, err)
	case err == nil:
		w.reader.End(nil, errCutFrame)
	default:
		w.reader.End(nil, err)
	}
}

// A clientSide is the connection to the client as a governed answer uses it.
type clientSide struct {
	http.ResponseWriter
	streams prometheus.Gauge // those that have begun
	before  http.Header      // the headers before the handlers after lex ran

	begun    bool              // the header of upstream's stream has left
	trailer  map[string]string // of ours
	replaced bool              // the answer, or its end, is ours and not upstream's

	sending   sync.Mutex // around every write and flush
	corked    bool       // what is sent waits for uncork
	unflushed bool       // something does
	piece     []byte     // small frames that are written together
}

func newClientSide(w http.ResponseWriter, streams prometheus.Gauge) *clientSide {
	return &clientSide{ResponseWriter: w, streams: streams, before: w.Header().Clone()}
}

// begin notes that the header of a stream leaves, and end that nothing follows any more.
func (c *clientSide) begin() {
	c.begun = true
	c.streams.Inc()
}

func (c *clientSide) end() {
	if c.begun {
		c.streams.Dec()
	}
}

// Unwrap lets http.ResponseController reach the connection, whose deadline bounds
// a write.
func (c *clientSide) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// pieceSize is how many bytes of small frames are written together. What Caddy and net/http
// do for each write costs more than a frame of a word. Their buffers hold more than that, so
// what leaves is cut at the same places as without.
const pieceSize = 1 << 10

// send writes frames to the client, at once unless it is corked.
func (c *clientSide) send(frames ...wire.Frame) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.unflushed = c.unflushed || c.corked
	out := boundWrites(c.ResponseWriter)
	defer out.free()
	c.piece = slices.Grow(c.piece[:0], pieceSize)
	for _, f := range frames {
		if len(c.piece)+len(f.Raw) > pieceSize {
			if err := out.write(c.piece); err != nil {
				return err
			}
			c.piece = c.piece[:0]
		}
		if len(f.Raw) <= pieceSize {
			c.piece = append(c.piece, f.Raw...)
		} else if err := out.write(f.Raw); err != nil {
			return err
		}
	}
	if err := out.write(c.piece); err != nil {
		return err
	}
	if c.corked {
		return nil
	}
	return out.Flush()
}

// sendRaw is send for one frame of ours.
func (c *clientSide) sendRaw(frame []byte) error { return c.send(wire.Frame{Raw: frame}) }

// cork lets what is sent wait for uncork, which comes before everything that may take
// longer than to read what has come.
func (c *clientSide) cork() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.corked = true
}

func (c *clientSide) uncork() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.corked = false
	if c.unflushed {
		c.unflushed = false
		_ = sendNow(c.ResponseWriter) // a failure means that the client left, and the next write fails too
	}
}

func (c *clientSide) flush() error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// replace removes the headers that upstream wrote about its answer, such as cookies,
// caching and encodings. They do not describe ours.
func (c *clientSide) replace() {
	c.replaced = true
	h := c.Header()
	clear(h)
	maps.Copy(h, c.before.Clone())
}

// keepStatusHeaders makes replace keep the headers that belong to the status of an error
// (RFC 9110, 10.2.1, 10.2.3 and 11.6.1).
func (c *clientSide) keepStatusHeaders() {
	for _, name := range []string{"Allow", "Retry-After", "Www-Authenticate"} {
		if values, there := c.Header()[name]; there {
			c.before[name] = values
		}
	}
}

// A client that does not take writePart bytes within writeTime is gone: the answer
// must not be kept for it. A slow one that goes on reading gets all of it.
const (
	writeTime = time.Minute
	writePart = 64 << 10
)

// sendNow writes and flushes.
func sendNow(w http.ResponseWriter, frames ...[]byte) error {
	out := boundWrites(w)
	defer out.free()
	for _, frame := range frames {
		if err := out.write(frame); err != nil {
			return err
		}
	}
	return out.Flush()
}

// boundedWrites are writes and a flush of which each writePart bytes have writeTime. Only
// writers in tests know no deadlines.
type boundedWrites struct {
	http.ResponseController

	w    http.ResponseWriter
	room int // until the next deadline
}

func boundWrites(w http.ResponseWriter) boundedWrites {
	b := boundedWrites{ResponseController: *http.NewResponseController(w), w: w}
	b.bound()
	return b
}

func (b *boundedWrites) bound() {
	_ = b.SetWriteDeadline(time.Now().Add(writeTime))
	b.room = writePart
}

// free lets later writes take any time.
func (b *boundedWrites) free() { _ = b.SetWriteDeadline(time.Time{}) }

func (b *boundedWrites) write(p []byte) error {
	for part := range slices.Chunk(p, writePart) {
		if len(part) > b.room {
			b.bound()
		}
		b.room -= len(part)
		if _, err := b.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// passCleanly runs the next handlers for a request whose answer is not governed.
// Upstream's X-Lex-* headers are dropped; tell, if it is not nil, sets ours once the
// status is known.
func passCleanly(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, tell func(status int, h http.Header)) error {
	pw := &passingWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, tell: tell}
	err := next.ServeHTTP(pw, r)
	dropLexHeaders(w.Header(), pw.ours) // of the trailers
	return err
}

// A passingWriter lets an answer through that is not governed, without what
// has an X-Lex-* name.
type passingWriter struct {
	*caddyhttp.ResponseWriterWrapper
	tell  func(status int, h http.Header)
	ours  http.Header // the headers that tell wrote
	final bool
}

// WriteHeader takes our names from the upstream's headers and writes our own.
func (w *passingWriter) WriteHeader(status int) {
	if w.final {
		return
	}
	if status < http.StatusContinue { // net/http would panic
		status = http.StatusBadGateway
	}
	dropLexHeaders(w.Header(), nil)
	if w.final = status >= http.StatusOK || status == http.StatusSwitchingProtocols; w.final && w.tell != nil {
		w.tell(status, w.Header())
		w.ours = lexHeaders(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer.
func (w *passingWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK) // without effect after the first
	return w.ResponseWriter.Write(p)
}

// ReadFrom writes the answer.
func (w *passingWriter) ReadFrom(r io.Reader) (int64, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError flushes what was written.
func (w *passingWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// lexHeaders returns the X-Lex-* headers.
func lexHeaders(h http.Header) http.Header {
	ours := make(http.Header)
	for name, values := range h {
		if strings.HasPrefix(name, "X-Lex-") {
			ours[name] = values
		}
	}
	return ours
}

// dropLexHeaders removes what an upstream wrote under an X-Lex-* name, in headers, in
// trailers and in what announces trailers. What we wrote ourselves stays.
func dropLexHeaders(h, ours http.Header) {
	for name := range h {
		bare := http.CanonicalHeaderKey(strings.TrimPrefix(name, http.TrailerPrefix))
		if strings.HasPrefix(bare, "X-Lex-") {
			delete(h, name)
		}
	}
	for name, values := range ours {
		h[name] = values
	}
	announced := h.Values("Trailer")
	h.Del("Trailer")
	for _, line := range announced {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" && !strings.HasPrefix(http.CanonicalHeaderKey(name), "X-Lex-") {
				h.Add("Trailer", name)
			}
		}
	}
}

// dropTrailers removes upstream's trailers: those named X-Lex-*, or all of them if the
// answer is ours.
func dropTrailers(h http.Header, all bool) {
	var announced []string
	for _, line := range h.Values("Trailer") {
		announced = append(announced, strings.Split(line, ",")...)
	}
	for name := range h {
		bare, late := strings.CutPrefix(name, http.TrailerPrefix)
		if late && (all || strings.HasPrefix(http.CanonicalHeaderKey(bare), "X-Lex-")) {
			delete(h, name)
		}
	}
	for _, name := range announced {
		if all {
			h.Del(strings.TrimSpace(name))
		}
	}
}

// Interface guards
var (
	_ http.ResponseWriter                       = (*answerWriter)(nil)
	_ http.Hijacker                             = (*answerWriter)(nil)
	_ io.ReaderFrom                             = (*answerWriter)(nil)
	_ interface{ FlushError() error }           = (*answerWriter)(nil)
	_ interface{ Unwrap() http.ResponseWriter } = (*answerWriter)(nil)

	_ io.ReaderFrom                   = (*passingWriter)(nil)
	_ interface{ FlushError() error } = (*passingWriter)(nil)
)
