package govern

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

// Some APIs keep the conversation: a call names the answer that it goes on from, or a
// conversation, and brings only what is new. The state after a turn is therefore also
// kept under the id of its answer.
//
// The provider may then hold what the client was refused: an answer that was stopped
// on its way is complete there, and a prompt that never went there is missing. So a
// call that goes on from a refused answer is sent on from the last answer before it
// that was not refused.

// A providedAnswer is an answer with an id, by which a later call can go on from it.
type providedAnswer struct {
	ID string `json:"i"`
	// From is the answer that a call which names this one really goes on from: the
	// same, or if it was refused the one before it, "" for none.
	From string `json:"f,omitempty"`
	// Unseen says that not all of the conversation up to here passed through this proxy, and
	// Unread that something that did was not read.
	Unseen bool `json:"u,omitempty"`
	Unread bool `json:"n,omitempty"`
	// Blocked are calls for whose results the provider waits there, and which the client
	// has no result for, or has sent it in vain: calls that it never got and, if the answer
	// was refused, those that it was to answer when that happened.
	Blocked []wire.BlockedCall `json:"b,omitempty"`
	// Asked are the ids of the calls of the answer that the client got.
	Asked []string `json:"c,omitempty"`
	// Refused is what to know instead if the answer is refused when it is fetched. Nil
	// where it came whole with the call.
	Refused *providedAnswer `json:"r,omitempty"`
	// Partly: when it was fetched not all of it came.
	Partly bool `json:"p,omitempty"`
	// Of is the answer that was fetched and for which this refusal stands.
	Of string `json:"o,omitempty"`
	// Shared: the answer is in a conversation that the provider keeps.
	Shared bool `json:"s,omitempty"`
}

// maxAnswerID is how long an id can be that is remembered, in bytes. Those of the known
// APIs are much shorter.
const maxAnswerID = 512

// provided is what is known of the history that the provider keeps for a call.
type provided struct {
	shared bool   // it is a conversation, which grows with every call
	from   string // the answer that the forwarded call goes on from, "" if it names none
	unseen bool   // not all of it passed through this proxy
	unread bool   // something in it was not read when it did
}

// Why a history that the provider keeps is not inspected.
const (
	historyUnseen     = "history kept by the provider, not seen here"
	historyUnread     = "history kept by the provider, not all of it was inspected"
	historyTainted    = "history kept by the provider with an answer that was refused"
	blockedUnanswered = "calls that were blocked could not be answered"
	previousWas       = "the answer was refused; the call goes on from the last one before it"
)

// ConversationKey returns the key of the session of a conversation that a call names in
// its body.
func ConversationKey(namespace, id string) string { return SessionKey(namespace, "conversation:"+id) }

// AnswerKey returns the key that leads to the session as it was after the answer with
// the id.
func AnswerKey(namespace, id string) string { return keyOf(namespace, answerID+id) }

// answerID begins the ids of the sessions that answers lead to.
const answerID = "answer:"

// fetchedKey returns the key that leads to what was found in an answer when it was fetched.
// No name that a caller gives leads there: it has no zero byte.
func fetchedKey(namespace, id string) string { return keyOf(namespace, "\x00fetched:"+id) }

// key returns the key that leads to the session with what is known of the answer. Only the
// state after the call that asked for it is found by the id itself.
func (a providedAnswer) key(o *Opened) string {
	if a.ID == o.Fetches {
		return fetchedKey(o.Namespace, a.ID)
	}
	return AnswerKey(o.Namespace, a.ID)
}

