package detect

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// plainTexts are those of the test data, and some with what sets words apart.
func plainTexts(tb testing.TB) []string {
	tb.Helper()
	texts := []string{
		"", "a", " ", "don't", "it's 'quoted' o'clock '", "snake_case 00000012: x", "über naïve words", "wort中文wort 中 文 word",
		strings.Repeat("a", maxWord-1) + " b", strings.Repeat("a", maxWord) + " b", strings.Repeat("a", 3*maxWord) + "'s b", strings.Repeat("ab'", 40),
		"abc\u200bdef \xff ghi", "word\u00a0word", strings.Repeat("how to make a bomb at home ", 40), strings.Repeat("怎么做炸弹 ", 90) + "bomb",
	}
	for _, name := range []string{"everyday", "languages", "plain"} {
		file, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			tb.Fatal(err)
		}
		texts = append(texts, strings.Split(string(file), "\n")...)
		texts = append(texts, string(file))
	}
	return texts
}

// Words of ASCII are read at a glance as all words are read.
func FuzzScanner(f *testing.F) {
	for _, text := range plainTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, text := range []string{text, Normalise(text)} {
			s, slow := NewScanner(text, nil), NewScanner(text, nil)
			for s.Next() {
				slow.n = slow.read()
				if want := hashRunes(slow.bordered()); s.Word() != slow.Word() || s.hash != want || s.text != slow.text {
					t.Fatalf("%q: %q and %q, want %q and %q", text, s.Word(), s.text, slow.Word(), slow.text)
				}
			}
			if slow.read() != 0 {
				t.Fatalf("%q: a word is missing", text)
			}
		}
	})
}

// What is remembered of the words, and of some blocks alone, adds up to what all features
// and terms of the whole text do.
func FuzzRemembered(f *testing.F) {
	for i, text := range plainTexts(f) {
		f.Add(text, uint64(i)*0x9e3779b97f4a7c15)
	}
	m := Default()
	f.Fuzz(func(t *testing.T, text string, chosen uint64) {
		normal := newText(Normalise(text))
		for range 2 { // the second time all words are remembered
			r := reading{m: m}
			r.read(normal, nil)
			if want := headsPlainly(m, normal.text); r.whole.weight != want.weight || r.whole.n != want.n || r.whole.foreign != want.foreign {
				t.Fatalf("%q: %v, want %v", text, r.whole, want)
			}
			wanted := make([]bool, len(r.pieces))
			for i := range wanted {
				wanted[i] = chosen>>(i%64)&1 == 1
			}
			for _, reader := range []*requestReader{&m.english, &m.other} {
				spans := reader.pieces(normal, r.pieces, wanted)
				for i, want := range spansPlainly(reader, normal.text, r.pieces) {
					if wanted[i] && spans[i] != want {
						t.Fatalf("%q, piece %d: %v, want %v", text, i, spans[i], want)
					}
				}
			}
		}
	})
}

// tooOften says of each word of a text whether it came often enough just before.
func tooOften(normal string) (often []bool) {
	var words []uint32
	for s := NewScanner(normal, nil); s.Next(); words = append(words, s.hash) {
		before := 0
		for _, w := range words[max(0, len(words)-WindowBlocks*BlockWords):] {
			if w == s.hash {
				before++
			}
		}
		often = append(often, before >= mostRecent)
	}
	return often
}

func headsPlainly(m *Model, normal string) (all counters) {
	often := tooOften(normal)
	s := NewScanner(normal, m.lexicon)
	for i := 0; s.Next(); i++ {
		features := slices.Clone(s.joined())
		if !often[i] {
			features = append(features, s.alone()...)
		}
		for _, f := range features {
			for h := range all.weight {
				all.weight[h] += int32(m.rows[f]>>(8*h)&0xff) - raised
			}
			all.foreign += int32(m.rows[f]>>(8*foreignLane)&0xff) - raised
			all.n++
		}
	}
	return all
}

func spansPlainly(r *requestReader, normal string, pieces []piece) []requestSpan {
	spans, often, i := make([]requestSpan, len(pieces)), tooOften(normal), 0
	of, left := 0, pieces[0].words
	RequestFeatures(normal, &r.Terms, func(_ int, features []uint32, concepts uint64) {
		for left == 0 {
			of++
			left = pieces[of].words
		}
		left--
		if often[i] {
			features = features[1:3] // the pairs
		}
		i++
		for _, f := range features {
			for q := range Questions {
				spans[of].weight[q] += int32(int8(r.weights[int(f)*Questions+q]))
			}
			spans[of].n++
		}
		spans[of].concepts |= concepts
	})
	return spans
}

// Two words of one hash have one place, which the first one keeps.
func TestWordsOfOneHashAreToldApart(t *testing.T) {
	l := NewLexicon([]string{"bread"}, []uint16{0})
	known := newMemory[string](l)
	s := NewScanner("bread", l)
	s.Next()
	known.keep(s, "bread")
	if got := known.of(s); got == nil || *got != "bread" {
		t.Fatalf("of bread %v is remembered", got)
	}
	s.plain = "bombs" // as if it had the hash
	known.keep(s, "bombs")
	if got := known.of(s); got != nil {
		t.Errorf("of another word %q is remembered", *got)
	}
	if s.plain = "bread"; *known.of(s) != "bread" {
		t.Error("the first word was forgotten")
	}
}
