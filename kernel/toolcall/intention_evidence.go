package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
)

// The weights of what speaks for one instruction being behind a call, and against it. They
// were chosen by hand; their sum is one of the features.
const (
	weighTool     = 1.0  // the passage names the tool
	weighAct      = 0.4  // it tells to do this act, which the user does not ask for
	weighSameAct  = 0.1  // as does the user
	weighThing    = 0.35 // it has a thing or the very verb of the tool's name, and the user has not
	weighValue    = 0.4  // it names a telling argument that the user does not name
	weighWord     = 0.15 // it has the words of another argument, which the user has not; two count
	weighHostile  = 0.45 // it speaks as no honest document does
	weighTheft    = 0.35 // it tells to read and to send
	weighLanguage = 0.35 // it is in another language than the user writes
	weighOther    = 0.35 // the user named another value of that kind
	userAct       = 0.1  // the user asks for the act
	userThing     = 0.2  // and names the thing,
	userValue     = 0.4  // and telling arguments,
	userWord      = 0.1  // and others
	noLink        = 0.3  // a reading of which the passage names nothing
	userDelegates = 0.6  // the user leaves the choice to what is read
)

// common are the stems of verbs that tools of many kinds have.
var common = func() map[string]bool {
	out := make(map[string]bool)
	for w := range vague {
		out[prose.Stem(w)] = true
	}
	for w := range strings.FieldsSeq("send write post open edit save show read check use change add list share") {
		out[prose.Stem(w)] = true
	}
	return out
}()

// support is what the user's wish says for a call.
type support struct {
	act     bool
	things  int
	strong  int // telling values that the user names
	words   int // others
	foreign []value
	near    *mention // of the foreign ones
	nothing bool     // see unsupported
}

func (r *reading) supportFor(d deed) support {
	s := support{act: r.wish.acts()&d.acts != 0 || d.acts == 0 && r.wish.count(d.verbs) > 0 || r.wish.nominal(d.verbs), things: r.wish.count(d.nouns)}
	near := make([]bool, len(d.values)) // those that the user or the application may name
	for _, i := range d.near.at(&r.wish) {
		near[i] = true
	}
	for _, rule := range r.rules {
		p := newPassage([]prose.Sentence{rule})
		for _, i := range d.near.at(&p) {
			near[i] = true
		}
	}
	for i, v := range d.values {
		if !near[i] {
			s.foreign = append(s.foreign, v)
			continue
		}
		switch named := r.wish.named(v) || r.stated(v); {
		case named && v.quoted:
			s.words++
		case named && v.telling():
			s.strong++
			s.act = s.act || v.aims() && (d.effect == kernel.ToolSends || v.kind == amount || v.kind == fileName && d.effect == kernel.ToolWrites)
		case named || r.wish.resembles(v):
			s.words++
		default:
			s.foreign = append(s.foreign, v)
		}
	}
	s.near = newMention(unlike(s.foreign), maxAkin)
	return s
}

// nominal reports whether a passage asks for an act by its noun: "give it a like".
func (p passage) nominal(verbs []string) bool {
	for _, s := range p.sentences {
		for i, w := range s.Words {
			if i > 0 && slices.Contains(verbs, w.Stem) && (s.Words[i-1].Text == "a" || s.Words[i-1].Text == "an" || i > 1 && (s.Words[i-2].Text == "a" || s.Words[i-2].Text == "an")) {
				return true
			}
		}
	}
	return false
}

// stated reports whether the application names a value.
func (r *reading) stated(v value) bool {
	return slices.ContainsFunc(r.rules, func(s prose.Sentence) bool { return containsWord(prose.Fold(s.Text), v.form) })
}

func (v value) telling() bool { return v.kind != plain && v.kind != quantity && v.kind != level }

// aims reports whether a value says where an act goes.
func (v value) aims() bool {
	return v.kind == mailbox || v.kind == account || v.kind == webAddress || v.kind == handle || v.kind == person || v.kind == amount || v.kind == fileName
}

// contradicts reports whether a value takes the place of one that the user named, or adds
// a receiver to a wish that is complete without.
func (r *reading) contradicts(v value, p passage, u support) bool {
	if u.act && (p.hostile || v.aims()) && r.wish.names(v.kind) {
		return true
	}
	return u.strong > 1 && (v.kind == mailbox || v.kind == account || v.kind == handle || v.kind == webAddress)
}

// tells reports whether a passage that names a value gives the order for it. An honest
// text names numbers and dates for other reasons.
func (p passage) tells(v value) bool {
	if !p.named(v) {
		return false
	}
	if p.hostile {
		return v.telling() || v.kind == quantity || v.kind == level || len(v.form) > 5 || v.key != "" && p.has(v.key)
	}
	return v.aims() || v.kind == plain && len(v.form) > 8
}

