package caddymodule_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pipeline "github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// setupOf reads the setup that the newest receipt names, and its document.
func setupOf(s *site) (setup pipeline.Setup, document string) {
	s.t.Helper()
	hash := s.receipts()[0]["setup"].(string)
	w := s.send(http.MethodGet, "/lex/setups/"+hash, "", asAdmin, "canary-admin")
	sum := sha256.Sum256(w.Body.Bytes())
	if w.Code != http.StatusOK || hex.EncodeToString(sum[:]) != hash {
		s.t.Fatalf("%d %s", w.Code, w.Body)
	}
	setup, err := pipeline.ParseSetup(w.Body.Bytes())
	if err != nil {
		s.t.Fatal(err)
	}
	return setup, w.Body.String()
}

// Every receipt names what decided: of text and of tools, refused and observed.
func TestEveryReceiptNamesItsSetup(t *testing.T) {
	for _, mode := range []string{"enforce", "observe"} {
		s := newSite(t, `{"mode":"`+mode+`"}`, answering("application/json", completion("Paris.")))
		govern(s, question)
		s.post("/lex/govern", `{"prompt":"`+attack+`","session_id":"s"}`)
		s.post("/lex/tools/check", `{"session_id":"s","tool":{"name":"run_command","arguments":{"command":"rm -rf /"}}}`)
		s.post("/v1/chat/completions", chatQuestion)
		setup, _ := setupOf(s)
		receipts := s.receipts()
		for _, r := range receipts {
			if r["setup"] != receipts[0]["setup"] {
				t.Errorf("%s: the setup of %s is %v", mode, r["id"], r["setup"])
			}
		}
		sum := func(text string) string {
			h := sha256.Sum256([]byte(text))
			return hex.EncodeToString(h[:])
		}
		local := "lex-local/" + detect.Default().Version()
		if len(receipts) != 4 || setup.Detector.SHA256 != detect.Default().SHA256() || setup.Embedder.Provider != "local" || setup.Judge.Local != local ||
			setup.Constitution != sum(pipeline.DefaultConstitution()) || setup.Refusal != sum(pipeline.DefaultRefusal) || setup.Code.Go == "" || len(setup.Tools.Weights) != 64 {
			t.Errorf("%s: %d receipts, %+v", mode, len(receipts), setup)
		}
	}
}

// A change of what decides is another setup, and each receipt keeps its own.
func TestAnotherSetupIsAnotherDocument(t *testing.T) {
	seen := map[string]string{}
	for name, options := range map[string]map[string]any{
		"default":      nil,
		"refusal":      {"policy": map[string]any{"refusal_text": "No."}},
		"rules":        {"tools": map[string]any{"deny": []string{"shell"}}},
		"condition":    {"tools": map[string]any{"rules": []any{map[string]any{"name": "r", "condition": "tool == 'x'"}}}},
		"other":        {"tools": map[string]any{"rules": []any{map[string]any{"name": "r", "condition": "tool == 'y'"}}}},
		"embedder":     {"embedder": map[string]any{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "e"}},
		"its length":   {"embedder": map[string]any{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "e", "dimensions": 8}},
		"judge":        {"judge": map[string]any{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "e"}},
		"no memory":    {"memory": 0},
		"a template":   {"policy": map[string]any{"templates": []string{template(t, framing)}}},
		"two of them":  {"policy": map[string]any{"templates": []string{template(t, framing), template(t, "Say {{x}}.")}}},
		"memory":       {"memory": 7},
		"identity":     {"policy": map[string]any{"identity": "minimal"}},
		"its choice":   {"policy": map[string]any{"identity_modes": []string{"full", "minimal"}}},
		"its failures": {"judge": map[string]any{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "e", "fail": "refuse"}},
	} {
		s := newSiteWith(t, `{}`, options, answering("application/json", completion("Paris.")))
		s.post("/lex/tools/check", `{"session_id":"s","tool":{"name":"now"}}`)
		_, document := setupOf(s)
		if other, known := seen[document]; known {
			t.Errorf("%s and %s have one setup: %s", name, other, document)
		}
		seen[document] = name
	}
}

