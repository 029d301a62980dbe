package caddymodule

import (
	"net/http"
	"strings"
)

// The groups of endpoints that the `endpoints` option chooses from.
const (
	groupGovern = "govern"
	groupRead   = "read"
)

// An endpoint is one path of our own.
type endpoint struct {
	group  string
	method string
	serve  serveFunc
}

// endpoints are matched exactly, so that an upstream's own /stats is not
// shadowed where the option is off.
var endpoints = map[string]endpoint{
	"/lex/govern":        {groupGovern, http.MethodPost, (*request).govern},
	"/lex/govern/stream": {groupGovern, http.MethodPost, (*request).governStream},
	"/lex/health":        {groupGovern, http.MethodGet, (*request).health},
	"/audits/recent":     {groupRead, http.MethodGet, (*request).recent},
	"/benchmarks":        {groupRead, http.MethodGet, (*request).listBenchmarks},
	"/stats":             {groupRead, http.MethodGet, (*request).stats},
	"/agentic-sim":       {groupRead, http.MethodGet, (*request).agenticSim},
}

// auditPrefix opens the path of one receipt.
const auditPrefix = "/audits/"

// endpoint finds who serves a path of our own; nil means that it is not one,
// or that its group is switched off.
func (h *Handler) endpoint(path string) serveFunc {
	e, ok := endpoints[path]
	if !ok && strings.HasPrefix(path, auditPrefix) && !strings.Contains(path[len(auditPrefix):], "/") {
		e, ok = endpoint{groupRead, http.MethodGet, (*request).receipt}, true
	}
	if !ok || (h.Endpoints != "all" && h.Endpoints != e.group) {
		return nil
	}
	return func(g *request, w http.ResponseWriter, r *http.Request) {
		if !e.allows(r.Method) {
			w.Header().Set("Allow", e.allow())
			writeError(w, errMethod)
			return
		}
		e.serve(g, w, r)
	}
}

// allows reports whether a method is served; HEAD goes wherever GET does.
func (e endpoint) allows(method string) bool {
	return method == e.method || (method == http.MethodHead && e.method == http.MethodGet)
}

func (e endpoint) allow() string {
	if e.method == http.MethodGet {
		return "GET, HEAD"
	}
	return e.method
}
