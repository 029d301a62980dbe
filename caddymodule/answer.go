package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// A governedAnswer is the model's answer to an intercepted call. A whole answer
// waits for its receipt. A stream is sent as it is checked; what waits is the rest from
// its first terminal frame on, because clients stop reading there, or from the first
// call of a tool, because clients may run it.
type governedAnswer struct {
	*interception
	assessed *govern.Assessed
	client   *clientSide
	events   wire.EventReader
	stream   wire.StreamWriter
	gate     *govern.Gate
	tail     []wire.Frame // from the first on that waits for the receipt
	tailSize int          // in bytes
	finished map[int]bool // the choices that have ended
	choices  int          // how many were asked for, or more if there are more
	// atTail reads a stream as from the beginning of the tail, and beforeTail are the texts
	// of the choices before it.
	atTail     wire.EventReader
	beforeTail map[int]string
	usage      wire.Usage // as far as the answer tells it
	mayEnd     bool       // the answer is complete if the stream ends now
	ending     bool       // it is not, before the dialect's end of stream
	settled    bool       // committed, and let go
	failed     bool       // a whole answer is a failure of the provider
	// stopKeepAlive ends what tells the client that the stream is not dead, while frames
	// wait although the model goes on. It is nil until the first of them.
	stopKeepAlive func()
}

func (c *interception) newAnswer(assessed *govern.Assessed, client *clientSide, stop context.CancelFunc) *governedAnswer {
	a := &governedAnswer{
		interception: c, assessed: assessed, client: client,
		events: c.dialect.Events(), stream: c.dialect.Stream(), choices: c.call.Choices,
	}
	assessed.InPieces = !a.asksToolServer()
	a.gate = assessed.NewGate(c.gateConfig(a.release), stop)
	return a
}

// release sends frames that the gate lets go.
func (a *governedAnswer) release(frames []wire.Frame) error {
	for _, f := range frames {
		a.stream.Sent(f)
	}
	return a.client.send(frames...)
}

// appendRaw appends the bytes of frames.
func appendRaw(raw [][]byte, frames []wire.Frame) [][]byte {
	raw = slices.Grow(raw, len(frames))
	for _, f := range frames {
		raw = append(raw, f.Raw)
	}
	return raw
}

// gateConfig is the configured hold-back of a stream.
func (g *request) gateConfig(write func([]wire.Frame) error) govern.GateConfig {
	return govern.GateConfig{
		Window: g.handler.HoldBack.Bytes, MaxDelay: time.Duration(g.handler.HoldBack.Duration),
		Limit: g.app.Limits.Body, Write: write,
		Held: func(change int) { g.app.metrics.heldBytes.Add(float64(change)) },
	}
}

// Frame takes one frame of a streamed answer. From the first terminal frame on, and from
// the first call that the client runs, everything waits for the receipt.
func (a *governedAnswer) Frame(f wire.Frame) (more bool) {
	a.usage.Read(f.Data)
	if a.settled || a.ending {
		return a.lateFrame(f)
	}
	event := a.readFrame(f)
	if len(event.Unknown) > 0 && a.blocksUnknown() {
		a.finalize(kernel.Refused, errUnknownAnswer)
		return false
	}
	if a.assessed.HasResults() {
		a.client.uncork() // a guard may be asked
	}
	switch refused, err := a.assessed.AssessToolResults(a.r.Context()); {
	case err != nil:
		return false // the client left
	case refused:
		if resumer, ok := a.stream.(wire.Resumer); ok {
			resumer.Refused(f)
		}
		a.finalize(kernel.Answered, nil) // neither the frame has left nor pieces before it
		return false
	}
	a.gate.KeepBack(a.assessed.AwaitsPieces())
	a.follow(event)
	a.mayEnd, a.ending = a.mayEnd || event.MayEnd, a.ending || event.Ending
	calls := len(event.Calls) > 0 || a.assessed.Unreadable()
	if calls && !a.gate.Settle() {
		return false
	}
	if (calls || a.mayEnd || a.ending) && a.stopKeepAlive == nil {
		a.stopKeepAlive = a.keepAlive()
	}
	if a.stopKeepAlive == nil && len(a.finished) == 0 && !event.Done && !event.Err {
		return a.gate.Append(f, event.Deltas)
	}
	return a.hold(f, event)
}

