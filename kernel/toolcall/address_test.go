package toolcall_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

func sameAddresses(t *testing.T, text string) {
	t.Helper()
	for _, n := range []int{1, 8, 64} {
		if found, matched := toolcall.AddressesIn(text, n); !slices.Equal(found, matched) {
			t.Fatalf("%q: found %q, matched %q", text, found, matched)
		}
	}
}

// Addresses are found in a text as the expression for them finds them.
func TestAddressesInText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	pieces := []string{"://", "http", "a", "b1", "9", "+", ".", "-", "_", " ", "\n", "\v", "\x00", "\"", "'", "<", "|", "`", ":", "/", "x.example/y?z", "abcdefghijklmnop", "abcdefghijklmno", "ſ", "K", "é"}
	for range 100000 {
		text := ""
		for range random.IntN(14) {
			text += pieces[random.IntN(len(pieces))]
		}
		sameAddresses(t, text)
	}
	for _, text := range ordinaryTexts {
		sameAddresses(t, text())
	}
}

func FuzzAddressesInText(f *testing.F) {
	f.Add("see https://a.example/b, x+y://c|ftp://d e://")
	f.Fuzz(sameAddresses)
}
