package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/store/storetest"
)

// block is one fenced block of a Markdown file.
type block struct{ file, lang, text string }

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// blocks returns the fenced blocks of README and docs.
func blocks(t *testing.T) []block {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	var out []block
	for _, f := range append(files, "../README.md") {
		for _, m := range fence.FindAllStringSubmatch(read(t, f), -1) {
			out = append(out, block{filepath.Base(f), m[1], m[2]})
		}
	}
	return out
}

// Every Caddyfile in the docs is valid and formatted.
func TestDocumentedCaddyfiles(t *testing.T) {
	t.Parallel()
	constitution, err := filepath.Abs("../govern/constitution.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, b := range blocks(t) {
		if b.lang != "caddyfile" {
			continue
		}
		seen++
		path := writeCaddyfile(t, ports{}, regexp.MustCompile(`/etc/lex/\w+\.txt`).ReplaceAllString(b.text, constitution))
		if out, err := caddy(t, "fmt", "--diff", path); err != nil {
			t.Errorf("%s: %v\n%s", b.file, err, out)
		}
		if out, err := caddyWith(t, "GEMINI_API_KEY=a-key", "validate", "--config", path, "--adapter", "caddyfile"); err != nil {
			t.Errorf("%s: %v\n%s", b.file, err, out)
		}
	}
	if seen < 3 {
		t.Errorf("only %d Caddyfiles are documented", seen)
	}
}

// The README's transcripts are what the shipped Caddyfile answers, as often as they
// are tried, each time with a session_id of its own. In one session the second try
// of the first prompt is refused, as the README says.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	s := shipped(t)
	var bodies []string
	for _, b := range blocks(t) {
		command, answer, ok := strings.Cut(b.text, "\n")
		if b.lang != "console" || !ok || !strings.HasPrefix(command, "$ curl -s localhost:8080/lex/govern -d '") {
			continue
		}
		_, body, _ := strings.Cut(command, "-d '")
		body, _, _ = strings.Cut(body, "'")
		bodies = append(bodies, body)
		checkTranscript(t, s, body, answer)
		checkTranscript(t, s, strings.Replace(body, `"session_id":"`, `"session_id":"again-`, 1), answer)
	}
	if len(bodies) < 2 {
		t.Fatalf("only %d transcripts", len(bodies))
	}
	again := s.do(t, http.MethodPost, "/lex/govern", bodies[0]).object(t)
	if again["refused"] != true || again["primary_refusal_reason"] != "constitutional_floor" {
		t.Errorf("the second try: refused %v, %v", again["refused"], again["primary_refusal_reason"])
	}
}

// checkTranscript compares the answer to a request with the documented one.
// Receipts differ in their ids, of which the prefix must agree.
func checkTranscript(t *testing.T, s *server, body, documented string) {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal([]byte(documented), &want); err != nil {
		t.Fatalf("%v: %s", err, documented)
	}
	got := s.do(t, http.MethodPost, "/lex/govern", body).object(t)
	for field, w := range want {
		if field == "receipt_id" {
			w, got[field] = w.(string)[:4], got[field].(string)[:4]
		}
		a, _ := json.Marshal(w)
		b, _ := json.Marshal(got[field])
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s is %s, documented as %s", body, field, b, a)
		}
	}
}

// `make run` is the README's second command. Variables that are empty count as
// unset, and LEX_REDIS_URL chooses the store.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	redis := storetest.StartRedis(t)
	for name, url := range map[string]string{"bolt": "", "redis": redis} {
		t.Run(name, func(t *testing.T) {
			p, home := freePorts(t), t.TempDir()
			run := exec.Command("make", "run", "GO=true", "BIN="+binary) // the binary is built already
			run.Dir = ".."
			s := startCommand(t, run, home, p, "LEX_MODEL=", "LEX_PROVIDER_KEY=", "LEX_STORE=", "LEX_REDIS_URL="+url)
			got := s.do(t, http.MethodPost, "/lex/govern", governBody("What is the capital of France?", "s1")).object(t)
			if got["model"] != "lex-demo" || len(s.receipts(t)) != 1 {
				t.Errorf("model %v, %d receipts", got["model"], len(s.receipts(t)))
			}
			_, err := os.Stat(filepath.Join(home, "caddy", "lex", "lex.db"))
			if (err == nil) != (name == "bolt") {
				t.Errorf("the database file: %v", err)
			}
		})
	}
}