// evidence weighs how far a call follows a passage rather than the user. near are the
// foreign values that the passage may name or resemble.
func (r *reading) evidence(d deed, p passage, u support, near []value) float64 {
	reads := d.effect == kernel.ToolReads
	e, told := 0.0, false
	if len(d.name) > 7 && spells(p.folded, d.name) {
		e += weighTool
	}
	act := p.acts()&d.acts != 0 || d.acts == 0 && p.count(d.verbs) > 0
	switch {
	case act && (u.act || reads):
		e += weighSameAct
	case act:
		e += weighAct
	}
	things, literally := 0, false
	for _, n := range d.nouns {
		if p.count([]string{n}) > 0 && !r.wish.has(n) && (!u.act || r.wish.count([]string{n}) == 0) {
			things++
			literally = literally || p.has(n)
		}
	}
	if !u.act && act && slices.ContainsFunc(d.verbs, func(v string) bool { return !common[v] && p.has(v) && !r.wish.has(v) }) {
		things++ // its very verb
	}
	words := 0
	for _, v := range near {
		switch {
		case p.tells(v) && (!v.quoted || v.kind == webAddress && p.hostile):
			if !told {
				e += weighValue
			}
			told = true
			if !reads && r.contradicts(v, p, u) {
				e += weighOther
			}
		case p.named(v) || p.resembles(v):
			words++
		}
	}
	if things > 0 || act && !reads && (told || words > 0) && u.nothing {
		e += weighThing
	}
	e += weighWord * float64(min(2, words))
	if p.hostile {
		e += weighHostile
	}
	if reads && (p.steals() || literally && p.acts()&(prose.Send|prose.Publish|prose.Upload) != 0) {
		e += weighTheft
	}
	strange := act && p.strange(r.wish) && (!u.act || reads)
	if strange {
		e += weighLanguage
	}
	if reads && !act && literally && p.acts()&(prose.Send|prose.Publish|prose.Upload) != 0 { // what is sent is read first
		act = true
		e += weighSameAct
	}
	linked := told || words > 0 || slices.ContainsFunc(d.nouns, p.has) || strange
	switch {
	case told && p.hostile && (act || !reads):
		return e
	case reads && e < weighTool && (!act || !linked):
		e -= noLink
	}
	if !p.hostile && r.wish.says() < fewWords && r.wish.acts() == 0 && !r.wish.asks() {
		e -= noLink // "Yes, that is right": what the user wished is not known
	}
	other := !reads && act && (!u.act && (things > 0 || p.hostile) || p.hostile && things > 1) || reads && things > 0 && p.steals()
	if !p.hostile && u.strong > 0 && len(u.foreign) == 0 {
		other = false // every argument is the user's
	}
	return e - r.excuse(u, p, things, told, reads, other)
}

// fewWords is the length of a request below which it may be an answer to a question.
const fewWords = 12

// asks reports whether a passage asks for anything.
func (p passage) asks() bool {
	return slices.ContainsFunc(p.sentences, func(s prose.Sentence) bool { return s.Instructs || strings.ContainsAny(s.Text, "?？") })
}

// says counts the words of a passage.
func (p passage) says() (n int) {
	for _, s := range p.sentences {
		n += len(s.Words)
	}
	return n
}

// strange reports whether a passage is in another language than the user's wish, as far
// as their verbs tell.
func (p passage) strange(wish passage) bool {
	return wish.says() > 2 && p.foreign() != wish.foreign()
}

func (p passage) foreign() bool {
	return slices.ContainsFunc(p.sentences, func(s prose.Sentence) bool { return s.Foreign })
}

// steals reports whether a passage tells to read and then to send.
func (p passage) steals() bool {
	return p.acts()&prose.Read != 0 && p.acts()&(prose.Send|prose.Publish|prose.Upload) != 0
}

// excuse weighs what speaks for the user being behind a call. That everybody reads says
// nothing; and an act of its own on the user's things is no less an instruction's.
func (r *reading) excuse(u support, p passage, things int, told, reads, other bool) float64 {
	e := 0.0
	if u.act && !reads {
		e += userAct
	}
	if r.delegates() && !p.hostile {
		e += userDelegates
	}
	switch {
	case told:
		return e
	case other && p.hostile && !reads:
		if u.strong > 0 && things == 0 && (u.things > 0 || len(r.deed.nouns) == 0 && r.deed.acts&^prose.Run == 0) {
			e += userValue
		}
		return e
	case other:
		return e
	}
	if u.strong > 0 {
		e += userValue
	}
	if !reads || !p.hostile {
		e += userThing * float64(min(1, u.things))
	}
	e += userWord * float64(min(2, u.words))
	return e
}
