package caddymodule

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Who may use the read endpoints.
const (
	readPublic = "public"
	readKeyed  = "keyed" // those with a Lex key, or the admin secret
	readAdmin  = "admin"
)

// defaultRead is the default of Limits.Read: a dashboard that asks for
// everything each second stays below it, and so does a conformance run.
var defaultRead = Rate{Requests: 600, Window: caddy.Duration(time.Minute)}

// groupVerify is what verifications are counted on: each reads many receipts.
const groupVerify = "verify"

// mayRead lets callers of the read endpoints in, and counts them. Whoever knows
// the admin secret is not counted.
func (g *request) mayRead(w http.ResponseWriter, r *http.Request) *apiError {
	if g.handler.Read == readAdmin {
		return g.checkAdmin(r)
	}
	var apiErr *apiError
	if g.caller, apiErr = g.reader(r); apiErr != nil {
		return apiErr
	}
	if apiErr := g.showsAdmin(r); apiErr == nil {
		return nil
	} else if g.handler.Read == readKeyed && !g.caller.keyed {
		return apiErr
	}
	group := groupRead
	if r.URL.Path == verifyPath {
		group = groupVerify
	}
	return g.take(r.Context(), w, g.app.Limits.Read, g.caller.subject(group))
}

// reader is the caller of a read endpoint. These are public, so a key that is
// not one makes an anonymous caller.
func (g *request) reader(r *http.Request) (caller, *apiError) {
	anonymous := caller{address: clientAddress(r)}
	if _, given := lexKey(r.Header, false); !given {
		return anonymous, nil
	}
	c, apiErr := g.identify(r.Context(), r, false)
	switch apiErr {
	case nil:
		return c, nil
	case errInvalidKey:
		return anonymous, nil
	}
	return anonymous, apiErr
}

// showsAdmin checks the admin secret where the request brings something that is
// meant for it: an Authorization may be meant for others while reading is
// public, and a Lex key never is.
func (g *request) showsAdmin(r *http.Request) *apiError {
	meant := r.Header.Get("X-Lex-Admin-Password") != "" || g.handler.Read == readKeyed && !g.caller.keyed && bearer(r.Header) != ""
	if !meant || !g.app.Secrets.admin.set {
		return errKeyRequired
	}
	return g.checkAdmin(r)
}
