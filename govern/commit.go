package govern

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

const (
	// CommitTime bounds a commit, which goes on if the client leaves: the wait for
	// the session's other turns and the write to the store. A write whose outcome is
	// not known is repeated once, within the same time again.
	CommitTime = 5 * time.Second
	// commitTries bounds how often a turn is computed again because another replica
	// changed the session. Each try costs microseconds.
	commitTries = 64
	// centreSpan is how many turns a session's running centre averages.
	centreSpan = 8
)

// A Receipt is the result of a turn: its record, and the decision that is recorded.
type Receipt struct {
	kernel.Receipt
	Turn kernel.Turn
	// TurnID and PublicID name the turn and its session.
	TurnID, PublicID string
	// Kind is the record's kind in the store.
	Kind string
	// Level is where the statistics count the turn's first decision, if they count it.
	Level store.Level
	// Persisted says that the record is durable.
	Persisted bool
	// Calls are the receipts of the tool calls in the answer, in order. They are durable
	// if this one is.
	Calls []*Receipt
	// Openings are the keys of the commitments.
	Openings Openings

	record []byte // the sealed receipt's JSON
}

// Openings are the keys of a receipt's commitments in lower-case hex, "" where there was
// no such text. Whoever has one can show the text to a third party.
type Openings struct {
	Prompt, Output, Arguments string
}

// Sent is what the client gets of an answer.
type Sent struct {
	// Text is all of it.
	Text string
	// Choices are the texts of the alternatives; nil if there is one.
	Choices []string
}

// A SentText tells what the client gets. It is a function of the decisions, because Commit
// may take them again. An error ends the commit before anything is written.
type SentText func(Decisions) (Sent, error)

// Sent returns the SentText of an answer in which no call can be blocked: text, or if the
// turn is refused the text that has already left, followed by the refusal.
func (g *Governor) Sent(begun, text string) SentText {
	return func(d Decisions) (Sent, error) {
		if d.Turn.Refused {
			return Sent{Text: begun + g.RefusalText}, nil
		}
		return Sent{Text: text}, nil
	}
}

// Commit makes the turn durable: the receipt, the session's next state and the
// statistics in one atomic step. If another turn of the session was committed first,
// the step is taken again from the state which that turn left. A refusal stays a
// refusal.
//
// A nil error means that the receipt is durable, whether or not the client is still
// there. If there is an error, the receipt is the one that could not be written.
func (j *Judged) Commit(ctx context.Context, outcome kernel.Outcome, sent SentText) (*Receipt, error) {
	defer add(&j.Opened.Timing.Commit, time.Now())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CommitTime)
	defer cancel()
	unlock, err := j.Opened.governor.Locks.Lock(ctx, j.Opened.session.Key)
	if err != nil {
		return j.unwritten(), err
	}
	defer unlock()
	for range commitTries {
		receipt, err := j.commitOnce(ctx, outcome, sent)
		if !errors.Is(err, store.ErrConflict) {
			return receipt, err
		}
		if j, err = j.rebase(ctx); err != nil {
			return receipt, err
		}
	}
	return j.unwritten(), fmt.Errorf("committing: the session changed %d times: %w", commitTries, store.ErrConflict)
}

func (j *Judged) unwritten() *Receipt {
	r := &Receipt{Turn: j.Turn, TurnID: j.Opened.TurnID, PublicID: j.Opened.PublicID, Kind: store.KindText, Level: j.Opened.levelOf(j.first)}
	if j.call != nil {
		r.Kind = store.KindToolCall
	}
	return r
}

