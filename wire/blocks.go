package wire

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// A blockEdit takes calls out of an answer in blocks. A text stands in the place of each, so
// that all other blocks stay where they are: those with reasoning are signed. Where clients
// parse the texts, the block goes, and the note stands in the end.
type blockEdit struct {
	form    blockForm
	blocked map[string]BlockedCall // by the number of the block
	dropped []int                  // numbers of blocks that went
	left    bool                   // some call is left
}

// A blockForm is how a dialect writes what an edit puts in.
type blockForm struct {
	text func(note string) any // a block of text

	// The end of an answer says why it ended, which is a word of the dialect if it is declined,
	// and has a member with room for the notes that have no block.
	reason, declined string
	details          string
	notes            func(notes string) any

	filled bool // no answer is without content
}

// newBlockEdit returns the edit that takes some calls out of those of an answer.
func newBlockEdit(form blockForm, calls []ToolCall, blocked []BlockedCall) (*blockEdit, error) {
	notes, err := byKey(calls, blocked)
	if err != nil {
		return nil, err
	}
	return &blockEdit{form: form, blocked: notes, left: len(calls) > len(notes)}, nil
}

// editContent edits blocks that came whole.
func (e *blockEdit) editContent(c *changes, content gjson.Result) {
	elements(content, func(at int, block gjson.Result) {
		switch b, ok := e.blocked[strconv.Itoa(at)]; {
		case !ok:
		case b.Place == OnlyRefusal:
			e.dropped = append(e.dropped, at)
		default:
			c.replace(block, string(encode(e.form.text(b.Note))))
		}
	})
	if blocks := content.Array(); e.form.filled && len(blocks) > 0 && len(e.dropped) == len(blocks) {
		c.replace(blocks[0], string(encode(e.form.text(e.notesOfTheEnd()))))
		e.dropped = e.dropped[1:]
	}
	c.drop(content, func(_ string, at int) bool { return slices.Contains(e.dropped, at) })
}

// editEnd edits what says why an answer ended.
func (e *blockEdit) editEnd(c *changes, end gjson.Result) {
	reason := end.Get(e.form.reason)
	if reason.Type == gjson.Null {
		return
	}
	notes := e.notesOfTheEnd()
	if reason.Str == "tool_use" && !e.left {
		word := "end_turn"
		if notes != "" {
			word = e.form.declined
		}
		c.replace(reason, string(encode(word)))
	}
	if notes == "" {
		return
	}
	details := string(encode(e.form.notes(notes)))
	if v := end.Get(e.form.details); v.Exists() {
		c.replace(v, details)
	} else {
		c.add(end, e.form.details, details, 1)
	}
}

// notesOfTheEnd are the notes that do not stand in the content, one a line.
func (e *blockEdit) notesOfTheEnd() string {
	var notes []string
	for _, key := range slices.SortedFunc(maps.Keys(e.blocked), func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) }) {
		if b := e.blocked[key]; b.Place == OnlyRefusal {
			notes = append(notes, b.Note)
		}
	}
	return strings.Join(notes, "\n")
}

// numberOf is the number of a block without those that went before it: SDKs count.
func (e *blockEdit) numberOf(position int) int {
	number := position
	for _, dropped := range e.dropped {
		if dropped < position {
			number--
		}
	}
	return number
}

// withoutCalls is [CallEditor.WithoutCalls] for an answer in blocks. The path is that of its
// content.
func (f blockForm) withoutCalls(d Reader, path string, body []byte, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return body, nil
	}
	before, err := d.Response(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCalls, err)
	}
	e, err := newBlockEdit(f, before.Calls, blocked)
	if err != nil {
		return nil, err
	}
	var c changes
	root := gjson.ParseBytes(body)
	e.editContent(&c, root.Get(path))
	e.editEnd(&c, root)
	return c.apply(body), nil
}
