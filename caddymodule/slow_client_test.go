package caddymodule_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
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
	return s.pipeWith("/v1/chat/completions", body, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r) })
}

// pipeWith is pipe for any path and server.
func (s *site) pipeWith(path, body string, serve http.HandlerFunc) (client net.Conn, ended <-chan struct{}, closeAll func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	served := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		serve(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	client, conn := net.Pipe()
	l.conns <- conn
	r, _ := http.NewRequest(http.MethodPost, "http://site.test"+path, strings.NewReader(body))
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

// limitedReading is what Caddy puts before its handlers where a server has the timeout
// read_body: a reader that keeps to it, and a writer through which deadlines come to the reader.
func limitedReading(w http.ResponseWriter, r *http.Request, readBody time.Duration) (http.ResponseWriter, *http.Request, func()) {
	reader := &caddyhttp.IdleTimeoutReader{
		ReadCloser: r.Body, Ctrl: http.NewResponseController(w), Logger: zap.NewNop(), DrainDeadline: r.ContentLength != 0,
		Deadline: caddyhttp.IdleDeadline{Start: time.Now(), Timeout: time.Minute, HardDeadline: time.Now().Add(readBody)},
	}
	r = r.Clone(r.Context())
	r.Body = reader
	return readDeadlines{w, reader}, r, reader.HandlerDone
}

type readDeadlines struct {
	http.ResponseWriter
	reader *caddyhttp.IdleTimeoutReader
}

func (w readDeadlines) SetReadDeadline(t time.Time) error { return w.reader.SetReadDeadline(t) }
func (w readDeadlines) Unwrap() http.ResponseWriter       { return w.ResponseWriter }

// The time in which a server wants to have a body, and the one in which we want each part of
// it, say nothing of the answer, which may take longer.
func TestAnAnswerMayTakeLongerThanTheBody(t *testing.T) {
	part := strings.Repeat("x", 1<<20-len(`{"a":""}`))
	for name, c := range map[string]struct{ path, body string }{
		"a call":                  {"/v1/chat/completions", chatQuestion},
		"a stream":                {"/v1/chat/completions", chatStreamed},
		"another path":            {"/v1/other", `{"a":"What is the capital of France?"}`},
		"a body of just one part": {"/v1/other", `{"a":"` + part + `"}`},
	} {
		for _, limited := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, read_body %t", name, limited), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, `{"unknown":"observe"}`, func(w http.ResponseWriter, r *http.Request) error {
						select {
						case <-r.Context().Done():
							return r.Context().Err()
						case <-time.After(2 * time.Minute):
						}
						return answering("application/json", completion("Paris."))(w, r)
					})
					client, ended, closeAll := s.pipeWith(c.path, c.body, func(w http.ResponseWriter, r *http.Request) {
						if limited {
							var done func()
							w, r, done = limitedReading(w, r, 10*time.Second)
							defer done()
						}
						s.serve(w, r)
					})
					defer closeAll()
					status, err := bufio.NewReader(client).ReadString('\n')
					if err != nil || !strings.Contains(status, "200") {
						t.Errorf("%v: %s", err, status)
					}
					client.Close()
					<-ended
				})
			})
		}
	}
}
