package wire

import "errors"

// ErrInvalid is the kind of every error about a body that cannot be read, or that
// two readers would read differently. The message says what is wrong without
// quoting the body, so it may be shown to the caller.
var ErrInvalid = errors.New("invalid request body")

// A Dialect is one API's way to ask a model and to answer. Dialects hold no
// state and are safe for concurrent use.
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
	// Event reads one frame of a streamed answer. A frame that carries nothing
	// for a reader (a comment) is an Event without members.
	Event(f Frame) (Event, error)
}

// A Writer makes what the dialect's official clients parse without an
// exception and do not retry.
type Writer interface {
	// Refusal is the body of a whole answer that declines.
	Refusal(r Refusal) []byte
	// RefusalStream is the same as frames with their end: a complete stream, or
	// the rest of one already begun. Begun means that the client has the answer's
	// first frame, which names the role; SDKs need the role exactly once.
	RefusalStream(r Refusal, begun bool) []byte
	// Error is the body of an HTTP error.
	Error(e Error) []byte
	// ErrorEvent is the frame that ends a stream which fails after it began.
	ErrorEvent(e Error) []byte
}

// An Asker makes the call that asks a model.
type Asker interface {
	Ask(a Ask) (path string, body []byte)
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
	Tool       Role = "tool"       // results of tools
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
	ToolCall    Kind = "tool_call"  // the input of a call, as the model wrote it
	Name        Kind = "name"       // of a speaker, a tool or a format
	Schema      Kind = "schema"     // Text: its names and strings, one a line
	Annotation  Kind = "annotation" // Text: its names and strings, one a line
	Image       Kind = "image"
	Audio       Kind = "audio"
	File        Kind = "file"
	Tokens      Kind = "tokens"   // text as numbers of a tokenizer we do not have
	Logprobs    Kind = "logprobs" // the answer again, token by token
	Unknown     Kind = "unknown"  // not in the dialect: what it carries is not known
)

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
	// Earlier: the part belongs to the history. The newest turn begins after the
	// last message of the assistant that another message follows; everything
	// before it is history. So is everything that the body attributes to the
	// assistant, including a prefilled beginning of the answer.
	Earlier bool
}

// Request is what governance needs of a call.
type Request struct {
	Model      string
	Stream     bool
	Structured bool // the answer must be JSON, so prose in its place breaks the client
	Choices    int  // alternative answers asked for, 1 to [MaxChoices]
	Parts      []Part
	prompt     string
}

// MaxChoices bounds the alternative answers of one call, and so the size of a
// refusal, which has to answer each of them. The number is OpenAI's own.
const MaxChoices = 128

// Prompt returns what is assessed as the prompt: the text of the last user
// message that has text, its parts joined without a separator, so that nothing
// hides at a seam; in an API without messages the prompts.
func (r Request) Prompt() string { return r.prompt }

// Response is what governance needs of a whole answer.
type Response struct {
	Model  string
	Finish string // the first choice's finish reason
	Parts  []Part
	text   string
}

// Text returns what a reader sees of the first choice: its content or, where
// there is none because the model declined, its refusal.
func (r Response) Text() string { return r.text }

// Event is what governance needs of one stream frame.
type Event struct {
	Deltas []Delta
	// Finish is a finish reason. Empty on every other frame.
	Finish string
	// Finished are the choices that have one here; clients stop reading them. A
	// provider may repeat the reason of a choice in a later frame.
	Finished []int
	Done     bool // the dialect's end of stream
	Err      bool // the provider reports an error
	// Unknown lists paths of members that the dialect does not know.
	Unknown []string
}

// A Delta is a fragment of one choice's answer.
type Delta struct {
	Choice int // 0 to MaxChoices-1
	Kind   Kind
	Text   string // empty for kinds that are not text
}

// Refusal is an answer that declines.
type Refusal struct {
	ID, Model string
	Text      string
	Created   int64 // Unix seconds
	Place     Place
	Choices   int // as in the Request; less than 1 counts as 1
}

// A Place is where in an answer a refusal stands, in dialects that have a member
// for refusals beside the ordinary content.
type Place string

// The places of a refusal.
const (
	// Everywhere says it in both, because many clients show nothing but content.
	// The zero value means the same.
	Everywhere Place = "message"
	// OnlyRefusal keeps the content empty: where structured output was asked
	// for, clients parse the content.
	OnlyRefusal Place = "refusal"
	// OnlyContent is for clients that show both.
	OnlyContent Place = "content"
)

// Error is an error in no dialect.
type Error struct {
	Status  int // the HTTP status; chooses the dialect's error type
	Code    string
	Message string
}
