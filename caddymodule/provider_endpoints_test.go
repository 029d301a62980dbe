package caddymodule_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
)

// calls are requests to endpoints of providers that are no calls of a model. TEXT is
// where a text stands.
var calls = []struct {
	path, endpoint, family string
	carries                string // what is said of the answer in the receipt
	body                   string
	headers                []string
}{
	{"/v1/embeddings", "openai_embeddings", "openai", "nothing", `{"model":"m","input":["First text of two.","TEXT"]}`, nil},
	{"/openai/deployments/ada/embeddings", "openai_embeddings", "openai", "nothing", `{"input":"TEXT"}`, nil},
	{"/embeddings?api-version=2024-05-01-preview", "openai_embeddings", "openai", "nothing", `{"model":"m","input":["TEXT"]}`, nil},
	{"/models/embeddings?api-version=2024-05-01-preview", "openai_embeddings", "openai", "nothing", `{"model":"m","input":["TEXT"]}`, nil},
	{"/v1/images/generations", "openai_images", "openai", "image", `{"model":"m","prompt":"TEXT"}`, nil},
	{"/v1/audio/speech", "openai_speech", "openai", "audio", `{"model":"m","voice":"alloy","input":"TEXT"}`, nil},
	{"/v1/batches", "openai_batches", "openai", "nothing", `{"input_file_id":"f","metadata":{"note":"TEXT"}}`, nil},
	{"/v1/assistants/a1", "openai_assistants", "openai", "nothing", `{"metadata":{"a":"TEXT"}}`, nil},
	{"/v1/threads/t1/messages", "openai_threads", "openai", "text", `{"role":"user","content":"TEXT"}`, nil},
	{"/v1/threads/runs", "openai_threads", "openai", "text", `{"assistant_id":"a","thread":{"messages":[{"role":"user","content":"TEXT"}]}}`, nil},
	{"/v1/vector_stores/v1/search", "openai_vector_stores", "openai", "nothing", `{"query":"TEXT"}`, nil},
	{"/v1/conversations/c1/items", "openai_conversations", "openai", "text", `{"items":[{"type":"message","role":"user","content":"TEXT"}]}`, nil},
	{"/v1/responses/compact", "openai_compact", "openai", "text", `{"model":"m","input":[{"role":"user","content":"TEXT"}]}`, nil},
	{"/v1/evals/e/runs", "openai_evals", "openai", "text", `{"name":"n","data_source":{"source":{"content":[{"item":{"q":"TEXT"}}]}}}`, nil},
	{"/v1/fine_tuning/jobs", "openai_fine_tuning", "openai", "nothing", `{"model":"m","training_file":"f","suffix":"TEXT"}`, nil},
	{"/v1/messages/batches", "anthropic_batches", "anthropic", "nothing", `{"requests":[{"custom_id":"1","params":{"messages":[{"role":"user","content":"TEXT"}]}}]}`, nil},
	{"/v1/files", "anthropic_files", "anthropic", "nothing", `TEXT`, []string{"Content-Type", "text/plain", "Anthropic-Version", "2023-06-01"}},
	{"/v1/complete", "anthropic_complete", "anthropic", "text", `{"model":"m","prompt":"TEXT"}`, nil},
	{"/v1beta/models/m:batchEmbedContents", "gemini_embeddings", "gemini", "nothing", `{"requests":[{"content":{"parts":[{"text":"TEXT"}]}}]}`, nil},
	{"/v1beta/models/m:batchGenerateContent", "gemini_batches", "gemini", "nothing", `{"batch":{"input_config":{"requests":{"requests":[{"request":{"contents":[{"parts":[{"text":"TEXT"}]}]}}]}}}}`, nil},
	{"/v1beta/cachedContents", "gemini_caches", "gemini", "nothing", `{"contents":[{"role":"user","parts":[{"text":"TEXT"}]}]}`, nil},
	{"/v1beta/interactions", "gemini_interactions", "gemini", "text", `{"model":"m","input":"TEXT"}`, nil},
	{"/v1/projects/p/locations/l/publishers/google/models/m:predict", "gemini_predict", "gemini", "text", `{"instances":[{"prompt":"TEXT"}]}`, nil},
	{"/api/embed", "ollama_embeddings", "ollama", "nothing", `{"model":"m","input":"TEXT"}`, nil},
	{"/api/create", "ollama_create", "ollama", "nothing", `{"model":"m","from":"x","template":"TEXT"}`, nil},
	{"/api/show", "ollama_models", "ollama", "nothing", `{"model":"m","note":"TEXT"}`, nil},
	{"/model/meta.llama3:0/invoke", "bedrock_invoke", "bedrock", "text", `{"messages":[{"role":"user","content":"TEXT"}]}`, nil},
	{"/model/amazon.titan/invoke-with-response-stream", "bedrock_invoke", "bedrock", "text", `{"inputText":"TEXT"}`, nil},
}

