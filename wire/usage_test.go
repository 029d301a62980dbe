package wire_test

import (
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// The tokens that answers tell, whole or in frames, as each API writes them.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		frames []string
		want   wire.Usage
	}{
		"chat":                 {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}`}, wire.Usage{Input: 9, Output: 12}},
		"chat, streamed":       {[]string{`{"choices":[{"delta":{"content":"a"}}],"usage":null}`, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12}}`, `[DONE]`}, wire.Usage{Input: 9, Output: 12}},
		"responses":            {[]string{`{"object":"response","usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":30},"output_tokens":87}}`}, wire.Usage{Input: 36, Output: 87}},
		"responses, streamed":  {[]string{`{"type":"response.completed","response":{"usage":{"input_tokens":36,"output_tokens":87}}}`}, wire.Usage{Input: 36, Output: 87}},
		"anthropic":            {[]string{`{"type":"message","usage":{"input_tokens":25,"cache_read_input_tokens":100,"cache_creation_input_tokens":5,"output_tokens":15}}`}, wire.Usage{Input: 130, Output: 15}},
		"anthropic, streamed":  {[]string{`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`, `{"type":"message_delta","usage":{"output_tokens":15}}`}, wire.Usage{Input: 25, Output: 15}},
		"bedrock":              {[]string{`{"stopReason":"end_turn","usage":{"inputTokens":25,"cacheReadInputTokens":100,"cacheWriteInputTokens":5,"outputTokens":15,"totalTokens":145}}`}, wire.Usage{Input: 130, Output: 15}},
		"gemini":               {[]string{`{"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":7,"thoughtsTokenCount":20,"totalTokenCount":31}}`}, wire.Usage{Input: 4, Output: 27}},
		"ollama":               {[]string{`{"message":{"content":"a"},"done":false}`, `{"done":true,"prompt_eval_count":26,"eval_count":298}`}, wire.Usage{Input: 26, Output: 298}},
		"ollama, from a cache": {[]string{`{"done":true,"eval_count":298}`}, wire.Usage{Output: 298}},
		"under two names":      {[]string{`{"usage":{"prompt_tokens":9,"input_tokens":9,"completion_tokens":12,"output_tokens":12}}`}, wire.Usage{Input: 9, Output: 12}},
		"none":                 {[]string{`{"choices":[]}`}, wire.Usage{}},
		"in a text":            {[]string{`{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}`}, wire.Usage{}},
		"not numbers":          {[]string{`{"usage":{"prompt_tokens":"9","completion_tokens":-3}}`, `{"usage":{"prompt_tokens":1e300,"completion_tokens":null}}`}, wire.Usage{}},
		"not JSON":             {[]string{`{"usage":{"prompt_tokens":`, `"usage"`}, wire.Usage{}},
	} {
		var u wire.Usage
		for _, frame := range c.frames {
			u.Read([]byte(frame))
		}
		if u != c.want {
			t.Errorf("%s: %+v, want %+v", name, u, c.want)
		}
	}
}

func BenchmarkUsageOfAFrameWithout(b *testing.B) {
	frame := []byte(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}`)
	var u wire.Usage
	b.ReportAllocs()
	for b.Loop() {
		u.Read(frame)
	}
}
