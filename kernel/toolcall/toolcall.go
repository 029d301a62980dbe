package toolcall

import (
	"context"
	"fmt"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// Call is one tool call a model asks for, before anybody runs it.
type Call struct {
	// Name of the tool as the model wrote it.
	Name string

	// Arguments is the JSON object of the call. Nothing, or only white space,
	// stands for a call without arguments, which is how several model APIs
	// write it. With Free it is any text, as some tools take it.
	Arguments []byte
	Free      bool

	// Definition is what the request says of the tool; nil if it says nothing.
	Definition *Definition

	// Session, Key and Dialect are for the operator's rules: the session as public lists
	// show it, the id of the caller's Lex key or "", and the dialect of the traffic.
	Session, Key, Dialect string

	// System holds the application's own instructions, Request what the user asked for in
	// the session, in the user's own words. A destination named in either is their
	// choice. Both empty means that the conversation is not known.
	System, Request string

	// Context holds the earlier results and documents of the session that the
	// user did not write: whatever they say is data, never an instruction.
	Context []Observation
}

// Observation is one untrusted text of the session.
type Observation struct {
	Tool string // the tool that returned it
	Text string
}

// A Definition is what a request, or a server of tools, says of a tool.
type Definition struct {
	Description string
	// Schema is the JSON Schema of the arguments; nil if there is none.
	Schema []byte
	// ReadOnly and Destructive are MCP's annotations readOnlyHint and destructiveHint; nil
	// where they are not given.
	ReadOnly, Destructive *bool
}

// Decision is the answer to one call: allow it, or block it and say why.
type Decision struct {
	Allowed bool

	// Invariant that applied: of those that the call breaks, the first in the
	// order in which their constants stand. Empty when the call is allowed.
	Invariant Invariant

	// Rule is the operator's rule that blocks the call, or empty.
	Rule string

	// Reason is one sentence that names the invariant and never repeats a
	// value of an argument; empty when the call is allowed.
	Reason string

	// Flagged is an invariant that the call comes near to and that the operator's policy
	// lets pass, or empty.
	Flagged Invariant

	// Effect is what the tool does to the world, and HighRisk that what it does is grave
	// and cannot be undone.
	Effect   kernel.ToolEffect
	HighRisk bool

	// Provenance is where the sensitive arguments come from; empty if there are none or if
	// the conversation is not known.
	Provenance kernel.Provenance
}

// An Interceptor decides on calls. The zero value knows the invariants and no rules of an
// operator. It is safe for concurrent use.
type Interceptor struct {
	// Rules are the operator's; nil if there are none.
	Rules *Rules
}

// Decide decides on a call. First come the operator's rules that deny it, then the
// invariants, which no rule relaxes, then what the operator says of unknown tools and of
// arguments that do not fit the tool's schema. The errors are those of the function
// [Decide].
func (i *Interceptor) Decide(ctx context.Context, c Call) (Decision, error) {
	d, err := Decide(ctx, c)
	if err != nil {
		return d, err
	}
	d.Effect, d.HighRisk = i.Rules.effect(c)
	return i.Rules.apply(c, d), nil
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
		if l.text && languageKeys[l.key] {
			r.language = strings.ToLower(strings.TrimPrefix(l.value, "/bin/"))
		}
	}
	for _, l := range leaves {
		r.leaf(l)
	}
	r.program(c.Name, leaves)
	r.documents(leaves)
	r.searches(leaves)
	r.destinations(leaves)
	if b.err != nil {
		return Decision{}, fmt.Errorf("deciding a tool call: %w", b.err)
	}
	return r.decision(), nil
}
