package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var variable = regexp.MustCompile(`\bLEX_[A-Z_]+\b`)

// Every environment variable that `make run`, the shipped Caddyfile and the commands
// read is documented, and no other. LEX_LOAD and LEX_COVER belong to tests: the
// Makefile sets them from LOADTIME and COVER.
func TestDocumentedVariables(t *testing.T) {
	named := func(files ...string) map[string]bool {
		names := make(map[string]bool)
		for _, f := range files {
			for _, name := range variable.FindAllString(read(t, f), -1) {
				names[name] = true
			}
		}
		delete(names, "LEX_LOAD")
		delete(names, "LEX_COVER")
		delete(names, "LEX_SHOTS")
		delete(names, "LEX_TOOL_CALLS")
		return names
	}
	sources := []string{"../Makefile", "../Caddyfile"}
	for _, pattern := range []string{"../*/*.go", "../*/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, slices.DeleteFunc(found, func(f string) bool { return strings.HasSuffix(f, "_test.go") })...)
	}
	used, documented := named(sources...), named("../docs/configuration.md", "../docs/commands.md")
	if !maps.Equal(used, documented) {
		t.Errorf("used are %v, documented %v", slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(documented)))
	}
	if len(used) < 9 {
		t.Errorf("only %d variables", len(used))
	}
	for name := range named("../README.md", "../docs/kernel.md", "../docs/operations.md", "../docs/http.md") {
		if !documented[name] {
			t.Errorf("%s is in a text, and not documented", name)
		}
	}
}

// The requests of docs/http.md are accepted, and the answers there are given.
func TestDocumentedRequests(t *testing.T) {
	t.Parallel()
	s := shipped(t)
	var last, governed response
	seen := 0
	for _, b := range blocks(t) {
		if b.file != "http.md" || b.lang != "json" {
			continue
		}
		seen++
		switch {
		case strings.Contains(b.text, `"receipt_id": "KRN-…"`): // of the turn before
			answer := governed.object(t)
			opening, _ := answer["openings"].(map[string]any)["prompt"].(string)
			text := strings.NewReplacer("KRN-…", answer["receipt_id"].(string), "…", opening).Replace(b.text)
			if last = s.do(t, http.MethodPost, "/audits/verify", text); last.object(t)["valid"] != true {
				t.Errorf("%s: %s", text, last.Body)
			}
		case strings.Contains(b.text, `"prompt"`):
			last = s.do(t, http.MethodPost, "/lex/govern", b.text)
			governed = last
		case strings.Contains(b.text, `"tool"`):
			last = s.do(t, http.MethodPost, "/lex/tools/check", b.text)
		case strings.Contains(b.text, `"decision"`): // the answer to the request before
			checkDocumentedAnswer(t, b.text, last)
			continue
		default: // of a session, tested where it is made
			continue
		}
		if last.Status != http.StatusOK {
			t.Errorf("%s: %d %s", b.text, last.Status, last.Body)
		}
	}
	if seen < 3 {
		t.Errorf("only %d blocks of JSON", seen)
	}
}

func checkDocumentedAnswer(t *testing.T, documented string, got response) {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal([]byte(documented), &want); err != nil {
		t.Fatal(err)
	}
	answer := got.object(t)
	for name, w := range want {
		switch name {
		case "receipt_id":
			w, answer[name] = w.(string)[:4], answer[name].(string)[:4]
		case "openings": // of what, and not which
			w, answer[name] = len(w.(map[string]any)), len(answer[name].(map[string]any))
		}
		if answer[name] != w {
			t.Errorf("%s is %v, documented as %v", name, answer[name], w)
		}
	}
	if len(answer) != len(want) {
		t.Errorf("documented %s, answered %s", documented, got.Body)
	}
}

// The shell lines of docs/http.md do what the text says.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	commands := make(map[string]string)
	for _, b := range blocks(t) {
		if b.file != "http.md" || b.lang != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			line = strings.TrimSpace(line)
			commands[strings.Join(strings.Fields(line)[:min(4, len(strings.Fields(line)))], " ")] = line
		}
	}
	out, err := exec.Command("sh", "-c", commands[`printf 'key:key_abc\0s1' | sha256sum`]).Output()
	sum := sha256.Sum256([]byte("key:key_abc\x00s1"))
	if err != nil || !strings.HasPrefix(string(out), hex.EncodeToString(sum[:])) {
		t.Errorf("the key of a session: %v %s", err, out)
	}
	run := func(command string, replace ...string) string {
		t.Helper()
		line, ok := commands[command]
		if !ok {
			t.Fatalf("%s is not documented: %v", command, commands)
		}
		replace = append(replace, "http://localhost:8080", s.URL, "--plan pro", "--plan small")
		stdout, stderr, err := s.lex(t, strings.Fields(strings.NewReplacer(replace...).Replace(line))[2:]...)
		if err != nil {
			t.Errorf("%s: %v %s", line, err, stderr)
		}
		return stdout
	}
	if key := run("caddy lex keys create"); !strings.HasPrefix(key, "lex_sk_") {
		t.Errorf("created %s", key)
	}
	id := strings.Fields(strings.Split(run("caddy lex keys list"), "\n")[1])[0]
	run("caddy lex keys revoke", "key_4gk2…", id)
}
