package wire

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// chatTools reads the definitions of the tools that the model may call; functions is the
// form before tools.
func chatTools(root gjson.Result) (tools []ToolDefinition) {
	add := func(definition, schema gjson.Result) {
		if definition.IsObject() {
			tools = append(tools, toolDefinition(definition, schema))
		}
	}
	elements(root.Get("tools"), func(_ int, tool gjson.Result) {
		add(tool.Get("function"), tool.Get("function.parameters"))
		add(tool.Get("custom"), gjson.Result{}) // its input is any text
	})
	elements(root.Get("functions"), func(_ int, f gjson.Result) { add(f, f.Get("parameters")) })
	return tools
}

// legacyCall is the place of a function_call, which stands in no list.
const legacyCall = -1

// loneCall is the place of a call that stands in place of the list.
const loneCall = -2

// strayDelta begins the keys of calls in a delta of a whole answer.
const strayDelta = "delta/"

// standsAstray reports whether a call of a whole answer stands where the dialect has none.
func standsAstray(c ToolCall) bool {
	return strings.HasPrefix(c.Key, strayDelta) || strings.Contains(c.Key, "/"+strconv.Itoa(loneCall)+"/")
}

// mayHaveChatCalls reports whether a body may have a call: its name may be written with
// escapes. It costs little beside looking for the calls.
func mayHaveChatCalls(body []byte) bool {
	return bytes.Contains(body, []byte("_call")) || bytes.Contains(body, []byte(`\u`))
}

// chatCallsOf calls a function for each call, or piece of one, of a message or a delta.
func chatCallsOf(message gjson.Result, with func(at int, v gjson.Result)) {
	calls := message.Get("tool_calls")
	if calls.IsObject() || calls.Type == gjson.String { // lenient clients take it for a list of one
		with(loneCall, calls)
	}
	elements(calls, func(at int, v gjson.Result) {
		if v.Type == gjson.JSON || v.Type == gjson.String {
			with(at, v)
		}
	})
	if v := message.Get("function_call"); v.IsObject() {
		with(legacyCall, v)
	}
}

// chatCallOf reads a call, or a piece of one. Of a value of the wrong type each language
// makes another text, and of a function beside a custom tool some clients take the one
// and some the other.
func chatCallOf(at int, v gjson.Result) ToolCall {
	c := ToolCall{ID: v.Get("id").String()}
	function, custom := v.Get("function"), v.Get("custom")
	if at == legacyCall {
		c.ID, function, custom = "", v, gjson.Result{}
	}
	called, input := function, "arguments"
	if custom.Type != gjson.Null {
		called, input, c.Free, c.Unclear = custom, "input", true, function.Type != gjson.Null
	}
	name, arguments := called.Get("name"), called.Get(input)
	c.Name, c.Arguments = name.String(), arguments.String()
	own := []string{"function", "custom"}
	if at == legacyCall {
		own = []string{"name", "arguments"}
	}
	c.Unclear = c.Unclear || at == loneCall || noText(name) || saysElsewhere(v, own...) || saysElsewhere(called, "name", input) ||
		arguments.Type != gjson.String && arguments.Type != gjson.Null && !arguments.IsObject()
	c.More = at != legacyCall && hasMore(v, "id", "type", "function", "custom")
	return c
}

// chatResponseCalls reads the calls of a whole answer. Clients know its choices by their
// places.
func chatResponseCalls(choices gjson.Result) (calls []ToolCall) {
	elements(choices, func(place int, choice gjson.Result) {
		chatCallsOf(choice.Get("message"), func(at int, v gjson.Result) {
			c := chatCallOf(at, v)
			c.Key, c.Choice = chatKey(place, at, 0), min(place, MaxChoices-1)
			calls = append(calls, c)
		})
		// Hand-written clients read a stream and a whole answer by the same lines.
		chatCallsOf(choice.Get("delta"), func(at int, v gjson.Result) {
			c := chatCallOf(at, v)
			c.Key, c.Choice, c.Unclear = strayDelta+chatKey(place, at, 0), min(place, MaxChoices-1), true
			calls = append(calls, c)
		})
	})
	return calls
}

func chatKey(choice, index, nth int) string {
	return strconv.Itoa(choice) + "/" + strconv.Itoa(index) + "/" + strconv.Itoa(nth)
}

// chatCalls follows the calls of a stream, by choice. The zero value is ready.
type chatCalls map[int]*chatChoiceCalls

type chatChoiceCalls struct {
	last    map[int]*chatCall // the last call with an index
	highest int               // of the indexes, 0 if there is none
	chunks  int               // that brought pieces

	// What some clients stumble over, see place.
	gaps, doubled      bool // an index was left out; has several calls
	indexed, unindexed bool // pieces have come with an index; without
}

type chatCall struct {
	key         string
	nth         int // of those with its index, from 0
	id          string
	named, free bool
	told        bool // the name or arguments, and so free
	arguments   jsonEnd
}

// A chatPiece is a piece of a call and its place in its chunk.
type chatPiece struct {
	CallDelta
	place int // of its choice
	at    int // in tool_calls, or legacyCall
	value gjson.Result
}

