package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/conformance"
)

const (
	adminSecret = "correct horse"
	benchSecret = "battery staple"
)

// guardedCaddyfile is a site with both secrets, a plan, and trust in what
// clients on this machine tell of addresses. It is there below a path, too, and below another
// one without the console.
const guardedCaddyfile = `{
	admin 127.0.0.1:${admin}
	servers {
		trusted_proxies static 127.0.0.1/32
		trusted_proxies_strict
	}
	lex {
		limits {
			plan small 3/30d
		}
		secrets {
			admin {env.ADMIN_PASSWORD}
			bench {file.%s}
		}
	}
}
:${site} {
	handle_path /below/* {
		lex {
			console
		}
		reverse_proxy 127.0.0.1:${demo}
	}
	handle_path /bare/* {
		lex
		@console path /lex/console/*
		respond @console "{}"
		reverse_proxy 127.0.0.1:${demo}
	}
	handle {
		lex {
			console
		}
		reverse_proxy 127.0.0.1:${demo}
	}
}
:${demo} {
	bind 127.0.0.1
	lex_demo_model
}
`

// guarded starts the binary on guardedCaddyfile.
func guarded(t *testing.T) *server {
	t.Helper()
	secret := t.TempDir() + "/bench"
	if err := os.WriteFile(secret, []byte(benchSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, strings.Replace(guardedCaddyfile, "%s", secret, 1)), "", p, "ADMIN_PASSWORD="+adminSecret)
	s.admin = "http://127.0.0.1:" + p.admin
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	target := conformance.Target{URL: s.URL, Admin: adminSecret, Bench: benchSecret, ForwardedFor: true}
	cases := 0
	failed, err := conformance.Run(t.Context(), target, func(r conformance.Result) {
		cases++
		t.Run(r.Name, func(t *testing.T) {
			if r.Err != nil || r.Skipped != "" {
				t.Errorf("%s%v", r.Skipped, r.Err)
			}
		})
	})
	if err != nil || failed > 0 || cases < 200 {
		t.Errorf("%d of %d cases failed: %v", failed, cases, err)
	}
}

// The suite fails where nothing is as promised, in every case.
func TestConformanceFindsFaults(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"everything is fine": http.StatusOK, "nothing is there": http.StatusNotFound, "everything fails": http.StatusInternalServerError} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":"No.","code":"no"}`))
		}))
		_, err := conformance.Run(t.Context(), conformance.Target{URL: srv.URL}, func(r conformance.Result) {
			if r.Err == nil && r.Skipped == "" {
				t.Errorf("%s: %s passed", name, r.Name)
			}
		})
		if err != nil {
			t.Error(err)
		}
		srv.Close()
	}
}

// lex runs a command against a server, with the admin secret.
func (s *server) lex(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"lex"}, args...)...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "ADMIN_PASSWORD="+adminSecret)
	var out, fault strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &fault
	err = cmd.Run()
	return out.String(), fault.String(), err
}

func TestConformanceCommand(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	unread, err := s.client.Post(s.URL+"/elsewhere", "text/plain", strings.NewReader("x")) // its receipt is among those that are listed
	if err != nil {
		t.Fatal(err)
	}
	unread.Body.Close()
	out, stderr, err := s.lex(t, "conformance", "--url", s.URL, "--forwarded-for")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || !strings.HasSuffix(lines[len(lines)-1], " passed, 0 failed, 0 skipped") {
		t.Errorf("%v\n%s\n%s", err, out, stderr)
	}
	for _, l := range lines[:len(lines)-1] {
		if !strings.HasPrefix(l, "ok    ") {
			t.Errorf("line %q", l)
		}
	}
	list, _, err := s.lex(t, "keys", "list", "--url", s.URL)
	for _, l := range strings.Split(strings.TrimSpace(list), "\n")[1:] {
		if strings.HasSuffix(strings.TrimSpace(l), "-") {
			t.Errorf("the suite left a key: %s", l)
		}
	}
	if err != nil {
		t.Error(err)
	}
	out, stderr, err = s.lex(t, "conformance", "--url", s.URL+"/below", "--forwarded-for")
	if err != nil {
		t.Errorf("below a path: %v\n%s\n%s", err, out, stderr)
	}
	out, stderr, err = s.lex(t, "conformance", "--url", s.URL+"/bare", "--forwarded-for")
	if err != nil || !strings.Contains(out, " passed, 0 failed, 16 skipped") {
		t.Errorf("without a console, before an upstream that answers everything: %v\n%s\n%s", err, out, stderr)
	}
	out, stderr, err = s.lex(t, "conformance", "--url", s.URL+"/elsewhere", "--forwarded-for")
	if err == nil {
		t.Errorf("another service passes:\n%s\n%s", out, stderr)
	}
}