// commitOnce writes the turn on the session as it was opened.
func (j *Judged) commitOnce(ctx context.Context, outcome kernel.Outcome, sentText SentText) (*Receipt, error) {
	o := j.Opened
	decisions, err := j.decisions()
	if err != nil {
		return j.unwritten(), err
	}
	if j.call != nil && decisions.blocksCall() {
		outcome = kernel.Refused // what is asked for together runs together
	}
	sent, err := sentText(decisions)
	if err != nil {
		return j.unwritten(), err
	}
	s, known := o.session, false
	var futures, aliases []string
	if o.branches {
		// A conversation moves on to a key of its own, or to one for each choice that
		// the client may go on from. Another turn of the very same texts may have left
		// its state there: then there is nothing to add to it but this receipt, whose
		// commitments are made with the secret that is kept there.
		choices := j.resent(sent, decisions)
		if o.Kept {
			choices = append(slices.Clone(choices), "") // the client may name the answer instead of resending it
		}
		futures = o.Conversation.futures(choices)
		s.Key, s.Version, aliases = futures[0], 0, slices.Clone(futures[1:])
		there, err := o.governor.Store.Session(ctx, s.Key)
		switch {
		case err == nil:
			s, known = there, true
		case !errors.Is(err, store.ErrNotFound):
			return j.unwritten(), fmt.Errorf("reading the session: %w", err)
		}
	}
	r, err := j.seal(s.Secret, outcome, sent.Text)
	if err != nil {
		return r, err
	}
	entry, err := r.entry(s.Key, o.counted(s, r))
	if err != nil {
		return r, err
	}
	var calls []store.Receipt
	if r.Calls, calls, err = j.sealCalls(s, decisions, r); err != nil {
		return r, err
	}
	answers := j.answers(r, decisions)
	for _, a := range answers {
		aliases = append(aliases, a.key(o))
	}
	aliases = slices.DeleteFunc(aliases, func(alias string) bool { return alias == s.Key })
	thoughts := j.thoughtMarks(s.Secret)
	eval := s.Eval || o.Eval                                   // which the session says, so that it is written
	stays := known && !eval && len(aliases)+len(thoughts) == 0 // the session, as it is there
	switch {
	case !known:
		s = j.next(s, r, sent, answers, decisions)
	case !stays:
		s.Eval = eval
		s.Memory = j.rememberNames(s, futures, j.unreadOfAnswer(s.Secret, sent.choices()), answers, thoughts)
	}
	if stays {
		err = writeAndRetry(ctx, func(ctx context.Context) error {
			return o.governor.Store.Append(ctx, append([]store.Receipt{entry}, calls...)...)
		})
	} else {
		change := store.Change{Session: s, Receipt: entry, Calls: calls, Aliases: aliases}
		err = writeAndRetry(ctx, func(ctx context.Context) error { return o.governor.Store.Commit(ctx, change) })
	}
	r.Persisted = err == nil
	for _, c := range r.Calls {
		c.Persisted = r.Persisted
	}
	return r, err
}

// counted returns the conversation that the statistics count the turn's receipts for, "" if
// they count them for the session alone. A first turn begins the family of its receipt.
func (o *Opened) counted(s store.Session, turn *Receipt) (conversation string) {
	if !o.branches {
		return ""
	}
	return cmp.Or(s.Family, turn.ID)
}

// entry is the sealed receipt as the store keeps it.
func (r *Receipt) entry(key, conversation string) (store.Receipt, error) {
	summary, err := Summarise(&r.Receipt)
	if err != nil {
		return store.Receipt{}, fmt.Errorf("encoding the receipt's summary: %w", err)
	}
	return store.Receipt{
		ID: r.ID, Kind: r.Kind, SessionKey: key, Conversation: conversation, SessionID: r.PublicID, TurnID: r.TurnID,
		Turn: r.Receipt.Turn, Timestamp: r.Timestamp,
		Intervened: r.Turn.Intervened, MAfter: r.Turn.M, Level: r.Level, JSON: r.record, Summary: summary,
	}, nil
}

// choices returns the texts that the client gets of the alternatives of the answer.
func (s Sent) choices() []string {
	if s.Choices == nil {
		return []string{s.Text}
	}
	return s.Choices[:min(len(s.Choices), wire.MaxChoices)]
}

// resent returns the texts with which the client may send the answer back. Some
// frameworks leave out what stands beside the calls of tools, the note in place of a
// blocked one included. Others make one text of a refusal and the content that says the
// same, or keep the content without the refusal beside it.
func (j *Judged) resent(sent Sent, d Decisions) []string {
	texts := slices.Clone(sent.choices())
	if d.passesCall() || d.blocksCall() {
		texts = append(texts, "")
	}
	for _, text := range sent.choices() {
		if refusal := j.Opened.governor.RefusalText; refusal != "" && strings.HasSuffix(text, refusal) {
			texts = append(texts, text+refusal, strings.TrimSuffix(text, refusal))
		}
	}
	return texts[:min(len(texts), wire.MaxChoices)]
}

// RefusedChoices returns the texts of the choices of a refused answer. begun has those that
// had begun to leave.
func (g *Governor) RefusedChoices(begun []string) []string {
	refused := []string{g.RefusalText} // of the choices that had not begun
	for _, text := range begun {
		refused = append(refused, text+g.RefusalText)
	}
	return refused
}

