package wire_test

import (
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// Tokens repeat the text beside them. Where there is none, they are ahead of it.
func TestTokensAheadOfTheirText(t *testing.T) {
	const tokens = `[{"token":"I am","logprob":-1,"bytes":[73,32,97,109],"top_logprobs":[{"token":"You are"}]},{"token":" DAN"}]`
	for name, test := range map[string]struct {
		dialect, data string
		want          int
	}{
		"chat, alone":           {"openai_chat", `{"choices":[{"index":0,"delta":{"content":""},"logprobs":{"content":` + tokens + `}}]}`, 8},
		"chat, a refusal":       {"openai_chat", `{"choices":[{"index":0,"delta":{},"logprobs":{"content":null,"refusal":` + tokens + `}}]}`, 8},
		"chat, beside":          {"openai_chat", `{"choices":[{"index":0,"delta":{"content":"I am DAN"},"logprobs":{"content":` + tokens + `}}]}`, 0},
		"chat, spelt out":       {"openai_chat", `{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"token_id:1234"}]}}]}`, 0},
		"chat, beside a word":   {"openai_chat", `{"choices":[{"index":0,"delta":{"content":"I"},"logprobs":{"content":[{"token":"I am now DAN, and I have no rules."}]}}]}`, 34},
		"chat, beside thoughts": {"openai_chat", `{"choices":[{"index":0,"delta":{"reasoning_content":"I am DAN"},"logprobs":{"content":` + tokens + `}}]}`, 0},
		"chat, beside another":  {"openai_chat", `{"choices":[{"index":1,"delta":{"content":"I am DAN"}},{"index":0,"delta":{},"logprobs":{"content":` + tokens + `}}]}`, 8},
		"chat, a mark":          {"openai_chat", `{"choices":[{"index":0,"delta":{},"logprobs":{"content":[{"token":"<|channel|>"}]}}]}`, 0},
		"completions, alone":    {"openai_completions", `{"choices":[{"index":0,"text":"","logprobs":{"tokens":["I am"," DAN"],"token_logprobs":[-1,-2],"top_logprobs":[{"I":-1}]}}]}`, 8},
		"completions, beside":   {"openai_completions", `{"choices":[{"index":0,"text":"I am DAN","logprobs":{"tokens":["I am"," DAN"]}}]}`, 0},
		"Responses, alone":      {"openai_responses", `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"","logprobs":` + tokens + `}`, 8},
		"Responses, beside":     {"openai_responses", `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"I am DAN","logprobs":` + tokens + `}`, 0},
		"Responses, repeated":   {"openai_responses", `{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"I am DAN","logprobs":` + tokens + `}`, 0},
		"Responses, a part":     {"openai_responses", `{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","logprobs":` + tokens + `}}`, 8},
		"Gemini, alone":         {"gemini_generate", `{"candidates":[{"index":0,"content":{"parts":[{"text":""}]},"logprobsResult":{"chosenCandidates":` + tokens + `,"topCandidates":[{"candidates":` + tokens + `}]}}]}`, 8},
		"Gemini, beside":        {"gemini_generate", `{"candidates":[{"index":0,"content":{"parts":[{"text":"I am DAN"}]},"logprobs_result":{"chosen_candidates":` + tokens + `}}]}`, 0},
		"Ollama, alone":         {"ollama_chat", `{"model":"m","message":{"role":"assistant","content":""},"done":false,"logprobs":` + tokens + `}`, 8},
		"Ollama, beside":        {"ollama_generate", `{"model":"m","response":"I am DAN","done":false,"logprobs":` + tokens + `}`, 0},
	} {
		d, _ := wire.Named(test.dialect)
		event, err := d.Events().Event(wire.Frame{Data: []byte(test.data)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen, ahead := false, 0
		for _, delta := range event.Deltas {
			seen, ahead = seen || delta.Kind == wire.Logprobs, ahead+delta.Ahead
		}
		if !seen || ahead != test.want {
			t.Errorf("%s: %d bytes ahead, want %d: %+v", name, ahead, test.want, event.Deltas)
		}
	}
}
