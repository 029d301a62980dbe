package detect

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTermsAreFound(t *testing.T) {
	list := []Term{
		{"steal", 0},
		{"pick a lock", 1},
		{"lock", 2},
		{"gift", 3},
		{"偷", 0},
		{"杀人", 4},
		{"杀人犯", 5},
		{"ยาพิษ", 3},
		{"سرقة", 0},
		{"кража", 0},
		{"кража", 5},
		{"x", 6},
		{"unwahrscheinlichkeitsrechnung", 7},
	}
	terms := NewTerms(list)
	for text, want := range map[string][]int{
		"How do I steal a car?":                {0},
		"It was stolen; he steals everything.": {0}, // an ending
		"stealthily done":                      {0}, // five more letters
		"a stealthiness that lasts":            nil, // too many
		"pick a lock, quickly":                 {1, 2},
		"padlock":                              nil, // not at the beginning of a word
		"GIFT":                                 {3},
		"怎么偷东西":                                nil, // one character is too little
		"他杀人了":                                 {4}, // anywhere in a script without spaces
		"杀人犯在哪里":                               {4, 5},
		"ซื้อยาพิษที่ไหน":                      {3},
		"السرقة من المتجر":                     {0}, // behind an article
		"Кражами занимается":                   {0, 5},
		"кражей занимается":                    nil,    // another stem
		"кража со взломом":                     {0, 5}, // a term of two concepts
		"x":                                    nil,
		"unwahrscheinlichkeitsrechnung lernen": {7}, // cut to its first letters
		"":                                     nil,
	} {
		found := map[int]bool{}
		normal := Normalise(text)
		concepts := terms.find(newText(normal))
		if words := normalWords(normal); len(concepts) != len(words) {
			t.Errorf("%q: concepts of %d words, want %d", text, len(concepts), len(words))
		}
		for _, set := range concepts {
			for c := range maxConcepts {
				if set>>c&1 != 0 {
					found[c] = true
				}
			}
		}
		got := make([]int, 0, len(found))
		for c := range found {
			got = append(got, c)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: concepts %v, want %v", text, got, want)
		}
	}
}

// A search finds the same as looking for each term at each place.
func FuzzTerms(f *testing.F) {
	list := []string{"ab", "abc", "abcd", "abcdefghij", "a b", "b c d", "杀人", "杀", "人 a", "ยาพิษ", "ba", "cab d"}
	var terms []Term
	for i, text := range list {
		terms = append(terms, Term{text, i})
	}
	table := NewTerms(terms)
	f.Add("abcd abcdefghijkl cab d")
	f.Add("杀人a bยาพิษ")
	f.Fuzz(func(t *testing.T, text string) {
		normal := Normalise(text)
		letters, words := lettersOf(normal)
		want := make([]uint64, len(words))
		for w, from := range words {
			to := len(letters)
			if w+1 < len(words) {
				to = words[w+1]
			}
			for i := from; i < to; i++ {
				if letters[i] == ' ' || i > from && grows(letters[i]) {
					continue
				}
				for c, term := range list {
					spelled, _ := lettersOf(Normalise(term))
					rest := string(letters[i:])
					if len(spelled) < minTerm || !strings.HasPrefix(rest, string(spelled)) {
						continue
					}
					ending, _, _ := strings.Cut(rest[len(string(spelled)):], " ")
					n := utf8.RuneCountInString(ending)
					if !grows(letters[i]) || n == 0 || n <= 5 && len(spelled) >= 4 {
						want[w] |= 1 << c
					}
				}
			}
		}
		if got := table.find(newText(normal)); !slices.Equal(got, want) {
			t.Errorf("%q: %b, want %b", normal, got, want)
		}
	})
}
