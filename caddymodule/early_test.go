package caddymodule_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Whoever has recorded the first packet of a connection can send it again (RFC 8470). A call
// that came in one is asked for again, and leaves no trace: it would count, and run a tool, once
// for each time. What changes nothing, and what is not governed, passes.
func TestEarlyDataIsAskedForAgain(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, body string
		message            string // where its error has the sentence; "" where it passes
	}{
		"chat":             {"POST", "/v1/chat/completions", chatQuestion, "error.message"},
		"an attack":        {"POST", "/v1/chat/completions", chatAttack, "error.message"},
		"ollama":           {"POST", "/api/chat", `{"model":"m","messages":[{"role":"user","content":"Hello."}]}`, "error"},
		"a tool call":      {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`, "error.message"},
		"embeddings":       {"POST", "/v1/embeddings", `{"input":"Hello."}`, "error.message"},
		"an unknown path":  {"POST", "/nowhere", `{"text":"Hello."}`, "error"},
		"govern":           {"POST", "/lex/govern", `{"prompt":"Hello.","session_id":"s"}`, "error"},
		"a new key":        {"POST", "/admin/keys", `{"name":"a"}`, "error"},
		"an erased person": {"DELETE", "/admin/sessions/s", "", "error"},
		"receipts":         {"GET", "/audits/recent", "", ""},
		"models":           {"GET", "/v1/models", "", ""},
		"an upload":        {"POST", "/nowhere", "", ""}, // nothing for a model, so it is not governed
	} {
		t.Run(name, func(t *testing.T) {
			s, seen := listening(t, `{}`)
			send := func(early bool, header string) *httptest.ResponseRecorder {
				r := httptest.NewRequest(test.method, "https://site.test"+test.path, strings.NewReader(test.body))
				r.TLS = &tls.ConnectionState{HandshakeComplete: !early}
				if header != "" {
					r.Header.Set("Early-Data", header)
				}
				w := httptest.NewRecorder()
				s.serve(w, r)
				return w
			}
			for _, w := range []*httptest.ResponseRecorder{send(true, ""), send(false, "1")} { // here, and at a proxy in front
				if early := w.Code == http.StatusTooEarly; early != (test.message != "") {
					t.Fatalf("%d %s", w.Code, w.Body)
				} else if early && (gjson.Get(w.Body.String(), test.message).Str == "" || w.Header().Get("X-Should-Retry") == "false") {
					t.Errorf("%v %s", w.Header(), w.Body)
				}
			}
			if test.message != "" && (seen.count.Load() != 0 || len(s.receipts()) != 0) {
				t.Errorf("%d requests reached the model, receipts: %v", seen.count.Load(), s.receipts())
			}
			if w := send(false, ""); w.Code == http.StatusTooEarly {
				t.Errorf("without early data: %d %s", w.Code, w.Body)
			}
		})
	}
}
