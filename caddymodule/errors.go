package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// apiError is an error of the HTTP interface: what the client is told, and
// behind it the cause, which the client is not told. Message is a sentence for
// people and Code is stable; neither ever holds an internal detail, a credential
// or a piece of a prompt.
type apiError struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Code    string `json:"code"`

	retryAfter string // the header, if the provider sent one

	operation string // ours that failed; empty where the client made the mistake
	cause     error
}

// Error names the operation and the code. The cause stays out, because the text
// of a driver's error may name addresses and users.
func (e *apiError) Error() string {
	if e.operation == "" {
		return "the request is answered with " + e.Code
	}
	return "the operation " + e.operation + " failed; the request is answered with " + e.Code
}

// Unwrap returns the cause.
func (e *apiError) Unwrap() error { return e.cause }

// Is reports whether target is the same error of the interface, whatever the
// cause and the wording.
func (e *apiError) Is(target error) bool {
	t, ok := target.(*apiError)
	return ok && t.Status == e.Status && t.Code == e.Code
}

// because returns the error with the operation that failed and the cause.
func (e *apiError) because(operation string, cause error) *apiError {
	out := *e
	out.operation, out.cause = operation, cause
	return &out
}

// withMessage returns the error with another sentence.
func (e *apiError) withMessage(message string) *apiError {
	out := *e
	out.Message = message
	return &out
}

// withStatus returns the error with another status.
func (e *apiError) withStatus(status int) *apiError {
	out := *e
	out.Status = status
	return &out
}

// withRetryAfter returns the error with the header Retry-After.
func (e *apiError) withRetryAfter(value string) *apiError {
	out := *e
	out.retryAfter = value
	return &out
}

// Where an error is answered. The first group is described in openapi.json; the
// second is told in the dialect of the request.
const (
	onEndpoints   = "the endpoints of lex"
	onIntercepted = "intercepted traffic"
)

// A definedError is an error of the interface with the place where it is
// answered. One that is defined for the endpoints may also be answered on
// intercepted traffic.
type definedError struct {
	*apiError
	where string
}

// definedErrors are all errors of the interface. A test holds docs/http.md and
// openapi.json against them.
var definedErrors []definedError

func defineError(status int, code, message, where string) *apiError {
	e := &apiError{Status: status, Message: message, Code: code}
	definedErrors = append(definedErrors, definedError{e, where})
	return e
}

