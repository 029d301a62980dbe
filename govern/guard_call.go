package govern

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/model"
	"github.com/caddy-lex/lex/wire"
)

// The interceptor knows where a call goes and what a command does. Whether the call serves
// what the user asked for it can only guess from words. Guards are asked that, about calls
// that the interceptor lets pass: they can block one, and never let one pass that is blocked.
// They are asked once, before the commit, which may decide on the same calls again.

const (
	// maxAskedCalls is about how many calls of one answer a guard is asked.
	maxAskedCalls = 32
	// maxReadByGuards is how much of what the agent has read a guard is shown, in bytes: what
	// the interceptor compares a call with.
	maxReadByGuards = 64 << 10
)

// Why a guard is not asked about a call.
const (
	unknownTalk   = "the conversation is not known"
	tooManyCalls  = "more calls than it is asked about"
	answerRefused = "the answer was refused"
)

// wantsCall reports whether the guard is to be asked about a call that the interceptor has
// decided on. Nothing is asked about what is blocked. With [AskWhen] the call also has to do
// more than read, be flagged, or take its arguments from a text that gives instructions.
func (g *Guard) wantsCall(d toolcall.Decision) bool {
	doubtful := d.Effect != kernel.ToolReads || d.Flagged != "" || d.Provenance == kernel.FromInstruction
	return d.Allowed && slices.Contains(g.Roles, model.RoleToolCall) && (g.Ask != AskWhen || doubtful)
}

// urgency orders the calls of an answer, of which a guard is not asked about all: those that
// an attack would ask for come first.
func urgency(d toolcall.Decision) int {
	switch {
	case d.HighRisk || d.Flagged != "" || d.Provenance == kernel.FromInstruction:
		return 0
	case d.Effect == kernel.ToolReads:
		return 2
	}
	return 1
}

// readBefore is what an agent has read before it asks for calls.
type readBefore struct {
	text  string // without long runs of blanks
	whole int    // bytes, of which the text may be the end
}

