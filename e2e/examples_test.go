package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// demoSite stands in for the servers that the examples name.
const demoSite = `
:${demo} {
	bind 127.0.0.1
	uri strip_prefix /openai
	lex_demo_model
}
`

// exampleAsks is what each example's expectation is an answer to.
var exampleAsks = map[string]string{
	"base-path":         "What is the capital of France?",
	"existing-app":      attack,
	"observe-first":     attack,
	"route-by-severity": "What is the capital of France?",
}

// Every example runs as its folder says. Only its ports are changed, and the
// demo model stands in for the servers it names.
func TestExamples(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../examples/*/Caddyfile")
	if err != nil || len(folders) != len(exampleAsks) {
		t.Fatalf("%d examples, %d questions: %v", len(folders), len(exampleAsks), err)
	}
	for _, file := range folders {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) { runExample(t, filepath.Dir(file), exampleAsks[name]) })
	}
}

func runExample(t *testing.T, dir, ask string) {
	t.Helper()
	text := read(t, filepath.Join(dir, "Caddyfile"))
	p := freePorts(t)
	demo := "127.0.0.1:" + p.demo
	text = strings.NewReplacer(":8080 ", ":"+p.site+" ", "127.0.0.1:11434", demo, "127.0.0.1:11435", demo).Replace(text)
	text = withAdmin(text) + demoSite
	s := start(t, writeCaddyfile(t, p, text), "", p)
	body := `{"model":"m","messages":[{"role":"user","content":"` + ask + `"}]}`
	resp := s.do(t, http.MethodPost, "/v1/chat/completions", body)
	for i, want := range strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "expect.txt"))), "\n") {
		if i == 0 && want != "200" || i == 0 && resp.Status != http.StatusOK {
			t.Errorf("status %d, want %s", resp.Status, want)
		}
		if i > 0 && !strings.Contains(resp.Body, want) {
			t.Errorf("no %q in %s", want, resp.Body)
		}
	}
}

// withAdmin moves the admin endpoint to a free port.
func withAdmin(text string) string {
	if at := strings.Index(text, "{\n"); at >= 0 && !strings.Contains(text[:at], ":") {
		return text[:at+2] + "\tadmin 127.0.0.1:${admin}\n" + text[at+2:]
	}
	return "{\n\tadmin 127.0.0.1:${admin}\n}\n" + text
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
