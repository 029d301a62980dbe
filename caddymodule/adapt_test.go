package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-lex/lex/caddymodule"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Each golden file holds a Caddyfile, a line of dashes, and the JSON that it
// adapts to or the error that it ends in.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) { checkAdapt(t, file) })
	}
}

const divider = "----------\n"

func checkAdapt(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	input, want, _ := strings.Cut(string(raw), divider)
	got := adapt(t, input)
	if *update {
		if err := os.WriteFile(file, []byte(input+divider+got), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if got != want {
		t.Errorf("adapted to:\n%s\nwant:\n%s", got, want)
	}
}

func adapt(t *testing.T, input string) string {
	t.Helper()
	adapter := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}
	out, _, err := adapter.Adapt([]byte(input), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err.Error() + "\n"
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, out, "", "\t"); err != nil {
		t.Fatal(err)
	}
	return pretty.String() + "\n"
}
