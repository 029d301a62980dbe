package govern

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

// Assessed is a turn with a decision on its request.
type Assessed struct {
	Opened *Opened
	// Turn is the kernel's decision on the request.
	Turn kernel.Turn
	// System is the system context that the model got with the prompt, "" if it got
	// none. The answer must not repeat it.
	System string
	// AnswerID is the id of the model's answer, by which a later call can go on from
	// it, or "".
	AnswerID string
	// Pending: the provider still works on the answer, which is fetched by its id.
	Pending bool

	first    *kernel.Turn // the decision on the request, which the statistics count; nil if nothing was read
	input    Input
	prompt   detect.Signal // of the prompt alone; needed to judge the answer
	earlier  detect.Signal // of the user's words before the newest turn that are new to us
	attacks  []attack      // those of them that guards find to be attacks
	said     detect.Signal // of all texts of the newest turn
	severity float64       // of what the answer answers, before any guard; kept if there are guards
	evidence kernel.Evidence
	forJudge *detect.Asked     // the prompt as the judge has to know it, once it was asked
	caught   *detect.Judgement // the judgement that stopped a stream before its end
	// InPieces says that what tools say in a streamed answer comes in pieces of any size,
	// and not message by message.
	InPieces bool

	fromTool []toolText // of the answer; not assessed yet
	toolTail string     // the end of what was assessed of pieces
	toolRead int64      // how much was assessed of pieces, in bytes

	calls    wire.CallGatherer     // of the answer
	thoughts thoughts              // in the answer
	tools    []wire.ToolDefinition // that the answer tells of
}

// Assess scores the texts of a request and takes the kernel's step from the state
// that Open read. Commit takes the step again if another turn was committed since.
func (o *Opened) Assess(ctx context.Context, in Input) (*Assessed, error) {
	began, g := time.Now(), o.governor
	in.said, in.framing = g.unframe(in.said)
	in = o.withinLimit(in)
	o.recordTemplates(in.framing)
	a := &Assessed{Opened: o, input: in}

	// Score the newest turn as a whole, what tools and documents say by itself (see
	// read), and the rest once more together with the earlier messages that are new to
	// us, because an attack may be split between them. Also score the prompt alone, and
	// the application's instructions alone.
	said, quoted, beside := divide(in.said)
	var err error
	if a.said, err = o.score(ctx, said); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	found, err := o.score(ctx, quoted)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if err := a.joinEarlier(ctx, said); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	prompt, _ := g.unframe([]detect.Text{{Source: detect.User, Body: o.truncate(in.Prompt)}})
	if a.prompt = a.said; !slices.EqualFunc(said, prompt, func(a, b detect.Text) bool { return a.Source == b.Source && a.Body == b.Body }) {
		if a.prompt, err = o.score(ctx, prompt); err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
	}
	fromApplication, err := o.readApplication(ctx, slices.Concat(in.instructions, in.framing), beside)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	local, err := g.withQuoted(a.said, quoted, found)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	o.Coverage.skipGaps(local.Gaps)
	o.Coverage.skipGaps(fromApplication.Gaps)

	a.evidence = kernel.Evidence{
		Scores:           maxScores(maxScores(local.Scores, fromApplication.Scores), in.past),
		ThreatSignal:     a.said.Threat,
		SovereigntyDrift: a.said.SelfReference,
		Degraded:         in.degraded,
		DeniedBy:         in.deniedBy,
		Repeated:         o.repeats(in),
		Unassessed:       in.silent,
	}
	if err := a.readAsking(ctx); err != nil {
		return nil, err
	}
	if a.unassessed() {
		o.Coverage.NotRun(DetectorLocal, "no text to read")
		a.evidence = kernel.Evidence{Unassessed: true, DeniedBy: in.deniedBy}
		a.Turn, err = o.decide(a.evidence, kernel.Output{})
		return a, err
	}
	a.measureThreat(ctx)
	o.Coverage.Ran(DetectorLocal, g.Kernel.Severity(a.evidence.Scores) >= g.Kernel.Policy().WatchAt)

	// What the guards say moves the scores of the texts that they were asked about.
	if err := a.guardSaid(ctx, slices.Concat(beside, said), quoted, &found); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if a.said, err = g.withQuoted(a.said, quoted, found); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	a.evidence.Scores = maxScores(maxScores(a.said.Scores, fromApplication.Scores), maxScores(in.past, in.condemned))
	add(&o.Timing.Assess, began)

	if a.Turn, err = o.decide(a.evidence, kernel.Output{}); err != nil {
		return nil, err
	}
	first := a.Turn
	a.first = &first
	return a, nil
}

