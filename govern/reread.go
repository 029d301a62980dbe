package govern

import (
	"context"
	"fmt"
	"slices"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
	"github.com/caddy-lex/lex/wire"
)

// Guards are asked about the user's last words before the newest turn together with it, when
// all of the conversation has been read. If they find an attack there, the conversation is
// read once more, and that message is treated as one in which the detector found it. No guard
// is asked the same again.

// A rereading is what guards said while a conversation is assessed.
type rereading struct {
	attacks []attack      // in the history
	earlier []pastMessage // the words before the newest turn, as they were read last
	asked   []asking
}

// An attack is a message of the history that guards find to be one.
type attack struct {
	digest string
	scores kernel.Scores
}

// AssessMessages reads a call with its resent conversation, assesses it and returns the body
// to forward (see readMessages).
func (o *Opened) AssessMessages(ctx context.Context, call wire.Request, body []byte) (a *Assessed, forwarded []byte, err error) {
	a, err = o.assessConversation(ctx, func() (in Input, err error) {
		in, forwarded, err = o.readMessages(ctx, call, body)
		return in, err
	})
	return a, forwarded, err
}

// AssessConversation reads a conversation in no API, assesses it and returns the messages to
// forward (see readConversation).
func (o *Opened) AssessConversation(ctx context.Context, messages []wire.Message) (a *Assessed, forwarded []wire.Message, err error) {
	a, err = o.assessConversation(ctx, func() (in Input, err error) {
		in, forwarded, err = o.readConversation(ctx, messages)
		return in, err
	})
	return a, forwarded, err
}

// assessConversation reads and assesses a conversation until guards find nothing more in the
// words before its newest turn. It looks no further back than the first time.
func (o *Opened) assessConversation(ctx context.Context, read func() (Input, error)) (*Assessed, error) {
	began := o.Coverage.clone()
	o.reread = new(rereading)
	defer func() { o.reread = nil }()
	for {
		in, err := read()
		if err != nil {
			return nil, err
		}
		if len(o.reread.attacks) > 0 {
			in.earlier = slices.DeleteFunc(slices.Clone(o.reread.earlier), func(m pastMessage) bool { return in.refused[m[0].Message] || o.reread.condemns(m) })
		}
		a, err := o.Assess(ctx, in)
		if err != nil || len(a.attacks) == 0 {
			return a, err
		}
		o.reread.attacks, o.reread.earlier = append(o.reread.attacks, a.attacks...), in.earlier
		waited := o.Coverage.waited // in all, which no reading takes back
		*o.Coverage = began.clone()
		o.Coverage.waited = nil
		for _, asked := range o.reread.asked {
			o.Coverage.guarded(asked)
		}
		o.Coverage.waitedFor(waited)
	}
}

// recalls fills in what a guard said when it was asked the same before.
func (r *rereading) recalls(a *asking) bool {
	if r == nil {
		return false
	}
	at := slices.IndexFunc(r.asked, func(b asking) bool { return b.guard == a.guard && b.text == a.text })
	if at < 0 {
		return false
	}
	b := r.asked[at]
	a.verdict, a.err, a.took, a.known = b.verdict, b.err, b.took, true
	return true
}

func (r *rereading) keeps(a asking) {
	if r != nil {
		r.asked = append(r.asked, a)
	}
}

// opinion is on all texts together: a guard that must give a verdict must give it on each.
func (r *rereading) opinion() (op opinion) {
	if r == nil {
		return op
	}
	for _, a := range r.asked {
		op.add(a, question{})
	}
	return op
}

// condemns reports whether guards found a message of the history to be an attack.
func (r *rereading) condemns(m pastMessage) bool {
	return r != nil && slices.ContainsFunc(r.attacks, func(a attack) bool { return a.digest == m.digest() })
}

// separateCondemned separates the messages that guards found to be attacks from the others.
func (o *Opened) separateCondemned(messages []pastMessage) (others, condemned []pastMessage) {
	for _, m := range messages {
		if o.reread.condemns(m) {
			condemned = append(condemned, m)
		} else {
			others = append(others, m)
		}
	}
	return others, condemned
}

// condemnedScores are those of these attacks, bounded as those of messages that the detector
// removes. With history refuse they refuse the turn.
func (o *Opened) condemnedScores() (worst kernel.Scores) {
	if o.reread == nil {
		return worst
	}
	for _, a := range o.reread.attacks {
		worst = maxScores(worst, a.scores)
	}
	if o.Reading.RefuseHistory {
		return worst
	}
	return capScores(worst, o.governor.Kernel.Policy())
}

// findAttacks finds which of the words before the newest turn guards find to be an attack, now
// that they find one in all of them together: those that are one alone, else all.
func (a *Assessed) findAttacks(ctx context.Context, together detect.Signal) error {
	messages := slices.DeleteFunc(slices.Clone(a.input.earlier), func(m pastMessage) bool { return len(a.Opened.governor.wordsOf(m)) == 0 })
	if len(messages) > 1 {
		signals, err := a.Opened.askAlone(ctx, messages...)
		if err != nil {
			return err
		}
		for i, s := range signals {
			refused, err := a.Opened.governor.refusesAlone(s)
			if err != nil {
				return err
			}
			if refused {
				a.attacks = append(a.attacks, attack{messages[i].digest(), s.Scores})
			}
		}
	}
	if len(a.attacks) == 0 {
		for _, m := range messages {
			a.attacks = append(a.attacks, attack{m.digest(), together.Scores})
		}
	}
	return nil
}

// askAlone asks the guards about what the user says in each message by itself, and returns what
// was read of it as they move it.
func (o *Opened) askAlone(ctx context.Context, messages ...pastMessage) ([]detect.Signal, error) {
	signals, questions := make([]detect.Signal, len(messages)), make([]question, len(messages))
	for i, m := range messages {
		_, s, err := o.wouldRefuse(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
		signals[i], questions[i] = s, o.governor.questionOn(model.RolePrompt, o.governor.wordsOf(m), s)
	}
	for i, op := range o.consult(ctx, questions...) {
		signals[i] = op.move(signals[i])
	}
	return signals, nil
}

// wordsOf returns what the user says in messages.
func (g *Governor) wordsOf(messages ...pastMessage) []detect.Text {
	texts, _ := g.unframe(textsOf(messages))
	said, _, _ := divide(texts)
	return said
}
