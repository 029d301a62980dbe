package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

const (
	// commitTimeout bounds writing a receipt, also for a client that has left:
	// waiting for the session's other turns, and the store. A write whose end is
	// not known is repeated once, within as long again.
	commitTimeout = 5 * time.Second
	// commitTries bounds how often a turn is computed anew because another
	// replica moved the session; each try costs microseconds.
	commitTries = 64
	// centreSpan is over how many turns a session's running centre reaches.
	centreSpan = 8
)

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
	if err := x.commitInTurn(ctx, outcome, sent); err != nil {
		x.app.metrics.receipts.WithLabelValues(x.kind(), "false").Inc()
		return err
	}
	x.persisted = true
	x.engine.health.record(nil)
	x.observe()
	return nil
}

// commitInTurn commits when the session's other commits in this process are over.
func (x *exchange) commitInTurn(ctx context.Context, outcome kernel.Outcome, sent sentText) error {
	unlock, err := x.engine.locks.lock(ctx, x.key)
	if err != nil {
		return err
	}
	defer unlock()
	for range commitTries {
		if err := x.commitOnce(ctx, outcome, sent); !errors.Is(err, store.ErrConflict) {
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
		return again(ctx, func(ctx context.Context) error { return x.engine.store.Append(ctx, receipt) })
	}
	turn := store.Change{Session: x.next(key, text), Receipt: receipt}
	return again(ctx, func(ctx context.Context) error { return x.engine.store.Commit(ctx, turn) })
}

// again writes, and once more when it is not known whether that came about: the
// write is idempotent by the receipt's id. Otherwise a store that is merely slow
// would hold a receipt that says answered, of a turn whose client got an error.
func again(ctx context.Context, write func(context.Context) error) error {
	err := write(ctx)
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return write(ctx)
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
	summary, err := summarise(&x.receipt)
	if err != nil {
		return store.Receipt{}, err
	}
	return store.Receipt{
		ID: x.receipt.ID, Kind: x.kind(), SessionKey: key, SessionID: x.publicID, TurnID: x.nonce,
		Turn: x.receipt.Turn, Timestamp: x.receipt.Timestamp,
		Intervened: x.turn.Intervened, MAfter: x.turn.M, JSON: record, Summary: summary,
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
	x.evidence.Repeated = x.repeats()
	return x.step()
}

// seal fills the receipt and gives it its id.
func (x *exchange) seal(outcome kernel.Outcome, sent string) error {
	r := x.app.kernel.Receipt(x.turn)
	r.SessionID, r.Turn, r.Timestamp = x.publicID, x.turnLabel(), x.started.UnixMilli()
	r.Prev, r.Nonce, r.Version = x.session.Head, x.nonce, x.app.version()
	r.Resent = x.snapshots
	r.Endpoint, r.Dialect, r.Model, r.Outcome = x.endpoint, x.dialect, plainName(x.model), outcome
	if x.turn.Refused && outcome == kernel.Answered {
		r.Outcome = kernel.Refused
	}
	if x.call != nil {
		r.ArgumentsCommitment = commitment(x.session.Secret, x.prompt)
	} else {
		r.PromptCommitment = commitment(x.session.Secret, x.prompt)
		r.OutputCommitment = commitment(x.session.Secret, sent)
	}
	r.Coverage = listed(x.coverage)
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
	if x.evidence.Repeated {
		return max(1, x.session.Turns)
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
	if !x.evidence.Repeated {
		s.Turns++
	}
	if x.output != nil && len(x.turn.Reasons) == 0 {
		s.Centre = detect.Blend(s.Centre, x.output, min(s.Turns, centreSpan))
	}
	return s
}

// remember is the session's memory after this turn. An attack is not
// remembered, also where the mode observe let it pass: it would come back as
// context, and a site that enforces may share the session.
func (x *exchange) remember(sent string) memory {
	m := x.memory
	refused := len(x.turn.Reasons) > 0
	switch {
	case x.talk != nil:
		m.History = x.talk.future(sent)
	case !refused && sent != "":
		m.Turns = append(slices.Clone(m.Turns), memoryTurn{Prompt: excerpt(x.prompt, maxExcerpt), Output: excerpt(sent, maxExcerpt)})
		m.Turns = m.Turns[max(0, len(m.Turns)-*x.app.Memory):]
	}
	m.Refused = slices.Concat(m.Refused, x.removed)
	if refused {
		m.Refused = append(m.Refused, x.said...)
	}
	if refused && x.mode == kernel.Observe && sent != "" { // the answer itself left
		m.Refused = append(m.Refused, messageDigest(sent))
	}
	m.Refused = m.Refused[max(0, len(m.Refused)-maxRefused):]
	if m.Failed = ""; sent == "" && (x.receipt.Outcome == kernel.ProviderFailed || x.receipt.Outcome == kernel.ClientGone || x.receipt.Outcome == kernel.Aborted) {
		m.Failed = x.asking
	}
	return m
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
	if primary := x.turn.PrimaryReason(); primary != "" {
		m.refusals.WithLabelValues(string(primary), string(x.mode)).Inc()
	}
	if x.turn.Refused {
		data["reason"] = string(x.turn.PrimaryReason())
		x.app.emit("lex_refused", data)
	}
	if x.turn.Intervened {
		x.app.emit("lex_intervened", data)
	}
}
