package caddymodule_test

import (
	"net/http"
	"strings"
	"testing"
)

// A request may come to lex after its configuration was cleaned up, as Caddy does not wait for
// requests when it reloads.
func TestRequestAfterCleanup(t *testing.T) {
	answer := answering("application/json", completion("Paris."))
	before := newSite(t, `{}`, answer)
	sameStore := map[string]any{"store": map[string]any{"engine": "faulty", "path": before.path}}
	after := newSiteWith(t, `{}`, sameStore, answer)
	before.stop()
	w := before.send(http.MethodPost, "/v1/chat/completions", chatQuestion)
	receipt := w.Header().Get("X-Lex-Receipt-Id")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Paris.") || receipt == "" {
		t.Errorf("with the store that the next configuration has: %d %s", w.Code, w.Body)
	}
	if found := after.send(http.MethodGet, "/receipts/"+receipt, ""); found.Code != http.StatusOK {
		t.Errorf("its receipt: %d %s", found.Code, found.Body)
	}

	after.stop()
	if w := before.send(http.MethodPost, "/v1/chat/completions", chatQuestion); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "governor_unavailable") {
		t.Errorf("with a store that is closed: %d %s", w.Code, w.Body)
	}
	anew := newSiteWith(t, `{}`, sameStore, answer)
	if w := before.send(http.MethodPost, "/v1/chat/completions", chatQuestion); w.Code != http.StatusServiceUnavailable {
		t.Errorf("with a store that was opened anew: %d %s", w.Code, w.Body)
	}
	if w := anew.send(http.MethodPost, "/v1/chat/completions", chatQuestion); w.Code != http.StatusOK {
		t.Errorf("the configuration that opened it: %d %s", w.Code, w.Body)
	}
}
