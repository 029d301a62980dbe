package caddymodule

import (
	"context"
	"net/http"
	"strconv"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// settleStream concludes on the text that came, commits the turn and lets the
// rest of the stream out, or ends it.
func (w *governedWriter) settleStream(outcome kernel.Outcome) {
	text := w.out.close()
	err := w.t.concludeAnswer(text)
	if err == nil {
		err = w.t.commit(outcome, w.streamSent(outcome, text))
	}
	switch {
	case err != nil:
		w.t.storeFailed("commit", err)
		w.t.giveBackRun(w.t.http.Context())
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
	if outcome == kernel.Aborted || outcome == kernel.ClientGone {
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
	case w.out.violated():
		w.settleStream(kernel.Answered)
	case clientLeft(ctx):
		w.settleStream(kernel.ClientGone)
	default:
		w.settleStream(kernel.Aborted)
	}
}

// finishFailure answers for handlers that did not.
func (w *governedWriter) finishFailure(ctx context.Context) {
	outcome, told := kernel.ProviderFailed, errUpstream
	switch {
	case exits(ctx):
		outcome, told = kernel.Aborted, &apiError{http.StatusServiceUnavailable, errGovernor.Message, errGovernor.Code}
	case ctx.Err() != nil:
		outcome = kernel.ClientGone
	}
	w.t.x.notJudged("no output")
	w.state = stateDone
	if err := w.t.commit(outcome, w.t.app.sent("", "")); err != nil {
		w.t.failed(w.ResponseWriter, "commit", err)
		return
	}
	if outcome != kernel.ClientGone {
		w.t.giveBackRun(w.t.http.Context())
	}
	w.t.tell(w.Header())
	writeDialectError(w.ResponseWriter, w.t.dialect, told, told.Status)
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
		err = w.t.commit(outcome, w.t.app.sent("", text))
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
		t.x.notJudged("no output text")
		return nil
	}
	if t.call.Stream {
		t.x.coverAnswer("response", len(text))
	}
	return t.x.conclude(t.http.Context(), text)
}

// dropBodyHeaders takes away what described the body that is replaced.
func dropBodyHeaders(h http.Header) {
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Digest", "Content-Md5", "Accept-Ranges", "Last-Modified"} {
		h.Del(name)
	}
}
