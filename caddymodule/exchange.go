package caddymodule

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

const (
	// maxJudged is how many bytes of an answer are judged; the rest of a longer
	// one is recorded as skipped.
	maxJudged = 256 << 10
	// judgedOverlap is how far two windows of the judge overlap, so that no
	// phrase is cut by both.
	judgedOverlap = 512
)

// An exchange is one governed turn on its way through the pipeline: opened on
// a session, assessed, concluded, committed, in this order. It knows nothing
// of HTTP. It belongs to one goroutine at a time.
type exchange struct {
	app    *App
	engine *engine
	mode   kernel.Mode

	// Who and what: given by whoever opens it.
	key      string // session key
	publicID string // the session as public lists show it
	label    int    // the caller's turn number; 0 is the session's next
	eval     bool
	endpoint string
	dialect  string
	model    string
	prompt   string
	started  time.Time
	// namespace is the caller's; remote models keep callers apart by it.
	namespace string
	// inspectLimit is how much text of the request is read, in bytes; 0 means all.
	// oversize tells what becomes of a request with more.
	inspectLimit int64
	oversize     string
	// system is the system context that /lex/govern gave to the model, and that
	// its answer must not repeat.
	system string
	// talk is the conversation that an intercepted call resends; nil for
	// /lex/govern. Where the caller named no session, snapshots is set, and
	// each turn leaves its state under a key of its own.
	talk      *conversation
	snapshots bool
	// call is a tool call to record instead of a governed text; its decision
	// is made already. prompt holds its arguments.
	call *kernel.ToolCall
	// asking identifies the turn by what is asked, so that one which is repeated
	// after a failure is known again; said are the digests of its messages.
	asking string
	said   []string
	// removed are the digests of earlier messages that are found to be removed
	// from now on.
	removed []string

	// What is known so far.
	session   store.Session // as last read
	nonce     string        // names the turn before its receipt has an id
	memory    memory        // opened
	signal    detect.Signal
	asked     detect.Signal // of the prompt alone
	earlier   []detect.Text // of the resent history, what is new to us and stays
	past      kernel.Scores // what of it counts for the session
	deniedBy  string        // the rule by which the request is refused, whatever it says
	evidence  kernel.Evidence
	found     kernel.Output
	caught    *detect.Judgement // what stopped a stream before its end
	judgement *detect.Judgement
	// judgeModel names who gave the judgement
	judgeModel string
	measured   *detect.Measured
	output     detect.Vector // embedding of the answer; nil when there was none
	coverage   kernel.Coverage
	judged     int // bytes of the answer that the judge reads
	turn       kernel.Turn
	receipt    kernel.Receipt
	persisted  bool
}

// open reads the session, or begins a new one.
func (x *exchange) open(ctx context.Context) error {
	s, err := x.engine.store.Session(ctx, x.key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s = store.Session{Key: x.key, State: x.app.kernel.NewSession(), Secret: newSecretKey()}
	case err != nil:
		return fmt.Errorf("reading the session: %w", err)
	}
	x.session = s
	if x.nonce == "" { // once: the client may know it when a conflict opens the session again
		x.nonce = randomID()
	}
	x.memory = openMemory(s.Secret, s.Memory)
	return x.takeName(ctx)
}

// takeName gives the session the one public id that all its receipts show, by
// whatever door its turns come in: the id of its first turn.
func (x *exchange) takeName(ctx context.Context) error {
	switch {
	case x.session.PublicID != "":
		x.publicID = x.session.PublicID
	case x.session.Head != "": // stored before sessions kept it
		head, err := x.engine.store.Receipt(ctx, x.session.Head)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("reading the session's head: %w", err)
		}
		x.publicID = cmp.Or(head.SessionID, x.publicID)
	}
	x.session.PublicID = x.publicID
	return nil
}

// newSecretKey makes a session's commitment key.
func newSecretKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return key
}

// assess weighs the texts of a request and takes the step. The decision holds
// for this state of the session; commit takes the step again if another turn
// came in between.
func (x *exchange) assess(ctx context.Context, texts, instructions []detect.Text) error {
	texts, instructions = x.within(texts, instructions)
	given, err := x.read(ctx, texts, instructions)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if x.signal.Unopened || given.Unopened {
		x.skip("request", "encoded more deeply than is opened", 0)
	}
	if unread := x.signal.Unread + given.Unread; unread > 0 {
		x.skip("request", "reads as no language", unread)
	}
	x.evidence = kernel.Evidence{
		Scores:           worse(withInstructions(x.signal.Scores, given.Scores), x.past),
		ThreatSignal:     x.signal.Threat,
		SovereigntyDrift: x.signal.SelfReference,
		DeniedBy:         x.deniedBy,
		Repeated:         x.repeats(),
	}
	x.embed(ctx)
	if err := x.step(); err != nil {
		return err
	}
	x.ran(detectorLocal, x.turn.Severity >= x.app.kernel.Policy().WatchAt)
	return nil
}

// read scores what was said, and the prompt alone, beside which the answer will
// be judged; it returns what the instructions score.
func (x *exchange) read(ctx context.Context, texts, instructions []detect.Text) (given detect.Signal, err error) {
	if x.signal, err = x.app.assess(ctx, texts); err != nil {
		return given, err
	}
	if err := x.join(ctx, texts); err != nil {
		return given, err
	}
	prompt := []detect.Text{{Source: detect.User, Body: x.cut(x.prompt)}}
	if x.asked = x.signal; !slices.Equal(texts, prompt) {
		if x.asked, err = x.app.assess(ctx, prompt); err != nil {
			return given, err
		}
	}
	return x.app.assess(ctx, instructions)
}

