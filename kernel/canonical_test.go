package kernel_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// number returns numbers of every kind that a double can be and JSON can write.
func (r random) number() float64 {
	for {
		n := 0.0
		switch r.IntN(8) {
		case 0:
			n = math.Float64frombits(r.Uint64())
		case 1:
			n = r.Float64()
		case 2: // as detectors round
			n = float64(r.IntN(1e4)) / 1e4
		case 3: // about the edges of what is written with an exponent
			n = []float64{1e-6, 1e-7, 1e21, 1e20, 1e22, 0.1, 1e15, 1e16, 1e17}[r.IntN(9)]
		case 4: // about 15 to 17 digits
			n = float64(r.Int64N(1e17)) / math.Pow10(r.IntN(18))
		case 5:
			n = math.Ldexp(1, r.IntN(2100)-1074)
		case 6:
			n = []float64{0, math.Copysign(0, -1), 1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 53}[r.IntN(6)]
		case 7:
			n = float64(r.Int64N(1e6)) * math.Pow10(r.IntN(40)-30)
		}
		for range r.IntN(3) {
			n = math.Nextafter(n, float64(r.IntN(3)-1)*math.MaxFloat64)
		}
		if r.IntN(4) == 0 {
			n = -n
		}
		if n-n == 0 {
			return n
		}
	}
}

// text returns texts with and without what JSON must escape.
func (r random) text() string {
	pieces := []string{"", "a", "KRN-0F", "é", "\u2028", "\U0001F600", "\uFFFD", `"`, `\`, "/", "<&>", "\n", "\b", "\f", "\r", "\t", "\x00", "\x1f", "\x7f"}
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// fill gives every field of a receipt a random value, also those that are added
// later.
func (r random) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.fill(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			r.fill(v.Index(i))
		}
	case reflect.Slice:
		n := r.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.fill(v.Index(i))
		}
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(r.number())
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 1 << 53, -1 << 53, r.Int64N(1 << 53)}[r.IntN(6)])
	default:
		panic("a receipt has a " + v.Kind().String())
	}
}

// What is written is what the library of the JSON stack makes canonical, and the
// reader for canonical JSON reads the same value from it as the general decoder. There
// are over fifty numbers in a receipt.
func TestCanonicalFormOfRandomReceipts(t *testing.T) {
	t.Parallel()
	r := newRandom(90)
	for range 5_000 {
		var receipt kernel.Receipt
		r.fill(reflect.ValueOf(&receipt).Elem())
		checkCanonical(t, receipt)
		text := mustJSON(t, receipt)
		if !checkReader(t, text) {
			t.Fatalf("its canonical form is not read: %s", text)
		}
		checkReader(t, r.damaged(text))
	}
}

// damaged changes, removes, repeats or inserts a few bytes.
func (r random) damaged(text []byte) []byte {
	at := r.IntN(len(text))
	end := min(len(text), at+1+r.IntN(3))
	insert := []string{"", "0", "1", "-", ".", "e", "E+1", "9", " ", ",", `"`, `\u0041`, "[]", "{}", "null", "true"}[r.IntN(16)]
	switch r.IntN(3) {
	case 0:
		end = at
	case 1:
		insert += string(text[at:end]) + string(text[at:end])
	}
	return []byte(string(text[:at]) + insert + string(text[end:]))
}

// checkReader compares the reader for canonical JSON with what it stands for: the
// general decoder, and a text that is the canonical form of what that has read.
func checkReader(t *testing.T, text []byte) (accepted bool) {
	t.Helper()
	fast, accepted := kernel.ReadCanonical(text)
	slow, err := kernel.DecodeReceipt(text)
	canonical := err == nil
	if canonical {
		again, err := slow.JSON()
		canonical = err == nil && bytes.Equal(again, text)
	}
	if accepted != canonical {
		t.Fatalf("accepted %v, canonical %v: %s", accepted, canonical, text)
	}
	if accepted && !reflect.DeepEqual(fast, slow) {
		t.Fatalf("%s\nis read as\n%+v\nshould be\n%+v", text, fast, slow)
	}
	return accepted
}

// FuzzCanonicalReader: the reader for canonical JSON accepts exactly the canonical
// records and reads them as the general decoder does.
func FuzzCanonicalReader(f *testing.F) {
	k := newKernel(f, kernel.DefaultPolicy())
	r := newRandom(91)
	for range 4 {
		var receipt kernel.Receipt
		r.fill(reflect.ValueOf(&receipt).Elem())
		f.Add(mustJSON(f, receipt))
	}
	f.Add(mustJSON(f, sealedReceipt(f, k)))
	f.Add(mustJSON(f, toolReceipt(f, k)))
	f.Add(mustJSON(f, kernel.Receipt{}))
	f.Fuzz(func(t *testing.T, text []byte) { checkReader(t, text) })
}

// The same, for the spelling of a single number.
func FuzzCanonicalNumber(f *testing.F) {
	for _, n := range []string{
		"0", "-0", "00", "0.0", "1.", ".1", "1e5", "1E5", "1e+21", "1e21", "1e-7", "1e-07", "0.000001", "0.0000001", "0.10", "5e-324",
		"100", "999999999999999", "9999999999999999", "0.30000000000000004", "0.3333333333333333", "0.33333333333333333", "1e999",
		"123456789012345.6", "12345678901234.5", "9007199254740993", "1.7976931348623157e+308", "-0.1", "--1", "+1", "0x1", "1_0", "Inf", "NaN", "1.2.3",
	} {
		f.Add(n)
	}
	text := string(mustJSON(f, kernel.Receipt{}))
	f.Fuzz(func(t *testing.T, number string) {
		checkReader(t, []byte(strings.Replace(text, `"delta_V":0`, `"delta_V":`+number, 1)))
		checkReader(t, []byte(strings.Replace(text, `"turn":0`, `"turn":`+number, 1)))
	})
}
