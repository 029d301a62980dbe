package model_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
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