// goOn records what of the history that the provider keeps was not inspected, and
// returns the body with the id of an answer that may be gone on from. In the mode
// observe the body stays.
func (o *Opened) goOn(call wire.Request, body []byte) (provided, []byte) {
	if call.HistoryPath == "" {
		return provided{}, body
	}
	part := "request." + call.HistoryPath
	p := provided{shared: call.Previous == "", from: call.Previous}
	if p.shared {
		p.unseen = true // not even its beginning: others may put something into it at any time
	} else {
		known := o.answer()
		p.unseen = known == nil || known.Unseen
		p.unread = known != nil && known.Unread
		// An id of ours would only fail at the provider, so it never gets there.
		if known != nil && known.From != call.Previous && (o.Mode == kernel.Enforce || call.PreviousOurs) {
			p.from = known.From
			body = wire.WithPrevious(body, call.HistoryPath, p.from)
			o.Coverage.Redacted = append(o.Coverage.Redacted, kernel.SkippedPart{Part: part, Why: previousWas, Bytes: len(call.Previous) + len(`""`)})
		}
	}
	switch {
	case !p.shared && p.from == "":
	case p.unseen:
		o.Coverage.Skip(part, historyUnseen, 0)
	case p.unread:
		o.Coverage.Skip(part, historyUnread, 0)
	}
	if o.memory.Tainted {
		o.Coverage.Skip(part, historyTainted, 0)
	}
	return p, body
}

// answer returns what the session knows of an answer, or nil. The latest counts.
func (m memory) answer(id string) *providedAnswer {
	for i, a := range slices.Backward(m.Answers) {
		if a.ID == id {
			return &m.Answers[i]
		}
	}
	return nil
}

// answer returns what is known of the answer that the call goes on from, or nil.
func (o *Opened) answer() *providedAnswer {
	if o.previous.ID == "" {
		return nil
	}
	return &o.previous
}

// KnowsPrevious reports whether the answer that the call goes on from is known.
func (o *Opened) KnowsPrevious() bool { return o.answer() != nil }

// sessionOf reads the session of a request. A refusal that stands for an answer which was
// fetched leads to the session of the call that asked for it, and is returned too.
func (g *Governor) sessionOf(ctx context.Context, r Request) (s store.Session, refusal providedAnswer, err error) {
	if s, err = g.Store.Session(ctx, r.Key); err != nil || !r.Unnamed || r.Conversation == nil {
		return s, refusal, err
	}
	known := openMemory(s.Secret, s.Memory).answer(r.Conversation.Previous)
	if known == nil || known.Of == "" {
		return s, refusal, nil
	}
	asked, err := g.Store.Session(ctx, AnswerKey(r.Namespace, known.Of))
	if errors.Is(err, store.ErrNotFound) {
		return s, refusal, nil
	}
	return asked, *known, err
}

// findPrevious finds what is known of the answer that the call goes on from, or fetches. It
// looks in other sessions of the same caller too, because what the provider holds does not
// depend on how the caller names his sessions. What was read there was not read here.
func (o *Opened) findPrevious(ctx context.Context) error {
	if o.Conversation == nil || o.previous.ID != "" {
		return nil
	}
	id := o.Conversation.Previous
	if id == "" {
		return o.findPending(ctx)
	}
	asking := o.memory
	known := asking.answer(id)
	foreign := known == nil
	if key := AnswerKey(o.Namespace, id); known == nil && key != o.Key {
		var err error
		if asking, err = o.memoryAt(ctx, key); err != nil {
			return err
		}
		known = asking.answer(id)
	}
	if known == nil {
		return nil
	}
	if id == o.Fetches {
		o.asking = asking
	}
	foreign = foreign && o.memory.answer(known.Of) == nil
	o.previous = *known
	if known.Refused != nil {
		there, err := o.memoryAt(ctx, fetchedKey(o.Namespace, id))
		if err != nil {
			return err
		}
		if fetched := there.answer(id); fetched != nil {
			o.previous = *fetched
		}
	}
	o.previous.Unseen = o.previous.Unseen || foreign
	return nil
}

// findPending completes what is known of a conversation whose last answer was not there
// yet, if that was fetched since.
func (o *Opened) findPending(ctx context.Context) error {
	if o.memory.Pending == "" {
		return nil
	}
	there, err := o.memoryAt(ctx, fetchedKey(o.Namespace, o.memory.Pending))
	fetched := there.answer(o.memory.Pending)
	if err != nil || fetched == nil {
		return err
	}
	m := &o.memory
	m.Unanswered, m.AskedCalls = fetched.Blocked, fetched.Asked
	m.Tainted = m.Tainted || fetched.From != fetched.ID
	if !fetched.Partly {
		m.Pending = ""
	}
	return nil
}

