package caddymodule_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codes are the stable words of all errors, as the source has them.
func codes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`&apiError\{[^\n]*, "([a-z_]+)"\}`)
	var found []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllSubmatch(source, -1) {
			found = append(found, string(m[1]))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Clients act on codes, so each is documented.
func TestEveryCodeIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	found := codes(t)
	for _, code := range found {
		if !strings.Contains(string(text), "`"+code+"`") {
			t.Errorf("%s is not in docs/http.md", code)
		}
	}
	if len(found) < 30 {
		t.Errorf("only %d codes", len(found))
	}
}
