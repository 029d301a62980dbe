package govern

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/model"
	"github.com/caddy-lex/lex/wire"
)

const (
	// maxJudged is how many bytes of an answer are judged; the rest of a longer
	// one is recorded as skipped.
	maxJudged = 256 << 10
	// judgedOverlap is by how many bytes two windows of the judge overlap, so that
	// every phrase is complete in one of them.
	judgedOverlap = 512
)

// Judged is a turn whose answer was judged, or that has none. It is ready to be
// committed.
type Judged struct {
	Opened *Opened
	// Turn is the kernel's decision on the request and its answer.
	Turn kernel.Turn
	// Judgement is the judgement on the answer, and JudgeModel names the judge that
	// gave it. Judgement is nil in a turn without an answer.
	Judgement  *detect.Judgement
	JudgeModel string
	// Measured compares the answer with the prompt and the session. It is nil if there
	// was nothing to measure.
	Measured *detect.Measured
	first    *kernel.Turn // the decision on the request, see [Assessed]
	answerID string
	pending  bool
	input    *Input // which nobody changes any more
	evidence kernel.Evidence
	found    kernel.Output
	output   detect.Vector         // embedding of the answer; nil when there was none
	call     *Call                 // recorded instead of a governed text
	calls    []Call                // in the answer, or asked for with the call
	thoughts *thoughts             // in the answer; nil in a tool call
	tools    []wire.ToolDefinition // that the answer tells of
}

