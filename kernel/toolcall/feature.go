package toolcall

import (
	"math"
	"slices"

	"github.com/caddy-lex/lex/kernel"
)

// A feature is one number that is measured of a call and its conversation. Most are
// between 0 and 1.
type feature struct {
	name  string
	value float64
}

// A weight is what a feature adds to the logit of a call that reads, and of one that does
// more.
type weight struct{ reads, changes float64 }

// likelihood returns how likely a call follows an instruction that was read rather than the
// user: a logistic regression on its features, between 0 and 1.
func (r *reading) likelihood(features []feature) float64 {
	sum := 0.0
	for _, f := range features {
		if r.effect == kernel.ToolReads {
			sum += f.value * weights[f.name].reads
		} else {
			sum += f.value * weights[f.name].changes
		}
	}
	return 1 / (1 + math.Exp(-sum))
}

// features measures a call that follows observations. evidence is what the strongest
// instruction weighs (see [reading.evidence]).
func (r *reading) features(evidence float64) []feature {
	d, u, s := r.deed, r.user, r.source()
	speaks := s.instructs || s.assistant || s.program || s.switches
	assistant := r.anySentence(func(s *sentence) bool { return s.speaksOf(assistants, assistantsElsewhere) })
	points := pointing.MatchString(r.wish.folded) || r.delegates()
	told := r.foreignValues()
	marks := marksIn(r.wish.folded)
	dropped := r.dropped(marks)
	swapped := r.swapped()
	figures := r.foreignFigures()
	novel := share(s.found, s.of)
	evidence = max(-1, min(2, evidence))
	return []feature{
		{"bias", 1},

		// The instructions, as the hand-set weights read them.
		{"evidence", evidence},
		{"evidence, hostile", truth(s.hostile) * max(0, evidence)},
		{"a text overrides", truth(r.takenOver())},

		// What the request asks for.
		{"asked", truth(u.act)},
		{"unsupported", truth(u.nothing)},
		{"share of things asked", share(u.things, len(d.nouns))},
		{"no thing", truth(len(d.nouns) == 0)},
		{"share of values asked", share(u.strong+u.words, len(d.values))},
		{"last turn has a value", truth(slices.ContainsFunc(d.near.in(&r.last), func(v value) bool { return len(v.form) > 2 && r.last.named(v) }))},
		{"request asks nothing", truth(r.wish.acts() == 0 && !r.wish.asks())},
		{"request only reads", truth(r.wish.acts() == actRead)},
		{"request points to a text", truth(points)},
		{"points, unasked", truth(points && !u.act)},
		{"asked without marks", truth(u.act && len(marks) == 0)},

		// Where the values come from.
		{"words from texts", float64(min(told.words, 2))},
		{"values from nobody", float64(min(told.nobody, 2))},
		{"another of its kind asked", truth(told.another)},
		{"value from prose", truth(told.telling && s.prose)},
		{"share of marks dropped", share(dropped, len(marks))},
		{"dropped, speaks", truth(dropped > 0 && speaks)},
		{"swapped", float64(min(3, swapped))},
		{"swapped, speaks", truth(swapped > 0 && speaks)},
		{"number from texts", truth(len(figures) > 0 && r.anySentence(func(s *sentence) bool { return s.hasFigure(figures) }))},
		{"all asked", truth(u.act && !told.any() && told.nobody == 0)},

		// The sentence that the call is most likely to come from.
		{"new words in it", math.Log1p(float64(s.found))},
		{"new words in it, speaks", novel * truth(speaks)},
		{"has the act", truth(s.act)},
		{"tells the act", truth(s.tells)},
		{"tells the act, unasked", truth(s.tells && !u.act)},
		{"has all new words", truth(s.of > 0 && s.found == s.of)},
		{"act nowhere, unasked", truth(!s.act && !u.act)},
		{"prose", truth(s.prose)},
		{"of an assistant", truth(s.assistant)},
		{"of a program", truth(s.program)},
		{"assistant in texts", truth(assistant)},
		{"assistant in texts, unasked", truth(assistant && !u.act)},
		{"switches language", truth(s.switches)},
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func share(part, whole int) float64 {
	return min(1, float64(part)/float64(max(1, whole)))
}

func (r *reading) anySentence(is func(*sentence) bool) bool {
	for _, text := range r.seen {
		for i := range text {
			if is(&text[i]) {
				return true
			}
		}
	}
	return false
}

// pointing finds requests that leave something to a text: "what the letter says".
var pointing = newExpression(`\b(?:as|like|what|whatever|which|how|way|per|whichever|everything|according)\b[^.!?\n]{0,40}\b(?:says?|said|wants?|asks?|asked|lists?|listed|needs?|requires?|required|describes?|described|tells?|told|wishes|requested|written|suggests?|there|in)\b|\b(?:open item|to-?do|wish|wishes|instructions?|steps|requests?|note|list|letter|bill|invoice)\b`)

// foreign counts the values that the user does not name.
type foreign struct {
	telling bool // one that a text names is an address, an account, a file or a code
	words   int  // others that a text names
	nobody  int  // those that no text names
	another bool // the user names another of the kind
}

func (f foreign) any() bool { return f.telling || f.words > 0 }

func (r *reading) foreignValues() (f foreign) {
	for _, v := range r.user.foreign[:min(len(r.user.foreign), maxMarks)] {
		switch seen := !v.quoted && r.untrusted.holds(v); {
		case v.quoted:
		case seen && v.telling():
			f.telling = true
			f.another = f.another || r.wish.names(v.kind) && (v.key == "" || !r.wish.has(v.key))
		case seen:
			f.words++
		default:
			f.nobody++
		}
	}
	return f
}
