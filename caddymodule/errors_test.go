package caddymodule_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/caddymodule"
)

// documentedErrors are the rows of the error table in docs/http.md: the
// statuses of each code.
func documentedErrors(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| ([^|`]*\\d{3}[^|`]*|[^|]*`refuse_with status`[^|]*) \\| ([^|]*`[a-z_]+`[^|]*) \\|")
	code, status := regexp.MustCompile("`([a-z_]+)`"), regexp.MustCompile(`\d{3}`)
	found := make(map[string][]string)
	_, table, _ := strings.Cut(string(text), "\n## Errors")
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		for _, c := range code.FindAllStringSubmatch(m[2], -1) {
			found[c[1]] = append(found[c[1]], status.FindAllString(m[1], -1)...)
		}
	}
	return found
}

// Clients act on codes, so each is documented with its status, and none that
// does not exist.
func TestEveryCodeIsDocumented(t *testing.T) {
	documented := documentedErrors(t)
	defined := make(map[string]bool)
	for _, e := range caddymodule.DefinedErrors() {
		defined[e.Code] = true
		if !slices.Contains(documented[e.Code], strconv.Itoa(e.Status)) {
			t.Errorf("%s with status %d is not in docs/http.md, which has it with %v", e.Code, e.Status, documented[e.Code])
		}
	}
	for code := range documented {
		if !defined[code] {
			t.Errorf("docs/http.md has %s, which no error is defined with", code)
		}
	}
	if len(defined) < 30 {
		t.Errorf("only %d codes", len(defined))
	}
}

// The description lists the codes of our own endpoints, and no other. Every
// answer of every test is held against it, so that no error goes by the table.
func TestEveryCodeIsDescribed(t *testing.T) {
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range caddymodule.DefinedErrors() {
		if e.OnEndpoints && !slices.Contains(want, e.Code) {
			want = append(want, e.Code)
		}
	}
	for _, code := range doc.Components.Schemas["Error"].Value.Properties["code"].Value.Enum {
		got = append(got, fmt.Sprint(code))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("described are %q, defined %q", got, want)
	}
}