// levelOf returns the level under which the statistics count the decision on a request, nil
// if there was none. Some turns do not count: one that asks again what got no answer, one
// that nothing refuses, and one whose detection is degraded, because another threshold
// decides there.
func (o *Opened) levelOf(first *kernel.Turn) store.Level {
	if first == nil || first.Evidence.Repeated || first.Evidence.Degraded || o.Watched {
		return store.Level{}
	}
	return store.Level{AttackType: first.AttackType, At: kernel.Hundredths(o.governor.Kernel.Level(first))}
}

// unassessed reports whether the newest turn has only parts that no detector reads, such as
// an image, and nothing was found in what else was read of the request: its instructions
// and its history. To call such a turn clear would be to vouch for what nobody saw.
func (a *Assessed) unassessed() bool {
	in, coverage, k := a.input, a.Opened.Coverage, a.Opened.governor.Kernel
	silent := len(in.said) == 0 && len(in.earlier) == 0 && in.results == 0
	found := k.Severity(maxScores(a.evidence.Scores, in.condemned)) >= k.Policy().WatchAt
	return silent && !found && len(coverage.Skipped)+len(coverage.Unknown) > 0
}

// NotRead decides on a request whose texts are not read; why is the reason.
func (o *Opened) NotRead(why string) (*Assessed, error) {
	a := &Assessed{Opened: o, evidence: kernel.Evidence{Unassessed: true}}
	o.Coverage.NotRun(DetectorLocal, why)
	var err error
	a.Turn, err = o.decide(a.evidence, kernel.Output{})
	return a, err
}

// decide takes the kernel's step on the evidence about the request and on what was
// found about its answer.
func (o *Opened) decide(e kernel.Evidence, found kernel.Output) (kernel.Turn, error) {
	defer add(&o.Timing.Decide, time.Now())
	k := o.governor.Kernel
	turn, err := k.Assess(o.session.State, e, o.Mode)
	if err != nil {
		return turn, fmt.Errorf("assessing: %w", err)
	}
	if turn, err = k.Conclude(turn, found); err != nil {
		return turn, fmt.Errorf("concluding: %w", err)
	}
	return turn, nil
}

// scoring limits how many texts are scored at the same time to the number of
// processors, and serves them in the order in which they came. More would only slow
// each other down, and a caller with many long texts must not keep the others
// waiting for long.
var scoring = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))

// score waits for its turn and scores the texts. It returns an error if the context
// ends before.
func (o *Opened) score(ctx context.Context, texts []detect.Text) (detect.Signal, error) {
	if len(texts) == 0 {
		return detect.Signal{}, ctx.Err()
	}
	if err := scoring.Acquire(ctx, 1); err != nil {
		return detect.Signal{}, err
	}
	defer scoring.Release(1)
	return o.governor.Detector.AssessKnown(ctx, texts, findings{o.governor, o.Namespace})
}

// read scores texts of a conversation. What tools and documents say is scored apart from
// the rest: the session's user did not write it, so it counts if it would be refused
// alone, and anything weaker adds nothing to other texts or to the session's pressure.
// So is what the application put there (see readApplication).
func (o *Opened) read(ctx context.Context, texts []detect.Text) (detect.Signal, error) {
	g := o.governor
	texts, framing := g.unframe(texts)
	said, quoted, beside := divide(texts)
	s, err := o.score(ctx, said)
	if err != nil {
		return s, err
	}
	found, err := o.score(ctx, quoted)
	if err != nil {
		return s, err
	}
	if s, err = g.withQuoted(s, quoted, found); err != nil || len(beside)+len(framing) == 0 {
		return s, err
	}
	fromApplication, err := o.readApplication(ctx, framing, beside)
	s.Scores = maxScores(s.Scores, fromApplication.Scores)
	return withGaps(s, fromApplication), err
}

// withQuoted returns a signal together with what was found in what tools and documents say.
func (g *Governor) withQuoted(s detect.Signal, quoted []detect.Text, found detect.Signal) (detect.Signal, error) {
	if len(quoted) == 0 {
		return s, nil
	}
	s = withGaps(s, found)
	attack, err := g.refusesAlone(found)
	if attack {
		s.Scores = maxScores(s.Scores, found.Scores)
	}
	return s, err
}

