package toolcall

import (
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/resemblance"
)

// A call is also judged by how much its words resemble those of hostile calls (package
// resemblance). The readers know what they were told, the words also trades that nobody
// thought of. They judge in both directions: a call that resembles hostile ones is blocked as
// [HarmfulAction], and one that resembles ordinary ones gets the benefit of the doubt where the
// user asked for it. The weights are fitted by TestResemblance (resemblance_fit_test.go).

// The log-odds from which on a call is blocked and flagged (TestResemblance shows what others would do).
const (
	harmfulFrom = 2.2
	harmfulNear = 1.4
)

// doubts are the invariants that ordinary calls can look like, with the log-odds under which a reader
// may have found harm in an ordinary call that was asked for. They were chosen on authors of whom the
// weights had seen nothing. Of a call that nobody is known to have asked for, words acquit of nothing:
// those of one that empties a table or reads a secret can be as ordinary as any.
var doubts = map[Invariant]float64{
	DestructiveCommand:       -1,
	DestructiveOperation:     -1,
	DestructiveQuery:         -1,
	ServerSideRequestForgery: -0.5,
	Persistence:              -0.5,
	PathTraversal:            -0.5,
	PrivilegeEscalation:      -0.5,
	CredentialAccess:         -0.5,
	ConstraintTampering:      -1.5,
}

// losses are the doubts about what cannot be had back.
var losses = []Invariant{DestructiveCommand, DestructiveOperation, DestructiveQuery}

// maxDoubted is how many features a call has at most that gets the benefit of the doubt: some
// fifty words. Among more of them, harm could hide behind what is ordinary.
const maxDoubted = 250

// weigh judges the call by its words, and then what the readers found.
func (r *reading) weigh(c Call, leaves []leaf) {
	if len(c.Arguments) > resemblance.MaxArguments || !r.spend(costSearch*(len(c.Arguments)+min(len(c.Request), resemblance.MaxArguments))) {
		return
	}
	impressions := resemblance.Impressions(c.asWords(r.tool))
	odds := resemblance.Shipped.Odds(impressions)
	switch {
	case odds >= harmfulFrom:
		r.breaks(HarmfulAction)
	case odds >= harmfulNear:
		r.flags(HarmfulAction)
	case len(impressions[0]) <= maxDoubted && len(r.broken) > 0 && r.doubtful(c, odds, leaves):
		for _, v := range precedence {
			if r.broken[v] {
				r.near = v
				break
			}
		}
		clear(r.broken)
	}
}

// asWords is what is said of a call by its words. What a tool passes on to people or looks up
// is told from what it does.
func (c Call) asWords(t tool) resemblance.Call {
	words := resemblance.Call{
		Tool: c.Name, Arguments: c.Arguments, Request: c.Request,
		IsProse: func(member string) bool { return !t.writes && t.roleOf(fold(member)) == roleProse },
	}
	if last := len(c.Context) - 1; last >= 0 {
		words.Read = c.Context[last].Text
	}
	return words
}

// doubtful reports whether all that the readers found may be an ordinary act that the user asked
// for, in few enough words to mean it. What is lost has to be asked for as such, in words of the call
// that tell what it is, and of marked names that the user says one has to be in the call. No text may
// have told the agent anything, nor have given it a name or an address.
func (r *reading) doubtful(c Call, odds float64, leaves []leaf) bool {
	if !r.asked || len(r.asks) > maxNamingRequest || !r.spend(costScreen*len(r.asks)) || len(r.instructions()) > 0 {
		return false
	}
	for _, v := range precedence { // in one order, so that equal calls take equal work
		if !r.broken[v] {
			continue
		}
		if below, ok := doubts[v]; !ok || odds >= below {
			return false
		}
		if slices.Contains(losses, v) && (!r.asksForLoss() && !upheaval.MatchString(r.asks) || !r.speaksOfAny(leaves)) {
			return false
		}
	}
	if resemblance.NamedIn(c.Request, c.Arguments) == resemblance.Others {
		return false
	}
	from := r.provenance(leaves)
	return from != kernel.FromUntrusted && from != kernel.FromInstruction
}

// speaksOfAny reports whether the user said a word of the arguments that tells one thing from another.
func (r *reading) speaksOfAny(leaves []leaf) bool {
	said := make(map[string]bool)
	for w := range singularWords(r.asks) {
		said[w] = true
	}
	for _, l := range leaves {
		if !l.text {
			continue
		}
		for w := range singularWords(l.value) {
			if said[w] && !grantWords[w] && !lossWords.MatchString(w) && !upheaval.MatchString(w) {
				return true
			}
		}
	}
	return false
}

// singularWords are the words of a text, of letters and digits, in the singular and in small letters.
func singularWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			if w = strings.TrimSuffix(strings.ToLower(w), "s"); len(w) >= minSaid && !yield(w) {
				return
			}
		}
	}
}

// minSaid is how long a word is at least that tells anything.
const minSaid = 3

// upheaval finds requests for what is grave and no loss of a thing that they name: machines
// that stop, data that are put back or hidden, what is forced.
var upheaval = regex.New(`(?i)\b(?:terminat\w*|releas(?:e|ing)|drain\w*|reboot\w*|restart\w*|shut ?(?:it )?down|power off|format|eras(?:e|ing)|archiv\w*|yank|revok\w*|prun(?:e|ing)|replac\w*|reinstall\w*|rebuild\w*|restor\w*|refresh\w*|roll ?back|revert\w*|forc(?:e|ing)|mask\w*|anonymi[sz]\w*|rotat\w*|stop|abort|cancel\w*|` +
	`archivier\w*|herunterfahren|fahr\w* .{0,40}herunter|neu ?start\w*|start\w* .{0,40}neu|formatier\w*|überschreib\w*|beende\w*|stopp\w*|maskier\w*|ersetz\w*|erzwing\w*|rotier\w*|` +
	`redémarr\w*|arrêt\w*|formate[rz]?|restaur\w*|remplac\w*|reinici\w*|formatea\w*|reemplaz\w*|deten\w*|para[r]?|reinstala\w*|riavvia\w*|sostitui\w*|zrestart\w*|yeniden başlat\w*)\b|再起動|フォーマット|重启|格式化`)
