package wire

import "errors"

// ErrInvalid is the kind of every error about a body that cannot be read, or that
// two readers would read differently. The message says what is wrong without
// quoting the body, so it may be shown to the caller.
var ErrInvalid = errors.New("invalid request body")

// A Dialect is one API's way to ask a model and to answer. Dialects hold no
// state but what the address of a call says, and are safe for concurrent use.
type Dialect interface {
	// Name identifies the dialect in receipts and metrics, in snake_case.
	Name() string
	Reader
	Writer
}

// A Reader takes bodies and stream frames apart. What it returns shares no
// memory with what it was given. Errors wrap [ErrInvalid].
type Reader interface {
	// Request reads the body of a call.
	Request(body []byte) (Request, error)
	// Response reads the body of an answer that is not streamed.
	Response(body []byte) (Response, error)
	// Events returns a reader for the frames of one streamed answer.
	Events() EventReader
}

// An EventReader reads the frames of one streamed answer in their order. It is not
// safe for concurrent use.
type EventReader interface {
	// Event reads the next frame. A frame that carries nothing for a reader (a
	// comment) is an Event without members. Beside an error, the Event says only
	// whether some client may end with the frame: Finish, Finished and Done. The Deltas
	// are valid until the next call.
	Event(f Frame) (Event, error)
	// Rest returns a reader for frames that stand in place of the last one and those that
	// follow, where that is the first with anything of a call. The two go on separately.
	Rest() EventReader
}

// A Writer makes what the dialect's official clients parse without an
// exception and do not retry.
type Writer interface {
	// Framing is how the streamed answer to a call at this address is cut into frames.
	Framing() Framing
	// Refusal is the body of a whole answer that declines. Nil means that the API has
	// no such answer, as one that returns vectors; then only an error can decline.
	Refusal(r Refusal) []byte
	// Error is the body of an HTTP error.
	Error(e Error) []byte
	// Stream returns a writer for the end of one streamed answer.
	Stream() StreamWriter
}

// A StreamWriter writes what a streamed answer gets from us. It follows what the
// client has of the answer, because a rest must fit to its beginning: roles are told
// once, open blocks are closed, numbers go on. It is not safe for concurrent use.
type StreamWriter interface {
	// Sent notes a frame that has left, in order.
	Sent(f Frame)
	Ender
	Filler
}

// An Ender ends a stream.
type Ender interface {
	// Refusal is the rest of the stream, a refusal and the dialect's end; the whole
	// stream if nothing was sent.
	Refusal(r Refusal) []byte
	// Error is the rest of a stream that fails. No client takes it for a clean end.
	Error(e Error) []byte
}

// A Filler makes frames without content.
type Filler interface {
	// KeepAlive is a frame that every client of the dialect skips, for a stream that is
	// silent; nil where there is none.
	KeepAlive() []byte
	// Note is a frame with one line of text that clients skip; nil where there is none.
	Note(text string) []byte
}

// A ToolServer is a dialect in which not a model answers but a server of tools, to the
// program around a model. All that the server says, its HTTP errors included, is a
// [ToolResult] or an [Instruction].
type ToolServer interface {
	// SessionHeader is the header in which clients repeat the id of their session.
	SessionHeader() string
	// Listens reports whether a call with this HTTP method needs no body, because the
	// client only listens to the server.
	Listens(method string) bool
}

// An AnswerReader is a dialect in which what an answer says depends on what was asked: in
// JSON-RPC a stream is over when all requests that wait in the call are answered, and no
// sooner; in OpenAI's Responses API the tools of the call tell who runs a command.
type AnswerReader interface {
	// Answering returns the dialect as it reads the answer to a call.
	Answering(r Request) Dialect
}

// A Resumer is a [StreamWriter] of a dialect in which a stream may end before the
// answer has come.
type Resumer interface {
	// Resumable reports whether the client will ask for the rest by another call.
	Resumable() bool
	// Refused notes the frame for which the stream is going to be refused. The client
	// must not ask for that frame again.
	Refused(f Frame)
}

// An Asker makes the call that asks a model.
type Asker interface {
	Ask(a Ask) Call
	// Authorize returns the header that carries a provider's key, and its value.
	Authorize(key string) (name, value string)
}

// A Call is an HTTP request, always POST, to a model's API.
type Call struct {
	Path   string // with the query, if there is one
	Header map[string]string
	Body   []byte
}

// Ask is what to ask a model, in no dialect.
type Ask struct {
	Model   string // as the provider names it; "" leaves the choice to the provider
	System  string // "" sends no system message
	History []Message
	Prompt  string
	Stream  bool
}

// A Message is one earlier message of a conversation.
type Message struct {
	Role Role
	Text string
}

// A Role tells who speaks in a part of a request.
type Role string

