package caddymodule_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/caddymodule"
)

// over serves the site over real connections.
func (s *site) over(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.serve(w, r) {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// delta is one chunk of a chat stream.
func delta(text string) string {
	b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": text}, "finish_reason": nil}}})
	return "data: " + string(b) + "\n\n"
}

// isGoverned tells the governed arm's request from the raw one's.
func isGoverned(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	return strings.Contains(string(body), `"stream":true`)
}

// A client that leaves in the midst of a stream ends both calls to the model,
// and the receipt says so.
func TestLeavingCancelsBothArms(t *testing.T) {
	ended := make(chan string, 2)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		arm := "raw"
		defer func() { ended <- arm }() // whether it is a write that ends it or the wait
		if isGoverned(r) {
			arm = "governed"
			w.Header().Set("Content-Type", "text/event-stream")
			for range 20 { // more than what is held back
				if _, err := io.WriteString(w, delta("Paris is the capital of France and a city on the Seine. ")); err != nil {
					return err
				}
			}
		}
		<-r.Context().Done()
		return r.Context().Err()
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.over(t)+"/lex/govern/stream", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, `data: {"token":`) {
		t.Fatalf("%v %q", err, line)
	}
	leave()
	if a, b := <-ended, <-ended; a == b {
		t.Errorf("the %s arm ended twice", a)
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); { // the handler is on its way to the receipt
		if list := s.receipts(); len(list) == 1 {
			if list[0]["outcome"] != "client_gone" {
				t.Errorf("outcome %v", list[0]["outcome"])
			}
			return
		}
	}
	t.Error("no receipt")
}

// A model that breaks off when tokens have left: the one done event says so,
// and what was sent is what the receipt commits to.
func TestErrorAfterTheFirstByte(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter) error{
		"aborted": func(http.ResponseWriter) error { panic(http.ErrAbortHandler) },
		"silent":  func(http.ResponseWriter) error { return nil },
		"error":   func(http.ResponseWriter) error { return errors.New("canary-upstream") },
		"in band": func(w http.ResponseWriter) error {
			_, err := io.WriteString(w, `data: {"error":{"message":"canary-upstream"}}`+"\n\n")
			return err
		},
		"not JSON": func(w http.ResponseWriter) error {
			_, err := io.WriteString(w, "data: {canary-upstream\n\n")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `{"baseline":"never"}`, func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Type", "text/event-stream")
				for range 20 {
					if _, err := io.WriteString(w, delta("Paris is the capital of France and a city on the Seine. ")); err != nil {
						return err
					}
				}
				return end(w)
			})
			w := s.post("/lex/govern/stream", question)
			frames := strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n")
			tokens := ""
			for _, f := range frames[:len(frames)-1] {
				var e struct{ Token string }
				if err := json.Unmarshal([]byte(strings.TrimPrefix(f, "data: ")), &e); err != nil {
					t.Fatal(err)
				}
				tokens += e.Token
			}
			var done map[string]any
			if err := json.Unmarshal([]byte(strings.TrimPrefix(frames[len(frames)-1], "data: ")), &done); err != nil {
				t.Fatal(err)
			}
			if tokens == "" || done["done"] != true || done["code"] != "upstream_aborted" || done["error"] == "" || done["governed_output"] != tokens {
				t.Errorf("%d tokens, done %v", len(frames)-1, done)
			}
			if done["governed_source"] != "unavailable" {
				t.Errorf("governed_source %v", done["governed_source"])
			}
			if strings.Contains(w.Body.String(), "canary") {
				t.Errorf("the upstream's words leak: %s", w.Body)
			}
			record := s.receipts()[0]
			if record["outcome"] != "aborted" || done["receipt_id"] != record["id"] {
				t.Errorf("receipt %v, done %v", record["outcome"], done["receipt_id"])
			}
			if covered := fmt.Sprint(record["coverage"]); !strings.Contains(covered, fmt.Sprintf("bytes:%d detector:local_judge part:response.governed_output", len(tokens))) || !strings.Contains(covered, "name:local_judge outcome:clean") {
				t.Errorf("the receipt does not tell that %d bytes were judged: %s", len(tokens), covered)
			}
		})
	}
}

// Every token leaves when it is released, not when a buffer is full.
func TestTokensAreFlushedOneByOne(t *testing.T) {
	next := make(chan struct{})
	s := newSite(t, `{"baseline":"never","hold_back":{"bytes":0,"duration":1000000000}}`, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			if _, err := io.WriteString(w, delta("Paris. ")); err != nil {
				return err
			}
			<-next
		}
		_, err := io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		return err
	})
	resp, err := http.Post(s.over(t)+"/lex/govern/stream", "application/json", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	tokens := 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), `data: {"token":`) {
			tokens++
			next <- struct{}{} // the model goes on only when this token was read
		}
	}
	if tokens != 5 {
		t.Errorf("%d tokens", tokens)
	}
}

// countingWriter counts the comments of a stream.
type countingWriter struct {
	mu   sync.Mutex
	text strings.Builder
}

func (*countingWriter) Header() http.Header { return http.Header{} }
func (*countingWriter) WriteHeader(int)     {}
func (*countingWriter) FlushError() error   { return nil }
func (w *countingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// While the model thinks a comment goes out every ten seconds.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(countingWriter)
		stop := caddymodule.KeepAlive(w)
		time.Sleep(35 * time.Second)
		synctest.Wait()
		stop()
		time.Sleep(time.Minute)
		if got := w.text.String(); got != strings.Repeat(": keep-alive\n\n", 3) {
			t.Errorf("after 35 seconds: %q", got)
		}
	})
}

