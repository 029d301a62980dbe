package toolcall

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
)

// An addition is an argument that the user did not give: what the call adds to the
// request. Who gave it instead is what tells an answer from an attack. A field of a record
// gives the slot that is free, an order gives another patient.
type addition struct {
	form    string   // folded
	key     string   // folded name of the argument
	stems   []string // of the words that the request has not
	number  float64
	numeric bool
	dates   []prose.Day
	flag    bool // true or false, of which only the name can be said
}

const (
	maxAdditions = 64
	maxAddition  = 200 // in bytes; what is longer was composed by the model
	maxFlags     = 8
	maxLeaves    = 256 // that are compared with the request
	maxAlikes    = 16  // stems with one beginning that are looked for
)

// additions returns what the call adds to the request.
func (r *reading) additions(leaves []leaf) (out []addition) {
	flags := 0
	for _, l := range leaves[:min(len(leaves), maxLeaves)] {
		if l.composed || l.value == "" || l.value == "null" || len(l.value) > maxAddition || len(out) == maxAdditions || r.tool.roleOf(l.key) == roleProse {
			continue
		}
		if !r.spend(len(r.wish.folded)/8 + len(l.value)) {
			return out
		}
		a, own := r.newAddition(l)
		if a.flag {
			flags++
		}
		if !own && flags <= maxFlags {
			out = append(out, a)
		}
	}
	for _, v := range r.user.foreign[:min(len(r.user.foreign), maxLeaves)] {
		within := !v.quoted && (v.kind == mailbox || v.kind == account || v.kind == webAddress) // of a longer text
		if within && len(out) < maxAdditions && !slices.ContainsFunc(out, func(a addition) bool { return a.form == v.form }) {
			out = append(out, addition{form: v.form, key: v.key})
		}
	}
	return out
}

// newAddition reads an argument, and whether it is the user's own.
func (r *reading) newAddition(l leaf) (a addition, own bool) {
	a = addition{form: prose.Fold(strings.TrimSpace(l.value)), key: l.key}
	n := prose.ParseNumber(strings.Trim(l.value, "$€£¥ "))
	switch {
	case l.value == "true" || l.value == "false":
		a.flag = true
		return a, len(a.key) < 3 || makeUp(r.wording.words, a.key)
	case len(n) == 1 && len(l.value) < 12 && !strings.ContainsFunc(a.form, isNoFigure):
		a.numeric, a.number = true, n[0]
		return a, hasSum(r.wording.figures, n[0])
	case containsWord(r.wish.folded, a.form):
		return a, true
	case len(l.value) < 40 && prose.HasDate(l.value):
		a.dates = prose.Dates(l.value)
		return a, prose.ShareDay(a.dates, r.wording.days)
	}
	words := 0
	for _, w := range r.reader.Words(l.value) {
		if len(w.Text) < 2 || w.Is(prose.Followers) || everywhere[w.Text] {
			continue
		}
		if words++; !r.wording.has(w.Stem) {
			a.stems = append(a.stems, w.Stem)
		}
	}
	exact := strings.ContainsAny(a.form, "0123456789/@")
	own = words > 0 && (len(a.stems) == 0 || !exact && 10*len(a.stems) <= 3*words)
	a.stems = a.stems[:min(len(a.stems), 64)]
	return a, own
}

func isNoFigure(c rune) bool { return c >= 'a' && c <= 'z' || c == '-' || c == '/' || c == ':' }

// hasSum reports whether a number is among some, or in cents.
func hasSum(all []float64, n float64) bool {
	return slices.ContainsFunc(all, func(m float64) bool { return equalAmounts(m, n) || n >= 50 && equalAmounts(100*m, n) })
}

// alike reports whether stems are equal, or have all but their ends in common: payer and pay.
func alike(a, b string) bool {
	n := min(len(a), len(b))
	return a == b || n > 3 && a[:n] == b[:n] || n > 4 && a[:n-1] == b[:n-1]
}