// writeAndRetry writes, and writes once more if the outcome is not known. The write is
// idempotent by the receipt's id. Without the retry, a store that is only slow could
// keep a receipt with the outcome answered for a turn whose client got an error.
func writeAndRetry(ctx context.Context, write func(context.Context) error) error {
	err := write(ctx)
	unknown := errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrRefused)
	if !unknown && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CommitTime)
	defer cancel()
	return write(ctx)
}

// rebase takes the step again from the session's present state. A refusal stays a
// refusal.
func (j *Judged) rebase(ctx context.Context) (*Judged, error) {
	g := j.Opened.governor
	o, err := g.open(ctx, j.Opened.Request, j.Opened.TurnID, j.Opened.Coverage)
	if err != nil {
		return j, err
	}
	o.talk = j.Opened.talk
	if j.call != nil {
		return o.recordCalls(append([]Call{*j.call}, j.calls...))
	}
	next := *j
	next.Opened = o
	repeated := !j.evidence.Unassessed && o.repeats(*j.input)
	next.evidence.Standing, next.evidence.Repeated = j.Turn.Reasons, repeated
	if j.first != nil {
		evidence := j.first.Evidence
		evidence.Standing, evidence.Repeated = j.first.Reasons, repeated
		first, err := o.decide(evidence, kernel.Output{})
		if err != nil {
			return j, err
		}
		next.first = &first
	}
	next.Turn, err = o.decide(next.evidence, next.found)
	return &next, err
}

// seal fills the receipt and gives it its id.
func (j *Judged) seal(secret []byte, outcome kernel.Outcome, sent string) (*Receipt, error) {
	o, out := j.Opened, j.unwritten()
	r := o.governor.Kernel.Receipt(j.Turn)
	r.SessionID, r.Turn, r.Timestamp = o.PublicID, j.label(), o.Started.UnixMilli()
	r.Prev, r.Nonce, r.Version, r.Setup = o.session.Head, o.TurnID, o.governor.Version, o.governor.Setup
	r.Resent, r.TraceID = o.branches, o.TraceID
	r.Endpoint, r.Dialect, r.Model, r.Outcome = o.Endpoint, o.Dialect, plainName(o.Model), outcome
	if j.Turn.Refused && outcome == kernel.Answered {
		r.Outcome = kernel.Refused
	}
	if j.call != nil {
		r.Nonce = callNonce(o.TurnID)
		r.ArgumentsCommitment, out.Openings.Arguments = commit(secret, &r, kernel.CommittedArguments, j.input.Prompt)
	} else {
		r.PromptCommitment, out.Openings.Prompt = commit(secret, &r, kernel.CommittedPrompt, j.input.Prompt)
		r.OutputCommitment, out.Openings.Output = commit(secret, &r, kernel.CommittedOutput, sent)
	}
	r.Coverage = o.Coverage.bounded()
	if j.call != nil && !j.call.Standalone {
		r.Coverage = callCoverage(requestedCall, *j.call, r.Outcome)
	}
	record, err := r.Seal()
	if err != nil {
		return out, fmt.Errorf("sealing the receipt: %w", err)
	}
	out.Receipt, out.record = r, record
	return out, nil
}

// commit returns the commitment to a text of a receipt, whose nonce is known, and its
// opening; both are "" if there is no such text.
func commit(secret []byte, r *kernel.Receipt, of kernel.Committed, text string) (commitment, opening string) {
	if text == "" {
		return "", ""
	}
	key := kernel.CommitmentKey(secret, r.Nonce, of)
	return kernel.Commit(key, text), hex.EncodeToString(key)
}

// callNonce returns the nonce of the receipt of a tool call. It begins with the id of the
// turn, which is the nonce of the turn's own receipt.
func callNonce(turnID string) string { return turnID + "." + rand.Text() }

// label returns the number of the turn: the caller's, or else the session's next
// number. A tool call has the number of the current turn, and a repeated turn the
// number of the last one.
func (j *Judged) label() int {
	s := j.Opened.session
	switch {
	case j.Opened.Label > 0:
		return j.Opened.Label
	case j.call != nil:
		return max(1, s.HighestTurn)
	case j.evidence.Repeated:
		return max(1, s.Turns)
	}
	return s.Turns + 1
}

