package caddymodule_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// mcpTools lists tools whose names and descriptions tell nothing of what they do.
const mcpTools = `{"tools":[` +
	`{"name":"florp","description":"Florps.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"blick","description":"Blicks.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":true}},` +
	`{"name":"wump","description":"Wumps.","inputSchema":{"type":"object"}}]}`

// An mcpServer answers every message on its own path in the form that it is asked for.
func mcpServer(answer *string, kind string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		_, _ = io.Copy(io.Discard, r.Body)
		body := *answer
		if kind == "text/event-stream" {
			body = mcpFrame(body)
		}
		return answering(kind, body)(w, r)
	}
}

// What a server says of its tools is known to the calls of the session, however it is named,
// although who asks for the list says nothing. It is not known to other sessions.
func TestMCPHintsStayInTheSession(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		for _, header := range []string{"Mcp-Session-Id", "X-Lex-Session"} {
			for _, params := range []string{`{}`, `{"cursor":"page two"}`} {
				var answer string
				s := newSiteWith(t, `{}`, map[string]any{"tools": map[string]any{"unknown": "block"}}, mcpServer(&answer, kind))
				answer = mcpAnswer(mcpTools)
				s.post("/mcp", mcpMessage("tools/list", params), header, "s")
				answer = mcpAnswer(`{"tools":[]}`)
				s.post("/mcp", mcpMessage("tools/list", "{}"), header, "another")
				answer = mcpResult("Done.")
				for name, want := range map[string]map[string]any{
					"florp": {"decision": "approved", "effect": "read", "high_risk": nil},
					"blick": {"decision": "approved", "effect": "write", "high_risk": true},
					"wump":  {"decision": "blocked", "invariant": "unknown_tool"}, // which gave no hints
				} {
					s.post("/mcp", mcpCall(`"c-1"`, name, `{"a":1}`), header, "s")
					call := s.calls()[0]
					for member, value := range want {
						if call[member] != value {
							t.Errorf("%s %s %s: the %s of %s is %v", kind, header, params, member, name, call[member])
						}
					}
					s.post("/mcp", mcpCall(`"c-1"`, name, `{"a":1}`), header, "another")
					if call := s.calls()[0]; call["invariant"] != "unknown_tool" {
						t.Errorf("%s %s: %s is known to another session: %v", kind, header, name, call)
					}
				}
			}
		}
	}
}

// Who says nothing is in the session as well, but takes no step in it: neither lists nor pings
// nor streams calm it.
func TestMCPTurnsWithoutTextTakeNoStep(t *testing.T) {
	var answer string
	s := newSite(t, `{}`, mcpServer(&answer, "application/json"))
	answer = mcpResult("Done.")
	for range 3 {
		s.post("/mcp", mcpCall("1", "bash", wipeArguments), "Mcp-Session-Id", "s")
	}
	pressed := s.turns()[0]
	silent := []string{
		mcpMessage("tools/list", "{}"), mcpMessage("ping", "{}"), `{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "",
	}
	for _, call := range silent {
		method := http.MethodPost
		switch answer = mcpAnswer(mcpTools); {
		case call == "":
			method, answer = http.MethodGet, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		case !strings.Contains(call, `"id"`):
			answer = ""
		}
		s.send(method, "/mcp", call, "Mcp-Session-Id", "s")
		r := s.turns()[0]
		if r["session_id"] != pressed["session_id"] || predecessor(r) == "" || r["m_after"] != pressed["m_after"] || r["cusum_next"] != pressed["cusum_next"] || r["unassessed"] != true || r["outcome"] != "answered" {
			t.Errorf("%q: %v", call, r)
		}
	}
	answer = mcpResult("Done.")
	s.post("/mcp", mcpCall("1", "get_weather", weatherArguments), "Mcp-Session-Id", "s")
	if r := s.turns()[0]; r["unassessed"] == true || r["turn"] != float64(3+len(silent)+1) {
		t.Errorf("a call: %v", r)
	}
	for _, r := range s.receipts() {
		if v := s.verify(byID(r["id"].(string))); !v.Valid {
			t.Errorf("%s: %s", r["id"], *v.Fault)
		}
	}
}

// What a server says by itself, or of its tools, presses on the session of who listens.
func TestMCPPoisonPressesOnTheSession(t *testing.T) {
	poison := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":` + quoted(attack) + `}}`
	for name, test := range map[string]struct{ method, call, kind, answer string }{
		"a stream": {http.MethodGet, "", "text/event-stream", mcpFrame(poison)},
		"a list":   {http.MethodPost, mcpMessage("tools/list", "{}"), "application/json", poisoned()["tools"]},
		"a ping":   {http.MethodPost, mcpMessage("ping", "{}"), "text/event-stream", mcpFrame(poison) + mcpFrame(mcpAnswer("{}"))},
	} {
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			if r.Header.Get("X-Calm") != "" {
				return answering("application/json", mcpResult("Done."))(w, r)
			}
			return answering(test.kind, test.answer)(w, r)
		})
		s.post("/mcp", mcpCall("1", "get_weather", weatherArguments), "Mcp-Session-Id", "s", "X-Calm", "1")
		before := s.turns()[0]
		s.send(test.method, "/mcp", test.call, "Mcp-Session-Id", "s")
		after := s.turns()[0]
		if after["outcome"] != "refused" || predecessor(after) != before["id"] || after["m_after"].(float64) >= before["m_after"].(float64) || after["unassessed"] == true {
			t.Errorf("%s: %v behind %v", name, after, before)
		}
	}
}

