package toolcall

import (
	"context"
	"fmt"
	"regexp"
	"sync"

	"cel.dev/cel-go/cel"
)

// A Condition is an operator's rule in the Common Expression Language (CEL). It blocks
// the calls for which it is true.
//
// Its variables are tool, effect, session, key, dialect and provenance (strings, "" if
// unknown), high_risk (a bool), and args, the object of arguments, empty if there are
// none. A number in args is an int if it is whole, however it is written, and a double
// otherwise. The functions are those of the language; the extensions of cel-go are left out,
// because one of them can make a text of gigabytes that no cost foresees.
//
// A condition that fails blocks too: a member that args does not have, values that do not
// compare, or more work than [MaxConditionCost]. It is not asked about arguments that
// nobody can read, which are blocked anyway.
type Condition struct {
	// Name is what receipts call the rule: a letter or underscore, then up to 63 letters,
	// digits, underscores and dashes.
	Name string
	// Expression has the type bool.
	Expression string
}

// MaxConditionCost bounds what one condition may cost for one call, in cel-go's units. A
// pattern of 16 characters may be looked for in half a megabyte. What costs the most
// takes a second or two, which only a rule with loops in loops or a large pattern does.
const MaxConditionCost = 200_000

var conditionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// A program is a condition that was compiled.
type program struct {
	name string
	cel.Program
}

// conditionEnv knows the variables of conditions. Nothing in it reads a clock, a file or
// the network.
var conditionEnv = sync.OnceValues(func() (*cel.Env, error) {
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

func newPrograms(conditions []Condition) ([]program, error) {
	seen := make(map[string]bool)
	var out []program
	for _, c := range conditions {
		if !conditionName.MatchString(c.Name) {
			return nil, fmt.Errorf("%q is not the name of a rule: give a letter, then up to 63 letters, digits, underscores and dashes", c.Name)
		}
		if seen[c.Name] {
			return nil, fmt.Errorf("rule %s is given twice", c.Name)
		}
		seen[c.Name] = true
		p, err := compile(c.Expression)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", c.Name, err)
		}
		out = append(out, program{c.Name, p})
	}
	return out, nil
}

func compile(expression string) (cel.Program, error) {
	env, err := conditionEnv()
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("it is a %s and not a bool; write a comparison", checked.OutputType())
	}
	return env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(MaxConditionCost), cel.InterruptCheckFrequency(128))
}

// condition returns the name of the first condition that is true or fails; empty if there
// is none.
func (r *Rules) condition(ctx context.Context, c Call, d Decision) (string, error) {
	if len(r.programs) == 0 || d.Invariant == MalformedArguments || d.Invariant == UnreadableCall {
		return "", nil
	}
	args, err := c.object()
	if err != nil { // nobody can say what the rules would say
		return r.programs[0].name, nil
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
			return p.name, nil
		}
	}
	return "", nil
}
