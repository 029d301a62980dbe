package caddymodule_test

import (
	"bufio"
	"net"
	"net/http"
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
// memory, and is gone after a minute. (The clock of the hold-back is out of the
// way: a goroutine that waits for a lock would stop the bubble's time.)
func TestAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, testAClientThatDoesNotRead)
}

// The same for an answer in one piece.
func TestAClientThatDoesNotReadAWholeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, `{}`, answering("application/json", completion(strings.Repeat("Paris is a city. ", 6000))))
		client, ended, closeAll := s.pipe(chatQuestion)
		defer closeAll()
		began := time.Now()
		if _, err := bufio.NewReader(client).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Minute):
			t.Fatal("the answer is still being written after ten minutes")
		}
		if took := time.Since(began); took < 30*time.Second || took > 3*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

// pipe sends a call over a connection within the process. It returns the client's
// end, and a channel that is closed when the call was served.
func (s *site) pipe(body string) (client net.Conn, ended <-chan struct{}, closeAll func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	served := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		s.serve(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	client, conn := net.Pipe()
	l.conns <- conn
	r, _ := http.NewRequest(http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(body))
	if err := r.Write(client); err != nil {
		s.t.Fatal(err)
	}
	return client, served, func() {
		client.Close()
		server.Close()
	}
}

func testAClientThatDoesNotRead(t *testing.T) {
	frame := chunk("", map[int]string{0: strings.Repeat("Paris is a city. ", 60)})
	sent := 0
	s := newSite(t, `{"hold_back":{"bytes":256,"duration":3600000000000}}`, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 50_000 { // some 50 MB
			if _, err := w.Write([]byte(frame)); err != nil {
				return err
			}
			sent++
		}
		return nil
	})
	client, ended, closeAll := s.pipe(chatStreamed)
	began := time.Now()
	if _, err := bufio.NewReader(client).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	<-ended // the client reads nothing more
	if took := time.Since(began); took < 30*time.Second || took > 3*time.Minute {
		t.Errorf("it took %s", took)
	}
	if sent > 100 {
		t.Errorf("%d frames were taken from upstream", sent)
	}
	closeAll()
	if r := s.receipts()[0]; r["outcome"] == "answered" {
		t.Errorf("outcome %v", r["outcome"])
	}
}
