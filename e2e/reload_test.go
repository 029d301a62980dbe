package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A reload keeps the open store, sessions and limits.
func TestReloadKeepsSessions(t *testing.T) {
	t.Parallel()
	// The model is no server of the process that reloads: for a moment the old
	// listener of a port takes connections beside the new one (SO_REUSEPORT), and
	// resets those that wait in its queue when it closes.
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Good day."},"finish_reason":"stop"}]}`)
	}))
	defer upstream.Close()
	p := freePorts(t)
	text := strings.Replace(loadCaddyfile, "reverse_proxy 127.0.0.1:${demo}", "reverse_proxy "+upstream.Listener.Addr().String(), 1)
	s := start(t, writeCaddyfile(t, p, text), "", p)
	first := s.do(t, http.MethodPost, "/lex/govern", governBody("Hello there.", "s1")).object(t)

	changed := writeCaddyfile(t, p, strings.Replace(text, "lex\n\treverse_proxy", "lex {\n\t\tmodel other\n\t}\n\treverse_proxy", 1))
	s.reload(t, p, changed, `"model":"other"`)
	second := s.do(t, http.MethodPost, "/lex/govern", governBody("What is 2 + 2?", "s1")).object(t)
	if second["model"] != "other" || second["memory_injected"] != true {
		t.Fatalf("after the reload: %v", second)
	}
	record := s.do(t, http.MethodGet, "/audits/"+second["receipt_id"].(string), "").object(t)
	if prev, _ := record["prev"].(string); !strings.HasPrefix(prev, first["receipt_id"].(string)) {
		t.Errorf("prev %v, first receipt %v", record["prev"], first["receipt_id"])
	}
}

// A request that comes to lex only after its configuration was cleaned up, because what stands
// before took its time, is governed all the same: Caddy does not wait for requests when it reloads.
func TestReloadWhileARequestIsAuthenticated(t *testing.T) {
	t.Parallel()
	p, upstream := freePorts(t), patientModel(t)
	asked, allow := make(chan struct{}), make(chan struct{})
	auth := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-allow
	}))
	defer auth.Close()
	site := "route {\n\t\tforward_auth /v1/* " + auth.Listener.Addr().String() + " {\n\t\t\turi /\n\t\t}\n\t\tlex {\n\t\t\tmodel ${model}\n\t\t}\n\t\treverse_proxy " + upstream + "\n\t}"
	config := func(model string) (file string) {
		text := strings.Replace(loadCaddyfile, "lex\n\treverse_proxy 127.0.0.1:${demo}", site, 1)
		return writeCaddyfile(t, p, strings.Replace(text, "${model}", model, 1))
	}
	s := start(t, config("m"), "", p)
	answered := make(chan *http.Response)
	go func() {
		resp, _ := s.client.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"What is the capital of France?"}]}`))
		answered <- resp
	}()
	<-asked
	s.reload(t, p, config("other"), `"model":"other"`)
	close(allow)
	resp := <-answered
	if resp == nil {
		t.Fatal("no answer")
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	receipt := resp.Header.Get("X-Lex-Receipt-Id")
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "Good day.") || receipt == "" {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if found := s.do(t, http.MethodGet, "/receipts/"+receipt, ""); found.Status != http.StatusOK {
		t.Errorf("its receipt: %d %s", found.Status, found.Body)
	}
}

// reload loads a Caddyfile through the admin endpoint and returns when a
// connection to the new servers is open, which the next requests then use: one
// that answered with the mark, which the old configuration does not have.
func (s *server) reload(t *testing.T, p ports, caddyfile, mark string) {
	t.Helper()
	text, err := os.ReadFile(caddyfile)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Post("http://127.0.0.1:"+p.admin+"/load", "text/caddyfile", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if out, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("reload: %d %s", resp.StatusCode, out)
	}
	eventually(t, 30*time.Second, func() bool {
		s.client.CloseIdleConnections() // those of the old server
		resp, err := s.client.Post(s.URL+"/lex/govern", "application/json", strings.NewReader(governBody("Hello there.", "probe")))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return strings.Contains(string(text), mark)
	}, func() string { return "the new configuration does not answer:\n" + s.logs.String() })
}
