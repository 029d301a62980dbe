package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// A responsesCall is how the calls of one type of item are read and answered.
type responsesCall struct {
	// tool is the name of the tool; "" if the item tells it, and its arguments are text.
	tool string
	// arguments is the member that has them.
	arguments string
	free      bool
	// result answers a call with a note; nil if no result can hold one.
	result func(id, note string) any
}

// responsesCalls are the calls that the client runs, or allows the provider to run, by the
// type of their item.
var responsesCalls = map[string]responsesCall{
	"function_call":        {arguments: "arguments", result: textResult("function_call_output", "call_id")},
	"custom_tool_call":     {arguments: "input", free: true, result: textResult("custom_tool_call_output", "call_id")},
	"local_shell_call":     {tool: "local_shell", arguments: "action", result: textResult("local_shell_call_output", "id")},
	"shell_call":           {tool: "shell", arguments: "action", result: failedCommand},
	"apply_patch_call":     {tool: "apply_patch", arguments: "operation", result: failedPatch},
	"tool_search_call":     {tool: "tool_search", arguments: "arguments", result: nothingFound},
	"computer_call":        {tool: "computer", arguments: "action"}, // its result is a screenshot and nothing else
	"mcp_approval_request": {arguments: "arguments", result: notApproved},
}

// responsesHosted tells which tools the provider runs by itself, of those that clients may
// run too. That is what the request shows: clients go by their own tools, whatever an answer
// says of a call. The zero value is where no request is known.
type responsesHosted struct{ shell, toolSearch bool }

// responsesHostedBy reads the tools of a request. One that the client might run as well
// makes all of its type the client's. Those in items of the input show nothing: they may
// have come in an answer.
func responsesHostedBy(root gjson.Result) responsesHosted {
	hosts := func(kind string, hosted func(tool gjson.Result) bool) bool {
		there, all := false, true
		root.Get("tools").ForEach(func(_, tool gjson.Result) bool {
			if tool.Get("type").Str == kind {
				there, all = true, all && hosted(tool)
			}
			return all
		})
		return there && all
	}
	return responsesHosted{
		shell: hosts("shell", func(tool gjson.Result) bool {
			environment := tool.Get("environment.type").Str
			return environment == "container_auto" || environment == "container_reference"
		}),
		toolSearch: hosts("tool_search", func(tool gjson.Result) bool {
			execution := tool.Get("execution")
			return execution.Type == gjson.Null || execution.Str == "server"
		}),
	}
}

// runByClient reports whether an item is a call that a client runs by itself, or approves.
// The calls of a shell and of the search for tools are among them, unless both the request
// and the item say that the provider runs them.
func (h responsesHosted) runByClient(item gjson.Result) bool {
	kind := item.Get("type").Str
	switch kind {
	case "shell_call":
		return !h.shell || item.Get("environment.type").Str != "container_reference"
	case "tool_search_call":
		return !h.toolSearch || item.Get("execution").Str != "server"
	}
	_, known := responsesCalls[kind]
	return known
}

// responsesCallOf reads an item that is a call.
func responsesCallOf(item gjson.Result, key string) ToolCall {
	read := responsesCalls[item.Get("type").Str]
	arguments := item.Get(read.arguments)
	call := ToolCall{Key: key, ID: responsesCallID(item), Name: read.tool, Free: read.free}
	if read.tool == "" {
		call.Name, call.Bare = responsesToolName(item)
		call.Unclear = noText(item.Get("name")) || noText(item.Get("namespace")) || noText(item.Get("server_label"))
	}
	call.Unclear = call.Unclear || saysElsewhere(item, "name", read.arguments)
	switch actions := item.Get("actions"); {
	case item.Get("type").Str == "computer_call" && actions.Exists(): // some clients run the one, others the other
		call.Arguments = canonical(`{"action":` + cmp.Or(arguments.Raw, "null") + `,"actions":` + actions.Raw + `}`)
	case arguments.Type == gjson.String:
		call.Arguments = arguments.Str
	case arguments.Type != gjson.Null:
		call.Arguments = canonical(arguments.Raw)
	}
	return call
}

