package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands of docs/operations.md about the log keep signed heads and compare with
// them, and the head there has the form of a real one.
func TestDocumentedHeads(t *testing.T) {
	t.Parallel()
	s := shipped(t)
	var shell []string
	var note string
	for _, b := range blocks(t) {
		switch {
		case b.file == "operations.md" && b.lang == "sh" && strings.Contains(b.text, "caddy lex head"):
			shell = append(shell, strings.ReplaceAll(b.text, "http://localhost:8080", s.URL))
		case b.file == "operations.md" && b.lang == "text":
			note = b.text
		}
	}
	if len(shell) != 2 {
		t.Fatalf("%d blocks of commands", len(shell))
	}
	dir := t.TempDir()
	s.do(t, http.MethodPost, "/lex/govern", governBody("What is the capital of France?", "heads"))
	if _, errs, err := inShell(t, dir, "set -e\n"+shell[0]); err != nil {
		t.Fatal(err, errs)
	}
	first := read(t, filepath.Join(dir, "head-0"))
	if shapeOf(first) != shapeOf(note) {
		t.Errorf("a head is\n%s\ndocumented as\n%s", first, note)
	}

	s.do(t, http.MethodPost, "/lex/govern", governBody("What is 2 + 2?", "heads"))
	hourly := func() (string, error) {
		out, errs, err := inShell(t, dir, shell[1])
		return out + errs, err
	}
	if out, err := hourly(); err != nil || !strings.Contains(out, "the log extends the signed head of 1 receipts") {
		t.Fatal(err, out)
	}
	last := read(t, filepath.Join(dir, "last"))
	if !strings.HasPrefix(last, "lex.example/log\n2\n") {
		t.Errorf("the last head is\n%s", last)
	}

	// A proxy that holds other receipts does not extend it, and no head is signed.
	other := shipped(t)
	for _, prompt := range []string{"What is 3 + 3?", "What is 4 + 4?", "Thank you."} {
		other.do(t, http.MethodPost, "/lex/govern", governBody(prompt, "heads"))
	}
	shell[1] = strings.ReplaceAll(shell[1], s.URL, other.URL)
	if out, err := hourly(); err == nil || !strings.Contains(out, "are not those of") {
		t.Errorf("another log: %v %s", err, out)
	}
	if read(t, filepath.Join(dir, "last")) != last {
		t.Error("a head was signed of a log that does not extend the last one")
	}
	if info, err := os.Stat(filepath.Join(dir, "head.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v %v", info, err)
	}
}

// shapeOf is a head without its size, hashes, time and signature.
func shapeOf(note string) string {
	for _, c := range []struct{ what, by string }{
		{`(?m)^\d+$`, "size"},
		{`(?m)^[A-Za-z0-9+/]{43}=$`, "root"},
		{`(?m)^last [0-9a-f]{64}$`, "last"},
		{`(?m)^time \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, "time"},
		{`(?m)^— (\S+) .*$`, "signed $1"},
	} {
		note = regexp.MustCompile(c.what).ReplaceAllString(note, c.by)
	}
	return note
}