// read reads the pieces of calls of a chunk.
func (c *chatCalls) read(choices gjson.Result) (pieces []chatPiece) {
	elements(choices, func(place int, choice gjson.Result) {
		number, known := choiceIndex(choice.Get("index"))
		calls := c.of(number)
		calls.chunks++
		chatCallsOf(choice.Get("delta"), func(at int, v gjson.Result) {
			call := chatCallOf(at, v)
			call.Choice, call.Unclear = number, call.Unclear || !known
			calls.place(&call, at, v.Get("index"))
			pieces = append(pieces, chatPiece{CallDelta{ToolCall: call}, place, at, v})
		})
		// The helper of the JavaScript SDK takes a message in a chunk for the answer so far
		// (ChatCompletionStream assigns all other members of a choice).
		chatCallsOf(choice.Get("message"), func(at int, v gjson.Result) {
			call := chatCallOf(at, v)
			call.Key, call.Choice, call.Unclear = "message/"+chatKey(place, at, 0), number, true
			pieces = append(pieces, chatPiece{CallDelta{ToolCall: call}, place, at, v})
		})
	})
	return pieces
}

// place finds the call that a piece belongs to. Clients go by its index, but not alike.
// A piece is unclear unless every client that can run something of it runs what is read
// here:
//
//   - No index is read as 0, as by Go's SDK. The helpers of JavaScript and Python lose or
//     refuse such a call, some clients take it for the newest call, some for a new one.
//     Gemini's endpoint sends calls so, and old Ollama servers did.
//   - Gemini and Ollama number all calls 0, each with its name and JSON of its own. The AI
//     SDK and LangChain see the end of the JSON or the other id. The others put the texts
//     one behind the other, which is no JSON.
//   - Of a name that is told twice, or behind arguments, some clients take the first, some
//     the last, and Python, Go and LangChain put both together. Of ids likewise, and of a
//     function and a custom tool.
//   - When the JSON has ended, the AI SDK runs the call; the others read on.
//   - An index that some servers leave out at the beginning breaks the helpers of both
//     JavaScript and Python, but the others read it. Python's takes the first list as it
//     is, and then an index for a place in it: a new index below another, or a piece for
//     an older call where one was left out, falls to another call, and so does what comes
//     behind a first list in which an index stands twice.
func (c *chatChoiceCalls) place(piece *ToolCall, at int, number gjson.Result) {
	index, ok := legacyCall, true
	if at != legacyCall {
		index, ok = chatCallIndex(number)
		c.indexed, c.unindexed = c.indexed || number.Type != gjson.Null, c.unindexed || number.Type == gjson.Null
		ok = ok && (!c.indexed || !c.unindexed)
	}
	call := c.last[index]
	another := call != nil && call.named && call.arguments.ended && piece.Name != "" && strings.Trim(piece.Arguments, jsonSpace) != ""
	switch {
	case at > 0 && c.unindexed && !another: // some clients count within the chunk
		ok = false
	case index == legacyCall && call == nil:
	case call == nil:
		ok = ok && index >= c.highest && !c.doubled
		c.gaps = c.gaps || index > 0 && c.last[index-1] == nil
	case another:
		ok = ok && c.highest == 0
		c.doubled = true
	case c.chunks == 1, c.gaps && index < c.highest && index != legacyCall, call.told && piece.Name != "", clash(call.id, piece.ID),
		call.told && tells(*piece) && call.free != piece.Free:
		ok = false
	}
	if call == nil || another {
		call = c.begin(piece.Choice, index)
	}
	piece.Key = call.key
	piece.Unclear = !call.add(*piece) || !ok || piece.Unclear
}

// chatCallIndex reads the index of a call. JavaScript takes "1" and 1.0 for 1 as well,
// others do not, and -1 is the last one in Python.
func chatCallIndex(v gjson.Result) (int, bool) {
	if v.Type == gjson.Null {
		return 0, true
	}
	i, err := strconv.ParseUint(v.Raw, 10, 16)
	return int(i), err == nil
}

func (c *chatCalls) of(choice int) *chatChoiceCalls {
	if *c == nil {
		*c = make(chatCalls)
	}
	calls := (*c)[choice]
	if calls == nil {
		calls = &chatChoiceCalls{last: make(map[int]*chatCall)}
		(*c)[choice] = calls
	}
	return calls
}

// begin begins a call, behind any other with the same index.
func (c *chatChoiceCalls) begin(choice, index int) *chatCall {
	call := new(chatCall)
	if before := c.last[index]; before != nil {
		call.nth = before.nth + 1
	}
	call.key = chatKey(choice, index, call.nth)
	c.last[index], c.highest = call, max(c.highest, index)
	return call
}

// tells reports whether a piece tells what is called.
func tells(piece ToolCall) bool { return piece.Name != "" || piece.Arguments != "" }

// add notes what a piece tells. It reports false if arguments go on behind their end.
func (c *chatCall) add(piece ToolCall) bool {
	if tells(piece) {
		c.told, c.free = true, piece.Free
	}
	c.id, c.named = cmp.Or(c.id, piece.ID), c.named || piece.Name != ""
	return c.free || c.arguments.add(piece.Arguments)
}

const jsonSpace = " \t\r\n"

// A jsonEnd finds where JSON in pieces ends, if it is an object or an array.
type jsonEnd struct {
	depth           int
	quoted, escaped bool // within a string, behind a backslash
	ended           bool
}

// add reads on. It reports false if anything but white space stands behind the end.
func (e *jsonEnd) add(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case e.ended:
			if strings.IndexByte(jsonSpace, c) < 0 {
				return false
			}
		case e.escaped:
			e.escaped = false
		case e.quoted:
			e.escaped, e.quoted = c == '\\', c != '"'
		case c == '"':
			e.quoted = true
		case c == '{', c == '[':
			e.depth++
		case c == '}', c == ']':
			e.depth--
			e.ended = e.depth <= 0
		}
	}
	return true
}
