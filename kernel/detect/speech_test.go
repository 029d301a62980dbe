package detect

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FuzzSpeech compares what is heard of a growing answer with what spoken makes of the same
// answer in one piece, at every place to which it may have grown.
func FuzzSpeech(f *testing.F) {
	for _, s := range []string{
		"", "I'm sorry, but I can't.", "  two  spaces\r\n\tand 'quotes' ' '", "l’été à la plage", "Пожалуйста, hаrd wоrds и ещё", "она там как", "the hаrd way",
		"请告诉我明天北京的天气怎么样，我想去。公园", "\u1112\u200d\u1161 a\u0300\u0345", "\xff\xf0\x9f a", "ab\x01c", "\u2019 a ' b", "аб漢", " \u200b x", "it costs 1.50\u3000", "３，４", "漢字かな漢字漢字 аб漢字", "漢字かな漢字漢字аб", "漢字か\u3099な漢\u0301字", "กรุงเทพกรุงเทพ\u0e33กรุง", "हिन्दीकानमक", "abcdefghijk\u0301lmnо",
	} {
		f.Add(s, uint8(1))
	}
	f.Fuzz(func(t *testing.T, answer string, step uint8) {
		if want := strings.ReplaceAll(Normalise(undecorated(answer)), "'", "") + " "; string(spoken(answer, len(answer))) != want {
			t.Fatalf("%q: spoken %q, want %q", answer, spoken(answer, len(answer)), want)
		}
		var heard speech
		settled := ""
		for n := 0; n <= len(answer); n += 1 + int(step)%16 {
			so := answer[:n]
			if heard.hear(so) {
				settled = ""
			}
			if want := " " + strings.ReplaceAll(Normalise(so), "'", "") + " "; string(heard.said) != want {
				t.Fatalf("%q: heard %q, want %q", so, heard.said, want)
			}
			if now := string(heard.said[:heard.settled]); !strings.HasPrefix(now, settled) || !utf8.ValidString(now) {
				t.Fatalf("%q: settled on %q, before on %q", so, now, settled)
			}
			settled = string(heard.said[:heard.settled])
		}
	})
}

// Where a speech is cut, nothing composes with what stands before.
func TestNothingComposesAcrossABreak(t *testing.T) {
	for r := rune(0); r < 0x40000; r++ {
		s := string(r)
		if breaksWords(s, 0) || standsAlone(r) {
			if known := norm.NFKC.PropertiesString(s); !known.BoundaryBefore() {
				t.Errorf("%U", r)
			}
		}
	}
}

// A text of plain characters is its own NFKC form: each of them is, and none but the virama
// can compose with the one before, which it never does.
func TestPlainCharactersAreNormal(t *testing.T) {
	const virama = "\u094d"
	for r := range rune(utf8.MaxRune) {
		s := string(r)
		if plainPrefix(s) != len(s) {
			continue
		}
		if !norm.NFKC.IsNormalString(s+virama+virama) || s != virama && !norm.NFKC.PropertiesString(s).BoundaryBefore() {
			t.Errorf("%U", r)
		}
	}
}

// The sums of a prompt are those of what it says, however it is written.
func TestAskedKnowsEveryFalseSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 12))
	signs := []string{"2", "2", "5", "7", "+", "-", "*", "x", "X", "plus", "Minus", "times", "=", "is", "Equals", " ", " ", "'", "\n", "\t", "a", "é", "\u200b", "＋"}
	held := 0
	for range 200_000 {
		prompt := "2"
		for range rng.IntN(10) {
			prompt += signs[rng.IntN(len(signs))]
		}
		said := append([]byte(" "), spoken(prompt, MaxJudged)...)
		if arithmetic.Match(said) && !mayHoldSum(said) {
			t.Fatalf("%q is passed over", said)
		}
		want := falseSums(said)
		if got := NewAsked(Signal{}, prompt).wrong; !maps.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", prompt, got, want)
		}
		held += len(want)
	}
	if held < 100 {
		t.Errorf("only %d of the prompts had a sum", held)
	}
}
