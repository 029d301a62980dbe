package caddymodule_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/caddy-lex/lex/store"
)

// Each decision is counted once, when it is durable: not again if the commit is repeated,
// and not where none was written or nothing left.
func TestCallsAreCountedOnce(t *testing.T) {
	counted := func() (blocked, approved float64) {
		return metric(t, "lex_tool_calls_total", "decision", "blocked", "invariant", "destructive_command"), metric(t, "lex_tool_calls_total", "decision", "approved", "invariant", "")
	}
	for _, api := range callingAPIs {
		for name, test := range map[string]struct {
			config            string
			conflict, down    bool
			blocked, approved float64
			refused           bool
		}{
			"plain":      {config: `{}`, blocked: 1, approved: 2},
			"a conflict": {config: `{}`, conflict: true, blocked: 1, approved: 2},
			"store down": {config: `{}`, down: true},
			"observe":    {config: `{"mode":"observe"}`, approved: 2},
		} {
			contentType, body := api.answer(weather, wipe, second)
			s := newSite(t, test.config, answering(contentType, body))
			tries := 0
			s.meddle(func(ctx context.Context, change store.Change, commit func(context.Context, store.Change) error) error {
				if tries++; test.conflict && tries == 1 {
					return store.ErrConflict
				}
				return commit(ctx, change)
			})
			if test.down {
				s.breakStore()
			}
			blocked, approved := counted()
			w := s.post(api.path, api.question)
			b, a := counted()
			if b-blocked != test.blocked || a-approved != test.approved {
				t.Errorf("%s, %s: counted %v blocked and %v approved: %d %s", api.name, name, b-blocked, a-approved, w.Code, w.Body)
			}
			s.mendStore()
			if stats := s.get("/stats"); !test.down && w.Code != http.StatusOK || stats == nil {
				t.Errorf("%s, %s: %d, %v", api.name, name, w.Code, stats)
			}
		}
	}
}

// The receipt of a turn covers its calls, and no receipt calls anything inspected that
// nobody read.
func TestCoverageOfCalls(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		s := newSite(t, `{}`, answering(contentType, body))
		s.post(api.path, api.question)
		turn := s.turns()[0]["coverage"].(map[string]any)
		if skipped := parts(s.turns()[0], "skipped"); len(skipped) > 0 {
			t.Errorf("%s: skipped %v", api.name, skipped)
		}
		if unknown, _ := turn["unknown"].([]any); len(unknown) > 0 {
			t.Errorf("%s: unknown %v", api.name, unknown)
		}
		for i, asked := range []askedFor{wipe, weather} { // newest first
			coverage := s.calls()[i]["coverage"].(map[string]any)
			inspected := coverage["inspected"].([]any)
			size := float64(len(asked.name) + len(asked.arguments))
			if len(inspected) != 1 || inspected[0].(map[string]any)["bytes"] != size || inspected[0].(map[string]any)["part"] != "response.tool_call" {
				t.Errorf("%s: %s is covered as %v, want %v bytes", api.name, asked.name, inspected, size)
			}
			if forwarded := coverage["bytes_forwarded"]; (asked == weather && forwarded != size) || (asked == wipe && forwarded != 0.0) {
				t.Errorf("%s: %v bytes of %s are forwarded", api.name, forwarded, asked.name)
			}
		}
	}
}
