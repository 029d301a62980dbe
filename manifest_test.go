package lex_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The manifest and go.mod must agree on the version of Caddy: users build with
// the one, tests run with the other.
func TestManifestAgreesWithGoMod(t *testing.T) {
	raw, err := os.ReadFile("xcaddy.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		CaddyVersion string `json:"caddy_version"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/caddyserver/caddy/v2 " + manifest.CaddyVersion; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod does not require %q", want)
	}
}
