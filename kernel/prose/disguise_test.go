package prose_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/prose"
)

// What a line says in another guise is told by its words as it is by writing it so.
func sameGuises(t *testing.T, line string) {
	t.Helper()
	if told, tried := prose.Turned(line); !slices.Equal(told, tried) {
		t.Fatalf("%q: %q, and tried %q", line, told, tried)
	}
	if found, runs := prose.CodedIn(line); !slices.Equal(found, runs) {
		t.Fatalf("%q: %q, and run by run %q", line, found, runs)
	}
}

func TestGuises(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	words := []string{"the", "Gur", "EHT", "and,", "naq", "dna.", "jvgu", "htiw", "from", "morf", "İn", "nİ", "wİth", "vf", "si", "a", "n", "..", "!is?", "\xffof", "fo\xe3", "für", "word", "aGVsbG8gd29ybGQh", "+/_-", "Ⅰ", "please", "esaelp;", "cyrnfr"}
	for range 50000 {
		line := ""
		for range random.IntN(12) {
			line += words[random.IntN(len(words))] + []string{" ", " ", "\u2003", "", "\t"}[random.IntN(5)]
		}
		sameGuises(t, line)
	}
	for _, text := range ordinaryTexts(t) {
		for line := range strings.Lines(text) {
			sameGuises(t, line)
		}
		sameGuises(t, text)
	}
}

func FuzzGuises(f *testing.F) {
	for _, s := range []string{"Gur svyr vf naq bs gur", "eht dna morf ot", "x aGVsbG8gd29ybGQhaGVsbG8gd29ybGQh y"} {
		f.Add(s)
	}
	f.Fuzz(sameGuises)
}