// hold keeps a frame that waits for the receipt, and commits the turn with the last one.
func (a *governedAnswer) hold(f wire.Frame, event wire.Event) (more bool) {
	if a.tail == nil {
		a.atTail, a.beforeTail = a.events.Rest(), a.gate.TextsByChoice()
	}
	a.app.metrics.heldBytes.Add(float64(len(f.Raw)))
	a.tail, a.tailSize = append(a.tail, f), a.tailSize+len(f.Raw)
	switch {
	case !a.gate.Count(event.Deltas) || int64(a.tailSize) > a.app.Limits.Body:
		a.finalize(kernel.Aborted, errAnswerSize)
	case event.Err:
		a.finalize(kernel.ProviderFailed, nil)
	case event.Done || !a.ending && len(a.finished) >= a.choices:
		a.finalize(kernel.Answered, nil)
	}
	return !a.client.replaced
}

// follow counts the choices and notes which have ended. A provider may send more than were
// asked for, and the answer has not ended while one of them goes on. Servers of tools name
// the choices of their answers, which come whole, only at the end.
func (a *governedAnswer) follow(event wire.Event) {
	for _, d := range event.Deltas {
		if a.assessed.InPieces {
			a.choices = max(a.choices, d.Choice+1)
		}
	}
	if len(event.Finished) > 0 && a.finished == nil {
		a.finished = make(map[int]bool)
	}
	for _, choice := range event.Finished {
		a.finished[choice] = true
	}
}

// readFrame reads a frame of a stream, and loosely what stands in it beside its fields.
func (a *governedAnswer) readFrame(f wire.Frame) wire.Event {
	event := a.assessed.ReadEvent(a.events, f)
	if len(f.Stray) > 0 {
		a.assessed.ReadStray(&event, f.Stray)
	}
	return event
}

// lateFrame takes a frame behind all that the model says: usage and the end mark. What comes
// this late is in no receipt, so a frame with content is dropped, and so is one that cannot be
// read. A member that the dialect does not know is taken out, because some providers put their
// citations beside the usage. Who observes changes no answer.
func (a *governedAnswer) lateFrame(f wire.Frame) (more bool) {
	event, err := a.events.Event(f)
	known, ok := f.Known(event.Unknown)
	late := !ok || len(event.Deltas) > 0 || len(event.Calls) > 0 || len(f.Stray) > 0 ||
		// a second answer, or the end of a choice whose content came as late
		slices.ContainsFunc(event.Finished, func(choice int) bool { return a.asksToolServer() || !a.finished[choice] })
	switch {
	case !a.settled && event.Err:
		a.opened.Coverage.Skip("response", "the provider's error", len(f.Data))
		return a.hold(f, event)
	case a.handler.Mode == string(kernel.Observe) && a.settled:
		_ = a.client.send(f)
	case a.handler.Mode == string(kernel.Observe):
		event.Deltas = nil // they come too late to be judged
		return a.hold(f, event)
	case !a.settled && err == nil && !late:
		return a.hold(known, event)
	case err == nil && !late:
		_ = a.client.send(known) // a failure means that the client left
	}
	return true
}

