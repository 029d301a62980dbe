package caddymodule_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// chunk is one frame of a chat stream with a piece of text for each choice.
func chunk(finish string, texts map[int]string) string {
	var choices []any
	for n, text := range texts {
		choice := map[string]any{"index": n, "delta": map[string]any{"content": text}, "finish_reason": nil}
		if finish != "" {
			choice["finish_reason"] = finish
		}
		choices = append(choices, choice)
	}
	b, _ := json.Marshal(map[string]any{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices})
	return "data: " + string(b) + "\n\n"
}

// A whole answer that is the provider's error is a failure as one in a stream is, in each
// dialect and mode: the client gets it as it came, and nothing in it is taken for an answer.
func TestWholeErrorsAreFailures(t *testing.T) {
	const openai = `{"error":{"message":"overloaded","code":502}}`
	const gemini = `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`
	messages := strings.Replace(chatQuestion, "{", `{"max_tokens":9,`, 1)
	for name, c := range map[string]struct{ path, request, answer string }{
		"chat":            {"/v1/chat/completions", chatQuestion, openai},
		"completions":     {"/v1/completions", `{"model":"m","prompt":"Say hello."}`, openai},
		"responses":       {"/v1/responses", replyQuestion, openai},
		"failed":          {"/v1/responses", replyQuestion, `{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"overloaded"},"model":"m","output":[]}`},
		"anthropic":       {"/v1/messages", messages, `{"type":"error","error":{"type":"overloaded_error","message":"overloaded"},"request_id":"req_1"}`},
		"gemini":          {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hello."}]}]}`, gemini},
		"ollama":          {"/api/chat", strings.Replace(chatQuestion, "{", `{"stream":false,`, 1), `{"error":"overloaded"}`},
		"ollama generate": {"/api/generate", `{"model":"m","stream":false,"prompt":"Say hello."}`, `{"error":"overloaded"}`},
		"beside a note":   {"/v1/chat/completions", chatQuestion, `{"error":{"message":"overloaded"},"note":"Try again later."}`},
		"frames":          {"/v1/chat/completions", chatQuestion, "data: " + openai + "\n\n"},
		"frames of events": {
			"/v1/messages", messages,
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"overloaded\"}}\n\n",
		},
	} {
		for _, config := range []string{`{}`, `{"mode":"observe"}`, `{"unknown":"block"}`} {
			s := newSite(t, config, answering("application/json", c.answer))
			w := s.post(c.path, c.request)
			r := s.receipts()[0]
			if name == "beside a note" && strings.Contains(config, "block") {
				if r["outcome"] != "refused" || strings.Contains(w.Body.String(), "Try again") {
					t.Errorf("%s, %s: %v %s", name, config, r["outcome"], w.Body)
				}
				continue
			}
			if w.Code != http.StatusOK || w.Body.String() != c.answer || r["outcome"] != "provider_failed" {
				t.Errorf("%s, %s: %d, outcome %v: %s", name, config, w.Code, r["outcome"], w.Body)
			}
			coverage := r["coverage"].(map[string]any)
			if unread := fmt.Sprint(coverage["unknown"]) != "[]"; unread != (name == "beside a note") {
				t.Errorf("%s, %s: unknown %v", name, config, coverage["unknown"])
			}
			if judged := strings.Contains(fmt.Sprint(coverage["detectors"]), "name:local_judge outcome:clean"); judged != (name == "beside a note") {
				t.Errorf("%s, %s: detectors %v", name, config, coverage["detectors"])
			}
			if v := s.verify(byID(r["id"].(string))); !v.Valid {
				t.Errorf("%s, %s: %+v", name, config, v)
			}
		}
	}
}

// What a failed answer says is governed like any other, and so are its calls.
func TestFailedAnswersAreGoverned(t *testing.T) {
	failed := func(items ...string) string {
		return strings.Replace(reply(items...), `"status":"completed"`, `"status":"failed"`, 1)
	}
	s := newSite(t, `{}`, answering("application/json", failed(said("msg_1", capitulation))))
	if w := s.post("/v1/responses", replyQuestion); !strings.Contains(w.Body.String(), refusalText) || s.receipts()[0]["outcome"] != "refused" {
		t.Errorf("%v: %s", s.receipts()[0]["outcome"], w.Body)
	}
	s = newSite(t, `{}`, answering("application/json", failed(append([]string{said("msg_1", "I look.")}, functionCalls([]askedFor{wipe})...)...)))
	if w := s.post("/v1/responses", replyQuestion); strings.Contains(w.Body.String(), "rm -rf") || s.turns()[0]["outcome"] != "provider_failed" || len(s.calls()) != 1 {
		t.Errorf("%v: %s", s.turns()[0]["outcome"], w.Body)
	}
	// An error beside an answer is read by nobody.
	s = newSite(t, `{}`, answering("application/json", strings.Replace(completion("Paris."), `{`, `{"error":{"message":"slow"},`, 1)))
	if w := s.post("/v1/chat/completions", chatQuestion); !strings.Contains(w.Body.String(), "Paris.") || s.receipts()[0]["outcome"] != "answered" {
		t.Errorf("%v: %s", s.receipts()[0]["outcome"], w.Body)
	}
}

// Every choice is judged, in whichever the model gives in and however they mix.
func TestEveryChoiceIsJudged(t *testing.T) {
	request := `{"model":"m","n":3,"stream":true,"messages":[{"role":"user","content":"Who are you?"}]}`
	for guilty := range 3 {
		var body strings.Builder
		for i, word := range strings.SplitAfter(capitulation, " ") {
			for n := range 3 {
				text := "harmless "
				if n == guilty {
					text = word
				}
				if i%3 == n || n == guilty {
					body.WriteString(chunk("", map[int]string{n: text}))
				}
			}
		}
		for n := range 3 {
			body.WriteString(chunk("stop", map[int]string{n: ""}))
		}
		body.WriteString("data: [DONE]\n\n")
		s := newSite(t, `{}`, answering("text/event-stream", body.String()))
		w := s.post("/v1/chat/completions", request)
		if out := w.Body.String(); strings.Contains(out, "DAN") || strings.Contains(out, "restrictions") || !strings.Contains(out, refusalText) {
			t.Errorf("streamed, choice %d: %s", guilty, out)
		}
		if r := s.receipts()[0]; r["outcome"] != "refused" {
			t.Errorf("outcome %v", r["outcome"])
		}
		var choices []any
		for n := range 3 {
			text := "I'm sorry, I can't help with that."
			if n == guilty {
				text = capitulation
			}
			choices = append(choices, map[string]any{"index": n, "message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop"})
		}
		whole, _ := json.Marshal(map[string]any{"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})
		s = newSite(t, `{}`, answering("application/json", string(whole)))
		if w := s.post("/v1/chat/completions", strings.Replace(request, `"stream":true,`, "", 1)); strings.Contains(w.Body.String(), "DAN") {
			t.Errorf("whole, choice %d: %s", guilty, w.Body)
		}
	}
}

// Of an answer without a body nothing is left unread, so that unknown block has nothing against it.
func TestEmptyAnswersAreNotUnknown(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNoContent, http.StatusNotModified} {
		for _, request := range []string{chatQuestion, chatStreamed} {
			s := newSite(t, `{"unknown":"block"}`, func(w http.ResponseWriter, _ *http.Request) error {
				w.WriteHeader(status)
				return nil
			})
			w := s.post("/v1/chat/completions", request)
			receipt := s.receipts()[0]
			if unknown := receipt["coverage"].(map[string]any)["unknown"].([]any); w.Code != status || w.Body.Len() != 0 || receipt["outcome"] != "answered" || len(unknown) != 0 {
				t.Errorf("%d became %d %s: %v, unknown %v", status, w.Code, w.Body, receipt["outcome"], unknown)
			}
		}
	}
}

// However an upstream spells an answer that gives in, it does not leave.
func TestOddAnswersAreRead(t *testing.T) {
	frame := func(data string) string { return "data: " + data + "\n\n" }
	half := `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`
	guilty := fmt.Sprintf(half, capitulation)
	end := chunk("stop", map[int]string{0: ""}) + "data: [DONE]\n\n"
	lone := strings.Replace(guilty, "From", `\ud800 From`, 1)
	twice := strings.Replace(guilty, `"delta"`, `"delta":{"content":"x"},"delta"`, 1)
	for name, test := range map[string]struct {
		status            int
		contentType, body string
		encode            func(string) (coding, body string)
	}{
		"status 201":           {201, "text/event-stream", stream(capitulation), nil},
		"text/plain":           {200, "text/plain", stream(capitulation), nil},
		"no type":              {200, "", stream(capitulation), nil},
		"two documents":        {200, "text/event-stream", frame(fmt.Sprintf(half, "x")+"\ndata: "+guilty) + end, nil},
		"byte order mark":      {200, "text/event-stream", frame("\xef\xbb\xbf"+guilty) + end, nil},
		"mark at the start":    {200, "text/event-stream", "\xef\xbb\xbf" + frame(guilty) + end, nil},
		"NUL":                  {200, "text/event-stream", frame(strings.Replace(guilty, "From", `\u0000From`, 1)) + end, nil},
		"no UTF-8":             {200, "application/json", strings.Replace(completion(capitulation), `"id":"`, "\"id\":\"\xff", 1), nil},
		"half a pair":          {200, "application/json", strings.Replace(completion(capitulation), `"id":"`, "\"id\":\"\xed\xa0\x80", 1), nil},
		"lone surrogate":       {200, "text/event-stream", frame(lone) + end, nil},
		"duplicate member":     {200, "text/event-stream", frame(twice) + end, nil},
		"a prototype":          {200, "text/event-stream", frame(strings.NewReplacer(`"delta":{`, `"delta":{"__proto__":{`, `"},"finish`, `"}},"finish`).Replace(guilty)) + end, nil},
		"plain text":           {200, "text/event-stream", frame(capitulation) + end, nil},
		"text, not JSON":       {200, "text/plain", capitulation, nil},
		"text like a comment":  {200, "text/plain", ": " + capitulation, nil},
		"text like an id":      {200, "text/plain", "id: " + capitulation, nil},
		"text like a retry":    {200, "application/json", "retry: " + capitulation + "\r\n", nil},
		"text like an event":   {200, "", "event: " + capitulation + "\n\n", nil},
		"text above an answer": {200, "text/plain", ": " + capitulation + "\n\n" + stream("Paris."), nil},
		"text beside an event": {200, "application/json", "event: " + capitulation + "\n" + stream("Paris."), nil},
		"text and a word":      {200, "text/plain", "id: " + capitulation + "\nBye", nil},
		"another API's answer": {200, "application/json", `{"output":[{"content":[{"text":"` + capitulation + `"}]}]}`, nil},
		"gzip stream":          {200, "text/event-stream", stream(capitulation), gzipped},
		"gzip":                 {200, "application/json", completion(capitulation), gzipped},
		"br":                   {200, "application/json", completion(capitulation), brotlied},
		"zlib":                 {200, "application/json", completion(capitulation), zlibbed},
		"deflate":              {200, "application/json", completion(capitulation), deflated},
		"twice encoded":        {200, "application/json", completion(capitulation), gzippedTwice},
		"UTF-16":               {200, "text/plain; charset=utf-16", "\xff\xfe" + strings.Join(strings.Split(capitulation, ""), "\x00") + "\x00", nil},
	} {
		for _, request := range []string{chatQuestion, chatStreamed} {
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				_, _ = io.Copy(io.Discard, r.Body)
				body := test.body
				if test.encode != nil {
					var coding string
					coding, body = test.encode(body)
					w.Header().Set("Content-Encoding", coding)
				}
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(test.status)
				_, err := io.WriteString(w, body)
				return err
			})
			w := s.post("/v1/chat/completions", request)
			if out := w.Body.String(); strings.Contains(out, "restrictions") || !strings.Contains(out, refusalText) || w.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s: %v %q", name, w.Header(), out)
			}
			if r := s.receipts()[0]; r["outcome"] != "refused" || r["refused"] != true {
				t.Errorf("%s: outcome %v", name, r["outcome"])
			}
		}
	}
}

