package caddymodule

import "github.com/caddy-lex/lex/wire"

// A genAICall is what OpenTelemetry's semantic conventions for generative AI call the calls
// of a dialect: gen_ai.provider.name is the API that is spoken, whoever serves it.
// https://opentelemetry.io/docs/specs/semconv/gen-ai/
type genAICall struct{ provider, operation string }

var genAICalls = map[string]genAICall{
	"openai_chat":        {"openai", "chat"},
	"openai_completions": {"openai", "text_completion"},
	"openai_responses":   {"openai", "chat"},
	"anthropic_messages": {"anthropic", "chat"},
	"gemini_generate":    {"gcp.gemini", "generate_content"},
	"ollama_chat":        {"ollama", "chat"},
	"ollama_generate":    {"ollama", "text_completion"},
}

// countTokens counts the tokens of an answer, as far as the answer tells them.
func (m *metrics) countTokens(dialect string, u wire.Usage) {
	call, asksModel := genAICalls[dialect]
	if !asksModel {
		return
	}
	for kind, tokens := range map[string]int64{"input": u.Input, "output": u.Output} {
		if tokens > 0 {
			m.tokens.WithLabelValues(call.provider, call.operation, kind).Observe(float64(tokens))
		}
	}
}
