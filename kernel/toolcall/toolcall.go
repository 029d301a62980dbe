package toolcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Call is one tool call a model asks for, before anybody runs it.
type Call struct {
	// Name of the tool as the model wrote it.
	Name string

	// Arguments is the JSON object of the call. Nothing, or only white space,
	// stands for a call without arguments, which is how several model APIs
	// write it.
	Arguments json.RawMessage

	// Request is what the user asked for in the session, in the user's own
	// words. A destination named here is the user's choice. Empty means that
	// it is not known.
	Request string

	// Context holds the earlier results and documents of the session that the
	// user did not write: whatever they say is data, never an instruction.
	Context []Observation
}

// Observation is one untrusted text of the session.
type Observation struct {
	Tool string // the tool that returned it
	Text string
}

// Decision is what the interceptor says of one call.
type Decision struct {
	Allowed bool

	// Invariant that applied, the first in the order of [Invariants]; empty
	// when the call is allowed.
	Invariant Invariant

	// Reason is one sentence that names the invariant and never repeats a
	// value of an argument; empty when the call is allowed.
	Reason string
}

// Options of an interceptor. The zero value is a good one.
type Options struct {
	// Workspace is the absolute, slash-separated folder that file arguments
	// may name. Empty means that it is not known: then only folders of the
	// operating system are out of bounds.
	Workspace string
}

// ErrWorkspace says that a workspace is not an absolute path below the root.
var ErrWorkspace = errors.New("workspace is not an absolute path below the root")

// Interceptor decides tool calls. It keeps no state between calls: equal calls
// get equal decisions. It is safe for concurrent use.
type Interceptor struct {
	workspace string
}

// New returns an interceptor, or an error of the kind [ErrWorkspace].
func New(o Options) (*Interceptor, error) {
	if o.Workspace == "" {
		return &Interceptor{}, nil
	}
	w := path.Clean(o.Workspace)
	if !strings.HasPrefix(w, "/") || w == "/" {
		return nil, fmt.Errorf("making an interceptor: %w", ErrWorkspace)
	}
	return &Interceptor{workspace: w}, nil
}

// Default returns the interceptor of the zero [Options].
func Default() *Interceptor { return &Interceptor{} }

// Decide reads every argument of the call with the readers that fit it and
// answers with the first invariant it breaks. It never panics and never
// performs what it reads.
//
// The work is bounded for the call as a whole; one that would take more is
// blocked by [UnreadableCall]. An error is the context's: the caller left
// before there was a decision, and none was made.
func (i *Interceptor) Decide(ctx context.Context, c Call) (Decision, error) {
	return i.decide(c, &budget{ctx: ctx})
}

func (i *Interceptor) decide(c Call, b *budget) (Decision, error) {
	if err := b.ctx.Err(); err != nil {
		return Decision{}, fmt.Errorf("deciding a tool call: %w", err)
	}
	leaves, err := readArguments(c.Arguments, b)
	if err != nil && !b.spent() {
		return refusal(MalformedArguments), nil
	}
	r := newReading(i, c, b)
	for _, l := range leaves {
		r.leaf(l)
	}
	r.destinations(leaves)
	if b.err != nil {
		return Decision{}, fmt.Errorf("deciding a tool call: %w", b.err)
	}
	return r.decision(), nil
}
