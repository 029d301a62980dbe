package wire

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxSpelling is how often longer than its text a token may be: ▁a, token_id:123456, \xf0\x9f\x98.
const maxSpelling = 16

// countTokens notes in the log probabilities of a frame how many bytes of text their tokens
// tell that does not stand in the frame. Beside a text of their choice, or beside what is
// thought or called there, they repeat it.
func countTokens(parts []Part, data []byte) {
	var beside map[int]int // bytes of text by choice; with the choice 0 all
	for i := range parts {
		p := &parts[i]
		if p.Kind != Logprobs {
			continue
		}
		if beside == nil {
			beside = textsBeside(parts)
		}
		tokens := tokensIn("", gjson.ParseBytes(data[p.Start:p.Start+p.Bytes]), 0)
		if tokens > maxSpelling*beside[p.Message] {
			p.tokens = tokens
		}
	}
}

func textsBeside(parts []Part) map[int]int {
	beside := make(map[int]int)
	for _, p := range parts {
		beside[0] += len(p.Text)
		if p.Message > 0 {
			beside[p.Message] += len(p.Text)
		}
	}
	return beside
}

// maxTokensDepth is more than any API nests its tokens.
const maxTokensDepth = 8

// tokensIn returns how many bytes the tokens have that the model chose: those that are called
// token, or stand in a list tokens. Its alternatives are called top_logprobs or topCandidates.
func tokensIn(name string, v gjson.Result, depth int) (n int) {
	switch {
	case depth > maxTokensDepth || strings.HasPrefix(name, "top"):
	case v.Type == gjson.String && (name == "token" || name == "tokens") && !isMark(v.Str):
		n = len(v.Str)
	case v.IsArray(), v.IsObject():
		v.ForEach(func(key, member gjson.Result) bool {
			inner := name // of the elements of a list
			if v.IsObject() {
				inner = key.Str
			}
			n += tokensIn(inner, member, depth+1)
			return true
		})
	}
	return n
}

// maxMark is more than any mark has.
const maxMark = 32

// isMark reports whether a token stands for no text, such as <|channel|>, </s> or <think>.
func isMark(token string) bool {
	return len(token) <= maxMark && strings.HasPrefix(token, "<") && strings.HasSuffix(token, ">")
}
