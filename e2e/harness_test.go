// Package e2e drives the built binary the way users do: over HTTP, with the
// official SDKs, with kill -9.
package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// binary is the built caddy, with the race detector.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lex-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "caddy")
	build := exec.Command("go", "build", "-race", "-o", binary, "../cmd/caddy")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// A server is one running binary.
type server struct {
	URL   string // of the governed site
	admin string // of Caddy's admin endpoint, where a test asks for it
	home  string // data directory, kept over restarts
	cmd   *exec.Cmd
	logs  *logBuffer
}

// logBuffer collects a process's output.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// ports are where one server listens.
type ports struct{ site, demo, admin string }

// freePorts asks the system for ports that nobody uses.
func freePorts(t *testing.T) ports {
	t.Helper()
	var got [3]string
	for i := range got {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, got[i], _ = net.SplitHostPort(l.Addr().String())
	}
	return ports{got[0], got[1], got[2]}
}

// start runs the binary on a Caddyfile and waits until its site answers. The
// data directory is home; an empty one is made.
func start(t *testing.T, caddyfile, home string, p ports, env ...string) *server {
	t.Helper()
	if home == "" {
		home = t.TempDir()
	}
	s := &server{URL: "http://127.0.0.1:" + p.site, home: home, logs: new(logBuffer)}
	s.cmd = exec.Command(binary, "run", "--config", caddyfile, "--adapter", "caddyfile")
	s.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home,
		"LEX_PORT="+p.site, "LEX_DEMO_PORT="+p.demo, "LEX_ADMIN=127.0.0.1:"+p.admin, "LEX_UPSTREAM=127.0.0.1:"+p.demo)
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stdout, s.cmd.Stderr = s.logs, s.logs
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if strings.Contains(s.logs.String(), "DATA RACE") {
			t.Errorf("the binary has a data race:\n%s", s.logs)
		}
	})
	s.await(t)
	return s
}

// await returns once the site answers its health endpoint.
func (s *server) await(t *testing.T) {
	t.Helper()
	eventually(t, 30*time.Second, func() bool {
		resp, err := http.Get(s.URL + "/lex/health")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, func() string { return "the server did not come up:\n" + s.logs.String() })
}

// kill ends the process at once, as kill -9 does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// eventually waits for a condition.
func eventually(t *testing.T, limit time.Duration, condition func() bool, otherwise func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal(otherwise())
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the condition
	}
}

// writeCaddyfile puts a configuration where the test can load it. ${name}
// stands for the ports.
func writeCaddyfile(t *testing.T, p ports, text string) string {
	t.Helper()
	text = strings.NewReplacer("${site}", p.site, "${demo}", p.demo, "${admin}", p.admin).Replace(text)
	path := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// response is an answer read to its end.
type response struct {
	Status int
	Header http.Header
	Body   string
}

// do sends one request.
func (s *server) do(t *testing.T, method, path, body string, headers ...string) response {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.logs)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the answer: %v", method, path, err)
	}
	return response{resp.StatusCode, resp.Header, string(text)}
}

// object decodes an answer that must be a JSON object.
func (r response) object(t *testing.T) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		t.Fatalf("status %d, not a JSON object: %v: %s", r.Status, err, r.Body)
	}
	return m
}

// events returns the data lines of an event stream and its comments.
func events(body string) (data, comments []string) {
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, d)
		}
		if strings.HasPrefix(lines.Text(), ":") {
			comments = append(comments, lines.Text())
		}
	}
	return data, comments
}

// receipts lists the ids of every receipt that the server holds, newest first.
func (s *server) receipts(t *testing.T) []string {
	t.Helper()
	var ids []string
	for path := "/audits/recent?limit=200"; path != ""; {
		resp := s.do(t, http.MethodGet, path, "")
		if resp.Status != http.StatusOK {
			t.Fatalf("GET %s: %d %s", path, resp.Status, resp.Body)
		}
		for _, r := range resp.object(t)["receipts"].([]any) {
			ids = append(ids, r.(map[string]any)["id"].(string))
		}
		path = nextPage(resp.Header.Get("Link"))
	}
	return ids
}

// nextPage reads a Link header (RFC 8288) with one target.
func nextPage(link string) string {
	target, _, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !ok {
		return ""
	}
	return target
}
