package caddymodule_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"
)

// OpenRouter's own SDKs throw a validation error at an error whose code is no number.
// OpenAI's SDKs, which many use with OpenRouter, read the code as a word, so only those
// are answered with a number.
func TestErrorsForOpenRoutersSDK(t *testing.T) {
	const openRouter, openAI = "speakeasy-sdk/typescript 1.3.19 2.914.0 1.0.0 @openrouter/sdk", "OpenAI/JS 7.57.0"
	const embed = `{"model":"m","input":"` + attack + `"}`
	for _, test := range []struct {
		name, config, path, body string
		status                   int
		code                     string
		down                     bool
	}{
		{"a refusal", `{"refuse_with":{"as":"status","status":403}}`, "/api/v1/chat/completions", chatAttack, http.StatusForbidden, "policy_refusal", false},
		{"a body that cannot be read", `{}`, "/api/v1/chat/completions", `{"messages":`, http.StatusBadRequest, "invalid_request", false},
		{"in Responses", `{"refuse_with":{"as":"status","status":403}}`, "/api/v1/responses", `{"model":"m","input":"` + attack + `"}`, http.StatusForbidden, "policy_refusal", false},
		{"of an endpoint", `{}`, "/api/v1/embeddings", embed, http.StatusForbidden, "policy_refusal", false},
		{"a key that is missing", `{"require_key":true}`, "/api/v1/chat/completions", chatQuestion, http.StatusUnauthorized, "api_key_required", false},
		{"a key that an endpoint misses", `{"require_key":true}`, "/api/v1/embeddings", embed, http.StatusUnauthorized, "api_key_required", false},
		{"no model", `{}`, "/api/v1/chat/completions", chatQuestion, http.StatusBadGateway, "upstream_failed", false},
		{"no store", `{}`, "/api/v1/chat/completions", chatQuestion, http.StatusServiceUnavailable, "governor_unavailable", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, test.config, func(http.ResponseWriter, *http.Request) error { return nil }) // a model that says nothing
			if test.down {
				s.breakStore()
			}
			for agent, want := range map[string]string{
				openRouter: fmt.Sprintf(`%d %d %q`, test.status, test.status, test.code),
				openAI:     fmt.Sprintf(`%d %q null`, test.status, test.code),
			} {
				w := s.post(test.path, test.body, "User-Agent", agent)
				body := w.Body.String()
				got := fmt.Sprintf("%d %s %s", w.Code, gjson.Get(body, "error.code").Raw, orNull(gjson.Get(body, "error.metadata.code").Raw))
				if got != want || gjson.Get(body, "error.message").Str == "" {
					t.Errorf("%s: %s, want %s: %s", agent, got, want, body)
				}
			}
		})
	}
}

func orNull(raw string) string {
	if raw == "" {
		return "null"
	}
	return raw
}