// slowBody sends nothing until its deadline has passed.
type slowBody struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (b *slowBody) SetReadDeadline(t time.Time) error { b.deadline = t; return nil }
func (b *slowBody) Close() error                      { return nil }
func (b *slowBody) Read([]byte) (int, error) {
	if b.deadline.IsZero() {
		return 0, errors.New("reading without a deadline")
	}
	time.Sleep(time.Until(b.deadline))
	return 0, fmt.Errorf("reading: %w", os.ErrDeadlineExceeded)
}

// A body that does not come is not waited for longer than half a minute, on
// whichever path.
func TestSlowBody(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	for _, path := range []string{"/lex/govern", "/lex/govern/stream", "/lex/tools/check", "/v1/chat/completions", "/v1/other", "/audits/verify"} {
		synctest.Test(t, func(t *testing.T) {
			b := &slowBody{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequest(http.MethodPost, "http://site.test"+path, b)
			began := time.Now()
			s.serve(b, r)
			if b.Code != http.StatusRequestTimeout || !strings.Contains(b.Body.String(), `"code":"request_timeout"`) || time.Since(began) != 30*time.Second {
				t.Errorf("%s: %d after %v: %s", path, b.Code, time.Since(began), b.Body)
			}
		})
	}
}

// tricklingBody sends a byte a second, until a deadline.
type tricklingBody struct {
	slowBody
	sent int
}

func (b *tricklingBody) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	if !time.Now().Before(b.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	b.sent++
	return copy(p, "x"), nil
}

// uploadBody sends 100 KiB a second, as a slow line does.
type uploadBody struct {
	slowBody
	left []byte
}

func (b *uploadBody) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	if !time.Now().Before(b.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(p[:min(len(p), 100<<10)], b.left)
	if b.left = b.left[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// A byte now and then is no body; a slow line is given its time.
func TestTricklingBody(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	for _, path := range []string{"/lex/govern", "/v1/chat/completions", "/v1/other"} {
		synctest.Test(t, func(t *testing.T) {
			b := &tricklingBody{slowBody: slowBody{ResponseRecorder: httptest.NewRecorder()}}
			began := time.Now()
			s.serve(b, httptest.NewRequest(http.MethodPost, "http://site.test"+path, b))
			if b.Code != http.StatusRequestTimeout || time.Since(began) > 31*time.Second {
				t.Errorf("%s: %d after %v and %d bytes: %s", path, b.Code, time.Since(began), b.sent, b.Body)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := &uploadBody{slowBody: slowBody{ResponseRecorder: httptest.NewRecorder()}, left: bytes.Repeat([]byte("x"), 8<<20)}
		began := time.Now()
		body, status := caddymodule.ReadBody(b, httptest.NewRequest(http.MethodPost, "/", b), 8<<20)
		if status != 0 || len(body) != 8<<20 || time.Since(began) < time.Minute {
			t.Errorf("a slow upload: %d, %d bytes after %v", status, len(body), time.Since(began))
		}
		b.left = bytes.Repeat([]byte("x"), 8<<20+1)
		if _, status := caddymodule.ReadBody(b, httptest.NewRequest(http.MethodPost, "/", b), 8<<20); status != http.StatusRequestEntityTooLarge {
			t.Errorf("one byte too many: %d", status)
		}
	})
}

// A model that ends its stream without the last blank line has answered all the same.
func TestGovernStreamReadsTheUnterminatedFrame(t *testing.T) {
	whole := stream("Paris is ", "the capital.")
	end := strings.Index(whole, `"finish_reason":"stop"`)
	body := whole[:end+strings.Index(whole[end:], "\n\n")]
	s := newSite(t, `{"baseline":"never"}`, answering("text/event-stream", body))
	if w := s.post("/lex/govern/stream", question); !strings.Contains(w.Body.String(), `"governed_output":"Paris is the capital."`) || strings.Contains(w.Body.String(), `"code"`) {
		t.Errorf("%s", w.Body)
	}
}

// An answer that is encoded although that was not asked for is decoded, whole or streamed, and
// one that cannot be decoded leaves its cause in the log.
func TestGovernDecodesAnswers(t *testing.T) {
	broken := func(s string) (string, string) {
		coding, body := gzipped(s)
		return coding, body[:len(body)/2]
	}
	for name, encode := range map[string]func(string) (coding, body string){
		"gzip": gzipped, "br": brotlied, "zlib": zlibbed, "deflate": deflated, "twice": gzippedTwice, "broken": broken,
		"not known": func(s string) (string, string) { return "rot13", s },
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			contentType, body := "application/json", completion("Paris.")
			if isGoverned(r) {
				contentType, body = "text/event-stream", stream("Paris.")
			}
			w.Header().Set("Content-Type", contentType)
			coding, encoded := encode(body)
			w.Header().Set("Content-Encoding", coding)
			_, _ = io.WriteString(w, encoded)
		}))
		for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
			p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex\nreverse_proxy "+srv.Listener.Addr().String())
			status, _, body := p.send(http.MethodPost, path, question, nil)
			lines := failureLines(t, p.stop())
			switch fails := name == "broken" || name == "not known"; {
			case fails:
				if status != http.StatusInternalServerError || !strings.Contains(body, "provider_exhausted") || len(lines) != 1 || lines[0]["cause"] != "encoding" {
					t.Errorf("%s %s: %d %s, logged %v", path, name, status, body, lines)
				}
			case status != http.StatusOK, !strings.Contains(body, "Paris."), !strings.Contains(body, `"governed_source":"governed"`), len(lines) > 0:
				t.Errorf("%s %s: %d %s, logged %v", path, name, status, body, lines)
			}
		}
		srv.Close()
	}
}
