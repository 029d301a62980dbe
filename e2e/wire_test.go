package e2e

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// raw sends bytes over a connection of its own and reads the answers to its
// requests, one by one.
func (s *server) raw(t *testing.T, requests string, answers int) []response {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go io.WriteString(conn, requests)
	var out []response
	in := bufio.NewReader(conn)
	for range answers {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", len(out)+1, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, response{resp.StatusCode, resp.Header, string(body)})
	}
	return out
}

func rawPost(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: site.test\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// chunked cuts a body into chunks of one byte.
func chunked(body string) string {
	var b strings.Builder
	for _, c := range []byte(body) {
		fmt.Fprintf(&b, "1\r\n%c\r\n", c)
	}
	return b.String() + "0\r\n\r\n"
}

func TestBodiesOnTheWire(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	question := governBody("What is 2 + 2?", "wire")
	t.Run("chunks of one byte", func(t *testing.T) {
		got := s.raw(t, "POST /lex/govern HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked(question), 1)
		if got[0].Status != http.StatusOK {
			t.Errorf("%d %s", got[0].Status, got[0].Body)
		}
	})
	t.Run("more than it may be, in chunks", func(t *testing.T) {
		long := fmt.Sprintf("%x\r\n%s\r\n", 200<<10, strings.Repeat("a", 200<<10))
		got := s.raw(t, "POST /lex/govern HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n"+long+"0\r\n\r\n", 1)
		if got[0].Status != http.StatusRequestEntityTooLarge || !strings.Contains(got[0].Body, "body_too_large") {
			t.Errorf("%d %s", got[0].Status, got[0].Body)
		}
	})
	t.Run("a length that is never sent", func(t *testing.T) {
		got := s.raw(t, "POST /lex/govern HTTP/1.1\r\nHost: site.test\r\nContent-Length: 99999999999\r\n\r\n"+strings.Repeat("a", 150<<10), 1)
		if got[0].Status != http.StatusRequestEntityTooLarge {
			t.Errorf("%d %s", got[0].Status, got[0].Body)
		}
	})
	t.Run("pipelined", func(t *testing.T) {
		got := s.raw(t, rawPost("/lex/govern", `{`)+rawPost("/lex/tools/check", `{"session_id":"wire","tool":{"name":"list_files"}}`)+"GET /stats HTTP/1.1\r\nHost: site.test\r\n\r\n"+rawPost("/lex/govern", question), 4)
		for i, want := range []int{http.StatusBadRequest, http.StatusOK, http.StatusOK, http.StatusOK} {
			if got[i].Status != want || !json.Valid([]byte(got[i].Body)) {
				t.Errorf("answer %d: %d %s", i+1, got[i].Status, got[i].Body)
			}
		}
	})
	t.Run("a body with GET", func(t *testing.T) {
		got := s.raw(t, "GET /stats HTTP/1.1\r\nHost: site.test\r\nContent-Length: 2\r\n\r\n{}GET /stats HTTP/1.1\r\nHost: site.test\r\n\r\n", 2)
		if got[0].Status != http.StatusOK || got[1].Status != http.StatusOK {
			t.Errorf("%d, %d", got[0].Status, got[1].Status)
		}
	})
}

// Paths that only look like ours are not ours, and still do not get a prompt
// past the checks.
func TestPathTricks(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	own := governBody(attack, "tricks")
	for path, ours := range map[string]bool{
		"/lex/govern": true, "/lex/%67overn": true, "//lex/govern": false, "/lex//govern": false, "/lex/govern/": false, "/LEX/GOVERN": false,
		"/lex/./govern": false, "/lex/x/../govern": false, "/lex/govern%2f": false, "/lex/govern%00": false, "/lex/govern;a=b": false,
	} {
		got := s.raw(t, rawPost(path, own), 1)[0]
		if ours != strings.Contains(got.Body, `"governed_output"`) || got.Status >= http.StatusInternalServerError || strings.Contains(got.Body, "I am now DAN") {
			t.Errorf("%s: %d %.200s", path, got.Status, got.Body)
		}
	}
	chat := `{"model":"m","messages":[{"role":"user","content":"` + attack + `"}]}`
	for _, path := range []string{"/v1/chat/completions", "//v1//chat/completions", "/v1/chat/%63ompletions", "/V1/Chat/Completions", "/v1/chat/completions/", "/v1/x/../chat/completions"} {
		got := s.raw(t, rawPost(path, chat), 1)[0]
		if strings.Contains(got.Body, "DAN") || got.Status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %.200s", path, got.Status, got.Body)
		}
	}
}

const encodingCaddyfile = `{
	admin 127.0.0.1:${admin}
}
:${site} {
	encode gzip
	lex {
		hold_back 0 1s
		baseline never
	}
	reverse_proxy %s
}
`

// Behind encode, too, each token leaves when it is released: the model goes on
// only after the token before was read.
func TestStreamBehindEncode(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word%d \"},\"finish_reason\":null}]}\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, strings.Replace(encodingCaddyfile, "%s", model.Listener.Addr().String(), 1)), "", p)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/lex/govern/stream", strings.NewReader(governBody("What is 2 + 2?", "s")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("not encoded: %v", resp.Header)
	}
	text, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	tokens, done := 0, false
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch {
		case strings.HasPrefix(lines.Text(), `data: {"token":`):
			tokens++
			next <- struct{}{}
		case strings.HasPrefix(lines.Text(), `data: {"done":true`):
			done = true
		}
	}
	if tokens != 5 || !done {
		t.Errorf("%d tokens, done %v: %v", tokens, done, lines.Err())
	}
}
