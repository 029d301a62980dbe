package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/common/expfmt"
)

// logLines returns the lines with a message.
func logLines(t *testing.T, logged, message string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(logged) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if entry["msg"] == message {
			lines = append(lines, entry)
		}
	}
	return lines
}

// Each decision leaves one line: at debug level what passes, at info level what does not.
func TestDecisionsAreLogged(t *testing.T) {
	p := runBusy(t)
	logged := p.stop()
	for _, c := range []struct {
		message, level string
		count          int
		members        []string
	}{
		{"a turn was let through", "debug", 6, []string{"receipt_id", "turn_id", "session", "endpoint", "dialect", "mode", "outcome", "reasons", "severity", "margin", "health_band", "bytes_inspected", "prompt_commitment", "assess", "commit"}},
		{"a turn was refused", "info", 2, []string{"receipt_id", "reasons", "attack_type", "severity"}},
		{"a tool call was blocked", "info", 2, []string{"receipt_id", "decision", "invariant", "effect", "arguments_commitment"}},
		{"a request was not accepted", "debug", 1, []string{"endpoint", "dialect", "status", "code"}},
	} {
		lines := logLines(t, logged, c.message)
		if len(lines) != c.count {
			t.Errorf("%d lines say that %s, want %d", len(lines), c.message, c.count)
		}
		for _, line := range lines {
			if line["level"] != c.level {
				t.Errorf("%s: %v", c.message, line)
			}
			for _, member := range c.members {
				if _, ok := line[member]; !ok {
					t.Errorf("%s: no %s in %v", c.message, member, line)
				}
			}
		}
	}
	for _, message := range []string{"the remote model is failing, and is not asked for a while by the callers whose turns fail"} {
		if lines := logLines(t, logged, message); len(lines) == 0 || lines[0]["level"] != "warn" {
			t.Errorf("%s: %v", message, lines)
		}
	}
}

// An upstream that dies leaves a line at warn level, and one when it is back.
func TestUpstreamStateIsLogged(t *testing.T) {
	var dead atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if dead.Load() {
			panic(http.ErrAbortHandler)
		}
		_ = answering("application/json", completion("Paris."))(w, r)
	}))
	defer srv.Close()
	for _, path := range []string{"/v1/chat/completions", "/lex/govern"} {
		p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex {\nbaseline never\n}\nreverse_proxy "+srv.Listener.Addr().String())
		send := func(n int) {
			for range n {
				p.send(http.MethodPost, path, map[bool]string{true: chatQuestion, false: question}[path == "/v1/chat/completions"], nil)
			}
		}
		send(2)
		dead.Store(true)
		send(3)
		dead.Store(false)
		send(2)
		logged := p.stop()
		failing, back := logLines(t, logged, "the upstream is failing"), logLines(t, logged, "the upstream is back")
		if len(failing) != 1 || failing[0]["level"] != "warn" || failing[0]["cause"] != "reset" || len(back) != 1 || back[0]["level"] != "warn" {
			t.Errorf("%s: %v %v", path, failing, back)
		}
	}
}