// The errors of every endpoint.
var (
	errInvalidJSON  = defineError(http.StatusBadRequest, "invalid_json", "The body must be one JSON object in UTF-8, without duplicate members.", onEndpoints)
	errBodyRead     = defineError(http.StatusBadRequest, "invalid_json", "The body could not be read to its end.", onEndpoints)
	errBodyTimeout  = defineError(http.StatusRequestTimeout, "request_timeout", "The body did not arrive in time.", onEndpoints)
	errBodyTooLarge = defineError(http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large.", onEndpoints)

	errTooEarly        = defineError(http.StatusTooEarly, "too_early", "The request came before its connection was secured, and could be a recorded one; send it again.", onEndpoints)
	errInvalidKey      = defineError(http.StatusUnauthorized, "invalid_api_key", "The API key is unknown, revoked or expired.", onEndpoints)
	errKeyRequired     = defineError(http.StatusUnauthorized, "api_key_required", "This service requires an API key.", onEndpoints)
	errUnauthorized    = defineError(http.StatusUnauthorized, "unauthorized", "This endpoint needs its secret.", onEndpoints)
	errNotConfigured   = defineError(http.StatusServiceUnavailable, "not_configured", "The secret for this endpoint is not configured.", onEndpoints)
	errRateLimited     = defineError(http.StatusTooManyRequests, "rate_limited", "Rate limit exceeded; retry after 60 seconds.", onEndpoints)
	errPlanExhausted   = defineError(http.StatusTooManyRequests, "plan_exhausted", "The runs of this API key's plan are used up; retry when the plan renews.", onEndpoints)
	errPlanUnavailable = defineError(http.StatusForbidden, "plan_unavailable", "The plan of this API key is not configured here; ask the operator for another key.", onEndpoints)

	errNotFound      = defineError(http.StatusNotFound, "not_found", "There is no such resource.", onEndpoints)
	errMethod        = defineError(http.StatusMethodNotAllowed, "method_not_allowed", "This method is not allowed here.", onEndpoints)
	errGovernedTwice = defineError(http.StatusInternalServerError, "governed_twice", "The service is configured to govern this request twice.", onEndpoints)
	errDamaged       = defineError(http.StatusInternalServerError, "receipt_damaged", "The receipt is damaged in the store; caddy lex verify names its place.", onEndpoints)
	errGovernor      = defineError(http.StatusInternalServerError, "governor_unavailable", "The governor is unavailable; retry.", onEndpoints)
)

// The errors of POST /lex/govern and /lex/govern/stream.
var (
	errMissingPrompt   = defineError(http.StatusBadRequest, "missing_prompt", "prompt is required and must not be blank.", onEndpoints)
	errPromptTooLong   = defineError(http.StatusBadRequest, "prompt_too_long", "prompt exceeds 8000 characters.", onEndpoints)
	errInvalidMessages = defineError(http.StatusBadRequest, "invalid_messages", "messages must be an array of 1 to 100 objects with a role (system, user or assistant) and a content, of which the last is the user's.", onEndpoints)
	errMissingSession  = defineError(http.StatusBadRequest, "missing_session_id", "session_id is required and must not be blank.", onEndpoints)
	errInvalidSession  = defineError(http.StatusBadRequest, "invalid_session_id", "session_id must have 1 to 128 characters and no control characters.", onEndpoints)
	errInvalidType     = defineError(http.StatusBadRequest, "invalid_type", "prompt, session_id and the content of messages must be strings.", onEndpoints)
	errInvalidTurn     = defineError(http.StatusBadRequest, "invalid_turn", "turn must be an integer from 1 to 100000.", onEndpoints)
	errInvalidIdentity = defineError(http.StatusBadRequest, "invalid_identity_mode", "identity_mode must be one of those that are allowed here.", onEndpoints)
	errProviders       = defineError(http.StatusInternalServerError, "provider_exhausted", "No model provider answered; retry.", onEndpoints)
)

// The errors of POST /lex/tools/check.
var (
	errMissingTool    = defineError(http.StatusBadRequest, "missing_tool", "tool is required: an object with the tool's name, and its arguments if it has any.", onEndpoints)
	errInvalidTool    = defineError(http.StatusBadRequest, "invalid_tool", "tool must be an object whose name is a string of 1 to 256 characters without control characters.", onEndpoints)
	errInvalidContext = defineError(http.StatusBadRequest, "invalid_context", "context must be a text, an array of texts or {tool, text} objects, or an object with request and observations.", onEndpoints)
)

// The errors of the read endpoints.
var (
	errInvalidLimit   = defineError(http.StatusBadRequest, "invalid_limit", "limit must be an integer of at least 1.", onEndpoints)
	errInvalidPlace   = defineError(http.StatusBadRequest, "invalid_cursor", "after must be a number of the log, or 0 for its beginning.", onEndpoints)
	errInvalidCursor  = defineError(http.StatusBadRequest, "invalid_cursor", "before is not a cursor of this list.", onEndpoints)
	errMissingReceipt = defineError(http.StatusBadRequest, "missing_receipt", "Give either receipt_id or receipt.", onEndpoints)
	errInvalidReceipt = defineError(http.StatusBadRequest, "invalid_type", "receipt_id, prompt, output, arguments and the members of openings must be strings, receipt and openings objects.", onEndpoints)
	errTextsForbidden = defineError(http.StatusUnauthorized, "unauthorized", "Comparing texts needs the admin secret or the API key of the session.", onEndpoints)
)

// The errors of the console.
var (
	errInvalidRange   = defineError(http.StatusBadRequest, "invalid_range", "from and to must be Unix milliseconds with from before to, and step whole seconds in milliseconds that make at most 500 buckets.", onEndpoints)
	errInvalidFilter  = defineError(http.StatusBadRequest, "invalid_filter", "A parameter is not known here, is given twice, or has a value that it cannot have.", onEndpoints)
	errTooManyStreams = defineError(http.StatusTooManyRequests, "too_many_streams", "Too many consoles follow this process; retry when one has left.", onEndpoints)
)

// The errors of the administration.
var (
	errInvalidName      = defineError(http.StatusBadRequest, "invalid_name", "name must be a string of 1 to 128 characters without control characters.", onEndpoints)
	errInvalidPlan      = defineError(http.StatusBadRequest, "invalid_plan", "There is no such plan; the option limits configures plans.", onEndpoints)
	errInvalidExpiry    = defineError(http.StatusBadRequest, "invalid_expires_at", "expires_at must be a time in the future, as RFC 3339 writes it.", onEndpoints)
	errInvalidBenchmark = defineError(http.StatusBadRequest, "invalid_benchmark", "A benchmark row is not valid.", onEndpoints)
)

// The errors of intercepted traffic.
var (
	errEncodedBody     = defineError(http.StatusUnsupportedMediaType, "unsupported_encoding", "Request bodies that are compressed or not in UTF-8 are not accepted here.", onIntercepted)
	errBadRequest      = defineError(http.StatusBadRequest, "invalid_request", "The request could not be read.", onIntercepted)
	errPreviousUnknown = defineError(http.StatusBadRequest, "previous_response_not_found", "previous_response_id names a refusal of this service that is not known for this caller; go on from the last answer before it, or send the whole conversation.", onIntercepted)
	errPolicyRefusal   = defineError(http.StatusForbidden, "policy_refusal", "The policy refuses this request.", onIntercepted)
	errUnknownContent  = defineError(http.StatusForbidden, "unknown_content", "The request has parts that cannot be inspected here.", onIntercepted)
	errUnknownAnswer   = defineError(http.StatusForbidden, "unknown_content", "The model's answer has parts that cannot be inspected here.", onIntercepted)
	errUnknownBlocked  = defineError(http.StatusForbidden, "unknown_endpoint", "This endpoint is not governed here, and requests that cannot be inspected are not forwarded.", onIntercepted)
	errWebSocket       = defineError(http.StatusUpgradeRequired, "websocket_not_governed", "Calls of this path are governed, and not taken over a WebSocket; send them over HTTP.", onIntercepted)
	errProviderMissing = defineError(http.StatusBadGateway, "upstream_failed", "The service behind the governor could not be reached.", onIntercepted)
	errUpstream        = defineError(http.StatusBadGateway, "upstream_failed", "The model provider could not be reached or its answer could not be read.", onIntercepted)
	errUpstreamStatus  = defineError(http.StatusBadGateway, "upstream_error", "The service behind the governor refused the request.", onIntercepted)
	errUpstreamBroken  = defineError(http.StatusBadGateway, "upstream_aborted", "The model's answer broke off.", onIntercepted)
	errAnswerSize      = defineError(http.StatusBadGateway, "answer_too_large", "The model's answer is larger than is read here.", onIntercepted)
)

// A failureReporter counts and logs what failed for a reason of our own. Its
// zero value is not usable.
type failureReporter struct {
	app    *App
	health *healthLog
}

// report records the cause of an answer's error, if the failure was ours. It is called
// once, by the function that writes the answer.
func (f failureReporter) report(err error) {
	var e *apiError
	if errors.As(err, &e) && e != nil && e.cause != nil {
		f.storeFailed(e.operation, e.cause)
	}
}

// storeFailed counts and logs a failed operation by its kind. The store failed if it
// says so or if it took too long: no other deadline is set on requests. A client that
// left is not a failure. Everything else is our own fault, and the log has only its
// kind.
func (f failureReporter) storeFailed(operation string, err error) {
	switch {
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		f.app.metrics.storeErrors.WithLabelValues(operation).Inc()
		if f.health.record(err) {
			f.app.emit("lex_store_degraded", map[string]any{"operation": operation})
		}
	case errors.Is(err, context.Canceled):
	default:
		kind := internalKind(err)
		f.app.metrics.internalErrors.WithLabelValues(operation, kind).Inc()
		f.app.logger.Error("an operation failed for a reason of our own", zap.String("operation", operation), zap.String("kind", kind))
	}
}

// internalKind names an error that is neither the store's outage nor the
// caller's leaving.
func internalKind(err error) string {
	for kind, is := range map[string]error{
		"kernel_input": kernel.ErrInput, "receipt": kernel.ErrReceipt, "policy": kernel.ErrPolicy,
		"store_conflict": store.ErrConflict, "store_record": store.ErrInvalid,
	} {
		if errors.Is(err, is) {
			return kind
		}
	}
	return "other"
}

// answer answers a request to one of our own endpoints with err and reports its
// cause. An error that the interface does not define is our own fault.
func (f failureReporter) answer(w http.ResponseWriter, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = errGovernor.because("answer", err)
	}
	f.report(e)
	writeError(w, e)
}

