package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// isClientCall reports whether a block is a call that the client runs. Calls of other
// types were run by the provider.
func isClientCall(block gjson.Result) bool { return block.Get("type").Str == "tool_use" }

// clientCalls returns the blocks of content that are calls for the client, by position.
func clientCalls(content gjson.Result) (positions []int, blocks []gjson.Result) {
	position := 0
	content.ForEach(func(_, block gjson.Result) bool {
		if isClientCall(block) {
			positions, blocks = append(positions, position), append(blocks, block)
		}
		position++
		return true
	})
	return positions, blocks
}

// anthropicWholeCall is the call of a block that came whole. Its key is its position.
func anthropicWholeCall(position int, block gjson.Result) ToolCall {
	return ToolCall{
		Key: strconv.Itoa(position), ID: block.Get("id").Str, Name: block.Get("name").Str, Arguments: block.Get("input").Raw,
	}
}

// anthropicProviderTools are the beginnings of the types of tools that the provider runs.
var anthropicProviderTools = []string{"advisor_", "code_execution_", "mcp_toolset", "tool_search_", "web_fetch_", "web_search_"}

// anthropicTools are the tools that a call offers to the model and that the client runs. A
// message may add some to those of the call.
func anthropicTools(body []byte, root gjson.Result) (tools []ToolDefinition) {
	add := func(_, tool gjson.Result) bool {
		if d, ok := anthropicDefinition(tool); ok {
			tools = append(tools, d)
		}
		return true
	}
	root.Get("tools").ForEach(add)
	if !bytes.Contains(body, []byte("tool_addition")) {
		return tools
	}
	root.Get("messages").ForEach(func(_, message gjson.Result) bool {
		message.Get("content").ForEach(func(_, block gjson.Result) bool {
			if block.Get("type").Str == "tool_addition" {
				add(gjson.Result{}, block.Get("tool.definition"))
			}
			return true
		})
		return true
	})
	return tools
}

func anthropicDefinition(tool gjson.Result) (d ToolDefinition, ok bool) {
	kind := tool.Get("type").Str
	if slices.ContainsFunc(anthropicProviderTools, func(p string) bool { return strings.HasPrefix(kind, p) }) {
		return d, false
	}
	d = ToolDefinition{Name: tool.Get("name").Str, Description: tool.Get("description").Str}
	if schema := tool.Get("input_schema"); schema.Type != gjson.Null {
		d.Schema = []byte(schema.Raw)
	}
	return d, d.Name != ""
}

// anthropicCalls follows the calls of a stream. Clients count the blocks in two ways: the
// official SDKs append a block when it begins and look up by index what follows, others
// keep the blocks by their index. A stream in which the two differ is unclear from there
// on.
type anthropicCalls struct {
	anthropicProgress
	calls  []streamedBlock
	before anthropicProgress // before the frame with the first call
}

type anthropicProgress struct {
	begun   bool // message_start came
	blocks  int  // that have begun
	unclear bool
}

// rest is as before the first call.
func (s *anthropicCalls) rest() anthropicCalls {
	if len(s.calls) == 0 {
		return *s
	}
	return anthropicCalls{anthropicProgress: s.before}
}

// A streamedBlock is a block of a stream that is a call.
type streamedBlock struct {
	position int
	fed      bool // some of its input came
	ended    bool
}

// read takes the next frame, of a type, and returns what it brings of calls.
func (s *anthropicCalls) read(f Frame, kind string, root gjson.Result) []CallDelta {
	if len(s.calls) == 0 {
		s.before = s.anthropicProgress
	}
	if kind != f.Event {
		s.unclear = true // the official SDKs skip a frame for its event field
	}
	switch kind {
	case "message_start":
		return s.start(root.Get("message.content"))
	case "content_block_start":
		return s.begin(root)
	case "content_block_delta", "content_block_stop":
		if len(s.calls) > 0 {
			return s.goOn(root)
		}
	}
	return nil
}

// start reads the blocks that stand in the beginning of a stream, which are whole.
func (s *anthropicCalls) start(content gjson.Result) (deltas []CallDelta) {
	s.unclear = s.unclear || s.begun || s.blocks > 0 // some clients begin anew
	s.begun = true
	positions, blocks := clientCalls(content)
	for i, position := range positions {
		delta := CallDelta{ToolCall: anthropicWholeCall(position, blocks[i]), Whole: true}
		delta.Unclear = s.unclear
		deltas = append(deltas, delta)
		s.calls = append(s.calls, streamedBlock{position: position, fed: true})
	}
	s.blocks += int(content.Get("#").Int())
	return deltas
}

// begin reads the beginning of a block. Its input is empty, and comes in pieces, or whole.
// SDKs differ on pieces behind an input that is not empty, and so does a [CallGatherer].
func (s *anthropicCalls) begin(root gjson.Result) []CallDelta {
	position := s.blocks
	s.blocks++
	if blockIndex(root) != position {
		s.unclear = true
	}
	block := root.Get("content_block")
	if !isClientCall(block) {
		return nil
	}
	delta := CallDelta{ToolCall: anthropicWholeCall(position, block)}
	delta.Unclear = s.unclear
	if isEmptyInput(block.Get("input")) {
		delta.Arguments = ""
	} else {
		delta.Whole = true
	}
	s.calls = append(s.calls, streamedBlock{position: position, fed: delta.Whole})
	return []CallDelta{delta}
}

