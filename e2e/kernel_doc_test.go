package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What docs/kernel.md computes by hand agrees with receipts as they are served:
// at rest, watched, corrected and refused.
func TestReceiptsByHand(t *testing.T) {
	doc, err := os.ReadFile("../docs/kernel.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(doc), "```js\n")
	program, _, closed := strings.Cut(program, "```\n")
	if !found || !closed {
		t.Fatal("docs/kernel.md has no program")
	}
	script := filepath.Join(t.TempDir(), "recompute.mjs")
	if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, loadCaddyfile), "", p)
	s.talk(t)
	for _, session := range []string{"one", "two"} {
		for range 3 {
			s.do(t, http.MethodPost, "/lex/govern", governBody(attackPrompt, session))
		}
	}
	corrected := false
	for _, item := range s.do(t, http.MethodGet, "/audits/recent?limit=200", "").object(t)["receipts"].([]any) {
		receipt := item.(map[string]any)
		corrected = corrected || receipt["intervention"] == true
		out, err := exec.Command("node_modules/.bin/node", script, s.URL, receipt["id"].(string)).CombinedOutput()
		if err != nil || strings.Count(string(out), "agrees") != 5 {
			t.Errorf("%v: %v\n%s", receipt["id"], err, out)
		}
	}
	if !corrected {
		t.Error("no receipt with a correction was compared")
	}
}