// finalize judges the text of a stream, commits the turn and releases the rest of the
// stream, or ends it with the refusal or with the failure. If failure is nil, the
// stream ends as upstream ended it, which may be with upstream's own error.
func (a *governedAnswer) finalize(outcome kernel.Outcome, failure *apiError) {
	if a.stopKeepAlive != nil {
		a.stopKeepAlive()
	}
	a.client.uncork() // judges and the store may take long
	a.gate.Close()
	texts, begun := a.assembled(a.gate), a.gate.SentChoices()
	cut := failure != nil || outcome == kernel.ClientGone // the client has read what had left
	if cut {
		a.assessed.DropCalls()
	}
	var rest []byte // what leaves of the tail
	stop := a.keepAlive()
	receipt, err := a.judge(texts, &outcome, func(d govern.Decisions) (govern.Sent, error) {
		switch {
		case d.Turn.Refused && failure != errUnknownAnswer:
			return a.refusedTexts(begun), nil
		case cut || outcome == kernel.ClientGone:
			return a.sentTexts(begun), nil
		}
		var shown []string
		var err error
		rest, shown, err = a.editTail(d)
		return a.sentTexts(shown), err
	})
	stop()
	if err == nil && !receipt.Turn.Refused && (outcome == kernel.ProviderFailed || failure == errUpstreamBroken) {
		a.refundQuota(a.r.Context()) // before the client has the end, and leaves
	}
	switch {
	case err != nil:
		e := a.fail(a.r.Context(), "commit", err)
		a.failures.report(e)
		a.endStream(receipt, a.streamError(e.withStatus(http.StatusServiceUnavailable)))
	case receipt.Turn.Refused && failure != errUnknownAnswer:
		a.endStream(receipt, a.stream.Refusal(a.refusal(receipt)))
	case failure != nil:
		a.endStream(receipt, a.streamError(failure))
	default:
		a.client.cork() // the end mark follows, or the end of the answer
		a.gate.Flush()
		a.settled = true
		_ = a.client.sendRaw(append(a.receiptNote(receipt), rest...)) // a failure means that the client left
	}
}

// close lets go of what an answer still holds, and counts its tokens.
func (a *governedAnswer) close(ctx context.Context) {
	a.gate.Drop()
	a.app.metrics.heldBytes.Sub(float64(a.tailSize))
	a.app.metrics.countTokens(a.dialect.Name(), a.usage)
	traceTokens(ctx, a.usage)
}

// judge judges the texts of the answer and commits the turn. The client may leave meanwhile,
// which is the outcome then unless the turn is refused.
func (a *governedAnswer) judge(texts govern.Answer, outcome *kernel.Outcome, sent govern.SentText) (*govern.Receipt, error) {
	if err := a.refuseUnknown(*outcome); err != nil {
		return nil, err
	}
	left := clientLeft(a.r.Context())
	judged, err := a.assessed.Judge(a.r.Context(), texts)
	if err != nil {
		return nil, err
	}
	switch {
	case *outcome != kernel.Answered, judged.Turn.Refused:
	case a.failed:
		*outcome = kernel.ProviderFailed
	case !left && clientLeft(a.r.Context()):
		*outcome = kernel.ClientGone
	}
	return a.commitAnswer(judged, *outcome, sent)
}

// refuseUnknown refuses an answer of the model for what nobody can read in it, if the
// operator lets no such thing pass.
func (a *governedAnswer) refuseUnknown(outcome kernel.Outcome) error {
	ofModel := outcome == kernel.Answered || outcome == kernel.Refused
	if !ofModel || len(a.opened.Coverage.Unknown) == 0 || !a.forbidsUnknown() {
		return nil
	}
	return a.assessed.RefuseUnknown()
}

func (a *governedAnswer) streamError(e *apiError) []byte {
	return a.stream.Error(wire.Error{Status: e.Status, Code: e.Code, Message: e.Message, Reply: a.call.Reply})
}

// keepAlive tells the client now and then that the stream is not dead, while the end of
// the answer is judged. A remote judge may take long.
func (a *governedAnswer) keepAlive() (stop func()) {
	frame := a.stream.KeepAlive()
	if frame == nil || a.opened.Mode != kernel.Enforce {
		return func() {}
	}
	return repeat(keepAlive, func() { _ = a.client.sendRaw(frame) }) // a failure means that the client left
}

