package caddymodule

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The groups of endpoints. The option `endpoints` chooses from the first two;
// groupAdmin is served wherever groupGovern is, groupConsole where groupRead is and
// the option `console` is given, and groupAbout, which tells of the others, unless all
// are off.
const (
	groupGovern  = "govern"
	groupRead    = "read"
	groupAdmin   = "admin"
	groupConsole = "console"
	groupAbout   = "about"
)

// The paths that the commands of `caddy lex` ask for, too.
const (
	keysPath       = "/admin/keys"
	keysPrefix     = keysPath + "/"
	auditPrefix    = "/audits/"
	logPath        = "/audits/log"
	policiesPrefix = "/lex/policies/"
	setupsPrefix   = "/lex/setups/"
)

// An endpointFunc serves an endpoint. Its error is answered, counted and logged
// in one place (resource.ServeHTTP); it returns one only while it has written
// nothing.
type endpointFunc func(g *request, w http.ResponseWriter, r *http.Request) error

// An endpoint is a method and a path of ours. GET serves HEAD too, except in the
// administration.
type endpoint struct {
	pattern string // as http.ServeMux writes it
	group   string
	serve   endpointFunc
}

// endpoints are all of our own. A new one is added here and described in
// openapi.json; tests compare the two.
var endpoints = []endpoint{
	{"POST /lex/govern", groupGovern, (*request).govern},
	{"POST /lex/govern/stream", groupGovern, (*request).governStream},
	{"POST /lex/tools/check", groupGovern, (*request).toolsCheck},

	{"GET /lex/health", groupAbout, health},
	{"GET /lex/openapi.json", groupAbout, openAPI},
	{"GET /lex/docs", groupAbout, docs},

	{"GET /audits/recent", groupRead, reading((*readAPI).recent)},
	{"GET " + logPath, groupRead, reading((*readAPI).log)},
	{"GET " + auditPrefix + "{id}", groupRead, reading((*readAPI).receipt)},
	{"GET /audits/turn/{id}", groupRead, reading((*readAPI).receiptOfTurn)},
	{"POST /audits/verify", groupRead, verifying((*readAPI).verify)},
	{"GET " + policiesPrefix + "{hash}", groupRead, reading((*readAPI).policy)},
	{"GET " + setupsPrefix + "{hash}", groupRead, reading((*readAPI).setup)},
	{"GET /benchmarks", groupRead, reading((*readAPI).listBenchmarks)},
	{"GET /stats", groupRead, reading((*readAPI).stats)},
	{"GET /agentic-sim", groupRead, reading((*readAPI).agenticSim)},

	{"GET " + consolePath, groupConsole, consolePage},
	{"GET " + consolePath + "/about", groupConsole, viewing((*consoleAPI).about)},
	{"GET " + consolePath + "/counts", groupConsole, viewing((*consoleAPI).counts)},
	{"GET " + consolePath + "/receipts", groupConsole, viewing((*consoleAPI).receipts)},
	{"GET " + consolePath + "/chains/{id}", groupConsole, viewing((*consoleAPI).chain)},
	{"GET " + consolePath + "/coverage", groupConsole, viewing((*consoleAPI).coverage)},
	{"GET " + consolePath + "/events", groupConsole, viewing((*consoleAPI).events)},

	{"GET " + keysPath, groupAdmin, withAdminSecret((*adminAPI).listKeys)},
	{"POST " + keysPath, groupAdmin, withAdminSecret((*adminAPI).createKey)},
	{"DELETE " + keysPrefix + "{id}", groupAdmin, withAdminSecret((*adminAPI).revokeKey)},
	{"GET /admin/sessions/{session}", groupAdmin, withAdminSecret((*adminAPI).session)},
	{"DELETE /admin/sessions/{session}", groupAdmin, withAdminSecret((*adminAPI).eraseSession)},
	{"POST /admin/benchmarks", groupAdmin, withBenchSecret((*adminAPI).publishBenchmarks)},
}

// A resource is one path of ours with its methods. The mux knows paths only:
// GET /audits/verify must not look for a receipt of that name, and another
// method than ours is answered in our JSON.
type resource struct {
	group   string
	methods map[string]endpointFunc
}

// newMux builds the mux of the groups that are served. A path without the name at
// its end, such as DELETE /admin/keys/, is ours too: the request may bring a secret,
// which must not reach the upstream.
func newMux(serves func(group string) bool) *http.ServeMux {
	mux := http.NewServeMux()
	resources := make(map[string]*resource)
	for _, e := range endpoints {
		if !serves(e.group) {
			continue
		}
		method, path, _ := strings.Cut(e.pattern, " ")
		res, known := resources[path]
		if !known {
			res = &resource{e.group, make(map[string]endpointFunc)}
			resources[path] = res
			mux.Handle(path, res)
			if parent, _, named := strings.Cut(path, "{"); named {
				mux.Handle(parent+"{$}", res)
			}
		}
		res.methods[method] = e.serve
		if method == http.MethodGet && e.group != groupAdmin {
			res.methods[http.MethodHead] = e.serve
		}
	}
	return mux
}

// serves reports whether a group of endpoints is switched on.
func (h *Handler) serves(group string) bool {
	switch group {
	case groupAdmin:
		group = groupGovern
	case groupConsole:
		return h.Console != "" && h.serves(groupRead)
	case groupAbout:
		return h.Endpoints != "off"
	}
	return h.Endpoints == "all" || h.Endpoints == group
}

// resource finds the resource of a path; nil means that the path is not ours. For
// an unknown path ServeMux returns a handler that answers 404, and for one with
// double slashes or dots a handler that redirects. Neither is a resource, so such a
// request goes on to the upstream as it is.
func (h *Handler) resource(r *http.Request) *resource {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !h.folders[first] {
		return nil // as nearly all; the mux would find no resource either
	}
	found, _ := h.mux.Handler(plainlyWritten(r))
	res, _ := found.(*resource)
	return res
}

