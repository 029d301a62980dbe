package caddymodule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

const (
	// commitTimeout bounds writing a receipt, also for a client that has left.
	commitTimeout = 5 * time.Second
	// commitTries bounds how often a turn is computed anew because another
	// replica moved the session; each try costs microseconds.
	commitTries = 64
	// maxJudged is how many bytes of an answer are judged; the rest of a longer
	// one is recorded as skipped.
	maxJudged = 256 << 10
	// judgedOverlap is how far two windows of the judge overlap, so that no
	// phrase is cut by both.
	judgedOverlap = 512
	// centreSpan is over how many turns a session's running centre reaches.
	centreSpan = 8
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
	// talk is the conversation that an intercepted call resends; nil for
	// /lex/govern. Where the caller named no session, snapshots is set, and
	// each turn leaves its state under a key of its own.
	talk      *conversation
	snapshots bool
	// call is a tool call to record instead of a governed text; its decision
	// is made already. prompt holds its arguments.
	call *kernel.ToolCall

	// What is known so far.
	session   store.Session // as last read
	nonce     string
	memory    memory // opened
	signal    detect.Signal
	asked     *detect.Signal // of the prompt alone; nil until an answer is judged
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
	x.session, x.nonce = s, randomID()
	x.memory = openMemory(s.Secret, s.Memory)
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
	x.signal = x.app.model.Assess(texts)
	given := x.app.model.Assess(instructions)
	if x.signal.Unopened || given.Unopened {
		x.skip("request", "encoded more deeply than is opened", 0)
	}
	x.evidence = kernel.Evidence{
		Scores:           withInstructions(x.signal.Scores, given.Scores),
		ThreatSignal:     x.signal.Threat,
		SovereigntyDrift: x.signal.SelfReference,
	}
	x.embed(ctx)
	if err := x.step(); err != nil {
		return err
	}
	x.ran(detectorLocal, x.turn.Severity >= x.app.kernel.Policy().WatchAt)
	return nil
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
		if x.turn, err = x.app.kernel.Hold(x.session.State, *x.call, x.mode); err != nil {
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

// conclude weighs the model's answer.
func (x *exchange) conclude(ctx context.Context, answer string) error {
	judgement := x.verdict(ctx, answer)
	x.judgement = &judgement
	x.found = kernel.Output{
		Capitulated: judgement.Capitulated, Category: judgement.Category, Confidence: judgement.Confidence,
	}
	centre := detect.Vector(x.session.Centre)
	if len(centre) == 0 {
		centre = x.signal.Embedding
	}
	x.output = x.app.model.Embed(answer[:min(len(answer), maxJudged)])
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
	if judgement.Capitulated {
		x.caught = &judgement
	}
	return judgement.Capitulated
}

// judge reads an answer of any length up to maxJudged in overlapping windows,
// since the judge reads a window at a time, and returns the first verdict of
// guilty, else that on the beginning.
func (x *exchange) judge(answer string) detect.Judgement {
	if x.asked == nil {
		asked := x.app.model.Assess([]detect.Text{{Source: detect.User, Body: x.prompt}})
		x.asked = &asked
	}
	first := detect.Judge(*x.asked, x.prompt, answer)
	const step = detect.MaxJudged - judgedOverlap
	for from := step; !first.Capitulated && from < min(len(answer), maxJudged); from += step {
		if next := detect.Judge(*x.asked, x.prompt, answer[from:]); next.Capitulated {
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

// sentText gives the text that the client gets in the end, for a turn that may
// have been computed anew.
type sentText func(kernel.Turn) string

// sent is text, or the refusal after what has left already.
func (a *App) sent(begun, text string) sentText {
	return func(turn kernel.Turn) string {
		if turn.Refused {
			return begun + a.Policy.RefusalText
		}
		return text
	}
}

// commit makes the turn durable: the receipt, the session's next state and the
// statistics in one atomic step. If another turn of the session was faster the
// step is taken again on the state it left; a refusal that was decided stands.
// A nil error means that the receipt is durable, whether or not the client is
// still there.
func (x *exchange) commit(ctx context.Context, outcome kernel.Outcome, sent sentText) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	defer x.engine.locks.lock(x.key)()
	for range commitTries {
		err := x.commitOnce(ctx, outcome, sent)
		if err == nil {
			x.persisted = true
			x.engine.health.record(nil)
			x.observe()
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			x.app.metrics.receipts.WithLabelValues(x.kind(), "false").Inc()
			return err
		}
		if err := x.rebase(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("committing: the session changed %d times: %w", commitTries, store.ErrConflict)
}

func (x *exchange) commitOnce(ctx context.Context, outcome kernel.Outcome, sent sentText) error {
	text, key, known := sent(x.turn), x.key, false
	if x.snapshots {
		var err error
		key = x.talk.future(text)
		if known, err = x.adopt(ctx, key); err != nil {
			return err
		}
	}
	receipt, err := x.entry(key, outcome, text)
	if err != nil {
		return err
	}
	if known {
		return x.engine.store.Append(ctx, receipt)
	}
	return x.engine.store.Commit(ctx, store.Turn{Session: x.next(key, text), Receipt: receipt})
}

// adopt looks for the state that another turn of the very same texts left
// under the key. There is nothing to add to it but this turn's receipt, whose
// commitments are made with the secret that is kept there.
func (x *exchange) adopt(ctx context.Context, key string) (known bool, err error) {
	there, err := x.engine.store.Session(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the session: %w", err)
	}
	x.session.Secret = there.Secret
	return true, nil
}

// entry seals the receipt and puts it into the form of the store.
func (x *exchange) entry(key string, outcome kernel.Outcome, text string) (store.Receipt, error) {
	if err := x.seal(outcome, text); err != nil {
		return store.Receipt{}, err
	}
	record, err := x.receipt.JSON()
	if err != nil {
		return store.Receipt{}, fmt.Errorf("encoding the receipt: %w", err)
	}
	return store.Receipt{
		ID: x.receipt.ID, Kind: x.kind(), SessionKey: key, SessionID: x.publicID,
		Turn: x.receipt.Turn, Timestamp: x.receipt.Timestamp,
		Intervened: x.turn.Intervened, MAfter: x.turn.M, JSON: record,
	}, nil
}

// kind is the receipt's.
func (x *exchange) kind() string {
	if x.call != nil {
		return store.KindToolCall
	}
	return store.KindText
}

// rebase takes the step again on the session's present state.
func (x *exchange) rebase(ctx context.Context) error {
	x.evidence.Standing = x.turn.Reasons
	if err := x.open(ctx); err != nil {
		return err
	}
	return x.step()
}

// seal fills the receipt and gives it its id.
func (x *exchange) seal(outcome kernel.Outcome, sent string) error {
	r := x.app.kernel.Receipt(x.turn)
	r.SessionID, r.Turn, r.Timestamp = x.publicID, x.turnLabel(), x.started.UnixMilli()
	r.Prev, r.Nonce, r.Version = x.session.Head, x.nonce, x.app.version()
	r.Resent = x.snapshots
	r.Endpoint, r.Dialect, r.Model, r.Outcome = x.endpoint, x.dialect, x.model, outcome
	if x.turn.Refused && outcome == kernel.Answered {
		r.Outcome = kernel.Refused
	}
	if x.call != nil {
		r.ArgumentsCommitment = commitment(x.session.Secret, x.prompt)
	} else {
		r.PromptCommitment = commitment(x.session.Secret, x.prompt)
		r.OutputCommitment = commitment(x.session.Secret, sent)
	}
	r.Coverage = x.coverage
	if err := r.Seal(); err != nil {
		return fmt.Errorf("sealing the receipt: %w", err)
	}
	x.receipt = r
	return nil
}

func commitment(key []byte, text string) string {
	if text == "" {
		return ""
	}
	return kernel.Commit(key, text)
}

func (x *exchange) turnLabel() int {
	switch {
	case x.label > 0:
		return x.label
	case x.call != nil: // belongs to the turn that is going on
		return max(1, x.session.HighestTurn)
	}
	return x.session.Turns + 1
}

// next is the session after this turn, kept under key.
func (x *exchange) next(key, sent string) store.Session {
	s := x.advanced()
	if s.Key != key { // a conversation moves on to a key of its own
		s.Key, s.Version = key, 0
	}
	s.Head = x.receipt.ID
	s.Eval = s.Eval || x.eval
	if x.call != nil {
		return s
	}
	s.HighestTurn = max(s.HighestTurn, x.receipt.Turn)
	s.Memory = sealMemory(s.Secret, x.remember(sent))
	return s
}

// advanced is the session after this turn's step, but for what belongs to its
// receipt and to the store.
func (x *exchange) advanced() store.Session {
	s := x.session
	s.State = x.turn.Next
	if x.call != nil {
		return s
	}
	s.Turns++
	if x.output != nil && !x.turn.Refused {
		s.Centre = detect.Blend(s.Centre, x.output, min(s.Turns, centreSpan))
	}
	return s
}

// remember is the session's memory after this turn. An attack is not
// remembered: it would come back as context.
func (x *exchange) remember(sent string) memory {
	if x.talk != nil {
		return memory{History: x.talk.future(sent)}
	}
	turns := x.memory.Turns
	if !x.turn.Refused && sent != "" {
		turns = append(slices.Clone(turns), memoryTurn{Prompt: excerpt(x.prompt, maxExcerpt), Output: excerpt(sent, maxExcerpt)})
	}
	return memory{Turns: turns[max(0, len(turns)-*x.app.Memory):]}
}

// observe counts a committed turn and tells the subscribers.
func (x *exchange) observe() {
	if x.call != nil {
		x.observeTool()
		return
	}
	m := x.app.metrics
	m.requests.WithLabelValues(x.endpoint, x.dialect, string(x.receipt.Outcome)).Inc()
	m.receipts.WithLabelValues(store.KindText, "true").Inc()
	data := map[string]any{"receipt_id": x.receipt.ID, "endpoint": x.endpoint, "attack_type": string(x.turn.AttackType)}
	if x.turn.Refused {
		m.refusals.WithLabelValues(string(x.turn.PrimaryReason())).Inc()
		data["reason"] = string(x.turn.PrimaryReason())
		x.app.emit("lex_refused", data)
	}
	if x.turn.Intervened {
		x.app.emit("lex_intervened", data)
	}
}
