package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/store/storetest"
)

// documented returns the text of the nth JSON block of docs/commands.md.
func documented(t *testing.T, n int) string {
	t.Helper()
	for _, b := range blocks(t) {
		if b.file == "commands.md" && b.lang == "json" {
			if n == 0 {
				return b.text
			}
			n--
		}
	}
	t.Fatal("docs/commands.md has fewer examples")
	return ""
}

// inShell runs a documented command line where its files are.
func inShell(t *testing.T, dir, line string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The documented input gives the documented output: the same members, words
// and decisions. Scores move with the model.
func TestDocumentedAssess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "prompts.jsonl", documented(t, 0))
	writeFile(t, dir, "Caddyfile", read(t, "../Caddyfile"))
	_, errs, err := inShell(t, dir, "caddy lex assess --config Caddyfile < prompts.jsonl > verdicts.jsonl")
	if err != nil {
		t.Fatal(err, errs)
	}
	got, want := strings.Split(read(t, filepath.Join(dir, "verdicts.jsonl")), "\n"), strings.Split(documented(t, 1), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines, documented are %d", len(got), len(want))
	}
	for i := range want {
		if want[i] != "" && !reflect.DeepEqual(words(t, got[i]), words(t, want[i])) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("more was written than the verdicts: %v %v", entries, err)
	}
}

// words is a line of JSON with its numbers left out.
func words(t *testing.T, line string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var blank func(v any) any
	blank = func(v any) any {
		switch v := v.(type) {
		case float64:
			return 0
		case map[string]any:
			for k := range v {
				v[k] = blank(v[k])
			}
		}
		return v
	}
	return blank(v)
}

func TestDocumentedBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "attacks.jsonl", documented(t, 2))
	writeFile(t, dir, "benign.jsonl", "")
	out, errs, err := inShell(t, dir, "caddy lex bench --data attacks.jsonl benign.jsonl")
	if err != nil || !strings.Contains(out, "3 records") || !strings.Contains(out, "Reliability") {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
}

// Two configurations are compared, and one with the verdicts that assess wrote.
func TestDocumentedCompare(t *testing.T) {
	t.Parallel()
	var line string
	for _, b := range blocks(t) {
		if b.file == "commands.md" && strings.Contains(b.text, "--compare") {
			line = b.text
		}
	}
	dir := t.TempDir()
	writeFile(t, dir, "attacks.jsonl", documented(t, 2))
	writeFile(t, dir, "benign.jsonl", "")
	writeFile(t, dir, "Caddyfile", read(t, "../Caddyfile"))
	writeFile(t, dir, "strict.Caddyfile", "{\n\tlex {\n\t\tpolicy {\n\t\t\trefuse_at 0.55\n\t\t}\n\t}\n}\n:8080 {\n\tlex\n}\n")
	out, errs, err := inShell(t, dir, line)
	if err != nil || !strings.Contains(out, "3 records") || !strings.Contains(out, "p (McNemar)") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	out, errs, err = inShell(t, dir, "caddy lex assess < attacks.jsonl > old.jsonl && caddy lex bench --data attacks.jsonl --compare old.jsonl")
	if err != nil || !strings.Contains(out, "B: old.jsonl") || !strings.Contains(out, "3 records") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}

// The documented calls get the documented decisions. One of them cannot be read.
func TestDocumentedTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "calls.jsonl", documented(t, 3))
	writeFile(t, dir, "Caddyfile", read(t, "../Caddyfile"))
	_, errs, err := inShell(t, dir, "caddy lex tools --config Caddyfile < calls.jsonl > decisions.jsonl")
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 {
		t.Fatal(err, errs)
	}
	if got, want := read(t, filepath.Join(dir, "decisions.jsonl")), documented(t, 4); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAssessFailsForABadLine(t *testing.T) {
	t.Parallel()
	out, errs, err := inShell(t, t.TempDir(), `printf 'oops\n{"id":"a","text":"Hello"}\n' | caddy lex assess`)
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 1 || strings.Count(out, "\n") != 1 || !strings.Contains(errs, "line 1: ") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}

// The commands of the page for auditors do what it says.
func TestDocumentedAudit(t *testing.T) {
	t.Parallel()
	s := shipped(t)
	s.do(t, http.MethodPost, "/lex/govern", governBody(attack, "s1"))
	s.do(t, http.MethodPost, "/lex/govern", governBody("What is the capital of France?", "s1"))
	seen := 0
	for _, b := range blocks(t) {
		if b.file != "audit.md" || b.lang != "sh" {
			continue
		}
		seen++
		out, errs, err := inShell(t, t.TempDir(), "set -e\n"+strings.ReplaceAll(b.text, "http://localhost:8080", s.URL))
		if err != nil || !strings.Contains(out, "2 receipts in 1 chains, 0 faults") || !strings.Contains(out, "semantic_classifier") {
			t.Errorf("%v %s\n%s", err, errs, out)
		}
	}
	if seen != 1 {
		t.Errorf("%d blocks", seen)
	}
}

// The report reads both stores: the file that the process left, and Redis.
func TestReportOfStores(t *testing.T) {
	t.Parallel()
	redis := storetest.StartRedis(t)
	for engine, place := range map[string]string{"bolt": "", "redis": redis} {
		t.Run(engine, func(t *testing.T) {
			p := freePorts(t)
			s := start(t, writeCaddyfile(t, p, strings.Replace(loadCaddyfile, "limits {", "store "+strings.TrimSpace(engine+" "+place)+"\n\t\tlimits {", 1)), "", p)
			s.do(t, http.MethodPost, "/lex/govern", governBody(attack, "s1"))
			s.do(t, http.MethodPost, "/lex/govern", governBody("What is the capital of France?", "s2"))
			s.stop()
			if place == "" {
				place = filepath.Join(s.home, "caddy", "lex", "lex.db")
			}
			out, err := caddy(t, "lex", "report", "--store", place, "--last", "1h")
			if err != nil || !strings.Contains(out, "2 receipts, ") || !regexp.MustCompile(`(?m)^semantic_classifier +1 +0 \+ 0$`).MatchString(out) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
