package caddymodule_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/caddymodule"
)

// attackedAPIs are the dialects whose answers are streamed, with how each asks, says a
// quoted text in a frame, ends, and says it in a whole answer.

var attackedAPIs = []struct {
	name, path, request, contentType string
	frame                            func(text string) string
	end                              string
	whole                            func(text string) string
}{
	{
		"chat", "/v1/chat/completions", chatStreamed, "text/event-stream",
		func(t string) string {
			return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", t)
		},
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		func(t string) string {
			return fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, t)
		},
	},
	{
		"completions", "/v1/completions", `{"model":"m","stream":true,"prompt":"What is the capital of France?"}`, "text/event-stream",
		func(t string) string {
			return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"text\":%s,\"finish_reason\":null}]}\n\n", t)
		},
		"data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		func(t string) string {
			return fmt.Sprintf(`{"choices":[{"index":0,"text":%s,"finish_reason":"stop"}]}`, t)
		},
	},
	{
		"responses", "/v1/responses", `{"model":"m","stream":true,"input":"What is the capital of France?"}`, "text/event-stream",
		func(t string) string {
			return fmt.Sprintf("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":%s}\n\n", t)
		},
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n",
		func(t string) string {
			return fmt.Sprintf(`{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}]}`, t)
		},
	},
	{
		"anthropic", "/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"What is the capital of France?"}]}`, "text/event-stream",
		func(t string) string {
			return fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n", t)
		},
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		func(t string) string {
			return fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":%s}],"stop_reason":"end_turn"}`, t)
		},
	},
	{
		"gemini", "/v1beta/models/x:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"What is the capital of France?"}]}]}`, "text/event-stream",
		func(t string) string {
			return fmt.Sprintf("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":%s}]}}]}\n\n", t)
		},
		"data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
		func(t string) string {
			return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%s}]},"finishReason":"STOP"}]}`, t)
		},
	},
	{
		"gemini array", "/v1beta/models/x:streamGenerateContent", `{"contents":[{"parts":[{"text":"What is the capital of France?"}]}]}`, "application/json",
		func(t string) string {
			return fmt.Sprintf("[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":%s}]}}]}\n,\n", t)
		},
		"{\"candidates\":[{\"finishReason\":\"STOP\"}]}]",
		func(t string) string {
			return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%s}]},"finishReason":"STOP"}]}`, t)
		},
	},
	{
		"bedrock", converseStream, saidToBedrock("What is the capital of France?"), amazonType,
		func(t string) string { return amazonStream(bedrockDelta(0, `{"text":`+t+`}`)) },
		amazonStream("messageStop {\"stopReason\":\"end_turn\"}\n" + bedrockMetadata),
		func(t string) string {
			return fmt.Sprintf(`{"output":{"message":{"role":"assistant","content":[{"text":%s}]}},"stopReason":"end_turn"}`, t)
		},
	},
	{
		"ollama", "/api/chat", `{"model":"m","messages":[{"role":"user","content":"What is the capital of France?"}]}`, "application/x-ndjson",
		func(t string) string {
			return fmt.Sprintf("{\"message\":{\"role\":\"assistant\",\"content\":%s},\"done\":false}\n", t)
		},
		"{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
		func(t string) string {
			return fmt.Sprintf(`{"message":{"role":"assistant","content":%s},"done":true}`, t)
		},
	},
	{
		"ollama generate", "/api/generate", `{"model":"m","prompt":"What is the capital of France?"}`, "application/x-ndjson",
		func(t string) string { return fmt.Sprintf("{\"response\":%s,\"done\":false}\n", t) },
		"{\"response\":\"\",\"done\":true,\"done_reason\":\"stop\"}\n",
		func(t string) string { return fmt.Sprintf(`{"response":%s,"done":true}`, t) },
	},
}

