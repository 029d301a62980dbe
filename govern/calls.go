package govern

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// Tool calls. A call in an answer is decided twice: first by the interceptor, from what
// the call says and what the conversation said before it, and the guards that are asked about
// calls (see guard_call.go), and then by the kernel, from the state that the turn leaves the
// session in. The second decision belongs to the commit,
// because it is taken again if another turn was committed first. So the calls that the
// client gets are known only when the turn is durable.

// A Call is a tool call with what the interceptor found, and after it the guards.
type Call struct {
	wire.ToolCall
	Found toolcall.Decision
	// Standalone: a caller asks about the call by itself, and no text is governed with it.
	Standalone bool

	local  *toolcall.Decision // what the interceptor found, if guards have changed it
	guards Coverage           // what guards were asked
}

// suspect reports whether the interceptor itself has found something.
func (c Call) suspect() bool {
	found := c.Found
	if c.local != nil {
		found = *c.local
	}
	return !found.Allowed || found.Flagged != ""
}

// Decisions are what was decided of a turn and of the calls in its answer.
type Decisions struct {
	Turn kernel.Turn
	// Calls are the calls in the answer, and CallTurns the decisions on them. If the turn is
	// refused, the client gets none, and there are no decisions.
	Calls     []Call
	CallTurns []kernel.Turn
}

// Blocked returns the calls that the client must not get.
func (d Decisions) Blocked() (blocked []wire.BlockedCall) {
	for i, t := range d.CallTurns {
		if t.Call.Decision == kernel.Blocked {
			blocked = append(blocked, wire.BlockedCall{Key: d.Calls[i].Key, Note: BlockedNote(t.Call)})
		}
	}
	return blocked
}

// BlockedNote returns what a model and its users read in place of a blocked call. It names
// the invariant and repeats nothing that the model wrote.
func BlockedNote(c kernel.ToolCall) string {
	return "[" + toolcall.WasBlocked + " " + BlockedReason(c) + "]"
}

// BlockedReason returns the sentence that explains why a call is blocked, beginning with
// the name of the invariant.
func BlockedReason(c kernel.ToolCall) string {
	switch {
	case c.Invariant == kernel.SessionRisk:
		return toolcall.SessionRiskReason
	case c.Rule == ruleNoGuardVerdict && c.Invariant == string(toolcall.OperatorRule):
		return toolcall.NoVerdictReason
	}
	return toolcall.Invariant(c.Invariant).Reason()
}

// ruleUneditable names in receipts why an answer is refused: clients would read its calls
// in different ways, or a blocked call cannot be taken out.
const ruleUneditable = "tool_calls_not_separable"

// ruleManyCalls names in receipts why an answer is refused: it asks for more calls than
// one commit has room for.
const ruleManyCalls = "too_many_tool_calls"

// RefuseUneditable refuses the turn because a blocked call cannot be taken out of its
// answer.
func (j *Judged) RefuseUneditable() error {
	j.evidence.DeniedBy = ruleUneditable
	var err error
	j.Turn, err = j.Opened.decide(j.evidence, j.found)
	return err
}

// blocksCall reports whether a call of the turn is blocked.
func (d Decisions) blocksCall() bool {
	return d.Turn.Call.Decision == kernel.Blocked || len(d.Blocked()) > 0
}

// passesCall reports whether the client gets a call of the answer.
func (d Decisions) passesCall() bool { return !d.Turn.Refused && len(d.Blocked()) < len(d.Calls) }

// unanswered returns the calls that the client does not get, by their ids, for providers
// that wait for results: those that are blocked, or all if the answer is refused. Ids that
// are too long to be remembered are left out.
func (d Decisions) unanswered() (blocked []wire.BlockedCall) {
	for i, c := range d.Calls {
		switch {
		case c.ID == "" || len(c.ID) > maxAnswerID:
		case d.Turn.Refused:
			blocked = append(blocked, wire.BlockedCall{Key: c.ID, Note: removedText})
		case d.CallTurns[i].Call.Decision == kernel.Blocked:
			blocked = append(blocked, wire.BlockedCall{Key: c.ID, Note: BlockedNote(d.CallTurns[i].Call)})
		}
	}
	return blocked
}

// asked returns the ids of the calls that the client gets. Those that are too long to be
// remembered are left out.
func (d Decisions) asked() (ids []string) {
	for i, t := range d.CallTurns {
		if id := d.Calls[i].ID; t.Call.Decision == kernel.Approved && id != "" && len(id) <= maxAnswerID {
			ids = append(ids, id)
		}
	}
	return ids
}

