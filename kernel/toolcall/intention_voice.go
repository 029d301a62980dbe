package toolcall

import (
	"slices"

	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// voice is how a sentence of an observation speaks to its reader.
type voice int

const (
	neutral   voice = iota // it tells what is
	instructs              // it tells to do something
	technical              // it speaks of programs, names a next step, or is in another language
	addressed              // it speaks to an assistant, or overrides what was asked
	voices
)

// voiceOf tells how a sentence of a text speaks, with what stands before and after it.
func (r *reading) voiceOf(text []prose.Sentence, at int) voice {
	s := &text[at]
	near := text[max(0, at-1):min(at+2, len(text))]
	assistant := func(s prose.Sentence) bool { return s.OfAssistants() }
	switch {
	case s.Hostile, assistant(*s), s.Instructs && slices.ContainsFunc(near, func(s prose.Sentence) bool { return s.Hostile }):
		return addressed
	case r.switches(s), s.OfSoftware(), slices.ContainsFunc(near, assistant):
		return technical
	case nextStep.MatchString(s.Text), at > 0 && len(text[at-1].Words) < 6 && nextStep.MatchString(text[at-1].Text):
		return technical
	case s.Instructs:
		return instructs
	}
	return neutral
}

// nextStep finds labels of what is left to do. An order in a field of a record needs one.
var nextStep = regex.New(`(?i)\b(?:next[ _-]?(?:steps?|actions?)|action[ _-]?(?:items?|required)|required[ _-]?(?:next[ _-]?)?(?:steps?|actions?)|to-?dos?|remaining work|remediation|handling|hints?|directives?|instructions?|checklist|nächster schritt|noch zu erledigen|prochaine étape|siguiente paso|prossimo passo|próximo passo)\b|下一步|待办|次のステップ`)

// A gift tells who gave what the call adds to the request.
type gift struct {
	most        [voices]int // arguments that one sentence of a voice gives
	contradicts int         // arguments of which the request gives another
	ordered     bool        // one of those is given by more than a neutral sentence
	spoken      bool        // and by more than an order to anybody
}

// gifts looks for the additions of the call in all that was read.
func (r *reading) gifts() (g gift) {
	if len(r.added) == 0 {
		return g
	}
	finder, loudest := newFinder(r.added), make([]voice, len(r.added))
	for _, text := range r.seen {
		for i := range text {
			given := finder.in(&text[i])
			if len(given) == 0 {
				continue
			}
			v := r.voiceOf(text, i)
			g.most[v] = max(g.most[v], len(given))
			for _, n := range given {
				loudest[n] = max(loudest[n], v)
			}
		}
	}
	for n, a := range r.added {
		if r.contradicted(a) {
			g.contradicts++
			g.ordered = g.ordered || loudest[n] > neutral
			g.spoken = g.spoken || loudest[n] > instructs
		}
	}
	return g
}
