package toolcall

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddy-lex/lex/kernel"
)

// A RuleSet is what an operator writes of tools, beside the invariants. The zero value
// says nothing.
//
// Allow, Deny and what follows them are lists of globs over the name of a tool: * stands
// for any characters, ? for one, [a-z] and [^a-z] for one of a class, and \ takes the
// meaning from the character behind it. Upper and lower case are one.
type RuleSet struct {
	// BlockUnknown blocks tools that are not known: those that Allow does not name or,
	// if it names none, those that the request does not define.
	BlockUnknown bool

	// Allow names the tools that are known. It needs BlockUnknown, without which it would
	// do nothing.
	Allow []string

	// Deny names tools that are blocked.
	Deny []string

	// Reads, Writes and Sends say what tools do to the world. If several of them name one
	// tool, the gravest holds: sending, then writing, then reading.
	Reads, Writes, Sends []string

	// HighRisk names tools whose effect is grave and cannot be undone.
	HighRisk []string

	// Rules are asked in this order.
	Rules []Rule

	// BlockUntrusted blocks a call that does more than read and whose sensitive argument
	// only an untrusted result named. Otherwise such a call is at least flagged.
	BlockUntrusted bool

	// BlockInvalid blocks a call whose arguments do not fit the schema that the request gives
	// for the tool. Otherwise such a call is flagged: agents check that themselves, and
	// tell the model what was wrong.
	BlockInvalid bool
}

// Rules are a checked [RuleSet]. nil has no rules. They are safe for concurrent use.
type Rules struct {
	blockUnknown, blockUntrusted, blockInvalid bool

	allow, deny                  globs
	reads, writes, sends, severe globs
	programs                     []program
}

// NewRules checks a set. An error names the option and the glob or rule that is wrong.
func NewRules(s RuleSet) (*Rules, error) {
	if len(s.Allow) > 0 && !s.BlockUnknown {
		return nil, errors.New("allow does nothing without unknown block")
	}
	r := &Rules{blockUnknown: s.BlockUnknown, blockUntrusted: s.BlockUntrusted, blockInvalid: s.BlockInvalid}
	for _, list := range []struct {
		name string
		from []string
		to   *globs
	}{
		{"allow", s.Allow, &r.allow},
		{"deny", s.Deny, &r.deny},
		{"reads", s.Reads, &r.reads},
		{"writes", s.Writes, &r.writes},
		{"sends", s.Sends, &r.sends},
		{"high_risk", s.HighRisk, &r.severe},
	} {
		var err error
		if *list.to, err = newGlobs(list.from); err != nil {
			return nil, fmt.Errorf("%s: %w", list.name, err)
		}
	}
	var err error
	r.programs, err = newPrograms(s.Rules)
	return r, err
}

// denies returns the first rule that denies the call, by its name or by its bare name: a
// glob, or the name of a [Rule]; empty if none does. d is what is known of the call. The
// only errors are the context's.
func (r *Rules) denies(ctx context.Context, c Call, d Decision) (string, error) {
	if r == nil {
		return "", nil
	}
	if glob, ok := r.deny.match(c.names()...); ok {
		return glob, nil
	}
	for _, name := range c.names() {
		c.Name = name
		if rule, err := r.applies(ctx, c, d); rule != "" || err != nil {
			return rule, err
		}
	}
	return "", nil
}

// names are the names by which a client may run the tool.
func (c Call) names() []string {
	if c.Bare == "" {
		return []string{c.Name}
	}
	return []string{c.Name, c.Bare}
}

// unknown reports whether the call is blocked because its tool is not known. That a tool
// with its bare name is known says nothing of it.
func (r *Rules) unknown(c Call) bool {
	if r == nil || !r.blockUnknown {
		return false
	}
	if len(r.allow) == 0 {
		return c.Definition == nil
	}
	_, known := r.allow.match(c.Name)
	return !known
}

// untrusted reports whether the call is blocked because only untrusted content named a
// sensitive argument of it.
func (r *Rules) untrusted(d Decision) bool {
	return r != nil && r.blockUntrusted && d.Effect != kernel.ToolReads &&
		(d.Provenance == kernel.FromUntrusted || d.Provenance == kernel.FromInstruction)
}

// invalid reports whether calls are blocked whose arguments do not fit the tool's schema.
func (r *Rules) invalid() bool { return r != nil && r.blockInvalid }

// effect is what the tool does to the world: by the operator's word, or else by its
// definition and its name. What the operator says only reads is not grave, unless the
// operator says so too. That the bare name only reads is no such word.
func (r *Rules) effect(c Call) (e kernel.ToolEffect, highRisk bool) {
	e, highRisk = effectOf(c)
	if r == nil {
		return e, highRisk
	}
	for _, list := range []struct {
		globs  globs
		names  []string
		effect kernel.ToolEffect
	}{{r.sends, c.names(), kernel.ToolSends}, {r.writes, c.names(), kernel.ToolWrites}, {r.reads, []string{c.Name}, kernel.ToolReads}} {
		if _, ok := list.globs.match(list.names...); ok {
			e, highRisk = list.effect, highRisk && list.effect != kernel.ToolReads
			break
		}
	}
	_, severe := r.severe.match(c.names()...)
	return e, highRisk || severe
}
