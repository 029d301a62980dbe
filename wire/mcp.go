package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// mcp is the Model Context Protocol over streamable HTTP, in both of its generations:
// with sessions (up to 2025-11-25) and without (2026-07-28). One endpoint takes
// JSON-RPC messages by POST and answers in JSON or as an event stream. A GET opens a
// stream of the server's own messages.
//
// It is not a chat. Behind it stands no model but a server of tools, whose clients are
// the programs around models. All that the server says may end up in front of a model.
// Descriptions, prompts and what the server asks of the client are an [Instruction], as
// they say by their nature what to do. Everything else, log messages and errors too, is
// a [ToolResult], in which no instructions belong.
type mcp struct{}

// Name implements [Dialect].
func (mcp) Name() string { return "mcp" }

// SessionHeader implements [ToolServer].
func (mcp) SessionHeader() string { return "Mcp-Session-Id" }

// Listens implements [ToolServer].
func (mcp) Listens(method string) bool { return method == "GET" }

// Request reads the body of a POST, one JSON-RPC message or a batch of them (revision
// 2025-03-26). A GET has none: it says nothing and waits for no answer.
//
// What a request of the client says is the user's: the arguments of a call are the
// prompt that the server acts on, so they are assessed like one, for harm as well as
// for instructions. What a client sends back when the server asked for it (a sampled
// message, a filled form) is the answer to a tool. Nobody in this conversation gave it
// as an order, and only injected instructions are to be found there.
func (mcp) Request(body []byte) (Request, error) {
	if isBlank(body) {
		return Request{}, nil
	}
	root, err := parseAny(body)
	if err != nil {
		return Request{}, err
	}
	r := Request{Reply: Reply{batch: root.IsArray()}}
	for _, message := range mcpMessages(root) {
		if err := r.Reply.add(message); err != nil {
			return Request{}, err
		}
		if message.Get("method").Str == mcpCallsTool {
			r.Calls = append(r.Calls, mcpToolCall(message))
		}
		if len(r.Calls) > MaxChoices {
			return Request{}, invalid("a batch holds more than %d calls", MaxChoices)
		}
	}
	var w walk
	mcpBody(&w, root)
	for i := range w.parts {
		if p := &w.parts[i]; p.Role == Definition {
			p.Role = User // only servers define
		}
	}
	r.Choices, r.Parts = len(r.Reply.waiting), w.parts
	r.prompt = joinText(slices.DeleteFunc(slices.Clone(w.parts), func(p Part) bool { return p.Role != User }), Text, Arguments)
	return r, w.err
}

// mcpCallsTool is the method of a call of a tool.
const mcpCallsTool = "tools/call"

// mcpToolCall is a call of a tool. Its key is its id as it came; "" if it waits for no
// answer, which keeps no server from running the tool. Of params that name no tool all are
// the arguments, and are malformed: a lenient server may find a tool in them.
func mcpToolCall(message gjson.Result) ToolCall {
	params := message.Get("params")
	call := ToolCall{Key: message.Get("id").Raw, Name: params.Get("name").Str, Arguments: params.Get("arguments").Raw}
	if call.Name == "" {
		call.Arguments = "[" + params.Raw + "]"
	}
	return call
}

// mcpTools are the tools that a server lists in a message. A result does not say of which
// method it is; that of a tool has content.
func mcpTools(message gjson.Result) (tools []ToolDefinition) {
	result := message.Get("result")
	if result.Get("content").Exists() {
		return nil
	}
	result.Get("tools").ForEach(func(_, tool gjson.Result) bool {
		d := ToolDefinition{
			Name: tool.Get("name").Str, Description: tool.Get("description").Str,
			Schema:   schemaText(tool.Get("inputSchema")),
			ReadOnly: hint(tool.Get("annotations.readOnlyHint")), Destructive: hint(tool.Get("annotations.destructiveHint")),
		}
		if d.Name != "" {
			tools = append(tools, d)
		}
		return true
	})
	return tools
}

// hint is a switch that may be absent.
func hint(v gjson.Result) *bool {
	if !v.IsBool() {
		return nil
	}
	on := v.Bool()
	return &on
}

func isBlank(body []byte) bool { return len(bytes.TrimSpace(body)) == 0 }

// mcpMessages returns the messages of a body.
func mcpMessages(root gjson.Result) []gjson.Result {
	if root.IsArray() {
		return root.Array()
	}
	return []gjson.Result{root}
}

// A Reply says which requests of a call wait for an answer. In JSON-RPC an answer
// repeats the id of its request. The zero value says that none does.
type Reply struct {
	batch   bool // the answer is an array
	waiting []rpcRequest
}

