package caddymodule

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

const (
	maxKeyName   = 128 // characters
	maxAdminBody = 16 << 10
)

// adminAPI are the endpoints behind the admin and bench secrets: keys, sessions
// and the publication of benchmarks. There is one for each request.
type adminAPI struct {
	shared *sharedStore
	plans  map[string]Plan
}

// withAdminSecret lets an endpoint run for callers that know the admin secret.
func withAdminSecret(serve func(*adminAPI, http.ResponseWriter, *http.Request) error) endpointFunc {
	return withSecret((*authenticator).checkAdmin, serve)
}

// withBenchSecret lets an endpoint run for callers that know the bench secret or
// the admin secret.
func withBenchSecret(serve func(*adminAPI, http.ResponseWriter, *http.Request) error) endpointFunc {
	return withSecret((*authenticator).checkBench, serve)
}

func withSecret(check func(*authenticator, *http.Request) *apiError, serve func(*adminAPI, http.ResponseWriter, *http.Request) error) endpointFunc {
	return func(g *request, w http.ResponseWriter, r *http.Request) error {
		if isEarly(r) {
			return errTooEarly
		}
		if apiErr := check(&g.auth, r); apiErr != nil {
			return challenged(w, apiErr)
		}
		return serve(&adminAPI{shared: g.shared, plans: g.app.Limits.Plans}, w, r)
	}
}

// newKeyAnswer is the answer with a new key, which is shown only this once.
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
		ExpiresAt: timeOrNull(k.ExpiresAt), LastUsedAt: timeOrNull(k.LastUsedAt), RevokedAt: timeOrNull(k.RevokedAt),
	}
	if k.Plan != "" {
		shown.Plan = &k.Plan
	}
	return shown
}

// timeOrNull is null for the zero time, which means never.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// createKey serves POST /admin/keys.
func (a *adminAPI) createKey(w http.ResponseWriter, r *http.Request) error {
	key, err := a.decodeKey(w, r, time.Now())
	if err != nil {
		return err
	}
	secret := newKey()
	key.Hash = hashKey(secret)
	if err := a.shared.store.PutKey(r.Context(), key); err != nil {
		return storeError(err)
	}
	k := showKey(key)
	return writeJSON(w, http.StatusCreated, newKeyAnswer{k.ID, k.Name, k.Plan, secret, k.CreatedAt, k.ExpiresAt})
}

// newKey makes a key of 192 random bits.
func newKey() string {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return keyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

func (a *adminAPI) decodeKey(w http.ResponseWriter, r *http.Request, now time.Time) (store.Key, error) {
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
		if _, known := a.plans[plan.Str]; !known || plan.Type != gjson.String {
			return store.Key{}, errInvalidPlan
		}
	}
	key := store.Key{ID: "key_" + strings.ToLower(randomID()[:16]), Name: name.Str, Plan: m["plan"].Str, CreatedAt: now.UTC().Truncate(time.Millisecond)}
	var err error
	key.ExpiresAt, err = expiry(m["expires_at"], now)
	return key, err
}

// validName reports whether a name can be shown: not blank, of at most longest
// characters, none of which could steer a terminal.
func validName(name string, longest int) bool {
	return strings.TrimSpace(name) != "" && utf8.RuneCountInString(name) <= longest && !strings.ContainsFunc(name, unicode.IsControl)
}

func expiry(v gjson.Result, now time.Time) (time.Time, error) {
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

// parseTime reads a time and returns it in UTC. There, too, its year must have four
// digits, because RFC 3339 cannot write any other.
func parseTime(v gjson.Result) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, v.Str)
	t = t.UTC()
	return t, v.Type == gjson.String && rfc3339.MatchString(v.Str) && err == nil && t.Year() >= 0 && t.Year() <= 9999
}

// listKeys serves GET /admin/keys.
func (a *adminAPI) listKeys(w http.ResponseWriter, r *http.Request) error {
	keys, err := a.shared.store.Keys(r.Context())
	if err != nil {
		return storeError(err)
	}
	shown := make([]shownKey, len(keys))
	for i, k := range keys {
		shown[i] = showKey(k)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"keys": shown})
}

// revokeKey serves DELETE /admin/keys/{id}. Revoking twice succeeds.
func (a *adminAPI) revokeKey(w http.ResponseWriter, r *http.Request) error {
	key, err := a.keyByID(r.Context(), r.PathValue("id"))
	if err == nil && key.RevokedAt.IsZero() {
		key.RevokedAt = time.Now()
		err = a.shared.store.PutKey(r.Context(), key)
	}
	if err != nil {
		return storeError(err)
	}
	writeNothing(w)
	return nil
}

func (a *adminAPI) keyByID(ctx context.Context, id string) (store.Key, error) {
	keys, err := a.shared.store.Keys(ctx)
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

// shownSession is a session's state as administrators see it: nothing that was
// said in it, and not the secret that its commitments are made with.
type shownSession struct {
	SessionKey  string       `json:"session_key"`
	State       pillars      `json:"state"`
	M           float64      `json:"M"`
	ZWeights    kernel.Point `json:"z_weights"`
	CUSUM       float64      `json:"cusum"`
	CUSUMSlow   float64      `json:"cusum_slow"`
	Carry       pillars      `json:"carry"`
	Policy      string       `json:"policy"`
	Turns       int          `json:"turns"`
	HighestTurn int          `json:"highest_turn"`
	Eval        bool         `json:"eval"`
	MemoryTurns int          `json:"memory_turns"`
	Head        string       `json:"head"` // link of the last receipt
}

func showSession(s store.Session) shownSession {
	return shownSession{
		SessionKey: s.Key, State: asPillars(s.State.X), M: s.State.X.Min(), ZWeights: s.State.Z,
		CUSUM: s.State.CUSUM, CUSUMSlow: s.State.CUSUMSlow, Carry: asPillars(s.State.Carry), Policy: s.State.Policy,
		Turns: s.Turns, HighestTurn: s.HighestTurn, Eval: s.Eval,
		MemoryTurns: govern.RememberedTurns(s), Head: s.Head,
	}
}

// sessionKeyForm is hex SHA-256: a session is named by its private key.
var sessionKeyForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// sessionOf returns the key of the session that a path names, by itself or by one of its
// receipts: a conversation that has no name can be found by nothing else.
func (a *adminAPI) sessionOf(r *http.Request) (string, error) {
	name := r.PathValue("session")
	if sessionKeyForm.MatchString(name) {
		return name, nil
	}
	receipt, err := a.shared.store.Receipt(r.Context(), name)
	switch {
	case err != nil:
		return "", storeError(err)
	case receipt.SessionKey == "":
		return "", errNotFound
	}
	return receipt.SessionKey, nil
}

// session serves GET /admin/sessions/{session}.
func (a *adminAPI) session(w http.ResponseWriter, r *http.Request) error {
	key, err := a.sessionOf(r)
	if err != nil {
		return err
	}
	s, err := a.shared.store.Session(r.Context(), key)
	if err != nil {
		return storeError(err)
	}
	return writeJSON(w, http.StatusOK, showSession(s))
}

// eraseSession serves DELETE /admin/sessions/{session}: the session's secret, state and
// memory are destroyed; its receipts stay and still verify. Erasing what is not there
// succeeds, but of a receipt that is not there nobody knows the session.
func (a *adminAPI) eraseSession(w http.ResponseWriter, r *http.Request) error {
	key, err := a.sessionOf(r)
	if err != nil {
		return err
	}
	if err := a.shared.store.Erase(r.Context(), key); err != nil {
		return storeError(err)
	}
	writeNothing(w)
	return nil
}
