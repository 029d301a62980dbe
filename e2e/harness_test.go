// Package e2e drives the built binary the way users do: over HTTP, with the
// official SDKs, with kill -9.
package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// binary is the built caddy, with the race detector. Where LEX_COVER names a
// folder, it also counts coverage, which each process writes there as it exits.
// The name is not GOCOVERDIR, because `go test` sets that for itself.
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
	args := []string{"build", "-race", "-o", binary, "../cmd/caddy"}
	if folder := os.Getenv("LEX_COVER"); folder != "" {
		os.Setenv("GOCOVERDIR", folder)
		args = slices.Insert(args, 1, "-cover")
	}
	build := exec.Command("go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	// With the race detector every process that succeeds sleeps a second before
	// it ends, and the tests start hundreds.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	return m.Run()
}

// A server is one running binary.
type server struct {
	URL    string      // of the governed site
	admin  string      // of Caddy's admin endpoint, where a test asks for it
	home   string      // data directory, kept over restarts
	client http.Client // its connections are to this process only
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended, after exit is set
	exit   error
	logs   *logBuffer
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

// freePorts reserves ports until the test ends. The listeners of the binary and
// of [listenAt] can share them, and nobody else gets them: a port that is only
// found to be free may be taken before it is used, by another test's server or
// by a connection that leaves this machine.
func freePorts(t *testing.T) ports {
	t.Helper()
	return ports{reserve(t), reserve(t), reserve(t)}
}

// reserve binds a socket to a free port and never listens on it. Caddy listens
// with SO_REUSEPORT, which shares a port with the sockets of the same user that
// have set it too; what does not listen is given no connections.
func reserve(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	unix.CloseOnExec(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(bound.(*unix.SockaddrInet4).Port)
}

// listenAt listens on a port that freePorts returned.
func listenAt(t *testing.T, port string) net.Listener {
	t.Helper()
	share := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var fault error
		err := c.Control(func(fd uintptr) {
			fault = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, fault)
	}}
	l, err := share.Listen(t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// start runs the binary on a Caddyfile and waits until its site answers. The
// data directory is home; an empty one is made.
func start(t *testing.T, caddyfile, home string, p ports, env ...string) *server {
	t.Helper()
	if home == "" {
		home = t.TempDir()
	}
	return startCommand(t, exec.Command(binary, "run", "--config", caddyfile, "--adapter", "caddyfile"), home, p, env...)
}

// startCommand is [start] for a command that comes to run the binary.
func startCommand(t *testing.T, cmd *exec.Cmd, home string, p ports, env ...string) *server {
	t.Helper()
	s := &server{URL: "http://127.0.0.1:" + p.site, home: home, cmd: cmd, ended: make(chan struct{}), logs: new(logBuffer)}
	s.client.Transport = http.DefaultTransport.(*http.Transport).Clone()
	s.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home,
		"LEX_PORT="+p.site, "LEX_DEMO_PORT="+p.demo, "LEX_ADMIN=127.0.0.1:"+p.admin, "LEX_UPSTREAM=127.0.0.1:"+p.demo)
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stdout, s.cmd.Stderr = s.logs, s.logs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		s.exit = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.stop()
		if strings.Contains(s.logs.String(), "DATA RACE") {
			t.Errorf("the binary has a data race:\n%s", s.logs)
		}
	})
	s.await(t)
	return s
}

// await returns once all servers of the configuration listen, of which Caddy
// tells last, and the site answers its health endpoint. The site may answer
// before the demo model does.
func (s *server) await(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, func() bool {
		select {
		case <-s.ended:
			t.Fatalf("the server ended: %v\n%s", s.exit, s.logs)
		default:
		}
		if !strings.Contains(s.logs.String(), "serving initial configuration") {
			return false
		}
		resp, err := s.client.Get(s.URL + "/lex/health")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, func() string { return "the server did not come up:\n" + s.logs.String() })
}

// kill ends the process and those that it started at once, as kill -9 does.
func (s *server) kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
}

// stop asks the process to exit, so that it can write its coverage, and kills
// it when it takes its time.
func (s *server) stop() {
	s.client.CloseIdleConnections()
	select {
	case <-s.ended: // its number may be another process's by now
		return
	default:
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		s.kill()
	}
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
	resp, err := s.client.Do(req)
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
		path = nextPage(t, path, resp.Header.Get("Link"))
	}
	return ids
}

// nextPage is where a Link header (RFC 8288) with one target leads from a page.
func nextPage(t *testing.T, page, link string) string {
	t.Helper()
	target, _, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !ok {
		return ""
	}
	at, err := url.Parse(page)
	if err == nil {
		at, err = at.Parse(target)
	}
	if err != nil {
		t.Fatalf("the link %q: %v", link, err)
	}
	return at.RequestURI()
}
