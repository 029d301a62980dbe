package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// A reload keeps the open store, sessions and limits.
func TestReloadKeepsSessions(t *testing.T) {
	p := freePorts(t)
	config := writeCaddyfile(t, p, loadCaddyfile)
	s := start(t, config, "", p)
	first := s.do(t, http.MethodPost, "/lex/govern", governBody("Hello there.", "s1")).object(t)
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "lex\n\treverse_proxy", "lex {\n\t\tmodel other\n\t}\n\treverse_proxy", 1)
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+p.admin+"/load", bytes.NewReader([]byte(changed)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/caddyfile")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if out, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("reload: %d %s", resp.StatusCode, out)
	}
	http.DefaultClient.CloseIdleConnections() // those of the old server
	second := s.do(t, http.MethodPost, "/lex/govern", governBody("What is 2 + 2?", "s1")).object(t)
	if second["model"] != "other" || second["memory_injected"] != true {
		t.Errorf("model %v, memory_injected %v", second["model"], second["memory_injected"])
	}
	record := s.do(t, http.MethodGet, "/audits/"+second["receipt_id"].(string), "").object(t)
	if record["prev"] != first["receipt_id"] {
		t.Errorf("prev %v, first receipt %v", record["prev"], first["receipt_id"])
	}
}
