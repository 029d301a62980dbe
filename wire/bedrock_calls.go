package wire

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// converseTools are the tools that a call offers to the model and that the client runs.
func converseTools(root gjson.Result) (tools []ToolDefinition) {
	elements(root.Get("toolConfig.tools"), func(_ int, tool gjson.Result) {
		spec := tool.Get("toolSpec")
		if d := toolDefinition(spec, spec.Get("inputSchema.json")); d.Name != "" {
			tools = append(tools, d)
		}
	})
	return tools
}

// converseWholeCall is the call of a block that came whole. Its key is its position. Of a block
// with several members each SDK shows another.
func converseWholeCall(position int, block gjson.Result) ToolCall {
	call := block.Get("toolUse")
	return ToolCall{
		Key: strconv.Itoa(position), ID: call.Get("toolUseId").Str, Name: call.Get("name").Str, Arguments: call.Get("input").Raw,
		Unclear: noText(call.Get("name")) || saysElsewhere(call, "name", "input") || saysElsewhere(block, "toolUse") || hasMore(block, "toolUse"),
	}
}

// converseCalls follows the calls of a stream. There are two kinds of clients: those that keep
// blocks by their index, and those that take what comes for the block that began last and has
// not ended. A stream in which the two differ is unclear from there on.
type converseCalls struct {
	begun   []converseCall // in their order
	unclear bool
}

// A converseCall is a block of a stream that is a call.
type converseCall struct {
	index int
	fed   bool // some of its input came
	ended bool
}

// rest is as before the first call.
func (s *converseCalls) rest() converseCalls {
	if len(s.begun) == 0 {
		return *s
	}
	return converseCalls{}
}

// read takes the next event and returns what it brings of calls.
func (s *converseCalls) read(name string, event gjson.Result) []CallDelta {
	index, ok := blockNumber(event)
	call, input := event.Get("start.toolUse"), event.Get("delta.toolUse")
	last := s.last()
	switch {
	case name == "contentBlockStart":
		s.unclear = s.unclear || len(s.begun) > 0 && (!ok || !last.ended || index <= last.index)
		if call.Type != gjson.Null {
			return s.begin(index, ok, event.Get("start"))
		}
	case name == "contentBlockDelta" && input.Type != gjson.Null:
		if last == nil {
			return []CallDelta{{ToolCall: ToolCall{Key: strconv.Itoa(index), Unclear: true}}}
		}
		s.unclear = s.unclear || !ok || index != last.index || last.ended || hasMore(event.Get("delta"), "toolUse") || noText(input.Get("input"))
		last.fed = last.fed || input.Get("input").Str != ""
		return []CallDelta{{ToolCall: ToolCall{Key: strconv.Itoa(last.index), Arguments: input.Get("input").Str, Unclear: s.unclear}}}
	case name == "contentBlockStop" && last != nil && !last.ended:
		if !ok || index != last.index {
			s.unclear = true
			return []CallDelta{{ToolCall: ToolCall{Key: strconv.Itoa(last.index), Unclear: true}}}
		}
		if last.ended = true; !last.fed {
			return []CallDelta{{ToolCall: ToolCall{Key: strconv.Itoa(last.index), Arguments: "{}"}, Whole: true}}
		}
	}
	return nil
}

// last returns the call that began last; nil if none has.
func (s *converseCalls) last() *converseCall {
	if len(s.begun) == 0 {
		return nil
	}
	return &s.begun[len(s.begun)-1]
}

// begin reads the beginning of a call.
func (s *converseCalls) begin(index int, ok bool, start gjson.Result) []CallDelta {
	call := start.Get("toolUse")
	s.unclear = s.unclear || !ok
	s.begun = append(s.begun, converseCall{index: index})
	return []CallDelta{{ToolCall: ToolCall{
		Key: strconv.Itoa(index), ID: call.Get("toolUseId").Str, Name: call.Get("name").Str,
		Unclear: s.unclear || noText(call.Get("name")) || saysElsewhere(call, "name") || hasMore(start, "toolUse"),
	}}}
}

// blockNumber is the number of the block that an event is about.
func blockNumber(event gjson.Result) (index int, ok bool) {
	index, err := strconv.Atoi(event.Get("contentBlockIndex").Raw)
	return max(index, 0), err == nil && index >= 0
}