// memoryAt returns what the session with a key remembers; nothing if there is none.
func (o *Opened) memoryAt(ctx context.Context, key string) (memory, error) {
	s, err := o.governor.Store.Session(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return memory{}, nil
	case err != nil:
		return memory{}, fmt.Errorf("reading the session of an answer: %w", err)
	}
	return openMemory(s.Secret, s.Memory), nil
}

// A provider that has stored an answer gives it out by its id. Neither what was refused nor a
// call that was blocked may come to the client that way, and an answer is read together with
// what it answers, as far as that is remembered.

// ruleFetched names in receipts why an answer is refused, or a call is blocked: it was before.
const ruleFetched = "refused_before"

// unknownAsking is why the request of an answer that is fetched is not read. After a refusal
// nothing of the request is remembered.
const unknownAsking = "what a stored answer was asked with is not known here"

// fetchesRefused reports whether the call fetches an answer that was refused.
func (o *Opened) fetchesRefused() bool {
	known := o.answer()
	return o.Fetches != "" && known != nil && known.From != o.Fetches
}

// fetchesBlocked reports whether the call fetches an answer of which the tool call with this
// id was blocked.
func (o *Opened) fetchesBlocked(id string) bool {
	known := o.answer()
	return o.Fetches != "" && id != "" && known != nil &&
		slices.ContainsFunc(known.Blocked, func(b wire.BlockedCall) bool { return b.Key == id })
}

// readAsking makes the judge read an answer that is fetched together with the end of what it
// answers.
func (a *Assessed) readAsking(ctx context.Context) error {
	o := a.Opened
	switch {
	case o.Fetches == "":
		return nil
	case o.asking.Requested == "":
		o.Coverage.Skip("request", unknownAsking, 0)
		return nil
	}
	asked, err := o.score(ctx, []detect.Text{{Source: detect.User, Body: o.asking.Requested}})
	if err != nil {
		return fmt.Errorf("reading what a stored answer was asked with: %w", err)
	}
	a.forJudge = detect.NewAsked(asked, o.asking.Requested)
	return nil
}

// AnswerBlocked returns the body of a call as it is to be read, given that the client never
// got the calls of tools that were blocked. A provider that remembers them gets a result
// for each, and without it would reject the request. What belongs to them in a history that
// the client resends goes. In the mode observe the body stays.
func (o *Opened) AnswerBlocked(call wire.Request, body []byte) []byte {
	blocked := o.memory.Blocked
	switch known := o.answer(); {
	case call.HistoryPath == "":
	case call.Previous == "":
		blocked = o.memory.Unanswered
	case known == nil || known.From == "":
		blocked = nil
	default:
		blocked = known.Blocked
	}
	if len(blocked) == 0 || o.Answerer == nil || o.Mode != kernel.Enforce {
		return body
	}
	answered, err := o.Answerer.AnswerCalls(body, blocked)
	if err != nil { // the provider says what is wrong with it
		o.Coverage.Skip("request", blockedUnanswered, 0)
		return body
	}
	return answered
}

// owed returns the calls for whose results the provider waits if it gets nothing of the
// turn, or if the conversation goes on without it. The results that the client has sent with
// the turn are among them.
func (j *Judged) owed() []wire.BlockedCall {
	m := j.Opened.memory
	blocked, asked := m.Unanswered, m.AskedCalls
	if !j.input.history.shared {
		known := j.Opened.answer()
		if known == nil {
			return nil
		}
		blocked, asked = known.Blocked, known.Asked
	}
	blocked = slices.Clone(blocked)
	for _, id := range asked {
		blocked = append(blocked, wire.BlockedCall{Key: id, Note: removedText})
	}
	return blocked
}

