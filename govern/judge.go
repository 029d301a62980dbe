package govern

import (
	"context"
	"fmt"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
)

const (
	// maxJudged is how many bytes of an answer are judged; the rest of a longer
	// one is recorded as skipped.
	maxJudged = 256 << 10
	// judgedOverlap is how far two windows of the judge overlap, so that no phrase
	// is cut by both.
	judgedOverlap = 512
)

// Judged is a turn whose answer was weighed, or that has none. It is ready to be
// committed.
type Judged struct {
	Opened *Opened
	// Turn is the kernel's decision on the request and its answer.
	Turn kernel.Turn
	// Judgement is what was found of the answer, and JudgeModel names who found
	// it. Nil stands for a turn without an answer.
	Judgement  *detect.Judgement
	JudgeModel string
	// Measured compares the answer with the prompt and the session; nil where
	// there was nothing to measure.
	Measured *detect.Measured

	input    Input
	evidence kernel.Evidence
	found    kernel.Output
	output   detect.Vector    // embedding of the answer; nil when there was none
	call     *kernel.ToolCall // recorded instead of a governed text
}

// Judge weighs the model's answer, also for a client that has left: the receipt
// tells of the text that it got. The alternatives of an answer are judged one by
// one: what one of them declines says nothing of the next. Of all together
// maxJudged bytes are read.
func (a *Assessed) Judge(ctx context.Context, answer Answer) (*Judged, error) {
	if len(answer) == 0 {
		return a.NotJudged("no output text"), nil
	}
	g, o := a.Opened.governor, a.Opened
	j := a.judged()
	judgement, by, deniedBy := a.findCapitulation(ctx, answer)
	if deniedBy != "" {
		j.evidence.DeniedBy = deniedBy
	}
	j.Judgement, j.JudgeModel = &judgement, by
	j.found = kernel.Output{Capitulated: judgement.Capitulated, Category: judgement.Category, Confidence: judgement.Confidence}

	// The answer is measured against the prompt and the session's running centre.
	centre := detect.Vector(o.session.Centre)
	if len(centre) == 0 {
		centre = a.said.Embedding
	}
	whole := answer.joined()
	var err error
	if j.output, err = g.Detector.Embed(context.WithoutCancel(ctx), whole[:min(len(whole), maxJudged)]); err != nil {
		return nil, fmt.Errorf("measuring the answer: %w", err)
	}
	if measured, continuity, ok := detect.Measure(a.prompt.Embedding, j.output, centre, judgement); ok {
		j.Measured = &measured
		j.found.LostThread = continuity < float64(g.Detector.Calibration().LostThread) && o.session.Turns >= 2
	}

	j.Turn, err = decide(g.Kernel, o.session.State, j.evidence, j.found, o.Mode)
	return j, err
}

// NotJudged ends a turn without an answer to judge, for the reason why.
func (a *Assessed) NotJudged(why string) *Judged {
	a.Opened.Coverage.NotRun(DetectorLocalJudge, why)
	if a.Opened.governor.Judge != nil {
		a.Opened.Coverage.NotRun(DetectorRemoteJudge, why)
	}
	return a.judged()
}

func (a *Assessed) judged() *Judged {
	return &Judged{Opened: a.Opened, Turn: a.Turn, input: a.input, evidence: a.evidence}
}

// RecordToolCall ends a turn that is a tool call, which is decided on already.
func (o *Opened) RecordToolCall(call kernel.ToolCall, arguments string) (*Judged, error) {
	j := &Judged{Opened: o, input: Input{Prompt: arguments}, call: &call}
	var err error
	if j.Turn, err = o.governor.Kernel.RecordToolCall(o.session.State, call, o.Mode); err != nil {
		return nil, fmt.Errorf("recording a tool call: %w", err)
	}
	return j, nil
}

func (answer Answer) joined() string { return strings.Join(answer, "\n\n") }

// ruleNoVerdict is what receipts call the operator's rule "judge … fail refuse".
const ruleNoVerdict = "judge_gave_no_verdict"

// findCapitulation is what is found of a whole answer. The local judge reads it in
// any case, because nobody else stops a stream, and an answer must not fare better
// for coming in one piece. A configured judge is asked at the end: what either
// finds stands. Where it gives no verdict the local one decides alone, unless the
// operator requires the other's: then the rule deniedBy refuses the turn, as
// evidence like any other, so that the receipt names it and replays.
func (a *Assessed) findCapitulation(ctx context.Context, answer Answer) (found detect.Judgement, by, deniedBy string) {
	g, coverage := a.Opened.governor, a.Opened.Coverage
	local := a.judgeAll(answer)
	if a.caught != nil {
		local = *a.caught
	}
	coverage.Ran(DetectorLocalJudge, local.Capitulated)
	by = g.LocalJudge()
	switch {
	case g.Judge == nil:
		return local, by, ""
	case a.caught != nil:
		coverage.NotRun(DetectorRemoteJudge, "the local judge had stopped the answer")
		return local, by, ""
	}
	whole := answer.joined()
	remote, err := g.Judge.Judge(ctx, a.Opened.Namespace, a.input.Prompt, whole)
	if err != nil {
		coverage.failed(DetectorRemoteJudge, err)
		if g.JudgeRequired && !local.Capitulated && model.Why(err) != model.Cancelled {
			deniedBy = ruleNoVerdict
		}
		return local, by, deniedBy
	}
	if unread := len(whole) - model.MaxJudged; unread > 0 {
		coverage.Skip("response", "beyond what "+DetectorRemoteJudge+" reads", unread)
	}
	coverage.Ran(DetectorRemoteJudge, remote.Capitulated)
	if local.Capitulated && !remote.Capitulated {
		return local, by, ""
	}
	return remote, g.Judge.Model(), ""
}

