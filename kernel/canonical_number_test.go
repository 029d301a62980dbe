package kernel_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel"
)

// ecmaScript writes a number as RFC 8785 asks for, with the library.
func ecmaScript(n float64) string {
	text, _ := jsontext.AppendFormat(nil, []byte(strconv.FormatFloat(n+0, 'g', -1, 64)), jsontext.CanonicalizeRawFloats(true))
	return string(text)
}

// checkNumber compares the reader with what it stands for: a text is a number when it is
// what the number that is read from it is written as.
func checkNumber(t *testing.T, text string) {
	t.Helper()
	want, err := strconv.ParseFloat(text, 64)
	canonical := err == nil && !math.IsInf(want, 0) && !math.IsNaN(want) && ecmaScript(want) == text
	n, ok := kernel.ReadNumber(text)
	if ok != canonical {
		t.Fatalf("%s: accepted %v, canonical %v", text, ok, canonical)
	}
	if ok && math.Float64bits(n) != math.Float64bits(want) {
		t.Fatalf("%s was read as %s", text, ecmaScript(n))
	}
}

// Numbers of every size, and their neighbours among the decimals, are read exactly as the
// library would read and write them, the usual ones by arithmetic alone.
func TestNumbersAreReadExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	known, usual := 0, 0
	for i := range 200_000 {
		var n float64
		switch i % 6 {
		case 0:
			n = random.Float64()
		case 1:
			n = random.Float64() - 0.5
		case 2:
			n = math.Exp(-14 * random.Float64())
		case 3:
			n = 1000 * random.NormFloat64()
		case 4: // next to a power of two, where the neighbours are not equally far
			n = math.Nextafter(math.Ldexp(1, -random.IntN(20)), float64(random.IntN(3)-1))
		case 5: // next to a short decimal
			short, _ := strconv.ParseFloat("0."+strconv.Itoa(1+random.IntN(999)), 64)
			n = math.Float64frombits(math.Float64bits(short) + uint64(random.IntN(7)) - 3)
		}
		text := ecmaScript(n)
		checkNumber(t, text)
		if i%6 == 0 {
			usual++
			if _, length := kernel.Decimal(text); length == len(text) {
				known++
			}
		}
		last := text[len(text)-1]
		for _, other := range []string{
			text + "1", text + "0", text[:len(text)-1], text[:len(text)-1] + string('0'+(last-'0'+1)%10), text[:len(text)-1] + string('0'+(last-'0'+9)%10),
			"0" + text, strings.Replace(text, ".", "", 1), strings.Replace(text, "0.", ".", 1), strings.TrimPrefix(text, "-"), "-" + text, text + "e0", text + ".",
		} {
			checkNumber(t, other)
		}
	}
	if known < usual*99/100 {
		t.Errorf("of %d usual numbers only %d were read by arithmetic", usual, known)
	}
}

// FuzzNumber: whatever is accepted as a number is one in its canonical form, read exactly.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"0", "-0", "0.1", "0.30000000000000004", "1e-7", "0.000001", "5e-324", "1.7976931348623157e+308", "100", "1e21", "12.5", "9007199254740993", "0.9999999999999999", "+1", ".5", "1_0", "0x1p-2", "Inf"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkNumber(t, text) })
}