// Named policies that differ in no number of the kernel's are told apart by their receipts.
func TestPoliciesThatDifferInTheirSetup(t *testing.T) {
	policies := map[string]any{
		"short": map[string]any{"memory": 1}, "long": map[string]any{"memory": 50}, "usual": map[string]any{}, "bare": map[string]any{"identity": "none"},
	}
	setups := make(map[string]string)
	for name := range policies {
		s := newSiteWith(t, `{"policy":"`+name+`"}`, map[string]any{"policies": policies}, answering("application/json", completion("Paris.")))
		govern(s, question)
		_, document := setupOf(s)
		if other, known := setups[document]; known {
			t.Errorf("the policies %s and %s have one setup: %s", name, other, document)
		}
		setups[document] = name
		if r := s.receipts()[0]; !strings.Contains(s.post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`).Body.String(), `"valid":true`) {
			t.Errorf("%s: the receipt does not verify", name)
		}
	}
}

// Whatever an operator configures, no credential, address or text of theirs is in the
// document, which everybody may read.
func TestSetupsHoldNoSecret(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", "canary-admin")
	t.Setenv("LEX_TEST_KEY", "canary-environment")
	constitution := filepath.Join(t.TempDir(), "canary-path")
	if err := os.WriteFile(constitution, []byte("canary-constitution"), 0o600); err != nil {
		t.Fatal(err)
	}
	remote := func(key, model string) map[string]any {
		return map[string]any{"provider": "openai", "base_url": "http://canary-host.test/canary-place", "model": model, "api_key": key}
	}
	s := newSiteWith(t, `{}`, map[string]any{
		"embedder": remote("{env.LEX_TEST_KEY}", "canary model with spaces"),
		"judge":    remote("canary-key", "a-judge"),
		"secrets":  map[string]any{"admin": "{env.LEX_TEST_ADMIN}", "bench": "canary-bench"},
		"policy":   map[string]any{"refusal_text": "canary-refusal", "constitution": constitution, "templates": []string{constitution}},
		"tools": map[string]any{"unknown": "block", "allow": []string{"mail_*"}, "rules": []any{
			map[string]any{"name": "outside", "condition": `args.token == "canary-token"`},
		}},
	}, answering("application/json", completion("Paris.")))
	s.post("/lex/tools/check", `{"session_id":"canary-session","tool":{"name":"canary_tool","arguments":{"to":"canary-address"}}}`)
	setup, document := setupOf(s)
	if strings.Contains(document, "canary") {
		t.Error(document)
	}
	if setup.Judge.Model != "a-judge" || !strings.HasPrefix(setup.Embedder.Model, "sha256:") || setup.Embedder.Provider != "openai" || len(setup.Tools.Rules.Conditions) != 1 || !setup.Tools.Rules.BlockUnknown || setup.Tools.Rules.Allow[0] != "mail_*" {
		t.Errorf("%+v", setup)
	}
}

// A document is served as what it is.
func TestDocumentsAreServedByTheirKind(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	govern(s, question)
	r := s.receipts()[0]
	for path, want := range map[string]int{
		"/lex/setups/" + r["setup"].(string):    http.StatusOK,
		"/lex/policies/" + r["policy"].(string): http.StatusOK,
		"/lex/setups/" + r["policy"].(string):   http.StatusNotFound,
		"/lex/policies/" + r["setup"].(string):  http.StatusNotFound,
		"/lex/setups/x":                         http.StatusNotFound,
	} {
		if w := s.send(http.MethodGet, path, ""); w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	record, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err := kernel.ParseReceipt(record); err != nil || !kernel.IsHex256(parsed.Setup) {
		t.Errorf("%v: %s", err, parsed.Setup)
	}
}