// quote is a text in JSON.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// However upstream spells or frames an answer that gives in, not a word of it leaves, in
// any dialect, and the call has one receipt.
func TestOddAnswersOfEveryDialect(t *testing.T) {
	guilty := quote(capitulation)
	escaped := strings.ReplaceAll(guilty, "r", `\u0072`)
	for _, api := range attackedAPIs {
		whole := api.frame(guilty) + api.end
		begun := api.frame(quote("Paris. ")) + api.end
		unterminated := strings.TrimRight(api.frame(guilty), "\n")
		tests := map[string]struct{ contentType, body string }{
			"as it should be":         {api.contentType, whole},
			"lines in CR":             {api.contentType, strings.ReplaceAll(whole, "\n", "\r")},
			"lines in CRLF":           {api.contentType, strings.ReplaceAll(whole, "\n", "\r\n")},
			"a byte order mark":       {api.contentType, "\xef\xbb\xbf" + whole},
			"escapes":                 {api.contentType, api.frame(escaped) + api.end},
			"behind the end":          {api.contentType, begun + api.frame(guilty)},
			"a second answer":         {api.contentType, begun + whole},
			"a cut frame behind it":   {api.contentType, begun + unterminated},
			"no end":                  {api.contentType, api.frame(guilty)},
			"no end, cut":             {api.contentType, unterminated},
			"UTF-16, named":           {api.contentType + "; charset=utf-16le", widen(whole, 2)},
			"UTF-16":                  {"application/json", widen(api.whole(guilty), 2)},
			"UTF-32":                  {"application/json", widen(api.whole(guilty), 4)},
			"JSON in lines of fields": {api.contentType, strings.ReplaceAll(api.whole(guilty), ",", ",\n") + "\n\n" + api.end},
		}
		if api.contentType == amazonType {
			delete(tests, "UTF-16, named") // an encoding in binary has no charset
		}
		for _, contentType := range []string{"", "text/event-stream", "application/json", "application/x-ndjson", "text/plain", "application/octet-stream"} {
			tests["a stream as "+contentType] = struct{ contentType, body string }{contentType, whole}
			tests["an answer as "+contentType] = struct{ contentType, body string }{contentType, api.whole(guilty)}
			tests["behind other bytes as "+contentType] = struct{ contentType, body string }{contentType, ")]}'\n" + api.whole(escaped)}
			tests["as a call, as "+contentType] = struct{ contentType, body string }{contentType, "f(" + api.whole(escaped) + ");"}
		}
		for name, test := range tests {
			for _, piece := range []int{1, len(test.body)} {
				s := newSite(t, `{}`, inPieces(test.contentType, test.body, piece))
				out := s.post(api.path, api.request).Body.String()
				if plain := strings.ReplaceAll(out, "\x00", ""); strings.Contains(plain, "restrictions") || strings.Contains(plain, `\u0072estrictions`) {
					t.Errorf("%s, %s, in pieces of %d: %q", api.name, name, piece, out)
				}
				if n := len(s.receipts()); n != 1 {
					t.Errorf("%s, %s: %d receipts", api.name, name, n)
				}
			}
		}
	}
}

// An answer that gives in word by word is judged as clients put it together, also if each frame
// has something by which its dialect cannot read it and which clients pass over.
func TestFramesThatAreNoneAreAssembled(t *testing.T) {
	for _, api := range attackedAPIs {
		for name, spoiled := range map[string]string{
			"a member twice": `{"zz":1,"zz":2,`, "no UTF-8": "{\"zz\":\"\xff\",", "half a pair": `{"zz":"\ud800",`,
			"a NUL": `{"zz":"\u0000",`, "a prototype": `{"zz":{"__proto__":1},`,
		} {
			var body strings.Builder
			for i, word := range strings.SplitAfter(capitulation, " ") {
				frame := api.frame(quote(word))
				if i > 0 {
					frame = strings.TrimPrefix(frame, "[")
				}
				if api.contentType == amazonType {
					frame = caddymodule.Rewritten(frame, `{"contentBlockIndex"`, spoiled+`"contentBlockIndex"`)
				} else {
					frame = strings.Replace(frame, "{", spoiled, 1)
				}
				body.WriteString(frame)
			}
			s := newSite(t, `{}`, answering(api.contentType, body.String()+api.end))
			if out := s.post(api.path, api.request).Body.String(); strings.Contains(out, "restrictions") {
				t.Errorf("%s, %s: %q", api.name, name, out)
			}
			if r := s.receipts()[0]; r["outcome"] != "refused" || len(r["coverage"].(map[string]any)["unknown"].([]any)) == 0 {
				t.Errorf("%s, %s: %v, %v", api.name, name, r["outcome"], r["coverage"])
			}
		}
	}
}

