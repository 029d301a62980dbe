package caddymodule_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/store"
)

func mcpCall(id, name, arguments string) string {
	if id != "" {
		id = `"id":` + id + `,`
	}
	return `{"jsonrpc":"2.0",` + id + `"method":"tools/call","params":{"name":` + quoted(name) + `,"arguments":` + arguments + `}}`
}

// A parameter in the path is no way around the decision.
func TestMCPBlockedCallsAtPathsWithParameters(t *testing.T) {
	for _, path := range []string{"/mcp;x", "/a;b/mcp;c=d", "/mcp%3Bx", "/mcp;x=%2F.."} {
		seen := new(recorder)
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			seen.record(r)
			return answering("application/json", mcpResult("Done."))(w, r)
		})
		w := s.post(path, mcpCall("1", "bash", wipeArguments))
		if seen.count.Load() != 0 || !strings.Contains(w.Body.String(), "destructive_command") || len(s.calls()) != 1 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// A blocked call never reaches the server of tools, in whatever form it is sent, and each
// call has its receipt.
func TestMCPBlockedCallsDoNotRun(t *testing.T) {
	wipes, asks := mcpCall(`1`, "bash", wipeArguments), mcpCall(`"two"`, "get_weather", weatherArguments)
	for name, test := range map[string]struct {
		call            string
		status, answers int
		receipts        int
	}{
		"alone":               {wipes, 200, 1, 2},
		"in a batch":          {"[" + asks + "," + wipes + "]", 200, 2, 3},
		"first in a batch":    {"[" + wipes + "," + asks + "]", 200, 2, 3},
		"with a notification": {"[" + wipes + `,{"jsonrpc":"2.0","method":"notifications/initialized"}]`, 200, 1, 2},
		"without an id":       {mcpCall("", "bash", wipeArguments), 403, 0, 2},
		"with a null id":      {mcpCall("null", "bash", wipeArguments), 400, 0, 0},
		"with an odd id":      {mcpCall("1.50", "bash", wipeArguments), 200, 1, 2},
		"beside one without":  {"[" + asks + "," + mcpCall("", "bash", wipeArguments) + "]", 200, 1, 3},
		"the same id twice":   {"[" + mcpCall("1", "get_weather", weatherArguments) + "," + wipes + "]", 400, 0, 0},
	} {
		for _, session := range []string{"", "s"} {
			seen := new(recorder)
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				seen.record(r)
				return answering("application/json", mcpResult("Done."))(w, r)
			})
			r := httptest.NewRequest(http.MethodPost, "http://site.test/mcp", strings.NewReader(test.call))
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			w := httptest.NewRecorder()
			s.serve(w, r)
			got := w.Body.String()
			if seen.count.Load() != 0 {
				t.Errorf("%s: it reached the server: %s", name, got)
			}
			answers := len(gjson.Get("["+strings.Trim(got, "[]")+"]", "@this").Array())
			if w.Code != test.status || test.status == 200 && (answers != test.answers || !strings.Contains(got, "destructive_command") && !strings.Contains(got, "a tool call sent with it was blocked")) {
				t.Errorf("%s: %d %s", name, w.Code, got)
			}
			receipts := s.receipts()
			if len(receipts) != test.receipts {
				t.Errorf("%s: %d receipts", name, len(receipts))
			}
			for _, r := range receipts {
				if v := s.post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`); !strings.Contains(v.Body.String(), `"valid":true`) {
					t.Errorf("%s: %s", name, v.Body)
				}
				if session != "" && r["session_id"] != receipts[0]["session_id"] {
					t.Errorf("%s: two sessions", name)
				}
			}
		}
	}
}

// A call that names no tool cannot be decided, and a lenient server may run what it finds.
func TestMCPCallsWithoutATool(t *testing.T) {
	for _, params := range []string{
		"", `,"params":null`, `,"params":{}`, `,"params":"bash"`, `,"params":{"name":5,"arguments":` + wipeArguments + `}`,
		`,"params":[{"name":"bash","arguments":` + wipeArguments + `}]`, `,"params":["get_weather",` + weatherArguments + `]`,
	} {
		seen := new(recorder)
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			seen.record(r)
			return answering("application/json", mcpResult("Done."))(w, r)
		})
		w := s.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call"`+params+`}`)
		if seen.count.Load() != 0 || !strings.Contains(w.Body.String(), "malformed_arguments") {
			t.Errorf("%s: reached the server %d times: %s", params, seen.count.Load(), w.Body)
		}
	}
}

