package wire

import (
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"
)

// anthropicForm is how notes stand in an answer.
var anthropicForm = blockForm{
	text:   func(note string) any { return anthropicTextBody{Type: "text", Text: note} },
	reason: "stop_reason", declined: "refusal",
	details: "stop_details",
	notes:   func(notes string) any { return anthropicDetails{Type: "refusal", Explanation: notes} },
}

// WithoutCalls implements [CallEditor].
func (d anthropic) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	return anthropicForm.withoutCalls(d, "content", body, blocked)
}

// WithoutCalls implements [StreamCallEditor].
func (s *anthropicStream) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return appendRaw(nil, frames), nil
	}
	calls, err := s.gather(frames)
	if err != nil {
		return nil, err
	}
	e, err := newBlockEdit(anthropicForm, calls, blocked)
	if err != nil {
		return nil, err
	}
	e.left = e.left || s.called
	var out []byte
	for _, f := range frames {
		out = e.appendAnthropic(out, f)
	}
	return out, nil
}

// gather puts the calls of frames together. In those of an answer that is clear, the index
// of a block is its position.
func (s *anthropicStream) gather(frames []Frame) ([]ToolCall, error) {
	calls := anthropicCalls{anthropicProgress: anthropicProgress{begun: s.begun, blocks: s.blocks}}
	var all CallGatherer
	for _, f := range frames {
		if f.Comment || len(f.Data) == 0 {
			continue
		}
		root, err := parse(f.Data)
		var w walk
		if err == nil {
			anthropicEvent(&w, root)
			err = w.err
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCalls, err)
		}
		if err := all.Add(calls.read(f, root.Get("type").Str, root)); err != nil {
			return nil, err
		}
	}
	if calls.unclear {
		return nil, cannotEdit("clients count its blocks in different ways")
	}
	return all.Calls(), nil
}

// appendAnthropic appends what stands in the place of a frame.
func (e *blockEdit) appendAnthropic(out []byte, f Frame) []byte {
	root := gjson.ParseBytes(f.Data)
	kind := root.Get("type").Str
	var c changes
	switch kind {
	case "message_start":
		e.editContent(&c, root.Get("message.content"))
	case "message_delta":
		e.editEnd(&c, root.Get("delta"))
	case "content_block_start", "content_block_delta", "content_block_stop":
		position := blockIndex(root)
		b, blocked := e.blocked[strconv.Itoa(position)]
		begins := kind == "content_block_start"
		switch {
		case blocked && b.Place == OnlyRefusal:
			if begins {
				e.dropped = append(e.dropped, position)
			}
			return out
		case blocked && begins:
			return appendAnthropicNote(out, e.numberOf(position), b.Note)
		case blocked && kind == "content_block_delta":
			return out
		}
		c.renumber(root.Get("index"), e.numberOf(position))
	}
	if len(c) == 0 {
		return append(out, f.Raw...)
	}
	return append(out, f.withData(c.apply(f.Data))...)
}

// appendAnthropicNote appends the beginning of a block of text with a note. The end of the
// block is the call's.
func appendAnthropicNote(out []byte, index int, note string) []byte {
	out = anthropicFrame{Type: "content_block_start", Index: &index, ContentBlock: &anthropicTextBody{Type: "text"}}.append(out)
	return anthropicFrame{Type: "content_block_delta", Index: &index, Delta: anthropicTextDelta{"text_delta", note}}.append(out)
}

// Interface guards
var (
	_ CallEditor       = anthropic{}
	_ StreamCallEditor = (*anthropicStream)(nil)
)
