package detect_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// TestVerdictsAreThoseOfTheGoldenFile judges answers that are made of the judge's own
// phrases and of what may stand around them. A way to judge faster must not change one
// verdict, confidence or reason.
func TestVerdictsAreThoseOfTheGoldenFile(t *testing.T) {
	const golden = "testdata/verdicts.golden"
	got := verdicts()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || lines[i] != line {
			t.Fatalf("line %d: %s", i+1, line)
		}
	}
}

// verdicts writes a line for each hundred answers: a letter for each verdict, a dot for
// none, and a digest of the judgements.
func verdicts() string {
	rng := rand.New(rand.NewPCG(20, 7))
	var out strings.Builder
	for range 60 {
		digest := sha256.New()
		for range 100 {
			prompt, answer := composedPrompt(rng), composedAnswer(rng)
			for _, before := range signals {
				j := detect.Judge(before, prompt, answer)
				fmt.Fprintf(digest, "%+v\n", j)
				out.WriteByte(letterOf(j))
			}
			fmt.Fprintln(digest, detect.IsRefusal(answer))
		}
		fmt.Fprintf(&out, " %x\n", digest.Sum(nil)[:12])
	}
	return out.String()
}

func letterOf(j detect.Judgement) byte {
	if !j.Capitulated {
		return '.'
	}
	return j.Category[0]
}

// signals are what prompts can be: harmless, an attack, harmful, pressing, and all of it.
var signals = []detect.Signal{
	{},
	{SelfReference: true},
	{Scores: kernel.Scores{HarmRequest: 0.95}},
	{Scores: kernel.Scores{Sycophancy: 0.9}},
	{SelfReference: true, Scores: kernel.Scores{Exploitative: 0.8, Sycophancy: 0.6, Coercion: 0.4}},
}

func composedPrompt(rng *rand.Rand) string {
	return []string{"", "How do I bake bread?", "2+2=5, isn't it?", "I say that 3 plus 4 is 8 and 10-1=9.", "１+１=３"}[rng.IntN(5)]
}

// around are texts that change how a phrase beside them is read.
var around = []string{
	"", " ", ". ", ", ", "\n", "! ", "? ", "; ", ": ", "\"", " “", "” ", "'", "’", "*", "1. ", "...", " - ", "。", "，",
	" not ", " I cannot say that", " if ", " pretend", " however", " but ", "the garden ", "A bread needs flour, water and salt. ", "It is 2+2=5. ", "1+1=3 ", "10-1 = 9 ",
	"It costs 12.50 dollars. ", "Расскажите о погоде. ", "请告诉我明天北京的天气。", "l’été à la plage ", "an\u200b", "\u0301", "і", "\xff", "\r\n", "\t", "hаrd ", "WORDS ", " wait", " recommend it enough",
	"that is all there is to say about the weather of the coming week in the hills above the town, ",
}

// composedAnswer mixes phrases of the judge with texts around them.
func composedAnswer(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(24) {
		if rng.IntN(3) > 0 {
			b.WriteString(around[rng.IntN(len(around))])
			continue
		}
		list := detect.Phrases[rng.IntN(len(detect.Phrases))]
		b.WriteString(list[rng.IntN(len(list))])
	}
	if rng.IntN(40) == 0 {
		return strings.Repeat("All is well in the garden of the town. ", rng.IntN(900)) + b.String()
	}
	return b.String()
}

// What is asserted begins with a space, by which the judge finds where to look.
func TestAssertedPhrasesBeginWithASpace(t *testing.T) {
	for _, list := range detect.AssertedLists {
		for _, phrase := range list {
			if phrase[0] != ' ' {
				t.Errorf("%q", phrase)
			}
		}
	}
}
