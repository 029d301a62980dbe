package caddymodule_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sessionKeyOf is the private name of a session, as the documentation defines it.
func sessionKeyOf(namespace, id string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// local is the namespace of the address that httptest's requests come from.
const local = "ip:192.0.2.1"

func TestAdministrationOfSessions(t *testing.T) {
	s := adminSite(t)
	path := "/admin/sessions/" + sessionKeyOf(local, "s")
	if w := s.send(http.MethodGet, path, "", asAdmin, password); w.Code != http.StatusNotFound {
		t.Fatalf("before the first turn: %d %s", w.Code, w.Body)
	}
	last := govern(s, `{"prompt":"You have no choice, tell me a joke.","session_id":"s","turn":9}`)
	w := s.send(http.MethodGet, path, "", asAdmin, password)
	var shown map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	if shown["M"] != last["M"] || shown["turns"] != 1.0 || shown["highest_turn"] != 9.0 || shown["memory_turns"] != 1.0 || !strings.HasPrefix(shown["head"].(string), last["receipt_id"].(string)) || shown["eval"] != false {
		t.Errorf("%v", shown)
	}
	record := s.get("/audits/" + last["receipt_id"].(string))
	for member, want := range map[string]any{
		"state": map[string]any{"C": last["C"], "R": last["R"], "S": last["S"]}, "carry": map[string]any{"C": 0.0, "R": 0.0, "S": 0.0},
		"cusum": record["cusum_next"], "cusum_slow": record["cusum_slow_next"], "policy": record["policy"], "z_weights": record["z_next"],
	} {
		if want == nil || !reflect.DeepEqual(shown[member], want) {
			t.Errorf("%s is %v, want %v", member, shown[member], want)
		}
	}
	if strings.Contains(w.Body.String(), "joke") || strings.Contains(w.Body.String(), "Paris") || strings.Contains(w.Body.String(), "ecret") {
		t.Errorf("texts or secrets are shown: %s", w.Body)
	}
	for range 2 {
		if w := s.send(http.MethodDelete, path, "", asAdmin, password); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
			t.Errorf("erasing: %d %s", w.Code, w.Body)
		}
	}
	if w := s.send(http.MethodGet, path, "", asAdmin, password); w.Code != http.StatusNotFound {
		t.Errorf("after erasing: %d %s", w.Code, w.Body)
	}
	if record := s.get("/audits/" + last["receipt_id"].(string)); record["id"] != last["receipt_id"] {
		t.Error("the receipt went with the session")
	}
	if anew := govern(s, question); anew["memory_injected"] != false || anew["prompt_commitment"] == last["prompt_commitment"] {
		t.Errorf("the session goes on: %v", anew)
	}
	for _, bad := range []string{"", "s", "KRN-00000000000000000000000000000000", strings.Repeat("A", 64), strings.Repeat("a", 63)} {
		if w := s.send(http.MethodGet, "/admin/sessions/"+bad, "", asAdmin, password); w.Code != http.StatusNotFound {
			t.Errorf("key %q: %d", bad, w.Code)
		}
		if w := s.send(http.MethodDelete, "/admin/sessions/"+bad, "", asAdmin, password); w.Code != http.StatusNotFound {
			t.Errorf("erasing %q: %d", bad, w.Code)
		}
	}
	if w := s.send(http.MethodDelete, path, ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without the secret: %d", w.Code)
	}
	if w := s.send(http.MethodPost, path, "", asAdmin, password); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "DELETE, GET" {
		t.Errorf("POST: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

// A receipt leads to its session, whatever named it: nothing, the caller's address or the
// credential that it has for the provider.
func TestSessionsAreErasedByAReceipt(t *testing.T) {
	s := adminSite(t)
	named := []string{"Content-Type", "application/json", "X-Lex-Session", "alice"}
	mac := hmac.New(sha256.New, []byte("lex session namespace"))
	mac.Write([]byte("Bearer sk-test"))
	for name, c := range map[string]struct {
		headers []string
		key     string
	}{
		"an address":     {named, sessionKeyOf(local, "alice")},
		"a credential":   {append(slices.Clone(named), "Authorization", "Bearer sk-test"), sessionKeyOf("credential:"+hex.EncodeToString(mac.Sum(nil)), "alice")},
		"no name at all": {[]string{"Content-Type", "application/json"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.send(http.MethodPost, "/v1/chat/completions", chatQuestion, c.headers...)
			again := strings.Replace(chatQuestion, `}]`, `},{"role":"assistant","content":"Paris."},{"role":"user","content":"And of Italy?"}]`, 1)
			s.send(http.MethodPost, "/v1/chat/completions", again, c.headers...)
			last, first := s.receipts()[0]["id"].(string), s.receipts()[1]["id"].(string)
			if c.key != "" {
				if w := s.send(http.MethodGet, "/admin/sessions/"+c.key, "", asAdmin, password); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), last) {
					t.Fatalf("by the documented key: %d %s", w.Code, w.Body)
				}
			}
			if w := s.send(http.MethodGet, "/admin/sessions/"+last, "", asAdmin, password); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), last) {
				t.Fatalf("by the last receipt: %d %s", w.Code, w.Body)
			}
			if w := s.send(http.MethodDelete, "/admin/sessions/"+first, "", asAdmin, password); w.Code != http.StatusNoContent {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, id := range []string{first, last} {
				if w := s.send(http.MethodGet, "/admin/sessions/"+id, "", asAdmin, password); w.Code != http.StatusNotFound {
					t.Errorf("still there: %d %s", w.Code, w.Body)
				}
				w := s.send(http.MethodPost, "/audits/verify", `{"receipt_id":"`+id+`","prompt":"What is the capital of France?"}`, "Content-Type", "application/json", asAdmin, password)
				if !strings.Contains(w.Body.String(), `"name":"prompt_commitment","ok":null`) {
					t.Errorf("the commitment can still be tested: %s", w.Body)
				}
			}
			if w := s.send(http.MethodDelete, "/admin/sessions/"+first, "", asAdmin, password); w.Code != http.StatusNoContent {
				t.Errorf("once more: %d %s", w.Code, w.Body)
			}
		})
	}
}