// hostileUpstream answers with canaries in everything that a provider can write.
func hostileUpstream(t *testing.T) string {
	t.Helper()
	var requests atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		kind := requests.Add(1) % 5
		call := `{"id":"` + canary + `id","object":"chat.completion","created":1,"model":"` + canary + `model","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"` + canary + `answer","tool_calls":[{"id":"` + canary + `call","type":"function","function":{"name":"` + canary + `tool","arguments":"{\"command\":\"rm -rf / ` + canary + `argument\"}"}}]}}]}`
		switch {
		case strings.Contains(string(body), `"stream":true`):
			_ = answering("text/event-stream", stream(canary+"answer ", "goes on", capitulation))(w, r)
		case kind == 0:
			http.Error(w, `{"error":{"message":"`+canary+`error"}}`, http.StatusInternalServerError)
		case kind == 1:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"`+canary+`broken`)
		case kind == 2:
			w.Header().Set("Content-Length", "10000")
			_, _ = io.WriteString(w, canary+"cut")
			panic(http.ErrAbortHandler)
		case kind == 3:
			_ = answering("application/json", completion(canary+"answer "+capitulation))(w, r)
		default:
			_ = answering("application/json", call)(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// Nothing that is logged at debug level, and no metric, holds what hostile callers and
// upstreams plant: in headers, query, prompts, answers, arguments and names of tools, models
// and sessions, and in the bodies of errors.
func TestNothingOfTrafficIsLogged(t *testing.T) {
	remote := "{\nbase_url http://" + hostileUpstream(t) + "/v1\nmodel m\napi_key " + canary + "remote-key\n}"
	p := runCaddy(t, "lex {\nstore bolt ${store}\nembedder openai "+remote+"\njudge openai "+remote+"\n}", "handle /metrics {\nmetrics\n}\nhandle {\nlex {\nhistory refuse\n}\nreverse_proxy "+hostileUpstream(t)+"\n}")
	header, query := planted()
	header.Set("X-Lex-Session", canary+"session")
	prompts := []string{canary + "prompt", attack + " " + canary + "prompt", "What is the persona of " + canary + "prompt?"}
	for _, prompt := range prompts {
		chat := fmt.Sprintf(`"model":%q,"user":%q,"messages":[{"role":"system","content":%q},{"role":"user","content":%q}],%q:1`, canary+"model", canary+"user", canary+"system", prompt, canary+"member")
		for _, r := range [][2]string{
			{"/v1/chat/completions", "{" + chat + "}"},
			{"/v1/chat/completions", `{"stream":true,` + chat + "}"},
			{"/v1/chat/completions", "{" + chat},
			{"/v1/responses", fmt.Sprintf(`{"model":%q,"input":%q,"conversation":%q}`, canary+"model", prompt, canary+"conversation")},
			{"/v1/messages", fmt.Sprintf(`{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":%q}]}`, canary+"model", prompt)},
			{"/lex/govern", fmt.Sprintf(`{"prompt":%q,"session_id":%q}`, prompt, canary+"session")},
			{"/lex/govern/stream", fmt.Sprintf(`{"prompt":%q,"session_id":%q}`, prompt, canary+"session")},
			{"/lex/govern", fmt.Sprintf(`{"prompt":%q,"session_id":%q,"identity_mode":%q}`, prompt, canary+"session", canary+"mode")},
			{"/lex/tools/check", fmt.Sprintf(`{"session_id":%q,"tool":{"name":%q,"arguments":{"command":%q}}}`, canary+"session", canary+"tool", "rm -rf / "+canary)},
			{"/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":{"command":%q}}}`, canary+"id", canary+"tool", "rm -rf / "+canary)},
			{"/v1/other", fmt.Sprintf(`{"a":%q}`, prompt)},
			{"/audits/verify", fmt.Sprintf(`{"receipt_id":%q,"prompt":%q}`, canary+"receipt", prompt)},
		} {
			for range 2 {
				p.send(http.MethodPost, r[0]+"?"+query, r[1], header)
				header.Del("X-Lex-Api-Key")
				p.send(http.MethodPost, r[0]+"?"+query, r[1], header)
				header.Set("X-Lex-Api-Key", canary+"key")
			}
		}
	}
	families := p.scrape()
	var scraped strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&scraped, family); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(scraped.String(), canary) || len(families) < 10 {
		t.Errorf("a scrape of %d metrics has a canary, or too little: %.3000s", len(families), scraped.String())
	}
	_, health := p.health()
	logged := p.stop()
	checkNoCanary(t, logged+health)
	for _, message := range []string{"a turn was let through", "a turn was refused", "a tool call was blocked", "a request was not accepted", "the handlers behind lex failed"} {
		if len(logLines(t, logged, message)) == 0 {
			t.Errorf("no line says that %s", message)
		}
	}
}
