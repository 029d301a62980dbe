package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// The choices of the tools.
const (
	unknownToolAllow, unknownToolBlock = "allow", "block"
	suspectFlag, suspectBlock          = "flag", "block"
)

// Tools are the operator's rules on the calls of tools. They come beside the invariants,
// which none of them relaxes. Each list but the rules holds globs over the names of
// tools: `*` stands for any characters, `?` for one, `[a-z]` for one of a class; upper
// and lower case are one.
type Tools struct {
	// Whether tools that are not known may be called: allow or block. Those that `allow`
	// names are known or, if it names none, those that the request defines.
	// Default: allow.
	Unknown string `json:"unknown,omitempty"`

	// The tools that are known. Needs `unknown` to be block.
	Allow []string `json:"allow,omitempty"`

	// The tools that may not be called.
	Deny []string `json:"deny,omitempty"`

	// The tools that only read, whatever their names and definitions say. If a tool is
	// also in `writes` or `sends`, it writes or sends.
	Reads []string `json:"reads,omitempty"`

	// The tools that change something. If a tool is also in `sends`, it sends.
	Writes []string `json:"writes,omitempty"`

	// The tools whose arguments leave for somewhere else.
	Sends []string `json:"sends,omitempty"`

	// The tools whose effect is grave and cannot be undone.
	HighRisk []string `json:"high_risk,omitempty"`

	// Conditions that block a call, in the order in which they are asked.
	Rules []ToolRule `json:"rules,omitempty"`

	// What happens to a call that does more than read and whose sensitive argument only an
	// untrusted result named, where no invariant blocks it: flag or block. Default: flag.
	Untrusted string `json:"untrusted,omitempty"`

	// What happens to a call whose arguments do not fit the JSON Schema that the request
	// gives for the tool, where no invariant blocks it: flag or block. Default: flag.
	Invalid string `json:"invalid,omitempty"`
}

// ToolRule blocks the calls of tools for which its condition is true.
type ToolRule struct {
	// What receipts call the rule: a letter or underscore, then up to 63 letters, digits,
	// underscores and dashes.
	Name string `json:"name,omitempty"`

	// A [CEL](https://github.com/google/cel-spec) expression of the type bool. If it
	// fails, for example because an argument is not there, the call is blocked.
	// Variables: `tool`, `args`, `effect`, `high_risk`, `session`, `key`, `dialect` and
	// `provenance`.
	Condition string `json:"condition,omitempty"`
}

// provision builds the interceptor that works under the rules.
func (t *Tools) provision() (*toolcall.Interceptor, error) {
	for _, o := range []struct {
		name, value string
		allowed     []string
	}{
		{"unknown", t.Unknown, []string{"", unknownToolAllow, unknownToolBlock}},
		{"untrusted", t.Untrusted, []string{"", suspectFlag, suspectBlock}},
		{"invalid", t.Invalid, []string{"", suspectFlag, suspectBlock}},
	} {
		if !slices.Contains(o.allowed, o.value) {
			return nil, fmt.Errorf("tools %s %q: give one of %s", o.name, o.value, strings.Join(o.allowed[1:], ", "))
		}
	}
	rules, err := toolcall.NewRules(t.ruleSet())
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return &toolcall.Interceptor{Rules: rules}, nil
}

func (t *Tools) ruleSet() toolcall.RuleSet {
	set := toolcall.RuleSet{
		BlockUnknown: t.Unknown == unknownToolBlock, Allow: t.Allow, Deny: t.Deny,
		Reads: t.Reads, Writes: t.Writes, Sends: t.Sends, HighRisk: t.HighRisk,
		BlockUntrusted: t.Untrusted == suspectBlock, BlockInvalid: t.Invalid == suspectBlock,
	}
	for _, r := range t.Rules {
		set.Rules = append(set.Rules, toolcall.Rule(r))
	}
	return set
}

// inherit takes over the options that a policy does not give itself. One that allows
// unknown tools needs no names of known ones.
func (t *Tools) inherit(app Tools) {
	if len(t.Allow) == 0 && t.Unknown != unknownToolAllow {
		t.Allow = app.Allow
	}
	t.Unknown, t.Untrusted, t.Invalid = cmp.Or(t.Unknown, app.Unknown), cmp.Or(t.Untrusted, app.Untrusted), cmp.Or(t.Invalid, app.Invalid)
	for _, list := range []struct{ own, app *[]string }{
		{&t.Deny, &app.Deny},
		{&t.Reads, &app.Reads},
		{&t.Writes, &app.Writes},
		{&t.Sends, &app.Sends},
		{&t.HighRisk, &app.HighRisk},
	} {
		if len(*list.own) == 0 {
			*list.own = *list.app
		}
	}
	if len(t.Rules) == 0 {
		t.Rules = app.Rules
	}
}

func (t *Tools) options() options {
	return options{
		"unknown":   choiceOption(&t.Unknown, unknownToolAllow, unknownToolBlock),
		"allow":     globsOption(&t.Allow),
		"deny":      globsOption(&t.Deny),
		"reads":     globsOption(&t.Reads),
		"writes":    globsOption(&t.Writes),
		"sends":     globsOption(&t.Sends),
		"high_risk": globsOption(&t.HighRisk),
		"rule":      t.parseRule,
		"untrusted": choiceOption(&t.Untrusted, suspectFlag, suspectBlock),
		"invalid":   choiceOption(&t.Invalid, suspectFlag, suspectBlock),
	}
}

// globsOption adds globs to a list. They are checked here too, where an error has a line.
func globsOption(to *[]string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		args, err := someArguments(d)
		if err != nil {
			return err
		}
		if _, err := toolcall.NewRules(toolcall.RuleSet{Deny: args}); err != nil {
			return d.WrapErr(errors.Unwrap(err))
		}
		*to = append(*to, args...)
		return nil
	}
}

// parseRule adds a rule. It is checked here too, where an error has a line.
func (t *Tools) parseRule(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.Err("rule takes a name and a condition; put the condition between backquotes")
	}
	t.Rules = append(t.Rules, ToolRule{Name: args[0], Condition: args[1]})
	if _, err := toolcall.NewRules(toolcall.RuleSet{Rules: t.ruleSet().Rules}); err != nil {
		return d.WrapErr(err)
	}
	return nil
}
