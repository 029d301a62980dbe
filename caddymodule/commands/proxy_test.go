package commands_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The id of a key in its form, and one that would lead elsewhere.
const (
	someKey  = "key_aaaabbbbccccdddd"
	noKey    = "../sessions/0000000000000000000000000000000000000000000000000000000000000000"
	noLexAsk = "no Lex of this version answers at this URL"
)

// Where no Lex answers, or its endpoints are not served, no command takes what it gets for
// an answer of Lex, whatever that is.
func TestCommandsKnowAnotherService(t *testing.T) {
	t.Setenv("ADMIN_PASSWORD", "correct horse")
	t.Setenv("BENCH_SECRET", "battery staple")
	data := labelled(t, labelledLine("benign", "mine", "en", "Why is the sky blue?"))
	commands := map[string][]string{
		"keys create":   {"keys", "create", "--name", "app", "--url"},
		"keys list":     {"keys", "list", "--url"},
		"keys revoke":   {"keys", "revoke", someKey, "--url"},
		"health":        {"health", "--url"},
		"export":        {"export", "--url"},
		"verify":        {"verify", "--url"},
		"head":          {"head", "--url"},
		"report":        {"report", "--url"},
		"calibrate":     {"calibrate", "--url"},
		"bench publish": {"bench", "--json", "--data", data, "--publish"},
	}
	for name, answer := range map[string]http.HandlerFunc{
		"nothing":         says(200, ""),
		"nothing as JSON": says(200, "", "Content-Type", "application/json"),
		"a word":          says(200, "hello"),
		"a page":          says(200, "<html>ok</html>\n", "Content-Type", "text/html; charset=utf-8"),
		"an object":       says(200, "{}\n", "Content-Type", "application/json"),
		"created":         says(201, "{}\n", "Content-Type", "application/json"),
		"no content":      says(204, ""),
		"null":            says(200, "null", "Content-Type", "application/json"),
		"an array":        says(200, "[]", "Content-Type", "application/json"),
		"JSON as text":    says(200, `{"status":"ok","components":{"store":"ok"}}`, "Content-Type", "text/plain"),
		"not there":       says(404, "404 page not found\n"),
		"a provider":      says(404, `{"error":{"message":"Invalid URL","code":null}}`, "Content-Type", "application/json"),
		"elsewhere":       says(302, "", "Location", "/login"),
	} {
		other := httptest.NewServer(answer)
		for command, args := range commands {
			out, said, err := lexCommand("", append(args, other.URL)...)
			if err == nil || !strings.Contains(err.Error(), noLexAsk) {
				t.Errorf("%s gets %s: %v\n%s%s", command, name, err, out, said)
			}
			if command != "bench publish" && out+said != "" {
				t.Errorf("%s gets %s and prints %s%s", command, name, out, said)
			}
		}
		other.Close()
	}
}

// An id is checked before it is sent, and a key counts as revoked when the list says so.
func TestKeysRevokeIsSure(t *testing.T) {
	t.Setenv("ADMIN_PASSWORD", "correct horse")
	var asked []string
	list := `{"keys":[]}`
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI)
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, list)
	}))
	defer proxy.Close()
	for _, id := range []string{noKey, "key_abc", "", "key_AAAABBBBCCCCDDDD", someKey + "/..", someKey + "?", "%2e%2e"} {
		if out, _, err := lexCommand("", "keys", "revoke", "--url", proxy.URL, id); err == nil || !strings.Contains(err.Error(), "not the id of a key") || len(asked) > 0 {
			t.Errorf("%q: %v %s, asked %v", id, err, out, asked)
		}
	}
	for _, ids := range [][]string{nil, {someKey, someKey}} {
		if _, _, err := lexCommand("", append([]string{"keys", "revoke", "--url", proxy.URL}, ids...)...); err == nil || !strings.Contains(err.Error(), "one key by its id") || len(asked) > 0 {
			t.Errorf("%q: %v, asked for %q", ids, err, asked)
		}
	}
	for text, revoked := range map[string]bool{
		`{"keys":[]}`: false,
		`{"keys":[{"id":"` + someKey + `","revoked_at":null}]}`:                                             false,
		`{"keys":[{"id":"key_ddddccccbbbbaaaa","revoked_at":"2026-01-31T08:00:00Z"}]}`:                      false,
		`{"keys":[{"id":"key_a"},{"id":"` + someKey + `","name":"a","revoked_at":"2026-01-31T08:00:00Z"}]}`: true,
	} {
		list = text
		out, _, err := lexCommand("", "keys", "revoke", "--url", proxy.URL, someKey)
		if (err == nil) != revoked || (out != "") != revoked {
			t.Errorf("%s: %v %s", text, err, out)
		}
	}
}