// inPieces is a model that writes one answer in pieces of some bytes.
func inPieces(contentType, body string, size int) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		for piece := range slices.Chunk([]byte(body), size) {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}
}

// widen encodes a text of ASCII in UTF-16 or UTF-32, by the bytes of a character.
func widen(s string, size int) string {
	out := make([]byte, size*len(s))
	for i := range len(s) {
		out[size*i] = s[i]
	}
	return string(out)
}

// An error that stands beside an answer is not read, and the receipt says so.
func TestErrorsBesideAnAnswerAreListed(t *testing.T) {
	for _, api := range attackedAPIs {
		body := strings.TrimSuffix(api.whole(quote("Paris.")), "}") + `,"error":{"message":` + quote(capitulation) + `}}`
		s := newSite(t, `{}`, answering("application/json", body))
		s.post(api.path, api.request)
		coverage := s.receipts()[0]["coverage"].(map[string]any)
		listed := 0.0
		for _, list := range []string{"skipped", "unknown"} {
			for _, part := range coverage[list].([]any) {
				listed += part.(map[string]any)["bytes"].(float64)
			}
		}
		if listed < float64(len(capitulation)) {
			t.Errorf("%s: %v", api.name, coverage)
		}
	}
}

// What a model says behind the end of its answer does not leave, even where nobody could
// read it: no receipt would list it.
func TestImagesBehindTheEnd(t *testing.T) {
	const image = "iVBORw0KGgoAAAANSUhEUg"
	for path, late := range map[string]string{
		"/v1/chat/completions":                   `data: {"choices":[{"index":0,"delta":{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}}]}` + "\n\n",
		"/v1beta/models/x:streamGenerateContent": `,{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + image + `"}}]}}]}`,
		"/api/chat":                              `{"message":{"role":"assistant","images":["` + image + `"]},"done":false}` + "\n",
		"/api/generate":                          `{"image":"` + image + `","done":false}` + "\n",
	} {
		for _, api := range attackedAPIs {
			if api.path != path {
				continue
			}
			s := newSite(t, `{}`, answering(api.contentType, api.frame(quote("Paris. "))+api.end+late))
			if w := s.post(api.path, api.request); strings.Contains(w.Body.String(), image) || !strings.Contains(w.Body.String(), "Paris") {
				t.Errorf("%s: %s", api.name, w.Body)
			}
		}
	}
}

