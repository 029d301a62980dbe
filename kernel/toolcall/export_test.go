package toolcall

import "context"

// MaxWork is the budget of one call.
const MaxWork = maxWork

// Invariants is the closed set, in the order of precedence.
var Invariants = precedence

// Work decides a call and tells what it took, in the budget's units.
func Work(c Call) (Decision, int) {
	b := &budget{ctx: context.Background()}
	d, err := decide(c, b)
	if err != nil {
		panic(err) // only a context that ends gives one
	}
	return d, b.used
}

// EffectOf is the effect of a tool without an operator's word on it.
var EffectOf = effectOf
