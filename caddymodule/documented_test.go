package caddymodule_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var caddyfileBlock = regexp.MustCompile("(?ms)^```caddyfile\n(.*?)^```$")

// Every option that the parser knows stands in a Caddyfile of docs/configuration.md, all of
// which package e2e loads.
func TestEveryOptionHasAnExample(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for _, block := range caddyfileBlock.FindAllSubmatch(page, -1) {
		for line := range strings.Lines(string(block[1])) {
			if words := strings.Fields(line); len(words) > 0 {
				shown[words[0]] = true
			}
		}
	}
	known := parsedOptions(t)
	for name, where := range known {
		if !shown[name] {
			t.Errorf("no example has %s, which %s parses", name, where)
		}
	}
	if len(known) < 60 {
		t.Errorf("only %d options", len(known))
	}
}

// parsedOptions are the names in the tables of the parser, with the file of each.
func parsedOptions(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			table, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if of, ok := table.Type.(*ast.Ident); !ok || of.Name != "options" {
				return true
			}
			for _, row := range table.Elts {
				key, ok := row.(*ast.KeyValueExpr).Key.(*ast.BasicLit)
				if !ok {
					t.Fatalf("%s: an option whose name is no literal", name)
				}
				option, err := strconv.Unquote(key.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[option] = name
			}
			return true
		})
	}
	return found
}
