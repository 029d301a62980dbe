package caddymodule_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Logs and traces name a session by one hash in all its turns, by which its receipts are found
// unless their caller chose the name that these show. That name is in none of them.
func TestLogsAndTracesNameTheSession(t *testing.T) {
	const chosen = "chosen-by-the-caller"
	resent := strings.Replace(chatQuestion, "]", `,{"role":"assistant","content":"Paris."},{"role":"user","content":"And of Italy?"}]`, 1)
	named := []string{"X-Lex-Session", chosen}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = answering("application/json", completion("Paris."))(w, r)
	}))
	defer upstream.Close()
	for name, test := range map[string]struct {
		turns   [][]string // path, body and headers
		receipt bool       // the hash is the receipts' id
	}{
		"nobody names it":            {[][]string{{"/v1/chat/completions", chatQuestion}, {"/v1/chat/completions", resent}}, true},
		"named by a header":          {[][]string{append([]string{"/v1/chat/completions", chatQuestion}, named...), append([]string{"/v1/chat/completions", resent}, named...)}, true},
		"named in governed requests": {[][]string{{"/lex/govern", strings.Replace(question, `"s"`, `"`+chosen+`"`, 1)}, append([]string{"/v1/chat/completions", resent}, named...), {"/lex/tools/check", strings.Replace(destructiveCall, `"s"`, `"`+chosen+`"`, 1)}}, false},
	} {
		s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
		p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex {\nbaseline never\n}\nreverse_proxy "+upstream.Listener.Addr().String())
		traced, logged := make(map[string]bool), make(map[string]bool)
		for _, turn := range test.turns {
			span, w := s.traced(turn[0], turn[1], turn[2:]...)
			header := http.Header{}
			for i := 2; i+1 < len(turn); i += 2 {
				header.Set(turn[i], turn[i+1])
			}
			if status, _, body := p.send(http.MethodPost, turn[0], turn[1], header); w.Code != http.StatusOK || status != http.StatusOK {
				t.Fatalf("%s: %d %s, %d %s", name, w.Code, w.Body, status, body)
			}
			if id, ok := attributesOf(span.Attributes)["gen_ai.conversation.id"]; ok {
				traced[id] = true
			}
		}
		_, _, listed := p.send(http.MethodGet, "/audits/recent", "", nil)
		lines, text := 0, p.stop()
		for line := range strings.Lines(text) {
			if session := gjson.Get(line, "session"); session.Exists() {
				lines++
				logged[session.String()] = true
			}
		}
		if lines != len(test.turns) || strings.Contains(text, chosen) {
			t.Errorf("%s: %d lines name the session: %s", name, lines, text)
		}
		shown := make(map[string]bool)
		for _, r := range s.receipts() {
			shown[r["session_id"].(string)] = true
		}
		inProxy := gjson.Get(listed, "receipts.0.session_id").String()
		if len(traced) == 0 {
			t.Errorf("%s: no trace names the session", name)
		}
		for which, hashes := range map[string]map[string]bool{"traces": traced, "logs": logged} {
			ids := shown
			if which == "logs" {
				ids = map[string]bool{inProxy: true}
			}
			for id := range hashes {
				if len(hashes) != 1 || len(ids) != 1 || !strings.HasPrefix(id, "s_") || ids[id] != test.receipt {
					t.Errorf("%s: %v in %s, %v in receipts", name, hashes, which, ids)
				}
			}
		}
	}
}