// A talk is what is known of the conversation around a tool call.
type talk struct {
	system, request []string
	seen            []toolcall.Observation
	tools           []wire.ToolDefinition
	goesOn          bool // what came before is kept by the provider
}

// The last of these many bytes of the conversation are remembered for the calls of later
// turns, in APIs whose clients do not resend it.
const (
	maxAskedMemory = 2 << 10
	maxReadMemory  = 6 << 10
)

// readTalk collects what the parts of a call say, except those that an edit replaces. Of a
// conversation with a server of tools nothing is heard but the arguments, which must not
// vouch for themselves, and what the server has said of its tools is remembered.
func (o *Opened) readTalk(call wire.Request, edits []wire.Edit) {
	o.talk = talk{tools: call.Tools, goesOn: call.HistoryPath != ""}
	if len(call.Calls) > 0 {
		for _, t := range o.memory.Tools {
			o.talk.tools = append(o.talk.tools, wire.ToolDefinition{Name: t.Name, ReadOnly: t.ReadOnly, Destructive: t.Destructive})
		}
		return
	}
	for _, p := range call.Parts {
		replaced := slices.ContainsFunc(edits, func(e wire.Edit) bool { return !e.Before && e.Part.Path == p.Path })
		switch {
		case p.Text == "" || replaced:
		case p.Role == wire.System, p.Context:
			o.talk.system = append(o.talk.system, p.Text)
		case loose.SourceOf(p) == detect.Tool:
			o.talk.seen = append(o.talk.seen, toolcall.Observation{Text: p.Text})
		case p.Role == wire.User:
			o.talk.request = append(o.talk.request, p.Text)
		}
	}
}

// wholeTalk is the talk of the call behind what came before it. What the provider keeps of the
// conversation is not in the call, but its end is remembered.
func (o *Opened) wholeTalk() talk {
	whole := talk{system: o.talk.system, tools: o.talk.tools}
	if o.talk.goesOn {
		whole.recall(o.memory)
	}
	if o.Fetches != "" {
		whole.recall(o.asking)
	}
	whole.request, whole.seen = append(whole.request, o.talk.request...), append(whole.seen, o.talk.seen...)
	return whole
}

// recall adds the end of the conversation that a session remembers.
func (t *talk) recall(m memory) {
	t.request = append(t.request, m.Requested)
	for _, text := range m.Read {
		t.seen = append(t.seen, toolcall.Observation{Text: text})
	}
}

// remembered returns the end of the conversation, for the calls of later turns.
func (t talk) remembered() (requested string, read []string) {
	requested = tail(strings.Join(t.request, "\n"), maxAskedMemory)
	left := maxReadMemory
	for _, o := range slices.Backward(t.seen) {
		if left <= 0 {
			break
		}
		read = append(read, tail(o.Text, left))
		left -= len(o.Text)
	}
	slices.Reverse(read)
	return requested, read
}

// A hintedTool is what a server of tools says of one of them.
type hintedTool struct {
	Name        string `json:"n"`
	ReadOnly    *bool  `json:"r,omitempty"`
	Destructive *bool  `json:"d,omitempty"`
}

// maxTools is how many tools of a server a session remembers, and maxToolName how long
// their names can be, in bytes.
const (
	maxTools    = 256
	maxToolName = 128
)

// rememberTools returns the tools that a session knows of after a server has told of some.
func rememberTools(known []hintedTool, told []wire.ToolDefinition) []hintedTool {
	known = slices.Clone(known)
	for _, t := range told {
		known = slices.DeleteFunc(known, func(k hintedTool) bool { return k.Name == t.Name })
		if len(t.Name) <= maxToolName && (t.ReadOnly != nil || t.Destructive != nil) {
			known = append(known, hintedTool{t.Name, t.ReadOnly, t.Destructive})
		}
	}
	return known[max(0, len(known)-maxTools):]
}

// asked returns a call as the interceptor reads it.
func (o *Opened) asked(c wire.ToolCall) toolcall.Call {
	said := o.wholeTalk()
	call := toolcall.Call{
		Name: c.Name, Bare: c.Bare, Arguments: []byte(c.Arguments), Free: c.Free,
		Session: o.PublicID, Key: o.KeyID, Dialect: o.Dialect,
		System: strings.Join(said.system, "\n"), Request: strings.Join(said.request, "\n"), Context: said.seen,
	}
	call.Definition = said.definition(c.Name)
	if call.Definition == nil && c.Bare != "" {
		call.BareDefinition = said.definition(c.Bare)
	}
	return call
}

