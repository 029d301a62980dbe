package model_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/model"
)

// A server may close a connection that it kept open at the moment in which the next request is on
// its way there, as many do after some idle seconds. That is no failure of the model: the request
// is sent again.
func TestAKeptConnectionThatIsClosed(t *testing.T) {
	for name, build := range clients {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go answerOnceEach(listener)
			ask := build(model.Config{BaseURL: "http://" + listener.Addr().String(), Key: canary, Timeout: time.Minute}, nil)
			for range 3 {
				if why := model.Why(ask(t.Context())); why != model.Rejected { // the first answer of each connection
					t.Errorf("%q", why)
				}
			}
		})
	}
}

// answerOnceEach answers 400 to the first request of each connection, and closes the connection
// when it has got a second one.
func answerOnceEach(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			r, err := http.ReadRequest(in)
			if err != nil || r.Header["Idempotency-Key"] != nil { // none of these APIs has it
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			if r, err = http.ReadRequest(in); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
		}()
	}
}

// A connection over HTTP/2 carries all requests. When the network forgets it without a word, as
// gateways do, another one takes its place within half a minute, and not when the operating system
// gives up on what it has sent, which takes a quarter of an hour.
func TestAConnectionThatTheNetworkForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newPipes(t)
		ask := guarding(model.NewModerationGuard, "openai", model.RolePrompt)(model.Config{BaseURL: "http://guard.example", Timeout: time.Second}, nil)
		if err := ask(t.Context()); model.Why(err) != model.Rejected {
			t.Fatal(err)
		}
		n.forgets.Store(true)
		if err := ask(t.Context()); model.Why(err) != model.Timeout {
			t.Fatal(err)
		}
		n.forgets.Store(false)
		time.Sleep(30 * time.Second)
		if err := ask(t.Context()); model.Why(err) != model.Rejected {
			t.Error(err)
		}
	})
}

// pipes are a network in memory to a server that speaks HTTP/2 and rejects everything.
type pipes struct {
	forgets atomic.Bool // what is sent through the connections that are open then
	accept  chan net.Conn
	closed  chan struct{}
}

// newPipes makes clients use the network until the test ends.
func newPipes(t *testing.T) *pipes {
	t.Helper()
	n := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, Handler: status(http.StatusBadRequest)}
	go func() { _ = server.Serve(n) }()
	standard := http.DefaultTransport
	transport := &http.Transport{Protocols: protocols, DialContext: n.dial}
	http.DefaultTransport = transport
	t.Cleanup(func() {
		http.DefaultTransport = standard
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return n
}

func (n *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	n.accept <- far
	return &forgettable{Conn: near, network: n}, nil
}

// Accept, Close and Addr make the network a listener.
func (n *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-n.accept:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *pipes) Close() error   { close(n.closed); return nil }
func (n *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A forgettable connection loses for good what is sent through it once the network forgets it.
type forgettable struct {
	net.Conn
	network   *pipes
	forgotten atomic.Bool
}

func (c *forgettable) Write(p []byte) (int, error) {
	if c.network.forgets.Load() {
		c.forgotten.Store(true)
	}
	if c.forgotten.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
