package govern

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
)

// Assessed is a turn whose request is decided on.
type Assessed struct {
	Opened *Opened
	// Turn is the kernel's decision on the request.
	Turn kernel.Turn
	// System is the system context that the model was given with the prompt. Its
	// answer must not repeat it. "" stands for none.
	System string

	input    Input
	prompt   detect.Signal // of the prompt alone, which an answer is judged beside
	said     detect.Signal // of all that was said in the newest turn
	evidence kernel.Evidence
	caught   *detect.Judgement // what stopped a stream before its end
}

// Assess scores the texts of a request and takes the kernel's step on the session
// as it was opened. Commit takes the step again if another turn came in between.
func (o *Opened) Assess(ctx context.Context, in Input) (*Assessed, error) {
	g := o.governor
	in = o.withinLimit(in)
	a := &Assessed{Opened: o, input: in}

	// What was said is scored as a whole, also behind the earlier messages that
	// are new to us: an attack may be split between them. The prompt is scored
	// alone as well, and the application's instructions by themselves.
	var err error
	if a.said, err = g.score(ctx, in.said); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if err := a.joinEarlier(ctx); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	prompt := []detect.Text{{Source: detect.User, Body: o.truncate(in.Prompt)}}
	if a.prompt = a.said; !slices.Equal(in.said, prompt) {
		if a.prompt, err = g.score(ctx, prompt); err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
	}
	instructions, err := g.score(ctx, in.instructions)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if a.said.Unopened || instructions.Unopened {
		o.Coverage.Skip("request", "encoded more deeply than is opened", 0)
	}
	if unread := a.said.Unread + instructions.Unread; unread > 0 {
		o.Coverage.Skip("request", "reads as no language", unread)
	}

	a.evidence = kernel.Evidence{
		Scores:           maxScores(withInstructions(a.said.Scores, instructions.Scores), in.past),
		ThreatSignal:     a.said.Threat,
		SovereigntyDrift: a.said.SelfReference,
		DeniedBy:         in.deniedBy,
		Repeated:         o.repeats(in),
	}
	a.measureThreat(ctx)

	if a.Turn, err = decide(g.Kernel, o.session.State, a.evidence, kernel.Output{}, o.Mode); err != nil {
		return nil, err
	}
	o.Coverage.Ran(DetectorLocal, a.Turn.Severity >= g.Kernel.Policy().WatchAt)
	return a, nil
}

// NotRead decides on a request whose texts nobody reads, for the reason why.
func (o *Opened) NotRead(why string) (*Assessed, error) {
	o.Coverage.NotRun(DetectorLocal, why)
	turn, err := decide(o.governor.Kernel, o.session.State, kernel.Evidence{}, kernel.Output{}, o.Mode)
	return &Assessed{Opened: o, Turn: turn}, err
}

// decide takes the kernel's step: on the request, and on what was found of its
// answer.
func decide(k *kernel.Kernel, s kernel.Session, e kernel.Evidence, found kernel.Output, m kernel.Mode) (kernel.Turn, error) {
	turn, err := k.Assess(s, e, m)
	if err != nil {
		return turn, fmt.Errorf("assessing: %w", err)
	}
	if turn, err = k.Conclude(turn, found); err != nil {
		return turn, fmt.Errorf("concluding: %w", err)
	}
	return turn, nil
}

// readers lets as many texts be scored at once as there are processors, in the
// order in which they came. More would only slow each other down, and a caller
// with many long texts must not keep out one with a short one for long.
var readers = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))

// score reads texts when it is their turn, or not at all if the caller leaves.
func (g *Governor) score(ctx context.Context, texts []detect.Text) (detect.Signal, error) {
	if err := readers.Acquire(ctx, 1); err != nil {
		return detect.Signal{}, err
	}
	defer readers.Release(1)
	return g.Detector.Assess(ctx, texts)
}

// joinEarlier reads the newest turn behind the earlier texts that are new to us,
// for an attack that it completes: one that neither of the two shows alone.
func (a *Assessed) joinEarlier(ctx context.Context) error {
	g, earlier := a.Opened.governor, a.input.earlier
	if len(earlier) == 0 {
		return nil
	}
	before, err := g.score(ctx, earlier)
	if err != nil {
		return err
	}
	joint, err := g.score(ctx, slices.Concat(earlier, a.input.said))
	if err != nil || joint.Scores == maxScores(before.Scores, a.said.Scores) {
		return err
	}
	refused, err := g.refusesAlone(joint)
	if refused {
		a.said.Scores, a.said.SelfReference = joint.Scores, joint.SelfReference
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

// repeats reports whether this very turn was the session's last and came to
// nothing, because the model failed or the client left before it had a word.
func (o *Opened) repeats(in Input) bool { return in.asking != "" && o.memory.Failed == in.asking }

// measureThreat asks the pinned embedder, where there is one, for the threat
// signal. When it fails nothing else stands in: the detection counts as degraded,
// and the local scores decide by the lower threshold.
func (a *Assessed) measureThreat(ctx context.Context) {
	o, prompt := a.Opened, a.input.Prompt
	embedder := o.governor.Embedder
	if embedder == nil || prompt == "" {
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

// EmbedProvider names the space in which prompts are compared.
func (g *Governor) EmbedProvider() string {
	if g.Embedder == nil {
		return DetectorLocal
	}
	return g.Embedder.Provider()
}

// truncate is the beginning of a text, as far as it is read.
func (o *Opened) truncate(text string) string {
	if o.Reading.Limit == 0 {
		return text
	}
	return prefix(text, o.Reading.Limit)
}

// maxScores is the higher of two scores for each type of attack.
func maxScores(a, b kernel.Scores) kernel.Scores {
	return kernel.Scores{
		Identity: max(a.Identity, b.Identity), Coercion: max(a.Coercion, b.Coercion), Exploitative: max(a.Exploitative, b.Exploitative),
		HarmRequest: max(a.HarmRequest, b.HarmRequest), Sycophancy: max(a.Sycophancy, b.Sycophancy), Injection: max(a.Injection, b.Injection),
	}
}

// withInstructions adds what the application's own instructions score. They may
// give the assistant a persona and rules: that is the operator's right, not an
// attack on it. They may not ask for harm.
func withInstructions(s, instructions kernel.Scores) kernel.Scores {
	s.Coercion = max(s.Coercion, instructions.Coercion)
	s.Exploitative = max(s.Exploitative, instructions.Exploitative)
	s.HarmRequest = max(s.HarmRequest, instructions.HarmRequest)
	return s
}