// join reads the newest turn behind the earlier texts that are new to us, for an
// attack that it completes: one that neither shows alone.
func (x *exchange) join(ctx context.Context, texts []detect.Text) error {
	if len(x.earlier) == 0 {
		return nil
	}
	before, err := x.app.assess(ctx, x.earlier)
	if err != nil {
		return err
	}
	joint, err := x.app.assess(ctx, slices.Concat(x.earlier, texts))
	if err != nil || joint.Scores == worse(before.Scores, x.signal.Scores) {
		return err
	}
	refused, err := x.refuses(joint)
	if refused {
		x.signal.Scores, x.signal.SelfReference = joint.Scores, joint.SelfReference
	}
	return err
}

// refuses reports whether a prompt with this signal would be refused in a session
// of its own.
func (x *exchange) refuses(s detect.Signal) (bool, error) {
	e := kernel.Evidence{Scores: s.Scores, SovereigntyDrift: s.SelfReference}
	if x.app.embedder == nil { // another's signal is on another scale
		e.ThreatSignal = s.Threat
	}
	turn, err := x.app.kernel.Assess(x.app.kernel.NewSession(), e, kernel.Enforce)
	return turn.Refused, err
}

// repeats reports whether this very turn was the session's last and came to
// nothing, because the model failed or the client left before it had a word.
func (x *exchange) repeats() bool { return x.asking != "" && x.memory.Failed == x.asking }

// worse is the higher of two scores for each type.
func worse(a, b kernel.Scores) kernel.Scores {
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

// step computes the turn from the session as last read and all evidence.
func (x *exchange) step() (err error) {
	if x.call != nil {
		if x.turn, err = x.app.kernel.RecordToolCall(x.session.State, *x.call, x.mode); err != nil {
			return fmt.Errorf("holding: %w", err)
		}
		return nil
	}
	turn, err := x.app.kernel.Assess(x.session.State, x.evidence, x.mode)
	if err != nil {
		return fmt.Errorf("assessing: %w", err)
	}
	if x.turn, err = x.app.kernel.Conclude(turn, x.found); err != nil {
		return fmt.Errorf("concluding: %w", err)
	}
	return nil
}

// conclude weighs the model's answer, also for a client that has left: the
// receipt tells of the text that it got. What is read of an answer is bounded.
//
// The answers are the alternatives that were asked for, usually one. Each is
// judged for itself: what one of them declines says nothing of the next.
func (x *exchange) conclude(ctx context.Context, answers ...string) error {
	judgement := x.verdict(ctx, answers)
	answer := strings.Join(answers, "\n\n")
	x.judgement = &judgement
	x.found = kernel.Output{
		Capitulated: judgement.Capitulated, Category: judgement.Category, Confidence: judgement.Confidence,
	}
	centre := detect.Vector(x.session.Centre)
	if len(centre) == 0 {
		centre = x.signal.Embedding
	}
	var err error
	if x.output, err = x.app.model.Embed(context.WithoutCancel(ctx), answer[:min(len(answer), maxJudged)]); err != nil {
		return fmt.Errorf("measuring the answer: %w", err)
	}
	if measured, continuity, ok := detect.Measure(x.asked.Embedding, x.output, centre, judgement); ok {
		x.measured = &measured
		x.found.LostThread = continuity < float64(x.app.model.Calibration().LostThread) && x.session.Turns >= 2
	}
	return x.step()
}

// capitulates judges the answer so far, for a stream that is still running. A
// verdict of guilty stands, whatever the whole answer looks like; in observe
// mode nothing is judged before the end, since nothing would be stopped.
func (x *exchange) capitulates(answer string) bool {
	if x.mode != kernel.Enforce {
		return false
	}
	judgement := x.judge(answer)
	if !judgement.Capitulated && len(x.echoes(answer)) > 0 {
		judgement = echoFound
	}
	if judgement.Capitulated {
		x.caught = &judgement
	}
	return judgement.Capitulated
}

// judgeAll returns the first verdict of guilty on the answers, else that on the
// first of them. Of all together maxJudged bytes are read.
func (x *exchange) judgeAll(answers []string) detect.Judgement {
	first, left := detect.Judgement{}, maxJudged
	for i, answer := range answers {
		answer = answer[:min(len(answer), left)]
		left -= len(answer)
		if judgement := x.judge(answer); i == 0 || judgement.Capitulated {
			first = judgement
		}
		if first.Capitulated {
			break
		}
	}
	return first
}

// judge reads an answer of any length up to maxJudged in overlapping windows,
// since the judge reads a window at a time, and returns the first verdict of
// guilty, else that on the beginning.
func (x *exchange) judge(answer string) detect.Judgement {
	first := detect.Judge(x.asked, x.prompt, answer)
	const step = detect.MaxJudged - judgedOverlap
	for from := step; !first.Capitulated && from < min(len(answer), maxJudged); from += step {
		if next := detect.Judge(x.asked, x.prompt, answer[from:]); next.Capitulated {
			return next
		}
	}
	return first
}

// coverAnswer records how much of a part of the answer the judge reads, in the
// order in which the parts are joined for it.
func (x *exchange) coverAnswer(part string, bytes int) {
	reads := min(bytes, maxJudged-x.judged)
	x.judged += reads
	if reads > 0 {
		x.cover(part, detectorJudge, reads)
	}
	if bytes > reads {
		x.skip(part, "beyond what the judge reads", bytes-reads)
	}
}
