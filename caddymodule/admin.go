package caddymodule

import (
	"net/http"
	"slices"
	"time"
)

// groupAdmin are the endpoints behind the admin and bench secrets. They are
// served wherever the governance endpoints are.
const groupAdmin = "admin"

// wrongTries is how many wrong secrets an address may send in a minute.
const wrongTries = 10

var (
	errNotConfigured = &apiError{http.StatusServiceUnavailable, "The secret for this endpoint is not configured.", "not_configured"}
	errUnauthorized  = &apiError{http.StatusUnauthorized, "This endpoint needs its secret.", "unauthorized"}
)

// asAdmin lets a handler run for those who know the admin secret.
func asAdmin(serve serveFunc) serveFunc {
	return guarded(serve, "X-Lex-Admin-Password", func(s *Secrets) []secret { return []secret{s.admin} })
}

// asBench lets a handler run for those who know the bench secret; the admin
// secret serves as well.
func asBench(serve serveFunc) serveFunc {
	return guarded(serve, "X-Lex-Bench-Secret", func(s *Secrets) []secret { return []secret{s.bench, s.admin} })
}

func guarded(serve serveFunc, header string, accepted func(*Secrets) []secret) serveFunc {
	return admitted(serve, func(g *request, _ http.ResponseWriter, r *http.Request) *apiError {
		return g.checkSecret(r, header, accepted(&g.app.Secrets))
	})
}

// asReader lets a handler run for those who may read.
func asReader(serve serveFunc) serveFunc { return admitted(serve, (*request).mayRead) }

func admitted(serve serveFunc, check func(*request, http.ResponseWriter, *http.Request) *apiError) serveFunc {
	return func(g *request, w http.ResponseWriter, r *http.Request) {
		apiErr := check(g, w, r)
		if apiErr == nil {
			serve(g, w, r)
			return
		}
		if apiErr.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="lex"`)
		}
		writeError(w, apiErr)
	}
}

// checkAdmin is checkSecret for the admin secret. A request is one try, however
// often it is asked about.
func (g *request) checkAdmin(r *http.Request) *apiError {
	if !g.tried {
		g.tried, g.asAdmin = true, g.checkSecret(r, "X-Lex-Admin-Password", []secret{g.app.Secrets.admin})
	}
	return g.asAdmin
}

// checkSecret looks for one of the accepted secrets in its header, in the admin
// secret's or in Authorization. A request without any is not a try.
func (g *request) checkSecret(r *http.Request, header string, accepted []secret) *apiError {
	var given []string
	for _, v := range []string{r.Header.Get(header), r.Header.Get("X-Lex-Admin-Password"), bearer(r.Header)} {
		if v != "" {
			given = append(given, v)
		}
	}
	switch {
	case !slices.ContainsFunc(accepted, func(s secret) bool { return s.set }):
		return errNotConfigured
	case len(given) == 0:
		return errUnauthorized
	}
	return g.trySecrets(r, given, accepted)
}

// trySecrets compares in constant time and counts a wrong try. An address that
// sent too many is not listened to for the rest of the minute, whatever it
// sends. Tries of one address wait for each other, so that a burst of them
// gets no more guesses than one after the other.
func (g *request) trySecrets(r *http.Request, given []string, accepted []secret) *apiError {
	subject := "secret:" + clientAddress(r)
	unlock, err := g.engine.locks.lock(r.Context(), subject)
	if err != nil {
		g.storeFailed("limit", err)
		return errGovernor
	}
	defer unlock()
	wrong, err := g.engine.store.Consumed(r.Context(), subject)
	if err == nil && wrong >= wrongTries {
		return errRateLimited
	}
	if err == nil && matchesAny(given, accepted) {
		return nil
	}
	if err == nil {
		_, err = g.engine.store.Consume(r.Context(), subject, wrongTries, time.Minute)
	}
	if err != nil {
		g.storeFailed("limit", err)
		return errGovernor
	}
	return errUnauthorized
}

// matchesAny compares everything with everything, so that the time tells
// nothing of which one fits.
func matchesAny(given []string, accepted []secret) bool {
	found := false
	for _, v := range given {
		for _, s := range accepted {
			found = s.matches(v) || found
		}
	}
	return found
}
