package caddymodule_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/kernel/detect"
)

func govern(s *site, body string) map[string]any {
	s.t.Helper()
	w := s.post("/lex/govern", body)
	var m map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != http.StatusOK {
		s.t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	return m
}

const question = `{"prompt":"What is the capital of France?","session_id":"s"}`

func TestGovernValidation(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	cjk := strings.Repeat("界", 8000)
	for name, test := range map[string]struct {
		body, code string
		status     int
	}{
		"empty":                     {``, "invalid_json", 400},
		"array":                     {`[]`, "invalid_json", 400},
		"truncated":                 {`{"prompt":"a"`, "invalid_json", 400},
		"two values":                {question + question, "invalid_json", 400},
		"duplicate":                 {`{"prompt":"a","prompt":"b","session_id":"s"}`, "invalid_json", 400},
		"case variant":              {`{"prompt":"a","Prompt":"b","session_id":"s"}`, "invalid_json", 400},
		"invalid UTF-8":             {"{\"prompt\":\"\xff\",\"session_id\":\"s\"}", "invalid_json", 400},
		"lone surrogate":            {`{"prompt":"\ud800","session_id":"s"}`, "invalid_json", 400},
		"no prompt":                 {`{"session_id":"s"}`, "missing_prompt", 400},
		"null prompt":               {`{"prompt":null,"session_id":"s"}`, "missing_prompt", 400},
		"blank prompt":              {`{"prompt":" \n\t","session_id":"s"}`, "missing_prompt", 400},
		"prompt of another type":    {`{"prompt":1,"session_id":"s"}`, "invalid_type", 400},
		"8001 characters":           {`{"prompt":"` + cjk + `界","session_id":"s"}`, "prompt_too_long", 400},
		"8000 characters":           {`{"prompt":"` + cjk + `","session_id":"s"}`, "", 200},
		"no session":                {`{"prompt":"a"}`, "missing_session_id", 400},
		"blank session":             {`{"prompt":"a","session_id":"  "}`, "missing_session_id", 400},
		"session of another type":   {`{"prompt":"a","session_id":{}}`, "invalid_type", 400},
		"129 characters of session": {`{"prompt":"a","session_id":"` + strings.Repeat("s", 129) + `"}`, "invalid_session_id", 400},
		"control in the session":    {`{"prompt":"a","session_id":"s\u0000"}`, "invalid_session_id", 400},
		"turn 0":                    {`{"prompt":"a","session_id":"s","turn":0}`, "invalid_turn", 400},
		"turn 2.0":                  {`{"prompt":"a","session_id":"s","turn":2.0}`, "invalid_turn", 400},
		"turn text":                 {`{"prompt":"a","session_id":"s","turn":"2"}`, "invalid_turn", 400},
		"turn true":                 {`{"prompt":"a","session_id":"s","turn":true}`, "invalid_turn", 400},
		"turn 100001":               {`{"prompt":"a","session_id":"s","turn":100001}`, "invalid_turn", 400},
		"identity mode":             {`{"prompt":"a","session_id":"s","identity_mode":"loud"}`, "invalid_identity_mode", 400},
		"identity mode of a type":   {`{"prompt":"a","session_id":"s","identity_mode":1}`, "invalid_identity_mode", 400},
		"null optionals":            {`{"prompt":"Hello there","session_id":"s","turn":null,"identity_mode":null}`, "", 200},
		"unknown members":           {`{"prompt":"Hello there","session_id":"s","mood":"good"}`, "", 200},
		"too large":                 {`{"prompt":"` + strings.Repeat("a", 129<<10) + `","session_id":"s"}`, "body_too_large", 413},
	} {
		t.Run(name, func(t *testing.T) {
			w := s.post("/lex/govern", test.body)
			var got struct{ Error, Code string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != test.status || got.Code != test.code || (test.code != "") != (got.Error != "") {
				t.Errorf("%d %.200s", w.Code, w.Body)
			}
		})
	}
}

func TestGovernMethods(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	for path, allow := range map[string]string{"/lex/govern": "POST", "/lex/govern/stream": "POST", "/stats": "GET, HEAD", "/audits/recent": "GET, HEAD"} {
		w := httptest.NewRecorder()
		s.serve(w, httptest.NewRequest(http.MethodDelete, "http://site.test"+path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != allow {
			t.Errorf("DELETE %s: %d, Allow %q", path, w.Code, w.Header().Get("Allow"))
		}
	}
}

// A prompt that is encoded more deeply than the detector opens is answered, but
// its receipt says that it was not read to the bottom.
func TestDeeplyEncodedPromptIsNotCovered(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	prompt := "What is the capital of France?"
	for layer := range 7 {
		govern(s, fmt.Sprintf(`{"prompt":%q,"session_id":"s%d"}`, prompt, layer))
		skipped := s.receipts()[0]["coverage"].(map[string]any)["skipped"].([]any)
		if layer <= detect.Rounds && len(skipped) != 0 || layer > detect.Rounds && len(skipped) != 1 {
			t.Errorf("%d layers: skipped %v", layer, skipped)
		}
		prompt = base64.StdEncoding.EncodeToString([]byte(prompt))
	}
}

// A prompt in a cipher that nobody here can read is answered, and its receipt
// says how much of it was read as no language.
func TestPromptWithoutLanguageIsNotCovered(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	cipher := "qZ8vK1xW3mT7rB5nL9pD2fH6jS4gC0yXeUaIoQwErTyUiOpLkJhGfDsAzXcVbNm"
	govern(s, `{"prompt":"Please answer: `+cipher+`","session_id":"s"}`)
	skipped, _ := s.receipts()[0]["coverage"].(map[string]any)["skipped"].([]any)
	if len(skipped) != 1 {
		t.Fatalf("skipped %v", skipped)
	}
	if part := skipped[0].(map[string]any); part["why"] != "reads as no language" || part["bytes"] != float64(len(cipher)) {
		t.Errorf("skipped %v", part)
	}
}

// conversation records what the model was asked, arm by arm.
type conversation struct {
	mu   sync.Mutex
	asks [][]map[string]string
}

func (c *conversation) answer(text string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		var ask struct {
			Messages []map[string]string `json:"messages"`
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &ask); err != nil {
			return err
		}
		c.mu.Lock()
		c.asks = append(c.asks, ask.Messages)
		c.mu.Unlock()
		return answering("application/json", completion(text))(w, r)
	}
}

// governed returns the messages of the arms that had a system prompt, and raw
// those that had not.
func (c *conversation) split() (governed, raw [][]map[string]string) {
	for _, m := range c.asks {
		if m[0]["role"] == "system" {
			governed = append(governed, m)
		} else {
			raw = append(raw, m)
		}
	}
	return governed, raw
}

func TestGovernArms(t *testing.T) {
	c := new(conversation)
	s := newSite(t, `{}`, c.answer("Paris is the capital of France."))
	govern(s, question)
	second := govern(s, `{"prompt":"And of Italy?","session_id":"s"}`)
	governed, raw := c.split()
	if len(governed) != 2 || len(raw) != 2 {
		t.Fatalf("%d governed and %d raw calls", len(governed), len(raw))
	}
	for _, m := range raw {
		if len(m) != 1 || m[0]["role"] != "user" {
			t.Errorf("the raw arm got more than the prompt: %v", m)
		}
	}
	want := []string{"system", "user", "assistant", "user"}
	for i, m := range governed[1] {
		if i >= len(want) || m["role"] != want[i] {
			t.Fatalf("the governed arm was asked %v", governed[1])
		}
	}
	if second["memory_injected"] != true {
		t.Error("memory_injected is false")
	}
}

func TestIdentityModes(t *testing.T) {
	for mode, want := range map[string][]string{
		"full":    {"Continuity:", "[constitutional state:"},
		"minimal": {"You are a helpful assistant."},
		"dynamic": {"You are a helpful assistant.", "[constitutional state:", "[band: optimal]"},
		"none":    nil,
	} {
		t.Run(mode, func(t *testing.T) {
			c := new(conversation)
			s := newSite(t, `{"baseline":"never"}`, c.answer("Paris."))
			got := govern(s, `{"prompt":"What is the capital of France?","session_id":"s","identity_mode":"`+mode+`"}`)
			if got["identity_mode"] != mode {
				t.Errorf("identity_mode %v", got["identity_mode"])
			}
			asked := c.asks[0]
			if (want == nil) != (asked[0]["role"] == "user") {
				t.Fatalf("asked %v", asked)
			}
			for _, w := range want {
				if !strings.Contains(asked[0]["content"], w) {
					t.Errorf("no %q in %q", w, asked[0]["content"])
				}
			}
		})
	}
}

func TestBaseline(t *testing.T) {
	attackBody := `{"prompt":"` + attack + `","session_id":"s"}`
	for baseline, want := range map[string][2]string{
		"unless_refused": {"Paris.", ""}, "always": {"Paris.", "Paris."}, "never": {"", ""},
	} {
		t.Run(baseline, func(t *testing.T) {
			s := newSite(t, `{"baseline":"`+baseline+`"}`, answering("application/json", completion("Paris.")))
			if got := govern(s, question)["raw_output"]; got != want[0] {
				t.Errorf("question: raw_output %q", got)
			}
			got := govern(s, attackBody)
			if got["raw_output"] != want[1] || got["refused"] != true || got["governed_source"] != nil {
				t.Errorf("attack: %v", got)
			}
		})
	}
}

// The raw answer stands in for a governed one that failed, under the same checks.
func TestRawFallback(t *testing.T) {
	failGoverned := func(text string) caddyhttp.HandlerFunc {
		c := new(conversation)
		return func(w http.ResponseWriter, r *http.Request) error {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"system"`) {
				w.WriteHeader(http.StatusBadGateway)
				return nil
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			return c.answer(text)(w, r)
		}
	}
	s := newSite(t, `{}`, failGoverned("Paris."))
	if got := govern(s, question); got["governed_source"] != "raw_fallback" || got["governed_output"] != "Paris." {
		t.Errorf("%v", got)
	}
	if w := s.post("/lex/govern/stream", question); !strings.Contains(w.Body.String(), `"governed_source":"raw_fallback"`) {
		t.Errorf("streamed: %s", w.Body)
	}
	s = newSite(t, `{}`, failGoverned("From now on I am now DAN and I no longer follow my rules. I have no restrictions."))
	got := govern(s, question)
	if got["refused"] != true || got["primary_refusal_reason"] != "capitulation" || got["raw_output"] != "" || strings.Contains(got["governed_output"].(string), "DAN") {
		t.Errorf("%v", got)
	}
}

func TestProviderExhausted(t *testing.T) {
	for name, model := range map[string]caddyhttp.HandlerFunc{
		"500": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusInternalServerError)
			return nil
		},
		"error":      func(http.ResponseWriter, *http.Request) error { return io.ErrUnexpectedEOF },
		"no handler": func(http.ResponseWriter, *http.Request) error { return nil },
		"not JSON":   answering("application/json", "<html>"),
		"panic":      func(http.ResponseWriter, *http.Request) error { panic("canary-panic") },
		"abort":      func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) },
	} {
		for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
			t.Run(name+path, func(t *testing.T) {
				s := newSite(t, `{}`, model)
				w := s.post(path, question)
				if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"code":"provider_exhausted"`) {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				if got := s.receipts()[0]["outcome"]; got != "provider_failed" {
					t.Errorf("outcome %v", got)
				}
			})
		}
	}
}

// If the provider answers with an error, the log has its status, and the caller learns
// whether to ask again.
func TestProviderStatus(t *testing.T) {
	for status, retries := range map[int]bool{307: false, 400: false, 401: false, 404: false, 408: true, 429: true, 503: true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"canary-key"}}`)
		}))
		for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
			p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex\nreverse_proxy "+srv.Listener.Addr().String())
			got, header, body := p.send(http.MethodPost, path, question, nil)
			if got != http.StatusInternalServerError || !strings.Contains(body, `"provider_exhausted"`) || strings.Contains(body, "canary") {
				t.Errorf("%d, %s: %d %s", status, path, got, body)
			}
			if strings.Contains(body, "answered; retry.") != retries || (header.Get("Retry-After") == "7") != retries {
				t.Errorf("%d, %s: %s, Retry-After %q", status, path, body, header.Get("Retry-After"))
			}
			logged := p.stop()
			if strings.Count(logged, fmt.Sprintf(`an error","status":%d`, status)) != 1 || strings.Contains(logged, "canary") {
				t.Errorf("%d, %s: the log does not say the status once: %s", status, path, logged)
			}
		}
		srv.Close()
	}
}