// A member behind the end that the dialect does not know is in no receipt, so it does not
// leave. What stands beside it leaves as it came.
func TestUnknownMembersBehindTheEnd(t *testing.T) {
	const (
		note  = `"note":"LATE"`
		usage = `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"total_tokens":7}`
		done  = "data: [DONE]\n\n"
	)
	claude, stop := claudeStart+claudeText(0, "Paris.")+claudeEnd("end_turn"), "event: message_stop"
	claudeBefore, claudeStop, _ := strings.Cut(claude, stop)
	chat := strings.TrimSuffix(stream("Paris."), done)
	gemini := `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Paris."}]},"finishReason":"STOP"}]}` + "\n\n"
	ollama := `{"model":"m","message":{"role":"assistant","content":"Paris."},"done":true,"done_reason":"stop"}` + "\n"
	for name, test := range map[string]struct{ path, request, contentType, body, want string }{
		"citations beside the usage":    {"/v1/chat/completions", chatStreamed, "text/event-stream", chat + "data: " + usage + `,"citations":["LATE"]}` + "\n\n" + done, chat + "data: " + usage + "}\n\n" + done},
		"a name of the event":           {"/v1/chat/completions", chatStreamed, "text/event-stream", chat + "event: LATE\ndata: " + usage + "}\n\n" + done, chat + "data: " + usage + "}\n\n" + done},
		"the usage alone":               {"/v1/chat/completions", chatStreamed, "text/event-stream", chat + "data: " + usage + "}\n\n" + done, chat + "data: " + usage + "}\n\n" + done},
		"nothing that is known":         {"/v1/chat/completions", chatStreamed, "text/event-stream", chat + "data: {" + note + "}\n\n" + done, chat + done},
		"behind the end mark":           {"/v1/chat/completions", chatStreamed, "text/event-stream", chat + done + "data: {" + note + "}\n\n", chat + done},
		"in a choice":                   {"/v1/chat/completions", chatStreamed, "text/event-stream", chat + `data: {"choices":[{"index":0,"delta":{},` + note + "}]}\n\n" + done, chat + done},
		"a line of Ollama":              {"/api/chat", `{"model":"m","messages":[{"role":"user","content":"What is the capital of France?"}]}`, "application/x-ndjson", ollama + `{"model":"m",` + note + `,"done":true}` + "\n", ollama + `{"model":"m","done":true}` + "\n"},
		"a ping of Anthropic":           {"/v1/messages", claudeStreamed, "text/event-stream", claude + claudeFrame("ping", note), claude + claudeFrame("ping", "")},
		"before Anthropic's last event": {"/v1/messages", claudeStreamed, "text/event-stream", claudeBefore + claudeFrame("ping", note) + stop + claudeStop, claudeBefore + claudeFrame("ping", "") + stop + claudeStop},
		"a sign of life of Responses": {
			"/v1/responses", replyStreamed, "text/event-stream", replyStream([]string{"Paris."}) + `data: {"type":"keepalive","sequence_number":99,` + note + "}\n\n",
			replyStream([]string{"Paris."}) + `data: {"type":"keepalive","sequence_number":99}` + "\n\n",
		},
		"before Gemini's end, with a receipt": {"/v1beta/models/x:streamGenerateContent?alt=sse", geminiQuestion, "text/event-stream", gemini + "data: {" + note + "}\n\n", gemini + "data: {" + note + "}\n\n"},
	} {
		for _, unknown := range []string{"inspect", "block"} {
			s := newSite(t, `{"unknown":"`+unknown+`"}`, answering(test.contentType, test.body))
			got, _ := withoutComments(s.post(test.path, test.request).Body.String())
			listed := len(s.receipts()[0]["coverage"].(map[string]any)["unknown"].([]any)) > 0
			if strings.Contains(got, "LATE") && (!listed || unknown == "block") || !listed && got != test.want {
				t.Errorf("%s, unknown %s, listed %v: %s", name, unknown, listed, got)
			}
		}
		s := newSite(t, `{"mode":"observe"}`, answering(test.contentType, test.body))
		if got, _ := withoutComments(s.post(test.path, test.request).Body.String()); got != test.body {
			t.Errorf("%s, observed: %s", name, got)
		}
	}
}