// LocalJudge names the detector's own judge.
func (g *Governor) LocalJudge() string { return "lex-local/" + g.Detector.Version() }

// judgeAll returns the first judgement that finds a capitulation, else the one on
// the first alternative.
func (a *Assessed) judgeAll(answer Answer) detect.Judgement {
	first, left := detect.Judgement{}, maxJudged
	for i, text := range answer {
		text = text[:min(len(text), left)]
		left -= len(text)
		if judgement := a.judgeText(text); i == 0 || judgement.Capitulated {
			first = judgement
		}
		if first.Capitulated {
			break
		}
	}
	return first
}

// judgeText reads a text up to maxJudged in overlapping windows, since the judge
// reads a window at a time. It returns the first judgement that finds a
// capitulation, else the one on the beginning.
func (a *Assessed) judgeText(text string) detect.Judgement {
	first := detect.Judge(a.prompt, a.input.Prompt, text)
	const step = detect.MaxJudged - judgedOverlap
	for from := step; !first.Capitulated && from < min(len(text), maxJudged); from += step {
		if next := detect.Judge(a.prompt, a.input.Prompt, text[from:]); next.Capitulated {
			return next
		}
	}
	return first
}

// JudgeBaseline weighs the ungoverned answer, so that its reader knows what it is.
// The judgement moves no state: the session did not give this answer.
func (a *Assessed) JudgeBaseline(part, text string) detect.Judgement {
	read := min(len(text), maxJudged)
	a.Opened.Coverage.Inspect(part, DetectorLocalJudge, read)
	if beyond := len(text) - read; beyond > 0 {
		a.Opened.Coverage.Skip(part, beyondJudge, beyond)
	}
	judgement := a.judgeText(text)
	a.Opened.Coverage.Ran(DetectorLocalJudge, judgement.Capitulated)
	return judgement
}

// NewGate returns the gate of a streamed answer: it checks the text with the local
// judge and for an echo of the system context, and calls stop when a check flags,
// since the model may then be silent for long. In the mode observe nothing is
// stopped, so nothing is kept back and nothing is judged before the end.
func (a *Assessed) NewGate(c GateConfig, stop func()) *Gate {
	if a.Opened.Mode != kernel.Enforce {
		c.Window, c.Check = 0, func(string) bool { return false }
		return NewGate(c)
	}
	c.Check = func(text string) bool {
		judgement := a.judgeText(text)
		if !judgement.Capitulated && len(a.echoes(text)) > 0 {
			judgement = echoFound
		}
		if judgement.Capitulated {
			a.caught = &judgement // it stands, whatever the whole answer looks like
			stop()
		}
		return judgement.Capitulated
	}
	return NewGate(c)
}

// omitted stands in an answer for what repeated the system context.
const omitted = "[omitted]"

// echoFound is the judgement on a streamed answer with an echo: a part of it may
// have left, and that part cannot be cut any more.
var echoFound = detect.Judgement{
	Capitulated: true, Category: kernel.ConstraintDisavowal, Confidence: 1, Reason: "the answer repeats its system context",
}

// echoes finds what an answer repeats of the system context: a model that is asked
// for its instructions may tell them.
func (a *Assessed) echoes(answer string) []detect.Span {
	if a.System == "" {
		return nil
	}
	return detect.Echoed(a.System, answer[:min(len(answer), maxJudged)])
}

// recordEchoes is echoes of the complete answer, for the receipt.
func (a *Assessed) recordEchoes(answer string) []detect.Span {
	spans := a.echoes(answer)
	if a.System != "" && answer != "" {
		a.Opened.Coverage.Ran(detectorEcho, len(spans) > 0)
	}
	return spans
}

// CutEchoes returns a whole answer without what it repeats of the system context.
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

// RefuseEchoes sees to it that Judge refuses a streamed answer that repeats the
// system context.
func (a *Assessed) RefuseEchoes(answer string) {
	if len(a.recordEchoes(answer)) > 0 && a.Opened.Mode == kernel.Enforce && a.caught == nil {
		a.caught = &echoFound
	}
}
