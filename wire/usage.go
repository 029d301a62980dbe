package wire

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// Usage is how many tokens an answer says that it took. 0 stands for a number that the
// answer does not tell.
type Usage struct {
	// Input is the number of tokens of the request, those included that came from a cache.
	Input int64
	// Output is the number of tokens that were generated, those included that only the
	// model reads.
	Output int64
}

// maxTokens is more than any answer takes. A larger number is not believed.
const maxTokens = 1 << 32

// usagePaths are where the APIs tell the numbers, in a whole answer or in a frame of a
// stream. Those of one list are added up.
var usagePaths = [...]struct{ input, output []string }{
	{[]string{"usage.prompt_tokens"}, []string{"usage.completion_tokens"}},                                                                  // OpenAI, chat and completions
	{[]string{"usage.input_tokens", "usage.cache_creation_input_tokens", "usage.cache_read_input_tokens"}, []string{"usage.output_tokens"}}, // Anthropic, and OpenAI's responses
	{[]string{"message.usage.input_tokens", "message.usage.cache_creation_input_tokens", "message.usage.cache_read_input_tokens"}, []string{"message.usage.output_tokens"}},
	{[]string{"response.usage.input_tokens"}, []string{"response.usage.output_tokens"}},
	{[]string{"usageMetadata.promptTokenCount"}, []string{"usageMetadata.candidatesTokenCount", "usageMetadata.thoughtsTokenCount"}}, // Gemini
	{[]string{"prompt_eval_count"}, []string{"eval_count"}},                                                                          // Ollama
}

// Read takes the numbers from a whole answer or from a frame of a stream, whose APIs count
// from the beginning of the stream: a later number replaces an earlier one.
func (u *Usage) Read(data []byte) {
	if !bytes.Contains(data, []byte(`"usage`)) && !bytes.Contains(data, []byte(`eval_count"`)) {
		return // as almost all frames
	}
	for _, p := range usagePaths {
		setTokens(&u.Input, data, p.input)
		setTokens(&u.Output, data, p.output)
	}
}

func setTokens(count *int64, data []byte, paths []string) {
	sum := int64(0)
	for _, path := range paths {
		if n := gjson.GetBytes(data, path); n.Type == gjson.Number && n.Num >= 1 && n.Num <= maxTokens {
			sum += int64(n.Num)
		}
	}
	if sum > 0 && sum <= maxTokens {
		*count = sum
	}
}
