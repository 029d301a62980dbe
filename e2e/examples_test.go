package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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
	checkFilters(t, s, read(t, filepath.Join(dir, "README.md")))
}

var (
	filteredBy = regexp.MustCompile(`select\(\.(\w+)\)`)
	projection = regexp.MustCompile(`jq '\{([\w, ]+)\}'`)
)

// checkFilters checks that the receipts of an example have the members that its
// README reads with jq: the listed ones those of select, the whole ones those of a
// projection.
func checkFilters(t *testing.T, s *server, readme string) {
	t.Helper()
	var listed, whole []string
	for _, m := range filteredBy.FindAllStringSubmatch(readme, -1) {
		listed = append(listed, m[1])
	}
	for _, m := range projection.FindAllStringSubmatch(readme, -1) {
		whole = append(whole, strings.Split(m[1], ", ")...)
	}
	if strings.Contains(readme, "| jq") && (len(listed) == 0 || len(whole) == 0) {
		t.Errorf("a jq filter that is not checked: %s", readme)
	}
	item := s.do(t, http.MethodGet, "/audits/recent", "").object(t)["receipts"].([]any)[0].(map[string]any)
	for _, member := range listed {
		if item[member] != true {
			t.Errorf("%s of the listed receipt is %v", member, item[member])
		}
	}
	receipt := s.do(t, http.MethodGet, "/audits/"+item["id"].(string), "").object(t)
	for _, member := range whole {
		if _, ok := receipt[member]; !ok {
			t.Errorf("receipts have no %s", member)
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