// Tokens tell an answer again. Where they come before it, they leave with it, and of an answer
// that is refused they do not.
func TestTokensBeforeTheirText(t *testing.T) {
	each := func(text, before, behind string) string {
		var list []string
		for _, word := range strings.SplitAfter(text, " ") {
			list = append(list, before+quote(word)+behind)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	tokens := func(text string) string { return each(text, `{"token":`, `,"logprob":-1,"top_logprobs":[]}`) }
	for _, api := range attackedAPIs {
		early := map[string]func(text string) string{
			"/v1/chat/completions": func(text string) string {
				return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":""},"logprobs":{"content":` + tokens(text) + `},"finish_reason":null}]}` + "\n\n"
			},
			"/v1/completions": func(text string) string {
				return `data: {"id":"c1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","logprobs":{"tokens":` + each(text, "", "") + `},"finish_reason":null}]}` + "\n\n"
			},
			"/v1/responses": func(text string) string {
				return `data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"","logprobs":` + tokens(text) + "}\n\n"
			},
			"/v1beta/models/x:streamGenerateContent?alt=sse": func(text string) string {
				return `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":""}]},"logprobsResult":{"chosenCandidates":` + tokens(text) + "}}]}\n\n"
			},
			"/api/chat": func(text string) string {
				return `{"model":"m","message":{"role":"assistant","content":""},"done":false,"logprobs":` + tokens(text) + "}\n"
			},
		}[api.path]
		if early == nil {
			continue
		}
		for _, text := range []string{capitulation, "Paris is the capital of France, and lies on the Seine."} {
			body := early(text)
			for _, word := range strings.SplitAfter(text, " ") {
				body += api.frame(quote(word))
			}
			body += api.end
			s := newSite(t, `{}`, answering(api.contentType, body))
			got, _ := withoutComments(s.post(api.path, api.request).Body.String())
			refused := s.receipts()[0]["refused"].(bool)
			switch {
			case refused != (text == capitulation):
				t.Errorf("%s: refused %v: %s", api.name, refused, text)
			case refused && (strings.Contains(got, "DAN") || strings.Contains(got, "restrictions")):
				t.Errorf("%s: %s", api.name, got)
			case !refused && got != body:
				t.Errorf("%s: not as it came: %s", api.name, got)
			}
		}
	}
}

// What a stream carries that nobody reads is listed with its size, as in a whole answer.
func TestStreamsListSizes(t *testing.T) {
	data := strings.Repeat("A", 3000)
	for path, frame := range map[string]string{
		"/v1/chat/completions": `data: {"choices":[{"index":0,"delta":{"audio":{"id":"a","data":"` + data + `"}},"finish_reason":null}]}` + "\n\n",
		"/v1/responses":        `data: {"type":"response.image_generation_call.partial_image","output_index":1,"partial_image_b64":"` + data + `"}` + "\n\n",
		"/v1/messages":         claudeBlock(1, `{"type":"redacted_thinking","data":"`+data+`"}`),
		"/v1beta/models/x:streamGenerateContent?alt=sse": `data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}]}}]}` + "\n\n",
		"/v1beta/models/x:streamGenerateContent":         `[{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}]}}]},`,
		"/api/chat":                                      `{"message":{"role":"assistant","images":["` + data + `"]},"done":false}` + "\n",
		"/api/generate":                                  `{"image":"` + data + `","done":false}` + "\n",
	} {
		for _, api := range attackedAPIs {
			if api.path != path {
				continue
			}
			s := newSite(t, `{}`, answering(api.contentType, frame+strings.TrimPrefix(api.frame(quote("Paris. ")), "[")+api.end))
			s.post(api.path, api.request)
			listed := 0.0
			skipped := s.receipts()[0]["coverage"].(map[string]any)["skipped"].([]any)
			for _, part := range skipped {
				listed += part.(map[string]any)["bytes"].(float64)
			}
			if listed != float64(len(quote(data))) {
				t.Errorf("%s: %v", api.name, skipped)
			}
		}
	}
}

// A request in a charset that some server decodes, and in which it may say something
// else, does not reach the model.
func TestOtherCharsetsAreRefused(t *testing.T) {
	hidden := "+" + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(widenBig(attack))), "=") + "-"
	for _, api := range attackedAPIs {
		body := strings.Replace(api.request, "What is the capital of France?", hidden, 1)
		for _, contentType := range []string{
			"application/json; charset=utf-7", "application/json;CHARSET=UTF-7", "application/json; charset=cp037",
			"application/json; charset=utf-8; charset=utf-7", `application/json; charset="hz-gb-2312"`,
		} {
			var model recorder
			s := newSite(t, `{}`, func(_ http.ResponseWriter, r *http.Request) error { model.record(r); return nil })
			w := s.post(api.path, body, "Content-Type", contentType)
			if w.Code != http.StatusUnsupportedMediaType || model.count.Load() != 0 {
				t.Errorf("%s, %s: %d %s", api.name, contentType, w.Code, w.Body)
			}
		}
		for _, contentType := range []string{"application/json", "application/json; charset=UTF-8", `application/json;charset="utf-8"`, "text/plain; charset=ISO-8859-1", ";;"} {
			s := newSite(t, `{}`, answering(api.contentType, api.frame(quote("Paris. "))+api.end))
			if w := s.post(api.path, api.request, "Content-Type", contentType); w.Code != http.StatusOK {
				t.Errorf("%s, %s: %d %s", api.name, contentType, w.Code, w.Body)
			}
		}
	}
}

