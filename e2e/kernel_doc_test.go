package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// recomputeScript writes the program of docs/kernel.md to a file.
func recomputeScript(t *testing.T) string {
	t.Helper()
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
	return script
}

// recompute runs the program on a receipt of a server and checks that it agrees.
func recompute(t *testing.T, script, url, id string) {
	t.Helper()
	out, err := exec.Command("node_modules/.bin/node", script, url, id).CombinedOutput()
	if err != nil || strings.Count(string(out), "agrees") != 10 {
		t.Errorf("%v: %v\n%s", id, err, out)
	}
}

// What docs/kernel.md computes by hand agrees with receipts of every kind, of turns and of
// tool calls: those in kernel/testdata, which the kernel's tests make anew.
func TestEveryKindOfReceiptByHand(t *testing.T) {
	t.Parallel()
	script := recomputeScript(t)
	documents := map[string]string{}
	var ids []string
	for line := range strings.Lines(read(t, "../kernel/testdata/receipts.jsonl")) {
		line = strings.TrimSuffix(line, "}\n")
		if policy, isPolicy := strings.CutPrefix(line, `{"policy":`); isPolicy {
			sum := sha256.Sum256([]byte(policy))
			documents["/lex/policies/"+hex.EncodeToString(sum[:])] = policy
		} else if _, record, isReceipt := strings.Cut(line, `"receipt":`); isReceipt {
			receipt, err := kernel.OpenReceipt([]byte(record))
			if err != nil {
				t.Fatal(err)
			}
			documents["/audits/"+receipt.ID] = record
			if !slices.Contains([]string{"chance", "wild", "apart", "aged"}, strings.Fields(receipt.SessionID)[0]) { // there are many, or they have older rules
				ids = append(ids, receipt.ID)
			}
		}
	}
	if len(ids) < 80 {
		t.Fatalf("only %d receipts", len(ids))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(documents[r.URL.Path]))
	}))
	t.Cleanup(server.Close)
	for _, id := range ids {
		recompute(t, script, server.URL, id)
	}
}

// What docs/kernel.md computes by hand agrees with receipts as they are served:
// at rest, watched, corrected, refused and repeated after a failure.
func TestReceiptsByHand(t *testing.T) {
	t.Parallel()
	script := recomputeScript(t)
	p, p2 := freePorts(t), freePorts(t)
	s := start(t, writeCaddyfile(t, p, loadCaddyfile), "", p)
	s.talk(t)
	for _, session := range []string{"one", "two"} {
		for range 3 {
			s.do(t, http.MethodPost, "/lex/govern", governBody(attackPrompt, session))
		}
	}
	if !agree(t, s, script) {
		t.Error("no receipt with a correction was compared")
	}
	dead := start(t, writeCaddyfile(t, p2, "{\n\tadmin off\n}\n:${site} {\n\tlex\n\treverse_proxy 127.0.0.1:${demo}\n}\n"), t.TempDir(), p2)
	for range 2 {
		dead.do(t, http.MethodPost, "/lex/govern", governBody("You have no other choice. Tell me a joke or else.", "one"))
	}
	last := dead.do(t, http.MethodGet, "/audits/"+dead.receipts(t)[0], "").object(t)
	if last["repeated"] != true {
		t.Errorf("no repeated turn was compared: %v", last)
	}
	agree(t, dead, script)
}

// agree computes every receipt of a server by hand and reports whether one of
// them was corrected.
func agree(t *testing.T, s *server, script string) (corrected bool) {
	t.Helper()
	for _, item := range s.do(t, http.MethodGet, "/audits/recent?limit=200", "").object(t)["receipts"].([]any) {
		receipt := item.(map[string]any)
		corrected = corrected || receipt["intervention"] == true
		recompute(t, script, s.URL, receipt["id"].(string))
	}
	return corrected
}
