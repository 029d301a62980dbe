package caddymodule

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/store"
)

// keyPrefix opens every Lex API key and tells it from a provider's credential.
const keyPrefix = "lex_sk_"

// maxWrongSecrets is how many wrong secrets an address may send in a minute.
const maxWrongSecrets = 10

// The headers that bring a secret. An Authorization may bring either, too.
const (
	adminHeader = "X-Lex-Admin-Password"
	benchHeader = "X-Lex-Bench-Secret"
)

// Secrets open what is not public. Each may hold a placeholder such as
// {env.ADMIN_PASSWORD} or {file./run/secrets/admin}, which is resolved when
// the configuration is loaded and never written back into it.
type Secrets struct {
	// For the administrative endpoints.
	Admin string `json:"admin,omitempty"`

	// For publishing benchmarks and for evaluation sessions.
	Bench string `json:"bench,omitempty"`

	// For the console's data, and for reading where a key is required.
	Read string `json:"read,omitempty"`

	admin, bench, read secret
}

func (s *Secrets) provision(logger *zap.Logger) error {
	for _, option := range []struct {
		name, raw string
		to        *secret
	}{{"admin", s.Admin, &s.admin}, {"bench", s.Bench, &s.bench}, {"read", s.Read, &s.read}} {
		value, err := resolveSecret(option.raw)
		if err != nil {
			return fmt.Errorf("resolving the secret %s: %w", option.name, err)
		}
		if option.raw != "" && value == "" {
			logger.Warn("a secret is configured, but what it names is empty: what it opens stays closed", zap.String("secret", option.name))
		}
		*option.to = newSecret(value)
	}
	return nil
}

// resolveSecret fills in the placeholders of a configured secret. If one of them is empty there is
// no secret: what stands around it is known to whoever reads the configuration.
func resolveSecret(raw string) (string, error) {
	value, err := caddy.NewReplacer().ReplaceOrErr(raw, true, true)
	if err == nil {
		return value, nil
	}
	_, err = caddy.NewReplacer().ReplaceOrErr(raw, false, true) // nil if only empty ones are in the way
	return "", err
}

// A secret is the digest of a configured secret; the zero value is one that is
// not configured and matches nothing.
type secret struct {
	set bool
	sum [sha256.Size]byte
}

func newSecret(value string) secret {
	if value == "" {
		return secret{}
	}
	return secret{set: true, sum: sha256.Sum256([]byte(value))}
}

// matches compares in constant time.
func (s secret) matches(given string) bool {
	if !s.set {
		return false
	}
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(s.sum[:], sum[:]) == 1
}

// A caller is the sender of a request, as far as limits and sessions need to know.
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

// An authenticator checks the API keys and secrets of one request. It counts
// wrong secrets, and a request is one try however often it is asked about.
type authenticator struct {
	store      store.Store
	locks      *govern.Locks
	secrets    *Secrets
	requireKey bool
	failures   failureReporter

	adminChecked bool
	adminResult  *apiError // of the check, once there was one
}

// identify finds the caller. On /lex endpoints any bearer token is a Lex key;
// on intercepted paths only a value with the Lex prefix is, and every other
// credential belongs to the provider and merely names the session's namespace.
func (a *authenticator) identify(ctx context.Context, r *http.Request, intercepted bool) (caller, *apiError) {
	c := caller{address: clientAddress(r)}
	token, ok := lexKey(r.Header, intercepted)
	if !ok {
		if a.requireKey {
			return c, errKeyRequired
		}
		c.namespace = "ip:" + c.address
		if credential := providerCredential(r); intercepted && credential != "" {
			c.namespace = "credential:" + fingerprint(credential)
			if key := signingKey(credential); key != "" {
				c.namespace = "aws:" + key + " " + c.address
			}
		}
		return c, nil
	}
	key, err := a.store.Key(ctx, hashKey(token))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return c, errInvalidKey
	case err != nil:
		return c, errGovernor.because("key", err)
	case !usable(key, time.Now()):
		return c, errInvalidKey
	}
	c.key, c.keyed, c.namespace = key, true, "key:"+key.ID
	a.noteUse(ctx, key, time.Now())
	return c, nil
}

// authenticate finds the caller of a governed request, chooses the policy and
// counts the request.
func (g *request) authenticate(w http.ResponseWriter, r *http.Request, intercepted bool) *apiError {
	if isEarly(r) {
		return errTooEarly
	}
	var apiErr *apiError
	if g.caller, apiErr = g.auth.identify(r.Context(), r, intercepted); apiErr != nil {
		return apiErr
	}
	// The plan of a key may have a policy of its own, on every site.
	if name := g.app.Limits.Plans[g.caller.key.Plan].Policy; name != "" {
		g.policy = g.app.Policies[name]
	}
	return g.countRequest(r.Context(), w, intercepted)
}

// isEarly reports whether a request that may change something came before the TLS handshake
// was over, here or at a proxy in front (RFC 8470): whoever has recorded it can send it again,
// from any address. A client that says so of itself is only asked again.
func isEarly(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return r.TLS != nil && !r.TLS.HandshakeComplete || r.Header.Get("Early-Data") == "1"
}