// An allowed call reaches the server once, behind its durable receipt; without one it does
// not run.
func TestMCPCallsRunBehindTheirReceipts(t *testing.T) {
	for _, down := range []bool{false, true} {
		var s *site
		seen, receipts := new(recorder), 0
		s = newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			seen.record(r)
			receipts = len(s.calls())
			return answering("text/event-stream", mcpFrame(mcpResult("Sunny.")))(w, r)
		})
		if down {
			s.breakStore()
		}
		w := s.post("/mcp", mcpCall(`"c-1"`, "get_weather", weatherArguments), "Mcp-Session-Id", "s")
		if ran := seen.count.Load() == 1; ran == down || !down && receipts != 1 || strings.Contains(w.Body.String(), "Sunny.") == down {
			t.Errorf("store down %v: ran %v behind %d receipts: %d %s", down, ran, receipts, w.Code, w.Body)
		}
	}
}

// The calls of a session press on it: after some blocked ones a call that sends does not run,
// one that its server said only reads does, and quiet calls let the session recover.
func TestMCPSessionRisk(t *testing.T) {
	seen := new(recorder)
	var answer string
	s := newSiteWith(t, `{}`, map[string]any{"tools": map[string]any{"sends": []string{"send_*"}}}, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("application/json", answer)(w, r)
	})
	ran := func(call string) bool {
		before := seen.count.Load()
		s.post("/mcp", call, "Mcp-Session-Id", "s")
		return seen.count.Load() > before
	}
	answer = mcpAnswer(`{"tools":[{"name":"glance","description":"Shows the sky.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
	ran(mcpMessage("tools/list", "{}"))
	answer = mcpResult("Done.")
	send, glance := mcpCall("1", "send_mail", `{"to":"bob@example.com","text":"Hello"}`), mcpCall("2", "glance", `{}`)
	if !ran(send) || !ran(glance) {
		t.Fatal("a calm session denies")
	}
	for range 5 {
		ran(mcpCall("3", "bash", wipeArguments))
	}
	if ran(send) {
		t.Error("a session at risk sends")
	}
	if denied := s.calls()[0]; denied["invariant"] != "session_risk" {
		t.Errorf("%v", denied["invariant"])
	}
	if !ran(glance) {
		t.Errorf("a session at risk does not read: %v", s.calls()[0])
	}
	turns := 0
	for ; turns < 60 && !ran(send); turns++ {
		ran(glance)
	}
	if turns == 60 {
		t.Error("it does not recover")
	}
	for _, r := range s.receipts() {
		if v := s.post("/audits/verify", fmt.Sprintf(`{"receipt_id":%q}`, r["id"])); !strings.Contains(v.Body.String(), `"valid":true`) {
			t.Errorf("%s", v.Body)
		}
	}
}

// The receipt of a call says that the interceptor decided on it, what it read of it, and that
// it was sent on: with its batch, or not at all. The receipt of the turn says so too.
func TestMCPReceiptsOfCalls(t *testing.T) {
	asks, tells, wipes := mcpCall("1", "get_weather", weatherArguments), mcpCall("2", "get_time", `{"zone":"CET"}`), mcpCall("3", "bash", wipeArguments)
	size := map[string]float64{"get_weather": float64(len("get_weather" + weatherArguments)), "get_time": float64(len(`get_time{"zone":"CET"}`)), "bash": float64(len("bash" + wipeArguments))}
	for name, test := range map[string]struct {
		call, mode string
		runs       bool
		flagged    bool
	}{
		"a call":         {asks, "enforce", true, false},
		"a blocked one":  {wipes, "enforce", false, true},
		"a batch":        {"[" + asks + "," + tells + "]", "enforce", true, false},
		"one of a batch": {"[" + asks + "," + wipes + "," + tells + "]", "enforce", false, true},
		"observed":       {wipes, "observe", true, true},
		"observed batch": {"[" + wipes + "," + asks + "]", "observe", true, true},
	} {
		for _, headers := range [][]string{nil, {"Mcp-Session-Id", "s"}} {
			for _, conflict := range []bool{false, true} {
				seen := new(recorder)
				s := newSite(t, `{"mode":"`+test.mode+`"}`, func(w http.ResponseWriter, r *http.Request) error {
					seen.record(r)
					return answering("application/json", mcpResult("Done."))(w, r)
				})
				tries := 0
				s.meddle(func(ctx context.Context, change store.Change, commit func(context.Context, store.Change) error) error {
					if tries++; conflict && tries == 1 {
						return store.ErrConflict
					}
					return commit(ctx, change)
				})
				outcome := map[bool]string{true: "flagged", false: "clean"}
				runs := func() float64 {
					return metric(t, "lex_detector_runs_total", "detector", "toolcall", "outcome", outcome[test.flagged])
				}
				before := runs()
				s.post("/mcp", test.call, headers...)
				if ran := seen.count.Load() == 1; ran != test.runs || runs() != before+1 {
					t.Errorf("%s: ran %v, and the interceptor is counted %v times", name, ran, runs()-before)
				}
				calls := s.calls()
				if len(calls) != strings.Count(test.call, "tools/call") {
					t.Errorf("%s: %d receipts", name, len(calls))
				}
				for _, call := range calls {
					coverage, tool := call["coverage"].(map[string]any), call["tool"].(string)
					forwarded, ended := size[tool], "answered"
					if !test.runs {
						forwarded, ended = 0, "refused"
					}
					covered := fmt.Sprint(coverage["detectors"], coverage["inspected"], coverage["bytes_inspected"], coverage["skipped"], coverage["unknown"])
					want := fmt.Sprintf("[map[name:toolcall outcome:%s why:]] [map[bytes:%v detector:toolcall part:request.tool_call]] %[2]v [] []", outcome[tool == "bash"], size[tool])
					if covered != want || coverage["bytes_forwarded"] != forwarded || call["outcome"] != ended {
						t.Errorf("%s: %s: %v, %v bytes forwarded, %s", name, tool, call["outcome"], coverage["bytes_forwarded"], covered)
					}
				}
				turn := s.turns()[0]
				if detectors := fmt.Sprint(turn["coverage"].(map[string]any)["detectors"]); !strings.Contains(detectors, "name:toolcall outcome:"+outcome[test.flagged]) {
					t.Errorf("%s: the turn: %s", name, detectors)
				}
				for _, r := range s.receipts() {
					if v := s.verify(byID(r["id"].(string))); !v.Valid {
						t.Errorf("%s: %s: %s", name, r["id"], *v.Fault)
					}
				}
			}
		}
	}
}

// More calls than can be decided together are not decided at all.
func TestMCPTooManyCalls(t *testing.T) {
	s, seen := listening(t, `{}`)
	batch := "[" + strings.TrimSuffix(strings.Repeat(mcpCall("", "get_weather", weatherArguments)+",", 129), ",") + "]"
	if w := s.post("/mcp", batch); w.Code != http.StatusBadRequest || seen.count.Load() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Clients without a session may ask for the same call again. Each time has its receipts, and
// all of them verify, though only the first lead to the state that these words leave.
func TestMCPSameCallsVerify(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", mcpResult("Sunny.")))
	for range 3 {
		s.post("/mcp", mcpCall("1", "bash", wipeArguments))
		s.post("/mcp", mcpCall("1", "get_weather", weatherArguments))
		s.post("/mcp", "["+mcpCall("1", "bash", wipeArguments)+","+mcpCall("2", "get_weather", weatherArguments)+"]")
	}
	receipts := s.receipts()
	if len(receipts) != 3*(2+2+3) {
		t.Errorf("%d receipts", len(receipts))
	}
	for _, r := range receipts {
		if v := s.verify(byID(r["id"].(string))); !v.Valid {
			t.Errorf("%s after %q: %s", r["id"], r["prev"], *v.Fault)
		}
	}
}