// messageIn is where each family's SDKs find the message of an error.
var messageIn = map[string]string{"openai": "error.message", "anthropic": "error.message", "gemini": "error.message", "ollama": "error", "bedrock": "message"}

// isShaped reports whether an error has its family's shape.
func isShaped(family, body, message string) bool {
	shape := map[string]string{"openai": "error.code", "anthropic": "error.type", "gemini": "error.status", "ollama": "error", "bedrock": "__type"}[family]
	return gjson.Valid(body) && gjson.Get(body, shape).Type == gjson.String && strings.Contains(gjson.Get(body, messageIn[family]).Str, message) &&
		(family != "anthropic" || gjson.Get(body, "type").Str == "error")
}

// What is said on the paths beside the calls is read; an attack is an error that the
// SDK of that path understands and does not repeat.
func TestProviderEndpoints(t *testing.T) {
	const question = "Could you please tell me how the weather in Paris will be tomorrow?"
	for _, call := range calls {
		s, seen := listening(t, `{}`)
		w := s.post(call.path, strings.Replace(call.body, "TEXT", attack, 1), call.headers...)
		if w.Code != http.StatusForbidden || seen.count.Load() != 0 || w.Header().Get("X-Should-Retry") != "false" ||
			!isShaped(call.family, w.Body.String(), "declined by the governance policy") {
			t.Errorf("%s: %d %v %s", call.path, w.Code, w.Header(), w.Body)
		}
		receipt := s.receipts()[0]
		if receipt["endpoint"] != call.endpoint || receipt["outcome"] != "refused" || receipt["coverage"].(map[string]any)["bytes_forwarded"] != 0.0 {
			t.Errorf("%s: %v", call.path, receipt)
		}

		asked := strings.Replace(call.body, "TEXT", question, 1)
		w = s.post(call.path, asked, call.headers...)
		if w.Code != http.StatusOK || seen.count.Load() != 1 || string(seen.last().body) != asked {
			t.Errorf("%s: a question: %d %s", call.path, w.Code, w.Body)
		}
		coverage := s.receipts()[0]["coverage"].(map[string]any)
		told := w.Header().Get("X-Lex-Uninspected") == "answer"
		if coverage["bytes_inspected"] == 0.0 || answerIn(coverage) != call.carries || told != (call.carries != "nothing") {
			t.Errorf("%s: header %t, coverage %v", call.path, told, coverage)
		}

		for unknown, want := range map[string]int{"observe": http.StatusOK, "pass": http.StatusOK, "block": http.StatusForbidden} {
			s, seen := listening(t, `{"unknown":"`+unknown+`"}`)
			w := s.post(call.path, asked, call.headers...)
			if w.Code != want || (want != http.StatusOK) != (seen.count.Load() == 0) || want != http.StatusOK && !isShaped(call.family, w.Body.String(), "not governed here") {
				t.Errorf("%s with unknown %s: %d %s", call.path, unknown, w.Code, w.Body)
			}
		}
	}
}

// answerIn is what a coverage says of an answer that nobody read.
func answerIn(coverage map[string]any) string {
	for list, what := range map[string]string{"unknown": "text", "skipped": ""} {
		for _, part := range coverage[list].([]any) {
			p := part.(map[string]any)
			switch why := p["why"].(string); {
			case p["part"] != "response":
			case what != "":
				return what
			case why == "carries no text of a model":
				return "nothing"
			default:
				kind, _, _ := strings.Cut(why, ":")
				return kind
			}
		}
	}
	return ""
}