// noteUse records when a key was last used, to the minute: a write for each
// request would cost more than it tells.
func (a *authenticator) noteUse(ctx context.Context, key store.Key, now time.Time) {
	if now.Sub(key.LastUsedAt) < time.Minute {
		return
	}
	key.LastUsedAt = now
	if err := a.store.PutKey(ctx, key); err != nil {
		a.failures.storeFailed("key", err)
	}
}

// usable reports whether a known key may be used at the time.
func usable(k store.Key, now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// checkAdmin checks the admin secret.
func (a *authenticator) checkAdmin(r *http.Request) *apiError {
	if !a.adminChecked {
		a.adminChecked, a.adminResult = true, a.checkSecret(r, adminHeader, a.secrets.admin)
	}
	return a.adminResult
}

// checkBench checks the bench secret; the admin secret serves as well.
func (a *authenticator) checkBench(r *http.Request) *apiError {
	return a.checkSecret(r, benchHeader, a.secrets.bench, a.secrets.admin)
}

// checkRead checks the read secret; the admin secret serves as well.
func (a *authenticator) checkRead(r *http.Request) *apiError {
	return a.checkSecret(r, adminHeader, a.secrets.read, a.secrets.admin)
}

// checkSecret looks for one of the accepted secrets in its header, in the admin
// secret's or in Authorization. A request without any is not a try.
func (a *authenticator) checkSecret(r *http.Request, header string, accepted ...secret) *apiError {
	var given []string
	for _, v := range []string{r.Header.Get(header), r.Header.Get(adminHeader), bearer(r.Header)} {
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
	return a.trySecrets(r, given, accepted)
}

// trySecrets compares in constant time and counts a wrong try. An address that
// sent too many is not listened to for the rest of the minute, whatever it
// sends. Tries of one address wait for each other, so that a burst of them
// gets no more guesses than one after the other.
func (a *authenticator) trySecrets(r *http.Request, given []string, accepted []secret) *apiError {
	subject := "secret:" + clientAddress(r)
	unlock, err := a.locks.Lock(r.Context(), subject)
	if err != nil {
		return errGovernor.because("limit", err)
	}
	defer unlock()
	wrong, err := a.store.Consumed(r.Context(), subject)
	if err != nil {
		return errGovernor.because("limit", err)
	}
	if wrong >= maxWrongSecrets {
		// This counts nothing, but ends a window that began while the store's clock was ahead.
		if _, err := a.store.Consume(r.Context(), subject, "", 0, time.Minute); err != nil {
			return errGovernor.because("limit", err)
		}
		return errRateLimited
	}
	if matchesAny(given, accepted) {
		return nil
	}
	if _, err := a.store.Consume(r.Context(), subject, "", maxWrongSecrets, time.Minute); err != nil {
		return errGovernor.because("limit", err)
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

// evalPrefixes mark the ids of benchmark sessions, which the statistics leave out.
var evalPrefixes = []string{"lexbench-", "bench-", "synthetic_", "jbb_", "adv_", "hb_"}

// isEval reports whether the request opens a benchmark session: by its id, or
// by the header together with a secret. A secret that is wrong, or that is not
// listened to after too many that were, is no error here: the session is one like
// all others.
func (a *authenticator) isEval(r *http.Request, id string) bool {
	for _, p := range evalPrefixes {
		if strings.HasPrefix(id, p) {
			return true
		}
	}
	given := r.Header.Get(benchHeader)
	if r.Header.Get("X-Lex-Eval") != "1" || given == "" || !a.secrets.bench.set && !a.secrets.admin.set {
		return false
	}
	apiErr := a.trySecrets(r, []string{given}, []secret{a.secrets.bench, a.secrets.admin})
	if apiErr != nil {
		a.failures.report(apiErr)
	}
	return apiErr == nil
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

// providerCredential returns the credential that the caller sends to the provider, in
// a header or, as Google allows it, in the query.
func providerCredential(r *http.Request) string {
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		if v := r.Header.Get(name); v != "" {
			return v
		}
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	query := r.URL.Query()
	return cmp.Or(query.Get("key"), query.Get("access_token"))
}

// signingKey returns the id of the access key that an Authorization is signed with, or "". AWS's
// clients sign each request anew, so the whole value names nobody twice. The id is no secret:
// whoever knows it can name it.
func signingKey(authorization string) string {
	if !strings.HasPrefix(authorization, "AWS4-") {
		return ""
	}
	_, scope, _ := strings.Cut(authorization, "Credential=")
	key, _, _ := strings.Cut(scope, "/")
	return key
}

// fingerprint separates the sessions of different credentials without keeping
// a credential. The label keeps it apart from every other use of the digest.
func fingerprint(credential string) string {
	mac := hmac.New(sha256.New, []byte("lex session namespace"))
	mac.Write([]byte(credential))
	return hex.EncodeToString(mac.Sum(nil))
}

// randomID names a new session that the caller did not name.
func randomID() string { return rand.Text() }
