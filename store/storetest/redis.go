package storetest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// StartRedis starts a redis-server on a free port of this machine and returns
// its URL. The server keeps nothing on disk and ends with the test. The test
// fails when there is no redis-server, and is skipped under -short.
func StartRedis(t testing.TB) string {
	t.Helper()
	url, _ := StartRedisProcess(t)
	return url
}

// StartRedisProcess is [StartRedis] with further arguments for the server. It
// also returns the process, for tests of a server that stops or dies.
func StartRedisProcess(t testing.TB, args ...string) (string, *os.Process) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a redis-server")
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not on the PATH: install it (Debian: apt-get install redis-server), or leave these tests out with -short")
	}
	var output string
	for range 5 { // another process may take the port between finding and using it
		address := freeAddress(t)
		host, port, _ := strings.Cut(address, ":")
		cmd := exec.Command(binary, append([]string{
			"--bind", host, "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "no",
		}, args...)...)
		if output, err = startServer(t, cmd); err == nil {
			return "redis://" + address, cmd.Process
		}
	}
	t.Fatalf("redis-server did not start: %v\n%s", err, output)
	return "", nil
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("finding a free port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// startServer waits until the server says that it accepts connections.
func startServer(t testing.TB, cmd *exec.Cmd) (output string, err error) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		output += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			drained := make(chan struct{})
			go func() { // a full pipe would stop the server
				defer close(drained)
				_, _ = io.Copy(io.Discard, stdout)
			}()
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				<-drained
				_ = cmd.Wait()
			})
			return output, nil
		}
	}
	if err := cmd.Wait(); err != nil {
		return output, err
	}
	return output, fmt.Errorf("it ended at once")
}
