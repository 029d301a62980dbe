package prose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Known is what one look tells of a word, and what the tables say that it was made of.
func Known(text string) (looked, tabled string) {
	l := lookUp(text)
	var traits Trait
	for t, list := range traitWords {
		if listed(list, text) {
			traits |= t
		}
	}
	if irregular[text] != "" {
		traits |= irregulars
	}
	if beginsElsewhere(text) {
		traits |= strange
	}
	var of uint16
	for i, c := range cues {
		if listed(c.words, text) {
			of |= 1 << i
		}
	}
	return fmt.Sprint(l.stem, l.english, l.foreign, l.speaks, l.cues, l.traits),
		fmt.Sprint(Stem(text), englishActs[text], foreignActs[text], actsOfStem[Stem(text)], of, traits)
}

// Lexicon returns the words of which one look tells something.
func Lexicon() []string { return slices.Sorted(maps.Keys(lexicon)) }

func listed(list, word string) bool { return strings.Contains(" "+list+" ", " "+word+" ") }

// Foldings write a text character by character, and as a whole.
func Foldings(text string) (written, whole [3]string) {
	for i, f := range []*folding{folded, formed, visible} {
		written[i], whole[i] = f.write(text), f.whole(text)
	}
	return written, whole
}

// Turned returns what a line says in ROT13 or backwards, and what it says if each way is
// tried.
func Turned(line string) (told, tried []string) {
	for _, way := range turned(line) {
		told = append(told, way(line))
	}
	plain := func(line string) (n int) {
		for w := range strings.FieldsSeq(line) {
			if len(w) < maxEveryday && listed(everyday, strings.ToLower(strings.Trim(w, ".,;:!?"))) {
				n++
			}
		}
		return n
	}
	for _, p := range []string{ROT13(line), Reversed(line)} {
		if plain(line) < 2 && plain(p) > 2 {
			tried = append(tried, p)
		}
	}
	return told, tried
}

// CodedIn returns the runs of a text that may be base64, and finds them run by run.
func CodedIn(text string) (found, runs []string) {
	for run := range strings.FieldsFuncSeq(text, func(c rune) bool { return c >= 0x80 || !coded(byte(c)) }) {
		if len(run) >= minCoded && len(runs) < maxCoded {
			runs = append(runs, run)
		}
	}
	return codedIn(text), runs
}

// DatesIn writes the dates of a text as year-month-day.
func DatesIn(text string) (out []string) {
	for _, d := range Dates(text) {
		out = append(out, fmt.Sprintf("%d-%d-%d", d.year, d.month, d.of))
	}
	return out
}
