package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler governs the language-model traffic that flows to the handlers after
// it, and serves the governance endpoints.
type Handler struct {
	// enforce acts on decisions; observe computes and records everything and
	// changes no answer that can be governed. Default: enforce.
	Mode string `json:"mode,omitempty"`

	// The name of the policy that requests are governed under, among those that the
	// app defines. The plan of an API key may choose another. Default: the unnamed
	// one.
	Policy string `json:"policy,omitempty"`

	// Which of our own endpoints are served: all, govern, read or off.
	// Default: all.
	Endpoints string `json:"endpoints,omitempty"`

	// Who may use the read endpoints (/audits, /stats, /benchmarks,
	// /agentic-sim, /lex/policies, /lex/setups): public, keyed for those with a Lex key or the
	// admin secret, or admin. Default: public.
	Read string `json:"read,omitempty"`

	// Serve the console at /lex/console. Its data is opened by the read or admin secret
	// (secret), or by nothing (open). It needs the read endpoints. Default: no console.
	Console string `json:"console,omitempty"`

	// The model that POST /lex/govern asks for. Default: lex-demo.
	Model string `json:"model,omitempty"`

	// The credential that POST /lex/govern gives to the provider. Placeholders
	// such as {env.PROVIDER_KEY} are resolved for each request.
	ProviderKey string `json:"provider_key,omitempty"`

	// The dialect in which POST /lex/govern asks the model, such as openai, anthropic,
	// gemini or ollama. Default: openai.
	UpstreamDialect string `json:"upstream_dialect,omitempty"`

	// When POST /lex/govern also asks for the ungoverned answer:
	// unless_refused, always or never. Default: unless_refused.
	Baseline string `json:"baseline,omitempty"`

	// What becomes of an ungoverned answer that the judge finds against: show
	// gives it beside the governed one with its verdict, withhold gives the
	// verdict alone. Default: show.
	Raw string `json:"raw,omitempty"`

	// How a refusal is told on intercepted traffic.
	RefuseWith RefuseWith `json:"refuse_with,omitzero"`

	// What happens to requests and answers that no dialect knows: inspect reads
	// all texts of a request loosely, refuses attacks with 403 and forwards the
	// rest, with a receipt that says what was read; observe forwards and records
	// that nothing was, pass forwards, block refuses. Default: inspect.
	Unknown string `json:"unknown,omitempty"`

	// The dialects of paths of a gateway's own, in the order in which they are tried,
	// before the paths that are known without them.
	Dialects []DialectPath `json:"dialects,omitempty"`

	// What becomes of an earlier message that was refused when it was new, or
	// would be refused now: redact replaces it before forwarding, refuse refuses
	// the turn that resends it. Default: redact.
	History string `json:"history,omitempty"`

	// What becomes of a result of a tool, or of a document, that brings instructions:
	// block refuses the turn, redact replaces the result, annotate puts a warning in
	// front of it. Default: block.
	ToolResults string `json:"tool_results,omitempty"`

	// How much text of a request is read, in bytes. Default: 1 MiB.
	InspectLimit int64 `json:"inspect_limit,omitempty"`

	// What happens to a request with more text than that: refuse, or pass, with a
	// receipt that says how much was not read. Default: refuse.
	Oversize string `json:"oversize,omitempty"`

	// How much of a streamed answer is kept back so that a check can still
	// stop it. Default: 256 bytes, for at most 2 seconds.
	HoldBack HoldBack `json:"hold_back,omitzero"`

	// Put in front of the path of everything that goes to the handlers after
	// lex, such as /openai for a provider whose API is below that path.
	UpstreamPath string `json:"upstream_path,omitempty"`

	// How long each call of POST /lex/govern to the model may take. Default: 2m.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// Which response headers tell of governance: receipt (the turn's id and, on
	// intercepted traffic, the receipt's), full (there also band, margin and
	// coverage; an oracle for attackers) or none. Default: receipt.
	Headers string `json:"headers,omitempty"`

	// Refuse callers without a Lex API key.
	RequireKey bool `json:"require_key,omitempty"`

	// The origins whose scripts may call our own public endpoints from a
	// browser, such as https://app.example, or * alone for every origin.
	// Default: none.
	CORS []string `json:"cors,omitempty"`

	app      *App
	policy   *Policy
	mux      *http.ServeMux  // of our own endpoints
	folders  map[string]bool // with the first names of their paths
	logger   *zap.Logger
	unread   *seenPaths // where answers pass uninspected
	upstream *upstreamLog
	asks     askingDialect

	listens      []string        // addresses of the server
	sharedOrigin bool            // other handlers answer on this site, too
	serving      context.Context // ends when the server stops taking requests
}