// endStream drops the frames that are held and ends the stream with frames of ours.
func (a *governedAnswer) endStream(receipt *govern.Receipt, frames []byte) {
	a.gate.Drop()
	a.client.replaced = true
	_ = a.client.sendRaw(append(a.receiptNote(receipt), frames...)) // a failure means that the client left
}

// receiptNote returns the frame with the receipt's id, which is known only at the end of
// a stream. In a dialect whose clients fail on such a frame, the id is a trailer.
func (a *governedAnswer) receiptNote(receipt *govern.Receipt) []byte {
	if !a.tellsClient() || receipt == nil || !receipt.Persisted {
		return nil
	}
	note := a.stream.Note("x-lex-receipt-id: " + receipt.ID)
	if note == nil {
		a.client.trailer = map[string]string{"X-Lex-Receipt-Id": receipt.ID}
	}
	return note
}

// Whole judges a whole answer and sends it, or the refusal in its place.
func (a *governedAnswer) Whole(status int, body []byte) {
	a.usage.Read(body)
	if a.opened.Mode == kernel.Enforce && a.leadsAway(status) {
		a.refundQuota(a.r.Context()) // before the client has the answer, and leaves
		a.opened.Coverage.Skip("response", "a redirect", len(body))
		a.logFailure(causeRedirect)
		a.replaceWith(errUpstream, kernel.ProviderFailed, "no output")
		return
	}
	texts, outcome, body := a.readWhole(status, body)
	if outcome == kernel.Aborted {
		a.refundQuota(a.r.Context()) // before the client has the answer, and leaves
		a.replaceWith(errUpstreamBroken, outcome, "no output")
		return
	}
	if refused, err := a.assessed.AssessToolResults(a.r.Context()); err == nil && refused {
		outcome = kernel.Answered // refused, even where it was an error
	}
	if clientLeft(a.r.Context()) {
		outcome = kernel.ClientGone
		a.assessed.DropCalls()
	}
	if len(a.opened.Coverage.Unknown) > 0 && a.blocksUnknown() && outcome == kernel.Answered {
		a.replaceWith(errUnknownAnswer, kernel.Refused, "refused unread")
		return
	}
	edited := body
	receipt, err := a.judge(texts, &outcome, func(d govern.Decisions) (govern.Sent, error) {
		switch {
		case d.Turn.Refused:
			return a.refusedTexts(nil), nil
		case outcome == kernel.ClientGone:
			return a.sentTexts(nil), nil
		}
		var shown govern.Answer
		var err error
		edited, shown, err = a.editWhole(body, texts, d)
		return a.sentTexts(shown), err
	})
	if a.failed && err == nil && !receipt.Turn.Refused {
		a.refundQuota(a.r.Context()) // before the client has the answer, and leaves
	}
	switch {
	case err != nil:
		a.client.replace()
		a.answerError(a.client, a.fail(a.r.Context(), "commit", err))
	case receipt.Turn.Refused:
		a.client.replace()
		a.writeRefusal(a.client, receipt)
	case outcome == kernel.ClientGone: // it may have closed its own direction only, and read on
		a.client.replace()
		a.setReceiptHeaders(a.client.Header(), a.opened, receipt)
		writeDialectError(a.client, a.r, a.dialect, errUpstream)
	default:
		h := a.client.Header() // upstream's
		dropLexHeaders(h, nil)
		if !bytes.Equal(edited, body) {
			dropDescription(h)
		}
		a.setReceiptHeaders(h, a.opened, receipt)
		h.Set("Content-Length", strconv.Itoa(len(edited)))
		a.client.WriteHeader(status)
		_ = sendNow(a.client, edited) // a failure means that the client left
	}
}

