package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
)

// A passage is one or several sentences that are read together.
type passage struct {
	sentences []prose.Sentence
	folded    string
	form      string          // by destinationForm, once it is asked for
	stems     map[string]bool // of all words, of the user's wish only
	hostile   bool
	delegates bool // it leaves the choice of acts to what will be read

	english, foreignScript bool // of the user's wish only
}

func newPassage(all []prose.Sentence) passage {
	p := passage{sentences: all}
	var text strings.Builder
	for _, s := range all {
		text.WriteString(s.Text)
		p.hostile = p.hostile || s.Hostile
	}
	p.folded = prose.Fold(text.String())
	return p
}

// destination is the text of a passage as accounts are compared.
func (p *passage) destination() string {
	if p.form == "" {
		p.form = prose.DestinationForm(p.folded)
	}
	return p.form
}

func stemsOf(all []prose.Sentence) map[string]bool {
	out := make(map[string]bool)
	for _, s := range all {
		for _, w := range s.Words {
			out[w.Stem] = true
		}
	}
	return out
}

func (p passage) acts() (a prose.Act) {
	for _, s := range p.sentences {
		a |= s.Acts
	}
	return a
}

func (p passage) has(stem string) bool {
	if p.stems != nil {
		return p.stems[stem]
	}
	for i := range p.sentences {
		if p.sentences[i].Has(stem) {
			return true
		}
	}
	return false
}

// hasAny counts the stems that a passage, or a word for the same thing, has.
func (p passage) count(stems []string) (n int) {
	for _, s := range stems {
		if p.has(s) || slices.ContainsFunc(sameThing[s], p.has) {
			n++
		}
	}
	return n
}

// sameThing lists, by stem, other words for a thing.
var sameThing = func() map[string][]string {
	out := make(map[string][]string)
	for _, group := range []string{
		"email mail message inbox gmail letter", "dm direct", "file document attachment folder pdf report", "repository repo project", "calendar event appointment meeting schedule", "money fund payment invoice bill dollar bitcoin amount transfer usd eur",
		"payee recipient beneficiary", "reservation booking flight hotel trip", "user account profile member", "shipment package parcel delivery", "password credential secret login", "channel group room slack", "note memo evernote",
		"contact friend person people address phone", "history log record", "ticket issue bug", "webpage page website site url link", "purchase order", "crypto bitcoin ethereum coin wallet", "patient health medical", "ambulance emergency fire police", "photo picture image", "permission access role sharing", "device thermostat light lamp camera robot", "database table row sql", "server host machine instance vm",
	} {
		words := strings.Fields(group)
		for _, w := range words {
			for _, other := range words {
				if w != other {
					out[prose.Stem(w)] = append(out[prose.Stem(w)], prose.Stem(other))
				}
			}
		}
	}
	return out
}()

// named reports whether a passage names a value. Amounts are compared as numbers, and a
// file by its own name too.
func (p passage) named(v value) bool {
	switch v.kind {
	case amount, quantity:
		n := prose.ParseNumber(strings.Trim(v.form, "$€£¥ "))
		return len(n) == 1 && slices.ContainsFunc(prose.Numbers(p.folded), func(m float64) bool { return equalAmounts(m, n[0]) || v.kind == amount && equalAmounts(m*1000, n[0]) })
	case account:
		return strings.Contains(p.destination(), prose.DestinationForm(v.form))
	case webAddress:
		if base, _, cut := strings.Cut(v.form, "?"); cut && len(base) > 12 && strings.Contains(p.folded, base) {
			return true
		}
	case fileName:
		if base := v.form[strings.LastIndexByte(strings.TrimRight(v.form, "/"), '/')+1:]; len(base) > 4 && strings.Contains(base, ".") && containsWord(p.folded, base) {
			return true
		}
	}
	return containsWord(p.folded, v.form) || v.kind != webAddress && strings.ContainsAny(v.form, "_-") && containsWord(separators.Replace(p.folded), separators.Replace(v.form))
}

var separators = strings.NewReplacer("_", " ", "-", " ")

// resembles reports whether a passage has most of the words of a value.
func (p passage) resembles(v value) bool {
	found := p.count(v.stems)
	return len(v.stems) > 0 && found*10 >= len(v.stems)*6
}

// containsWord reports whether a form stands in a text and is no part of a longer word.
func containsWord(text, form string) bool {
	for at := 0; form != ""; {
		i := strings.Index(text[at:], form)
		if i < 0 {
			return false
		}
		i += at
		j := i + len(form)
		if (i == 0 || !alphanumeric(text[i-1]) || !alphanumeric(form[0])) && (j == len(text) || !alphanumeric(text[j]) || !alphanumeric(form[len(form)-1])) {
			return true
		}
		at = i + 1
	}
	return false
}
