package caddymodule

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/store"
)

const (
	keysPath     = "/admin/keys"
	keysPrefix   = keysPath + "/"
	maxKeyName   = 128 // characters
	maxAdminBody = 16 << 10
)

var (
	errInvalidName   = &apiError{http.StatusBadRequest, "name must be a string of 1 to 128 characters without control characters.", "invalid_name"}
	errInvalidPlan   = &apiError{http.StatusBadRequest, "There is no such plan; the option limits configures plans.", "invalid_plan"}
	errInvalidExpiry = &apiError{http.StatusBadRequest, "expires_at must be a time in the future, as RFC 3339 writes it.", "invalid_expires_at"}
)

// newKeyAnswer is a key that was made just now, the only time that it is shown.
type newKeyAnswer struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Plan      *string    `json:"plan"`
	Key       string     `json:"key"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// shownKey is a key as administrators see it in the list.
type shownKey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Plan       *string    `json:"plan"`
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
	key, apiErr := g.decodeKey(w, r, time.Now())
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
	k := showKey(key)
	_ = writeJSON(w, http.StatusCreated, newKeyAnswer{k.ID, k.Name, k.Plan, secret, k.CreatedAt, k.ExpiresAt})
}

// newKey makes a key of 192 random bits.
func newKey() string {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return keyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

func (g *request) decodeKey(w http.ResponseWriter, r *http.Request, now time.Time) (store.Key, *apiError) {
	body, apiErr := readBody(w, r, maxAdminBody)
	if apiErr != nil {
		return store.Key{}, apiErr
	}
	m, apiErr := decodeObject(body, "name", "plan", "expires_at")
	if apiErr != nil {
		return store.Key{}, apiErr
	}
	name := m["name"]
	if name.Type != gjson.String || !validName(name.Str, maxKeyName) {
		return store.Key{}, errInvalidName
	}
	if plan := m["plan"]; plan.Exists() && plan.Type != gjson.Null {
		if _, known := g.app.Limits.Plans[plan.Str]; !known || plan.Type != gjson.String {
			return store.Key{}, errInvalidPlan
		}
	}
	key := store.Key{ID: "key_" + strings.ToLower(randomID()[:16]), Name: name.Str, Plan: m["plan"].Str, CreatedAt: now.UTC().Truncate(time.Millisecond)}
	key.ExpiresAt, apiErr = expiry(m["expires_at"], now)
	return key, apiErr
}

// validName reports whether a name can be shown: not blank, of at most longest
// characters, none of which could steer a terminal.
func validName(name string, longest int) bool {
	return strings.TrimSpace(name) != "" && utf8.RuneCountInString(name) <= longest && !strings.ContainsFunc(name, unicode.IsControl)
}

func expiry(v gjson.Result, now time.Time) (time.Time, *apiError) {
	if !v.Exists() || v.Type == gjson.Null {
		return time.Time{}, nil
	}
	t, ok := parseTime(v)
	if !ok || !t.After(now) {
		return time.Time{}, errInvalidExpiry
	}
	return t, nil
}

// rfc3339 is the form of a time in RFC 3339. time.Parse accepts more: offsets
// of a day, hours of one digit, a comma.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// parseTime reads a time and returns it in UTC, where its year must have four
// digits too: it could not be written otherwise.
func parseTime(v gjson.Result) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, v.Str)
	t = t.UTC()
	return t, v.Type == gjson.String && rfc3339.MatchString(v.Str) && err == nil && t.Year() >= 0 && t.Year() <= 9999
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