// A short text that looks like the lines of a stream is in the receipt like any other.
func TestTextLikeAStreamIsInTheReceipt(t *testing.T) {
	for text, want := range map[string]string{": yes": "response", "event: yes": "response", "id: yes\n\n": "response", ": a word\n\n" + stream("Paris."): "response.frame"} {
		s := newSite(t, `{}`, answering("text/plain", text))
		if out := s.post("/v1/chat/completions", chatQuestion).Body.String(); out != text {
			t.Errorf("%q became %q", text, out)
		}
		if unknown := fmt.Sprint(s.receipts()[0]["coverage"].(map[string]any)["unknown"]); !strings.Contains(unknown, "part:"+want+" ") {
			t.Errorf("%q: unknown %s", text, unknown)
		}
	}
	for _, text := range []string{": keep-alive\n\n" + stream("Paris."), "event: message\nid: 7\n" + stream("Paris.")} {
		s := newSite(t, `{}`, answering("text/plain", text))
		s.post("/v1/chat/completions", chatQuestion)
		if unknown := fmt.Sprint(s.receipts()[0]["coverage"].(map[string]any)["unknown"]); unknown != "[]" {
			t.Errorf("%q: unknown %s", text, unknown)
		}
	}
}

func gzipped(s string) (string, string) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return "gzip", b.String()
}

