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

// An address that is cut without the parser of the URL standard is cut as by it.
func TestPlainAddresses(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	pieces := []string{"a", "xn--", "b2", "7", "0x7f", "1", "com", "example.com", "x", "-", ".", "..", "/", "//", "/.", "/..", "?", "&", "=", "#", "@", ":", ":80", ":443", "%2e", "%", "\\", "[", "]", "|", "^", "{", "'", "\"", "\t", "A", "É", "_", "~", "+", "$", ";", "!", "*", "(", ",", "localhost", "abcdefghijklmnopqrstuvwxyz0123456789"}
	taken := 0
	for range 60_000 {
		text := []string{"http://", "https://", "http://www.", "https://a.example/", "https://a.example/b?", "http:/", "ftp://"}[random.IntN(7)]
		for range random.IntN(9) {
			text += pieces[random.IntN(len(pieces))]
		}
		plain, parsed := toolcall.PlainAddress(text)
		if plain != nil {
			taken++
			if !slices.Equal(plain, parsed) {
				t.Fatalf("%q: %q, parsed %q", text, plain, parsed)
			}
		}
	}
	if taken < 5000 {
		t.Errorf("only %d addresses were taken", taken)
	}
}

func FuzzAddressesInText(f *testing.F) {
	f.Add("see https://a.example/b, x+y://c|ftp://d e://")
	f.Fuzz(sameAddresses)
}