// An rpcRequest is a request that waits for its answer.
type rpcRequest struct {
	id   string // raw JSON, as it came
	tool bool   // it calls a tool, and so its answer is that tool's result
}

// add notes a message if it waits for an answer.
func (r *Reply) add(message gjson.Result) error {
	id, method := message.Get("id"), message.Get("method")
	answers := message.Get("result").Exists() || message.Get("error").Exists()
	switch {
	case !message.IsObject():
		return invalid("a message is not an object: send JSON-RPC 2.0")
	case !method.Exists() && !answers:
		return invalid("a message has no method, no result and no error: send JSON-RPC 2.0")
	case method.Exists() && method.Type != gjson.String:
		return invalid("method is not a string")
	case !method.Exists() || !id.Exists():
		return nil // an answer or a notification
	case id.Type != gjson.String && id.Type != gjson.Number:
		return invalid("id is not a string or a number")
	case len(r.waiting) == MaxChoices:
		return invalid("a batch holds more than %d requests", MaxChoices)
	}
	// A call that is to run as a task is answered with the task, not with the result.
	tool := method.Str == mcpCallsTool && !message.Get("params.task").Exists()
	if tool && slices.Contains(r.waiting, rpcRequest{id.Raw, true}) {
		return invalid("two calls in a batch have the same id")
	}
	r.waiting = append(r.waiting, rpcRequest{id: id.Raw, tool: tool})
	return nil
}

// Response reads an answer in JSON. There is none to notifications (202 Accepted).
func (mcp) Response(body []byte) (Response, error) {
	if isBlank(body) {
		return Response{}, nil
	}
	messages, parts, err := mcpAnswer(body)
	r := Response{Parts: parts}
	for _, message := range messages {
		r.Tools = append(r.Tools, mcpTools(message)...)
	}
	return r, err
}

// mcpAnswer reads what a server says. An unknown part has the text that can be found in
// it, because servers may add members to every result, and clients show them to models.
func mcpAnswer(body []byte) (messages []gjson.Result, parts []Part, err error) {
	root, err := parseAny(body)
	if err == nil && setsPrototype(body) {
		err = errPrototype
	}
	if err != nil {
		return nil, nil, err
	}
	w := walk{toModel: true}
	if mcpBody(&w, root); w.err != nil {
		return nil, nil, w.err
	}
	for i := range w.parts {
		p := &w.parts[i]
		switch {
		case p.Kind == Unknown:
			p.Text = looseText(body[p.Start : p.Start+p.Bytes])
		case p.Text == "":
		case p.Role == Definition:
			p.Kind = Instruction
		default:
			p.Kind = ToolResult
		}
		p.Role = ""
	}
	return mcpMessages(root), w.parts, nil
}

