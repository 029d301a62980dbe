package wire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
)

// A ToolCall is a call of a tool: in an answer one that the client is asked to run, in a
// call to a [ToolServer] one that the server is asked to run. Calls that a provider runs
// by itself are none.
type ToolCall struct {
	// Key tells the calls of one body or one stream apart. It is the dialect's own, means
	// nothing elsewhere and is never shown.
	Key string
	// Choice is 0 to MaxChoices-1.
	Choice int
	// ID is by what a result refers to the call; "" in dialects without.
	ID string
	// Name is the tool's, as the model wrote it, behind the namespace or the server that it
	// is in. Bare is the name without these, by which some clients run the tool; "" if it
	// is in none.
	Name, Bare string
	// Arguments are as the model wrote them: a JSON text or, if Free, any text. "" if
	// there are none.
	Arguments string
	Free      bool
	// Unclear: clients read different calls there, so what is decided about this one does
	// not hold for all of them. An answer with such a call must not reach a client for
	// which calls are decided.
	Unclear bool
	// More: there is more in it than the dialect has in a call. A call without a Name that
	// has more may be of a form that this package does not know.
	More bool
}

// noText reports whether the name of a tool is something else than a text. Each language
// makes another name of it: JavaScript takes ["rm"] for rm.
func noText(name gjson.Result) bool { return name.Type != gjson.String && name.Type != gjson.Null }

// saysElsewhere reports whether a call is a text or a list, or has a member that calls of other
// dialects have in place of its own ones: lenient clients take the name or the input from
// there.
func saysElsewhere(call gjson.Result, own ...string) (found bool) {
	if !call.IsObject() {
		return call.Type == gjson.JSON || call.Type == gjson.String
	}
	call.ForEach(func(name, value gjson.Result) bool {
		found = value.Type != gjson.Null && !slices.Contains(own, name.Str) && slices.Contains(callMembers, nameKey(name.Str))
		return !found
	})
	return found
}

// hasMore reports whether a call has a member with a text, an object or a list beside some.
func hasMore(call gjson.Result, beside ...string) (found bool) {
	call.ForEach(func(name, value gjson.Result) bool {
		found = !slices.Contains(beside, name.Str) && (value.Type == gjson.String && value.Str != "" || value.Type == gjson.JSON)
		return !found
	})
	return found
}

// callMembers are what calls have for their name and their input, in any dialect.
var callMembers = []string{
	"function:", "functioncall:", "toolcall:", "tool:", "name:", "toolname:", "functionname:",
	"arguments:", "args:", "input:", "parameters:", "params:", "kwargs:", "toolinput:", "functionarguments:",
}

// A CallDelta is what a stream frame brings of a call. The first of a Key begins the call;
// ID and Name are set once, and Arguments are the next piece of them or, if Whole, all of
// them.
type CallDelta struct {
	ToolCall
	Whole bool
}

// A ToolDefinition describes, in a request, a tool that the model may call.
type ToolDefinition struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments; nil if there is none.
	Schema []byte
	// ReadOnly and Destructive are what a [ToolServer] hints at; nil where it does not.
	ReadOnly, Destructive *bool
}

// A BlockedCall is a call that the client must not get. Note says why, in a sentence for
// the model and the people who read the conversation; never empty.
type BlockedCall struct {
	Key, Note string
	// Place is where the note stands, in dialects that have a member for refusals beside
	// the ordinary content: there if it is OnlyRefusal, because clients that asked for
	// structured output parse the content, and else in the content alone.
	Place Place
}

// ErrCalls is the kind of every error about an answer from which calls cannot be taken.
var ErrCalls = errors.New("the calls of this answer cannot be edited")

// cannotEdit returns an error that says why.
func cannotEdit(why string) error { return fmt.Errorf("%w: %s", ErrCalls, why) }

// byKey returns blocked calls by key. Each is one of the calls of the answer.
func byKey(calls []ToolCall, blocked []BlockedCall) (map[string]BlockedCall, error) {
	out := make(map[string]BlockedCall, len(blocked))
	for _, b := range blocked {
		if b.Note == "" {
			return nil, cannotEdit("a note is empty")
		}
		out[b.Key] = b
	}
	found := 0
	for _, c := range calls {
		if _, ok := out[c.Key]; ok {
			found++
		}
	}
	if found != len(out) {
		return nil, cannotEdit("a blocked call is not there")
	}
	return out, nil
}

// A CallEditor is a dialect in whose answers models ask for calls of tools.
type CallEditor interface {
	// WithoutCalls returns a whole answer without some of its calls. Their notes stand
	// where the dialect has room for text, and the finish reasons say what is left. Every
	// other byte stays. Errors wrap [ErrCalls].
	WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error)
}

// A StreamCallEditor is a [StreamWriter] of a [CallEditor].
type StreamCallEditor interface {
	// WithoutCalls does the same for the frames of a stream from the first frame of the
	// first call on, none of which has left. It returns the bytes to send in their place,
	// behind what was [StreamWriter.Sent]. Frames that still come behind them are sent as
	// they are.
	WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error)
}

// A CallAnswerer is a dialect in which the provider remembers the calls of its answers
// and wants a result for each, also for those that the client never got.
type CallAnswerer interface {
	// AnswerCalls returns the body of a request with a result for each call that it has
	// none for yet. The result is the note of the blocked call, whose Key is the call's ID.
	AnswerCalls(body []byte, blocked []BlockedCall) ([]byte, error)
}