func isEmptyInput(v gjson.Result) bool { return v.Type == gjson.Null || v.IsObject() && !isError(v) }

// goOn reads a piece or the end of a block. Nothing may follow an end, since some clients
// forget the block there and others do not.
func (s *anthropicCalls) goOn(root gjson.Result) []CallDelta {
	c := s.at(root)
	if c == nil {
		return nil
	}
	delta := CallDelta{ToolCall: ToolCall{Key: strconv.Itoa(c.position), Unclear: s.unclear}}
	if root.Get("type").Str == "content_block_stop" {
		if c.ended = true; c.fed {
			return nil
		}
		c.fed = true
		delta.Arguments, delta.Whole = "{}", true
		return []CallDelta{delta}
	}
	if root.Get("delta.type").Str == "input_json_delta" {
		delta.Arguments = root.Get("delta.partial_json").Str
	}
	delta.Unclear = delta.Unclear || c.ended
	c.fed = c.fed || delta.Arguments != ""
	return []CallDelta{delta}
}

// at returns the call that a frame is about; nil if it is about another block. A frame
// without a proper index is for some clients about the first block, for some about the
// last, and for some about none.
func (s *anthropicCalls) at(root gjson.Result) *streamedBlock {
	index := blockIndex(root)
	if index < 0 {
		s.unclear = true
		return &s.calls[len(s.calls)-1]
	}
	for i := len(s.calls) - 1; i >= 0 && s.calls[i].position >= index; i-- {
		if c := &s.calls[i]; c.position == index {
			return c
		}
	}
	return nil
}

// blockIndex is the number of the block that a frame is about; -1 if it is none. The
// JavaScript SDK counts a negative one from the end.
func blockIndex(root gjson.Result) int {
	index, err := strconv.Atoi(root.Get("index").Raw)
	if err != nil || index < 0 {
		return -1
	}
	return index
}

// A claudeEdit takes calls out of an answer. A text stands in the place of each, so that
// all other blocks stay where they are: those with reasoning are signed. Where clients
// parse the texts, the block goes, and the note stands in the details of the end.
type claudeEdit struct {
	blocked map[string]BlockedCall
	dropped []int // positions of blocks that went
	left    bool  // some call is left
}

// WithoutCalls implements [CallEditor].
func (d anthropic) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
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
	e := claudeEdit{blocked: notes, left: len(before.Calls) > len(notes)}
	var c changes
	root := gjson.ParseBytes(body)
	e.editContent(&c, root.Get("content"))
	e.editEnd(&c, root)
	return c.apply(body), nil
}

// editContent edits the blocks of an answer, or those in the beginning of a stream.
func (e *claudeEdit) editContent(c *changes, content gjson.Result) {
	positions, blocks := clientCalls(content)
	for i, position := range positions {
		b, ok := e.blocked[strconv.Itoa(position)]
		switch {
		case !ok:
		case b.Place == OnlyRefusal:
			e.dropped = append(e.dropped, position)
		default:
			c.replace(blocks[i], string(encode(anthropicTextBody{Type: "text", Text: b.Note})))
		}
	}
	c.drop(content, func(_ string, at int) bool { return slices.Contains(e.dropped, at) })
}

// editEnd edits what says why an answer ended.
func (e *claudeEdit) editEnd(c *changes, end gjson.Result) {
	reason := end.Get("stop_reason")
	if reason.Type == gjson.Null {
		return
	}
	notes := e.notesOfTheEnd()
	if reason.Str == "tool_use" && !e.left {
		word := "end_turn"
		if notes != "" {
			word = "refusal"
		}
		c.replace(reason, string(encode(word)))
	}
	if notes == "" {
		return
	}
	details := string(encode(anthropicDetails{Type: "refusal", Explanation: notes}))
	if v := end.Get("stop_details"); v.Exists() {
		c.replace(v, details)
	} else {
		c.add(end, "stop_details", details, 1)
	}
}

// notesOfTheEnd are the notes that do not stand in the content, one a line.
func (e *claudeEdit) notesOfTheEnd() string {
	var notes []string
	for _, key := range slices.SortedFunc(maps.Keys(e.blocked), func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) }) {
		if b := e.blocked[key]; b.Place == OnlyRefusal {
			notes = append(notes, b.Note)
		}
	}
	return strings.Join(notes, "\n")
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
	notes, err := byKey(calls, blocked)
	if err != nil {
		return nil, err
	}
	e := claudeEdit{blocked: notes, left: len(calls) > len(notes) || s.called}
	var out []byte
	for _, f := range frames {
		out = e.appendFrame(out, f)
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

// appendFrame appends what stands in the place of a frame.
func (e *claudeEdit) appendFrame(out []byte, f Frame) []byte {
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

// numberOf is the number of a block without those that went before it: SDKs count.
func (e *claudeEdit) numberOf(position int) int {
	number := position
	for _, dropped := range e.dropped {
		if dropped < position {
			number--
		}
	}
	return number
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
