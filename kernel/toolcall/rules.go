package toolcall

import "github.com/caddy-lex/lex/kernel"

// Rules are what an operator says of tools, beside the invariants.
type Rules struct{}

// apply blocks a call that a rule forbids.
func (r *Rules) apply(_ Call, d Decision) Decision { return d }

// effect is what the tool does to the world: by the operator's word, or else by its
// definition and its name.
func (r *Rules) effect(Call) (e kernel.ToolEffect, highRisk bool) { return kernel.ToolOther, false }
