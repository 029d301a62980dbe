package wire

import "github.com/tidwall/gjson"

// What Anthropic's dialect writes. The forms are what the official SDKs were seen to
// read without an exception.

// An anthropicMessageBody is a whole answer, or the beginning of a stream.
type anthropicMessageBody struct {
	ID           string              `json:"id"`
	Type         string              `json:"type"`
	Role         string              `json:"role"`
	Model        string              `json:"model"`
	Content      []anthropicTextBody `json:"content"`
	StopReason   *string             `json:"stop_reason"`
	StopSequence *string             `json:"stop_sequence"`
	StopDetails  *anthropicDetails   `json:"stop_details"`
	Container    *struct{}           `json:"container"`
	Diagnostics  *struct{}           `json:"diagnostics"`
	Usage        anthropicUsage      `json:"usage"`
}

type anthropicTextBody struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type anthropicDetails struct {
	Type        string  `json:"type"`
	Category    *string `json:"category"`
	Explanation string  `json:"explanation"`
}

type anthropicUsage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// Framing returns the framing of streams.
func (anthropic) Framing() Framing { return EventStream }

// Refusal is a completed answer that declines as the API itself does, or an ordinary
// one for [OnlyContent]. SDKs send a turn that ends in pause_turn again, and fall back
// to other models on a fallback_credit_token, so neither is ever written.
func (anthropic) Refusal(r Refusal) []byte {
	body := anthropicHead(r)
	if r.Place != OnlyRefusal {
		body.Content = append(body.Content, anthropicTextBody{Type: "text", Text: r.Text})
	}
	reason, details := anthropicStop(r)
	body.StopReason, body.StopDetails = &reason, details
	return encode(body)
}

func anthropicHead(r Refusal) anthropicMessageBody {
	return anthropicMessageBody{
		ID: "msg_" + r.ID, Type: "message", Role: "assistant", Model: r.Model, Content: []anthropicTextBody{},
	}
}

// anthropicStop is why an answer with a refusal ends.
func anthropicStop(r Refusal) (reason string, details *anthropicDetails) {
	if r.Place == OnlyContent {
		return "end_turn", nil
	}
	return "refusal", &anthropicDetails{Type: "refusal", Explanation: r.Text}
}

// Stream returns a writer for the end of a stream.
func (anthropic) Stream() StreamWriter { return new(anthropicStream) }

// An anthropicFrame is the data of one frame that we write.
type anthropicFrame struct {
	Type         string                `json:"type"`
	Message      *anthropicMessageBody `json:"message,omitzero"`
	Index        *int                  `json:"index,omitzero"`
	ContentBlock *anthropicTextBody    `json:"content_block,omitzero"`
	Delta        any                   `json:"delta,omitzero"`
	Usage        *anthropicTotal       `json:"usage,omitzero"`
}

type anthropicTextDelta struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type anthropicEndDelta struct {
	StopReason   string            `json:"stop_reason"`
	StopSequence *string           `json:"stop_sequence"`
	StopDetails  *anthropicDetails `json:"stop_details"`
}

type anthropicTotal struct {
	OutputTokens int `json:"output_tokens"`
}

// append appends the frame to a stream. The official SDKs drop a frame without an event
// field.
func (f anthropicFrame) append(dst []byte) []byte {
	return AppendEvent(append(dst, "event: "+f.Type+"\n"...), encode(f))
}

// An anthropicStream follows the blocks of a stream. SDKs append blocks in the order in
// which they begin and look deltas up by their index, so the index of the next block is
// the number of blocks so far.
type anthropicStream struct {
	begun   bool // message_start was sent
	blocks  int  // that have begun
	open    bool // the last block has not ended
	calls   bool // the last block is a call that the client runs
	called  bool // some block is
	ended   bool // message_delta was sent, so no block may follow
	stopped bool // message_stop was sent, so nothing may follow
}

// Sent implements [StreamWriter].
func (s *anthropicStream) Sent(f Frame) {
	switch gjson.GetBytes(f.Data, "type").Str {
	case "message_start":
		content := gjson.GetBytes(f.Data, "message.content")
		calls, _ := clientCalls(content)
		s.begun, s.blocks, s.called = true, int(content.Get("#").Int()), len(calls) > 0
	case "content_block_start":
		s.blocks++
		s.open, s.calls = true, isClientCall(gjson.GetBytes(f.Data, "content_block"))
		s.called = s.called || s.calls
	case "content_block_stop":
		s.open = false
	case "message_delta":
		s.ended = true
	case "message_stop":
		s.stopped = true
	}
}

// Refusal implements [Ender]. With runToolsEagerly the official SDK runs a call when
// another block begins behind it, and always when the answer ends in tool_use. So
// behind a call the refusal gets no block and stands in the details of the end alone.
func (s *anthropicStream) Refusal(r Refusal) []byte {
	if s.stopped {
		return nil
	}
	var out []byte
	next := s.blocks
	switch {
	case !s.begun:
		head := anthropicHead(r)
		out, next = anthropicFrame{Type: "message_start", Message: &head}.append(out), 0
	case s.open:
		last := s.blocks - 1
		out = anthropicFrame{Type: "content_block_stop", Index: &last}.append(out)
	}
	if r.Place != OnlyRefusal && !s.calls && !s.ended {
		out = anthropicFrame{Type: "content_block_start", Index: &next, ContentBlock: &anthropicTextBody{Type: "text"}}.append(out)
		out = anthropicFrame{Type: "content_block_delta", Index: &next, Delta: anthropicTextDelta{"text_delta", r.Text}}.append(out)
		out = anthropicFrame{Type: "content_block_stop", Index: &next}.append(out)
	}
	if s.called || s.ended {
		r.Place = Everywhere // the calls must not be run, and the text stands nowhere else
	}
	var end anthropicEndDelta
	end.StopReason, end.StopDetails = anthropicStop(r)
	out = anthropicFrame{Type: "message_delta", Delta: end, Usage: &anthropicTotal{}}.append(out)
	return anthropicFrame{Type: "message_stop"}.append(out)
}

// Error ends a stream that failed: SDKs raise it and do not retry.
func (s *anthropicStream) Error(e Error) []byte {
	return AppendEvent([]byte("event: error\n"), anthropicError(e))
}

// KeepAlive implements [Filler].
func (s *anthropicStream) KeepAlive() []byte { return anthropicFrame{Type: "ping"}.append(nil) }

// Note implements [Filler].
func (s *anthropicStream) Note(text string) []byte { return AppendComment(nil, text) }

// Error is the body of an HTTP error.
func (anthropic) Error(e Error) []byte { return anthropicError(e) }

func anthropicError(e Error) []byte {
	type details struct {
		ErrorCode string `json:"error_code"`
	}
	type body struct {
		Type    string   `json:"type"`
		Message string   `json:"message"`
		Details *details `json:"details,omitzero"`
	}
	b := body{Type: anthropicErrorType(e.Status), Message: e.Message}
	if e.Code != "" {
		b.Details = &details{e.Code}
	}
	return encode(struct {
		Type      string  `json:"type"`
		Error     body    `json:"error"`
		RequestID *string `json:"request_id"`
	}{Type: "error", Error: b})
}

// anthropicErrorType is the API's word for a status
// (https://platform.claude.com/docs/en/api/errors).
func anthropicErrorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 504:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