// definition is what the call says of a tool; nil if it says nothing.
func (t talk) definition(name string) *toolcall.Definition {
	for _, d := range t.tools {
		if d.Name == name {
			return &toolcall.Definition{Description: d.Description, Schema: d.Schema, ReadOnly: d.ReadOnly, Destructive: d.Destructive}
		}
	}
	return nil
}

// Interceptor returns what decides on tool calls.
func (g *Governor) Interceptor() *toolcall.Interceptor {
	if g.Tools == nil {
		return new(toolcall.Interceptor)
	}
	return g.Tools
}

// decideCalls asks the interceptor about the calls of an answer, and records that it read
// them.
func (a *Assessed) decideCalls(ctx context.Context) (calls []Call, err error) {
	if a.calls.Strange() {
		a.evidence.DeniedBy = ruleUneditable
	}
	if a.Unreadable() {
		a.DropCalls()
		return nil, nil
	}
	asked := a.calls.Calls()
	if len(asked) > store.MaxCalls {
		a.Opened.Coverage.Skip("response", "more tool calls than are decided", 0)
		a.evidence.DeniedBy = ruleManyCalls
		return nil, nil
	}
	return a.Opened.decideAll(ctx, asked)
}

// decideAll asks the interceptor about calls, each by itself.
func (o *Opened) decideAll(ctx context.Context, asked []wire.ToolCall) (calls []Call, err error) {
	flagged := false
	for _, c := range asked {
		found, err := o.governor.Interceptor().Decide(ctx, o.asked(c))
		if err != nil {
			return nil, fmt.Errorf("deciding a tool call: %w", err)
		}
		if o.fetchesBlocked(c.ID) {
			found.Allowed, found.Invariant, found.Rule = false, toolcall.OperatorRule, ruleFetched
		}
		flagged = flagged || !found.Allowed || found.Flagged != ""
		calls = append(calls, Call{ToolCall: c, Found: found})
	}
	if len(calls) > 0 {
		o.Coverage.Ran(DetectorToolCall, flagged)
	}
	return calls, nil
}

// addCalls takes pieces of the calls of an answer.
func (a *Assessed) addCalls(deltas []wire.CallDelta) {
	if len(deltas) > 0 && a.calls.Add(deltas) != nil {
		a.evidence.DeniedBy = ruleUneditable
	}
}

// mayCall finds what looks like a call, or a piece of one, in an answer that cannot be read: the
// names of calls in all dialects, of what brings their arguments, and of what refers to them.
var mayCall = regexp.MustCompile(`(?i)tool_?(?:call|use)|function_?call|_call\b|call_id|approval_request|input_json|partial_?(?:json|args)|"arguments"`)

// SuspectCalls makes Judge refuse an answer with a part that cannot be read, if that may be
// a call: some client may read it.
func (a *Assessed) SuspectCalls(unread []byte) {
	unread = bytes.ReplaceAll(unread, []byte{0}, nil) // Python's json reads UTF-16 and UTF-32 unasked
	if mayCall.Match(unread) || bytes.Contains(unread, []byte(`\u00`)) {
		a.RefuseUnread()
	}
}

// RefuseUnread makes Judge refuse an answer whose calls, if it has any, cannot be read.
func (a *Assessed) RefuseUnread() { a.evidence.DeniedBy = ruleUneditable }

// Unreadable reports whether Judge will refuse the answer for calls that clients read in
// different ways, or that cannot be read.
func (a *Assessed) Unreadable() bool { return a.evidence.DeniedBy == ruleUneditable }

// wholeCalls are calls as one frame would bring them.
func wholeCalls(calls []wire.ToolCall) []wire.CallDelta {
	deltas := make([]wire.CallDelta, len(calls))
	for i, c := range calls {
		deltas[i] = wire.CallDelta{ToolCall: c, Whole: true}
	}
	return deltas
}

// DropCalls forgets the calls of an answer that does not leave. Nobody decides on them.
func (a *Assessed) DropCalls() {
	a.calls = wire.CallGatherer{}
	a.Opened.Coverage.notInspected(DetectorToolCall, "tool_call: it did not leave, and was not decided on")
}

// record is what the receipt of a call says of it, but for the kernel's own part.
func (c Call) record() kernel.ToolCall {
	return kernel.ToolCall{
		Tool: toolName(c.Name), Invariant: string(c.Found.Invariant), Rule: c.Found.Rule, Effect: c.Found.Effect, HighRisk: c.Found.HighRisk,
		Provenance: c.Found.Provenance, Flagged: string(c.Found.Flagged), Standalone: c.Standalone,
	}
}

// toolName returns the name of a tool as receipts show it. A model may write anything.
func toolName(name string) string {
	if name == "" {
		return "unnamed"
	}
	return plainName(name)
}

