package prose_test

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel/prose"
)

// Characters that join, change or vanish beside others, and bytes that are none.
var neighbours = []string{"", "a", "Σ", "\u0301", "\u0345", "\u0323\u0307", "\u3099", "\u09be", "\u0dcf", "\u1161", "\u11a8", "\u115f", "\u200d", "\u00ad", "\u0653", "\u05b4", "\u0f71\u0f72", "가", "か", "İ", "ﬁ", "½", "Å", "\xff", "\xf6Ü", "\xe3\x81", "\ufffd", "\U0001f600", "\U000110ba", "-", "[at]"}

func sameFolding(t *testing.T, text string) {
	t.Helper()
	if written, whole := prose.Foldings(text); written != whole {
		t.Fatalf("%+q: %+q, and as a whole %+q", text, written, whole)
	}
}

// A text is folded character by character as it is as a whole.
func TestFoldingByCharacter(t *testing.T) {
	t.Parallel()
	for c := rune(0); c < 0x11000; c += 1 + c>>12 { // the more the farther
		for _, n := range neighbours {
			sameFolding(t, n+string(c)+"e"+string(c)+n)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		text := ""
		for range random.IntN(12) {
			switch random.IntN(4) {
			case 0:
				text += string(rune(random.IntN(0x3100)))
			case 1:
				text += string(rune(random.IntN(utf8.MaxRune)))
			default:
				text += neighbours[random.IntN(len(neighbours))]
			}
		}
		sameFolding(t, text)
	}
}

// Spellings of one destination are one, and no more.
func TestDestinationForm(t *testing.T) {
	for _, same := range [][]string{
		{"orders@bücher.example", "Orders@xn--bcher-kva.example", "orders@XN--BCHER-KVA.example", "orders [at] bücher (dot) example", "orders@bu\u0308cher.example"},
		{"DE89 3704 0044 0532 0130 00", "de89-3704-0044-0532-0130-00", "ＤＥ89370400440532013000"},
		{"hxxps://evil.example", "https://evil.example"},
	} {
		for _, s := range same[1:] {
			if got, want := prose.DestinationForm(s), prose.DestinationForm(same[0]); got != want {
				t.Errorf("%q is written %q, and %q %q", s, got, same[0], want)
			}
		}
	}
	for _, other := range [][2]string{{"bücher.example", "bucher.example"}, {"xn--bcher-kva.example", "bcher.example"}} {
		if prose.DestinationForm(other[0]) == prose.DestinationForm(other[1]) {
			t.Errorf("%q is %q", other[0], other[1])
		}
	}
}

func FuzzFolding(f *testing.F) {
	for _, s := range neighbours {
		f.Add("Ünter" + s + s + "把" + s)
	}
	f.Fuzz(sameFolding)
}
