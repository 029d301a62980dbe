package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wired runs the Caddyfile of an example with its addresses replaced.
func wired(t *testing.T, name string, replace ...string) *server {
	t.Helper()
	p := freePorts(t)
	text := strings.NewReplacer(append(replace, ":8080 ", ":"+p.site+" ", "127.0.0.1:11434", "127.0.0.1:"+p.demo)...).Replace(read(t, filepath.Join("../examples", name, "Caddyfile")))
	return start(t, writeCaddyfile(t, p, withAdmin(text)+demoSite), "", p)
}

// tries are the calls of an example's README.
func tries(t *testing.T, name string) [][]string {
	t.Helper()
	return example.FindAllStringSubmatch(read(t, filepath.Join("../examples", name, "README.md")), -1)
}

// The suspicious prompt goes to the other model, and the ordinary one does not.
func TestExampleRoutesBySeverity(t *testing.T) {
	t.Parallel()
	careful := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeWhole(w, http.StatusOK, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"I am the careful one."},"finish_reason":"stop"}]}`, "")
	}))
	defer careful.Close()
	s := wired(t, "route-by-severity", "127.0.0.1:11435", careful.Listener.Addr().String())
	calls := tries(t, "route-by-severity")
	for i, suspicious := range []bool{false, true} {
		got := s.do(t, http.MethodPost, calls[i][1], calls[i][3])
		if got.Status != http.StatusOK || strings.Contains(got.Body, "careful one") != suspicious {
			t.Errorf("%s: %d %s", calls[i][3], got.Status, got.Body)
		}
	}
	if got := s.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":`+quote(attack)+`}]}`); strings.Contains(got.Body, "careful one") || strings.Contains(got.Body, "demo model") {
		t.Errorf("an attack: %s", got.Body)
	}
}

// The line of the access log has the receipt of its request, streamed or not.
func TestExampleLogsTheReceipt(t *testing.T) {
	t.Parallel()
	s := wired(t, "access-log")
	call := tries(t, "access-log")[0]
	s.do(t, http.MethodPost, call[1], call[3])
	s.do(t, http.MethodPost, call[1], strings.Replace(call[3], "{", `{"stream":true,`, 1))
	s.do(t, http.MethodPost, call[1], `{"model":"m","messages":[{"role":"user","content":`+quote(attack)+`}]}`)
	receipts := s.receipts(t)
	for i, refused := range []bool{true, false, false} { // newest first
		found := 0
		for line := range strings.Lines(s.logs.String()) {
			var entry struct {
				Logger   string
				Receipt  string
				Severity *float64
				Refused  bool
			}
			if json.Unmarshal([]byte(line), &entry) == nil && strings.HasPrefix(entry.Logger, "http.log.access") && entry.Receipt == receipts[i] {
				if found++; entry.Severity == nil || entry.Refused != refused {
					t.Errorf("%s", line)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d lines have the receipt %s:\n%s", found, receipts[i], s.logs)
		}
	}
}

// A refusal, and nothing else, calls the webhook, and its token is in no configuration.
func TestExampleCallsTheWebhook(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 8)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer hook.Close()
	address := hook.URL + "/refused?token=sesame"
	p := freePorts(t)
	text := strings.NewReplacer(":8080 ", ":"+p.site+" ", "127.0.0.1:11434", "127.0.0.1:"+p.demo).Replace(read(t, "../examples/webhook/Caddyfile"))
	s := start(t, writeCaddyfile(t, p, withAdmin(text)+demoSite), "", p, "HOOK_URL="+address)
	config, err := s.client.Get("http://127.0.0.1:" + p.admin + "/config/")
	if err != nil {
		t.Fatal(err)
	}
	defer config.Body.Close()
	if shown, err := io.ReadAll(config.Body); err != nil || !strings.Contains(string(shown), "lex_webhook") || strings.Contains(string(shown), "sesame") {
		t.Errorf("%v: the configuration is %s", err, shown)
	}
	call := tries(t, "webhook")[0]
	s.do(t, http.MethodPost, call[1], `{"model":"m","messages":[{"role":"user","content":"What is the capital of France?"}]}`)
	s.do(t, http.MethodPost, call[1], call[3])
	select {
	case got := <-calls:
		body, hasType := strings.CutPrefix(got, "POST /refused application/cloudevents+json ")
		var event struct {
			SpecVersion, Type, Source string
			Data                      map[string]string
		}
		if err := json.Unmarshal([]byte(body), &event); err != nil || !hasType {
			t.Fatalf("%v: %s", err, got)
		}
		if event.Type != "lex_refused" || event.SpecVersion != "1.0" || event.Source != "lex" || event.Data["receipt_id"] != s.receipts(t)[0] || event.Data["reason"] != "semantic_classifier" || event.Data["endpoint"] != "openai_chat" {
			t.Errorf("%s", got)
		}
		if strings.Contains(got, "DAN") {
			t.Errorf("it has the prompt: %s", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("the webhook was not called:\n%s", s.logs)
	}
	if len(calls) > 0 {
		t.Errorf("it was called again: %s", <-calls)
	}
}
