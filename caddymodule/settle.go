package caddymodule

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// settleStream concludes on the texts that came, commits the turn and lets the
// rest of the stream out, or ends it: with the refusal, or with the failure that
// is told instead of a clean end. Without a failure what upstream sent is the
// end, be it an error of its own.
func (w *governedWriter) settleStream(outcome kernel.Outcome, failure *apiError) {
	texts := w.out.close()
	for _, text := range texts {
		w.t.x.coverAnswer("response", len(text))
	}
	err := w.t.concludeAnswer(texts)
	if err == nil {
		err = w.t.commit(outcome, w.streamSent(outcome, failure, strings.Join(texts, "")))
	}
	switch {
	case err != nil:
		w.t.storeFailed("commit", err)
		w.t.refundQuota(w.t.http.Context())
		w.end(w.failure(errGovernor, http.StatusServiceUnavailable))
	case w.t.x.turn.Refused:
		w.end(append(w.comment(), w.t.dialect.RefusalStream(w.t.refusal(), w.out.begun())...))
	case failure != nil:
		w.end(append(w.comment(), w.failure(failure, failure.Status)...))
	default:
		w.out.flush()
		w.state = statePassing
		_ = w.send(append(w.comment(), w.tail...)) // a failure means that the client left
	}
}

func (w *governedWriter) failure(e *apiError, status int) []byte {
	return w.t.dialect.ErrorEvent(wire.Error{Status: status, Code: e.Code, Message: e.Message})
}

// streamSent is what the client has read in the end.
func (w *governedWriter) streamSent(outcome kernel.Outcome, failure *apiError, text string) sentText {
	begun := w.out.sentText()
	if failure != nil || outcome == kernel.ClientGone {
		text = begun
	}
	return w.t.app.sent(begun, text)
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
// end, an error or nothing. Trailers do not speak in our name either.
func (w *governedWriter) finish(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rest := w.sse.Rest(); len(rest) > 0 && (w.state == stateStreaming || w.state == statePassing) {
		w.lastFrame(bytes.Clone(rest), err)
	}
	switch {
	case w.state == stateStreaming:
		w.finishStream(ctx)
	case w.state == statePassing || w.state == stateDone:
	case err != nil || w.tooLarge || w.state == stateOpen || w.status == 0:
		w.finishFailure(ctx)
	default:
		w.finishWhole(ctx)
	}
	dropTrailers(w.Header(), w.state == stateDone)
}

// lastFrame takes the frame that upstream left without its blank line, which some
// clients read all the same: with the same eyes as every other.
func (w *governedWriter) lastFrame(rest []byte, err error) {
	var last wire.SSE
	if last.Push(append(bytes.Clone(rest), "\n\n"...)) != nil {
		return
	}
	frame, ok := last.Next()
	if !ok {
		return
	}
	frame.Raw = rest
	if w.state == statePassing {
		w.afterwards(frame)
	} else if err == nil {
		w.event(frame)
	}
}

// finishStream ends a stream that a check stopped, that grew too large, that the
// client left or that upstream broke off.
func (w *governedWriter) finishStream(ctx context.Context) {
	switch {
	case w.out.violated():
		w.settleStream(kernel.Answered, nil)
	case w.out.tooLarge():
		w.settleStream(kernel.Aborted, errAnswerSize)
	case clientLeft(ctx):
		w.settleStream(kernel.ClientGone, errUpstreamBroken)
	default:
		w.settleStream(kernel.Aborted, errUpstreamBroken)
	}
}

// finishFailure answers for handlers that did not.
func (w *governedWriter) finishFailure(ctx context.Context) {
	outcome, e := kernel.ProviderFailed, errUpstream
	switch {
	case exits(ctx):
		outcome, e = kernel.Aborted, errGovernor.withStatus(http.StatusServiceUnavailable)
	case ctx.Err() != nil:
		outcome = kernel.ClientGone
	case w.tooLarge:
		e = errAnswerSize
	}
	w.t.x.notJudged("no output")
	w.answer(outcome, e)
	if outcome != kernel.ClientGone {
		w.t.refundQuota(w.t.http.Context())
	}
}

// answer records the turn and answers with an error of ours.
func (w *governedWriter) answer(outcome kernel.Outcome, e *apiError) {
	w.state = stateDone
	w.ownHeaders()
	said := ""
	if outcome == kernel.Refused {
		said = e.Message
	}
	if err := w.t.commit(outcome, w.t.app.sent("", said)); err != nil {
		w.t.failed(w.ResponseWriter, "commit", err)
		return
	}
	w.t.tell(w.Header())
	writeDialectError(w.ResponseWriter, w.t.dialect, e, e.Status)
}

// ownHeaders takes away what upstream wrote about its answer: cookies, caching,
// names, encodings. They do not describe ours.
func (w *governedWriter) ownHeaders() {
	h := w.Header()
	clear(h)
	maps.Copy(h, w.before.Clone())
}

// dropTrailers takes away the trailers that upstream left: those in our name, or
// all of them where the answer is ours.
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
	for _, name := range announced { // X-Lex-* was taken from the announcement
		if all {
			h.Del(strings.TrimSpace(name))
		}
	}
}

