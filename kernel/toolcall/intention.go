package toolcall

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// The likelihoods from which on a call is blocked, if it reads and if it does more, and
// from which on it is flagged (docs/tools.md shows what others would do).
const (
	readsFrom   = 0.60
	changesFrom = 0.70
	flaggedFrom = 0.45
)

// compare reads the call's deed, and what the user says for it.
func (r *reading) compare(c Call, leaves []leaf) {
	if len(r.seen) > 0 {
		r.deed = r.readDeed(c, r.effect, leaves)
		r.deed.near = newMention(r.deed.values, len(r.deed.values))
		r.readArguments(leaves)
		r.user = r.supportFor(r.deed)
		r.user.nothing = r.unsupported()
		r.numbers = slices.Concat(r.figures, prose.Figures(r.arguments[:min(len(r.arguments), maxWording)]))
		r.wording = r.readWording()
		r.added = r.additions(leaves)
	}
}

// readArguments keeps the arguments in the forms in which they are compared with texts.
func (r *reading) readArguments(leaves []leaf) {
	var all strings.Builder
	for _, l := range leaves {
		if len(l.value) > maxWithin {
			continue
		}
		all.WriteString(prose.Fold(l.value) + "\n")
		if len(l.value) < 200 && len(r.texts) < maxMarks {
			r.texts = append(r.texts, l.value)
		}
		if n, err := strconv.ParseFloat(l.value, 64); err == nil && len(r.figures) < maxMarks {
			r.figures = append(r.figures, n)
		}
	}
	r.arguments = all.String()
}

// intention judges whether the call is what the user asks for, or what a text that the
// agent read tells it to do. (Instructions and data share one channel, as Greshake et al.
// 2023, arXiv:2302.12173, describe; what was asked is the only thing that tells them
// apart.) The likelihood that it is the latter comes from features of both (intention_feature.go).
func (r *reading) intention() {
	if len(r.seen) == 0 || r.application(r.deed) {
		return
	}
	if !r.spend(costSearch * len(r.untrusted.plain)) {
		return
	}
	from := changesFrom
	if r.effect == kernel.ToolReads {
		from = readsFrom
	}
	r.suspicion = r.likelihood(r.features(r.strongest()))
	if r.suspicion >= flaggedFrom {
		r.flags(InjectedAction)
	}
	if r.suspicion >= from {
		r.breaks(InjectedAction)
	}
}

// strongest returns what the strongest instruction weighs.
func (r *reading) strongest() (most float64) {
	d, u := r.deed, r.user
	for _, p := range r.instructions() {
		near := u.near.in(&p)
		if !r.spend(costSearch*len(p.folded) + costCompare*len(near)*len(p.folded)/2) {
			return most
		}
		e := r.evidence(d, p, u, near)
		if d.effect != kernel.ToolReads || p.hostile || p.acts()&(prose.Send|prose.Publish|prose.Upload) != 0 {
			most = max(most, e)
		}
	}
	if u.nothing && (d.effect != kernel.ToolReads && r.anyInstruction(func(p passage) bool { return p.hostile || p.strange(r.wish) }) ||
		d.effect == kernel.ToolReads && r.anyInstruction(func(p passage) bool { return p.hostile && p.steals() })) {
		most = max(most, unrelatedTakeover)
	}
	if r.mentioned(d, u) {
		most = max(most, weighAct+weighValue)
	}
	if r.unrelated(d, u) && r.takenOver() {
		most = max(most, unrelatedTakeover)
	}
	return most
}

// mentioned reports whether a text that tells nobody to do anything still speaks of an
// act on a thing which the user names neither of: "the folder is to be deleted".
func (r *reading) mentioned(d deed, u support) bool {
	if d.effect == kernel.ToolReads || u.act || u.strong > 0 || r.delegates() || r.wish.acts() == 0 {
		return false
	}
	for _, text := range r.seen {
		for i, s := range text {
			if !s.Mentions(d.acts, d.verbs) && !d.calledIn(text[max(0, i-2):i]) {
				continue
			}
			p := newPassage([]prose.Sentence{s})
			near := u.near.in(&p)
			if r.spend(costCompare*len(near)*len(p.folded)/2) && slices.ContainsFunc(near, func(v value) bool {
				return (v.aims() || v.kind == id && s.HasAny(d.verbs)) && !v.quoted && v.kind != amount && p.named(v)
			}) {
				return true
			}
		}
	}
	return false
}

// calledIn reports whether sentences have the tool's name.
func (d deed) calledIn(before []prose.Sentence) bool {
	return len(d.name) > 7 && slices.ContainsFunc(before, func(s prose.Sentence) bool { return strings.Contains(lettersOnly(s.Text), d.name) })
}

// unsupported reports whether the user says nothing at all for the call: neither its act nor
// a thing nor an argument of it.
func (r *reading) unsupported() bool {
	u := r.user
	if u.act && r.effect != kernel.ToolReads || u.strong > 0 || u.things > 0 || u.words > 0 || r.delegates() || r.wish.says() < fewWords && !r.wish.asks() {
		return false
	}
	if r.effect == kernel.ToolReads && (r.tool.shell || r.tool.code) {
		return false
	}
	return !slices.ContainsFunc(r.deed.values, func(v value) bool { return !v.quoted && r.wish.count(v.stems) > 0 })
}

func (r *reading) anyInstruction(is func(passage) bool) bool {
	return slices.ContainsFunc(r.instructions(), is)
}

