package caddymodule_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-lex/lex/caddymodule"
)

// The path of a store is what its placeholders say. One that says nothing is no path.
func TestBoltPath(t *testing.T) {
	t.Setenv("LEX_TEST_FOLDER", "/var/lib/somewhere")
	for path, want := range map[string]string{
		"{env.LEX_TEST_FOLDER}/lex.db": "/var/lib/somewhere/lex.db",
		"/var/lib/lex.db":              "/var/lib/lex.db",
		"":                             filepath.Join(caddy.AppDataDir(), "lex", "lex.db"),
	} {
		s := &caddymodule.BoltStore{Path: path}
		if err := s.Provision(caddy.Context{}); err != nil || s.Path != want {
			t.Errorf("%q: %q, %v", path, s.Path, err)
		}
	}
	for _, path := range []string{"{env.LEX_TEST_UNSET}", "/var/{env.LEX_TEST_UNSET}/lex.db", "{unknown.thing}/lex.db"} {
		s := &caddymodule.BoltStore{Path: path}
		if err := s.Provision(caddy.Context{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %q, %v", path, s.Path, err)
		}
	}
}