// finishWhole judges a whole answer and sends it, or the refusal in its place.
func (w *governedWriter) finishWhole(ctx context.Context) {
	texts, outcome := w.read()
	sent := strings.Join(texts, "")
	if clientLeft(ctx) {
		outcome, sent = kernel.ClientGone, ""
	}
	if len(w.t.x.coverage.Unknown) > 0 && w.t.blocksUnknown() && outcome == kernel.Answered {
		w.t.x.notJudged("refused unread")
		w.answer(kernel.Refused, errUnknownAnswer)
		return
	}
	err := w.t.concludeAnswer(texts)
	if err == nil {
		err = w.t.commit(outcome, w.t.app.sent("", sent))
	}
	w.state = stateDone
	switch {
	case err != nil:
		w.ownHeaders()
		w.t.failed(w.ResponseWriter, "commit", err)
	case w.t.x.turn.Refused:
		w.ownHeaders()
		w.t.writeRefusal(w.ResponseWriter)
	default:
		w.state = statePassing // the headers are upstream's
		dropLexHeaders(w.Header(), nil)
		w.t.tell(w.Header())
		w.Header().Set("Content-Length", strconv.Itoa(w.body.Len()))
		w.ResponseWriter.WriteHeader(w.status)
		_ = sendNow(w.ResponseWriter, w.body.Bytes()) // a failure means that the client left
	}
}

// read takes the texts out of a buffered answer, one a choice, and records its
// coverage. An encoding that the upstream insists on is undone: what is read is
// what is sent.
func (w *governedWriter) read() ([]string, kernel.Outcome) {
	x := w.t.x
	if w.status >= http.StatusBadRequest {
		x.skip("response", "the provider's error", w.body.Len())
		return nil, kernel.ProviderFailed
	}
	if encoded(w.Header()) {
		plain, err := decoded(w.body.Bytes(), w.Header().Get("Content-Encoding"), w.t.app.Limits.Body)
		if err != nil {
			x.unknown("response", "content encoding", w.body.Len())
			return nil, kernel.Answered
		}
		w.body = *bytes.NewBuffer(plain)
		for _, name := range []string{"Content-Encoding", "Etag", "Digest", "Content-Md5", "Accept-Ranges"} {
			w.Header().Del(name)
		}
	}
	response, err := w.t.dialect.Response(w.body.Bytes())
	if err == nil {
		return x.coverResponse(response.Parts), kernel.Answered
	}
	return w.readForeign(), kernel.Answered
}

// readForeign reads an answer that is not the dialect's JSON: an event stream
// under another name, or whatever text it is.
func (w *governedWriter) readForeign() []string {
	x, body := w.t.x, w.body.Bytes()
	texts := make(map[int][]string)
	var events wire.SSE
	if err := events.Push(append(bytes.Clone(body), "\n\n"...)); err == nil && looksLikeEvents(body) {
		for frame, ok := events.Next(); ok; frame, ok = events.Next() {
			event := w.t.readEvent(frame)
			w.note(event)
			for _, d := range event.Deltas {
				if d.IsText() {
					texts[d.Choice] = append(texts[d.Choice], d.Text)
				}
			}
		}
	} else {
		x.unknown("response", "not the dialect's JSON", len(body))
		if !w.t.inspectsUnknown() {
			return nil
		}
		parts, _ := bodyTexts(http.Header{"Content-Type": w.Header()["Content-Type"]}, body, w.t.app.Limits.Body)
		for i, p := range parts {
			if i > 0 {
				texts[0] = append(texts[0], "\n")
			}
			texts[0] = append(texts[0], p.Text)
		}
	}
	var out []string
	for choice := range wire.MaxChoices {
		if text := strings.Join(texts[choice], ""); text != "" {
			x.coverAnswer("response", len(text))
			out = append(out, text)
		}
	}
	return out
}

// looksLikeEvents reports whether a body begins like an event stream.
func looksLikeEvents(body []byte) bool {
	line := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), "\r\n")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(line, []byte(field)) {
			return true
		}
	}
	return false
}

// concludeAnswer judges the texts of an answer; without text there is nothing to
// judge.
func (t *interceptTurn) concludeAnswer(texts []string) error {
	if len(texts) == 0 {
		t.x.notJudged("no output text")
		return nil
	}
	return t.x.conclude(t.http.Context(), texts...)
}
