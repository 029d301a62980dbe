package redis_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// A connection over TLS that was closed while nobody used it costs no call: servers, and what
// stands before them, close idle connections, and all of them when they start again.
func TestConnectionsOverTLSThatHaveEnded(t *testing.T) {
	d := newDoor(t, storetest.StartRedis(t))
	s, err := redis.Open(t.Context(), []string{d.url}, patient)
	must(t, err)
	defer s.Close()
	for range 3 {
		for range 5 { // one that has not ended is used again
			must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
		}
		if n := d.connections(); n != 1 {
			t.Errorf("%d connections for one caller", n)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := s.Consume(t.Context(), "subject", "", 1, time.Minute); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if d.shut() == 0 {
			t.Error("there was no connection")
		}
	}
}

// A door to a server takes connections over TLS.
type door struct {
	url    string
	server string

	mu   sync.Mutex
	open []net.Conn
}

func newDoor(t *testing.T, server string) *door {
	t.Helper()
	secure := httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", secure.TLS)
	must(t, err)
	d := &door{url: "rediss://" + listener.Addr().String() + "?skip_verify=true", server: strings.TrimPrefix(server, "redis://")}
	t.Cleanup(func() { _ = listener.Close(); d.shut() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go d.pass(conn)
		}
	}()
	return d
}

func (d *door) pass(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", d.server)
	if err != nil {
		return
	}
	defer server.Close()
	d.mu.Lock()
	d.open = append(d.open, conn)
	d.mu.Unlock()
	go func() { _, _ = io.Copy(server, conn) }()
	_, _ = io.Copy(conn, server)
}

func (d *door) connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// shut closes the connections that are open, and tells how many there were.
func (d *door) shut() (connections int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.open {
		_ = conn.Close()
	}
	connections, d.open = len(d.open), nil
	return connections
}
