package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// consolePath is the console's page, and what is below it is its data.
const consolePath = "/lex/console"

// Who may read the console's data: the values of the option `console`.
const (
	consoleSecret = "secret" // those with the read or admin secret
	consoleOpen   = "open"   // everybody
)

// provisionConsole notes what the console tells of the site.
func (h *Handler) provisionConsole(ctx caddy.Context) {
	serving, stop := context.WithCancel(context.Background())
	h.serving = serving
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		ctx.OnCancel(stop)
		return
	}
	// Caddy waits for requests before it ends a configuration, and a stream of events ends
	// with its configuration.
	server.RegisterOnShutdown(stop)
	ctx.OnCancel(stop) // also where the server never began
	h.listens, h.sharedOrigin = server.Listen, sharesOrigin(server.Routes)
}

func (h *Handler) validateConsole() error {
	switch {
	case !slices.Contains([]string{"", consoleSecret, consoleOpen}, h.Console):
		return fmt.Errorf("console %q: give %s or %s", h.Console, consoleSecret, consoleOpen)
	case h.Console == consoleOpen && h.Read != readPublic:
		return fmt.Errorf("console open: it shows everybody what read %s keeps for some; leave out open, and give secrets read", h.Read)
	case h.Console != "" && !h.serves(groupRead):
		return fmt.Errorf("console: it shows what the read endpoints serve, and endpoints is %s", h.Endpoints)
	}
	return nil
}

// consolePage serves GET /lex/console. The page has no data and needs no secret.
func consolePage(_ *request, w http.ResponseWriter, r *http.Request) error {
	page, h := console.ThePage(), w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", page.Policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	serveTagged(w, r, page.ETag, page.HTML)
	return nil
}

