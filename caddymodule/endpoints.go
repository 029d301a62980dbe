package caddymodule

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The groups of endpoints that the `endpoints` option chooses from.
const (
	groupGovern = "govern"
	groupRead   = "read"
)

// groupAbout are the endpoints that describe the others.
const groupAbout = "about"

// An endpoint is one path of our own, with a handler for each method.
type endpoint struct {
	group   string
	methods map[string]serveFunc
}

// endpoints are matched exactly, so that an upstream's own /stats is not
// shadowed where the option is off.
var endpoints = map[string]endpoint{
	"/lex/govern":        {groupGovern, post((*request).govern)},
	"/lex/govern/stream": {groupGovern, post((*request).governStream)},
	"/lex/tools/check":   {groupGovern, post((*request).toolsCheck)},
	"/lex/health":        {groupGovern, get((*request).health)},
	"/lex/openapi.json":  {groupAbout, get((*request).openAPI)},
	"/lex/docs":          {groupAbout, get((*request).docs)},
	"/audits/recent":     {groupRead, get((*request).recent)},
	verifyPath:           {groupRead, post((*request).verify)},
	"/benchmarks":        {groupRead, get((*request).listBenchmarks)},
	"/stats":             {groupRead, get((*request).stats)},
	"/agentic-sim":       {groupRead, get((*request).agenticSim)},
	keysPath: {groupAdmin, map[string]serveFunc{
		http.MethodGet: asAdmin((*request).listKeys), http.MethodPost: asAdmin((*request).createKey),
	}},
	"/admin/benchmarks": {groupAdmin, post(asBench((*request).publishBenchmarks))},
}

// below are the endpoints whose path ends in an id.
var below = map[string]endpoint{
	auditPrefix:    {groupRead, get((*request).receipt)},
	turnPrefix:     {groupRead, get((*request).receiptOfTurn)},
	policiesPrefix: {groupRead, get((*request).policy)},
	keysPrefix:     {groupAdmin, map[string]serveFunc{http.MethodDelete: asAdmin((*request).revokeKey)}},
	sessionsPrefix: {groupAdmin, map[string]serveFunc{
		http.MethodGet: asAdmin((*request).session), http.MethodDelete: asAdmin((*request).eraseSession),
	}},
}

// get serves GET, and HEAD with it.
func get(serve serveFunc) map[string]serveFunc {
	return map[string]serveFunc{http.MethodGet: serve, http.MethodHead: serve}
}

// post serves POST alone.
func post(serve serveFunc) map[string]serveFunc {
	return map[string]serveFunc{http.MethodPost: serve}
}

// What opens the path of one receipt, by its own id and by its turn's, and of
// the policy that receipts name, and where receipts are verified.
const (
	auditPrefix    = "/audits/"
	turnPrefix     = "/audits/turn/"
	verifyPath     = auditPrefix + "verify"
	policiesPrefix = "/lex/policies/"
)

// endpoint finds who serves a path of our own; nil means that it is not one,
// or that its group is switched off.
func (h *Handler) endpoint(path string) serveFunc {
	if e, ok := h.served(path); ok {
		return e.serve
	}
	return nil
}

func (h *Handler) served(path string) (endpoint, bool) {
	e, ok := endpoints[path]
	if slash := strings.LastIndexByte(path, '/'); !ok && slash >= 0 {
		e, ok = below[path[:slash+1]]
	}
	return e, ok && h.serves(e.group)
}

// serves reports whether a group of endpoints is switched on.
func (h *Handler) serves(group string) bool {
	switch group {
	case groupAdmin:
		group = groupGovern
	case groupAbout:
		return h.Endpoints != "off"
	}
	return h.Endpoints == "all" || h.Endpoints == group
}

func (e endpoint) serve(g *request, w http.ResponseWriter, r *http.Request) {
	if serve, ok := e.methods[r.Method]; ok {
		if e.group == groupRead {
			serve = asReader(serve)
		}
		serve(g, w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(e.methods)), ", "))
	writeError(w, errMethod)
}
