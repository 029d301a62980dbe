package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// send makes a request with headers.
func (s *site) send(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://site.test"+path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.serve(w, r)
	return w
}

func adminSite(t *testing.T) *site {
	t.Helper()
	t.Setenv("LEX_TEST_ADMIN", "correct horse")
	return newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
}

const asAdmin, password = "X-Lex-Admin-Password", "correct horse"

func TestKeysLive(t *testing.T) {
	s := adminSite(t)
	w := s.send(http.MethodPost, "/admin/keys", `{"name":"app"}`, asAdmin, password)
	var made struct{ ID, Name, Key string }
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated || len(made.Key) != len("lex_sk_")+32 {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	for _, header := range [][]string{{"X-Lex-Api-Key", made.Key}, {"Authorization", "Bearer " + made.Key}} {
		if w := s.send(http.MethodPost, "/lex/govern", question, header...); w.Code != http.StatusOK || w.Header().Get("X-RateLimit-Limit") != "120" {
			t.Errorf("%s: %d, limit %q", header[0], w.Code, w.Header().Get("X-RateLimit-Limit"))
		}
	}
	list := s.send(http.MethodGet, "/admin/keys", "", "Authorization", "Bearer "+password).Body.String()
	if strings.Contains(list, made.Key) || !strings.Contains(list, made.ID) || strings.Contains(list, `"last_used_at":null`) {
		t.Errorf("listed as %s", list)
	}
	if w := s.send(http.MethodDelete, "/admin/keys/"+made.ID, "", asAdmin, password); w.Code != http.StatusNoContent {
		t.Errorf("revoking: %d %s", w.Code, w.Body)
	}
	if w := s.send(http.MethodPost, "/lex/govern", question, "X-Lex-Api-Key", made.Key); w.Code != http.StatusUnauthorized {
		t.Errorf("a revoked key: %d", w.Code)
	}
	if w := s.send(http.MethodDelete, "/admin/keys/none", "", asAdmin, password); w.Code != http.StatusNotFound {
		t.Errorf("revoking an unknown key: %d", w.Code)
	}
}

// The list says of each key all that was said of it and what became of it, and no key is
// another's.
func TestKeysAreListed(t *testing.T) {
	s, _ := planSite(t, 9, answering("application/json", completion("Paris.")))
	var made [2]struct {
		ID, Name, Key, Plan  string
		CreatedAt, ExpiresAt string
	}
	for i, body := range []string{`{"name":"bare","plan":null}`, `{"name":"full","plan":"small","expires_at":"2999-01-01T00:00:00Z"}`} {
		w := s.send(http.MethodPost, "/admin/keys", body, asAdmin, password)
		if err := json.Unmarshal(w.Body.Bytes(), &made[i]); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("%d %v %s", w.Code, err, w.Body)
		}
	}
	if made[0].Key == made[1].Key || made[0].ID == made[1].ID {
		t.Errorf("two keys are the same: %v", made)
	}
	s.post("/lex/govern", question, "X-Lex-Api-Key", made[1].Key)
	for range 2 {
		s.send(http.MethodDelete, "/admin/keys/"+made[1].ID, "", asAdmin, password)
	}
	var list struct{ Keys []map[string]any }
	if err := json.Unmarshal(s.send(http.MethodGet, "/admin/keys", "", asAdmin, password).Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	shown := make(map[any]map[string]any)
	for _, key := range list.Keys {
		shown[key["name"]] = key
	}
	day := time.Now().UTC().Format("2006-01-02")
	for name, want := range map[string]map[string]string{
		"bare": {"id": made[0].ID, "plan": "<nil>", "created_at": day, "expires_at": "<nil>", "last_used_at": "<nil>", "revoked_at": "<nil>"},
		"full": {"id": made[1].ID, "plan": "small", "created_at": day, "expires_at": "2999-01-01T00:00:00Z", "last_used_at": day, "revoked_at": day},
	} {
		for member, value := range want {
			if got := fmt.Sprint(shown[name][member]); !strings.HasPrefix(got, value) {
				t.Errorf("%s of %s is %s, want %s", member, name, got, value)
			}
		}
	}
}

// A key is good until its time, and not longer.
func TestKeysExpire(t *testing.T) {
	s := adminSite(t)
	expires := time.Now().Add(500 * time.Millisecond)
	key := newKey(s, `{"name":"app","expires_at":"`+expires.UTC().Format(time.RFC3339Nano)+`"}`)
	ask := func() int { return s.post("/lex/tools/check", harmlessCall, "X-Lex-Api-Key", key).Code }
	if code := ask(); code != http.StatusOK && time.Now().Before(expires) {
		t.Errorf("before: %d", code)
	}
	for time.Now().Before(expires) {
		ask()
	}
	if code := ask(); code != http.StatusUnauthorized {
		t.Errorf("after: %d", code)
	}
}

// A Lex key is for Lex: it does not go to the provider.
func TestLexKeyStaysHere(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	seen := new(recorder)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("application/json", completion("Paris."))(w, r)
	})
	var made struct{ Key string }
	if err := json.Unmarshal(s.send(http.MethodPost, "/admin/keys", `{"name":"app"}`, asAdmin, password).Body.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	if w := s.post("/v1/chat/completions", chatQuestion, "Authorization", "Bearer "+made.Key); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if got := seen.requests[0].header.Get("Authorization"); got != "" {
		t.Errorf("the provider saw Authorization %q", got)
	}
	if w := s.post("/v1/chat/completions", chatQuestion, "Authorization", "Bearer lex_sk_unknown"); w.Code != http.StatusUnauthorized {
		t.Errorf("an unknown Lex key: %d", w.Code)
	}
}