// widenBig encodes a text of ASCII in UTF-16, in the order of UTF-7.
func widenBig(s string) string { return "\x00" + strings.TrimSuffix(widen(s, 2), "\x00") }

// Google's servers answer in protocol buffers to those who ask for them. Nobody can read
// that here.
func TestGeminiAnswersOnlyInJSON(t *testing.T) {
	const body = `{"contents":[{"parts":[{"text":"What is the capital of France?"}]}]}`
	for query, want := range map[string]int{
		"alt=proto": 400, "$alt=proto": 400, "%24alt=PROTO": 400, "alt=media": 400, "alt=sse&alt=proto": 400, "alt=json&$alt=proto": 400,
		"": 200, "alt=": 200, "alt=json": 200, "alt=SSE": 200, "$alt=sse": 200,
	} {
		var model recorder
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			model.record(r)
			return answering("application/json", `{"candidates":[{"content":{"parts":[{"text":"Paris."}]},"finishReason":"STOP"}]}`)(w, r)
		})
		for _, method := range []string{"generateContent", "streamGenerateContent"} {
			if w := s.post("/v1beta/models/x:"+method+"?"+query, body); w.Code != want || want == 400 && model.count.Load() != 0 {
				t.Errorf("%s?%s: %d %s", method, query, w.Code, w.Body)
			}
		}
	}
}

// An answer that is kept is governed below a bare path too, because calls are.
func TestStoredAnswersOnABarePath(t *testing.T) {
	for _, path := range []string{"/responses/resp_1", "/responses/resp_1/", "/responses//resp_1?stream=true"} {
		s := newSite(t, `{}`, answering("application/json", `{"id":"resp_1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+quote(capitulation)+`}]}]}`))
		w := httptest.NewRecorder()
		s.serve(w, httptest.NewRequest(http.MethodGet, "http://site.test"+path, nil))
		if out := w.Body.String(); strings.Contains(out, "restrictions") || !strings.Contains(out, refusalText) || len(s.receipts()) != 1 {
			t.Errorf("%s: %s", path, out)
		}
	}
}

// An answer whose receipt cannot be stored does not end as a complete one, in any
// dialect.
func TestTheStoreFailsInMidStream(t *testing.T) {
	for _, api := range attackedAPIs {
		var s *site
		s = newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			s.breakStore()
			return answering(api.contentType, api.frame(quote("Paris is the capital. "))+api.end)(w, r)
		})
		w := s.post(api.path, api.request)
		if out := w.Body.String(); !strings.Contains(out, "error") && !strings.Contains(out, "Exception") || strings.Contains(out, api.end) || strings.Contains(out, "canary") {
			t.Errorf("%s: %s", api.name, out)
		}
		s.mendStore()
		if n := len(s.receipts()); n != 0 {
			t.Errorf("%s: %d receipts", api.name, n)
		}
	}
}

// A stored answer cannot be fetched piece by piece, each too short to judge.
func TestStoredAnswersComeWhole(t *testing.T) {
	answer := `{"id":"resp_1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quote(capitulation) + `}]}]}`
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Etag", `"a"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(answer))
		return nil
	})
	for at := 0; at < len(answer); at += 8 {
		r := httptest.NewRequest(http.MethodGet, "http://site.test/v1/responses/resp_1", nil)
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at+7))
		r.Header.Set("If-Range", `"a"`)
		w := httptest.NewRecorder()
		s.serve(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), refusalText) {
			t.Fatalf("from %d on: %d %s", at, w.Code, w.Body)
		}
	}
}

// A frame of fields without data is listed with its size.
func TestFramesWithoutDataAreListed(t *testing.T) {
	for _, frame := range []string{"id: " + capitulation + "\n\n", "event: " + capitulation + "\r\n\r\n", "retry: " + capitulation + "\n\n"} {
		s := newSite(t, `{}`, answering("text/event-stream", frame+stream("Paris.")))
		s.post("/v1/chat/completions", chatStreamed)
		unknown := s.receipts()[0]["coverage"].(map[string]any)["unknown"].([]any)
		if len(unknown) != 1 || unknown[0].(map[string]any)["bytes"] != float64(len(frame)) {
			t.Errorf("%q: %v", frame, unknown)
		}
	}
}