var watched = map[string]string{
	"/v1/moderations":                  `{"input":"TEXT"}`,
	"/v1/chat/moderations":             `{"model":"mistral-moderation-latest","input":[{"role":"user","content":"TEXT"}]}`,
	"/v1/messages/count_tokens":        `{"model":"m","messages":[{"role":"user","content":"TEXT"},{"role":"assistant","content":"No."},{"role":"user","content":"Hello."}]}`,
	"/v1/responses/input_tokens":       `{"model":"m","input":"TEXT"}`,
	"/v1beta/models/m:countTokens":     `{"contents":[{"parts":[{"text":"TEXT"}]}]}`,
	"/tokenize":                        `{"prompt":"TEXT"}`,
	"/v1beta/models/m%3AcountTokens":   `{"contents":[{"parts":[{"text":"TEXT"}]}]}`,
	"/model/a.claude-3:0/count-tokens": `{"input":{"converse":{"messages":[{"content":[{"text":"TEXT"}]}]}}}`,

	"/model/anthropic.claude-3-5-haiku-20241022-v1%3A0/count-tokens":                             `{"input":{"converse":{"messages":[{"content":[{"text":"TEXT"}]}]}}}`, // as AWS's SDKs write it
	"/v1/projects/p/locations/us-east5/publishers/anthropic/models/count-tokens:rawPredict":      `{"model":"m","messages":[{"role":"user","content":"TEXT"}]}`,
	"/base/v1/projects/p/locations/global/publishers/Anthropic/models/count-tokens%3arawPredict": `{"model":"m","messages":[{"role":"user","content":"TEXT"}]}`,
}

// An application that counts tokens or moderates is not broken by what its users say,
// and what they say there is recorded but is no turn of a conversation.
func TestWatchedEndpoints(t *testing.T) {
	for path, body := range watched {
		body := strings.Replace(body, "TEXT", attack, 1)
		for unknown, want := range map[string]struct {
			read     bool
			receipts int
		}{"inspect": {true, 1}, "block": {true, 1}, "observe": {false, 1}, "pass": {false, 0}} {
			s, seen := listening(t, `{"unknown":"`+unknown+`"}`)
			w := s.post(path, body, "X-Lex-Session", "s1")
			if w.Code != http.StatusOK || seen.count.Load() != 1 || string(seen.last().body) != body || w.Header().Get("X-Lex-Uninspected") != "" {
				t.Errorf("%s %s: %d %v %s", path, unknown, w.Code, w.Header(), w.Body)
			}
			receipts := s.receipts()
			if len(receipts) != want.receipts {
				t.Errorf("%s %s: %d receipts", path, unknown, len(receipts))
				continue
			}
			if want.receipts == 0 {
				continue
			}
			r := receipts[0]
			if r["would_refuse"] != want.read || r["refused"] != false || r["outcome"] != "answered" || answerIn(r["coverage"].(map[string]any)) != "nothing" {
				t.Errorf("%s %s: %v", path, unknown, r)
			}
			if w.Header().Get("X-Lex-Receipt-Id") != r["id"] {
				t.Errorf("%s %s: the answer does not name its receipt", path, unknown)
			}
			s.post("/v1/chat/completions", chatQuestion, "X-Lex-Session", "s1")
			if next := s.receipts()[0]; next["turn"] != 1.0 || next["session_id"] == r["session_id"] {
				t.Errorf("%s %s: the session's first turn is %v", path, unknown, next["turn"])
			}
		}
	}
}

// What is watched is let through only where nobody can take it for something else.
func TestWatchingIsNoWayAround(t *testing.T) {
	s, seen := listening(t, `{}`)
	body := `{"messages":[{"role":"user","content":"` + attack + `"}]}`
	for _, path := range []string{"/v1/chat/completions/v1/moderations", "/v1/x/../moderations", "//v1/moderations", "/v1%2Fmoderations", "/v1/chat/completions%2f..%2f..%2fmoderations"} {
		s.post(path, body)
	}
	s.post("/v1/moderations", body, "X-Original-URL", "/v1/chat/completions")
	s.post("/v1/moderations", body, "X-Rewrite-URL", "/v1/chat/completions")
	s.send(http.MethodPut, "/v1/moderations", body)
	if seen.count.Load() != 0 {
		t.Errorf("forwarded %v", seen.requests)
	}
}

