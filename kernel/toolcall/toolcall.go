package toolcall

import (
	"context"
	"fmt"
)

// Call is one tool call a model asks for, before anybody runs it.
type Call struct {
	// Name of the tool as the model wrote it.
	Name string

	// Arguments is the JSON object of the call. Nothing, or only white space,
	// stands for a call without arguments, which is how several model APIs
	// write it.
	Arguments []byte

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

// Decision is the answer to one call: allow it, or block it and say why.
type Decision struct {
	Allowed bool

	// Invariant that applied: of those that the call breaks, the first in the
	// order in which their constants stand. Empty when the call is allowed.
	Invariant Invariant

	// Reason is one sentence that names the invariant and never repeats a
	// value of an argument; empty when the call is allowed.
	Reason string
}

// Decide reads every argument of the call with the readers that fit it and
// returns the first invariant that the call breaks. It never panics and never
// performs what it reads. It keeps no state between calls: equal calls get equal
// decisions. It is safe for concurrent use.
//
// The work is bounded for the call as a whole; a call that would take more is
// blocked by [UnreadableCall]. The only errors are the context's: the caller
// left before there was a decision, and none was made.
func Decide(ctx context.Context, c Call) (Decision, error) {
	return decide(c, &budget{ctx: ctx})
}

func decide(c Call, b *budget) (Decision, error) {
	if err := b.ctx.Err(); err != nil {
		return Decision{}, fmt.Errorf("deciding a tool call: %w", err)
	}
	leaves, err := readArguments(c.Arguments, b)
	if err != nil && !b.spent() {
		return refusal(MalformedArguments), nil
	}
	r := newReading(c, b)
	for _, l := range leaves {
		r.leaf(l)
	}
	r.destinations(leaves)
	if b.err != nil {
		return Decision{}, fmt.Errorf("deciding a tool call: %w", b.err)
	}
	return r.decision(), nil
}
