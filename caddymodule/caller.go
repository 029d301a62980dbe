package caddymodule

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-lex/lex/store"
)

// keyPrefix opens every Lex API key and tells it from a provider's credential.
const keyPrefix = "lex_sk_"

// A caller is who sends a request, as far as limits and sessions need to know.
type caller struct {
	address   string    // client address, IPv6 as its /64
	key       store.Key // the zero Key when there is none
	keyed     bool
	namespace string // what session ids are relative to
}

// subject is what the rate is counted on.
func (c caller) subject(group string) string {
	if c.keyed {
		return group + ":" + c.key.ID + ":" + c.address
	}
	return group + ":" + c.address
}

// identify finds the caller. On /lex endpoints any bearer token is a Lex key;
// on intercepted paths only a value with the Lex prefix is, and every other
// credential belongs to the provider and merely names the session's namespace.
func (g *request) identify(ctx context.Context, r *http.Request, intercepted bool) (caller, *apiError) {
	c := caller{address: clientAddress(r)}
	token, ok := lexKey(r.Header, intercepted)
	if !ok {
		if g.handler.RequireKey {
			return c, errKeyRequired
		}
		c.namespace = "ip:" + c.address
		if credential := providerCredential(r.Header); intercepted && credential != "" {
			c.namespace = "credential:" + fingerprint(credential)
		}
		return c, nil
	}
	key, err := g.engine.store.Key(ctx, hashKey(token))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return c, errInvalidKey
	case err != nil:
		g.storeFailed("key", err)
		return c, errGovernor
	case !usable(key, time.Now()):
		return c, errInvalidKey
	}
	c.key, c.keyed, c.namespace = key, true, "key:"+key.ID
	g.noteUse(ctx, key, time.Now())
	return c, nil
}

// noteUse records when a key was last used, to the minute: a write for each
// request would cost more than it tells.
func (g *request) noteUse(ctx context.Context, key store.Key, now time.Time) {
	if now.Sub(key.LastUsedAt) < time.Minute {
		return
	}
	key.LastUsedAt = now
	if err := g.engine.store.PutKey(ctx, key); err != nil {
		g.storeFailed("key", err)
	}
}

// usable reports whether a known key may be used at the time.
func usable(k store.Key, now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// hashKey is the form in which a key is stored and looked up. Keys hold 192
// random bits, so a plain digest cannot be guessed.
func hashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// lexKey finds a Lex API key in the request's headers.
func lexKey(h http.Header, intercepted bool) (string, bool) {
	if v := h.Get("X-Lex-Api-Key"); v != "" {
		return v, true
	}
	token := bearer(h)
	if intercepted && !strings.HasPrefix(token, keyPrefix) {
		return "", false
	}
	return token, token != ""
}

// isLexKey reports whether an Authorization brings a Lex key.
func isLexKey(authorization string) bool {
	return strings.HasPrefix(bearerToken(authorization), keyPrefix)
}

// bearer returns the token of an Authorization header with that scheme.
func bearer(h http.Header) string { return bearerToken(h.Get("Authorization")) }

func bearerToken(authorization string) string {
	scheme, token, ok := strings.Cut(authorization, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// providerCredential returns what the provider will take the caller for.
func providerCredential(h http.Header) string {
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// fingerprint separates the sessions of different credentials without keeping
// a credential. The label keeps it apart from every other use of the digest.
func fingerprint(credential string) string {
	mac := hmac.New(sha256.New, []byte("lex session namespace"))
	mac.Write([]byte(credential))
	return hex.EncodeToString(mac.Sum(nil))
}

// sessionKey is the private name of a session: nobody can read or poison
// another caller's session by knowing its id.
func sessionKey(namespace, id string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// publicID shows a session that was not named through /lex/govern.
func publicID(key string) string { return "s_" + key[:16] }

// randomID names a new session that the caller did not name.
func randomID() string { return rand.Text() }

// evalPrefixes mark the ids of benchmark sessions, which the statistics leave out.
var evalPrefixes = []string{"lexbench-", "bench-", "synthetic_", "jbb_", "adv_", "hb_"}

// isEval reports whether the request opens a benchmark session: by its id, or
// by the header together with a secret. A secret that is wrong, or that nobody
// listens to after too many that were, is no error here: the session is one like
// all others.
func (g *request) isEval(r *http.Request, id string) bool {
	for _, p := range evalPrefixes {
		if strings.HasPrefix(id, p) {
			return true
		}
	}
	given, secrets := r.Header.Get("X-Lex-Bench-Secret"), &g.app.Secrets
	if r.Header.Get("X-Lex-Eval") != "1" || given == "" || !secrets.bench.set && !secrets.admin.set {
		return false
	}
	return g.trySecrets(r, []string{given}, []secret{secrets.bench, secrets.admin}) == nil
}