func gzippedTwice(s string) (string, string) {
	_, once := gzipped(s)
	_, twice := gzipped(once)
	return "gzip, gzip", twice
}

func brotlied(s string) (string, string) {
	var b bytes.Buffer
	w := brotli.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return "br", b.String()
}

func zlibbed(s string) (string, string) {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return "deflate", b.String()
}

func deflated(s string) (string, string) {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return "deflate", b.String()
}

// An honest answer that upstream encodes arrives readable.
func TestEncodedAnswersArrive(t *testing.T) {
	for _, encode := range []func(string) (string, string){gzipped, brotlied, zlibbed, deflated, gzippedTwice} {
		coding, body := encode(completion("Paris."))
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Encoding", coding)
			return answering("application/json", body)(w, r)
		})
		w := s.post("/v1/chat/completions", chatQuestion)
		if w.Body.String() != completion("Paris.") || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %v %q", coding, w.Header(), w.Body)
		}
	}
	s := newSite(t, `{"unknown":"block"}`, func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Encoding", "compress")
		return answering("application/json", "secret")(w, r)
	})
	w := s.post("/v1/chat/completions", chatQuestion)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"code":"unknown_content"`) {
		t.Errorf("what cannot be read: %d %s", w.Code, w.Body)
	}
	if r := s.receipts()[0]; r["outcome"] != "refused" {
		t.Errorf("a refusal of ours is booked as %v", r["outcome"])
	}
}

// Some clients go by the charset that a header names, others know that JSON and events are in
// UTF-8. All of them read what was read here.
func TestAnswersInOtherCharsets(t *testing.T) {
	hidden := "+" + base64.RawStdEncoding.EncodeToString([]byte(widenBig(capitulation))) + "-" // in UTF-7 another text
	gbk, err := simplifiedchinese.GBK.NewEncoder().String(completion("巴黎"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ contentType, body, want string }{
		"UTF-7":            {"application/json; charset=utf-7", completion(hidden), completion(hidden)},
		"UTF-7, streamed":  {"text/event-stream; charset=utf-7", stream(hidden), stream(hidden)},
		"an unknown one":   {"application/json; charset=klingon", completion("Paris."), completion("Paris.")},
		"two":              {"application/json; charset=utf-8; charset=utf-7", completion(hidden), completion(hidden)},
		"hz":               {`application/json; charset="hz-gb-2312"`, completion("~{"), completion("~{")},
		"GBK":              {"application/json; charset=gbk", gbk, completion("巴黎")},
		"UTF-8 called GBK": {"application/json; charset=gbk", completion("巴黎"), completion("巴黎")},
		"UTF-16":           {"application/json; charset=utf-16", "\xff\xfe" + widen(completion("Paris."), 2), completion("Paris.")},
	} {
		s := newSite(t, `{}`, answering(c.contentType, c.body))
		w := s.post("/v1/chat/completions", chatQuestion)
		media, _, _ := strings.Cut(c.contentType, ";")
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != media+"; charset=utf-8" || w.Body.String() != c.want {
			t.Errorf("%s: %d %q %q", name, w.Code, got, w.Body)
		}
		if unknown := fmt.Sprint(s.receipts()[0]["coverage"].(map[string]any)["unknown"]); unknown != "[]" {
			t.Errorf("%s: unknown %s", name, unknown)
		}
	}
	gbk, err = simplifiedchinese.GBK.NewEncoder().String(completion("巴黎 " + capitulation))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, `{}`, answering("application/json; charset=gbk", gbk))
	if w := s.post("/v1/chat/completions", chatQuestion); !strings.Contains(w.Body.String(), refusalText) {
		t.Errorf("an answer that gives in, in GBK: %d %q", w.Code, w.Body)
	}
}

// A bomb of an answer is not unpacked.
func TestAnswersUnpackWithinTheLimit(t *testing.T) {
	_, bomb := gzipped(strings.Repeat(" ", 64<<20))
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Encoding", "gzip")
		return answering("application/json", bomb)(w, r)
	})
	s.post("/v1/chat/completions", chatQuestion)
	if unknown := s.receipts()[0]["coverage"].(map[string]any)["unknown"].([]any); len(unknown) != 1 {
		t.Errorf("%v", unknown)
	}
}

// The last frame is read like every other, also without its blank line.
func TestTheUnterminatedFrame(t *testing.T) {
	late := strings.TrimSuffix(chunk("", map[int]string{0: "LATE"}), "\n\n")
	s := newSite(t, `{}`, answering("text/event-stream", stream("Paris.")+late))
	if w := s.post("/v1/chat/completions", chatStreamed); strings.Contains(w.Body.String(), "LATE") || !strings.Contains(w.Body.String(), "Paris.") {
		t.Errorf("text after the end: %s", w.Body)
	}
	whole := strings.TrimSuffix(stream("Paris."), "\n\n")
	s = newSite(t, `{}`, answering("text/event-stream", whole))
	w := s.post("/v1/chat/completions", chatStreamed)
	if got, _ := withoutComments(w.Body.String()); got != whole+"\n\n" {
		t.Errorf("got %s", got)
	}
	if r := s.receipts()[0]; r["outcome"] != "answered" {
		t.Errorf("outcome %v", r["outcome"])
	}
	guilty := strings.TrimSuffix(chunk("stop", map[int]string{0: capitulation}), "\n\n")
	s = newSite(t, `{}`, answering("text/event-stream", guilty))
	if w := s.post("/v1/chat/completions", chatStreamed); strings.Contains(w.Body.String(), "DAN") {
		t.Errorf("in the last frame: %s", w.Body)
	}
}

// A stream may end cleanly at any byte. Whatever the client gets of it can be read to its end,
// which is the answer's or an error: nobody is refused for what the provider did not say.
func TestStreamsThatEndAnywhere(t *testing.T) {
	type ending struct{ name, path, request, contentType, body string }
	var endings []ending
	for _, api := range attackedAPIs {
		body := api.frame(quote("Paris.")) + api.end
		endings = append(endings, ending{api.name, api.path, api.request, api.contentType, body})
		if api.contentType == "text/event-stream" {
			endings = append(endings, ending{api.name + " in CRLF", api.path, api.request, api.contentType, strings.ReplaceAll(body, "\n", "\r\n")})
		}
	}
	for _, api := range callingAPIs {
		if contentType, body := api.answer(weather); contentType != "application/json" || strings.HasPrefix(body, "[") {
			endings = append(endings, ending{api.name + " calling", api.path, api.question, contentType, body})
		}
	}
	for _, e := range endings {
		s := newSite(t, `{}`, nil)
		places := []int{len(e.body) - 1}
		for at := 0; at < len(e.body); at += 1 + len(e.body)/25 {
			places = append(places, at)
		}
		for _, at := range places {
			s.model = answering(e.contentType, e.body[:at])
			got := s.post(e.path, e.request, "X-Lex-Session", fmt.Sprint(at)).Body.String()
			newest := s.get("/audits/recent?limit=1")["receipts"].([]any)[0].(map[string]any)
			newest = s.get("/audits/" + newest["id"].(string))
			if newest["refused"] == true || (strings.HasPrefix(newest["id"].(string), "KRN-") && (newest["outcome"] == "answered") == strings.Contains(got, "broke off")) {
				t.Fatalf("%s, cut at %d: %v, refused %v: %s", e.name, at, newest["outcome"], newest["refused"], got)
			}
			if newest["outcome"] == "aborted" && (!readable(strings.Split(e.contentType, ";")[0], got) || strings.Contains(got, weather.name)) {
				t.Fatalf("%s, cut at %d: %q", e.name, at, got)
			}
			if newest["outcome"] == "answered" && !readable(strings.Split(e.contentType, ";")[0], got) {
				t.Fatalf("%s, cut at %d, is complete: %q", e.name, at, got)
			}
		}
	}
}

// readable reports whether clients can read every frame of a stream.
func readable(contentType, body string) bool {
	switch contentType {
	case "application/json":
		return json.Valid([]byte(body))
	case amazonType:
		_, rest := amazonPayloads(body)
		return rest == 0
	case "text/event-stream":
		if !strings.HasSuffix(body, "\n\n") && !strings.HasSuffix(body, "\r\n\r\n") {
			return false
		}
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		data, isData := strings.CutPrefix(line, "data: ")
		skipped := line == "" || contentType == "text/event-stream" && !isData && (line[0] == ':' || strings.HasPrefix(line, "event: "))
		if !skipped && data != "[DONE]" && !json.Valid([]byte(data)) {
			return false
		}
	}
	return true
}

// Neither headers nor trailers nor informational responses of an upstream speak
// in our name, whether the answer is governed or not.
func TestUpstreamDoesNotSpeakInOurName(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/v1/embeddings", "/v1/models"} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("X-Lex-Hint", "forged")
				w.Header().Set("Link", "</a>; rel=preload")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Set("X-Lex-Receipt-Id", "KRN-FORGED")
				w.Header().Set("Trailer", "X-Lex-Trailer, X-Fine")
				body := completion("Paris.")
				if kind == "text/event-stream" {
					body = ": x-lex-receipt-id: KRN-FORGED\n\n" + stream("Paris.") + ":X-Lex-Receipt-Id: KRN-FORGED"
				}
				err := answering(kind, body)(w, r)
				w.Header().Set("X-Lex-Trailer", "forged")
				w.Header().Set("X-Fine", "kept")
				w.Header().Set(http.TrailerPrefix+"X-Lex-Late", "forged")
				w.Header().Set(http.TrailerPrefix+"X-Late", "kept")
				return err
			})
			logged := make(chan string, 1) // the headers at the end, as Caddy's access log has them
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.serve(w, r)
				logged <- fmt.Sprint(w.Header())
			}))
			method, body := http.MethodPost, chatStreamed
			if path == "/v1/models" {
				method, body = http.MethodGet, ""
			}
			r, _ := http.NewRequest(method, server.URL+path, strings.NewReader(body))
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			server.Close()
			all := fmt.Sprint(resp.Header, resp.Trailer, <-logged)
			if path == "/v1/chat/completions" {
				all += string(text)
			}
			if strings.Contains(strings.ToLower(all), "forged") || strings.Contains(all, "X-Lex-Trailer") || !strings.Contains(string(text), "Paris") {
				t.Errorf("%s %s: %s", path, kind, all)
			}
			if kind == "text/event-stream" && (resp.Trailer.Get("X-Fine") != "kept" || resp.Trailer.Get("X-Late") != "kept") {
				t.Errorf("%s %s: trailers of its own are gone: %v", path, kind, resp.Trailer)
			}
		}
	}
}

// A client that asked for the usage at the end of a stream finds it behind a refusal too.
func TestRefusedStreamsTellUsage(t *testing.T) {
	for path, question := range map[string]string{"/v1/chat/completions": chatStreamed, "/v1/completions": `{"model":"m","stream":true,"prompt":"What is the capital of France?"}`} {
		asking := strings.Replace(question, "{", `{"stream_options":{"include_usage":true},`, 1)
		for _, body := range []string{question, asking} {
			s := newSite(t, `{}`, answering("text/event-stream", stream(capitulation)))
			got := s.post(path, strings.Replace(body, "What is the capital of France?", attack, 1)).Body.String()
			if strings.Contains(got, `"choices":[],"usage":{"prompt_tokens":0`) != (body == asking) || !strings.HasSuffix(got, "data: [DONE]\n\n") {
				t.Errorf("%s: %s: %s", path, body, got)
			}
		}
	}
}

// An answer of ours has our headers only.
func TestOurAnswersHaveOurHeaders(t *testing.T) {
	foreign := map[string]string{
		"Cache-Control": "public, max-age=600", "Expires": "Thu, 01 Jan 2099 00:00:00 GMT", "Set-Cookie": "a=b", "Etag": `"1"`,
		"Content-Disposition": "attachment", "Content-Encoding": "br", "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT", "X-Upstream": "1",
		"Access-Control-Allow-Origin": "*", "Link": "<x>",
	}
	for name, answer := range map[string]caddyhttp.HandlerFunc{
		"refusal": answering("application/json", completion(capitulation)),
		"failure": func(http.ResponseWriter, *http.Request) error { return io.ErrUnexpectedEOF },
		"broken": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusSwitchingProtocols)
			return nil
		},
	} {
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			for k, v := range foreign {
				if k != "Content-Encoding" || name != "refusal" {
					w.Header().Set(k, v)
				}
			}
			w.Header().Set("Trailer", "X-After")
			err := answer(w, r)
			w.Header().Set("X-After", "upstream's")
			return err
		})
		w := s.post("/v1/chat/completions", chatQuestion)
		for k, v := range foreign {
			if w.Header().Get(k) == v {
				t.Errorf("%s: %s: %s", name, k, v)
			}
		}
		if w.Header().Get("X-After") != "" || w.Header().Get("X-Lex-Receipt-Id") == "" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}

// A status that HTTP does not have is an answer that failed, for which net/http would panic.
func TestNoSuchStatus(t *testing.T) {
	for path, method := range map[string]string{"/v1/chat/completions": http.MethodPost, "/v1/embeddings": http.MethodPost, "/v1/models": http.MethodGet} {
		s := newSite(t, `{}`, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(99)
			_, err := io.WriteString(w, completion("Paris."))
			return err
		})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }))
		r, _ := http.NewRequest(method, server.URL+path, strings.NewReader(chatQuestion))
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		server.Close()
		if resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s %s: %s", method, path, resp.Status)
		}
	}
}

// No header opens a tunnel through a governed call.
func TestGovernedCallsAreNotUpgraded(t *testing.T) {
	for _, config := range []string{`{}`, `{"unknown":"block"}`} {
		var got http.Header
		s := newSite(t, config, func(w http.ResponseWriter, r *http.Request) error {
			got = r.Header.Clone()
			if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
				t.Error("the connection was taken over")
			}
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
			return nil
		})
		w := s.post("/v1/chat/completions", chatQuestion, "Connection", "Upgrade, X-Hop", "Upgrade", "websocket", "X-Hop", "1", "Te", "trailers", "Http2-Settings", "AAA", "Keep-Alive", "5")
		if w.Code != http.StatusBadGateway {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		for _, name := range []string{"Connection", "Upgrade", "X-Hop", "Te", "Http2-Settings", "Keep-Alive"} {
			if got.Get(name) != "" {
				t.Errorf("%s went upstream", name)
			}
		}
		if r := s.receipts()[0]; r["outcome"] != "provider_failed" {
			t.Errorf("outcome %v", r["outcome"])
		}
	}
}

// Who leaves is not the provider's failure, and what we block is not either.
func TestOutcomes(t *testing.T) {
	odd := strings.Replace(completion("Paris."), `"role"`, `"whisper":"hidden","role"`, 1)
	oddStream := strings.Replace(stream("Paris ", "is it."), `"content":"is it."`, `"whisper":"hidden"`, 1)
	leave := func(_ http.ResponseWriter, r *http.Request) error {
		r.Context().Value(leaveKey{}).(context.CancelFunc)()
		<-r.Context().Done()
		return r.Context().Err()
	}
	for name, test := range map[string]struct {
		config, body, outcome string
		model                 caddyhttp.HandlerFunc
	}{
		"leaves a plain call":        {`{}`, chatQuestion, "client_gone", leave},
		"leaves before a stream":     {`{}`, chatStreamed, "client_gone", leave},
		"leaves within the answer":   {`{}`, chatQuestion, "client_gone", after(answering("application/json", completion("Paris.")), leave)},
		"leaves within a stream":     {`{}`, chatStreamed, "client_gone", after(answering("text/event-stream", chunk("", map[int]string{0: "Paris"})), leave)},
		"upstream breaks off":        {`{}`, chatStreamed, "aborted", answering("text/event-stream", chunk("", map[int]string{0: "Paris"}))},
		"JSON breaks off":            {`{}`, chatQuestion, "aborted", answering("application/json", strings.TrimSuffix(completion("Paris."), "}"))},
		"upstream says nothing":      {`{}`, chatQuestion, "provider_failed", func(http.ResponseWriter, *http.Request) error { return nil }},
		"a stopped stream":           {`{}`, chatStreamed, "refused", answering("text/event-stream", stream(capitulation, strings.Repeat(" more", 100)))},
		"blocked by us":              {`{"unknown":"block"}`, chatQuestion, "refused", answering("application/json", odd)},
		"blocked by us, streamed":    {`{"unknown":"block"}`, chatStreamed, "refused", answering("text/event-stream", oddStream)},
		"a stream for a plain call":  {`{}`, chatQuestion, "answered", answering("text/event-stream", stream("Paris."))},
		"JSON for a streamed call":   {`{}`, chatStreamed, "answered", answering("application/json", completion("Paris."))},
		"the provider's error event": {`{}`, chatStreamed, "provider_failed", answering("text/event-stream", "data: {\"error\":{\"message\":\"overloaded\"}}\n\n")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, test.config, test.model)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := httptest.NewRequestWithContext(context.WithValue(ctx, leaveKey{}, cancel), http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(test.body))
			w := httptest.NewRecorder()
			s.serve(w, r)
			receipt := s.receipts()[0]
			if receipt["outcome"] != test.outcome {
				t.Errorf("outcome %v, want %s: %s", receipt["outcome"], test.outcome, w.Body)
			}
			coverage := receipt["coverage"].(map[string]any)
			inspected := 0
			for _, part := range coverage["inspected"].([]any) {
				if strings.HasPrefix(part.(map[string]any)["part"].(string), "response") {
					inspected++
				}
			}
			if want := strings.Contains(w.Body.String(), "Paris"); want && test.outcome == "answered" && inspected != 1 {
				t.Errorf("the answer is covered %d times: %v", inspected, coverage["inspected"])
			}
		})
	}
}

type leaveKey struct{}

// after runs one handler and then another.
func after(first, second caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := first(w, r); err != nil {
			return err
		}
		return second(w, r)
	}
}
