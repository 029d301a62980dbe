package caddymodule_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Traffic that nobody can read is forwarded with a receipt that says so, or
// refused.
func TestUnknownTraffic(t *testing.T) {
	for policy, forwarded := range map[string]int32{"observe": 1, "pass": 1, "block": 0} {
		t.Run(policy, func(t *testing.T) {
			seen := new(recorder)
			s := newSite(t, `{"unknown":"`+policy+`"}`, func(w http.ResponseWriter, r *http.Request) error {
				seen.record(r)
				return answering("application/json", `{}`)(w, r)
			})
			w := s.post("/v1/embeddings", `{"input_text":"hello"}`)
			if seen.count.Load() != forwarded || (policy == "block") != (w.Code == http.StatusForbidden) {
				t.Errorf("forwarded %d times, status %d", seen.count.Load(), w.Code)
			}
			receipts := s.receipts()
			if policy == "pass" {
				if len(receipts) != 0 {
					t.Errorf("%d receipts", len(receipts))
				}
				return
			}
			coverage := receipts[0]["coverage"].(map[string]any)
			if len(coverage["unknown"].([]any)) == 0 || coverage["bytes_inspected"] != 0.0 {
				t.Errorf("coverage %v", coverage)
			}
		})
	}
}

// A WebSocket is a way to the model that nobody reads.
func TestUpgradeIsUnknownTraffic(t *testing.T) {
	seen := new(recorder)
	for policy, status := range map[string]int{"block": http.StatusForbidden, "observe": http.StatusSwitchingProtocols} {
		s := newSite(t, `{"unknown":"`+policy+`"}`, func(w http.ResponseWriter, r *http.Request) error {
			seen.record(r)
			w.WriteHeader(http.StatusSwitchingProtocols)
			return nil
		})
		if w := s.send(http.MethodGet, "/v1/realtime", "", "Connection", "Upgrade", "Upgrade", "websocket"); w.Code != status {
			t.Errorf("%s: %d %s", policy, w.Code, w.Body)
		}
		if len(s.receipts()) != 1 {
			t.Errorf("%s: %d receipts", policy, len(s.receipts()))
		}
	}
	if seen.count.Load() != 1 {
		t.Errorf("forwarded %d times", seen.count.Load())
	}
}

// With `unknown block` nothing passes that nobody can read.
func TestUnknownParts(t *testing.T) {
	newMember := strings.Replace(chatQuestion, "{", `{"mind_reading":{"text":"hidden"},`, 1)
	oddAnswer := strings.Replace(completion("Paris."), `"role"`, `"whisper":"hidden","role"`, 1)
	oddStream := strings.Replace(stream("Paris ", "is it."), `"content":"is it."`, `"whisper":"hidden"`, 1)
	for name, test := range map[string]struct{ body, contentType, answer string }{
		"request":  {newMember, "application/json", completion("hidden")},
		"answer":   {chatQuestion, "application/json", oddAnswer},
		"streamed": {chatStreamed, "text/event-stream", oddStream},
		"not JSON": {chatQuestion, "application/json", "hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			blocking := newSite(t, `{"unknown":"block"}`, answering(test.contentType, test.answer))
			if w := blocking.post("/v1/chat/completions", test.body); strings.Contains(w.Body.String(), "hidden") || !strings.Contains(w.Body.String(), `"error"`) {
				t.Errorf("block: %d %s", w.Code, w.Body)
			}
			observing := newSite(t, `{}`, answering(test.contentType, test.answer))
			if w := observing.post("/v1/chat/completions", test.body); !strings.Contains(w.Body.String(), "hidden") {
				t.Errorf("observe: %d %s", w.Code, w.Body)
			}
			coverage := observing.receipts()[0]["coverage"].(map[string]any)
			if len(coverage["unknown"].([]any)) == 0 {
				t.Errorf("coverage %v", coverage)
			}
		})
	}
}

// A request of an API that is not known yet is assessed by its looks, and its
// answer passes to the byte: a foreign stream must not be held to the grammar
// of another.
func TestResemblingTraffic(t *testing.T) {
	foreign := "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: content_block_delta\ndata: {\"delta\":{\"text\":\"Paris.\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	seen := new(recorder)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("text/event-stream", foreign)(w, r)
	})
	if w := s.post("/v1/messages", chatStreamed); w.Body.String() != foreign || w.Header().Get("X-Lex-Receipt-Id") == "" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	if string(seen.requests[0].body) != chatStreamed {
		t.Errorf("the model saw %s", seen.requests[0].body)
	}
	coverage := s.receipts()[0]["coverage"].(map[string]any)
	if len(coverage["inspected"].([]any)) == 0 || len(coverage["unknown"].([]any)) != 1 {
		t.Errorf("coverage %v", coverage)
	}
	w := s.post("/v1/messages", chatAttack)
	if w.Code != http.StatusForbidden || w.Header().Get("X-Should-Retry") != "false" || seen.count.Load() != 1 {
		t.Errorf("an attack: %d %s, forwarded %d times", w.Code, w.Body, seen.count.Load())
	}
	blocking := newSite(t, `{"unknown":"block"}`, answering("text/event-stream", foreign))
	if w := blocking.post("/v1/messages", chatStreamed); w.Code != http.StatusForbidden {
		t.Errorf("block: %d", w.Code)
	}
}

// Errors of what lex does not govern are Caddy's, as they are, unless its log
// would print a credential; those of governed traffic never are.
func TestErrorsOfOtherTraffic(t *testing.T) {
	for _, config := range []string{`{}`, `{"unknown":"pass"}`} {
		for _, c := range []struct {
			status int
			err    error
		}{
			{http.StatusNotFound, caddyhttp.Error(http.StatusNotFound, errors.New("canary-file"))},
			{http.StatusBadGateway, caddyhttp.Error(http.StatusBadGateway, errors.New("canary-address"))},
			{http.StatusInternalServerError, errors.New("canary-plain")},
		} {
			s := newSite(t, config, func(http.ResponseWriter, *http.Request) error { return c.err })
			s.left = []error{}
			if s.send(http.MethodGet, "/v1/models?a=b", ""); len(s.left) != 1 || s.left[0] != c.err { //nolint:errorlint // the very error
				t.Errorf("%v: left to Caddy: %v", c.err, s.left)
			}
			s.left = nil
			if w := s.send(http.MethodGet, "/v1/models?key=canary", ""); w.Code != c.status || strings.Contains(w.Body.String(), "canary") {
				t.Errorf("%v: %d %s, want %d", c.err, w.Code, w.Body, c.status)
			}
			if w := s.post("/v1/chat/completions", chatQuestion); w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "canary") {
				t.Errorf("%v: governed: %d %s", c.err, w.Code, w.Body)
			}
		}
	}
}