// withGaps returns a signal with the gaps of another one, too.
func withGaps(s, other detect.Signal) detect.Signal {
	s.Unopened, s.Unread, s.Gaps = s.Unopened || other.Unopened, s.Unread+other.Unread, slices.Concat(s.Gaps, other.Gaps)
	return s
}

// divide divides texts into what the user and the model say, what tools and documents say, and
// what the application put beside it.
func divide(texts []detect.Text) (said, quoted, beside []detect.Text) {
	for _, t := range texts {
		switch t.Source {
		case detect.Tool, detect.Document:
			quoted = append(quoted, t)
		case detect.Context:
			beside = append(beside, t)
		default:
			said = append(said, t)
		}
	}
	return said, quoted, beside
}

// joinEarlier scores what is said in the newest turn together with the earlier texts that
// are new to us, and looks for an attack that neither shows alone.
func (a *Assessed) joinEarlier(ctx context.Context, said []detect.Text) error {
	o, earlier := a.Opened, textsOf(a.input.earlier)
	if len(earlier) == 0 {
		return nil
	}
	var err error
	if a.earlier, err = o.read(ctx, earlier); err != nil {
		return err
	}
	joint, err := o.read(ctx, slices.Concat(earlier, said))
	if err != nil || joint.Scores == maxScores(a.earlier.Scores, a.said.Scores) {
		return err
	}
	refused, err := o.governor.refusesAlone(joint)
	if refused {
		a.said.Scores, a.said.SelfReference, a.said.Hidden = joint.Scores, joint.SelfReference, joint.Hidden
	}
	return err
}

// refusesAlone reports whether a prompt with this signal would be refused in a
// session of its own.
func (g *Governor) refusesAlone(s detect.Signal) (bool, error) {
	e := kernel.Evidence{Scores: s.Scores, SovereigntyDrift: s.SelfReference}
	if g.Embedder == nil { // another embedder's signal is on another scale
		e.ThreatSignal = s.Threat
	}
	turn, err := g.Kernel.Assess(g.Kernel.NewSession(), e, kernel.Enforce)
	return turn.Refused, err
}

// repeats reports whether this turn asks the same as the last turn of the session,
// which got no answer because the model failed or the client left, or a part of one
// whose rest is asked for now.
func (o *Opened) repeats(in Input) bool {
	return in.asking != "" && (o.memory.Failed == in.asking || in.continues && o.memory.Asked == in.asking)
}

// measureThreat asks the configured embedder, if there is one, for the threat signal.
// If the embedder fails, nothing replaces it: detection counts as degraded, and the
// local scores decide by the lower threshold.
func (a *Assessed) measureThreat(ctx context.Context) {
	o, embedder := a.Opened, a.Opened.governor.Embedder
	if embedder == nil {
		return
	}
	prompt := o.governor.OwnWords(a.input.Prompt)
	if prompt == "" {
		return
	}
	name := embedder.Provider() + "_embedder"
	threat, err := embedder.Threat(ctx, o.Namespace, prompt)
	if err != nil {
		a.evidence.ThreatSignal, a.evidence.Degraded = 0, true
		o.Coverage.failed(name, err)
		return
	}
	if unread := len(prompt) - model.MaxEmbedded; unread > 0 {
		o.Coverage.Skip("request.prompt", "beyond what "+name+" reads", unread)
	}
	a.evidence.ThreatSignal = max(-2, min(2, threat))
	o.Coverage.Ran(name, threat > o.governor.Kernel.Policy().ThreatAt)
}

// EmbedProvider names the embedder that measures the threat signal.
func (g *Governor) EmbedProvider() string {
	if g.Embedder == nil {
		return DetectorLocal
	}
	return g.Embedder.Provider()
}

// truncate returns the part of a text that is read.
func (o *Opened) truncate(text string) string {
	if o.Reading.Limit == 0 {
		return text
	}
	return prefix(text, o.Reading.Limit)
}

// maxScores returns the higher of two scores for each type of attack.
func maxScores(a, b kernel.Scores) kernel.Scores {
	return kernel.Scores{
		Identity: max(a.Identity, b.Identity), Coercion: max(a.Coercion, b.Coercion), Exploitative: max(a.Exploitative, b.Exploitative),
		HarmRequest: max(a.HarmRequest, b.HarmRequest), Sycophancy: max(a.Sycophancy, b.Sycophancy), Injection: max(a.Injection, b.Injection),
	}
}