// canonical is JSON in one form, so that copies of a value are equal.
func canonical(raw string) string {
	value := jsontext.Value(raw)
	if value.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		return raw
	}
	return string(value)
}

// responsesToolName is the name of a tool with that of the namespace, or of the server of
// MCP, in which it is: the same name may mean something else in another. Bare is the name
// alone if it is in one.
func responsesToolName(item gjson.Result) (name, bare string) {
	name = item.Get("name").Str
	if space := cmp.Or(item.Get("namespace").Str, item.Get("server_label").Str); space != "" {
		return inNamespace(space, name), name
	}
	return name, ""
}

func inNamespace(space, name string) string {
	if space == "" || name == "" {
		return name
	}
	return space + "." + name
}

// responsesCallID is how a result refers to a call. A function's is the id that the API
// has; with others the type of the item stands before it, because each has results of its
// own.
func responsesCallID(item gjson.Result) string {
	kind, id := item.Get("type").Str, item.Get("call_id").Str
	if kind == "mcp_approval_request" {
		id = item.Get("id").Str
	}
	before, _, _ := strings.Cut(id, ":")
	_, typed := responsesCalls[before]
	if id == "" || kind == "function_call" && !typed {
		return id
	}
	return kind + ":" + id
}

// responsesCallType takes apart what responsesCallID makes.
func responsesCallType(callID string) (kind, id string) {
	kind, id, _ = strings.Cut(callID, ":")
	if _, known := responsesCalls[kind]; known {
		return kind, id
	}
	return "function_call", callID
}

// A begunCall is a call of a stream that has begun.
type begunCall struct {
	name string // without a namespace
	// action is what the item of an action began with. It gets longer until it is done.
	action string
	// pieces are the texts of an action that came in pieces, by their place in the item:
	// action.commands.0.
	pieces map[string]*broughtText
}

// readCalls reads what an event says of calls. Clients differ in where they take a call
// from: the SDKs and the agents on them from the last frame, or where it lacks from item
// and pieces; the AI SDK and Codex from the item that is done. So each copy is told, and a
// [CallGatherer] takes none that differs.
func (r *responsesReader) readCalls(e *Event, kind string, known responsesEvent, event gjson.Result) {
	if known.calls {
		r.readPiece(e, known, event)
		return
	}
	if item := event.Get("item"); r.hosted.runByClient(item) {
		key := r.callKey(e, event)
		if kind == "response.output_item.added" {
			r.begin(e, responsesCallOf(item, key), item)
		} else {
			r.tell(e, responsesCallOf(item, key), item)
		}
	}
	for i, item := range event.Get("response.output").Array() {
		if r.hosted.runByClient(item) {
			r.tell(e, responsesCallOf(item, r.indexes.key(i)), item)
		}
	}
}

// callKey is the key of the call that an event belongs to: its output index. An index that
// is none is read differently by every client, and so is one that is not there.
func (r *responsesReader) callKey(e *Event, event gjson.Result) string {
	index := event.Get("output_index")
	if key, ok := outputKey(index); ok {
		return key
	}
	e.Unknown = append(e.Unknown, "output_index")
	return "odd." + pathName(index.Raw)
}

// outputKey is an output index as a key.
func outputKey(index gjson.Result) (key string, ok bool) {
	n, err := strconv.Atoi(index.Raw)
	return index.Raw, err == nil && n >= 0 && index.Raw == strconv.Itoa(n)
}

