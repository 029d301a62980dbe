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

// An endpoint is one path of our own, with a handler for each method.
type endpoint struct {
	group   string
	methods map[string]serveFunc
}

// endpoints are matched exactly, so that an upstream's own /stats is not
// shadowed where the option is off.
var endpoints = map[string]endpoint{
	"/lex/govern":        {groupGovern, map[string]serveFunc{http.MethodPost: (*request).govern}},
	"/lex/govern/stream": {groupGovern, map[string]serveFunc{http.MethodPost: (*request).governStream}},
	"/lex/health":        {groupGovern, get((*request).health)},
	"/audits/recent":     {groupRead, get((*request).recent)},
	"/audits/verify":     {groupRead, map[string]serveFunc{http.MethodPost: (*request).verify}},
	"/benchmarks":        {groupRead, get((*request).listBenchmarks)},
	"/stats":             {groupRead, get((*request).stats)},
	"/agentic-sim":       {groupRead, get((*request).agenticSim)},
	keysPath: {groupAdmin, map[string]serveFunc{
		http.MethodGet: asAdmin((*request).listKeys), http.MethodPost: asAdmin((*request).createKey),
	}},
}

// below are the endpoints whose path ends in an id.
var below = map[string]endpoint{
	auditPrefix:    {groupRead, get((*request).receipt)},
	policiesPrefix: {groupRead, get((*request).policy)},
	keysPrefix:     {groupAdmin, map[string]serveFunc{http.MethodDelete: asAdmin((*request).revokeKey)}},
}

// get serves GET, and HEAD with it.
func get(serve serveFunc) map[string]serveFunc {
	return map[string]serveFunc{http.MethodGet: serve, http.MethodHead: serve}
}

// What opens the path of one receipt, and of the policy that receipts name.
const (
	auditPrefix    = "/audits/"
	policiesPrefix = "/lex/policies/"
)

// endpoint finds who serves a path of our own; nil means that it is not one,
// or that its group is switched off.
func (h *Handler) endpoint(path string) serveFunc {
	e, ok := endpoints[path]
	if slash := strings.LastIndexByte(path, '/'); !ok && slash >= 0 {
		e, ok = below[path[:slash+1]]
	}
	if !ok || !h.serves(e.group) {
		return nil
	}
	return e.serve
}

// serves reports whether a group of endpoints is switched on.
func (h *Handler) serves(group string) bool {
	if group == groupAdmin {
		group = groupGovern
	}
	return h.Endpoints == "all" || h.Endpoints == group
}

func (e endpoint) serve(g *request, w http.ResponseWriter, r *http.Request) {
	if serve, ok := e.methods[r.Method]; ok {
		serve(g, w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(e.methods)), ", "))
	writeError(w, errMethod)
}
