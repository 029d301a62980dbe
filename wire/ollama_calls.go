package wire

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"
)

// How Ollama's answers call tools, and how blocked calls are taken out of them. Every
// element of tool_calls is one call and whole, in a stream too: clients put the lists of
// all lines one behind the other. Its index, on newer servers, nobody reads.

// An ollamaSpeech is where an answer or a line says something.
type ollamaSpeech struct{ message, text string }

var (
	ollamaChatSpeech     = ollamaSpeech{"message", "content"}
	ollamaGenerateSpeech = ollamaSpeech{"", "response"} // in the answer itself
)

// of returns the object with the text and the calls.
func (s ollamaSpeech) of(answer gjson.Result) gjson.Result {
	if s.message == "" {
		return answer
	}
	return answer.Get(s.message)
}

// calls reads the calls of an answer or of a line, behind so many others.
func (s ollamaSpeech) calls(answer gjson.Result, before int) (calls []ToolCall) {
	elements(s.of(answer).Get("tool_calls"), func(at int, v gjson.Result) {
		calls = append(calls, ollamaCallOf(v, before+at))
	})
	return calls
}

// ollamaCallOf reads a call. Arguments are an object; of some servers they are its JSON,
// which clients refuse or parse.
func ollamaCallOf(v gjson.Result, nth int) ToolCall {
	name, arguments := v.Get("function.name"), v.Get("function.arguments")
	return ToolCall{
		Key: strconv.Itoa(nth), ID: v.Get("id").String(), Name: name.String(), Arguments: arguments.String(),
		Unclear: noText(name) || saysElsewhere(v, "function") || saysElsewhere(v.Get("function"), "name", "arguments") ||
			arguments.Type != gjson.String && arguments.Type != gjson.Null && !arguments.IsObject(),
		More: hasMore(v, "id", "type", "function"),
	}
}

// ollamaTools reads the definitions of the tools that the model may call.
func ollamaTools(tools gjson.Result) (out []ToolDefinition) {
	elements(tools, func(_ int, tool gjson.Result) {
		if f := tool.Get("function"); f.IsObject() {
			out = append(out, toolDefinition(f, f.Get("parameters")))
		}
	})
	return out
}

// An ollamaEdit takes calls out of an answer.
type ollamaEdit struct {
	speech  ollamaSpeech
	blocked map[string]bool
	note    string
	next    int // the number of the next call
}

func newOllamaEdit(speech ollamaSpeech, blocked []BlockedCall) *ollamaEdit {
	e := &ollamaEdit{speech: speech, blocked: make(map[string]bool)}
	for _, b := range blocked {
		e.blocked[b.Key], e.note = true, joinNotes(e.note, b.Note)
	}
	return e
}

// drop takes the blocked calls out of an answer or a line. It returns what says
// something there, and how many members are left of it.
func (e *ollamaEdit) drop(c *changes, answer gjson.Result) (said gjson.Result, left int) {
	said = e.speech.of(answer)
	calls, first := said.Get("tool_calls"), e.next
	elements(calls, func(int, gjson.Result) { e.next++ })
	emptied := c.thin(calls, func(at int) bool { return e.blocked[strconv.Itoa(first+at)] })
	return said, c.drop(said, func(name string, _ int) bool { return name == "tool_calls" && emptied })
}

// WithoutCalls implements [CallEditor].
func (ollamaChat) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	return ollamaWithoutCalls(body, ollamaChatSpeech, blocked)
}

// WithoutCalls implements [CallEditor].
func (ollamaGenerate) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	return ollamaWithoutCalls(body, ollamaGenerateSpeech, blocked)
}

func ollamaWithoutCalls(body []byte, speech ollamaSpeech, blocked []BlockedCall) ([]byte, error) {
	root, err := parse(body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCalls, err)
	case len(blocked) == 0:
		return bytes.Clone(body), nil
	}
	var c changes
	edit := newOllamaEdit(speech, blocked)
	said, left := edit.drop(&c, root)
	if err := edit.allFound(); err != nil {
		return nil, err
	}
	if err := c.say(said, speech.text, edit.note, "", left); err != nil {
		return nil, err
	}
	c.dropLogprobs(root)
	return c.apply(body), nil
}

// allFound is an error if a blocked call was not there.
func (e *ollamaEdit) allFound() error {
	for key := range e.blocked {
		if n, err := strconv.Atoi(key); err != nil || n < 0 || n >= e.next {
			return cannotEdit("a blocked call is not there")
		}
	}
	return nil
}

// dropLogprobs takes the log probabilities out, which repeat the answer token by token.
func (c *changes) dropLogprobs(root gjson.Result) {
	if v := root.Get("logprobs"); v.Type != gjson.Null {
		c.replace(v, "null")
	}
}

// WithoutCalls implements [StreamCallEditor]. The note stands on a line of its own before
// the last one, behind which some clients read nothing; what that one says stays before
// it.
func (s *ollamaStream) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	edit, noted, spoken := newOllamaEdit(s.speech, blocked), len(blocked) == 0, s.spoken
	var out []byte
	note := func() {
		if noted = true; !bytes.HasSuffix(out, []byte("\n")) && len(out) > 0 {
			out = append(out, '\n')
		}
		out = append(append(out, s.noteLine(frames, lead(spoken)+edit.note)...), '\n')
	}
	for _, f := range frames {
		if f.Comment || len(blocked) == 0 {
			out = append(out, f.Raw...)
			continue
		}
		root, err := parse(f.Data)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCalls, err)
		}
		var c changes
		said, left := edit.drop(&c, root)
		text := said.Get(s.speech.text).Str
		if !noted && (ollamaEnds(root) || isError(root.Get("error"))) {
			if text == "" {
				note()
			} else if err := c.say(said, s.speech.text, edit.note, "", left); err != nil {
				return nil, err
			}
			noted = true
		}
		spoken = spoken || text != ""
		c.dropLogprobs(root)
		out = append(out, f.withData(c.apply(f.Data))...)
	}
	if !noted {
		note()
	}
	return out, edit.allFound()
}

// noteLine is a line that says a note and does not end the answer.
func (s *ollamaStream) noteLine(frames []Frame, text string) []byte {
	line := s.say(text)
	line.Model, line.CreatedAt = s.model, s.created
	for i := 0; i < len(frames) && line.Model == ""; i++ {
		head := gjson.GetManyBytes(frames[i].Data, "model", "created_at")
		line.Model, line.CreatedAt = head[0].Str, head[1].Str
	}
	return encode(line)
}
