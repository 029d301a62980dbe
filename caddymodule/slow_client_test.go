package caddymodule_test

import (
	"bufio"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener hands out one end of connections within the process.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A client that stops reading keeps the upstream waiting, not the answer in
// memory, and is gone after a minute.
func TestAClientThatDoesNotRead(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": chatStreamed,
		"/lex/govern/stream":   `{"prompt":"What is the capital of France?","session_id":"s"}`,
	} {
		t.Run(path, func(t *testing.T) {
			frame := chunk("", map[int]string{0: strings.Repeat("Paris is a city. ", 60)})
			sent := 0
			s := newSite(t, `{"baseline":"never"}`, func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Type", "text/event-stream")
				for range 50_000 { // some 50 MB
					if _, err := w.Write([]byte(frame)); err != nil {
						return err
					}
					sent++
				}
				return nil
			})
			synctest.Test(t, func(t *testing.T) {
				l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
				ended := make(chan struct{})
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					s.serve(w, r)
				})}
				go func() { _ = server.Serve(l) }()
				client, conn := net.Pipe()
				l.conns <- conn
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				r, _ := http.NewRequest(http.MethodPost, "http://site.test"+path, strings.NewReader(body))
				if err := r.Write(client); err != nil {
					t.Fatal(err)
				}
				if _, err := bufio.NewReader(client).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				<-ended // the client reads nothing more
				runtime.ReadMemStats(&after)
				if took := time.Since(began); took < 30*time.Second || took > 3*time.Minute {
					t.Errorf("it took %s", took)
				}
				if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); sent > 5000 || grown > 20<<20 {
					t.Errorf("%d frames were taken from upstream, and the heap grew by %d bytes", sent, grown)
				}
				client.Close()
				server.Close()
			})
			if r := s.receipts()[0]; r["outcome"] == "answered" {
				t.Errorf("outcome %v", r["outcome"])
			}
		})
	}
}
