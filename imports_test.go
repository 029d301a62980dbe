package lex_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/caddy-lex/lex"

// may lists what each package of the module may import of the module. Imports
// run one way: the kernel knows nobody, the shell knows everybody. What they may
// import of others is for depguard's rules in .golangci.yml.
var may = map[string][]string{
	"":                     {"caddymodule", "caddymodule/commands", "caddymodule/demo"},
	"kernel":               {},
	"kernel/detect":        {"kernel"},
	"kernel/toolcall":      {"kernel", "kernel/address", "kernel/code", "kernel/file", "kernel/prose", "kernel/regex", "kernel/resemblance", "kernel/schema", "kernel/sql"},
	"kernel/address":       {"kernel/regex"},
	"kernel/code":          {"kernel/prose", "kernel/regex"},
	"kernel/file":          {"kernel/prose", "kernel/regex"},
	"kernel/resemblance":   {"kernel/prose", "kernel/regex"},
	"kernel/prose":         {"kernel/regex"},
	"kernel/regex":         {},
	"kernel/schema":        {},
	"kernel/sql":           {"kernel/regex"},
	"store":                {"kernel"},
	"store/bolt":           {"store", "kernel"},
	"store/redis":          {"store", "kernel"},
	"store/storetest":      {"store", "kernel"},
	"wire":                 {"kernel"},
	"model":                {"kernel", "kernel/detect"},
	"wire/loose":           {"wire", "kernel/detect"},
	"govern":               {"kernel", "kernel/detect", "kernel/toolcall", "store", "wire", "wire/loose", "model"},
	"audit":                {"kernel", "store"},
	"console":              {"kernel", "store"},
	"evaluation":           {},
	"conformance":          {},
	"caddymodule":          {"kernel", "kernel/detect", "kernel/toolcall", "store", "store/bolt", "store/redis", "wire", "wire/loose", "model", "govern", "audit", "console", "evaluation"},
	"caddymodule/commands": {"kernel", "kernel/detect", "kernel/toolcall", "store", "store/bolt", "store/redis", "audit", "console", "evaluation", "conformance", "govern", "model", "caddymodule"},
	"caddymodule/demo":     {},
	"cmd/bench":            {},
	"cmd/caddy":            {""},
	"cmd/charts":           {"kernel", "kernel/detect", "evaluation"},
	"cmd/plot":             {"kernel"},
	"cmd/train":            {"kernel", "kernel/detect"},
	"cmd/xcaddyargs":       {},
	"e2e":                  {"store/storetest", "conformance"},
	"e2e/gosdk":            {},
	"e2e/promql":           {},
	"guards/onnx":          {"caddymodule", "model"},
}

func TestImportsRunOneWay(t *testing.T) {
	for file, imports := range sources(t) {
		pkg := filepath.ToSlash(filepath.Dir(file))
		if pkg == "." {
			pkg = ""
		}
		allowed, known := may[pkg]
		if !known {
			t.Errorf("%s: package %q has no place in the order of imports", file, pkg)
		}
		for _, path := range imports {
			inner, ours := strings.CutPrefix(path, module)
			inner = strings.TrimPrefix(inner, "/")
			if ours && inner != pkg && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

// sources returns the imports of every file that is not a test.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || (d.Name() != "." && strings.HasPrefix(d.Name(), "."))) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			out[path] = append(out[path], p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d files with imports: run from the module's root", len(out))
	}
	return out
}

// Two levels of folders at most, testdata aside.
func TestFoldersStayShallow(t *testing.T) {
	for file := range sources(t) {
		if depth := strings.Count(filepath.ToSlash(file), "/"); depth > 2 {
			t.Errorf("%s lies %d folders deep", file, depth)
		}
	}
}
