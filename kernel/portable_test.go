package kernel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// exactMath are the members of package math that give the same bits everywhere.
var exactMath = []string{"Abs", "Float64bits", "Float64frombits", "MaxFloat64", "Sqrt"}

// unportable returns what in a file may give other bits on another platform:
// functions of package math that have assembly or polynomials of their own,
// products that the compiler may fuse with a sum (every product of floats must
// be rounded by a conversion, stand under a division or be a factor itself, and
// no product is compiled in place), and what has no fixed order at all.
func unportable(fset *token.FileSet, file *ast.File) []string {
	var found []string
	report := func(n ast.Node, what string) { found = append(found, fset.Position(n.Pos()).String()+": "+what) }
	rounded := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "float64" {
				rounded[ast.Unparen(n.Args[0])] = true
			}
		case *ast.BinaryExpr:
			if n.Op == token.MUL || n.Op == token.QUO {
				rounded[ast.Unparen(n.X)], rounded[ast.Unparen(n.Y)] = true, true
			}
			if n.Op == token.MUL && !rounded[n] {
				report(n, "a product that may be fused")
			}
		case *ast.AssignStmt:
			if n.Tok == token.MUL_ASSIGN {
				report(n, "a product in place")
			}
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok && p.Name == "math" && !slices.Contains(exactMath, n.Sel.Name) {
				report(n, "math."+n.Sel.Name)
			}
		case *ast.MapType:
			report(n, "a map")
		case *ast.GoStmt:
			report(n, "a goroutine")
		}
		return true
	})
	return found
}

func TestArithmeticIsPortable(t *testing.T) {
	fset := token.NewFileSet()
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, fault := range unportable(fset, file) {
			if name == "chain.go" && strings.HasSuffix(fault, ": a map") {
				continue // it is looked up in, never gone through
			}
			if name == "canonical_number.go" && strings.HasSuffix(fault, ": a product that may be fused") {
				continue // of integers, but one that is rounded
			}
			t.Error(fault)
		}
	}
	if read < 10 {
		t.Fatalf("only %d files read", read)
	}
}

// The check itself must see what it is for.
func TestUnportableArithmeticIsFound(t *testing.T) {
	for code, want := range map[string]int{
		"a := x*y + z":               1,
		"a := float64(x*y) + z":      0,
		"a := z - (x * y)":           1,
		"a := x * y; a += z":         1,
		"a *= x":                     1,
		"a := x * y / z":             0,
		"a := float64(x*y*z) + 1":    0,
		"return x * y":               1,
		"a := f(x*y)":                1,
		"a := math.Exp(x)":           1,
		"a := math.FMA(x, y, z)":     1,
		"a := math.Sqrt(x)":          0,
		"for range map[int]int{} {}": 1,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "code.go", "package p; func g() { "+code+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if found := unportable(fset, file); len(found) != want {
			t.Errorf("%s: found %v, want %d", code, found, want)
		}
	}
}