// defaultInspect is the default of Handler.InspectLimit, in bytes.
const defaultInspect = 1 << 20

// maxHoldBack bounds HoldBack.Bytes.
const maxHoldBack = 1 << 20

// HoldBack bounds what a stream keeps back.
type HoldBack struct {
	// Bytes of answer text that must have been inspected behind a byte before
	// it leaves.
	Bytes int `json:"bytes"`

	// The longest time that text is kept back while the model is silent.
	Duration caddy.Duration `json:"duration"`
}

// RefuseWith is a way to refuse: as a message of the dialect, which says it in
// the content and in the member for refusals, in one of the two alone, or as the
// dialect's error body with a status.
type RefuseWith struct {
	// message, refusal, content or status. Default: message.
	As string `json:"as,omitempty"`

	// The HTTP status of `status`; one that no SDK retries.
	Status int `json:"status,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.lex",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision sets defaults and finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	wrapTransports(ctx)
	keepConnections(ctx)
	if err := h.checkRoutes(ctx); err != nil {
		return err
	}
	app, err := ctx.App("lex")
	if err != nil {
		return err
	}
	var ok bool
	if h.app, ok = app.(*App); !ok {
		return fmt.Errorf("the app lex is a %T", app)
	}
	if h.policy, err = h.app.policy(h.Policy); err != nil {
		return err
	}
	h.setDefaults()
	h.provisionConsole(ctx)
	h.mux, h.folders = newMux(h.serves), ownFolders()
	if h.asks, err = dialectToAsk(h.UpstreamDialect); err != nil {
		return err
	}
	h.app.handlers = append(h.app.handlers, h)
	return nil
}

func (h *Handler) setDefaults() {
	for field, value := range map[*string]string{
		&h.Mode: string(kernel.Enforce), &h.Endpoints: "all", &h.Read: readPublic, &h.Model: "lex-demo", &h.UpstreamDialect: "openai", &h.Baseline: "unless_refused", &h.Raw: "show",
		&h.Unknown: unknownInspect, &h.History: "redact", &h.ToolResults: string(govern.BlockResults), &h.Oversize: "refuse", &h.Headers: "receipt", &h.RefuseWith.As: "message",
	} {
		if *field == "" {
			*field = value
		}
	}
	if h.HoldBack == (HoldBack{}) {
		h.HoldBack = HoldBack{Bytes: 256, Duration: caddy.Duration(2 * time.Second)}
	}
	if h.InspectLimit == 0 {
		h.InspectLimit = defaultInspect
	}
	h.unread, h.upstream = new(seenPaths), new(upstreamLog)
	if h.Timeout == 0 {
		h.Timeout = caddy.Duration(2 * time.Minute)
	}
}

// Validate checks the options, also where they did not come from a Caddyfile.
func (h *Handler) Validate() error {
	for _, o := range []struct {
		name, value string
		allowed     []string
	}{
		{"mode", h.Mode, []string{string(kernel.Enforce), string(kernel.Observe)}},
		{"endpoints", h.Endpoints, []string{"all", groupGovern, groupRead, "off"}},
		{"read", h.Read, []string{readPublic, readKeyed, readAdmin}},
		{"baseline", h.Baseline, []string{"unless_refused", "always", "never"}},
		{"raw", h.Raw, []string{"show", "withhold"}},
		{"unknown", h.Unknown, []string{unknownInspect, unknownObserve, unknownPass, unknownBlock}},
		{"history", h.History, []string{"redact", "refuse"}},
		{"tool_results", h.ToolResults, []string{"block", "redact", "annotate"}},
		{"oversize", h.Oversize, []string{"refuse", "pass"}},
		{"headers", h.Headers, []string{"receipt", "full", "none"}},
		{"refuse_with", h.RefuseWith.As, []string{"message", "refusal", "content", "status"}},
	} {
		if !slices.Contains(o.allowed, o.value) {
			return fmt.Errorf("%s %q: give one of %s", o.name, o.value, strings.Join(o.allowed, ", "))
		}
	}
	if err := h.validateConsole(); err != nil {
		return err
	}
	return h.validateNumbers()
}

// quietStatus are the statuses that no SDK repeats and none takes for a
// request to sign in again.
var quietStatus = []int{http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons}

func (h *Handler) validateNumbers() error {
	if h.RefuseWith.As == "status" && !slices.Contains(quietStatus, h.RefuseWith.Status) {
		return fmt.Errorf("refuse_with status %d: give one of %v; SDKs repeat the others or sign in again", h.RefuseWith.Status, quietStatus)
	}
	if h.RefuseWith.As != "status" && h.RefuseWith.Status != 0 {
		return fmt.Errorf("refuse_with: the status %d is only for as status", h.RefuseWith.Status)
	}
	if h.HoldBack.Bytes < 0 || h.HoldBack.Bytes > maxHoldBack || h.HoldBack.Duration <= 0 {
		return fmt.Errorf("hold_back: give 0 to %d bytes and a positive duration", maxHoldBack)
	}
	if h.InspectLimit < 1 || h.InspectLimit > maxSize {
		return errors.New("inspect_limit: give a size from 1 byte to 1TiB, such as 1MiB")
	}
	if h.Timeout < 0 {
		return errors.New("timeout: give a positive duration")
	}
	if err := checkUpstreamPath(h.UpstreamPath); err != nil {
		return err
	}
	for i, d := range h.Dialects {
		if err := d.check(); err != nil {
			return err
		}
		if err := d.checkNew(h.Dialects[:i]); err != nil {
			return err
		}
	}
	return checkOrigins(h.CORS)
}

// ServeHTTP serves our own endpoints, governs the traffic that may carry a prompt
// on its way to the next handler, and passes on everything else. A request that is
// served or governed holds the store open and ends when the process exits.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if isGoverned(r.Context()) {
		h.logger.Error(errTwice.Error())
		writeError(w, errGovernedTwice)
		return nil
	}
	setPlaceholders(r, placeholders{})
	own := h.resource(r)
	if own != nil && h.crossOrigin(w, r, own) {
		return nil // a preflight request
	}
	if own == nil {
		r = settleBody(w, r)
	}
	serve := h.route(r, own)
	if serve == nil {
		allMetrics.ungoverned.WithLabelValues(withoutText).Inc()
		return h.giveToCaddy(w, r, passCleanly(w, h.outbound(r.Context(), r), next, nil))
	}
	w, written := boundConnection(w, r)
	defer written()
	ctx, landed, err := process.begin(r.Context(), w)
	if err != nil {
		h.unavailable(w, r)
		return nil
	}
	defer landed()
	r = r.WithContext(ctx)
	shared, done, err := h.app.use(ctx)
	if err != nil {
		h.unavailable(w, r)
		return nil
	}
	defer done()
	g := newRequest(h, shared, next)
	g.traceID = traceIDOf(ctx)
	if err := serve(g, w, r); err != nil {
		g.failures.answer(w, err)
	}
	if exits(ctx) { // the process may end before net/http flushes the answer
		_ = http.NewResponseController(w).Flush()
	}
	return h.giveToCaddy(w, r, g.ungoverned)
}

// route chooses how a request is governed: as one for our own resource, if it is
// for one, in the dialect that claims its path, as one to another endpoint of a
// provider, or as one to a path that nobody knows. nil means that it is not governed.
func (h *Handler) route(r *http.Request, own *resource) endpointFunc {
	if own != nil {
		return (*request).serveResource
	}
	if d, ok := h.dialect(r); ok && (r.Method == http.MethodPost || carriesBody(r) || listens(d, r.Method)) {
		return func(g *request, w http.ResponseWriter, r *http.Request) error {
			g.intercept(w, r, d.Name(), d)
			return nil
		}
	}
	known, d, ok := h.stored(r)
	if ok {
		return func(g *request, w http.ResponseWriter, r *http.Request) error {
			g.intercept(w, r, known.Name, d)
			return nil
		}
	}
	if h.RequireKey || mayCarryPrompt(r) {
		return func(g *request, w http.ResponseWriter, r *http.Request) error {
			return g.interceptOther(w, r, known)
		}
	}
	return nil
}

// listens reports whether a call with this method has no body in a dialect.
func listens(d wire.Dialect, method string) bool {
	server, ok := d.(wire.ToolServer)
	return ok && server.Listens(method)
}

// unavailable answers while there is no store to write a receipt to.
func (h *Handler) unavailable(w http.ResponseWriter, r *http.Request) {
	if clientLeft(r.Context()) {
		return
	}
	e := errGovernor.withStatus(http.StatusServiceUnavailable)
	if d, ok := h.dialect(r); ok {
		writeDialectError(w, r, d, e)
	} else if known, ok := wire.FindEndpoint(r.Method, r.URL, r.Header); ok && h.resource(r) == nil {
		writeDialectError(w, r, known.Family, e)
	} else {
		writeError(w, errGovernor)
	}
}

// outcomeOfFailure names the outcome of a request that failed and so has no receipt, for metrics.
func outcomeOfFailure(err error) string {
	if errors.Is(err, context.Canceled) {
		return outcomeLeft
	}
	return string(kernel.Failed)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
