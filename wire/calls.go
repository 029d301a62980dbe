package wire

import (
	"cmp"
	"slices"
	"strings"
)

// maxCallBytes bounds the calls of one stream: their keys, ids, names and arguments.
const maxCallBytes = MaxFrame

// A CallGatherer puts the calls of one stream together from what its frames bring. The
// zero value is ready for use. It is not safe for concurrent use.
type CallGatherer struct {
	calls []*gatheredCall // in the order of their beginning
	byKey map[string]*gatheredCall
	bytes int
}

type gatheredCall struct {
	call      ToolCall // without its arguments
	arguments strings.Builder
	whole     bool // the arguments came whole, or were told again as a whole
}

// Add takes what the next frame brings. An error wraps [ErrCalls]: clients put the calls
// together in different ways ([ToolCall.Unclear] is one), or there are more than 16 Ki of
// them, or more than 16 MiB. Then Calls are not all of them.
func (g *CallGatherer) Add(deltas []CallDelta) error {
	for _, d := range deltas {
		g.bytes += len(d.Key) + len(d.ID) + len(d.Name) + len(d.Bare) + len(d.Arguments)
		c := g.at(d)
		if len(g.calls) > maxParts || g.bytes > maxCallBytes {
			return cannotEdit("they are too many or too large")
		}
		if err := c.add(d); err != nil {
			return err
		}
	}
	return nil
}

// at returns the call that a piece belongs to.
func (g *CallGatherer) at(d CallDelta) *gatheredCall {
	c := g.byKey[d.Key]
	if c == nil {
		c = &gatheredCall{call: ToolCall{Key: d.Key, Choice: d.Choice}}
		if g.byKey == nil {
			g.byKey = make(map[string]*gatheredCall)
		}
		g.byKey[d.Key] = c
		g.calls = append(g.calls, c)
	}
	return c
}

// add takes a piece. Of two ids or names some clients take the first, some the last and
// some both, one behind the other. Of pieces and a different whole some take the one and
// some the other.
func (c *gatheredCall) add(d CallDelta) error {
	switch {
	case d.Unclear:
		return cannotEdit("clients put them together in different ways")
	case d.Choice != c.call.Choice, clash(c.call.ID, d.ID), clash(c.call.Name, d.Name), clash(c.call.Bare, d.Bare):
		return cannotEdit("a piece does not belong to the call that it names")
	case c.whole && !d.Whole && d.Arguments != "":
		return cannotEdit("arguments go on behind their end")
	case d.Whole && (c.whole || c.arguments.Len() > 0) && d.Arguments != c.arguments.String():
		return cannotEdit("arguments differ from their pieces")
	}
	c.call.ID, c.call.Name = cmp.Or(c.call.ID, d.ID), cmp.Or(c.call.Name, d.Name)
	c.call.Bare = cmp.Or(c.call.Bare, d.Bare)
	c.call.Free, c.whole = c.call.Free || d.Free, c.whole || d.Whole
	c.call.More = c.call.More || d.More
	if !d.Whole || c.arguments.Len() == 0 {
		c.arguments.WriteString(d.Arguments)
	}
	return nil
}

// clash reports whether something is told again, and differently.
func clash(before, now string) bool { return before != "" && now != "" && before != now }

// Strange reports whether one of the calls so far is of a form that the dialect does not have:
// without a name, and with more than a call has.
func (g *CallGatherer) Strange() bool {
	return slices.ContainsFunc(g.calls, func(c *gatheredCall) bool { return c.call.Name == "" && c.call.More })
}

// Calls returns the calls so far, by choice and then in the order of their beginning.
func (g *CallGatherer) Calls() []ToolCall {
	calls := make([]ToolCall, 0, len(g.calls))
	for _, c := range g.calls {
		call := c.call
		call.Arguments = c.arguments.String()
		calls = append(calls, call)
	}
	slices.SortStableFunc(calls, func(a, b ToolCall) int { return cmp.Compare(a.Choice, b.Choice) })
	return calls
}
