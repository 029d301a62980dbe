package wire

import (
	"bytes"
	"strings"
)

// geminiChunk is a whole answer or one chunk of a stream.
type geminiChunk struct {
	Candidates []geminiCandidate `json:"candidates,omitzero"`
	Feedback   *geminiFeedback   `json:"promptFeedback,omitzero"`
	Usage      struct {
		Prompt int `json:"promptTokenCount"`
		Total  int `json:"totalTokenCount"`
	} `json:"usageMetadata"`
	Model string `json:"modelVersion"`
	ID    string `json:"responseId"`
}

type geminiCandidate struct {
	Content *geminiSays `json:"content,omitzero"`
	Reason  string      `json:"finishReason"`
	Message string      `json:"finishMessage,omitzero"`
	Index   int         `json:"index"`
}

type geminiSays struct {
	Parts []geminiText `json:"parts"`
	Role  string       `json:"role"`
}

type geminiText struct {
	Text string `json:"text"`
}

type geminiFeedback struct {
	Reason  string `json:"blockReason"`
	Message string `json:"blockReasonMessage"`
}

// Framing returns the framing of the streams at this address.
func (d gemini) Framing() Framing {
	if d.array {
		return Array
	}
	return EventStream
}

// Refusal is an answer whose finish reason is SAFETY. Where its text would be in the
// way it is a blocked prompt, which has no candidates.
func (gemini) Refusal(r Refusal) []byte { return encode(geminiRefusal(r, false)) }

// geminiRefusal is a refusal as a whole answer, or as the last chunk of one that has
// begun. A prompt whose answer has begun is not blocked any more.
func geminiRefusal(r Refusal, begun bool) geminiChunk {
	out := geminiChunk{Model: r.Model, ID: r.ID}
	if r.Place == OnlyRefusal && !begun {
		out.Feedback = &geminiFeedback{"PROHIBITED_CONTENT", r.Text}
		return out
	}
	for i := range refusalChoices(r) {
		candidate := geminiCandidate{Reason: "SAFETY", Index: i}
		switch r.Place {
		case OnlyRefusal:
			candidate.Message = r.Text
		case OnlyContent:
			candidate.Reason = "STOP"
			fallthrough
		default:
			candidate.Content = &geminiSays{[]geminiText{{r.Text}}, "model"}
		}
		out.Candidates = append(out.Candidates, candidate)
	}
	return out
}

// Error is the body of an HTTP error (https://google.aip.dev/193).
func (gemini) Error(e Error) []byte {
	type info struct {
		Type   string `json:"@type"`
		Reason string `json:"reason"`
		Domain string `json:"domain"`
	}
	type body struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []info `json:"details,omitzero"`
	}
	out := body{Code: e.Status, Message: e.Message, Status: geminiStatus(e.Status)}
	if e.Code != "" {
		out.Details = []info{{"type.googleapis.com/google.rpc.ErrorInfo", strings.ToUpper(e.Code), "lex"}}
	}
	return encode(map[string]body{"error": out})
}

// geminiStatus is the word for a status (google/rpc/code.proto).
func geminiStatus(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 403, 451:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 409:
		return "ABORTED"
	case 402, 429:
		return "RESOURCE_EXHAUSTED"
	case 499:
		return "CANCELLED"
	case 501:
		return "UNIMPLEMENTED"
	case 502, 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// Stream returns a writer for the end of a stream.
func (d gemini) Stream() StreamWriter {
	if d.array {
		return &geminiArray{dialect: d}
	}
	return &geminiStream{dialect: d, end: "\n\n"}
}

// A geminiStream ends an event stream.
type geminiStream struct {
	dialect gemini
	begun   bool
	// end ends a frame as upstream's do. The Go SDK looks for a blank line in LF before
	// it looks for one in CR LF, and so takes several frames for one where both occur.
	end string
}

// Sent implements [StreamWriter].
func (s *geminiStream) Sent(f Frame) {
	s.begun = true
	if bytes.HasSuffix(f.Raw, []byte("\r\n\r\n")) {
		s.end = "\r\n\r\n"
	}
}

// Refusal implements [Ender].
func (s *geminiStream) Refusal(r Refusal) []byte { return s.frame(encode(geminiRefusal(r, s.begun))) }

// Error implements [Ender]. A stream without a finish reason is no clean end.
func (s *geminiStream) Error(e Error) []byte { return s.frame(s.dialect.Error(e)) }

func (s *geminiStream) frame(data []byte) []byte {
	return append(append([]byte("data: "), data...), s.end...)
}

// KeepAlive implements [Filler]. No frame is skipped by all clients: the Go SDK fails on
// a blank line, the Python SDK on a comment.
func (*geminiStream) KeepAlive() []byte { return nil }

// Note implements [Filler]. The Python SDK reads comments as JSON, and fails.
func (*geminiStream) Note(string) []byte { return nil }

// A geminiArray ends a stream that is a JSON array.
type geminiArray struct {
	dialect gemini
	last    byte // the last one sent that is not white space; 0 before the array
}

// Sent implements [StreamWriter].
func (s *geminiArray) Sent(f Frame) {
	if sent := bytes.TrimRight(f.Raw, " \t\r\n"); len(sent) > 0 {
		s.last = sent[len(sent)-1]
	}
}

// Refusal implements [Ender].
func (s *geminiArray) Refusal(r Refusal) []byte {
	return s.element(encode(geminiRefusal(r, s.last != 0)))
}

// Error implements [Ender]. An element that is an error is how the API itself breaks
// off.
func (s *geminiArray) Error(e Error) []byte { return s.element(s.dialect.Error(e)) }

// element is the last element of the array with what has to stand around it.
func (s *geminiArray) element(data []byte) []byte {
	before := ",\r\n"
	switch s.last {
	case ']':
		return nil // the array is complete
	case 0:
		before = "["
	case '[', ',':
		before = ""
	}
	return append(append([]byte(before), data...), "]"...)
}

// KeepAlive implements [Filler].
func (*geminiArray) KeepAlive() []byte { return []byte("\n") }

// Note implements [Filler].
func (*geminiArray) Note(string) []byte { return nil }