func newReadBefore(seen []toolcall.Observation) (r readBefore) {
	var texts []string
	for _, o := range seen {
		if text := model.Condense(o.Text); strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	all := strings.Join(texts, "\n\n")
	return readBefore{tail(all, maxReadByGuards), len(all)}
}

// end returns the end of it, and how many bytes stand before that.
func (r readBefore) end(size int) (text string, unread int) {
	text = tail(r.text, size)
	return text, r.whole - len(text)
}

// questionOnCall returns the question about a call but for what was read before it, and how
// many bytes of its arguments it leaves out.
func questionOnCall(c toolcall.Call) (t model.GuardText, cut int) {
	t = model.GuardText{Role: model.RoleToolCall, Prompt: c.Request}
	t.Call = model.GuardCall{Name: c.Name, Application: c.System}
	t.Call.Arguments, cut = model.CondenseArguments(string(c.Arguments))
	if d := cmp.Or(c.Definition, c.BareDefinition); d != nil {
		t.Call.Definition = strings.TrimSpace(d.Description + "\n" + string(d.Schema))
	}
	return t, cut
}

// An inquiry asks guards about calls. It ends with heed or drop.
type inquiry struct {
	opened   *Opened
	calls    []Call
	opinions []opinion // on each call
	askings  []asking
	asked    sync.WaitGroup
	cancel   context.CancelFunc
	ended    bool
}

// inquire begins to ask the guards about calls, all at once, so that they are asked while
// an answer is judged. part is where the calls stand, seen what was read before them, and read
// returns a call as the interceptor has read it. Nothing of the turn changes before heed.
func (o *Opened) inquire(ctx context.Context, part string, calls []Call, seen []toolcall.Observation, read func(i int) toolcall.Call) *inquiry {
	ctx, cancel := context.WithCancel(ctx)
	q := &inquiry{opened: o, calls: calls, opinions: make([]opinion, len(calls)), cancel: cancel}
	before := sync.OnceValue(func() readBefore { return newReadBefore(seen) })
	texts, cuts := make([]model.GuardText, len(calls)), make([]int, len(calls))
	for _, g := range o.governor.Guards {
		for n, i := range g.callsOf(calls) {
			if texts[i].Role == "" {
				texts[i], cuts[i] = questionOnCall(read(i))
			}
			a := asking{guard: g, question: i, text: texts[i]}
			a.text.Text, a.left = before().end(g.Model.Reads())
			if q.ask(a, n) && cuts[i] > 0 {
				calls[i].guards.Skip(part, beyondReach(g.detector(model.RoleToolCall)), cuts[i])
			}
		}
	}
	for i := range q.askings {
		a := &q.askings[i]
		q.asked.Go(func() { a.ask(ctx, o.Namespace) })
	}
	return q
}

// callsOf returns which calls the guard is to be asked about, the most urgent first.
func (g *Guard) callsOf(calls []Call) (which []int) {
	for i, c := range calls {
		if g.wantsCall(c.Found) {
			which = append(which, i)
		}
	}
	slices.SortStableFunc(which, func(i, j int) int { return cmp.Compare(urgency(calls[i].Found), urgency(calls[j].Found)) })
	return which
}

// ask reports whether a guard is to be asked about the nth call that it wants, and otherwise
// records why not. With [AskWhen] there is nothing to ask where the agent has read nothing.
func (q *inquiry) ask(a asking, n int) bool {
	q.opened.fillBudgets()
	var why string
	nothing := a.guard.Ask == AskWhen && a.text.Text == ""
	switch known := a.text.Prompt != "" || a.text.Call.Application != ""; {
	case nothing && known:
		return false
	case nothing:
		why = unknownTalk
	case n >= maxAskedCalls:
		why = tooManyCalls
		q.opinions[a.question].denied = q.opinions[a.question].denied || a.guard.Required
	case !q.opened.affords(a.guard):
		why = overBudget
	default:
		q.askings = append(q.askings, a)
		return true
	}
	q.calls[a.question].guards.notGuarded(a.guard.detector(model.RoleToolCall), why)
	return false
}

// heed waits for what the guards say, and makes it count.
func (q *inquiry) heed() {
	if q.ended {
		return
	}
	q.asked.Wait()
	q.end()
	waited, coverage := make(map[string]time.Duration), q.opened.Coverage
	for _, a := range q.askings {
		name, on := a.guard.detector(model.RoleToolCall), &q.calls[a.question].guards
		q.opinions[a.question].add(a, question{})
		on.guarded(a)
		on.waitedFor(map[string]time.Duration{name: a.took})
		waited[name] = max(waited[name], a.took)
	}
	for i := range q.calls {
		c := &q.calls[i]
		q.opinions[i].moveCall(c)
		for _, run := range c.guards.Detectors {
			coverage.worsen(run)
		}
		if c.Standalone { // its receipt has the coverage of the turn
			coverage.Skipped = append(coverage.Skipped, c.guards.Skipped...)
		}
	}
	coverage.waitedFor(waited)
}

// drop gives up: nobody gets the calls. It does nothing after heed.
func (q *inquiry) drop() {
	if q.ended {
		return
	}
	q.end()
	q.asked.Wait()
	for _, a := range q.askings {
		q.opened.Coverage.notGuarded(a.guard.detector(model.RoleToolCall), answerRefused)
	}
}

func (q *inquiry) end() {
	q.ended = true
	q.cancel()
}

// moveCall blocks a call that guards find to serve only what a text asks for, or on which one
// that must give a verdict gave none. It needs the same certainty as a finding in an answer;
// what is less certain is flagged.
func (op opinion) moveCall(c *Call) {
	p, local := op.verdict.Highest(), c.Found
	switch {
	case p >= 0.5 && fuse(0, p) >= 0.5:
		c.Found.Allowed, c.Found.Invariant, c.Found.Reason, c.Found.Flagged = false, toolcall.InjectedAction, toolcall.InjectedAction.Reason(), ""
	case op.denied:
		c.Found.Allowed, c.Found.Invariant, c.Found.Rule, c.Found.Flagged = false, toolcall.OperatorRule, ruleNoGuardVerdict, ""
		c.Found.Reason = BlockedReason(kernel.ToolCall{Invariant: string(toolcall.OperatorRule), Rule: ruleNoGuardVerdict})
	case p >= 0.5 && c.Found.Flagged == "":
		c.Found.Flagged = toolcall.InjectedAction
	default:
		return
	}
	c.local = &local
}

// CheckCall asks the guards about a call that an agent asks about by itself, on which the
// interceptor has decided, and ends the turn with what follows.
func (o *Opened) CheckCall(ctx context.Context, part string, c toolcall.Call, found toolcall.Decision) (*Judged, error) {
	calls := []Call{{ToolCall: wire.ToolCall{Name: c.Name, Arguments: string(c.Arguments)}, Found: found, Standalone: true}}
	o.inquire(ctx, part, calls, c.Context, func(int) toolcall.Call { return c }).heed()
	return o.RecordToolCall(calls[0])
}
