package caddymodule_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// listen serves a site on a real port and returns its address.
func listen(t *testing.T, s *site) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.serve(w, r) {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// wireCall is a request as it stands on the wire.
func wireCall(method, target, body string, headers ...string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		method, target, strings.Join(append(headers, ""), "\r\n"), len(body), body)
}

// exchange sends bytes and reads what comes until the other side closes.
func exchange(t *testing.T, address, sent string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	got, _ := io.ReadAll(conn) // a reset is an answer too
	return string(got)
}

// No method, no spelling of a path and no framing leads an attack to the model,
// and what is governed leaves a receipt.
func TestNoWayLeadsAround(t *testing.T) {
	for _, config := range []string{`{}`, `{"unknown":"block"}`, `{"history":"refuse"}`, `{"refuse_with":{"as":"status","status":403}}`} {
		s, seen := listening(t, config)
		address := listen(t, s)
		for _, method := range []string{"POST", "post", "PUT", "PATCH", "DELETE", "QUERY", "GET", "OPTIONS", "HEAD", "PROPFIND", "TRACE"} {
			for _, target := range []string{
				"/v1/chat/completions", "/v1/chat/completions/", "//v1//chat/completions", "/v1/chat%2fcompletions", "/V1/Chat/Completions",
				"/v1/./chat/completions", "/v1/x/../chat/completions", "/v1/chat/completions;x", "/v1/chat/completions?stream=1", "/v1/chat/completions%20",
				"http://other.test/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/x:generateContent", "/api/chat", "/mcp", "/",
				"/lex/govern/", "/LEX/govern", "/lex/..;/v1/x", "/stats/", "/audits/recent/x/y",
			} {
				exchange(t, address, wireCall(method, target, chatAttack))
			}
		}
		chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Evil: 1\r\n\r\n", len(chatAttack), chatAttack)
		for _, sent := range []string{
			"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Evil\r\n\r\n" + chunked,
			"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked,
			fmt.Sprintf("POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(chatAttack), chatAttack),
			wireCall("POST", "/v1/chat/completions", chatAttack, "Expect: 100-continue"),
			wireCall("POST", "/v1/chat/completions", chatAttack, "X-HTTP-Method-Override: GET"),
			wireCall("POST", "/v1/chat/completions", chatAttack, "Content-Encoding: identity"),
			wireCall("POST", "/v1/chat/completions", "\xef\xbb\xbf"+chatAttack),
			wireCall("POST", "/v1/chat/completions", chatAttack+chatAttack),
			wireCall("POST", "/v1/chat/completions", chatAttack, "Content-Type: text/plain"),
			wireCall("POST", "/v1/chat/completions", chatAttack, "Upgrade: websocket"),
		} {
			exchange(t, address, sent)
		}
		for _, r := range seen.requests {
			if strings.Contains(string(r.body), "DAN") || strings.Contains(r.path, "DAN") {
				t.Errorf("%s: %s was asked %s", config, r.path, r.body)
			}
		}
		if got := exchange(t, address, wireCall("POST", "/v1/chat/completions", chatQuestion)); !strings.Contains(got, "Paris.") {
			t.Errorf("%s: a question: %s", config, got)
		}
	}
}

// What comes behind the body of a request goes nowhere, also where the body is not read.
func TestTrailersOfRequestsStayHere(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/somewhere/else"} {
		trailers := make(chan http.Header, 1)
		s := newSite(t, `{"unknown":"pass"}`, func(w http.ResponseWriter, r *http.Request) error {
			_, err := io.Copy(io.Discard, r.Body)
			trailers <- r.Trailer
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, completion("Paris."))
			return err
		})
		got := exchange(t, listen(t, s), fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"+
			"Content-Type: application/json\r\nTrailer: X-Lex-Api-Key, X-Other\r\n\r\n%x\r\n%s\r\n0\r\nX-Lex-Api-Key: lex_sk_1\r\nX-Other: 1\r\n\r\n",
			path, len(chatQuestion), chatQuestion))
		if !strings.Contains(got, "Paris.") {
			t.Errorf("%s: %s", path, got)
		}
		if got := <-trailers; len(got) > 0 {
			t.Errorf("%s: the trailers %v were forwarded", path, got)
		}
	}
}

// Wherever a client hangs up, in its request or in the answer, what the model was
// asked for has a receipt that verifies, and the next one is served.
func TestHangingUpAnywhere(t *testing.T) {
	seen := new(recorder)
	s := newSite(t, `{"hold_back":{"bytes":0,"duration":1000000000}}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 40 {
			if _, err := io.WriteString(w, chunk("", map[int]string{0: fmt.Sprintf("Word %d of the answer. ", i)})); err != nil {
				return err
			}
			_ = http.NewResponseController(w).Flush()
		}
		_, err := io.WriteString(w, stream("Paris."))
		return err
	})
	address := listen(t, s)
	call := wireCall("POST", "/v1/chat/completions", chatStreamed)
	for cut := 0; cut < len(call); cut += 7 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, call[:cut])
		conn.Close()
	}
	for read := 0; read < 6000; read += 251 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, call)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, _ = io.CopyN(io.Discard, conn, int64(read))
		conn.Close()
	}
	if got := exchange(t, address, call); !strings.Contains(got, "data: [DONE]") {
		t.Fatalf("the next one: %s", got)
	}
	list := s.await(int(seen.count.Load()))
	for _, r := range list {
		if o := r["outcome"]; o != "answered" && o != "client_gone" && o != "aborted" {
			t.Errorf("outcome %v", o)
		}
		if v := s.post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`); !strings.Contains(v.Body.String(), `"valid":true`) {
			t.Errorf("%s", v.Body)
		}
	}
}

// await waits until there are n receipts: a client that left may be settled a
// moment later.
func (s *site) await(n int) []map[string]any {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		if list := s.receipts(); len(list) >= n || time.Now().After(deadline) {
			if len(list) != n {
				s.t.Errorf("%d receipts for %d calls", len(list), n)
			}
			return list
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
}