// Each line of a batch file is read, wherever the attack stands.
func TestBatchFilesAreRead(t *testing.T) {
	upload := func(texts ...string) (string, string) {
		var form, lines bytes.Buffer
		for i, text := range texts {
			fmt.Fprintf(&lines, `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":%q}]}}`+"\n", i, text)
		}
		w := multipart.NewWriter(&form)
		_ = w.WriteField("purpose", "batch")
		file, _ := w.CreateFormFile("file", "batch.jsonl")
		_, _ = file.Write(lines.Bytes())
		_ = w.Close()
		return w.FormDataContentType(), form.String()
	}
	s, seen := listening(t, `{}`)
	kind, body := upload("What is the capital of France?", "How high is the Eiffel tower?")
	if w := s.post("/v1/files", body, "Content-Type", kind); w.Code != http.StatusOK || string(seen.last().body) != body {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	coverage := s.receipts()[0]["coverage"].(map[string]any)
	if coverage["bytes_inspected"] != float64(len(body)) || len(coverage["unknown"].([]any)) != 0 {
		t.Errorf("coverage %v", coverage)
	}
	for place := range 3 {
		texts := []string{"What is the capital of France?", "How high is the Eiffel tower?", "What is the capital of Italy?"}
		texts[place] = attack
		kind, body := upload(texts...)
		if w := s.post("/v1/files", body, "Content-Type", kind); w.Code != http.StatusForbidden || seen.count.Load() != 1 {
			t.Errorf("in line %d: %d %s", place, w.Code, w.Body)
		}
	}
}

// Of a form with a picture the texts are read, and the picture is counted as not read.
func TestUploadsCountWhatIsNotRead(t *testing.T) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("prompt", "Please paint the sky above the town in a brighter blue.")
	file, _ := w.CreateFormFile("image", "town.png")
	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\x01\xfe", 1000)
	_, _ = io.WriteString(file, picture)
	_ = w.Close()
	s, seen := listening(t, `{}`)
	before := metric(t, "lex_uncovered_bytes_total", "dialect", "unknown", "direction", "request", "kind", "file")
	if w := s.post("/v1/images/edits", form.String(), "Content-Type", w.FormDataContentType()); w.Code != http.StatusOK || seen.count.Load() != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	coverage := s.receipts()[0]["coverage"].(map[string]any)
	skipped := coverage["skipped"].([]any)[0].(map[string]any)
	if coverage["bytes_inspected"].(float64) > 200 || skipped["bytes"].(float64) < float64(len(picture)) || answerIn(coverage) != "image" {
		t.Errorf("coverage %v", coverage)
	}
	if n := metric(t, "lex_uncovered_bytes_total", "dialect", "unknown", "direction", "request", "kind", "file") - before; n != skipped["bytes"] {
		t.Errorf("counted %v bytes of a file, skipped %v", n, skipped["bytes"])
	}
}

// All of a form is read, also what stands around its fields and in their headers.
func TestAllOfAFormIsRead(t *testing.T) {
	const field = "--zz\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat sits on the mat and looks at the moon\r\n"
	const end = "--zz--\r\n"
	for name, body := range map[string]string{
		"nothing else":        field + end,
		"the name of a field": strings.Replace(field, `name="prompt"`, `name="`+attack+`"`, 1) + end,
		"the name of a file":  strings.Replace(field, `name="prompt"`, `name="prompt"; filename="`+attack+`"`, 1) + end,
		"a name in a code":    strings.Replace(field, `name="prompt"`, `name="prompt"; filename*=UTF-8''`+url.PathEscape(attack), 1) + end,
		"a header of its own": strings.Replace(field, "\r\n\r\n", "\r\nX-Prompt: "+attack+"\r\n\r\n", 1) + end,
		"a usual header":      strings.Replace(field, "\r\n\r\n", "\r\nContent-Type: text/plain; x=\""+attack+"\"\r\n\r\n", 1) + end,
		"before the first":    attack + "\r\n" + field + end,
		"behind the last":     field + end + attack,
		"behind what ends":    field + "--zz-- \r\n" + attack + "\r\n" + end,
	} {
		t.Run(name, func(t *testing.T) {
			s, seen := listening(t, `{}`)
			w := s.post("/v1/images/edits", body, "Content-Type", "multipart/form-data; boundary=zz")
			harmless := name == "nothing else"
			if refused := w.Code == http.StatusForbidden; refused == harmless || (seen.count.Load() == 1) != harmless {
				t.Errorf("%d, forwarded %d times: %v", w.Code, seen.count.Load(), s.receipts()[0]["coverage"])
			}
		})
	}
}

