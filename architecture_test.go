package lex_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	inline   = regexp.MustCompile("`([^`\n]+)`")
	goName   = regexp.MustCompile(`^[a-z]+(\.[A-Za-z]\w*)+$`)
	fileName = regexp.MustCompile(`^[\w-]+(/|\.(go|md|json)$)`)
)

// Every file and every Go name that docs/architecture.md names, in its picture and
// between backticks, exists.
func TestArchitectureNames(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	code := fenced.FindAllString(page, -1)
	for _, m := range inline.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		code = append(code, m[1])
	}
	packages := declarations(t)
	names, files := 0, 0
	for _, word := range words(code) {
		pkg, _, _ := strings.Cut(word, ".")
		switch {
		case fileName.MatchString(word):
			files++
			if _, err := os.Stat(word); err != nil {
				t.Errorf("there is no file %s", word)
			}
		case goName.MatchString(word):
			names++
			if declared, ok := packages[pkg]; !ok {
				t.Errorf("%s: there is no package %s", word, pkg)
			} else if !declared[strings.TrimPrefix(word, pkg+".")] {
				t.Errorf("%s is not declared", word)
			}
		}
	}
	if names < 30 || files < 10 {
		t.Errorf("only %d names and %d files", names, files)
	}
}

// words cuts code into names and paths.
func words(code []string) []string {
	var out []string
	for _, c := range code {
		for _, w := range strings.FieldsFunc(c, func(r rune) bool {
			return r > unicode.MaxASCII || !strings.ContainsRune("_./-", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			out = append(out, strings.Trim(w, "."))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// declarations returns what each package declares, by the name of its folder: Name
// for a declaration of the package, Type.Name for a method, a field or a method of
// an interface.
func declarations(t *testing.T) map[string]map[string]bool {
	t.Helper()
	packages := make(map[string]map[string]bool)
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || (d.Name() != "." && strings.HasPrefix(d.Name(), "."))) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Base(filepath.ToSlash(filepath.Dir(file)))
		if packages[pkg] == nil {
			packages[pkg] = make(map[string]bool)
		}
		for _, decl := range f.Decls {
			declare(packages[pkg], decl)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func declare(names map[string]bool, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil {
			name = receiver(decl.Recv.List[0].Type) + "." + name
		}
		names[name] = true
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					names[n.Name] = true
				}
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
				for _, member := range members(spec.Type) {
					names[spec.Name.Name+"."+member] = true
				}
			}
		}
	}
}

// receiver is the name of a method's type, without pointer and parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	}
	return ""
}

// members are the fields of a struct or the methods of an interface.
func members(e ast.Expr) []string {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return nil
	}
	var out []string
	for _, f := range fields.List {
		for _, n := range f.Names {
			out = append(out, n.Name)
		}
	}
	return out
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// pages are all pages that people read.
func pages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "kernel/detect/MODEL.md", "kernel/detect/LANGUAGES.md"}
	for _, pattern := range []string{"docs/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// No page has what a merge leaves where two changes met.
func TestPagesAreMerged(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if mark := mergeMark.Find(text); mark != nil {
			t.Errorf("%s: %s", page, mark)
		}
	}
}

var mergeMark = regexp.MustCompile(`(?m)^(?:<{7}|={7}|>{7})(?: .*)?$`)

// Every link from one page to another finds its file and its heading.
func TestLinks(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			seen++
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: there is no %s", page, m[1])
			} else if anchor != "" && !anchors(t, target)[anchor] {
				t.Errorf("%s: there is no heading %s", page, m[1])
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d links", seen)
	}
}

// anchors are the headings of a page as links name them.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		out[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return out
}
