package caddymodule_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// refusedBy fails unless a receipt says that a rule refuses the turn; in the mode observe,
// that it would.
func refusedBy(t *testing.T, r map[string]any, rule, mode string) {
	t.Helper()
	enforced := mode == "enforce"
	if r["denied_by"] != rule || r["refused"] != enforced || r["would_refuse"] != !enforced || (r["outcome"] == "refused") != enforced {
		t.Errorf("denied_by %v, refused %v, would_refuse %v, outcome %v", r["denied_by"], r["refused"], r["would_refuse"], r["outcome"])
	}
	if reasons, _ := r["reasons"].([]any); len(reasons) == 0 || reasons[0] != "operator_policy" {
		t.Errorf("reasons %v", reasons)
	}
}

// What `unknown block` refuses is a refused turn in its receipt, and the mode observe
// records what it would refuse and lets it pass.
func TestBlockedUnreadTurnsAreRefusedTurns(t *testing.T) {
	newMember := strings.Replace(chatQuestion, "{", `{"mind_reading":{"text":"hidden"},`, 1)
	oddAnswer := strings.Replace(completion("Paris."), `"role"`, `"whisper":"hidden","role"`, 1)
	oddStream := strings.Replace(stream("Paris ", "is it."), `"content":"is it."`, `"whisper":"hidden"`, 1)
	for name, test := range map[string]struct{ path, body, contentType, answer string }{
		"path":     {"/v1/anything", `{"input_text":"hello there"}`, "application/json", "hidden"},
		"request":  {"/v1/chat/completions", newMember, "application/json", completion("hidden")},
		"answer":   {"/v1/chat/completions", chatQuestion, "application/json", oddAnswer},
		"streamed": {"/v1/chat/completions", chatStreamed, "text/event-stream", oddStream},
	} {
		for _, mode := range []string{"enforce", "observe"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				s := newSite(t, `{"unknown":"block","mode":"`+mode+`"}`, answering(test.contentType, test.answer))
				w := s.post(test.path, test.body)
				if passed := strings.Contains(w.Body.String(), "hidden"); passed != (mode == "observe") {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				refusedBy(t, s.receipts()[0], "unknown_block", mode)
			})
		}
	}
}

// A turn in which a tool call of the caller was blocked is a refused turn.
func TestATurnOfABlockedCallIsRefused(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", mcpResult("Done.")))
	w := httptest.NewRecorder()
	s.serve(w, httptest.NewRequest(http.MethodPost, "http://site.test/mcp", strings.NewReader(mcpCall("1", "bash", wipeArguments))))
	turns := 0
	for _, r := range s.receipts() {
		if r["tool"] == "" {
			turns++
			refusedBy(t, r, "tool_call_blocked", "enforce")
		}
	}
	if turns != 1 {
		t.Errorf("%d turns", turns)
	}
}

// What no detector read is not called clear, and takes no step of its session.
func TestUnreadTurnsAreNotCalledClear(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`
	chat := func(content string) string {
		return `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[` + content + `]}]}`
	}
	for name, test := range map[string]struct {
		path, body string
		unassessed bool
	}{
		"an image":           {"/v1/chat/completions", chat(image), true},
		"an image and text":  {"/v1/chat/completions", chat(image + `,{"type":"text","text":"What is this?"}`), false},
		"an upload":          {"/v1/anything", "\x00\x01\x02", true},
		"text of no dialect": {"/v1/anything", `{"input_text":"hello there"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `{}`, answering("application/json", completion("A cat.")))
			s.post(test.path, test.body)
			r := s.receipts()[0]
			if (r["unassessed"] == true) != test.unassessed || (r["pre_eval_label"] == "UNASSESSED") != test.unassessed {
				t.Errorf("unassessed %v, label %v", r["unassessed"], r["pre_eval_label"])
			}
			for _, d := range r["coverage"].(map[string]any)["detectors"].([]any) {
				run := d.(map[string]any)
				if run["name"] == "local" && (run["outcome"] == "not_run") != test.unassessed {
					t.Errorf("the detector: %v", run)
				}
			}
		})
	}
}

// What leaves no receipt is counted.
func TestUngovernedRequestsAreCounted(t *testing.T) {
	for name, test := range map[string]struct{ config, method, path, body, why string }{
		"a list":          {`{}`, http.MethodGet, "/v1/models", "", "no_text"},
		"a list by key":   {`{"require_key":false,"unknown":"block"}`, http.MethodGet, "/v1/models", "", "no_text"},
		"an empty body":   {`{}`, http.MethodPost, "/v1/anything", "", "no_text"},
		"by the operator": {`{"unknown":"pass"}`, http.MethodPost, "/v1/anything", `{"input_text":"hello"}`, "unknown_pass"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, test.config, answering("application/json", "{}"))
			before := metric(t, "lex_ungoverned_total", "why", test.why)
			s.serve(httptest.NewRecorder(), httptest.NewRequest(test.method, "http://site.test"+test.path, strings.NewReader(test.body)))
			if n := metric(t, "lex_ungoverned_total", "why", test.why) - before; n != 1 || len(s.receipts()) != 0 {
				t.Errorf("counted %v times, %d receipts", n, len(s.receipts()))
			}
		})
	}
}
