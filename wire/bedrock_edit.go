package wire

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// A converseEdit takes calls out of an answer. A note that has no block stands with the fields
// that only one model has.
type converseEdit struct{ blockEdit }

// WithoutCalls implements [CallEditor].
func (d converse) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return body, nil
	}
	before, err := d.Response(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCalls, err)
	}
	notes, err := byKey(before.Calls, blocked)
	if err != nil {
		return nil, err
	}
	e := converseEdit{blockEdit{blocked: notes, left: len(before.Calls) > len(notes)}}
	var c changes
	root := gjson.ParseBytes(body)
	content := root.Get("output.message.content")
	elements(content, func(at int, block gjson.Result) {
		switch b, ok := e.blocked[strconv.Itoa(at)]; {
		case !ok:
		case b.Place == OnlyRefusal:
			e.dropped = append(e.dropped, at)
		default:
			c.replace(block, string(encode(converseText{b.Note})))
		}
	})
	c.drop(content, func(_ string, at int) bool { return slices.Contains(e.dropped, at) })
	e.editEnd(&c, root)
	return c.apply(body), nil
}

// editEnd edits what says why an answer ended.
func (e *converseEdit) editEnd(c *changes, end gjson.Result) {
	notes := e.notesOfTheEnd()
	if reason := end.Get("stopReason"); reason.Str == "tool_use" && !e.left {
		word := "end_turn"
		if notes != "" {
			word = converseDeclined
		}
		c.replace(reason, string(encode(word)))
	}
	if notes == "" {
		return
	}
	fields := string(encode(converseFields{notes}))
	if v := end.Get("additionalModelResponseFields"); v.Exists() {
		c.replace(v, fields)
	} else {
		c.add(end, "additionalModelResponseFields", fields, 1)
	}
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
	calls := all.Calls()
	notes, err := byKey(calls, blocked)
	if err != nil {
		return nil, err
	}
	e := converseEdit{blockEdit{blocked: notes, left: len(calls) > len(notes)}}
	var out []byte
	for _, f := range frames {
		out = e.appendFrame(out, f)
	}
	return out, nil
}

// appendFrame appends what stands in the place of a frame.
func (e *converseEdit) appendFrame(out []byte, f Frame) []byte {
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