// leadsAway reports whether an answer is a redirect to where this dialect is not governed. Clients
// follow it by themselves, with what they have asked and their key: what was redacted here would
// reach the other place, and its answer the client. A server may still lead to another spelling
// of its own path, as frameworks do with a slash at the end.
func (a *governedAnswer) leadsAway(status int) bool {
	location := a.client.Header().Get("Location")
	if status < http.StatusMultipleChoices || status >= http.StatusBadRequest || location == "" {
		return false
	}
	place, here := atHost(location, a.r.Host)
	to, err := a.r.URL.Parse(place)
	if !here || err != nil {
		return true
	}
	next := a.r.Clone(a.r.Context())
	next.URL = to
	d, governed := a.handler.governs(next)
	return !governed || d.Name() != a.dialect.Name()
}

// atHost returns the path and query of a Location if it surely leads to a host. Clients do not read
// these alike: to those that follow the WHATWG URL standard https:///a, /\a and a tab between two
// slashes name the host a, and RFC 3986 sees a path. So only what all read alike counts.
func atHost(location, host string) (place string, ok bool) {
	place = location
	if scheme, rest, absolute := strings.Cut(location, "://"); absolute && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		if len(rest) < len(host) || !strings.EqualFold(rest[:len(host)], host) {
			return "", false
		}
		place = rest[len(host):]
	}
	odd := strings.ContainsFunc(place, func(c rune) bool { return c <= ' ' || c == '\\' || c > '~' })
	return place, !odd && !strings.HasPrefix(place, "//") && (strings.HasPrefix(place, "/") || strings.HasPrefix(place, "?"))
}

// readWhole takes the texts out of a whole answer, one for each choice, and returns
// the body to send. An encoding that upstream uses although it was not asked for is
// undone, so that the client gets exactly what was read.
func (a *governedAnswer) readWhole(status int, body []byte) (govern.Answer, kernel.Outcome, []byte) {
	coverage, h, outcome := a.opened.Coverage, a.client.Header(), kernel.Answered
	listed := false // that clients may read something else
	a.failed = providerFailed(status)
	if status >= http.StatusBadRequest {
		outcome = kernel.ProviderFailed
	}
	switch {
	case a.asksToolServer(): // clients show its errors to their models
	case outcome == kernel.ProviderFailed:
		coverage.Skip("response", "the provider's error", len(body))
		return nil, outcome, body
	}
	if status == http.StatusMethodNotAllowed && a.listening() {
		outcome = kernel.Answered // the server has no such stream, which is not a failure
	}
	if encoded(h) {
		plain, err := loose.Decode(body, codings(h), a.app.Limits.Body)
		if err != nil { // many clients never look at the header, so the bytes are read as they are
			coverage.NotKnown("response", "content encoding", len(body))
			listed = true
			if _, calls := a.dialect.(wire.CallEditor); calls {
				a.assessed.RefuseUnread()
			}
		} else {
			body = plain
			h.Del("Content-Encoding")
			dropDescription(h)
		}
	}
	if inOtherCharset(h) {
		body = readInUTF8(h, body)
	}
	response, err := a.dialect.Response(body)
	a.failed = a.failed || response.Err // also where it is no answer
	if err == nil {
		a.assessed.AnswerID, a.assessed.Pending = response.ID, response.Pending
		a.call.Structured = a.call.Structured || response.Structured
		return a.assessed.ReadAnswer(response), outcome, body
	}
	if a.opened.Mode == kernel.Enforce && !a.asksToolServer() && wire.EndsEarly(body) {
		return nil, kernel.Aborted, body // nobody knows what it was going to say
	}
	return a.readForeign(body, listed), outcome, body
}

// readInUTF8 makes an answer say to every client what it says here: its header names another
// charset, by which some clients read JSON and events, and others read these as the UTF-8 that they
// must be in (RFC 8259, section 8.1; the HTML standard, 9.2.5). Bytes that are no UTF-8 are
// decoded if the charset is known.
func readInUTF8(h http.Header, body []byte) []byte {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		media, _, _ = strings.Cut(h.Get("Content-Type"), ";")
	}
	h.Set("Content-Type", strings.TrimSpace(media)+"; charset=utf-8")
	if plain, err := loose.UTF8(body, params["charset"]); err == nil && !bytes.Equal(plain, body) {
		body = plain
		dropDescription(h)
	}
	return body
}

