package wire

import (
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"
)

// converseForm is how notes stand in an answer.
var converseForm = blockForm{
	text:   func(note string) any { return converseText{note} },
	reason: "stopReason", declined: converseDeclined,
	details: "additionalModelResponseFields",
	notes:   func(notes string) any { return converseFields{notes} },
	filled:  true,
}

// WithoutCalls implements [CallEditor].
func (d converse) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	return converseForm.withoutCalls(d, "output.message.content", body, blocked)
}

// WithoutCalls implements [StreamCallEditor].
func (s *converseStream) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return appendRaw(nil, frames), nil
	}
	var all CallGatherer
	events := converseReader{}
	for _, f := range frames {
		event, err := events.Event(f)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCalls, err)
		}
		if err := all.Add(event.Calls); err != nil {
			return nil, err
		}
	}
	e, err := newBlockEdit(converseForm, all.Calls(), blocked)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, f := range frames {
		out = e.appendConverse(out, f)
	}
	return out, nil
}

// appendConverse appends what stands in the place of a frame.
func (e *blockEdit) appendConverse(out []byte, f Frame) []byte {
	root := gjson.ParseBytes(f.Data)
	var c changes
	switch f.Event {
	case "messageStop":
		e.editEnd(&c, root)
	case "contentBlockStart", "contentBlockDelta", "contentBlockStop":
		index, _ := blockNumber(root)
		b, blocked := e.blocked[strconv.Itoa(index)]
		begins := root.Get("start.toolUse").Type != gjson.Null
		switch {
		case blocked && b.Place == OnlyRefusal:
			if begins {
				e.dropped = append(e.dropped, index)
			}
			return out
		case blocked && begins:
			return appendAmazonEvent(out, "contentBlockDelta", converseDelta{converseText{b.Note}, e.numberOf(index)})
		case blocked && f.Event == "contentBlockDelta":
			return out
		}
		c.renumber(root.Get("contentBlockIndex"), e.numberOf(index))
	}
	if len(c) == 0 {
		return append(out, f.Raw...)
	}
	return append(out, f.withData(c.apply(f.Data))...)
}

// Interface guards
var (
	_ CallEditor       = converse{}
	_ StreamCallEditor = (*converseStream)(nil)
)
