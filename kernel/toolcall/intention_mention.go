package toolcall

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
)

// A mention tells which of many values a passage may name or resemble, so that a call with
// thousands of values is not compared value by value with each sentence that was read. It
// may return more values than the passage names, and never less; of those that it only
// resembles, the first. A nil one has none.
type mention struct {
	values  []value
	words   map[string][]int // values by a word that stands wherever one is named
	grams   map[string][]int // accounts by their last piece, since their spaces are free
	stems   map[string][]int // values by stems of which one stands wherever one is resembled
	figures map[int64][]int  // amounts and quantities by their hundredths
	always  []int            // values that have no word to be known by

	wordSigns, stemSigns prose.StemSigns // of the words and the stems
}

// newMention finds at most akin values by one stem.
func newMention(values []value, akin int) *mention {
	m := &mention{values: values, words: make(map[string][]int, len(values)), grams: make(map[string][]int), stems: make(map[string][]int, len(values)), figures: make(map[int64][]int)}
	common := make(map[string]int, 2*len(values))
	for _, v := range values {
		for w := range plainWords(v.core()) {
			common[w]++
		}
		for _, s := range v.stems {
			common[s]++
		}
	}
	var stems []string
	for i, v := range values {
		m.add(i, v, rarest(v.core(), common))
		// Of six stems in ten at least one is among the others and one more.
		stems = append(stems[:0], v.stems...)
		slices.SortFunc(stems, func(a, b string) int { return common[a] - common[b] })
		for _, s := range stems[:len(stems)-(len(stems)*6+9)/10+min(1, len(stems))] {
			for _, same := range sameThing[s] {
				m.addStem(i, same, akin)
			}
			m.addStem(i, s, akin)
		}
	}
	return m
}

// addStem files a value under a stem, unless akin ones are.
func (m *mention) addStem(i int, stem string, akin int) {
	if of := m.stems[stem]; len(of) < akin {
		m.stems[stem] = append(of, i)
		m.stemSigns |= prose.SignOf(stem)
	}
}

// unlike returns values without those of which maxAlike equal ones went before: more of
// them weigh no more.
func unlike(values []value) (out []value) {
	type looks struct {
		form, key string
		kind      kind
		quoted    bool
	}
	seen := make(map[looks]int, len(values))
	out = make([]value, 0, len(values))
	for _, v := range values {
		same := looks{v.form, v.key, v.kind, v.quoted}
		if seen[same]++; seen[same] <= maxAlike {
			out = append(out, v)
		}
	}
	return out
}

const (
	maxAlike = 16 // equal values that are compared
	maxAkin  = 64 // foreign values that are found by one stem: that two are resembled is enough
)

// add files a value under what passages that name it have.
func (m *mention) add(i int, v value, word string) {
	number, form := v.number(), ""
	if v.kind == account {
		form = prose.DestinationForm(v.form)
	}
	switch {
	case len(number) > 0:
		m.figures[hundredths(number[0])] = append(m.figures[hundredths(number[0])], i)
	case len(form) >= grams:
		m.grams[form[len(form)-grams:]] = append(m.grams[form[len(form)-grams:]], i)
	case word != "" && v.kind != account:
		m.words[word] = append(m.words[word], i)
		m.wordSigns |= prose.SignOf(word)
	default:
		m.always = append(m.always, i)
	}
}

// core is a part of a value of which every passage that names it has the whole words: a
// file is named by its own name too, and an address without its query within longer words.
func (v value) core() string {
	switch v.kind {
	case webAddress:
		base, _, _ := strings.Cut(v.form, "?")
		return strings.TrimLeftFunc(strings.TrimRightFunc(base, isAlphanumeric), isAlphanumeric)
	case fileName:
		return v.form[strings.LastIndexByte(strings.TrimRight(v.form, "/"), '/')+1:]
	}
	return v.form
}

// number is what an amount or a quantity is compared by.
func (v value) number() []float64 {
	if v.kind != amount && v.kind != quantity {
		return nil
	}
	return prose.ParseNumber(strings.Trim(v.form, "$€£¥ "))
}

// rarest returns the word of a text that the fewest values have, or "".
func rarest(text string, common map[string]int) (best string) {
	for w := range plainWords(text) {
		if best == "" || common[w] < common[best] {
			best = w
		}
	}
	return best
}

// in returns the values that a passage may name or resemble, in their order.
func (m *mention) in(p *passage) []value {
	found := m.at(p)
	out := make([]value, len(found))
	for i, at := range found {
		out[i] = m.values[at]
	}
	return out
}

// at returns where these values stand among all.
func (m *mention) at(p *passage) []int {
	if m == nil || len(m.values) == 0 {
		return nil
	}
	found := slices.Clone(m.always)
	if len(m.words) > 0 {
		for w := range plainWords(p.folded) {
			if m.wordSigns&prose.SignOf(w) != 0 {
				found = append(found, m.words[w]...)
			}
		}
	}
	for i := range p.sentences {
		if s := &p.sentences[i]; s.Signs&m.stemSigns != 0 {
			found = m.akin(found, s)
		}
	}
	if len(m.figures) > 0 {
		for _, n := range prose.Numbers(p.folded) {
			for _, f := range []float64{n, 1000 * n} {
				for near := hundredths(f) - 2; near <= hundredths(f)+2; near++ {
					found = append(found, m.figures[near]...)
				}
			}
		}
	}
	if len(m.grams) > 0 {
		form := p.destination()
		for i := 0; i+grams <= len(form); i++ {
			found = append(found, m.grams[form[i:i+grams]]...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// akin adds the values that a sentence may resemble.
func (m *mention) akin(found []int, s *prose.Sentence) []int {
	for i := range s.Words {
		if stem := s.Words[i].Stem; m.stemSigns&prose.SignOf(stem) != 0 {
			found = append(found, m.stems[stem]...)
		}
	}
	return found
}

// hundredths is for looking up equal amounts, which differ by less than one.
func hundredths(n float64) int64 {
	return int64(math.Floor(max(-1e15, min(n, 1e15)) * 100))
}

func isAlphanumeric(c rune) bool { return c < 0x80 && alphanumeric(byte(c)) } //nolint:gosec // G115: it is ASCII

// plainWords are the runs of letters and digits of ASCII in a text.
func plainWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1
		for i := range len(text) {
			switch in := alphanumeric(text[i]); {
			case in && start < 0:
				start = i
			case !in && start >= 0:
				if !yield(text[start:i]) {
					return
				}
				start = -1
			}
		}
		if start >= 0 {
			yield(text[start:])
		}
	}
}