// Judge judges the model's answer, even if the client has left, because the receipt
// records the text that the client got. The alternatives of an answer are judged one
// by one, because one may decline what another does. At most maxJudged bytes of all
// alternatives together are read.
func (a *Assessed) Judge(ctx context.Context, answer Answer) (*Judged, error) {
	if err := a.assessFromTool(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	began := time.Now()
	calls, err := a.decideCalls(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	if a.Opened.fetchesRefused() && len(answer)+len(calls) > 0 {
		a.evidence.DeniedBy = ruleFetched
	}
	asked := a.inquire(ctx, calls)
	defer asked.drop()
	if len(answer) == 0 {
		j := a.NotJudged("no output text")
		j.calls = calls
		if j.Turn, err = a.Opened.decide(j.evidence, kernel.Output{}); err == nil && !j.Turn.Refused {
			asked.heed()
		}
		add(&a.Opened.Timing.Conclude, began)
		return j, err
	}
	g, o := a.Opened.governor, a.Opened
	j := a.judged()
	j.calls = calls
	judgement, by, deniedBy := a.findCapitulation(ctx, answer)
	if deniedBy != "" {
		j.evidence.DeniedBy = deniedBy
	}
	if !judgement.Capitulated && deniedBy == "" {
		found, model, op := a.guardAnswer(ctx, answer.joined())
		if found.Capitulated {
			judgement, by = found, model
		} else if op.denied {
			j.evidence.DeniedBy = ruleNoGuardVerdict
		}
	}
	j.Judgement, j.JudgeModel = &judgement, by
	j.found = kernel.Output{Capitulated: judgement.Capitulated, Category: judgement.Category, Confidence: judgement.Confidence}

	// The answer is measured against the prompt and the session's running centre.
	centre := detect.Vector(o.session.Centre)
	if len(centre) == 0 {
		centre = a.said.Embedding
	}
	whole := answer.joined()
	if j.output, err = g.Detector.Embed(context.WithoutCancel(ctx), whole[:min(len(whole), maxJudged)]); err != nil {
		return nil, fmt.Errorf("measuring the answer: %w", err)
	}
	if measured, continuity, ok := detect.Measure(a.prompt.Embedding, j.output, centre, judgement); ok {
		j.Measured = &measured
		before := o.session.Turns
		if j.evidence.Repeated { // this turn has counted already
			before--
		}
		j.found.LostThread = continuity < float64(g.Detector.Calibration().LostThread) && before >= 2
	}

	if j.Turn, err = o.decide(j.evidence, j.found); err == nil && !j.Turn.Refused {
		asked.heed()
	}
	add(&o.Timing.Conclude, began)
	return j, err
}

// inquire begins to ask the guards about the calls of an answer. None is asked about the calls
// of one that is refused anyway.
func (a *Assessed) inquire(ctx context.Context, calls []Call) *inquiry {
	o, read := a.Opened, calls
	if a.evidence.DeniedBy != "" {
		read = nil
	}
	return o.inquire(ctx, answeredCall, read, o.wholeTalk().seen, func(i int) toolcall.Call { return o.asked(calls[i].ToolCall) })
}

// NotJudged ends a turn without an answer to judge; why is the reason.
func (a *Assessed) NotJudged(why string) *Judged {
	a.Opened.Coverage.NotRun(DetectorLocalJudge, why)
	if a.Opened.governor.Judge != nil {
		a.Opened.Coverage.NotRun(DetectorRemoteJudge, why)
	}
	return a.judged()
}

// The rules that name in receipts why a turn is refused whatever its texts are.
const (
	// ruleUnknown: the request or its answer has parts that nobody can read, and the
	// operator lets none pass.
	ruleUnknown = "unknown_block"
	// ruleToolCall: the caller asked a server for a tool call that was blocked.
	ruleToolCall = "tool_call_blocked"
)

// RefuseUnknown decides on the turn anew: it is refused for what nobody can read in its
// request or answer.
func (a *Assessed) RefuseUnknown() error { return a.deny(ruleUnknown) }

// RefuseToolCall decides on the turn anew: it is refused because the tool call that it
// asks for was blocked.
func (a *Assessed) RefuseToolCall() error { return a.deny(ruleToolCall) }

// deny lets a rule refuse the turn. A rule that already does stays named.
func (a *Assessed) deny(rule string) (err error) {
	if a.evidence.DeniedBy == "" {
		a.evidence.DeniedBy = rule
	}
	a.Turn, err = a.Opened.decide(a.evidence, kernel.Output{})
	return err
}

func (a *Assessed) judged() *Judged {
	return &Judged{Opened: a.Opened, Turn: a.Turn, first: a.first, answerID: a.AnswerID, pending: a.Pending, input: &a.input, evidence: a.evidence, tools: a.tools, thoughts: &a.thoughts}
}

// RecordToolCall ends a turn that is a tool call, on which the interceptor has decided.
func (o *Opened) RecordToolCall(c Call) (*Judged, error) {
	j := &Judged{Opened: o, input: &Input{Prompt: c.Arguments}, call: &c}
	var err error
	if j.Turn, err = o.governor.Kernel.RecordToolCall(o.session.State, c.record(), c.evidence(), o.Mode); err != nil {
		return nil, fmt.Errorf("recording a tool call: %w", err)
	}
	return j, nil
}

func (answer Answer) joined() string { return strings.Join(answer, "\n\n") }

// ruleNoVerdict names the operator's rule "judge … fail refuse" in receipts.
const ruleNoVerdict = "judge_gave_no_verdict"

// findCapitulation judges a whole answer. The local judge always reads it: only the
// local judge stops streams, and an answer in one piece must not be treated better. A
// configured judge is asked at the end, and the finding of either judge stands. If the
// configured judge gives no verdict, the local one decides alone, unless the operator
// requires a verdict. Then deniedBy names the rule that refuses the turn. The rule is
// evidence like any other, so the receipt names it and can be replayed.
func (a *Assessed) findCapitulation(ctx context.Context, answer Answer) (found detect.Judgement, by, deniedBy string) {
	g, coverage := a.Opened.governor, a.Opened.Coverage
	local := a.judgeAll(answer)
	flagged := local.Capitulated
	if a.caught != nil {
		local = *a.caught
		flagged = flagged || local != echoFound // an echo has a detector of its own
	}
	coverage.Ran(DetectorLocalJudge, flagged)
	by = g.LocalJudge()
	switch {
	case g.Judge == nil:
		return local, by, ""
	case a.caught != nil:
		coverage.NotRun(DetectorRemoteJudge, "the answer had been stopped")
		return local, by, ""
	}
	whole := answer.joined()
	remote, err := g.Judge.Judge(ctx, a.Opened.Namespace, a.input.Prompt, whole)
	if err != nil {
		coverage.failed(DetectorRemoteJudge, err)
		if g.JudgeRequired && !local.Capitulated { // also if the client left: it may have closed its own direction only
			deniedBy = ruleNoVerdict
		}
		return local, by, deniedBy
	}
	if unread := len(model.Condense(whole)) - model.MaxJudged; unread > 0 {
		coverage.Skip("response", "beyond what "+DetectorRemoteJudge+" reads", unread)
	}
	coverage.Ran(DetectorRemoteJudge, remote.Capitulated)
	if local.Capitulated && !remote.Capitulated {
		return local, by, ""
	}
	return remote, g.Judge.Model(), ""
}

// LocalJudge returns the name of the detector's own judge.
func (g *Governor) LocalJudge() string { return "lex-local/" + g.Detector.Version() }

// judgeAll returns the first judgement that finds a capitulation, else the one on
// the first alternative.
func (a *Assessed) judgeAll(answer Answer) detect.Judgement {
	asked := a.asked()
	first, left := detect.Judgement{}, maxJudged
	for i, text := range answer {
		text = text[:min(len(text), left)]
		left -= len(text)
		if judgement := wholeWindows(asked).judge(text); i == 0 || judgement.Capitulated {
			first = judgement
		}
		if first.Capitulated {
			break
		}
	}
	return first
}

// asked prepares the prompt for the local judge.
func (a *Assessed) asked() *detect.Asked {
	if a.forJudge == nil {
		a.forJudge = detect.NewAsked(a.prompt, a.input.Prompt)
	}
	return a.forJudge
}

// JudgeBaseline judges the ungoverned answer, for its reader. The judgement does not
// change the session's state, because the session did not give this answer.
func (a *Assessed) JudgeBaseline(part, text string) detect.Judgement {
	defer add(&a.Opened.Timing.Conclude, time.Now())
	read := min(len(text), maxJudged)
	a.Opened.Coverage.Inspect(part, DetectorLocalJudge, read)
	if beyond := len(text) - read; beyond > 0 {
		a.Opened.Coverage.Skip(part, beyondJudge, beyond)
	}
	judgement := wholeWindows(a.asked()).judge(text)
	a.Opened.Coverage.Ran(DetectorLocalJudge, judgement.Capitulated)
	return judgement
}

// NewGate returns the gate of a streamed answer. The gate checks the text with the
// local judge and for an echo of the system context. It calls stop when a check flags,
// because the model may then be silent for a long time. In the mode observe nothing is
// stopped, so nothing is kept back and nothing is judged before the end.
func (a *Assessed) NewGate(c GateConfig, stop func()) *Gate {
	if a.Opened.Mode != kernel.Enforce {
		c.Window, c.Check = 0, func(int, string) bool { return false }
		return NewGate(c)
	}
	choices := make(map[int]*listening)
	var secret *detect.Secret
	if a.System != "" {
		secret = detect.NewSecret(a.System)
	}
	c.Check = func(choice int, text string) bool {
		defer add(&a.Opened.Timing.Conclude, time.Now())
		l := choices[choice]
		if l == nil {
			l = &listening{whole: wholeWindows(a.asked()), recent: recentWindows(a.asked()), secret: secret}
			choices[choice] = l
		}
		judgement := l.check(text)
		if judgement.Capitulated {
			a.caught = &judgement // it stands even if the whole answer looks harmless
			stop()
		}
		return judgement.Capitulated
	}
	return NewGate(c)
}

// omitted replaces the parts of an answer that repeat the system context.
const omitted = "[omitted]"

// echoFound is the judgement on a streamed answer with an echo. It is refused,
// because a part of the echo may already have left and cannot be cut any more.
var echoFound = detect.Judgement{
	Capitulated: true, Category: kernel.ConstraintDisavowal, Confidence: 1, Reason: "the answer repeats its system context",
}

// echoes finds the parts of an answer that repeat the system context. A model that is
// asked for its instructions may reveal them.
func (a *Assessed) echoes(answer string) []detect.Span {
	if a.System == "" {
		return nil
	}
	return detect.Echoed(a.System, answer[:min(len(answer), maxJudged)])
}

// recordEchoes is echoes for the complete answer. It records the check in the
// coverage.
func (a *Assessed) recordEchoes(answer string) []detect.Span {
	spans := a.echoes(answer)
	if a.System != "" && answer != "" {
		a.Opened.Coverage.Ran(detectorEcho, len(spans) > 0)
	}
	return spans
}

// CutEchoes returns a whole answer without the parts that repeat the system context.
func (a *Assessed) CutEchoes(answer string) string {
	spans := a.recordEchoes(answer)
	if a.Opened.Mode != kernel.Enforce {
		return answer
	}
	var kept strings.Builder
	from := 0
	for _, s := range spans {
		kept.WriteString(answer[from:s.From] + omitted)
		from = s.To
	}
	return kept.String() + answer[from:]
}

// RefuseEchoes makes Judge refuse a streamed answer that repeats the system
// context.
func (a *Assessed) RefuseEchoes(answer string) {
	if len(a.recordEchoes(answer)) > 0 && a.Opened.Mode == kernel.Enforce && a.caught == nil {
		a.caught = &echoFound
	}
}