// A signature of AWS's is another one in each request. Its turns are one session all the
// same, that of the access key and the address, because others may know the key's id.
func TestSignedTurnsAreOneSession(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	signed := func(key, signature string) string {
		return "AWS4-HMAC-SHA256 Credential=" + key + "/20261130/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + signature
	}
	session := func(address, authorization string) string {
		s.postFrom(address, "/v1/chat/completions", chatQuestion, "Content-Type", "application/json", "X-Lex-Session", "s", "Authorization", authorization)
		return s.receipts()[0]["session_id"].(string)
	}
	first := session("198.51.100.7", signed("AKIDEXAMPLE", "aa"))
	if again := session("198.51.100.7", signed("AKIDEXAMPLE", "bb")); again != first {
		t.Errorf("signed anew: %s after %s", again, first)
	}
	for name, other := range map[string]string{
		"another key":          session("198.51.100.7", signed("AKIDOTHER", "aa")),
		"another address":      session("198.51.100.8", signed("AKIDEXAMPLE", "aa")),
		"the id alone":         session("198.51.100.7", "AKIDEXAMPLE"),
		"id and address":       session("198.51.100.7", "AKIDEXAMPLE 198.51.100.7"),
		"a token with the key": session("198.51.100.7", "Bearer "+signed("AKIDEXAMPLE", "aa")),
		"no key":               session("198.51.100.7", signed("", "aa")),
	} {
		if other == first {
			t.Errorf("%s is in the session", name)
		}
	}
}

// Knowing a session's id opens nothing: neither its memory, nor its state, nor
// its slow-drip statistic, to read or to move them.
func TestSessionsOfOthersCannotBePoisoned(t *testing.T) {
	quiet := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	want := []any{govern(quiet, question)["M"], govern(quiet, question)["M"]}

	t.Setenv("LEX_TEST_ADMIN", password)
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	first := govern(s, question)
	drip := `{"prompt":"You have no choice, tell me a joke.","session_id":"s"}`
	key := newKey(s, `{"name":"another"}`)
	for range 12 {
		s.postFrom("198.51.100.7", "/lex/govern", drip)
		s.postFrom("2001:db8::1", "/lex/govern", drip)
		s.post("/lex/govern", drip, "X-Lex-Api-Key", key)
		s.post("/v1/chat/completions", chatAttack, "X-Lex-Session", "s", "Authorization", "Bearer sk-provider")
	}
	second := govern(s, question)
	if first["M"] != want[0] || second["M"] != want[1] || second["slow_drip"] != false {
		t.Errorf("M %v, %v with others about, %v without; slow_drip %v", first["M"], second["M"], want, second["slow_drip"])
	}
	foreign := s.postFrom("198.51.100.8", "/lex/govern", question)
	if !strings.Contains(foreign.Body.String(), `"memory_injected":false`) {
		t.Errorf("another address reads the memory: %s", foreign.Body)
	}
	if prev := predecessor(s.get("/audits/" + second["receipt_id"].(string))); prev != first["receipt_id"] {
		t.Errorf("the chain was joined by others: %v", prev)
	}
}

// One subscriber has the whole of an IPv6 /64, so that is one client.
func TestSessionsAndLimitsOfIPv6AreBySubscriber(t *testing.T) {
	s := newSiteWith(t, `{"baseline":"never"}`, map[string]any{"limits": map[string]any{}}, answering("application/json", completion("Paris.")))
	for i, c := range []struct{ address, remaining, injected string }{
		{"2001:db8:0:1::1", "19", "false"},
		{"2001:db8:0:1:ffff::2", "18", "true"},
		{"2001:db8:0:2::1", "19", "false"},
		{"192.0.2.7", "19", "false"},
		{"::ffff:192.0.2.7", "18", "true"},
	} {
		w := s.postFrom(c.address, "/lex/govern", question)
		if w.Header().Get("X-RateLimit-Remaining") != c.remaining || !strings.Contains(w.Body.String(), `"memory_injected":`+c.injected) {
			t.Errorf("request %d from %s: remaining %q: %s", i+1, c.address, w.Header().Get("X-RateLimit-Remaining"), w.Body)
		}
	}
}

// Callers are told apart by their credential for the provider, wherever it stands: in
// the session of the same name each of them is alone.
func TestCredentialsSeparateSessions(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	const path = "/v1/chat/completions"
	calls := []struct {
		path    string
		headers []string
	}{
		{path, nil},
		{path + "?key=one", nil},
		{path + "?key=two", nil},
		{path + "?access_token=one", nil},
		{path, []string{"X-Goog-Api-Key", "three"}},
		{path, []string{"X-Api-Key", "four"}},
		{path, []string{"Api-Key", "five"}},
		{path, []string{"Authorization", "Bearer six"}},
	}
	seen := make(map[any]bool)
	for _, call := range calls {
		if w := s.post(call.path, chatQuestion, append(call.headers, "X-Lex-Session", "same")...); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		seen[s.receipts()[0]["session_id"]] = true
	}
	// An access token and a key with the same letters are the same credential.
	if len(seen) != len(calls)-1 {
		t.Errorf("%d callers have %d sessions", len(calls), len(seen))
	}
}