// writeError answers with the error's status and body.
func writeError(w http.ResponseWriter, e *apiError) {
	if e.retryAfter != "" {
		w.Header().Set("Retry-After", e.retryAfter)
	}
	if e.Status == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "60")
	}
	_ = writeJSON(w, e.Status, e) // strings encode
}

// causes tells the kinds of failure apart by what the operating system and the
// standard library say. reverse_proxy puts what went wrong with a connection
// into an error that cannot be unwrapped (reverseproxy.DialError), so its text
// is all there is. The first that fits counts.
var causes = []struct {
	name  string
	texts []string
}{
	{"open_files", []string{"too many open files"}}, // also while a name is looked up
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
	causeEncoding  = "encoding"   // an answer to a call of our own that cannot be decoded
	causeNoText    = "no_text"    // an answer to a call of our own that has no text in the dialect
	causeNoHandler = "no_handler" // no handler behind lex answered
	causeRedirect  = "redirect"   // the answer leads to where nothing is governed
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

// refusedBehind is the answer to a request that a handler after lex refused with a 4xx of its
// own, such as basic_auth; nil if err is none.
func refusedBehind(err error) *apiError {
	status := statusOf(err)
	if err == nil || status < http.StatusBadRequest || status >= http.StatusInternalServerError {
		return nil
	}
	return errUpstreamStatus.withMessage(http.StatusText(status) + ".").withStatus(status)
}

// behindEnded logs an error of the handlers after lex, if it is a failure of
// theirs.
func (g *request) behindEnded(ctx context.Context, err error) {
	switch {
	case err == nil:
		g.handler.upstream.record(g.handler.logger, "")
	case !isCancelled(ctx) && statusOf(err) >= http.StatusInternalServerError:
		g.logFailure(causeOf(err))
	}
}

// brokeOff logs an answer that ended in a panic, as reverse_proxy reports one
// that upstream did not finish.
func (g *request) brokeOff(ctx context.Context) {
	switch {
	case isCancelled(ctx):
	case ctx.Err() != nil:
		g.logFailure(causeTimeout) // ours, of /lex/govern
	default:
		g.logFailure(causeBrokenOff)
	}
}

// isCancelled reports whether the answer is no longer wanted: the client went
// away, or a check stopped the stream.
func isCancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// logFailure writes the one line of a governed request that failed behind lex.
// The error's text stays out of it, because it may hold an address or a query.
func (g *request) logFailure(cause string) {
	if cause != causeBrokenOff && cause != causeEncoding && cause != causeNoText { // an answer had begun
		g.handler.upstream.record(g.handler.logger, cause)
	}
	g.failure.Do(func() {
		g.handler.logger.Error("the handlers behind lex failed", zap.String("cause", cause))
	})
}

// giveToCaddy passes on an error of traffic that lex does not govern. Caddy runs
// handle_errors, which may ask another provider and gets nothing that is addressed to
// Lex either, and logs the error with the request as the client sent it. One
// that shows a credential must not come there: for that lex does what Caddy
// does, except that it logs the cause alone.
func (h *Handler) giveToCaddy(w http.ResponseWriter, r *http.Request, err error) error {
	if err == nil {
		return nil
	}
	shows := showsCredential(r)
	dropFromOriginal(r)
	if !shows {
		return err
	}
	if status := statusOf(err); status >= http.StatusInternalServerError && !isCancelled(r.Context()) {
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