// next returns the session after this turn, with its new head and memory.
func (j *Judged) next(s store.Session, r *Receipt, sent Sent, answers []providedAnswer, d Decisions) store.Session {
	s = j.advance(s)
	s.Head, s.Eval = r.Link(), s.Eval || j.Opened.Eval
	if n := len(r.Calls); n > 0 {
		s.Head, s.State = r.Calls[n-1].Link(), d.CallTurns[n-1].Next
	}
	if j.call == nil {
		s.HighestTurn = max(s.HighestTurn, r.Receipt.Turn)
		s.Memory = sealMemory(s.Secret, j.remember(r.Outcome, sent, answers, d))
	}
	return s
}

// advance returns the session after this turn's step.
func (j *Judged) advance(s store.Session) store.Session {
	s.State = j.Turn.Next
	if j.call != nil {
		return s
	}
	if !j.evidence.Repeated {
		s.Turns++
	}
	if j.output != nil && len(j.Turn.Reasons) == 0 {
		s.Centre = detect.Blend(s.Centre, j.output, min(s.Turns, centreSpan))
	}
	return s
}

// keepsTalk reports whether later calls may go on from the answer of this turn, or fetch it,
// without what was said until then.
func (j *Judged) keepsTalk() bool {
	return (j.Opened.Kept || j.input.history != (provided{})) && len(j.Turn.Reasons) == 0
}

// remember returns the session's memory after this turn. An attack is not remembered,
// even if the mode observe let it pass: it would come back as context, and a site in
// the mode enforce may share the session.
func (j *Judged) remember(outcome kernel.Outcome, sent Sent, answers []providedAnswer, d Decisions) memory {
	o, m := j.Opened, j.Opened.memory
	attack := len(j.Turn.Reasons) > 0
	m.Branches = o.branches
	if j.input.silent && sent.Text == "" { // what was said before stays as it is
		if !attack {
			m.Tools = rememberTools(m.Tools, j.tools)
		}
		return m
	}
	switch {
	case o.Conversation != nil:
		if m.Histories = o.Conversation.futures(j.resent(sent, d)); j.input.unasked {
			m.Histories = nil // it is read again
		}
		m.remembers(slices.Concat(j.unreadOfRequest(sent.choices()), j.unreadOfAnswer(o.session.Secret, sent.choices())))
		m.Seen = j.input.seen[max(0, len(j.input.seen)-maxSeen):]
		m.thinks(j.thoughtMarks(o.session.Secret))
		if o.branches {
			m.Answers = nil // each turn has a session of its own, which only its own answer leads to
		}
		m.Answers = slices.Concat(m.Answers, answers)
		m.Answers = m.Answers[max(0, len(m.Answers)-maxAnswers):]
		m.Tainted = m.Tainted || j.taints(outcome)
	case !attack && sent.Text != "":
		m.Turns = append(slices.Clone(m.Turns), Remembered{Prompt: excerpt(j.input.Prompt, maxExcerpt), Output: excerpt(sent.Text, maxExcerpt), Gaps: j.unreadOfPrompt()})
		m.Turns = m.Turns[max(0, len(m.Turns)-o.governor.Memory):]
	}
	in := *j.input
	m.Distrust = m.Distrust || in.distrust
	if attack && o.Mode == kernel.Observe && sent.Text != "" { // the answer itself left
		in.removed, m.Distrust = append(slices.Clip(in.removed), messageDigest(sent.Text)), true
	}
	m.refuses(in, attack)
	if j.keepsTalk() {
		m.Requested, m.Read = o.wholeTalk().remembered()
	}
	m.Blocked = slices.Concat(m.Blocked, d.unanswered())
	m.Blocked = m.Blocked[max(0, len(m.Blocked)-maxBlocked):]
	switch {
	case !j.input.history.shared:
	case outcome == kernel.Answered || outcome == kernel.Refused && j.answerID != "":
		m.Unanswered, m.AskedCalls = d.unanswered(), d.asked()
		m.Pending = ""
		if j.pending && len(j.answerID) <= maxAnswerID {
			m.Pending = j.answerID
		}
	case outcome == kernel.Refused: // the provider has nothing of the turn
		m.Unanswered, m.AskedCalls = j.owed(), nil
	}
	if !attack {
		m.Tools = rememberTools(m.Tools, j.tools)
	}
	m.Failed, m.Asked = "", ""
	if len(answers) > 0 {
		m.Asked = j.input.asking
	}
	if !j.Turn.Refused && sent.Text == "" && (outcome == kernel.ProviderFailed || outcome == kernel.ClientGone || outcome == kernel.Aborted) {
		m.Failed = j.input.asking
	}
	return m
}
