package caddymodule_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// What a check stopped is refused, and says so, whoever notices first: the
// check, the upstream call that it cancels, or a client that leaves meanwhile.
func TestStoppedStreamsAreRefused(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		for path, body := range map[string]string{"/lex/govern/stream": question, "/v1/chat/completions": chatStreamed} {
			for range 20 {
				ctx, leave := context.WithCancel(t.Context())
				s := newSite(t, `{"baseline":"never","hold_back":{"bytes":4096,"duration":1000000}}`, stoppedSilent(leaves, leave))
				w := httptest.NewRecorder()
				s.serve(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "http://site.test"+path, strings.NewReader(body)))
				leave()
				if receipt := s.receipts()[0]; receipt["outcome"] != "refused" || receipt["capitulated"] != true || strings.Contains(w.Body.String(), "DAN") {
					t.Fatalf("%s, leaves %v: outcome %v: %s", path, leaves, receipt["outcome"], w.Body)
				}
			}
		}
	}
}

// stoppedSilent is a model that says something bad and then waits, so that the
// clock of what is held back finds it; its client may leave at that moment.
func stoppedSilent(leaves bool, leave func()) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		if _, err := io.WriteString(w, delta(gaveIn)); err != nil {
			return err
		}
		<-r.Context().Done()
		if leaves {
			leave()
		}
		return r.Context().Err()
	}
}