// dropDescription removes what upstream's headers say of the bytes that it sent, because
// others leave (RFC 9110, 8.8.3 and 14.3; RFC 9530; RFC 3230).
func dropDescription(h http.Header) {
	for _, name := range []string{"Etag", "Digest", "Content-Digest", "Repr-Digest", "Content-Md5", "Accept-Ranges"} {
		h.Del(name)
	}
}

// readForeign reads an answer that is not the dialect's JSON: an event stream with
// another content type, or any text. listed says that the receipt has the body as unknown.
func (a *governedAnswer) readForeign(body []byte, listed bool) govern.Answer {
	if frames, ok := a.cutFrames(body); ok {
		gate := govern.NewGate(govern.GateConfig{Limit: math.MaxInt64}) // of which nothing leaves
		for _, frame := range frames {
			if aside := frame.Aside(); len(aside) > 0 { // it was not announced as a stream
				frame.Stray = bytes.Join([][]byte{frame.Stray, aside}, []byte("\n"))
			}
			event := a.readFrame(frame)
			a.failed = a.failed || event.Err
			gate.Count(event.Deltas)
		}
		return a.assembled(gate)
	}
	a.assessed.SuspectCalls(body)
	if !listed && len(body) > 0 {
		a.opened.Coverage.NotKnown("response", "not the dialect's JSON", len(body))
	}
	if !a.inspectsUnknown() {
		return nil
	}
	h := a.client.Header()
	parts, _, _ := loose.Body(h.Get("Content-Type"), codings(h), body, a.app.Limits.Body)
	var said []string
	for _, p := range parts {
		said = append(said, p.Text)
	}
	text := strings.Join(said, "\n")
	switch {
	case a.asksToolServer():
		return a.assessed.ReadAnswer(wire.Response{Parts: []wire.Part{{Path: "body", Kind: wire.ToolResult, Text: text, Bytes: len(body)}}})
	case text == "":
		return nil
	}
	a.opened.Coverage.InspectAnswer("response", len(text))
	return govern.Answer{text}
}

// assembled returns the texts to judge of a stream, and records that they are inspected.
func (a *governedAnswer) assembled(gate *govern.Gate) govern.Answer {
	texts, tangled := gate.Assembled()
	for _, text := range texts {
		a.opened.Coverage.InspectAnswer("response", len(text))
	}
	if tangled {
		a.opened.Coverage.NotKnown("response.parts", "too many came in turn to be told apart", 0)
	}
	return texts
}

// cutFrames takes a whole body for a stream that was not announced as one, if it looks
// like one.
func (a *governedAnswer) cutFrames(body []byte) (frames []wire.Frame, ok bool) {
	framing := a.dialect.Framing()
	switch {
	case looksLikeEvents(body):
		framing = wire.EventStream
	case framing == wire.EventStream, framing == wire.Lines && wire.CheckJSON(body) == nil: // one value, and not an answer
		return nil, false
	}
	split := wire.NewSplitter(framing, len(body)+1)
	if split.Push(body) != nil {
		return nil, false
	}
	for f, ok := split.Next(); ok; f, ok = split.Next() {
		frames = append(frames, f)
	}
	if f, ok := split.Last(); ok {
		frames = append(frames, f)
	}
	// A text may begin like a comment, and then nothing in it is of a stream.
	return frames, slices.ContainsFunc(frames, func(f wire.Frame) bool { return len(f.Data)+len(f.Stray) > 0 })
}

// looksLikeEvents reports whether a body looks like an event stream.
func looksLikeEvents(body []byte) bool {
	line := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), "\r\n")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(line, []byte(field)) {
			return true
		}
	}
	// Before the data may stand a field that clients skip.
	return bytes.Contains(line, []byte("\ndata:")) || bytes.Contains(line, []byte("\rdata:"))
}

