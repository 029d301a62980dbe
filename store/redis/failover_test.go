package redis_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/storetest"
)

// After a failover the address leads to the new primary, and the connections that are open to the
// old one, which is a replica now. They cost no call, and say nothing of the store's health.
func TestFailoverThatKeepsConnections(t *testing.T) {
	var turns atomic.Int64
	for name, call := range map[string]func(store.Store) error{
		"commit": func(s store.Store) error {
			n := turns.Add(1)
			return s.Commit(t.Context(), turn(store.Session{Key: fmt.Sprint("k", n)}, fmt.Sprint("KRN-", n)))
		},
		"consume": func(s store.Store) error {
			_, err := s.Consume(t.Context(), "subject", "", 100, time.Minute)
			return err
		},
		"check": func(s store.Store) error { return s.Check(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			first, second := storetest.StartRedis(t), storetest.StartRedis(t)
			a := newAddress(t, first)
			s := open(t, a.url, patient)
			many(t, func() error { return call(s) }) // the pool has connections
			a.server.Store(strings.TrimPrefix(second, "redis://"))
			follow(t, connect(t, first), second)
			must(t, call(s)) // alone, it would be given one old connection after the other
			many(t, func() error { return call(s) })
		})
	}
}

// A connection that the server ends while it is asked costs no read.
func TestReadsWhoseConnectionEnds(t *testing.T) {
	server := storetest.StartRedis(t)
	a := newAddress(t, server)
	s := open(t, a.url, patient)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	for name, read := range map[string]func() error{
		"session":  func() error { _, err := s.Session(t.Context(), "k"); return err },
		"receipt":  func() error { _, err := s.Receipt(t.Context(), "KRN-1"); return err },
		"log":      func() error { _, err := s.Log(t.Context(), 0, 10); return err },
		"consumed": func() error { _, err := s.Consumed(t.Context(), "subject"); return err },
	} {
		a.cut.Store(true)
		if err := read(); err != nil || a.cut.Load() {
			t.Errorf("%s: %v; the connection was cut: %t", name, err, !a.cut.Load())
		}
	}
}

// Nor is a call that writes made again by the store: nobody knows whether the server has done it,
// and a run that is counted twice, or given back twice, makes another limit.
func TestWritesWhoseConnectionEnds(t *testing.T) {
	a := newAddress(t, storetest.StartRedis(t))
	s := open(t, a.url, patient)
	for name, write := range map[string]func() error{
		"consume": func() error { _, err := s.Consume(t.Context(), "subject", "run", 10, time.Minute); return err },
		"refund":  func() error { return s.Refund(t.Context(), "subject", "run") },
		"key":     func() error { return s.PutKey(t.Context(), store.Key{ID: "key_1", Hash: "hash"}) },
		"publish": func() error { return s.Publish(t.Context(), []store.Benchmark{{}}) },
		"commit":  func() error { return s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")) },
	} {
		a.cut.Store(true)
		if err := write(); !errors.Is(err, store.ErrUnavailable) || a.cut.Load() {
			t.Errorf("%s: %v; the connection was cut: %t", name, err, !a.cut.Load())
		}
	}
}

// many does the same from several callers at once.
func many(t *testing.T, call func() error) {
	t.Helper()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := call(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// follow makes a server the replica of another.
func follow(t *testing.T, c *client.Client, primary string) {
	t.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(primary, "redis://"), ":")
	must(t, c.Do(t.Context(), "REPLICAOF", host, port).Err())
}

// An address leads new connections to the server that it names then. A connection that asks
// something after cut was set ends without an answer.
type address struct {
	url    string
	server atomic.Value
	cut    atomic.Bool
}

func newAddress(t *testing.T, server string) *address {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	a := &address{url: "redis://" + listener.Addr().String()}
	a.server.Store(strings.TrimPrefix(server, "redis://"))
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go a.pass(conn)
		}
	}()
	return a
}

func (a *address) pass(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", a.server.Load().(string))
	if err != nil {
		return
	}
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, cutting{conn, a})
	}()
	_, _ = io.Copy(conn, server)
}

// cutting reads what a client asks, until its connection is to be cut.
type cutting struct {
	io.Reader

	address *address
}

func (c cutting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 && c.address.cut.CompareAndSwap(true, false) {
		return 0, io.EOF
	}
	return n, err
}