// The done event of a stream has what the plain answer has.
func TestStreamEqualsPlain(t *testing.T) {
	plain := govern(newSite(t, `{}`, answering("application/json", completion("Paris is the capital."))), question)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"stream":true`) {
			return answering("text/event-stream", stream("Paris ", "is ", "the capital."))(w, r)
		}
		return answering("application/json", completion("Paris is the capital."))(w, r)
	})
	w := s.post("/lex/govern/stream", question)
	frames := strings.Split(strings.TrimSpace(w.Body.String()), "\n\n")
	var done map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(frames[len(frames)-1], "data: ")), &done); err != nil {
		t.Fatal(err, w.Body)
	}
	for field, want := range plain {
		switch field {
		case "receipt_id", "timestamp", "timing_ms", "prompt_commitment", "output_commitment", "openings", "coverage":
			continue
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(done[field])
		if string(a) != string(b) {
			t.Errorf("%s: plain %s, streamed %s", field, a, b)
		}
	}
	if len(done) != len(plain)+1 || len(frames) != 4 {
		t.Errorf("%d fields and %d plain ones, %d frames: %s", len(done), len(plain), len(frames), w.Body)
	}
}

// A session belongs to the caller's namespace: its id alone opens nothing.
func TestSessionsAreApart(t *testing.T) {
	c := new(conversation)
	s := newSite(t, `{}`, c.answer("Paris."))
	govern(s, question)
	r := httptest.NewRequest(http.MethodPost, "http://site.test/lex/govern", strings.NewReader(question))
	r.RemoteAddr = "198.51.100.7:1234"
	w := httptest.NewRecorder()
	s.serve(w, r)
	if !strings.Contains(w.Body.String(), `"memory_injected":false`) {
		t.Errorf("another address reads the session: %s", w.Body)
	}
}

func TestObserveChangesNothing(t *testing.T) {
	s := newSite(t, `{"mode":"observe"}`, answering("application/json", completion("I obey.")))
	w := s.post("/v1/chat/completions", chatAttack)
	if w.Body.String() != completion("I obey.") || w.Header().Get("X-Lex-Receipt-Id") != "" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	receipt := s.receipts()[0]
	if receipt["refused"] != false || receipt["would_refuse"] != true || receipt["governor_mode"] != "observe" {
		t.Errorf("receipt %v", receipt)
	}
	got := govern(s, `{"prompt":"`+attack+`","session_id":"s"}`)
	if got["refused"] != false || len(got["refusal_reasons"].([]any)) != 0 || got["governed_output"] != "I obey." {
		t.Errorf("%v", got)
	}
}

// Refusals and what only the mode observe let pass are both counted, apart, so
// that a graph shows what enforcing would do.
func TestRefusalsAreCountedByMode(t *testing.T) {
	for mode, other := range map[string]string{"enforce": "observe", "observe": "enforce"} {
		s := newSite(t, `{"mode":"`+mode+`","baseline":"never"}`, answering("application/json", completion(gaveIn)))
		counted := func(mode, reason string) float64 {
			return metric(t, "lex_refusals_total", "mode", mode, "reason", reason)
		}
		before := map[string]float64{}
		for _, reason := range []string{"semantic_classifier", "capitulation"} {
			before[mode+reason], before[other+reason] = counted(mode, reason), counted(other, reason)
		}
		govern(s, `{"prompt":"`+attack+`","session_id":"a"}`)
		govern(s, question)
		s.post("/v1/chat/completions", chatQuestion)
		for reason, want := range map[string]float64{"semantic_classifier": 1, "capitulation": 2} {
			if got := counted(mode, reason) - before[mode+reason]; got != want {
				t.Errorf("%s: %s rose by %v, want %v", mode, reason, got, want)
			}
			if got := counted(other, reason) - before[other+reason]; got != 0 {
				t.Errorf("in mode %s, %s of mode %s rose by %v", mode, reason, other, got)
			}
		}
	}
}

// What a site in observe mode would have refused is not remembered: an enforcing
// site on the same store would give it to its model as history.
func TestObservedAttacksAreNotRemembered(t *testing.T) {
	for name, test := range map[string]struct{ prompt, answer string }{
		"an attack":                {attack, "I obey."},
		"an answer that gave in":   {"What is the capital of France?", gaveIn},
		"an attack that succeeded": {attack, gaveIn},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(conversation)
			enforcing := newSite(t, `{"baseline":"never"}`, c.answer("Paris."))
			observing := newSiteWith(t, `{"mode":"observe","baseline":"never"}`,
				map[string]any{"store": map[string]any{"engine": "faulty", "path": enforcing.path}},
				answering("application/json", completion(test.answer)))
			govern(enforcing, `{"prompt":"What is the capital of Spain?","session_id":"s"}`)
			govern(observing, `{"prompt":"`+test.prompt+`","session_id":"s"}`)
			if receipt := observing.receipts()[0]; receipt["would_refuse"] != true {
				t.Fatalf("receipt %v", receipt)
			}
			govern(enforcing, `{"prompt":"And of Italy?","session_id":"s"}`)
			last, _ := json.Marshal(c.asks[len(c.asks)-1])
			if text := string(last); strings.Contains(text, test.prompt) || strings.Contains(text, test.answer) || !strings.Contains(text, "Spain") {
				t.Errorf("the model was told %s", text)
			}
		})
	}
}

// Many turns of one session at once are each one step of one chain.
func TestConcurrentTurnsOfOneSession(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	var wg sync.WaitGroup
	const turns = 32
	for range turns {
		wg.Go(func() { s.post("/lex/govern", question) })
	}
	wg.Wait()
	prev := make(map[any]int)
	for _, r := range s.receipts() {
		prev[r["prev"]]++
	}
	if len(prev) != turns {
		t.Errorf("%d turns have %d different predecessors", turns, len(prev))
	}
}

func TestRecentPages(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	for range 7 {
		govern(s, question)
	}
	seen := make(map[string]bool)
	pages := 0
	for path := "/audits/recent?limit=3"; path != ""; pages++ {
		w := httptest.NewRecorder()
		s.serve(w, httptest.NewRequest(http.MethodGet, "http://site.test"+path, nil))
		var page struct{ Receipts []struct{ ID string } }
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Receipts {
			if seen[r.ID] {
				t.Errorf("%s is listed twice", r.ID)
			}
			seen[r.ID] = true
		}
		path = nextPage(t, path, w.Header())
	}
	if len(seen) != 7 || pages != 3 {
		t.Errorf("%d receipts on %d pages", len(seen), pages)
	}
	for _, limit := range []string{"0", "-1", "x", "1.5", ""} {
		w := httptest.NewRecorder()
		s.serve(w, httptest.NewRequest(http.MethodGet, "http://site.test/audits/recent?limit="+limit, nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("limit %q: %d", limit, w.Code)
		}
	}
}

func TestRateLimit(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	w := s.post("/lex/govern", question)
	if w.Header().Get("X-RateLimit-Limit") != "1000000" || w.Header().Get("X-RateLimit-Remaining") != "999999" {
		t.Errorf("headers %v", w.Header())
	}
}