// End ends a stream that a check stopped, that grew too large, that the client
// left or that upstream broke off, and answers for handlers that did not.
func (a *governedAnswer) End(last *wire.Frame, err error) {
	if last != nil && (a.settled || err == nil) && !a.asksToolServer() {
		a.Frame(*last) // some clients read it all the same
	}
	switch {
	case a.settled || a.client.replaced:
	case !a.client.begun:
		a.answerFailure(err)
	case a.gate.Flagged():
		a.finalize(kernel.Answered, nil) // judged once more, and refused
	case a.gate.Full(), errors.Is(err, errAnswerTooLarge):
		a.finalize(kernel.Aborted, errAnswerSize)
	case (a.mayEnd || !a.ending && len(a.finished) > 0 && len(a.finished) >= a.call.Choices) && err == nil, a.endsUnanswered(err):
		a.finalize(kernel.Answered, nil)
	case clientLeft(a.r.Context()):
		a.finalize(kernel.ClientGone, errUpstreamBroken)
	default:
		a.finalize(kernel.Aborted, errUpstreamBroken)
	}
}

// listening reports whether the client waits for no answer, but for what a server of
// tools has to say. Its stream has no end of its own: it ends when either side leaves.
func (a *governedAnswer) listening() bool {
	return a.asksToolServer() && a.call.Choices == 0
}

func (a *governedAnswer) asksToolServer() bool { return asksToolServer(a.dialect) }

// asksToolServer reports whether a server of tools answers in a dialect, and no model.
func asksToolServer(d wire.Dialect) bool {
	_, ok := d.(wire.ToolServer)
	return ok
}

// endsUnanswered reports whether a stream that ended without an answer is complete:
// because the client was listening, or because it asks for the rest by another call.
func (a *governedAnswer) endsUnanswered(err error) bool {
	if a.listening() {
		return err == nil || clientLeft(a.r.Context())
	}
	resumer, ok := a.stream.(wire.Resumer)
	return err == nil && ok && resumer.Resumable()
}

// answerFailure answers for handlers that gave no answer.
func (a *governedAnswer) answerFailure(err error) {
	ctx, refused := a.r.Context(), refusedBehind(err)
	if refused == nil || providerFailed(refused.Status) || ctx.Err() != nil {
		a.refundQuota(ctx) // before the client has the answer, and leaves
	}
	switch {
	case exits(ctx):
		a.replaceWith(errGovernor.withStatus(http.StatusServiceUnavailable), kernel.Aborted, "no output")
	case ctx.Err() != nil:
		a.replaceWith(errUpstream, kernel.ClientGone, "no output")
	case errors.Is(err, errAnswerTooLarge):
		a.replaceWith(errAnswerSize, kernel.ProviderFailed, "no output")
	case refused != nil:
		a.client.keepStatusHeaders()
		a.replaceWith(refused, kernel.ProviderFailed, "no output")
	default:
		if err == nil && unhandled(a.r) {
			a.logFailure(causeNoHandler)
		}
		a.replaceWith(errUpstream, kernel.ProviderFailed, "no output")
	}
}

// replaceWith records a turn whose answer is not judged, for the reason why, and
// answers with an error of ours in its place.
func (a *governedAnswer) replaceWith(e *apiError, outcome kernel.Outcome, why string) {
	a.client.replace()
	said := ""
	if outcome == kernel.Refused {
		said = e.Message
	}
	err := a.refuseUnknown(outcome)
	var receipt *govern.Receipt
	if err == nil {
		receipt, err = a.commit(a.r, a.assessed.NotJudged(why), outcome, sentAs(said))
	}
	if err != nil {
		a.answerError(a.client, a.fail(a.r.Context(), "commit", err))
		return
	}
	a.setReceiptHeaders(a.client.Header(), a.opened, receipt)
	writeDialectError(a.client, a.r, a.dialect, e)
}