// looseText joins the texts of a body that no schema knows. JSON behind other text is
// read too, or its escapes would hide words.
func looseText(body []byte) string {
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	parts, _ := LooseParts(body)
	if i := bytes.IndexAny(body, `{["`); i > 0 {
		behind, _ := LooseParts(body[i:])
		parts = append(parts, behind...)
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

// Answering implements [AnswerReader].
func (mcp) Answering(r Request) Dialect { return &mcpAnswering{waiting: r.Reply.waiting} }

// mcpAnswering is mcp for the answer to one call.
type mcpAnswering struct {
	mcp
	waiting []rpcRequest
}

// Events returns a reader of the stream that answers the call.
func (m *mcpAnswering) Events() EventReader { return &mcpEvents{waiting: m.waiting} }

// Events returns a reader of a stream of which nobody knows what the client waits for.
func (mcp) Events() EventReader { return new(mcpEvents) }

// mcpEvents reads the frames of a stream. Each holds whole messages.
type mcpEvents struct {
	waiting  []rpcRequest // empty if it is not known what the client waits for
	answered []int        // the choices that are answered, in the order of their answers
}

// Rest implements [EventReader].
func (s *mcpEvents) Rest() EventReader {
	return &mcpEvents{waiting: s.waiting, answered: slices.Clone(s.answered)}
}

// Event reads one frame. A frame without data makes a stream resumable or keeps it
// alive. An answer ends the choice of the request that waits for it: clients may go on
// with each as soon as they have it, and stop reading when they have the last. Whether
// it is a result or an error makes no difference: both are what the server answers. What
// answers no request of the call ends nothing, and is a message like any other.
//
// A frame that cannot be read is read loosely. Where it holds anything like an object it
// counts as an answer, because some client may take it for one, and no answer may leave
// before its receipt: Go's SDK reads only the last of several data lines if another
// field stands between them.
func (s *mcpEvents) Event(f Frame) (e Event, err error) {
	if f.Comment || isBlank(f.Data) {
		return Event{}, nil
	}
	messages, parts, err := mcpAnswer(f.Data)
	if err != nil {
		e.Unknown = []string{"frame"}
		e.Deltas = []Delta{{Kind: ToolResult, Text: looseText(f.Data)}}
		if bytes.IndexByte(f.Data, '{') >= 0 {
			s.answer(&e, "error", gjson.Result{})
		}
		return e, nil
	}
	for _, p := range parts {
		kind := p.Kind
		if kind == Unknown {
			e.Unknown = append(e.Unknown, p.Path)
			kind = Instruction
		}
		if p.Kind != Unknown || p.Text != "" {
			e.Deltas = append(e.Deltas, Delta{Kind: kind, Text: p.Text})
			e.addSilent(p)
		}
	}
	for _, message := range messages {
		switch {
		case message.Get("result").Exists():
			s.answer(&e, "result", message.Get("id"))
			e.Tools = append(e.Tools, mcpTools(message)...)
		case message.Get("error").Exists():
			s.answer(&e, "error", message.Get("id"))
		}
	}
	return e, nil
}

// answer notes an answer with an id, unless it answers nothing that the client waits for.
func (s *mcpEvents) answer(e *Event, finish string, id gjson.Result) {
	choice, ok := s.answers(id)
	if !ok {
		return
	}
	e.Finish = finish
	e.Finished = append(e.Finished, choice)
	s.answered = append(s.answered, choice)
}

// answers returns the choice that an answer with an id ends: that of the request with the
// id, or of the first that some client takes it for the answer to. Where nobody knows what
// the client waits for, answers end choices in the order in which they come.
func (s *mcpEvents) answers(id gjson.Result) (choice int, ok bool) {
	if len(s.waiting) == 0 {
		return min(len(s.answered), MaxChoices-1), true
	}
	for _, fits := range []func(rpcRequest) bool{
		func(r rpcRequest) bool { return r.id == id.Raw },
		func(r rpcRequest) bool { return r.mayHave(id) },
	} {
		for i, r := range s.waiting {
			if !fits(r) {
				continue
			}
			if choice, ok = i, true; !slices.Contains(s.answered, i) {
				return choice, true
			}
		}
		if ok {
			return choice, true
		}
	}
	return 0, false
}

// mayHave reports whether some client takes an id for that of the request. JavaScript's SDK
// makes a number of every id, whatever it is, and others read 1.0 as 1.
func (r rpcRequest) mayHave(id gjson.Result) bool {
	switch own := gjson.Parse(r.id); {
	case own.Type != id.Type:
		return true
	case own.Type == gjson.Number:
		return own.Num == id.Num
	default:
		return own.Str == id.Str
	}
}

// Framing returns the framing of streams.
func (mcp) Framing() Framing { return EventStream }

// Refusal answers every request of a call. The refusal of a tool is a result with
// isError, which the model behind the client reads; clients raise any other error, and
// agents often end there. What has no result gets an error. A call that only notifies
// or answers gets no answer, so nothing but an HTTP error can refuse it.
func (mcp) Refusal(r Refusal) []byte {
	replies := r.Reply.refusals(r)
	switch {
	case len(replies) == 0:
		return nil
	case !r.Reply.batch:
		return replies[0]
	}
	return slices.Concat([]byte("["), bytes.Join(replies, []byte(",")), []byte("]"))
}

// refusals returns a refusal for each waiting request.
func (r Reply) refusals(refusal Refusal) (out [][]byte) {
	for _, request := range r.waiting {
		text := refusal.Text
		for _, b := range refusal.Blocked {
			if b.Key == request.id {
				text = b.Note
			}
		}
		if request.tool {
			out = append(out, rpcAnswer(request.id, "result", mcpToolRefusal{
				ResultType: "complete", Content: []mcpText{{"text", text}}, IsError: true,
			}))
		} else {
			out = append(out, rpcAnswer(request.id, "error", rpcError{Code: rpcInvalidParams, Message: text}))
		}
	}
	return out
}

// mcpToolRefusal is the result of a tool that was not called. The first generation does
// not know resultType and ignores it; clients of the second throw without it.
type mcpToolRefusal struct {
	ResultType string    `json:"resultType"`
	Content    []mcpText `json:"content"`
	IsError    bool      `json:"isError"`
}

type mcpText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type rpcError struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Data    *rpcData `json:"data,omitzero"`
}

type rpcData struct {
	Code string `json:"code"`
}

// The error codes of JSON-RPC 2.0, section 5.1. Clients tell nothing from rpcRefused,
// which is in the range that the protocol leaves to servers.
const (
	rpcInvalidRequest = -32600
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
	rpcRefused        = -32000
)

// rpcAnswer is an answer with the id exactly as it came: a number may be larger than
// any type, and clients compare.
func rpcAnswer(id, member string, value any) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), []byte(id), []byte(`,"`+member+`":`), encode(value), []byte("}"))
}

