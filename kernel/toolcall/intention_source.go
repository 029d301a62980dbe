package toolcall

import (
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/regex"
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
	novel, figures, verbs := r.novel(), r.foreignFigures(), signsOf(r.deed.verbs)
	var in []sentence
	at, most := 0, 0.0
	for _, text := range r.seen {
		for i := range text {
			s := &text[i]
			found, act := s.count(novel), r.acts(s, verbs)
			likely := float64(found) + 0.6*truth(act) + 0.4*truth(s.instructs) + 0.5*truth(s.hostile) +
				0.4*truth(s.speaksOf(assistants, assistantsElsewhere)) + 0.2*truth(s.speaksOf(softwares, softwaresElsewhere)) +
				0.4*truth(r.switches(s)) + 0.7*truth(s.hasFigure(figures))
			if found == 0 && !act {
				likely--
			}
			if in == nil || likely > most {
				in, at, most = text, i, likely
				best = source{found: found, of: len(novel.stems), act: act}
			}
		}
	}
	if in == nil {
		return best
	}
	s := &in[at]
	best.instructs, best.hostile, best.switches, best.prose = s.instructs, s.hostile, r.switches(s), s.prose()
	best.tells = s.acts&r.deed.acts&^actRead != 0 || s.acts&r.deed.acts != 0 && r.effect == kernel.ToolReads
	for i := max(0, at-1); i < min(at+2, len(in)); i++ {
		best.assistant = best.assistant || in[i].speaksOf(assistants, assistantsElsewhere)
		best.program = best.program || in[i].speaksOf(softwares, softwaresElsewhere)
	}
	return best
}

// stemSet is some stems, and the signs of them.
type stemSet struct {
	stems map[string]bool
	signs stemSigns
}

func (s *stemSet) add(stem string) {
	s.stems[stem] = true
	s.signs |= signOf(stem)
}

// novel returns the stems of the call that the request has not.
func (r *reading) novel() stemSet {
	out := stemSet{stems: make(map[string]bool)}
	add := func(stems ...string) {
		for _, w := range stems {
			if !common[w] && !r.wish.has(w) {
				out.add(w)
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
				out.add(w)
			}
		}
		if len(v.stems) == 0 {
			for _, w := range r.readWords(v.form) {
				out.add(w.stem)
			}
		}
	}
	return out
}

// count counts the different stems of a sentence that are among some.
func (s *sentence) count(of stemSet) int {
	if s.signs&of.signs == 0 {
		return 0
	}
	var seen []string
	for i := range s.words {
		if w := &s.words[i]; of.signs&signOf(w.stem) != 0 && of.stems[w.stem] && !slices.Contains(seen, w.stem) {
			seen = append(seen, w.stem)
		}
	}
	return len(seen)
}

// acts reports whether a sentence has the act of the call, in whatever form. verbs are the
// signs of its verbs.
func (r *reading) acts(s *sentence, verbs stemSigns) bool {
	same := s.acts & r.deed.acts
	return same&^actRead != 0 || same != 0 && r.effect != kernel.ToolReads ||
		(s.speaks&r.deed.acts != 0 || s.signs&verbs != 0) && s.mentions(r.deed)
}

// Words of assistants and of software in languages without spaces.
var (
	assistantsElsewhere = regex.ScreenOfWords([]string{"助手", "アシスタント", "エージェント", "代理", "智能", "机器人", "어시스턴트", "에이전트", "المساعد"})
	softwaresElsewhere  = regex.ScreenOfWords([]string{"系统", "システム", "モデル", "模型", "시스템"})
)

// speaksOf reports whether a sentence has a word of a kind, or one of those of languages
// without spaces.
func (s *sentence) speaksOf(kind trait, elsewhere *regex.Screen) bool {
	return s.traits&kind != 0 || s.wide && elsewhere.Matches(s.text)
}

// prose reports whether a sentence has little words.
func (s *sentence) prose() bool {
	return len(s.words) >= 5 && s.traits&(followers|everydays) != 0
}

// switches reports whether a sentence is in another language than the request, as far as
// its script and its little words tell.
func (r *reading) switches(s *sentence) bool {
	if len(s.words) == 0 || r.wish.foreignScript {
		return false
	}
	return foreignScript(s.text) || len(s.words) >= 5 && r.wish.english && !s.english() && s.lowercase()
}

// foreignScript reports whether most letters are neither Latin nor marks on such.
func foreignScript(text string) bool {
	if isASCII(text) {
		return false
	}
	latin, other := 0, 0
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			latin++
		case c >= 0x370 && unicode.IsLetter(c):
			other++
		}
	}
	return other > 3 && other > latin
}

// english reports whether a sentence has a little word of English.
func (s *sentence) english() bool { return s.traits&little != 0 }

// lowercase reports whether most words of a sentence are in small letters, which those of
// a record are not.
func (s *sentence) lowercase() bool {
	n := 0
	for f := range strings.FieldsSeq(s.text) {
		f = strings.Trim(f, ".,;:!?'\"()")
		if f != "" && strings.IndexFunc(f, func(c rune) bool { return !unicode.IsLower(c) && c != '\'' && c != '-' }) < 0 {
			n++
		}
	}
	return n*3 >= len(s.words)*2
}
