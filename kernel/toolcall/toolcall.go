package toolcall

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/schema"
)

// Call is one tool call a model asks for, before anybody runs it.
type Call struct {
	// Name of the tool as the model wrote it.
	Name string

	// Bare is Name without the namespace, or the server, that stands in it; "" if none
	// does. Some clients run a tool by its bare name, so what denies that denies the call.
	Bare string

	// Arguments is the JSON object of the call. Nothing, only white space, or null
	// stands for a call without arguments, which is how several model APIs
	// write it. With Free it is any text, as some tools take it.
	Arguments []byte
	Free      bool

	// Definition is what the request says of the tool; nil if it says nothing.
	Definition *Definition

	// BareDefinition is what the request says of a tool whose name is Bare, if it says
	// nothing of one whose name is Name.
	BareDefinition *Definition

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

	// carried are the calls in the arguments, once they have been looked for, and a call of
	// these carries none. See steps.go.
	carried        []Call
	stepped, dense bool
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
	// lets pass, or that a reader found broken and the call's resemblance to ordinary ones
	// acquits it of, or empty.
	Flagged Invariant

	// Unread is how many bytes of the conversation the call was not compared with, because
	// it is longer than the parts that are read: the last 64 KiB of the observations, and of
	// the user's and the application's words the first and the last 8 KiB.
	Unread int

	// SchemaUnread says that the tool has a schema which arguments are not checked
	// against: it is no JSON Schema, refers to others, or is too large or too costly.
	SchemaUnread bool

	// Effect is what the tool does to the world, and HighRisk that what it does is grave
	// and cannot be undone.
	Effect   kernel.ToolEffect
	HighRisk bool

	// Provenance is where the sensitive arguments come from; empty if there are none or if
	// the conversation is not known.
	Provenance kernel.Provenance
}

// An Interceptor decides on calls. The zero value knows the invariants and no rules of an
// operator. It is safe for concurrent use and must not be copied.
type Interceptor struct {
	// Rules are the operator's; nil if there are none.
	Rules *Rules

	schemas schema.Cache
}

// Decide decides on a call. First come the operator's rules that deny it, then the
// invariants, which no rule relaxes, then what the operator says of untrusted arguments
// and of unknown tools, and then the tool's schema. A call that a rule denies and that breaks
// an invariant too is blocked by the invariant, and names the rule besides. The errors are
// those of the function [Decide].
func (i *Interceptor) Decide(ctx context.Context, c Call) (Decision, error) {
	free := c.Free
	c = c.asObject().withSteps()
	d, err := Decide(ctx, c)
	if err != nil {
		return d, err
	}
	d.Effect, d.HighRisk = i.Rules.effect(c)
	for _, step := range c.carried {
		effect, highRisk := i.Rules.effect(step)
		d.Effect, d.HighRisk = graver(d.Effect, effect), d.HighRisk || highRisk
	}
	for _, one := range append([]Call{c}, c.carried...) {
		if d.Rule, err = i.Rules.denies(ctx, one, d); err != nil {
			return Decision{}, err
		}
		if d.Rule != "" {
			break
		}
	}
	switch {
	case !d.Allowed:
	case d.Rule != "":
		d.block(OperatorRule)
	case i.Rules.untrusted(d):
		d.block(UntrustedDestination)
	case i.Rules.unknown(c):
		d.block(UnknownTool)
	case !free: // a schema is about an object
		var fits bool
		fits, d.SchemaUnread = i.fits(c)
		switch {
		case fits:
		case i.Rules.invalid():
			d.block(InvalidArguments)
		case d.Flagged == "":
			d.Flagged = InvalidArguments
		}
	}
	return d, nil
}

// fits reports whether the arguments of a call fit the schema of its tool. unread says that
// there is a schema, and that nothing was checked.
func (i *Interceptor) fits(c Call) (fits, unread bool) {
	defined := cmp.Or(c.Definition, c.BareDefinition)
	if defined == nil || len(defined.Schema) == 0 {
		return true, false
	}
	arguments, err := c.object()
	if err != nil {
		return true, true
	}
	return i.schemas.Fit(defined.Schema, arguments)
}

// block blocks a call that no invariant blocks.
func (d *Decision) block(v Invariant) {
	d.Allowed, d.Invariant, d.Reason, d.Flagged = false, v, v.Reason(), ""
}

// asObject returns a call with its free text as the member input of an object.
func (c Call) asObject() Call {
	if c.Free {
		text, err := json.Marshal(map[string]string{"input": string(c.Arguments)})
		if err != nil {
			return c // not UTF-8, so it is malformed
		}
		c.Arguments, c.Free = text, false
	}
	return c
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
	return decide(c, newBudget(ctx))
}

func decide(c Call, b *budget) (Decision, error) {
	c, unread := c.asObject().withSteps().recent()
	c = c.withoutReasons()
	if err := b.ctx.Err(); err != nil {
		return Decision{}, fmt.Errorf("deciding a tool call: %w", err)
	}
	leaves, err := readArguments(c.Arguments, b)
	if err != nil && !b.spent() {
		d := refusal(MalformedArguments)
		d.Unread = unread
		return d, nil
	}
	r := newReading(c, leaves, b, nil)
	r.judge(c, leaves)
	r.stepping(c.carried, c.dense)
	from := r.provenance(leaves)
	if r.effect != kernel.ToolReads && (from == kernel.FromUntrusted || from == kernel.FromInstruction) {
		r.flags(UntrustedDestination)
	}
	if b.err != nil {
		return Decision{}, fmt.Errorf("deciding a tool call: %w", b.err)
	}
	d := r.decision()
	d.Provenance, d.Unread = from, unread
	return d, nil
}

// judge gives the arguments of a call to all readers.
func (r *reading) judge(c Call, leaves []leaf) {
	for _, l := range leaves {
		if l.variable != "" && l.text && variableName.MatchString(l.variable) {
			note(&r.variables, l.variable, l.value)
		}
		if l.text && folderKeys[l.key] {
			r.workdir = l.value
		}
		if l.text && languageKeys[l.key] {
			r.language = strings.ToLower(strings.TrimPrefix(l.value, "/bin/"))
		}
	}
	r.everyday = everydayText(r.writtenName(leaves), leaves)
	r.gets, r.trial, r.testing = onlyGets(leaves), trials(leaves), onTests(leaves)
	r.testServer = r.testing && onTestServer(leaves)
	r.connects = !r.tool.requests() && slices.ContainsFunc(leaves, func(l leaf) bool { what := r.tool.roleOf(l.key); return what == roleShell || what == roleQuery })
	for _, l := range leaves {
		r.leaf(l)
	}
	r.runsLater(leaves)
	r.program(c.Name, leaves)
	r.cmdletTool(leaves)
	r.registryTool(leaves)
	r.manifests(leaves)
	r.onDevices(leaves)
	r.handsOverLogin(leaves)
	r.documents(leaves)
	r.obeyed(leaves)
	q := r.requestIn(leaves)
	r.manages(q)
	r.deals(leaves, c.Arguments, q)
	r.carriedByMail(leaves)
	r.searches(leaves)
	r.compare(c, leaves)
	r.destinations(leaves)
	r.leaks(c, leaves)
	r.intention()
	r.amounts(c, leaves)
	r.weigh(c, leaves)
}