// Error is the body of an HTTP error. It has no id, because it answers the call and not
// one of its messages.
func (mcp) Error(e Error) []byte { return rpcAnswer("null", "error", e.rpc()) }

func (e Error) rpc() rpcError {
	code := rpcRefused
	switch {
	case e.Status >= 500:
		code = rpcInternal
	case slices.Contains([]int{400, 413, 415, 422}, e.Status):
		code = rpcInvalidRequest
	}
	return rpcError{Code: code, Message: e.Message, Data: &rpcData{e.Code}}
}

// Stream returns a writer for the end of a stream.
func (mcp) Stream() StreamWriter { return new(mcpStream) }

// An mcpStream ends streams. No answer has left before the end, because the stream
// waits from the first answer on.
type mcpStream struct {
	resumable bool
	refused   Frame
}

// Sent implements [StreamWriter].
func (s *mcpStream) Sent(f Frame) {
	s.resumable = s.resumable || f.HasID && eventID(f.Raw) != nil
}

// eventID is the line of a frame with its id field; nil if there is none.
func eventID(raw []byte) (line []byte) {
	for len(raw) > 0 {
		if line, raw = cutLine(raw); bytes.HasPrefix(line, []byte("id:")) && !hasOtherLineEnd(line) {
			return line
		}
	}
	return nil
}

// Resumable implements [Resumer].
func (s *mcpStream) Resumable() bool { return s.resumable }

// Refused implements [Resumer].
func (s *mcpStream) Refused(f Frame) { s.refused = f }

// Refusal implements [Ender]. A stream that a client listens to brings messages, and
// the answers to earlier calls that the client resumed. Those are answered; for
// anything else a log message tells of the refusal. The id of the refused frame stands
// before it, or the client would ask for that frame again and again.
func (s *mcpStream) Refusal(r Refusal) (out []byte) {
	replies := r.Reply.refusals(r)
	if len(r.Reply.waiting) == 0 {
		replies = answersIn(s.refused.Data).refusals(r)
		if id := eventID(s.refused.Raw); id != nil {
			out = slices.Concat(id, []byte("\n"))
		}
	}
	if len(replies) == 0 {
		replies = [][]byte{encode(mcpLogMessage(r.Text))}
	}
	for _, reply := range replies {
		out = AppendEvent(out, reply)
	}
	return out
}

// answersIn are the requests that the answers of a frame belong to.
func answersIn(data []byte) (r Reply) {
	root, err := parseAny(data)
	if err != nil {
		return Reply{}
	}
	for _, message := range mcpMessages(root) {
		id, result := message.Get("id"), message.Get("result")
		if (id.Type == gjson.String || id.Type == gjson.Number) && (result.Exists() || message.Get("error").Exists()) {
			r.waiting = append(r.waiting, rpcRequest{id: id.Raw, tool: result.Get("content").Exists()})
		}
	}
	return r
}

type mcpNotification struct {
	JSONRPC string       `json:"jsonrpc"`
	Method  string       `json:"method"`
	Params  mcpLogParams `json:"params"`
}

type mcpLogParams struct {
	Level  string `json:"level"`
	Logger string `json:"logger"`
	Data   string `json:"data"`
}

func mcpLogMessage(text string) mcpNotification {
	return mcpNotification{JSONRPC: "2.0", Method: "notifications/message", Params: mcpLogParams{"error", "lex", text}}
}

// Error implements [Ender]. A stream whose client waits for no answer just ends, and
// the client opens another one.
func (s *mcpStream) Error(e Error) (out []byte) {
	for _, request := range e.Reply.waiting {
		out = AppendEvent(out, rpcAnswer(request.id, "error", e.rpc()))
	}
	return out
}

// KeepAlive implements [Filler].
func (s *mcpStream) KeepAlive() []byte { return s.Note("keep-alive") }

// Note implements [Filler].
func (s *mcpStream) Note(text string) []byte { return AppendComment(nil, text) }

// Interface guards
var (
	_ Dialect      = mcp{}
	_ ToolServer   = mcp{}
	_ ToolServer   = (*mcpAnswering)(nil)
	_ AnswerReader = mcp{}
	_ Resumer      = (*mcpStream)(nil)
)