// The roles. The first four are the roles of messages, and no part outside a
// message has them: the conversation is exactly the parts with these. In an API
// without messages the prompt is the user's one message.
const (
	System     Role = "system" // also OpenAI's developer
	User       Role = "user"
	Assistant  Role = "assistant"
	Tool       Role = "tool"       // results of tools, wherever an API puts them
	Definition Role = "definition" // what describes tools and formats
	Other      Role = "other"      // everything else, unknown roles included
)

// A Kind tells what a part of a request or an answer is.
type Kind string

// The kinds. A part has Text if its kind can be read as text.
const (
	Text        Kind = "text"
	RefusalText Kind = "refusal"
	Reasoning   Kind = "reasoning"
	Arguments   Kind = "tool_call"   // the input of a call, as the model wrote it
	ToolResult  Kind = "tool_result" // in an answer: what a tool that the provider runs returned, or the provider itself is one
	Instruction Kind = "instruction" // in an answer of a [ToolServer]: what tells a model how to use it
	Document    Kind = "document"    // a text that is quoted to the model and not said to it
	Name        Kind = "name"        // of a speaker, a tool or a format
	Schema      Kind = "schema"      // Text: its names and strings, one a line
	Annotation  Kind = "annotation"  // Text: its names and strings, one a line
	Image       Kind = "image"
	Audio       Kind = "audio"
	File        Kind = "file"
	Stored      Kind = "stored"   // what only the provider can read: kept there under an id, or encrypted
	Tokens      Kind = "tokens"   // text as numbers of a tokenizer we do not have
	Logprobs    Kind = "logprobs" // the answer again, token by token
	Unknown     Kind = "unknown"  // not in the dialect: what it carries is not known
)

// Kinds are all kinds.
var Kinds = []Kind{
	Text, RefusalText, Reasoning, Arguments, ToolResult, Instruction, Document, Name, Schema, Annotation,
	Image, Audio, File, Stored, Tokens, Logprobs, Unknown,
}

// A Part is one content-bearing piece of a body. The parts of a body are
// disjoint and complete: a member that the dialect does not know is a part of
// kind [Unknown], and members that carry no content (numbers, switches, ids)
// are none. An empty text is no part.
type Part struct {
	// Path finds the part's raw value with gjson, for example
	// messages.3.content.1.text; it is unique within the body. The name of an
	// unknown member is replaced by a hash, with which gjson finds nothing: such a
	// name is free text, and paths are written into receipts.
	Path string
	Role Role // zero in answers
	Kind Kind
	Text string // decoded
	// Start and Bytes are the place of the raw JSON value in the body and its
	// size as it is forwarded, quotes and escapes included.
	Start, Bytes int
	// Message is the number, from 1, of the request's message or the answer's
	// choice that the part belongs to; 0 for a part outside them.
	Message int
	// Result is the number, from 1, of the result of a tool that the part belongs to; 0 for a
	// part outside them.
	Result int
	// Earlier: the part belongs to the history. The newest turn begins after the
	// last message of the assistant that another message follows; everything
	// before it is history. So is everything that the body attributes to the
	// assistant, including a prefilled beginning of the answer.
	Earlier bool

	// Context: the part is a text in a user's turn that the application put there, and that
	// it marked so: one element of markup (<environment>…</environment>) in a part of its own,
	// beside what the user wrote or what a tool returned.
	Context bool

	// Ours: the part refers to an answer that we wrote, by an id that no provider knows, or is
	// what is left of one where providers want content.
	Ours bool

	// Called: the part belongs to one of the answer's [Response.Calls].
	Called bool

	replacement   replacement // what Redact writes in its place
	before, after int         // bytes around the value that go with it, see attached
	tokens        int         // bytes of Logprobs that tell a text, see countTokens
}

// Attachment reports whether the part is an image, a sound or a file that has no text.
func (p Part) Attachment() bool {
	return p.Text == "" && (p.Kind == Image || p.Kind == Audio || p.Kind == File)
}

// Request is what governance needs of a call.
type Request struct {
	Model      string
	Stream     bool
	Structured bool // the answer must be JSON, so prose in its place breaks the client
	// TellsUsage: in OpenAI's APIs, the stream ends in a chunk that tells the tokens used,
	// which clients read without asking whether it is there.
	TellsUsage bool
	// Choices is how many alternative answers are asked for, 1 to [MaxChoices]. In
	// JSON-RPC it is how many requests wait for an answer, and may be 0.
	Choices int
	Reply   Reply // in JSON-RPC: the requests that wait for an answer
	// Session is the id of a conversation that the caller names in the body, or that
	// the provider keeps under an id; "" if there is none.
	Session string
	// Previous is the id of the provider's answer that the call goes on from; "" if
	// there is none. With HistoryPath the provider has the conversation up to there and
	// the body has not; without it the body has all, and asks for the rest of that answer.
	Previous string
	// PreviousOurs: Previous is an answer that we wrote, so no provider knows it.
	PreviousOurs bool
	// HistoryPath is the path of the member that names a history which the provider
	// has and the body has not: that of Previous, or of Session where the provider
	// keeps that conversation; "" if the body has all of it.
	HistoryPath string
	// Fetches is the id of an answer that the provider has and the call asks for; "" if it
	// asks a model. FetchesRest: it asks for the end of it.
	Fetches     string
	FetchesRest bool
	// Kept: the provider keeps the answer under its id, so that a later call may go on
	// from it, or name what it holds instead of resending it.
	Kept  bool
	Parts []Part
	// Tools are the definitions of the tools that the model may call.
	Tools []ToolDefinition
	// Calls are calls of tools that the caller asks a [ToolServer] for.
	Calls  []ToolCall
	hosted responsesHosted // of Tools
	prompt string
}