func TestKeyValidation(t *testing.T) {
	s := adminSite(t)
	for body, code := range map[string]string{
		`{}`: "invalid_name", `{"name":" "}`: "invalid_name", `{"name":1}`: "invalid_name", `[]`: "invalid_json",
		`{"name":"a","plan":"gold"}`: "invalid_plan", `{"name":"a","expires_at":"tomorrow"}`: "invalid_expires_at",
		`{"name":"a","expires_at":"2020-01-01T00:00:00Z"}`: "invalid_expires_at",
		`{"name":"` + strings.Repeat("é", 129) + `"}`:      "invalid_name",
		`{"name":"a\u001b[2J"}`:                            "invalid_name",
	} {
		w := s.send(http.MethodPost, "/admin/keys", body, asAdmin, password)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"code":"`+code+`"`) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := s.send(http.MethodPost, "/admin/keys", `{"name":"`+strings.Repeat("é", 128)+`"}`, asAdmin, password); w.Code != http.StatusCreated {
		t.Errorf("a name of 128 characters: %d %s", w.Code, w.Body)
	}
	if w := s.send(http.MethodPost, "/admin/keys", `{"name":"a"}`+strings.Repeat(" ", 16<<10), asAdmin, password); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %d %s", w.Code, w.Body)
	}
	for expires, created := range map[string]bool{
		"9999-12-31T23:59:59Z": true, "9999-12-31T23:59:59.999999999Z": true, "9999-12-31T23:59:59+00:01": true,
		"9999-12-31T23:59:59-00:01": false, "9999-12-31T23:59:59-23:59": false, "0001-01-01T00:00:00Z": false,
		"0001-01-01T00:00:00+23:59": false, "0000-01-01T00:00:00Z": false, "10000-01-01T00:00:00Z": false,
		"2999-01-01T00:00:00+24:00": false, "2999-01-01T00:00:00+23:60": false, "2999-01-01T00:00:00-24:00": false,
		"2999-01-01T00:00:00,5Z": false, "2999-01-01T0:00:00Z": false, "2999-01-01 00:00:00Z": false, "2999-02-30T00:00:00Z": false,
	} {
		w := s.send(http.MethodPost, "/admin/keys", `{"name":"a","expires_at":"`+expires+`"}`, asAdmin, password)
		if want := map[bool]int{true: http.StatusCreated, false: http.StatusBadRequest}[created]; w.Code != want {
			t.Errorf("%s: %d %s, want %d", expires, w.Code, w.Body, want)
		}
	}
	if w := s.send(http.MethodGet, "/admin/keys", "", asAdmin, password); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "9999-12-31T23:58:59Z") {
		t.Errorf("the list: %d %s", w.Code, w.Body)
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if w := s.send(http.MethodPost, "/admin/keys", `{"name":"a","expires_at":"`+later+`"}`, asAdmin, password); w.Code != http.StatusCreated {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAdminSecret(t *testing.T) {
	s := adminSite(t)
	for range 20 { // without a secret it is not a try
		if w := s.send(http.MethodGet, "/admin/keys", ""); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
	}
	for i := range 12 {
		w := s.send(http.MethodGet, "/admin/keys", "", asAdmin, "wrong")
		if want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusTooManyRequests}[i < 10]; w.Code != want {
			t.Errorf("wrong try %d: %d, want %d", i+1, w.Code, want)
		}
	}
	if w := s.send(http.MethodGet, "/admin/keys", "", asAdmin, password); w.Code != http.StatusTooManyRequests {
		t.Errorf("the right secret after too many wrong ones: %d", w.Code)
	}
	t.Setenv("LEX_TEST_ADMIN", "")
	none := newSite(t, `{}`, answering("application/json", completion("x")))
	if w := none.send(http.MethodGet, "/admin/keys", "", asAdmin, password); w.Code != http.StatusServiceUnavailable {
		t.Errorf("no secret configured: %d", w.Code)
	}
}

func TestRequireKey(t *testing.T) {
	s := newSite(t, `{"require_key":true}`, answering("application/json", completion("Paris.")))
	if w := s.post("/lex/govern", question); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "api_key_required") {
		t.Errorf("govern: %d %s", w.Code, w.Body)
	}
	if w := s.post("/v1/chat/completions", chatQuestion, "Authorization", "Bearer sk-provider"); w.Code != http.StatusUnauthorized {
		t.Errorf("chat: %d %s", w.Code, w.Body)
	}
	if w := s.send(http.MethodGet, "/stats", ""); w.Code != http.StatusOK {
		t.Errorf("reading, which is public: %d %s", w.Code, w.Body)
	}
	for _, unknown := range []string{"observe", "pass"} {
		s := newSite(t, `{"require_key":true,"unknown":"`+unknown+`"}`, answering("application/json", `{}`))
		if w := s.send(http.MethodGet, "/v1/responses/resp_1", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("another endpoint, unknown %s: %d %s", unknown, w.Code, w.Body)
		}
	}
}
