package detect_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// The same texts must give the same bits on every platform, or nobody could score a prompt
// again and compare. The golden file holds a digest of all numbers of the signals for each
// way of writing the texts.
func TestSignalsAreBitExact(t *testing.T) {
	texts, err := os.ReadFile("testdata/plain.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, way := range []struct {
		name  string
		write func(string) []detect.Text
	}{
		{"user", func(s string) []detect.Text { return say(detect.User, s) }},
		{"system", func(s string) []detect.Text { return say(detect.System, s) }},
		{"tool", func(s string) []detect.Text { return say(detect.Tool, s) }},
		{"document", func(s string) []detect.Text {
			return say(detect.Document, page("The cat sat on the mat. ", 40)+s)
		}},
		{"long", func(s string) []detect.Text {
			return say(detect.User, page("The cat sat on the mat. ", 40)+s)
		}},
		{"joined", func(s string) []detect.Text { return say(detect.User, strings.ReplaceAll(s, " ", "")) }},
		{"apart", func(s string) []detect.Text { return say(detect.User, s[:len(s)/2], s[len(s)/2:]) }},
		{"backwards", func(s string) []detect.Text { return say(detect.User, backwards(s)) }},
		{"base64", func(s string) []detect.Text { return say(detect.User, base64.StdEncoding.EncodeToString([]byte(s))) }},
		{"numbers", func(s string) []detect.Text {
			return say(detect.User, strings.NewReplacer("e", "3", "o", "0", "a", "4").Replace(s))
		}},
	} {
		digest := sha256.New()
		for text := range strings.Lines(string(texts)) {
			signal, err := detect.Default().Assess(t.Context(), way.write(strings.TrimSpace(text)))
			if err != nil {
				t.Fatal(err)
			}
			write(t, digest, signal.Scores, signal.Threat, signal.SelfReference, []float32(signal.Embedding), int64(signal.Unread))
		}
		fmt.Fprintf(&got, "%s %x\n", way.name, digest.Sum(nil))
	}
	path := filepath.Join("testdata", "signals.txt")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs; if that is meant, run: go test ./kernel/detect -update\n%s", path, &got)
	}
}

func say(source detect.Source, bodies ...string) (texts []detect.Text) {
	for _, body := range bodies {
		texts = append(texts, detect.Text{Source: source, Body: body})
	}
	return texts
}

func write(t *testing.T, digest interface{ Write([]byte) (int, error) }, values ...any) {
	t.Helper()
	for _, v := range values {
		if err := binary.Write(digest, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
}

// exactMath are the members of package math that are used and give the same bits
// everywhere. Exp, Log and the like do not.
var exactMath = []string{"Abs", "Float32frombits", "Frexp", "Inf", "IsInf", "IsNaN", "Ln2", "MaxInt", "Round", "Sqrt"}

func TestArithmeticIsPortable(t *testing.T) {
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if p, ok := s.X.(*ast.Ident); ok && p.Name == "math" && !slices.Contains(exactMath, s.Sel.Name) {
					t.Errorf("%s: math.%s", fset.Position(s.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	}
}
