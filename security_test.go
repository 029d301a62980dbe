package lex_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every row of the table of what was tried in SECURITY.md names tests that are there.
func TestSecurityRowsAreTests(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	named := regexp.MustCompile("`(Test\\w+)`")
	_, tried, _ := strings.Cut(string(text), "\n## What was tried\n")
	for line := range strings.Lines(tried) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| **") || strings.HasPrefix(line, "| what was tried") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test in: %s", line)
		}
		for _, m := range tests {
			if !there[m[1]] {
				t.Errorf("there is no %s", m[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}