// MaxChoices bounds the alternative answers of one call, and so the size of a
// refusal, which has to answer each of them. The number is OpenAI's own.
const MaxChoices = 128

// Prompt returns what is assessed as the prompt: the text of the last user
// message that has text, its parts joined without a separator, so that nothing
// hides at a seam, and without [Part.Context]; in an API without messages the prompts.
func (r Request) Prompt() string { return r.prompt }

// Response is what governance needs of a whole answer.
type Response struct {
	ID     string // by which a later call can go on from the answer; "" in APIs without
	Model  string
	Finish string // the first choice's finish reason
	// Err: the provider reports an error, and there is no answer beside it, or the answer
	// says that it failed. A reader says so, too, of JSON that is no answer of the dialect.
	Err bool
	// Pending: the provider still works on the answer, which is fetched by its id.
	Pending bool
	// Structured: the answer says that it is JSON, though nothing in the call may have: one
	// that is fetched by its id, or to a stored prompt.
	Structured bool
	Parts      []Part
	Calls      []ToolCall // for the client to run, in order
	// Tools are what a [ToolServer] says of its tools.
	Tools []ToolDefinition
	text  string
}

// Text returns what a reader sees of the first choice: its content or, where
// there is none because the model declined, its refusal.
func (r Response) Text() string { return r.text }

// Event is what governance needs of one stream frame.
type Event struct {
	ID     string // the answer's, as in Response; empty on most frames
	Deltas []Delta
	// Silent are the sizes of the deltas without text, by their kinds.
	Silent map[Kind]int
	// Piece: each [ToolResult] here is a piece of one, of any size, and more may follow.
	Piece bool
	// Finish is a finish reason. Empty on every other frame.
	Finish string
	// Finished are the choices that have one here; clients stop reading them. A
	// provider may repeat the reason of a choice in a later frame.
	Finished []int
	// Calls are pieces of calls that the client runs, which some clients do before the
	// answer has ended.
	Calls []CallDelta
	// Tools are what a [ToolServer] says of its tools.
	Tools []ToolDefinition
	// MayEnd: the answer is complete if the stream ends behind this frame, in a dialect
	// in which nothing but that tells the end.
	MayEnd bool
	// Ending: every choice is finished, and the answer is complete only with a later frame
	// that is Done.
	Ending bool
	Done   bool // the dialect's end of stream
	Err    bool // the provider reports an error
	// Unknown lists paths of members that the dialect does not know.
	Unknown []string
}

// A Delta is a fragment of one choice's answer.
type Delta struct {
	Choice int // 0 to MaxChoices-1
	Kind   Kind
	Text   string // empty for kinds that are not text
	Called bool   // it belongs to one of the frame's [Event.Calls]
	// Ahead is how many bytes of text [Logprobs] tell that is not beside them. It has come
	// before or comes later.
	Ahead int
	// Part names the place of a text, or of reasoning, in its choice. Clients put the pieces
	// of one part together, whatever comes between them.
	Part string
}

// Refusal is an answer that declines.
type Refusal struct {
	ID, Model string
	Text      string
	Created   int64 // Unix seconds
	Place     Place
	Choices   int   // as in the Request; less than 1 counts as 1
	Reply     Reply // as in the Request
	// TellsUsage is as in the Request. The refusal itself used no tokens.
	TellsUsage bool
	// Blocked are calls to a [ToolServer] that are told their own note instead of Text.
	Blocked []BlockedCall
}

// A Place is where in an answer a refusal stands, in dialects that have a member
// for refusals beside the ordinary content.
type Place string

// The places of a refusal.
const (
	// Everywhere says it in both, because many clients show nothing but content. In
	// OpenAI's Responses it is in the content alone, because clients throw at the other
	// or show both. The zero value means the same.
	Everywhere Place = "message"
	// OnlyRefusal keeps the content empty: where structured output was asked
	// for, clients parse the content. Bedrock's Converse has no answer without content, and says it
	// in both.
	OnlyRefusal Place = "refusal"
	// OnlyContent is for clients that show both.
	OnlyContent Place = "content"
)

// Error is an error in no dialect.
type Error struct {
	Status  int // the HTTP status; chooses the dialect's error type
	Code    string
	Message string
	Reply   Reply // as in the Request; for the end of a stream
}