// evidence is what a call brings to its session: nothing, unless it breaks an invariant.
func (c Call) evidence() kernel.Evidence { return kernel.Evidence{Scores: c.Found.Invariant.Scores()} }

// decisions takes the kernel's decisions on the calls, one after the other from the state
// that the turn leaves, or the call before.
func (j *Judged) decisions() (d Decisions, err error) {
	d.Turn, d.Calls = j.Turn, j.calls
	if j.Turn.Refused && j.call == nil {
		return d, nil
	}
	state := j.Turn.Next
	for _, c := range j.calls {
		turn, err := j.Opened.governor.Kernel.RecordToolCall(state, c.record(), c.evidence(), j.Opened.Mode)
		if err != nil {
			return d, fmt.Errorf("recording a tool call: %w", err)
		}
		d.CallTurns = append(d.CallTurns, turn)
		state = turn.Next
	}
	return d, nil
}

// sealCalls makes the receipts of the calls of an answer, or of those that are asked for with
// the call of the turn. They follow the receipt of their turn in the session's chain.
func (j *Judged) sealCalls(s store.Session, d Decisions, turn *Receipt) (receipts []*Receipt, entries []store.Receipt, err error) {
	prev, part := turn.Link(), answeredCall
	if j.call != nil {
		part = requestedCall
	}
	for i, t := range d.CallTurns {
		c := d.Calls[i]
		r := turn.Receipt // who, when and where
		record := j.Opened.governor.Kernel.Receipt(t)
		record.SessionID, record.Turn, record.Timestamp = r.SessionID, r.Turn, r.Timestamp
		record.Prev, record.Version, record.Setup, record.Resent = prev, r.Version, r.Setup, r.Resent
		record.Nonce, record.TraceID = callNonce(turn.TurnID), r.TraceID
		record.Endpoint, record.Dialect, record.Model = r.Endpoint, r.Dialect, r.Model
		if !t.Refused {
			record.Outcome = r.Outcome
		}
		out := &Receipt{Turn: t, TurnID: turn.TurnID, PublicID: turn.PublicID, Kind: store.KindToolCall}
		record.ArgumentsCommitment, out.Openings.Arguments = commit(s.Secret, &record, kernel.CommittedArguments, c.Arguments)
		record.Coverage = callCoverage(part, c, record.Outcome)
		if out.record, err = record.Seal(); err != nil {
			return nil, nil, fmt.Errorf("sealing the receipt of a tool call: %w", err)
		}
		prev, out.Receipt = record.Link(), record
		entry, err := out.entry(s.Key, j.Opened.counted(s, turn))
		if err != nil {
			return nil, nil, err
		}
		receipts, entries = append(receipts, out), append(entries, entry)
	}
	return receipts, entries, nil
}

// Where a call stands that the model asks for, and one that the caller asks for.
const (
	answeredCall  = "response.tool_call"
	requestedCall = "request.tool_call"
)

// callCoverage says that the interceptor read a call, what guards said of it, and whether it left.
func callCoverage(part string, c Call, outcome kernel.Outcome) kernel.Coverage {
	var coverage Coverage
	coverage.Ran(DetectorToolCall, c.suspect())
	coverage.Detectors, coverage.Skipped = append(coverage.Detectors, c.guards.Detectors...), slices.Clone(c.guards.Skipped)
	size := len(c.Name) + len(c.Arguments)
	coverage.Inspect(part, DetectorToolCall, size)
	if c.Found.Unread > 0 {
		coverage.Skip("request.context", "more than a tool call is compared with", c.Found.Unread)
	}
	if c.Found.SchemaUnread {
		coverage.Skip("request.tool.schema", "it cannot be read, so the arguments were not checked against it", 0)
	}
	if outcome == kernel.Answered || outcome == kernel.ProviderFailed {
		coverage.BytesForwarded = size
	}
	return coverage.Coverage
}

// RecordCalls ends a turn of calls that a caller asks a server of tools for. They are
// committed together: if one is blocked, none of them is sent on.
func (o *Opened) RecordCalls(ctx context.Context, asked []wire.ToolCall) (*Judged, error) {
	calls, err := o.decideAll(ctx, asked)
	if err != nil {
		return nil, err
	}
	o.inquire(ctx, requestedCall, calls, o.talk.seen, func(i int) toolcall.Call { return o.asked(calls[i].ToolCall) }).heed()
	return o.recordCalls(calls)
}

func (o *Opened) recordCalls(calls []Call) (*Judged, error) {
	j, err := o.RecordToolCall(calls[0])
	if err != nil {
		return nil, err
	}
	j.calls = calls[1:]
	return j, nil
}
