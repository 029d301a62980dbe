package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// causes tells the kinds of failure apart by what the operating system and the
// standard library say. reverse_proxy puts what went wrong with a connection
// into an error that cannot be unwrapped (reverseproxy.DialError), so its text
// is all there is. The first that fits counts.
var causes = []struct {
	name  string
	texts []string
}{
	{"dns", []string{"no such host", "lookup "}},
	{causeTimeout, []string{"timeout", "timed out", "deadline exceeded"}},
	{"refused", []string{"refused"}},
	{"tls", []string{"tls:", "x509:", "HTTP response to HTTPS client"}},
	{"reset", []string{"connection reset", "forcibly closed", "broken pipe", "EOF", "server closed"}},
}

// The causes that are not told by a text, or not alone.
const (
	causeTimeout   = "timeout"
	causeBrokenOff = "broken_off" // the answer, after its beginning
	causeOther     = "other"
)

func causeOf(err error) string {
	for _, cause := range causes {
		for _, text := range cause.texts {
			if strings.Contains(err.Error(), text) {
				return cause.name
			}
		}
	}
	return causeOther
}

// statusOf is the status that Caddy answers a handler's error with.
func statusOf(err error) int {
	var known caddyhttp.HandlerError
	if errors.As(err, &known) && known.StatusCode != 0 {
		return known.StatusCode
	}
	return http.StatusInternalServerError
}

// behindFailed logs an error of the handlers after lex, if it is a failure of
// theirs.
func (g *request) behindFailed(ctx context.Context, err error) {
	if err != nil && !left(ctx) && statusOf(err) >= http.StatusInternalServerError {
		g.logFailure(causeOf(err))
	}
}

// brokeOff logs an answer that ended in a panic, as reverse_proxy reports one
// that upstream did not finish.
func (g *request) brokeOff(ctx context.Context) {
	switch {
	case left(ctx):
	case ctx.Err() != nil:
		g.logFailure(causeTimeout) // ours, of /lex/govern
	default:
		g.logFailure(causeBrokenOff)
	}
}

// left reports whether nobody waits for the answer any more: the client went
// away, or a check stopped the stream.
func left(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// logFailure writes the one line of a governed request that failed behind lex.
// The error's text stays out of it, because it may hold an address or a query.
func (g *request) logFailure(cause string) {
	g.failure.Do(func() {
		g.handler.logger.Error("the handlers behind lex failed", zap.String("cause", cause))
	})
}

// giveToCaddy passes on an error of traffic that lex does not govern. Caddy runs
// handle_errors, and logs the error with the request as the client sent it. One
// that shows a credential must not come there: for that lex does what Caddy
// does, except that it logs the cause alone.
func (h *Handler) giveToCaddy(w http.ResponseWriter, r *http.Request, err error) error {
	if err == nil || !showsCredential(r) {
		return err
	}
	if status := statusOf(err); status >= http.StatusInternalServerError && !left(r.Context()) {
		h.logger.Error("the handlers behind lex failed", zap.String("cause", causeOf(err)), zap.Int("status", status))
	}
	server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server.Errors == nil || len(server.Errors.Routes) == 0 {
		w.WriteHeader(statusOf(err))
		return nil
	}
	r = server.Errors.WithError(asItCame(r), err)
	if server.Errors.Routes.Compile(caddyhttp.HandlerFunc(onlyStatus)).ServeHTTP(w, r) != nil {
		w.WriteHeader(statusOf(err)) // without effect if the routes had begun to answer
	}
	return nil
}

// onlyStatus ends the error routes, as Caddy ends them.
func onlyStatus(w http.ResponseWriter, r *http.Request) error {
	err, _ := r.Context().Value(caddyhttp.ErrorCtxKey).(error)
	w.WriteHeader(statusOf(err))
	return nil
}

// asItCame undoes rewrites as Caddy does, in place: handle_errors and its
// placeholders see the original request.
func asItCame(r *http.Request) *http.Request {
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		r.Method, r.RequestURI, *r.URL = original.Method, original.RequestURI, *original.URL
	}
	return r
}
