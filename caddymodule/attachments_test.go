package caddymodule_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Nobody reads attachments, so those of a refused message go with its text, in the form
// that each API takes, and the receipt lists them as replaced.
func TestAttachmentsOfRefusedMessagesAreRemoved(t *testing.T) {
	const (
		png         = "iVBORw0KGgo="
		chatUser    = `{"type":"text","text":"ATTACK"}`
		chatRemoved = `{"text":"[This message was removed by the governance policy of this service.]","type":"text"}`
		chat        = `{"model":"m","messages":[{"role":"user","content":[` + chatUser + `,ATTACHED]}NEXT]}`
		chatNext    = `,{"role":"assistant","content":"No."},{"role":"user","content":"And the date?"}`
		claude      = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + chatUser + `,ATTACHED]}NEXT]}`
		claudeTool  = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Look."},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[` + chatUser + `,ATTACHED]}]}NEXT]}`
		responses   = `{"model":"m","store":false,"input":[{"role":"user","content":[{"type":"input_text","text":"ATTACK"},ATTACHED]}NEXT]}`
		called      = `{"model":"m","store":false,"input":[{"role":"user","content":"Look."},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"ATTACK"},ATTACHED]}NEXT]}`
		inputGone   = `{"text":"[This message was removed by the governance policy of this service.]","type":"input_text"}`
		saidNext    = `,{"role":"assistant","content":"No."},{"role":"user","content":"And the date?"}`
		gemini      = `{"contents":[{"role":"user","parts":[{"text":"ATTACK"},ATTACHED]}NEXT]}`
		geminiTool  = `{"contents":[{"role":"user","parts":[{"text":"Look."}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r":"ATTACK"},"parts":ATTACHED}}]}NEXT]}`
		geminiNext  = `,{"role":"model","parts":[{"text":"No."}]},{"role":"user","parts":[{"text":"And the date?"}]}`
		geminiGone  = `{"text":"[This message was removed by the governance policy of this service.]"}`
	)
	for name, test := range map[string]struct{ api, path, body, next, attached, want, listed string }{
		"chat, image":              {"chat", "/v1/chat/completions", chat, chatNext, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `","detail":"low"}}`, chatRemoved, "messages.0.content.1.image_url"},
		"chat, sound":              {"chat", "/v1/chat/completions", chat, chatNext, `{"type":"input_audio","input_audio":{"data":"` + png + `","format":"wav"}}`, chatRemoved, "messages.0.content.1.input_audio"},
		"chat, file":               {"chat", "/v1/chat/completions", chat, chatNext, `{"type":"file","file":{"file_data":"` + png + `","filename":"a.pdf"}}`, chatRemoved, "messages.0.content.1.file"},
		"responses, image":         {"responses", "/v1/responses", responses, saidNext, `{"type":"input_image","image_url":"data:image/png;base64,` + png + `","detail":"auto"}`, inputGone, "input.0.content.1.image_url"},
		"responses, file":          {"responses", "/v1/responses", responses, saidNext, `{"type":"input_file","filename":"a.pdf","file_data":"` + png + `"}`, inputGone, "input.0.content.1.file_data"},
		"responses, of a tool":     {"responses", "/v1/responses", called, saidNext, `{"type":"input_image","file_id":"` + png + `","detail":"auto"}`, inputGone, "input.2.output.1.file_id"},
		"anthropic, image":         {"anthropic", "/v1/messages", claude, chatNext, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`, chatRemoved, "messages.0.content.1.source.data"},
		"anthropic, document":      {"anthropic", "/v1/messages", claude, chatNext, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + png + `"}}`, `{"type":"document","source":{"data":"[This message was removed by the governance policy of this service.]","media_type":"text/plain","type":"text"}}`, "messages.0.content.1.source.data"},
		"anthropic, of a tool":     {"anthropic", "/v1/messages", claudeTool, chatNext, `{"type":"image","source":{"type":"url","url":"https://x.test/` + png + `"}}`, chatRemoved, "messages.2.content.0.content.1.source.url"},
		"gemini, data":             {"gemini", geminiWhole, gemini, geminiNext, `{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}`, geminiGone, "contents.0.parts.1.inlineData.data"},
		"gemini, file":             {"gemini", geminiWhole, gemini, geminiNext, `{"file_data":{"mime_type":"application/pdf","file_uri":"https://x.test/` + png + `"}}`, geminiGone, "contents.0.parts.1.file_data.file_uri"},
		"gemini, of a tool":        {"gemini", geminiWhole, geminiTool, geminiNext, `[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]`, `[]`, "contents.2.parts.0.functionResponse.parts.0.inlineData.data"},
		"ollama":                   {"ollama", "/api/chat", `{"model":"m","stream":false,"messages":[{"role":"user","content":"ATTACK","images":ATTACHED}NEXT]}`, chatNext, `["` + png + `","` + png + `"]`, `[]`, "messages.0.images.1"},
		"anthropic, in a document": {"anthropic", "/v1/messages", claude, chatNext, `{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"file","file_id":"` + png + `"}}]}}`, `{"type":"document","source":{"type":"content","content":[` + chatRemoved + `]}}`, "messages.0.content.1.source.content.0.source.file_id"},
	} {
		t.Run(name, func(t *testing.T) {
			write := func(said, attached, next string) string {
				return strings.NewReplacer("ATTACK", said, "ATTACHED", attached, "NEXT", next).Replace(test.body)
			}
			for _, config := range []string{`{}`, `{"mode":"observe"}`} {
				seen := new(recorder)
				s := newSite(t, config, func(w http.ResponseWriter, r *http.Request) error {
					seen.record(r)
					return answering(answerOfAPI(test.api))(w, r)
				})
				s.post(test.path, write(attack, test.attached, ""))
				again := write(attack, test.attached, test.next)
				s.post(test.path, again)
				got, receipt := string(seen.last().body), s.turns()[0]
				if config != `{}` {
					if got != again || len(parts(receipt, "redacted")) > 0 {
						t.Errorf("observe forwarded %s", got)
					}
					continue
				}
				if seen.count.Load() != 1 {
					t.Fatalf("%d requests reached the model", seen.count.Load())
				}
				if !strings.Contains(got, test.want) || strings.Contains(got, png) || strings.Contains(got, attack) || !json.Valid([]byte(got)) {
					t.Errorf("forwarded %s", got)
				}
				if redacted, skipped := strings.Join(parts(receipt, "redacted"), " "), parts(receipt, "skipped"); !strings.Contains(redacted, test.listed) || len(skipped) > 0 {
					t.Errorf("redacted %v, skipped %v", redacted, skipped)
				}
				s.post(test.path, write("What is on it?", test.attached, test.next))
				if got := string(seen.last().body); got != write("What is on it?", test.attached, test.next) {
					t.Errorf("of a message that was not refused, it forwarded %s", got)
				}
			}
		})
	}
}

// Of a message of which only the result of one tool is taken out, the images of the other
// results and the user's own stay.
func TestAttachmentsBesideARemovedResultStay(t *testing.T) {
	picture := func(name string) string {
		return `{"type":"image","source":{"type":"url","url":"https://x.test/` + name + `"}}`
	}
	result := func(id, text, image string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","content":[{"type":"text","text":` + quote(text) + `},` + picture(image) + `]}`
	}
	first := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Look."},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}},{"type":"tool_use","id":"u","name":"f","input":{}}]},{"role":"user","content":[` +
		result("t", poison, "poisoned") + `,` + result("u", "It is sunny.", "sunny") + `,` + picture("own") + `]}`
	seen := new(recorder)
	model := func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering(answerOfAPI("anthropic"))(w, r)
	}
	lenient := newSite(t, `{"tool_results":"redact"}`, model)
	strict := newSiteWith(t, `{}`, map[string]any{"store": map[string]any{"engine": "faulty", "path": lenient.path}}, model)
	lenient.post("/v1/messages", first+`]}`)
	for _, s := range []*site{lenient, strict} {
		s.post("/v1/messages", first+`,{"role":"assistant","content":[{"type":"text","text":"I look."}]},{"role":"user","content":"And the date?"}]}`)
	}
	for _, r := range seen.requests {
		if got := string(r.body); strings.Contains(got, "x.test/poisoned") || !strings.Contains(got, "x.test/sunny") || !strings.Contains(got, "x.test/own") || strings.Count(got, removed) != 2 {
			t.Errorf("forwarded %s", got)
		}
	}
	if len(seen.requests) != 3 {
		t.Errorf("%d requests reached the model", len(seen.requests))
	}
	warning := newSite(t, `{"tool_results":"annotate"}`, model)
	warning.post("/v1/messages", first+`]}`)
	if got := string(seen.last().body); !strings.Contains(got, "x.test/poisoned") || !strings.Contains(got, toolWarned) {
		t.Errorf("annotate forwarded %s", got)
	}
}
