package toolcall

import (
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
)

// A source is the sentence of an observation that has most of what the call has and the
// request has not.
type source struct {
	found, of          int  // of the call's new words, in this sentence and in all
	act, tells         bool // it has the act of the call, and it tells to do it
	instructs, hostile bool
	assistant, program bool // it or a neighbour speaks of one
	switches           bool // it is in another language than the request
	prose              bool // it has the little words that fields of a record lack
}

func (r *reading) source() (best source) {
	novel, figures, verbs := r.novel(), r.foreignFigures(), prose.SignsOf(r.deed.verbs)
	var in []prose.Sentence
	at, most := 0, 0.0
	for _, text := range r.seen {
		for i := range text {
			s := &text[i]
			found, act := s.Count(novel), r.acts(s, verbs)
			likely := float64(found) + 0.6*truth(act) + 0.4*truth(s.Instructs) + 0.5*truth(s.Hostile) +
				0.4*truth(s.OfAssistants()) + 0.2*truth(s.OfSoftware()) +
				0.4*truth(r.switches(s)) + 0.7*truth(hasFigure(s, figures))
			if found == 0 && !act {
				likely--
			}
			if in == nil || likely > most {
				in, at, most = text, i, likely
				best = source{found: found, of: novel.Len(), act: act}
			}
		}
	}
	if in == nil {
		return best
	}
	s := &in[at]
	best.instructs, best.hostile, best.switches, best.prose = s.Instructs, s.Hostile, r.switches(s), s.Running()
	best.tells = s.Acts&r.deed.acts&^prose.Read != 0 || s.Acts&r.deed.acts != 0 && r.effect == kernel.ToolReads
	for i := max(0, at-1); i < min(at+2, len(in)); i++ {
		best.assistant = best.assistant || in[i].OfAssistants()
		best.program = best.program || in[i].OfSoftware()
	}
	return best
}

// novel returns the stems of the call that the request has not.
func (r *reading) novel() prose.StemSet {
	var out prose.StemSet
	add := func(stems ...string) {
		for _, w := range stems {
			if !common[w] && !r.wish.has(w) {
				out.Add(w)
			}
		}
	}
	add(r.deed.nouns...)
	add(r.deed.verbs...)
	for _, v := range r.user.foreign {
		if v.quoted {
			continue
		}
		for _, w := range v.stems {
			if !r.wish.has(w) {
				out.Add(w)
			}
		}
		if len(v.stems) == 0 {
			for _, w := range r.reader.Words(v.form) {
				out.Add(w.Stem)
			}
		}
	}
	return out
}

// acts reports whether a sentence has the act of the call, in whatever form. verbs are the
// signs of its verbs.
func (r *reading) acts(s *prose.Sentence, verbs prose.StemSigns) bool {
	same := s.Acts & r.deed.acts
	return same&^prose.Read != 0 || same != 0 && r.effect != kernel.ToolReads ||
		(s.Speaks&r.deed.acts != 0 || s.Signs&verbs != 0) && s.Mentions(r.deed.acts, r.deed.verbs)
}

// switches reports whether a sentence is in another language than the request, as far as
// its script and its little words tell.
func (r *reading) switches(s *prose.Sentence) bool {
	if len(s.Words) == 0 || r.wish.foreignScript {
		return false
	}
	return prose.ForeignScript(s.Text) || len(s.Words) >= 5 && r.wish.english && !s.English() && s.Lowercase()
}