// begin reads a call as its item is added. Its arguments are the first piece of them,
// because clients append what follows.
func (r *responsesReader) begin(e *Event, call ToolCall, item gjson.Result) {
	read := responsesCalls[item.Get("type").Str]
	begun := &begunCall{name: item.Get("name").Str}
	delta := CallDelta{ToolCall: call}
	switch {
	case read.tool != "" && item.Get("status").Str == "in_progress":
		begun.action, delta.Arguments = call.Arguments, ""
	case read.tool != "" || item.Get(read.arguments).Type != gjson.String:
		delta.Whole = call.Arguments != ""
	}
	r.note(call.Key, begun, item)
	e.Calls = append(e.Calls, delta)
}

// note notes the first that comes of a call.
func (r *responsesReader) note(key string, begun *begunCall, item gjson.Result) {
	if r.calls == nil {
		r.calls, r.callItems = make(map[string]*begunCall), make(map[string]string)
	}
	if r.calls[key] != nil || len(r.calls) == maxParts {
		return
	}
	r.calls[key] = begun
	if id := item.Get("id").Str; id != "" {
		r.callItems[id] = key
	}
}

// tell reads a copy of a whole call.
func (r *responsesReader) tell(e *Event, call ToolCall, item gjson.Result) {
	if begun := r.calls[call.Key]; begun != nil && !begun.goesOnAs(call, item) {
		r.clash(e, call.Key)
	}
	r.note(call.Key, &begunCall{name: item.Get("name").Str}, item)
	e.Calls = append(e.Calls, CallDelta{ToolCall: call, Whole: true})
}

// clash tells of a call that some clients have otherwise than it is told next. What they
// have is no JSON, so it differs from whatever is told.
func (r *responsesReader) clash(e *Event, key string) {
	e.Calls = append(e.Calls, CallDelta{ToolCall: ToolCall{Key: key, Arguments: "the pieces of this call differ from the whole"}})
}

// goesOnAs reports whether an action is what it began as and what its pieces say.
func (b *begunCall) goesOnAs(call ToolCall, item gjson.Result) bool {
	for place, text := range b.pieces {
		if !text.is(item.Get(place).Str) {
			return false
		}
	}
	return b.action == "" || begins(gjson.Parse(b.action), gjson.Parse(call.Arguments))
}

// begins reports whether a value is the beginning of another: texts and lists are longer
// there, and what was nothing is something.
func begins(before, after gjson.Result) bool {
	switch {
	case before.Type == gjson.Null:
		return true
	case before.Type == gjson.String && after.Type == gjson.String:
		return strings.HasPrefix(after.Str, before.Str)
	case before.IsArray() && after.IsArray():
		longer := after.Array()
		for i, v := range before.Array() {
			if i >= len(longer) || !begins(v, longer[i]) {
				return false
			}
		}
		return true
	case before.IsObject() && after.IsObject():
		members, all := after.Map(), true
		before.ForEach(func(name, v gjson.Result) bool {
			all = begins(v, members[name.Str])
			return all
		})
		return all
	}
	return before.Raw == after.Raw
}

// readPiece reads an event of a call that is neither its beginning nor its end. It counts
// for the call that its item_id names too, if that is another: the SDKs go by the index,
// and other clients by the id.
func (r *responsesReader) readPiece(e *Event, known responsesEvent, event gjson.Result) {
	keys := []string{r.callKey(e, event)}
	switch key, ok := r.callItems[event.Get("item_id").Str]; {
	case ok && !event.Get("output_index").Exists():
		keys[0] = key
	case ok && key != keys[0]:
		keys = append(keys, key)
		e.Unknown = append(e.Unknown, "item_id")
	}
	for _, key := range keys {
		if known.inAction() {
			r.readActionPiece(e, key, known, event)
		} else {
			e.Calls = append(e.Calls, r.piece(key, known, event))
		}
	}
}

// inAction reports whether the event is about a text within the action that a call is.
func (known responsesEvent) inAction() bool { return strings.Contains(known.place, ".") }

