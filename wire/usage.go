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

// usages are the objects in which the APIs tell the numbers, in a whole answer or in a frame
// of a stream, and the members of each. Those of one list are added up; of several lists the last one that
// is there counts, because some servers tell one number under two names.
var usages = [...]struct {
	object        string
	input, output [][]string
}{
	{"usage", inputTokens, outputTokens},          // OpenAI, Anthropic, and Bedrock
	{"message.usage", inputTokens, outputTokens},  // Anthropic, at the start of a stream
	{"response.usage", inputTokens, outputTokens}, // OpenAI's responses, streamed
	{"usageMetadata", [][]string{{"promptTokenCount"}}, [][]string{{"candidatesTokenCount", "thoughtsTokenCount"}}}, // Gemini
	{"@this", [][]string{{"prompt_eval_count"}}, [][]string{{"eval_count"}}},                                        // Ollama
}

var (
	inputTokens  = [][]string{{"prompt_tokens"}, {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}, {"inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"}}
	outputTokens = [][]string{{"completion_tokens"}, {"output_tokens"}, {"outputTokens"}}
)

// Read takes the numbers from a whole answer or from a frame of a stream, whose APIs count
// from the beginning of the stream: a later number replaces an earlier one.
func (u *Usage) Read(data []byte) {
	if !mentions(data, "usage", `"usage`) && !mentions(data, `val_count"`, `eval_count"`) {
		return // as almost all frames
	}
	for _, from := range usages {
		if object := gjson.GetBytes(data, from.object); object.IsObject() {
			setTokens(&u.Input, object, from.input)
			setTokens(&u.Output, object, from.output)
			return
		}
	}
}

// mentions reports whether data holds whole. It looks for rare first, a piece of whole that does
// not begin with a byte that stands everywhere in JSON, and so is found or missed sooner.
func mentions(data []byte, rare, whole string) bool {
	return bytes.Contains(data, []byte(rare)) && bytes.Contains(data, []byte(whole))
}

func setTokens(count *int64, object gjson.Result, lists [][]string) {
	for _, names := range lists {
		sum := int64(0)
		for _, name := range names {
			if n := object.Get(name); n.Type == gjson.Number && n.Num >= 1 && n.Num <= maxTokens {
				sum += int64(n.Num)
			}
		}
		if sum > 0 && sum <= maxTokens {
			*count = sum
		}
	}
}