// A stream is open while other calls of the session come, and one of these may fail. Its
// receipt follows theirs.
func TestMCPStreamsBesideFailures(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusBadGateway)
			return nil
		}
		close(begun)
		<-end
		return answering("text/event-stream", mcpFrame(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))(w, r)
	})
	done := make(chan int)
	go func() {
		r := httptest.NewRequest(http.MethodGet, "http://site.test/mcp", http.NoBody)
		r.Header.Set("Mcp-Session-Id", "s")
		w := httptest.NewRecorder()
		s.serve(w, r)
		done <- w.Code
	}()
	<-begun
	s.post("/mcp", mcpMessage("ping", "{}"), "Mcp-Session-Id", "s")
	failed := s.turns()[0]
	close(end)
	if code := <-done; code != http.StatusOK {
		t.Errorf("the stream ends with %d", code)
	}
	if r := s.turns()[0]; failed["outcome"] != "provider_failed" || r["outcome"] != "answered" || predecessor(r) != failed["id"] || r["turn"] != 2.0 {
		t.Errorf("%v behind %v", r, failed)
	}
}

// Without a name of a session, a request to a server of tools has one of its own, in which the
// receipts of its calls and its own follow one another. What two requests ask tells nothing of
// whether one conversation asks.
func TestMCPRequestsWithoutASession(t *testing.T) {
	s := newSiteWith(t, `{}`, map[string]any{"secrets": map[string]any{"admin": password}}, answering("application/json", mcpResult("Done.")))
	for range 2 {
		s.post("/mcp", mcpCall(`"c-1"`, "get_page", `{"id":1}`))
	}
	receipts := s.receipts() // the newest first
	if len(receipts) != 4 {
		t.Fatalf("%d receipts", len(receipts))
	}
	if receipts[0]["session_id"] != receipts[1]["session_id"] || receipts[0]["session_id"] == receipts[2]["session_id"] || receipts[2]["session_id"] != receipts[3]["session_id"] {
		t.Errorf("sessions %v %v, then %v %v", receipts[3]["session_id"], receipts[2]["session_id"], receipts[1]["session_id"], receipts[0]["session_id"])
	}
	for _, r := range receipts {
		body := s.send(http.MethodPost, "/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`, "Content-Type", "application/json").Body.String()
		if !strings.Contains(body, `"name":"chain","ok":true`) {
			t.Errorf("%s", body)
		}
	}
}