// prefixOf is equal for stems that are alike.
func prefixOf(stem string) string { return stem[:min(4, len(stem))] }

// makeUp reports whether words make up most of a name: "anyone with the link" is
// anyone_with_link.
func makeUp(words []prose.Word, name string) bool {
	n := 0
	var seen []string
	for _, w := range words {
		t := strings.TrimSuffix(w.Text, "s")
		if len(t) > 2 && strings.Contains(name, t) && !slices.Contains(seen, t) {
			seen = append(seen, t)
			n += len(t)
		}
	}
	return 10*n >= 6*len(name)
}

// A finder tells which additions a sentence gives.
type finder struct {
	all      []addition
	byPrefix map[string][]stemOf
	flags    []int
	numbers  []int
	dates    []int
	others   []int    // that are looked for as they are written
	found    []uint64 // of the stems of each addition, in the sentence at hand
	given    []int
}

// stemOf is the place of a stem among those of an addition.
type stemOf struct {
	stem         string
	addition, at int
}

func newFinder(all []addition) *finder {
	f := &finder{all: all, byPrefix: make(map[string][]stemOf), found: make([]uint64, len(all))}
	for n, a := range all {
		switch {
		case a.flag:
			f.flags = append(f.flags, n)
		case len(a.dates) > 0:
			f.dates = append(f.dates, n)
		case a.numeric:
			f.numbers = append(f.numbers, n)
		case len(a.stems) == 0 || !prose.IsASCII(a.form):
			f.others = append(f.others, n)
		}
		for at, stem := range a.stems {
			if same := f.byPrefix[prefixOf(stem)]; len(same) < maxAlikes {
				f.byPrefix[prefixOf(stem)] = append(same, stemOf{stem, n, at})
			}
		}
	}
	return f
}

// in returns the additions that a sentence gives, until it is asked again.
func (f *finder) in(s *prose.Sentence) []int {
	f.given = f.given[:0]
	clear(f.found)
	for i := range s.Words {
		w := &s.Words[i]
		for _, of := range f.byPrefix[prefixOf(w.Stem)] {
			if alike(w.Stem, of.stem) {
				f.found[of.addition] |= 1 << of.at
			}
		}
	}
	for n, found := range f.found {
		if found != 0 && f.all[n].named(s, bits.OnesCount64(found)) {
			f.given = append(f.given, n)
		}
	}
	for _, n := range f.others {
		if f.found[n] == 0 && containsWord(s.Plain, f.all[n].form) {
			f.given = append(f.given, n)
		}
	}
	for _, n := range f.flags {
		if makeUp(s.Words, f.all[n].key) {
			f.given = append(f.given, n)
		}
	}
	f.numbersOf(s)
	f.datesOf(s)
	return f.given
}

// named reports whether a sentence that has some stems of an addition gives it.
func (a addition) named(s *prose.Sentence, stems int) bool {
	most := 10*stems >= 6*len(a.stems) && (len(a.stems) > 1 || len(a.stems[0]) > 2)
	return most || containsWord(s.Plain, a.form)
}

// numbersOf finds the numbers that a sentence gives. One figure may stand anywhere for
// anything, and needs its name.
func (f *finder) numbersOf(s *prose.Sentence) {
	if len(f.numbers) == 0 {
		return
	}
	for _, n := range f.numbers {
		if a := f.all[n]; hasAmount(s.Figures(), a.number) && (a.number >= 10 || makeUp(s.Words, a.key)) {
			f.given = append(f.given, n)
		}
	}
}

// datesOf finds the dates that a sentence gives.
func (f *finder) datesOf(s *prose.Sentence) {
	var days []prose.Day
	for _, n := range f.dates {
		if days == nil && !prose.NamesDay(s.Text, f.all[n].dates) {
			continue
		}
		if days == nil {
			days = prose.Dates(s.Text)
		}
		if prose.ShareDay(f.all[n].dates, days) {
			f.given = append(f.given, n)
		}
	}
}
