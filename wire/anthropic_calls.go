package wire

import (
	"bytes"
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
		Unclear: noText(block.Get("name")) || saysElsewhere(block, "name", "input"),
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
	d = toolDefinition(tool, tool.Get("input_schema"))
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
		if s.isEarly(root) {
			return []CallDelta{{ToolCall: ToolCall{Key: strconv.Itoa(s.blocks), Unclear: true}}}
		}
		if len(s.calls) > 0 {
			return s.goOn(root)
		}
	case f.Event:
	default: // who goes by the event field may find a call here
		_, blocks := clientCalls(root.Get("message.content"))
		if len(blocks) > 0 || isClientCall(root.Get("content_block")) || isInput(root) {
			return []CallDelta{{ToolCall: ToolCall{Key: strconv.Itoa(s.blocks), Unclear: true}}}
		}
	}
	return nil
}

// isInput reports whether a frame brings a piece of the input of a tool.
func isInput(root gjson.Result) bool { return root.Get("delta.type").Str == "input_json_delta" }

// isEarly reports whether a frame brings input for a block that has not begun. Clients that
// gather by index put it together with what comes later, others drop it or fail.
func (s *anthropicCalls) isEarly(root gjson.Result) bool {
	index := blockIndex(root)
	return isInput(root) && (index < 0 || index >= s.blocks)
}

// start reads the blocks that stand in the beginning of a stream, which are whole.
func (s *anthropicCalls) start(content gjson.Result) (deltas []CallDelta) {
	s.unclear = s.unclear || s.begun || s.blocks > 0 // some clients begin anew
	s.begun = true
	positions, blocks := clientCalls(content)
	for i, position := range positions {
		delta := CallDelta{ToolCall: anthropicWholeCall(position, blocks[i]), Whole: true}
		delta.Unclear = delta.Unclear || s.unclear
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
	delta.Unclear = delta.Unclear || s.unclear
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
	if isInput(root) {
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
