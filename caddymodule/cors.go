package caddymodule

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

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
	}
	return nil
}

// crossOrigin adds the headers of the Fetch standard (section 3.3, CORS protocol)
// to answers of our own public endpoints, and answers preflight requests. Cookies
// are never allowed, and the administration is not for scripts of other origins.
//
// The headers are written here and not by github.com/rs/cors, because that would
// let answers for every origin vary by origin, which caches then keep once for
// each, and would answer the preflight requests of foreign origins with success.
func (h *Handler) crossOrigin(w http.ResponseWriter, r *http.Request, res *resource) (answered bool) {
	if len(h.CORS) == 0 || res.group == groupAdmin {
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
	w.WriteHeader(http.StatusNoContent)
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