// What no detector reads is counted by dialect, direction and kind, streamed or not.
func TestUncoveredBytesAreCounted(t *testing.T) {
	image := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`
	call := strings.Replace(completion("x"), `"content":"x"`, `"content":null,"whisper":"hidden","reasoning":"I look."`, 1)
	streamed := strings.Replace(stream("Paris."), `"content":"Paris."`, `"content":"Paris.","reasoning":"I look.","whisper":"hidden"`, 1)
	for name, test := range map[string]struct {
		body, contentType, answer string
		want                      map[string]float64 // direction and kind
	}{
		"whole":    {image, "application/json", call, map[string]float64{"request image": 36, "response reasoning": 9, "response unknown": 8}},
		"streamed": {chatStreamed, "text/event-stream", streamed, map[string]float64{"response reasoning": 7}},
	} {
		s := newSite(t, `{}`, answering(test.contentType, test.answer))
		counted := func(which string) float64 {
			direction, kind, _ := strings.Cut(which, " ")
			return metric(t, "lex_uncovered_bytes_total", "dialect", "openai_chat", "direction", direction, "kind", kind)
		}
		before := make(map[string]float64)
		for which := range test.want {
			before[which] = counted(which)
		}
		unknown := counted("response unknown")
		if w := s.post("/v1/chat/completions", test.body); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for which, want := range test.want {
			if n := counted(which) - before[which]; n != want {
				t.Errorf("%s: %s: %v bytes, want %v", name, which, n, want)
			}
		}
		if counted("response unknown") == unknown {
			t.Errorf("%s: what is unknown is not counted", name)
		}
	}
}

// A stored answer that comes back is judged like a fresh one, and takes no step in the
// conversation of the one who asks for it.
func TestStoredAnswers(t *testing.T) {
	const path = "/v1/chat/completions/chatcmpl-1"
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		body := map[string]string{http.MethodPost: `{"metadata":{"note":"the answer of Monday"}}`}[method]
		s, seen := listening(t, `{}`)
		w := s.send(method, path, body, "X-Lex-Session", "s1")
		if w.Code != http.StatusOK || w.Body.String() != completion("Paris.") || string(seen.last().body) != body {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
		r := s.receipts()[0]
		coverage := r["coverage"].(map[string]any)
		if r["endpoint"] != "openai_chat_stored" || r["dialect"] != "openai_chat" || w.Header().Get("X-Lex-Receipt-Id") != r["id"] ||
			inspects(coverage, "request") != (body != "") || !inspects(coverage, "response") || len(coverage["unknown"].([]any)) != 0 {
			t.Errorf("%s: %v", method, r)
		}
		if method == http.MethodGet {
			s.post("/v1/chat/completions", chatQuestion, "X-Lex-Session", "s1")
			if next := s.receipts()[0]; next["turn"] != 1.0 {
				t.Errorf("the session's first turn is %v", next["turn"])
			}
		}

		guilty := newSite(t, `{}`, answering("application/json", completion(capitulation)))
		if w := guilty.send(method, path, body); w.Code != http.StatusOK || strings.Contains(w.Body.String(), capitulation) || gjson.Get(w.Body.String(), "choices.0.message.refusal").Str == "" {
			t.Errorf("%s: an answer that gives in: %d %s", method, w.Code, w.Body)
		}
		if r := guilty.receipts()[0]; r["outcome"] != "refused" || fmt.Sprint(r["reasons"]) != "[capitulation]" {
			t.Errorf("%s: %v", method, r)
		}
	}
	s, seen := listening(t, `{}`)
	if s.send(http.MethodPost, path, `{"metadata":{"note":"`+attack+`"}}`); seen.count.Load() != 0 {
		t.Error("an attack was forwarded")
	}
	if s.send(http.MethodDelete, path, ""); seen.count.Load() != 1 || len(s.receipts()) != 1 {
		t.Errorf("a deletion: forwarded %d times, %d receipts", seen.count.Load(), len(s.receipts()))
	}
	missing := newSite(t, `{}`, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, err := io.WriteString(w, `{"error":{"message":"No such completion."}}`)
		return err
	})
	if w := missing.send(http.MethodGet, path, ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "No such completion.") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A server has calls of its own where OpenAI has stored answers. What is asked there is read as a
// call: it takes a step in its session, and the judge of the answer knows it.
func TestCallsAmongStoredAnswers(t *testing.T) {
	const path = "/v1/chat/completions/beta"
	s, seen := listening(t, `{}`)
	if w := s.post(path, chatQuestion, "X-Lex-Session", "s1"); w.Code != http.StatusOK || w.Body.String() != completion("Paris.") || string(seen.last().body) != chatQuestion {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r := s.receipts()[0]
	coverage := r["coverage"].(map[string]any)
	if r["turn"] != 1.0 || !inspects(coverage, "request.messages") || !inspects(coverage, "response") || len(coverage["unknown"].([]any)) != 0 {
		t.Errorf("%v", r)
	}
	count := seen.count.Load()
	if w := s.post(path, chatAttack, "X-Lex-Session", "s1"); seen.count.Load() != count || gjson.Get(w.Body.String(), "choices.0.message.refusal").Str == "" {
		t.Errorf("an attack: %d %s", w.Code, w.Body)
	}
	if w := s.post("/v1/chat/completions/input_tokens", chatAttack); w.Code != http.StatusOK || seen.count.Load() != count+1 {
		t.Errorf("a count: %d %s", w.Code, w.Body)
	}
	batch := `{"model":"m","messages":[[{"role":"user","content":"Hello."}],[{"role":"user","content":"` + attack + `"}]]}`
	if w := s.post("/v1/chat/completions/batch", batch); seen.count.Load() != count+1 || w.Code < 400 {
		t.Errorf("a batch: %d %s", w.Code, w.Body)
	}
}

// inspects reports whether a coverage lists an inspected part of one direction.
func inspects(coverage map[string]any, direction string) bool {
	for _, p := range coverage["inspected"].([]any) {
		if strings.HasPrefix(p.(map[string]any)["part"].(string), direction) {
			return true
		}
	}
	return false
}

// Whatever goes wrong on a provider's path, its SDK can read the error, and is told not
// to repeat what would fail again.
func TestErrorsOfProviderEndpoints(t *testing.T) {
	for _, call := range calls {
		body := strings.Replace(call.body, "TEXT", "Could you please tell me about the weather in Paris?", 1)
		check := func(what string, s *site, want int, retry string, headers ...string) {
			t.Helper()
			w := s.post(call.path, body, append(headers, call.headers...)...)
			if w.Code != want || !isShaped(call.family, w.Body.String(), "") || w.Header().Get("X-Should-Retry") != retry || strings.Contains(w.Body.String(), "canary") {
				t.Errorf("%s, %s: %d %v %s", call.path, what, w.Code, w.Header(), w.Body)
			}
		}
		ok := answering("application/json", `{}`)

		s := newSiteWith(t, `{}`, map[string]any{"limits": map[string]any{"intercepted": map[string]any{"requests": 1, "window": 60e9}}}, ok)
		s.post(call.path, body, call.headers...)
		check("too often", s, http.StatusTooManyRequests, "")

		s = newSiteWith(t, `{}`, map[string]any{"limits": map[string]any{"body": 10}}, ok)
		check("too large", s, http.StatusRequestEntityTooLarge, "false")

		check("without a key", newSite(t, `{"require_key":true}`, ok), http.StatusUnauthorized, "false")
		check("with a wrong key", newSite(t, `{}`, ok), http.StatusUnauthorized, "false", "X-Lex-Api-Key", "canary")

		s = newSite(t, `{}`, ok)
		s.breakStore()
		check("the store is down", s, http.StatusServiceUnavailable, "")

		for status, retry := range map[int]string{http.StatusNotFound: "false", http.StatusBadGateway: ""} {
			s = newSite(t, `{}`, func(http.ResponseWriter, *http.Request) error {
				return caddyhttp.Error(status, fmt.Errorf("canary-address"))
			})
			check("upstream fails", s, status, retry)
		}
	}
	s, key := planSiteWith(t, `{}`, 1, answering("application/json", `{}`))
	s.post("/v1/embeddings", `{"input":"Hello there."}`, "X-Lex-Api-Key", key)
	w := s.post("/v1/embeddings", `{"input":"Hello there."}`, "X-Lex-Api-Key", key)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("X-Should-Retry") != "false" || w.Header().Get("Retry-After") == "" {
		t.Errorf("a plan that is used up for days: %d %v", w.Code, w.Header())
	}
}

// Where the texts of a body are read, what is not in it is listed: images by their address,
// files and answers by their id. So are texts as tokens.
func TestReferencesAreListed(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", `{}`))
	const question = `"What do you see in this picture of Paris?"`
	for _, c := range []struct{ path, body, skipped string }{
		{"/v1/conversations/c1/items", `{"items":[{"type":"message","role":"user","content":[{"type":"input_text","text":` + question + `},{"type":"input_image","image_url":"https://a.example/i.png"},{"type":"input_file","file_id":"file-1"}]}]}`, "image|file"},
		{"/v1/responses/compact", `{"model":"m","input":` + question + `,"previous_response_id":"resp_1"}`, "stored"},
		{"/v1/messages/batches", `{"requests":[{"custom_id":"1","params":{"messages":[{"role":"user","content":[{"type":"text","text":` + question + `},{"type":"image","source":{"type":"url","url":"https://a.example/i.png"}}]}]}}]}`, "file"},
		{"/v1beta/models/m:batchGenerateContent", `{"batch":{"input_config":{"requests":{"requests":[{"request":{"contents":[{"parts":[{"text":` + question + `},{"fileData":{"fileUri":"gs://b/i.png"}}]}]}}]}}}}`, "file"},
		{"/v1/batches", `{"input_file_id":"file-1","metadata":{"note":` + question + `}}`, "file"},
		{"/v1/threads/runs", `{"assistant_id":"a","thread":{"messages":[{"role":"user","content":` + question + `}]}}`, "stored"},
		{"/v1/embeddings", `{"input":[[1,2],[3]],"note":` + question + `}`, "tokens"},
		{"/inference/v1/generate", `{"token_ids":[1,2,3],"sampling_params":{"stop":[` + question + `]}}`, "tokens"},
		{"/generate", `{"input_embeds":[[0.1,-2e-3],[3,4]],"sampling_params":{"stop":` + question + `}}`, "tokens"},
		{"/v1/anything", `{"question":` + question + `,"image_url":"https://a.example/i.png"}`, "image"},
		{"/v1/conversations", `{"agent_id":"ag_1","inputs":` + question + `,"tools":[{"type":"document_library","library_ids":["l1"]}]}`, "stored|file"},
		{"/v1beta/interactions", `{"model":"m","input":` + question + `,"tools":[{"type":"file_search","file_search_store_names":["fileSearchStores/s"]}]}`, "file"},
		{"/v1/embeddings", `{"input":` + question + `}`, ""},
	} {
		s.post(c.path, c.body)
		coverage := s.receipts()[0]["coverage"].(map[string]any)
		var skipped []string
		bytes := 0.0
		for _, p := range coverage["skipped"].([]any) {
			if p := p.(map[string]any); p["part"] == "request" {
				skipped, bytes = append(skipped, p["why"].(string)), bytes+p["bytes"].(float64)
			}
		}
		if strings.Join(skipped, "|") != c.skipped || (bytes > 0) != (c.skipped != "") || coverage["bytes_inspected"].(float64)+bytes != float64(len(c.body)) {
			t.Errorf("%s: %v", c.path, coverage)
		}
	}
}

// A body with nothing but single words is listed, with the reason that its known endpoint
// gives: an unknown one has no dialect either.
func TestSingleWordsAreListed(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", `{}`))
	for _, c := range []struct{ path, body, why string }{
		{"/v1/embeddings", `{"model":"m","input":"hello"}`, "no text but single words: application/json"},
		{"/v1/embeddings", `{"model":"m","input":[1,2]}`, "no text but single words: application/json"},
		{"/v1/embeddings", `{"input":[[1,2]]}`, "no text but single words: application/json"},
		{"/v1/anything", `{"input":"hello"}`, "no dialect for this endpoint: application/json"},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://site.test"+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		s.serve(httptest.NewRecorder(), r)
		receipt := s.receipts()[0]
		unknown, _ := receipt["coverage"].(map[string]any)["unknown"].([]any)
		if len(unknown) == 0 || unknown[0].(map[string]any)["why"] != c.why || receipt["pre_eval_label"] != "UNASSESSED" {
			t.Errorf("%s %s: %v, %v", c.path, c.body, receipt["pre_eval_label"], unknown)
		}
	}
}