// answers returns the answers of this turn that a later call may go on from: the
// model's, and the refusal that stands for it.
func (j *Judged) answers(r *Receipt, d Decisions) (list []providedAnswer) {
	switch {
	case j.call != nil:
		return nil
	case j.Opened.Fetches != "":
		return j.fetched(r, d)
	case !j.Opened.Kept:
		return nil
	}
	h := j.input.history
	refused := providedAnswer{From: h.from, Unseen: h.unseen, Unread: h.unread, Shared: h.shared}
	if h.from != "" {
		refused.Blocked = j.owed()
	}
	if id := j.answerID; id != "" && len(id) <= maxAnswerID {
		refused.ID = id
		a := refused
		if r.Outcome != kernel.Refused {
			a = providedAnswer{ID: id, From: id, Unseen: h.unseen, Unread: h.unread || j.Opened.Coverage.leavesUnread(), Blocked: d.unanswered(), Asked: d.asked()}
			if j.pending || r.Outcome != kernel.Answered {
				a.Unseen, a.Refused = true, &refused
			}
		}
		list = append(list, a)
	}
	if r.Outcome == kernel.Refused {
		list = j.appendRefusal(list, r, refused)
	}
	return list
}

// appendRefusal appends the refusal that the client gets, as an answer of its own.
func (j *Judged) appendRefusal(list []providedAnswer, r *Receipt, refused providedAnswer) []providedAnswer {
	if j.Opened.RefusalID == nil {
		return list
	}
	if id := j.Opened.RefusalID(r.ID); id != "" && id != j.answerID {
		refused.ID = id
		list = append(list, refused)
	}
	return list
}

// fetched returns what is known of an answer that was fetched, and the refusal that stands
// for it. The call that asked for it must have been seen. What was refused once stays so.
func (j *Judged) fetched(r *Receipt, d Decisions) []providedAnswer {
	o, known := j.Opened, j.Opened.answer()
	if known == nil || known.Refused == nil {
		return nil
	}
	a := *known.Refused
	a.Refused = known.Refused
	switch refused := known.From != o.Fetches; {
	case r.Outcome == kernel.Refused:
		refusal := *known.Refused
		refusal.Of = o.Fetches
		if a.Shared { // it stays where it is, with its calls
			a.Blocked = d.unanswered()
		}
		return j.appendRefusal([]providedAnswer{a}, r, refusal)
	case refused || j.pending || j.answerID != o.Fetches:
		return nil
	}
	a.From, a.Blocked, a.Asked = o.Fetches, d.unanswered(), d.asked()
	a.Partly = r.Outcome != kernel.Answered || o.FetchesRest
	a.Unseen = a.Unseen || a.Partly
	a.Unread = a.Unread || known.Unread || o.Coverage.leavesUnread()
	return []providedAnswer{a}
}

// taints reports whether the turn leaves a refused answer in a conversation that the
// provider keeps.
func (j *Judged) taints(outcome kernel.Outcome) bool {
	return j.input.history.shared && outcome == kernel.Refused && j.answerID != ""
}

// rememberNames returns the memory of a session that a turn of the same texts has left,
// with the names under which it is found after this one, what was not read of the answers
// there, and what the model thought in this one. That turn may not have kept what was said.
func (j *Judged) rememberNames(s store.Session, histories []string, unread []unreadText, answers []providedAnswer, thoughts []string) []byte {
	m := openMemory(s.Secret, s.Memory)
	if len(m.Histories) == 0 { // it does not recognise its conversation
		histories = nil
	}
	for _, digest := range histories {
		if !slices.Contains(m.Histories, digest) && len(m.Histories) < 2*wire.MaxChoices {
			m.Histories = append(m.Histories, digest)
		}
	}
	for _, u := range unread {
		if !slices.Contains(m.Unread, u) {
			m.Unread = append(m.Unread, u)
		}
	}
	m.remembers(m.Unread)
	m.thinks(thoughts)
	if j.keepsTalk() {
		m.Requested, m.Read = j.Opened.wholeTalk().remembered()
	}
	m.Answers = slices.Concat(m.Answers, answers)
	m.Answers = m.Answers[max(0, len(m.Answers)-maxAnswers):]
	return sealMemory(s.Secret, m)
}