// serveTagged answers with a body that the client may have already.
func serveTagged(w http.ResponseWriter, r *http.Request, etag string, body []byte) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-cache")
	}
	h.Set("ETag", etag)
	// A part of a JSON text is of no use, and the errors of ServeContent are not JSON:
	// it compares the ETag with If-None-Match and knows of nothing else.
	r = r.Clone(r.Context())
	for _, name := range []string{"Range", "If-Match", "If-Unmodified-Since"} {
		r.Header.Del(name)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// consoleAPI are the endpoints of the console's data. There is one for each request.
type consoleAPI struct {
	*request
	window *console.Window
}

// viewing lets an endpoint run for callers that may see the console. Those with a secret
// are not counted.
func viewing(serve func(*consoleAPI, http.ResponseWriter, *http.Request) error) endpointFunc {
	return func(g *request, w http.ResponseWriter, r *http.Request) error {
		if g.handler.Console == consoleOpen {
			visitor := caller{address: clientAddress(r)}
			if apiErr := g.limits.take(r.Context(), w, g.app.Limits.Read, visitor.subject(groupConsole)); apiErr != nil {
				return apiErr
			}
		} else if apiErr := g.checkViewer(r); apiErr != nil {
			return challenged(w, apiErr)
		}
		return serve(&consoleAPI{g, g.shared.window}, w, r)
	}
}

// checkViewer checks the secret that opens the console. The page asks the read endpoints too,
// with the same secret, so it must be one that opens them.
func (g *request) checkViewer(r *http.Request) *apiError {
	if g.handler.Read == readAdmin {
		return g.auth.checkAdmin(r)
	}
	return g.auth.checkRead(r)
}

// aboutConsole is the answer of GET /lex/console/about.
type aboutConsole struct {
	Now     int64         `json:"now"`
	Version string        `json:"version"`
	Store   string        `json:"store"`
	Open    bool          `json:"open"` // no secret is needed
	Sites   []consoleSite `json:"sites"`
	Policy  consolePolicy `json:"policy"`
	Window  console.State `json:"window"`
	Shared  bool          `json:"shared_origin"` // other handlers answer on this origin
}

// consoleSite is what the console tells of a site: how much it lets pass.
type consoleSite struct {
	Listen    string          `json:"listen"`
	Mode      string          `json:"mode"`
	Unknown   string          `json:"unknown"`
	HoldBack  consoleHoldBack `json:"hold_back"`
	Endpoints string          `json:"endpoints"`
}

type consoleHoldBack struct {
	Bytes        int   `json:"bytes"`
	Milliseconds int64 `json:"milliseconds"`
}

type consolePolicy struct {
	Hash      string         `json:"hash"`
	Constants jsontext.Value `json:"constants"`
}

// about serves GET /lex/console/about.
func (a *consoleAPI) about(w http.ResponseWriter, r *http.Request) error {
	if _, err := consoleQuery(r); err != nil {
		return err
	}
	state, err := a.window.State(r.Context())
	if err != nil {
		return storeError(err)
	}
	k := a.handler.policy.governor.Kernel
	constants, err := k.Policy().JSON()
	if err != nil {
		return fmt.Errorf("writing the policy: %w", err)
	}
	return writeJSON(w, http.StatusOK, aboutConsole{
		Now: time.Now().UnixMilli(), Version: pipelineVersion, Store: a.app.storeEngine,
		Open: a.handler.Console == consoleOpen, Sites: a.app.consoleSites(),
		Policy: consolePolicy{k.PolicyHash(), constants}, Window: state, Shared: a.handler.sharedOrigin,
	})
}

func (a *App) consoleSites() []consoleSite {
	sites := []consoleSite{}
	for _, h := range a.handlers {
		hold := consoleHoldBack{h.HoldBack.Bytes, time.Duration(h.HoldBack.Duration).Milliseconds()}
		for _, listen := range h.listens {
			sites = append(sites, consoleSite{listen, h.Mode, h.Unknown, hold, h.Endpoints})
		}
	}
	return sites
}

// counts serves GET /lex/console/counts.
func (a *consoleAPI) counts(w http.ResponseWriter, r *http.Request) error {
	query, err := consoleQuery(r, "from", "to", "step")
	if err != nil {
		return err
	}
	span, err := spanOf(query, true)
	if err != nil {
		return err
	}
	step, err := strconv.ParseInt(query.Get("step"), 10, 64)
	if err != nil || !console.ValidStep(span, step) {
		return errInvalidRange
	}
	counts, err := a.window.Counts(r.Context(), span, step)
	if err != nil {
		return storeError(err)
	}
	return writeTagged(w, r, counts)
}

// coverageAnswer is the answer of GET /lex/console/coverage.
type coverageAnswer struct {
	console.Coverage
	WithoutReceipt withoutReceipt `json:"without_receipt"`
}

// coverage serves GET /lex/console/coverage.
func (a *consoleAPI) coverage(w http.ResponseWriter, r *http.Request) error {
	query, err := consoleQuery(r, "from", "to")
	if err != nil {
		return err
	}
	span, err := spanOf(query, true)
	if err != nil {
		return err
	}
	coverage, err := a.window.Coverage(r.Context(), span)
	if err != nil {
		return storeError(err)
	}
	return writeTagged(w, r, coverageAnswer{coverage, a.app.metrics.withoutReceipt()})
}

// writeTagged answers with v, unless the client has it already.
func writeTagged(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := encodeJSON(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	serveTagged(w, r, console.ETag(body), body)
	return nil
}

// receipts serves GET /lex/console/receipts.
func (a *consoleAPI) receipts(w http.ResponseWriter, r *http.Request) error {
	query, err := consoleQuery(r, append([]string{"from", "to", "before", "limit"}, filterNames...)...)
	if err != nil {
		return err
	}
	filter, err := filterOf(query)
	if err != nil {
		return err
	}
	limit, err := pageLimit(query, defaultListed, console.MaxListed)
	if err != nil {
		return err
	}
	list, err := a.window.Receipts(r.Context(), filter, query.Get("before"), limit)
	if errors.Is(err, store.ErrNotFound) {
		return errInvalidCursor
	}
	if err != nil {
		return storeError(err)
	}
	return writeJSON(w, http.StatusOK, list)
}

// The usual limits of the console's lists.
const (
	defaultListed = 100
	defaultSteps  = 200
)

// chain serves GET /lex/console/chains/{id}.
func (a *consoleAPI) chain(w http.ResponseWriter, r *http.Request) error {
	query, err := consoleQuery(r, "limit")
	if err != nil {
		return err
	}
	limit, err := pageLimit(query, defaultSteps, console.MaxSteps)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if !kernel.IsReceiptID(id) {
		return errNotFound
	}
	chain, err := console.ReadChain(r.Context(), a.shared.store, id, limit)
	if err != nil {
		return storeError(err)
	}
	return writeJSON(w, http.StatusOK, chain)
}

// consoleQuery reads the parameters of a request. Each of them is known, and given once:
// a filter that is not understood must not show what it should have left out.
func consoleQuery(r *http.Request, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errInvalidFilter
	}
	for name, values := range query {
		if len(values) > 1 || !slices.Contains(known, name) {
			return nil, errInvalidFilter
		}
	}
	return query, nil
}

// spanOf reads from and to. Without them it is all time, unless they are required.
func spanOf(query url.Values, required bool) (console.Span, error) {
	span := console.Span{From: 0, To: console.MaxTime}
	for name, to := range map[string]*int64{"from": &span.From, "to": &span.To} {
		if !query.Has(name) && !required {
			continue
		}
		ms, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			return span, errInvalidRange
		}
		*to = ms
	}
	if !span.Valid() {
		return span, errInvalidRange
	}
	return span, nil
}

// maxFilterText is how long a text in a filter may be, in bytes. A session's id may be of
// another store, where it was longer than ours are.
const maxFilterText = 1024

// filterNames are the parameters of a filter, besides its span.
var filterNames = []string{"show", "reason", "attack_type", "session_id", "mode", "endpoint", "gap", "min_severity"}

// filterOf reads the filter of a list.
func filterOf(query url.Values) (console.Filter, error) {
	span, err := spanOf(query, false)
	if err != nil {
		return console.Filter{}, err
	}
	f := console.Filter{
		Span: span, Show: query.Get("show"), Reason: query.Get("reason"), AttackType: query.Get("attack_type"),
		SessionID: query.Get("session_id"), Mode: query.Get("mode"), Endpoint: query.Get("endpoint"), Gap: query.Get("gap"),
	}
	if query.Has("min_severity") {
		if f.MinSeverity, err = strconv.ParseFloat(query.Get("min_severity"), 64); err != nil {
			return f, errInvalidFilter
		}
	}
	for _, name := range filterNames {
		if text := query.Get(name); query.Has(name) && text == "" || len(text) > maxFilterText {
			return f, errInvalidFilter
		}
	}
	if !f.Valid() {
		return f, errInvalidFilter
	}
	return f, nil
}
