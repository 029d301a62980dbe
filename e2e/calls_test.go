package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const callFrames = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"

const callEnd = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"

// A call that the model has asked for and that is not committed yet does not leave: not if
// the process is killed then. A reload does not disturb it: it leaves with its receipt.
func TestCallsThatAreHeld(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(t *testing.T, s *server, p ports, text string){
		"killed": func(_ *testing.T, s *server, _ ports, _ string) { s.kill() },
		"reloaded": func(t *testing.T, s *server, p ports, text string) {
			s.reload(t, p, writeCaddyfile(t, p, strings.Replace(text, "lex\n\treverse_proxy", "lex {\n\t\tmodel other\n\t}\n\treverse_proxy", 1)), `"model":"other"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, goOn := make(chan struct{}), make(chan struct{})
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "weather") {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Good day."},"finish_reason":"stop"}]}`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, callFrames)
				_ = http.NewResponseController(w).Flush()
				close(asked)
				<-goOn
				_, _ = io.WriteString(w, callEnd)
			}))
			defer upstream.Close()
			p, home := freePorts(t), t.TempDir()
			text := strings.Replace(loadCaddyfile, "reverse_proxy 127.0.0.1:${demo}", "reverse_proxy "+upstream.Listener.Addr().String()+" {\n\t\tstream_close_delay 1m\n\t}", 1)
			config := writeCaddyfile(t, p, text)
			s := start(t, config, home, p)
			client := &http.Client{Timeout: time.Minute} // the server's own drops its connections in a reload
			resp, err := client.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"What is the weather?"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			<-asked
			disturb(t, s, p, text)
			close(goOn)
			got, err := io.ReadAll(resp.Body)
			if left := strings.Contains(string(got), "get_weather"); left != (name == "reloaded") || (err == nil) != left {
				t.Errorf("%v: %s", err, got)
			}
			if name == "killed" {
				s = start(t, config, home, p)
			}
			calls := 0
			for _, id := range s.receipts(t) {
				if strings.HasPrefix(id, "TCR-") {
					calls++
				}
			}
			if want := map[string]int{"killed": 0, "reloaded": 1}[name]; calls != want {
				t.Errorf("%d receipts of calls", calls)
			}
		})
	}
}