func TestKeysCommand(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	key, told, err := s.lex(t, "keys", "create", "--url", s.URL, "--name", "app", "--plan", "small", "--expires-in", "90d")
	key = strings.TrimSpace(key)
	if err != nil || !strings.HasPrefix(key, "lex_sk_") || strings.Contains(key, "\n") {
		t.Fatalf("%v %q %q", err, key, told)
	}
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := s.do(t, http.MethodPost, "/lex/govern", governBody("What is 2 + 2?", "s"), "X-Lex-Api-Key", key); got.Status != want {
			t.Errorf("run %d of 3: %d %s", i+1, got.Status, got.Body)
		}
	}
	list, _, err := s.lex(t, "keys", "list", "--url", s.URL)
	if err != nil || !strings.Contains(list, "app") || !strings.Contains(list, "small") || strings.Contains(list, key) {
		t.Fatalf("%v %s", err, list)
	}
	id := strings.Fields(strings.Split(list, "\n")[1])[0]
	if out, _, err := s.lex(t, "keys", "revoke", "--url", s.URL, id); err != nil || !strings.Contains(out, "revoked") {
		t.Errorf("%v %s", err, out)
	}
	if got := s.do(t, http.MethodPost, "/lex/govern", governBody("What is 2 + 2?", "s"), "X-Lex-Api-Key", key); got.Status != http.StatusUnauthorized {
		t.Errorf("a revoked key: %d", got.Status)
	}
	for name, args := range map[string][]string{
		"no name":      {"keys", "create", "--url", s.URL},
		"unknown plan": {"keys", "create", "--url", s.URL, "--name", "a", "--plan", "gold"},
		"bad duration": {"keys", "create", "--url", s.URL, "--name", "a", "--expires-in", "soon"},
		"no url":       {"keys", "list"},
		"unknown id":   {"keys", "revoke", "--url", s.URL, "key_aaaabbbbccccdddd"},
		"no id at all": {"keys", "revoke", "--url", s.URL, "key_0"},
		"no id":        {"keys", "revoke", "--url", s.URL},
		"nobody there": {"keys", "list", "--url", "http://127.0.0.1:1"},
	} {
		if out, told, err := s.lex(t, args...); err == nil || strings.Contains(out+told, adminSecret) {
			t.Errorf("%s: %v %s %s", name, err, out, told)
		}
	}
}

// Secrets are resolved from the environment and from files, and the
// configuration that the admin endpoint shows does not hold them.
func TestSecretsStayOutOfTheConfiguration(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	if got := s.do(t, http.MethodPost, "/admin/benchmarks", "[]", "X-Lex-Bench-Secret", benchSecret); got.Status != http.StatusBadRequest {
		t.Errorf("the secret from a file: %d %s", got.Status, got.Body)
	}
	config := (&server{URL: s.admin, logs: s.logs}).do(t, http.MethodGet, "/config/", "")
	if config.Status != http.StatusOK || !strings.Contains(config.Body, "{env.ADMIN_PASSWORD}") {
		t.Fatalf("%d %s", config.Status, config.Body)
	}
	for _, secret := range []string{adminSecret, benchSecret} {
		if strings.Contains(config.Body, secret) || strings.Contains(s.logs.String(), secret) {
			t.Errorf("%s is in the configuration or the log", secret)
		}
	}
}
