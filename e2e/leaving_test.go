package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// When the client leaves, the call to the model ends, before its answer, between two
// frames and in the middle of a text that is held back. The time that takes is
// logged; the model here would otherwise be silent for ever.
func TestALeavingClientEndsTheCall(t *testing.T) {
	t.Parallel()
	frame := func(text string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
	}
	long := strings.Repeat("Paris is the capital of France. ", 40)
	for name, test := range map[string]struct {
		said string // by the model before it falls silent
		seen string // by the client before it leaves
	}{
		"before the answer": {"", ""},
		"in a stream":       {frame(long) + frame(long), "Paris"},
		"while text is held": {
			frame("Paris"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, ended := make(chan struct{}), make(chan time.Time, 1)
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // net/http notices a client that leaves only behind the body
				if test.said != "" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, test.said)
					_ = http.NewResponseController(w).Flush()
				}
				close(asked)
				<-r.Context().Done()
				ended <- time.Now()
			}))
			t.Cleanup(model.Close)
			p := freePorts(t)
			s := start(t, writeCaddyfile(t, p, "{\n\tadmin off\n}\n:${site} {\n\tlex\n\treverse_proxy "+model.Listener.Addr().String()+"\n}\n"), "", p)

			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions",
				strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"What is the capital of France?"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-asked
				if test.seen == "" {
					leave()
				}
			}()
			resp, err := s.client.Do(r)
			if err == nil {
				readUntil(resp.Body, test.seen)
				resp.Body.Close()
			}
			left := time.Now()
			leave()
			select {
			case at := <-ended:
				t.Logf("the call ended %v after the client left", at.Sub(left).Round(time.Millisecond))
			case <-time.After(30 * time.Second):
				t.Fatal("the call goes on without its client")
			}
			eventually(t, time.Minute, func() bool {
				ids := s.receipts(t)
				return len(ids) == 1 && strings.Contains(s.do(t, http.MethodGet, "/audits/"+ids[0], "").Body, `"outcome":"client_gone"`)
			}, func() string { return "no receipt says that the client left" })
		})
	}
}

// readUntil reads a body up to a text, or to its end.
func readUntil(body io.Reader, text string) {
	var got strings.Builder
	buf := make([]byte, 1024)
	for text == "" || !strings.Contains(got.String(), text) {
		n, err := body.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			return
		}
	}
}
