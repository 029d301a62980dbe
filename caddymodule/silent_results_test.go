package caddymodule_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// silentCalls are requests in which no detector finds a text, and answers in which a tool
// that the provider runs, or a server of tools, says RESULT.
var silentCalls = map[string]struct{ path, question, kind, answer string }{
	"gemini":          {"/v1beta/models/m:generateContent", geminiImage, "application/json", geminiRan},
	"gemini streamed": {"/v1beta/models/m:streamGenerateContent?alt=sse", geminiImage, "text/event-stream", "data: " + geminiRan + "\n\n"},
	"gemini unknown":  {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"zzz":{}}]}]}`, "application/json", geminiRan},
	"anthropic": {
		"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}`, "application/json",
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"RESULT","url":"https://a.example","encrypted_content":"x","page_age":null}]},{"type":"text","text":"Paris."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
	},
	"responses": {
		"/v1/responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://a.example/i.png"}]}]}`, "application/json",
		`{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"mcp_call","id":"mcp_1","name":"f","server_label":"s","arguments":"{}","output":"RESULT"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Paris.","annotations":[]}]}]}`,
	},
	"mcp":          {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"foo/bar","params":{"a":1}}`, "application/json", mcpResult("RESULT")},
	"mcp streamed": {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"foo/bar","params":{"a":1}}`, "text/event-stream", mcpFrame(mcpResult("RESULT"))},
}

const (
	geminiImage = `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}]}`
	geminiRan   = `{"candidates":[{"content":{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"print(1)"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"RESULT"}}]},"finishReason":"STOP","index":0}]}`
)

// Where nothing of a request could be read, what a tool says in the answer is evidence all
// the same. The receipt says that the detector ran once it had something to read.
func TestResultsAnswerRequestsWithoutText(t *testing.T) {
	for name, c := range silentCalls {
		t.Run(name, func(t *testing.T) {
			local := func(r map[string]any) string {
				for _, d := range r["coverage"].(map[string]any)["detectors"].([]any) {
					if d := d.(map[string]any); d["name"] == "local" {
						return fmt.Sprint(d["outcome"])
					}
				}
				return ""
			}
			poisoned := strings.Replace(c.answer, "RESULT", attack, 1)
			s := newSite(t, `{}`, answering(c.kind, poisoned))
			w := s.post(c.path, c.question)
			if r := s.receipts()[0]; w.Code != http.StatusOK || strings.Contains(w.Body.String(), "DAN") || r["outcome"] != "refused" || local(r) != "flagged" {
				t.Errorf("%d %s: %v, local %s", w.Code, w.Body, r["outcome"], local(r))
			}

			s = newSite(t, `{"mode":"observe"}`, answering(c.kind, poisoned))
			w = s.post(c.path, c.question)
			if r := s.receipts()[0]; w.Code != http.StatusOK || w.Body.String() != poisoned || r["would_refuse"] != true {
				t.Errorf("observed: %d %s: %v", w.Code, w.Body, r)
			}

			harmless := strings.Replace(c.answer, "RESULT", "The picture shows three cats.", 1)
			s = newSite(t, `{}`, answering(c.kind, harmless))
			w = s.post(c.path, c.question)
			if r, got := s.receipts()[0], w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, harmless) || local(r) != "clean" || r["pre_eval_label"] != "UNASSESSED" {
				t.Errorf("harmless: %d %s: %v, local %s", w.Code, w.Body, r["pre_eval_label"], local(r))
			}
		})
	}
}
