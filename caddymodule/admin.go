package caddymodule

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/store"
)

// groupAdmin are the endpoints behind the admin secret. They are served
// wherever the governance endpoints are.
const groupAdmin = "admin"

const (
	keysPath   = "/admin/keys"
	keysPrefix = keysPath + "/"
	// wrongTries is how many wrong secrets an address may send in a minute.
	wrongTries   = 10
	maxKeyName   = 128
	maxAdminBody = 16 << 10
)

var (
	errNotConfigured = &apiError{http.StatusServiceUnavailable, "The admin secret is not configured.", "not_configured"}
	errUnauthorized  = &apiError{http.StatusUnauthorized, "This endpoint needs the admin secret.", "unauthorized"}
	errInvalidName   = &apiError{http.StatusBadRequest, "name must be a string of 1 to 128 characters.", "invalid_name"}
	errInvalidPlan   = &apiError{http.StatusBadRequest, "There is no such plan.", "invalid_plan"}
	errInvalidExpiry = &apiError{http.StatusBadRequest, "expires_at must be a time in the future, as RFC 3339 writes it.", "invalid_expires_at"}
)

// asAdmin lets a handler run for those who know the admin secret.
func asAdmin(serve serveFunc) serveFunc {
	return func(g *request, w http.ResponseWriter, r *http.Request) {
		if apiErr := g.checkAdmin(r); apiErr != nil {
			if apiErr == errUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="lex admin"`)
			}
			writeError(w, apiErr)
			return
		}
		serve(g, w, r)
	}
}

// checkAdmin compares in constant time. Wrong secrets are counted, and an
// address that sent too many is not listened to for the rest of the minute,
// whatever it sends; a request without a secret is not a try.
func (g *request) checkAdmin(r *http.Request) *apiError {
	secret := g.app.Secrets.admin
	given := r.Header.Get("X-Lex-Admin-Password")
	if given == "" {
		given = bearer(r.Header)
	}
	switch {
	case !secret.set:
		return errNotConfigured
	case given == "":
		return errUnauthorized
	}
	subject := "admin:" + clientAddress(r)
	tries, err := g.engine.store.Take(r.Context(), subject, wrongTries, time.Minute)
	switch {
	case err != nil:
		g.storeFailed("limit", err)
		return errGovernor
	case !tries.Allowed:
		return errRateLimited
	case !secret.matches(given):
		return errUnauthorized
	}
	if err := g.engine.store.GiveBack(r.Context(), subject); err != nil {
		g.storeFailed("limit", err)
	}
	return nil
}

// shownKey is a key as administrators see it. Key is there once, when it is
// made.
type shownKey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Plan       *string    `json:"plan"`
	Key        string     `json:"key,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func showKey(k store.Key) shownKey {
	shown := shownKey{
		ID: k.ID, Name: k.Name, CreatedAt: k.CreatedAt.UTC(),
		ExpiresAt: maybe(k.ExpiresAt), LastUsedAt: maybe(k.LastUsedAt), RevokedAt: maybe(k.RevokedAt),
	}
	if k.Plan != "" {
		shown.Plan = &k.Plan
	}
	return shown
}

// maybe is null for the zero time, which means never.
func maybe(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// createKey serves POST /admin/keys.
func (g *request) createKey(w http.ResponseWriter, r *http.Request) {
	key, apiErr := decodeKey(r, time.Now())
	if apiErr != nil {
		writeError(w, apiErr)
		return
	}
	secret := newKey()
	key.Hash = hashKey(secret)
	if err := g.engine.store.PutKey(r.Context(), key); err != nil {
		g.readFailed(w, err)
		return
	}
	shown := showKey(key)
	shown.Key = secret
	_ = writeJSON(w, http.StatusCreated, shown)
}

// newKey makes a key of 192 random bits.
func newKey() string {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return keyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

func decodeKey(r *http.Request, now time.Time) (store.Key, *apiError) {
	body, apiErr := readBody(r, maxAdminBody)
	if apiErr != nil {
		return store.Key{}, apiErr
	}
	m, apiErr := decodeObject(body, "name", "plan", "expires_at")
	if apiErr != nil {
		return store.Key{}, apiErr
	}
	name := m["name"]
	if name.Type != gjson.String || strings.TrimSpace(name.Str) == "" || utf8.RuneCountInString(name.Str) > maxKeyName {
		return store.Key{}, errInvalidName
	}
	if plan := m["plan"]; plan.Exists() && plan.Type != gjson.Null {
		return store.Key{}, errInvalidPlan // none can be configured
	}
	key := store.Key{ID: "key_" + strings.ToLower(randomID()[:16]), Name: name.Str, CreatedAt: now.UTC().Truncate(time.Millisecond)}
	key.ExpiresAt, apiErr = expiry(m["expires_at"], now)
	return key, apiErr
}

func expiry(v gjson.Result, now time.Time) (time.Time, *apiError) {
	if !v.Exists() || v.Type == gjson.Null {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, v.Str)
	if v.Type != gjson.String || err != nil || !t.After(now) {
		return time.Time{}, errInvalidExpiry
	}
	return t, nil
}

// listKeys serves GET /admin/keys.
func (g *request) listKeys(w http.ResponseWriter, r *http.Request) {
	keys, err := g.engine.store.Keys(r.Context())
	if err != nil {
		g.readFailed(w, err)
		return
	}
	shown := make([]shownKey, len(keys))
	for i, k := range keys {
		shown[i] = showKey(k)
	}
	_ = writeJSON(w, http.StatusOK, map[string]any{"keys": shown})
}

// revokeKey serves DELETE /admin/keys/{id}. Revoking twice succeeds.
func (g *request) revokeKey(w http.ResponseWriter, r *http.Request) {
	key, err := g.keyByID(r, strings.TrimPrefix(r.URL.Path, keysPrefix))
	if err == nil && key.RevokedAt.IsZero() {
		key.RevokedAt = time.Now()
		err = g.engine.store.PutKey(r.Context(), key)
	}
	if err != nil {
		g.readFailed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (g *request) keyByID(r *http.Request, id string) (store.Key, error) {
	keys, err := g.engine.store.Keys(r.Context())
	if err != nil {
		return store.Key{}, err
	}
	for _, k := range keys {
		if k.ID == id {
			return k, nil
		}
	}
	return store.Key{}, store.ErrNotFound
}