// piece reads a piece of arguments, or all of them.
func (r *responsesReader) piece(key string, known responsesEvent, event gjson.Result) CallDelta {
	delta := CallDelta{ToolCall: ToolCall{Key: key, Free: known.place == "input"}}
	value := event.Get("delta")
	if !known.grows {
		value = event.Get(known.place)
		delta.Whole = value.Type != gjson.Null
		if begun, name := r.calls[key], event.Get("name").Str; begun == nil || name != begun.name {
			delta.Name = name
		}
		delta.Unclear = noText(event.Get("name"))
	}
	switch {
	case value.Type == gjson.String:
		delta.Arguments = value.Str
	case value.Type != gjson.Null:
		delta.Arguments = canonical(value.Raw)
	}
	return delta
}

// readActionPiece notes a piece of an action, which is told when the item is done. Pieces
// of what never began are nothing to any client.
func (r *responsesReader) readActionPiece(e *Event, key string, known responsesEvent, event gjson.Result) {
	begun := r.calls[key]
	if begun == nil {
		return
	}
	e.Calls = append(e.Calls, CallDelta{ToolCall: ToolCall{Key: key}})
	place := known.at(event)
	if begun.pieces == nil {
		begun.pieces = make(map[string]*broughtText)
	}
	before := begun.pieces[place]
	if before == nil && len(begun.pieces) < maxParts {
		before = new(newBroughtText())
		begun.pieces[place] = before
	}
	switch whole := cmp.Or(event.Get("command").Str, event.Get("diff").Str); {
	case before == nil:
	case known.grows:
		before.add(event.Get("delta").Str)
	case before.begins(whole):
		before.add(whole[before.length:])
	default:
		r.clash(e, key)
	}
}

// outputIndexes are the output indexes of a stream so far, in order. Positions in a list of
// items are ranks among them.
type outputIndexes []int

// saw notes an output index.
func (o *outputIndexes) saw(index int) {
	if at, found := slices.BinarySearch(*o, index); !found && len(*o) < maxParts {
		*o = slices.Insert(*o, at, index)
	}
}

// key is the key of a call at a position in the list of all items.
func (o outputIndexes) key(position int) string {
	if position < len(o) {
		return strconv.Itoa(o[position])
	}
	return "new." + strconv.Itoa(position)
}

// responsesTools are the definitions of the tools that the client runs, or those of MCP
// that it may have to approve: in the request itself, and in items of its input.
func responsesTools(root gjson.Result) (tools []ToolDefinition) {
	define := func(space string, list gjson.Result) {
		list.ForEach(func(_, tool gjson.Result) bool {
			tools = appendTools(tools, space, tool)
			return true
		})
	}
	define("", root.Get("tools"))
	if input := root.Get("input"); input.IsArray() {
		input.ForEach(func(_, item gjson.Result) bool {
			switch item.Get("type").Str {
			case "additional_tools", "tool_search_output":
				define("", item.Get("tools"))
			case "mcp_list_tools":
				define(item.Get("server_label").Str, item.Get("tools"))
			}
			return true
		})
	}
	return tools
}

// appendTools appends what a tool is, or the tools of a namespace.
func appendTools(tools []ToolDefinition, space string, tool gjson.Result) []ToolDefinition {
	defined := ToolDefinition{Description: tool.Get("description").Str}
	switch kind := tool.Get("type").Str; kind {
	case "namespace":
		tool.Get("tools").ForEach(func(_, inner gjson.Result) bool {
			if inner.Get("type").Str != "namespace" { // none holds another
				tools = appendTools(tools, tool.Get("name").Str, inner)
			}
			return true
		})
		return tools
	case "shell", "local_shell", "apply_patch", "tool_search", "computer":
		defined.Name = kind
	case "computer_use_preview":
		defined.Name = "computer"
	case "function", "custom", "": // those of MCP have no type
		defined.Name = inNamespace(space, tool.Get("name").Str)
	}
	if defined.Name == "" {
		return tools
	}
	for _, member := range []string{"parameters", "input_schema"} {
		if schema := tool.Get(member); schema.Type != gjson.Null {
			defined.Schema = schemaText(schema)
		}
	}
	return append(tools, defined)
}
