package caddymodule_test

import (
	"os"
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

// A file is one store by whatever folder it is reached, before and after it is there: a reload
// that only writes its path otherwise keeps it open.
func TestBoltIsOneStoreBehindLinks(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink(folder, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	key := func(path string) string { return (&caddymodule.BoltStore{Path: path}).StoreKey() }
	direct, linked := filepath.Join(folder, "new", "lex.db"), filepath.Join(folder, "link", "new", "lex.db")
	before := key(direct)
	if key(linked) != before || key(filepath.Join(folder, "lex.db")) == before {
		t.Errorf("%s, %s, %s", before, key(linked), key(filepath.Join(folder, "lex.db")))
	}
	if err := os.MkdirAll(filepath.Dir(linked), 0o700); err != nil {
		t.Fatal(err)
	}
	if key(direct) != before || key(linked) != before {
		t.Errorf("%s, %s, and before %s", key(direct), key(linked), before)
	}
}

// An address that is none is told when the configuration is checked, without what it holds.
func TestRedisURLs(t *testing.T) {
	t.Setenv("LEX_TEST_REDIS", "rediss://user:hush@redis.example:6380/2")
	t.Setenv("LEX_TEST_PASSWORD", "hush")
	for url, valid := range map[string]bool{
		"redis://localhost:6379": true, "{env.LEX_TEST_REDIS}": true,
		"redis://user:{env.LEX_TEST_PASSWORD}@localhost:6379": true,
		"hush": false, "{env.LEX_TEST_UNSET}": false, "http://hush:6379": false,
		"redis://{env.LEX_TEST_UNSET}:6379": false, "redis://user:{env.LEX_TEST_UNSET}@localhost": false,
		"redis://user:{hush}@localhost": false,
	} {
		s := &caddymodule.RedisStore{URLs: []string{url}}
		if err := s.Provision(caddy.Context{}); (err == nil) != valid || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", url, err)
		}
	}
	unset := &caddymodule.RedisStore{URLs: []string{"{env.LEX_TEST_UNSET}"}}
	if err := unset.Provision(caddy.Context{}); err == nil || !strings.Contains(err.Error(), "{env.LEX_TEST_UNSET}") {
		t.Errorf("a variable that is not set is not named: %v", err)
	}
}
