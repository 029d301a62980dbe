package toolcall

import (
	"context"
	"fmt"
	"regexp"
	"sync"

	"cel.dev/cel-go/cel"
)

// A Rule of the operator blocks the calls for which its condition is true.
//
// The condition is written in the Common Expression Language (CEL). Its variables are
// tool, effect, session, key, dialect and provenance (strings, "" if unknown), high_risk
// (a bool), and args, the object of arguments, empty if there are none. A number in args
// is an int if it is whole, however it is written, and a double otherwise. The functions
// are those of the language; the extensions of cel-go are left out, because one of them
// can make a text of gigabytes that no cost foresees.
//
// A condition that fails blocks too: a member that args does not have, values that do not
// compare, or more work than [MaxRuleCost]. It is not asked about arguments that nobody
// can read, which are blocked anyway.
type Rule struct {
	// Name is what receipts call the rule: a letter or underscore, then up to 63 letters,
	// digits, underscores and dashes.
	Name string
	// Condition has the type bool.
	Condition string
}

// MaxRuleCost bounds what one rule may cost for one call, in cel-go's units. A pattern of
// 16 characters may be looked for in a quarter of a megabyte. What costs the most takes
// half a second, which only loops in loops over thousands of values do: cel-go counts them
// in quadratic time.
const MaxRuleCost = 100_000

var ruleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// A program is a rule that was compiled.
type program struct {
	name string
	cel.Program
}

// ruleEnv knows the variables of conditions. Nothing in it reads a clock or the network,
// and a file only if a condition names a time zone.
var ruleEnv = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("tool", cel.StringType),
		cel.Variable("args", cel.DynType),
		cel.Variable("effect", cel.StringType),
		cel.Variable("high_risk", cel.BoolType),
		cel.Variable("session", cel.StringType),
		cel.Variable("key", cel.StringType),
		cel.Variable("dialect", cel.StringType),
		cel.Variable("provenance", cel.StringType),
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	)
})

func newPrograms(rules []Rule) ([]program, error) {
	seen := make(map[string]bool)
	var out []program
	for _, r := range rules {
		if !ruleName.MatchString(r.Name) {
			return nil, fmt.Errorf("%q is not the name of a rule: give a letter, then up to 63 letters, digits, underscores and dashes", r.Name)
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("rule %s is given twice", r.Name)
		}
		seen[r.Name] = true
		p, err := compile(r.Condition)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		out = append(out, program{r.Name, p})
	}
	return out, nil
}

func compile(condition string) (cel.Program, error) {
	env, err := ruleEnv()
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(condition)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("it has the type %s; write a comparison, which is a bool", checked.OutputType())
	}
	return env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(MaxRuleCost), cel.InterruptCheckFrequency(128))
}

// applies returns the name of the first rule whose condition is true or fails; empty if
// there is none.
func (r *Rules) applies(ctx context.Context, c Call, d Decision) (string, error) {
	if len(r.programs) == 0 || d.Invariant == MalformedArguments || d.Invariant == UnreadableCall {
		return "", nil
	}
	args, err := c.object()
	if err != nil {
		return r.programs[0].name, nil //nolint:nilerr // what a rule cannot be asked about is blocked
	}
	variables := map[string]any{
		"tool": c.Name, "args": args, "effect": string(d.Effect), "high_risk": d.HighRisk,
		"session": c.Session, "key": c.Key, "dialect": c.Dialect, "provenance": string(d.Provenance),
	}
	for _, p := range r.programs {
		result, _, err := p.ContextEval(ctx, variables)
		if gone := ctx.Err(); gone != nil {
			return "", fmt.Errorf("deciding a tool call: %w", gone)
		}
		if err != nil || result.Value() != false {
			return p.name, nil //nolint:nilerr // a condition that fails blocks
		}
	}
	return "", nil
}