// ownFolders are the first names of our paths.
func ownFolders() map[string]bool {
	folders := make(map[string]bool)
	for _, e := range endpoints {
		_, path, _ := strings.Cut(e.pattern, " /")
		first, _, _ := strings.Cut(path, "/")
		folders[first] = true
	}
	return folders
}

// plainlyWritten returns the request without the original spelling of its path, so
// that the mux matches the decoded path, as Caddy's matchers do. A name of dots is
// written so that the mux takes it for a name and not for another folder.
func plainlyWritten(r *http.Request) *http.Request {
	folder, name := path.Split(r.URL.Path)
	dots := name == "." || name == ".."
	if r.URL.RawPath == "" && r.URL.Host == "" && !dots {
		return r
	}
	out := *r
	address := *r.URL
	address.RawPath, address.Host = "", ""
	if dots {
		address.RawPath = (&url.URL{Path: folder}).EscapedPath() + strings.ReplaceAll(name, ".", "%2E")
	}
	out.URL = &address
	return &out
}

// requestKey is the key of a request's *request in its context.
type requestKey struct{}

// serveResource serves a request whose path is ours.
func (g *request) serveResource(w http.ResponseWriter, r *http.Request) error {
	g.handler.mux.ServeHTTP(w, plainlyWritten(r).WithContext(context.WithValue(r.Context(), requestKey{}, g)))
	return nil
}

// ServeHTTP serves the endpoint of the request's method. It is the one place
// where the error of an endpoint becomes an answer, a count and a line in the log.
func (res *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g, _ := r.Context().Value(requestKey{}).(*request)
	serve, allowed := res.methods[r.Method]
	if !allowed {
		w.Header().Set("Allow", res.allow())
		g.failures.answer(w, errMethod)
		return
	}
	if err := serve(g, w, r); err != nil {
		g.failures.answer(w, err)
	}
}

// allow lists the methods.
func (res *resource) allow() string {
	return strings.Join(slices.Sorted(maps.Keys(res.methods)), ", ")
}

// encodeJSON writes v as encoding/json would: sorted members of maps, null for a
// nil slice, and no character that a browser could take for markup.
func encodeJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v,
		json.Deterministic(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true),
		jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return text, nil
}

// writeJSON answers with v. After an error, which is v's, nothing was written.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := encodeJSON(v)
	if err != nil {
		return err
	}
	_ = writeBody(w, status, "application/json", append(body, '\n')) // a failure means that the client left
	return nil
}

// writeBody answers with body. An error means that the client left.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, err := w.Write(body) //nolint:gosec // G705: JSON or our own page, and nosniff keeps browsers from taking JSON for another type
	return err
}

// writeNothing answers that all is well.
func writeNothing(w http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNoContent)
}

// anyOrigin stands for every origin.
const anyOrigin = "*"

// What a script of another origin may send and read, besides what the Fetch
// standard always allows it.
const (
	corsRequestHeaders  = "Authorization, Content-Type, If-None-Match, X-Lex-Api-Key"
	corsResponseHeaders = "ETag, Link, Retry-After, X-Lex-Turn, X-RateLimit-Limit, X-RateLimit-Remaining"
	corsMaxAge          = "600" // seconds
)

// checkOrigins accepts * alone, or origins as a browser writes them: scheme and
// host in lower case, a port where it is not the scheme's, no path.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		if o == anyOrigin && len(origins) == 1 {
			continue
		}
		u, err := url.Parse(o)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || o != u.Scheme+"://"+strings.ToLower(u.Host) {
			return fmt.Errorf("cors %q: give * alone, or origins such as https://app.example without a path", o)
		}
		if strings.Contains(u.Host, "*") || u.Port() == "80" && u.Scheme == "http" || u.Port() == "443" && u.Scheme == "https" {
			return fmt.Errorf("cors %q: no browser calls itself so: give each origin by its name, without the port of its scheme", o)
		}
	}
	return nil
}

// crossOrigin adds the headers of the Fetch standard (section 3.3, CORS protocol)
// to answers of our own public endpoints, and answers preflight requests. Cookies
// are never allowed, and the administration and the console are not for scripts of
// other origins.
//
// The headers are written here and not by github.com/rs/cors, because that would
// let answers for every origin vary by origin, which caches then keep once for
// each, and would answer the preflight requests of foreign origins with success.
func (h *Handler) crossOrigin(w http.ResponseWriter, r *http.Request, res *resource) (answered bool) {
	if len(h.CORS) == 0 || res.group == groupAdmin || res.group == groupConsole {
		return false
	}
	if h.CORS[0] != anyOrigin {
		w.Header().Add("Vary", "Origin")
	}
	allowed := h.allowedOrigin(r.Header.Get("Origin"))
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	if allowed == "" {
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", allowed)
	if !preflight {
		w.Header().Set("Access-Control-Expose-Headers", corsResponseHeaders)
		return false
	}
	w.Header().Set("Access-Control-Allow-Methods", res.allow())
	w.Header().Set("Access-Control-Allow-Headers", corsRequestHeaders)
	w.Header().Set("Access-Control-Max-Age", corsMaxAge)
	writeNothing(w)
	return true
}

// allowedOrigin is the value to answer an Origin header with, "" for none.
func (h *Handler) allowedOrigin(origin string) string {
	switch {
	case origin == "":
		return ""
	case h.CORS[0] == anyOrigin:
		return anyOrigin
	case slices.Contains(h.CORS, origin):
		return origin
	}
	return ""
}
