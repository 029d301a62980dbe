package toolcall

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/regex"
)

// A call may carry others: a gateway is given the name of a tool and its arguments, a planner a
// list of steps, a browser a list of what to click. Each is decided like a call of its own, or
// one more layer would be enough to get past whatever goes by the name of a tool.

const (
	// maxSteps bounds the calls that one call carries, and maxStepWork the bytes that are read
	// to find them. A call with more is blocked by [UnreadableCall]: what nobody has looked
	// at would pass behind what somebody has.
	maxSteps    = 128
	maxStepWork = 4 << 20
)

// withSteps returns a call with the calls that it carries, those that steps carry among them.
func (c Call) withSteps() Call {
	gateway := gateways.Matches(c.Name)
	if !c.stepped && (gateway || stepSigns.Matches(string(c.Arguments))) {
		f := stepFinder{of: c, gateway: gateway}
		f.walk(jsontext.Value(c.Arguments), "", 0)
		c.carried, c.dense = f.found, f.dense
	}
	c.stepped = true
	return c
}

var (
	// stepSigns are in all names below, however they are spelt, or may be where letters are
	// escaped.
	stepSigns = regex.ScreenOf(`(?i)tool|recipient|function|steps|actions|calls|plan|tasks|sequence|operations|requests|batch|\\u`)

	// gateways are tools that call the tool whose name and arguments they are given.
	gateways = regex.ScreenOf(`(?i)(?:call|invoke|run|execute|exec|use|dispatch)(?:[ _.-]?[a-z]{1,12})?[ _.-]?(?:tool|function)s?$|(?:tool|function)s?[ _./-]?(?:call|invoke|run|execute|dispatch)$`)

	// toolKeys name the tool of a step wherever it stands, stepKeys only in a list of steps.
	toolKeys = words("tool toolname recipientname functionname")
	stepKeys = words("name function action operation service type method call step")

	// stepArguments hold the arguments of a step.
	stepArguments = words("args arguments parameters params input toolinput toolargs kwargs")

	// stepLists hold steps.
	stepLists = words("steps actions tooluses toolcalls calls plan tasks sequence operations requests batch functioncall function")
)

// stepFinder collects the steps of a call.
type stepFinder struct {
	of      Call
	gateway bool // it calls what it is given
	found   []Call
	work    int
	dense   bool // there is more than is looked for
}

// walk looks for steps in a value that stands under a key.
func (f *stepFinder) walk(v jsontext.Value, key string, depth int) {
	f.work += len(v)
	f.dense = f.dense || f.work > maxStepWork || len(f.found) > maxSteps
	if f.dense || depth > maxArgumentDepth {
		return // readArguments refuses what is nested more deeply
	}
	switch v.Kind() {
	case '[':
		var list []jsontext.Value
		if json.Unmarshal(v, &list) == nil {
			for _, e := range list {
				f.walk(e, key, depth+1)
			}
		}
	case '{':
		var members map[string]jsontext.Value
		if json.Unmarshal(v, &members) != nil {
			return
		}
		if name, arguments := stepIn(members, stepLists[key], f.gateway && depth == 0); name != "" {
			f.add(name, arguments)
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			f.walk(members[name], fold(name), depth+1)
		}
	case '"':
		if text, is := quotedJSON(v); is && !f.writes(key) {
			f.walk(text, key, depth+1)
		}
	}
}

// quotedJSON returns the object or the list that a string holds.
func quotedJSON(v jsontext.Value) (jsontext.Value, bool) {
	if begins := bytes.TrimLeft(v[1:], " \t"); strings.IndexByte(`{[\`, begins[0]) < 0 {
		return nil, false // most strings are words
	}
	var text string
	if json.Unmarshal(v, &text) != nil {
		return nil, false
	}
	inner := jsontext.Value(strings.TrimSpace(text))
	return inner, len(inner) > 0 && (inner[0] == '{' || inner[0] == '[')
}

// writes reports whether a member is what a file will say, which nobody calls.
func (f *stepFinder) writes(key string) bool {
	return (newText[key] || roleOfKey(key) == roleProse) && readTool(f.of.Name).writes
}

// stepIn returns the tool and the arguments of an object that is a step. In a list of steps the
// arguments may stand beside the name, and one member may be both: {"navigate": "https://…"}. A
// gateway may call the tool's name just that.
func stepIn(members map[string]jsontext.Value, listed, gateway bool) (name string, arguments jsontext.Value) {
	rest := make(map[string]jsontext.Value, len(members))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		folded, value := fold(key), members[key]
		switch {
		case name == "" && value.Kind() == '"' && (toolKeys[folded] || listed && stepKeys[folded] || gateway && folded == "name"):
			_ = json.Unmarshal(value, &name)
		case arguments == nil && stepArguments[folded]:
			arguments = value
		default:
			rest[key] = value
		}
	}
	switch {
	case name != "" && arguments != nil:
	case name != "" && listed:
		arguments, _ = json.Marshal(rest)
	case listed && len(rest) == 1 && arguments == nil:
		for key, value := range rest {
			name, arguments = key, value
		}
		if strings.HasPrefix(name, "$") { // an operator of a database
			return "", nil
		}
	default:
		return "", nil
	}
	return name, arguments
}

// add notes a step with the conversation of the call that carries it.
func (f *stepFinder) add(name string, arguments jsontext.Value) {
	step := f.of
	step.Name, step.Bare, step.Definition, step.BareDefinition, step.stepped = name, bareName(name), nil, nil, true
	step.Arguments = arguments
	if arguments.Kind() == '"' {
		var text string
		if json.Unmarshal(arguments, &text) != nil {
			return
		}
		step.Arguments, step.Free = []byte(text), !strings.HasPrefix(strings.TrimSpace(text), "{")
	}
	if kind := jsontext.Value(step.Arguments).Kind(); !step.Free && kind != '{' {
		step.Arguments, step.Free = arguments, true
	}
	f.found = append(f.found, step)
}

// bareName returns what stands behind the namespace of a tool, as in functions.read_file; "" if
// there is none.
func bareName(name string) string {
	if at := strings.LastIndexAny(name, "./"); at >= 0 {
		return name[at+1:]
	}
	return ""
}

// stepping judges the calls that a call carries. What one of them breaks, or comes near to, the
// call does.
func (r *reading) stepping(steps []Call, dense bool) {
	if dense {
		r.unreadable()
	}
	for _, step := range steps {
		step = step.asObject()
		leaves, err := readArguments(step.Arguments, r.budget)
		if err != nil {
			continue // the arguments of the whole call were read
		}
		inner := newReading(step, leaves, r.budget, r)
		inner.judge(step, leaves)
		for v := range inner.broken {
			r.breaks(v)
		}
		if inner.near != "" {
			r.flags(inner.near)
		}
	}
}

// graver returns the effect that touches more of the world.
func graver(a, b kernel.ToolEffect) kernel.ToolEffect {
	order := []kernel.ToolEffect{kernel.ToolReads, kernel.ToolOther, kernel.ToolWrites, kernel.ToolSends}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}