// unrelatedTakeover is the evidence of a call that the user says nothing of, after a text
// that overrides what the user says: the instruction itself may be hidden.
const unrelatedTakeover = 0.9

// unrelated reports whether the user says nothing that the call could be meant by. Of what
// leaves for somewhere else, only the act and the receiver count: the rest may be what was
// stolen. Commands that look around share no words with a wish.
func (r *reading) unrelated(d deed, u support) bool {
	if u.strong > 0 || d.effect == kernel.ToolReads && (r.tool.shell || r.tool.code) {
		return false
	}
	shares := func(v value) bool {
		return (d.effect != kernel.ToolSends || v.aims()) && r.wish.count(v.stems) > 0
	}
	related := slices.ContainsFunc(d.values, shares)
	switch d.effect {
	case kernel.ToolReads:
		return !related && u.things == 0
	case kernel.ToolSends:
		return !related && !u.act
	}
	return !related && !u.act && u.things == 0
}

// delegates reports whether the user hands the choice of acts to what will be read.
func (r *reading) delegates() bool { return r.wish.delegates }

var delegation = regex.New(`\b(?:follow|do|carry out|incorporate|work in|execute|complete|perform|handle|apply|implement|process|work through|take care of|deal with|act on|respond to|address|go through|resolve)\b[^.!?\n]{0,50}\b(?:instructions?|steps?|tasks?|to-?dos?|checklist|guide|readme|runbook|playbook|items|requests?|tickets?|whatever|described|listed|procedure|actions?|comments?|feedback|suggestions?|remarks?|corrections?|recommendations?|findings?|review notes?)\b|\b(?:whatever|what) (?:it|he|she|they|the \w+|\w+) (?:asks?|wants?|needs?|tells? (?:me|you|us)|suggests?|proposes?)\b|\b(?:take care of|deal with|handle|see to|sort out) (?:it|this|that|them)\b|\bdo (?:it|that|them|this|the (?:first|next|last|second|rest))\b|\b(?:as|that) (?:he|she|they|\w+) (?:proposed|suggested|asked|requested|proposes|suggests)\b|\bas (?:described|proposed|suggested|requested)\b|\bdo\b[^.!?\n]{0,40}\bwhat\b[^.!?\n]{0,40}\bsays?\b`)

// application reports whether the application's own instructions ask for the deed. What
// they say the agent can do is no wish.
func (r *reading) application(d deed) bool {
	for _, s := range r.rules {
		p := newPassage([]prose.Sentence{s})
		if s.Instructs && s.Acts&d.acts != 0 && (p.count(d.nouns) > 0 || slices.ContainsFunc(d.values, p.named)) {
			return true
		}
	}
	return false
}

// takenOver reports whether anything that was read overrides what was asked, or puts on
// the role of the system.
func (r *reading) takenOver() bool {
	return slices.ContainsFunc(r.seen, func(o []prose.Sentence) bool {
		return slices.ContainsFunc(o, func(s prose.Sentence) bool { return s.Overrides })
	})
}

// instructions returns the passages that tell a reader to do something: a sentence that
// does, with the next, which often holds the details. One hostile sentence makes its
// neighbours that tell something hostile.
func (r *reading) instructions() []passage {
	if r.told != nil {
		return r.told
	}
	r.told = []passage{}
	for _, text := range r.seen {
		for i := 0; i < len(text); {
			end := i
			for end < len(text) && text[end].Instructs {
				end++
			}
			for at := i; at < end; at++ {
				p := newPassage(text[at:min(at+2, len(text))])
				p.hostile = hostileAt(text[i:end], at-i)
				r.told = append(r.told, p)
			}
			i = end + 1
		}
	}
	return r.told
}

// hostileAt reports whether a sentence of neighbours that tell something is hostile: if it
// is itself, or one before it, or a later one of the same line.
func hostileAt(run []prose.Sentence, at int) bool {
	if slices.ContainsFunc(run[:at+1], func(s prose.Sentence) bool { return s.Hostile }) {
		return true
	}
	for ; at+1 < len(run) && !run[at].Last; at++ {
		if run[at+1].Hostile {
			return true
		}
	}
	return false
}

// listen reads what was said in the conversation.
func (r *reading) listen(c Call) {
	if !slices.ContainsFunc(c.Context, func(o Observation) bool { return strings.TrimSpace(o.Text) != "" }) {
		return
	}
	wish := r.reader.Sentences(c.Request)
	for i := range wish {
		wish[i].Lenient(false)
	}
	r.wish = newPassage(wish)
	r.wish.stems = stemsOf(wish)
	r.wish.foreignScript = prose.ForeignScript(r.wish.folded)
	r.wish.english = slices.ContainsFunc(wish, func(s prose.Sentence) bool { return s.English() })
	last := strings.TrimSpace(c.Request)
	r.last = newPassage(r.reader.Sentences(last[strings.LastIndexByte(last, '\n')+1:]))
	r.wish.delegates = delegation.MatchString(r.wish.folded)
	r.rules = slices.DeleteFunc(r.reader.Sentences(c.System), func(s prose.Sentence) bool {
		return capability.MatchString(s.Text)
	})
	for _, o := range c.Context {
		r.seen = append(r.seen, r.reader.Sentences(prose.Undisguised(o.Text)))
		r.seen = append(r.seen, r.reader.Decoded(o.Text)...)
	}
}

// capability finds what an application says of abilities rather than wishes.
var capability = regex.New(`(?i)\b(?:can|able|may|access to|tools?|capab\w+|helps?|allowed|assist\w*)\b`)
