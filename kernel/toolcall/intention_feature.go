package toolcall

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/resemblance"
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

// WeightsSHA256 is the hash of all weights that were fitted to data, in lower-case hex: those
// of injections and those of the resemblance. It tells two interceptors apart that were fitted
// differently.
func WeightsSHA256() string { return hashOf(weights, resemblance.SHA256()) }

func hashOf(weights map[string]weight, resemblance string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		_, _ = fmt.Fprintln(h, name, weights[name].reads, weights[name].changes)
	}
	_, _ = fmt.Fprintln(h, resemblance)
	return hex.EncodeToString(h.Sum(nil))
}

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
	assistant := r.anySentence(func(s *prose.Sentence) bool { return s.OfAssistants() })
	points := pointing.MatchString(r.wish.folded) || r.delegates()
	told := r.foreignValues()
	marks := marksIn(r.wish.folded)
	dropped := r.dropped(marks)
	swapped := r.swapped()
	figures := r.foreignFigures()
	novel := share(s.found, s.of)
	gave := r.gifts()
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
		{"request only reads", truth(r.wish.acts() == prose.Read)},
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
		{"number from texts", truth(len(figures) > 0 && r.anySentence(func(s *prose.Sentence) bool { return hasFigure(s, figures) }))},
		{"all asked", truth(u.act && !told.any() && told.nobody == 0)},

		// Who gives the arguments that the request does not give.
		{"arguments added", float64(min(3, len(r.added)))},
		{"given by an address", float64(min(2, gave.most[addressed]))},
		{"given by a technical text", float64(min(2, gave.most[technical]))},
		{"given by an order", float64(min(2, gave.most[instructs]))},
		{"given by a statement", float64(min(2, gave.most[neutral]))},
		{"given, points", float64(min(2, max(gave.most[neutral], gave.most[instructs], gave.most[technical]))) * truth(points)},
		{"contradicts", float64(min(2, gave.contradicts))},
		{"contradicts, ordered", truth(gave.ordered)},
		{"contradicts, spoken", truth(gave.spoken)},
		{"theft of a thing", r.theft()},
		{"contradicts, points", truth(points && gave.contradicts > 0)},
		{"a text names the tool", truth(r.toolNamed())},

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

// toolNamed reports whether a text writes the name of the tool as a program would, and the
// user does not.
func (r *reading) toolNamed() bool {
	name := strings.ToLower(r.name)
	if at := strings.LastIndex(name, "__"); at > 0 { // mcp__server__tool
		name = name[at+2:]
	}
	if len(name) < 7 || len(nameWords(r.name)) < 2 || strings.Contains(strings.ToLower(r.asks), name) {
		return false
	}
	return strings.Contains(r.untrusted.plain, name)
}

// theft returns the share of the tool's things that stand where a text tells to read and
// then to send.
func (r *reading) theft() (most float64) {
	for _, text := range r.seen {
		for i := range text {
			p := passage{sentences: text[i:min(i+2, len(text))]}
			if !p.steals() {
				continue
			}
			n := 0
			for _, w := range r.deed.nouns {
				if p.has(w) {
					n++
				}
			}
			most = max(most, share(n, len(r.deed.nouns)))
		}
	}
	return most
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

func (r *reading) anySentence(is func(*prose.Sentence) bool) bool {
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
var pointing = regex.New(`\b(?:whatever|whichever|anything|everything|all|those)\b[^.!?\n]{0,20}\b(?:is|are|was|were|has|have|due|open|overdue|unpaid|outstanding|expired|missing|left)\b|\b(?:as|like|what|whatever|which|how|way|per|whichever|everything|according)\b[^.!?\n]{0,40}\b(?:says?|said|wants?|asks?|asked|lists?|listed|needs?|requires?|required|describes?|described|tells?|told|wishes|requested|written|suggests?|there|in)\b|\b(?:open item|to-?do|wish|wishes|instructions?|steps|requests?|note|list|letter|bill|invoice)\b`)

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
		switch seen := !v.quoted && r.untrusted.holds(v.form); {
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
