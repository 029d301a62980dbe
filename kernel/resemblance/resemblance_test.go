package resemblance_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/resemblance"
)

// written reads a call that is written as a tool's name and its arguments. The members body
// and text hold texts for people.
func written(call string) resemblance.Call {
	tool, arguments, _ := strings.Cut(call, " ")
	return resemblance.Call{Tool: tool, Arguments: []byte(arguments), IsProse: func(member string) bool { return member == "body" || member == "text" }}
}

// A call's words are told however they are written together, and hosts and addresses are alike.
func TestImpressions(t *testing.T) {
	t.Parallel()
	same := func(a, b string) bool {
		return slices.Equal(resemblance.Impressions(written(a))[0], resemblance.Impressions(written(b))[0])
	}
	for a, b := range map[string]string{
		`sendEmail {"toAddress": "ann@corp.example"}`: `send_email {"to_address": "ann@other.test"}`,
		`fetch {"url": "https://203.0.113.7/a"}`:      `fetch {"url": "https://files.example.com/a"}`,
		`pay {"amount": 9500}`:                        `pay {"amount": 1200}`,
		`run {"input": "{\"command\": \"ls\"}"}`:      `run {"command": "ls"}`,
	} {
		if !same(a, b) {
			t.Errorf("%s and %s differ", a, b)
		}
	}
	for a, b := range map[string]string{
		`fetch {"url": "https://10.1.2.3/a"}`: `fetch {"url": "https://files.example.com/a"}`,
		`run {"command": "rm -r build"}`:      `run {"text": "rm -r build"}`,
	} {
		if same(a, b) {
			t.Errorf("%s and %s are the same", a, b)
		}
	}
}

// What the user said and what a text said are told apart.
func TestImpressionsOfTheConversation(t *testing.T) {
	t.Parallel()
	call := written(`pay {"to": "acme traders", "amount": 12}`)
	seen := [][]uint32{resemblance.Impressions(call)[0]}
	for _, c := range []struct{ request, read string }{{"pay acme traders", ""}, {"what is new?", ""}, {"", "pay acme traders"}, {"what is new?", "pay acme traders"}} {
		call.Request, call.Read = c.request, c.read
		features := resemblance.Impressions(call)[0]
		if slices.ContainsFunc(seen, func(other []uint32) bool { return slices.Equal(other, features) }) {
			t.Errorf("%+v reads as another conversation", c)
		}
		seen = append(seen, features)
	}
}

// Other weights have another hash, by which receipts tell which ones decided.
func TestSHA256(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("weights.bin")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(file)); resemblance.SHA256() != sum {
		t.Errorf("%s, the file has %s", resemblance.SHA256(), sum)
	}
}

// Each part of a call is judged by itself, so that ordinary words do not outweigh it.
func TestOddsOfParts(t *testing.T) {
	t.Parallel()
	harm := resemblance.Impressions(written(`t {"a": "harm"}`))[0]
	weights := make([]float64, resemblance.Buckets)
	for _, f := range harm {
		weights[f] = 1
	}
	for f := range weights {
		if weights[f] == 0 {
			weights[f] = -0.5
		}
	}
	w := resemblance.Read(resemblance.Encode(-0.25, weights))
	if odds, want := w.Odds([][]uint32{harm}), -0.25+float64(len(harm))*resemblance.Scale(harm); math.Abs(odds-want) > 1e-5 {
		t.Errorf("%v, want %v", odds, want)
	}
	padding := `"b": "one two three four five six seven eight nine ten", "c": "eleven twelve thirteen", `
	padded := resemblance.Impressions(written(`t {` + padding + `"a": "harm"}`))
	if whole, parts := w.Odds(padded[:1]), w.Odds(padded); whole >= 0 || parts <= 0 {
		t.Errorf("the whole %v, its parts %v", whole, parts)
	}
	if len(padded) != 5 { // the whole, three values, and nothing behind them
		t.Errorf("%d parts", len(padded))
	}
}

func TestNamedIn(t *testing.T) {
	t.Parallel()
	const call = `{"table": "orders_old", "host": "web-sp-02"}`
	for request, want := range map[string]resemblance.Named{
		"drop the table": resemblance.Unnamed,
		"":               resemblance.Unnamed,
		"see OPS-123 of 2026-11-02, about 10 of 20": resemblance.Unnamed, // tickets and figures
		"drop Orders_Old":                 resemblance.All,
		"drop orders_old on web-sp-02.":   resemblance.All,
		"drop orders_old, not orders_new": resemblance.Some,
		"drop orders_new":                 resemblance.Others,
	} {
		if got := resemblance.NamedIn(request, []byte(call)); got != want {
			t.Errorf("%q: %s", request, got)
		}
	}
}

func FuzzImpressions(f *testing.F) {
	f.Add("sendEmail", `{"to":["a@b.example"],"n":{"x":1.5e3,"y":null}}`, "send it", "203.0.113.7.")
	f.Add("", `{"ÄÖ":"ǅ\u0000-.-..a.com."}`, "..", "-")
	f.Fuzz(func(t *testing.T, tool, arguments, request, read string) {
		c := written(tool + " " + arguments)
		c.Request, c.Read = request, read
		impressions := resemblance.Impressions(c)
		if most := 8*(len(tool)+len(arguments)) + 2; len(impressions[0]) > most {
			t.Errorf("%d features of %d bytes", len(impressions[0]), len(tool)+len(arguments))
		}
		for _, feature := range impressions[0] {
			if feature >= resemblance.Buckets {
				t.Fatalf("feature %d", feature)
			}
		}
		if odds := resemblance.Shipped.Odds(impressions); math.IsNaN(odds) || math.IsInf(odds, 0) {
			t.Errorf("odds %v", odds)
		}
		if again := resemblance.Impressions(c); !slices.EqualFunc(again, impressions, slices.Equal) {
			t.Error("the same call reads in two ways")
		}
	})
}

func BenchmarkImpressions(b *testing.B) {
	c := written(`bash {"command": "git fetch origin && git rebase origin/main && git push --force-with-lease origin feat/invoice-rounding"}`)
	b.ReportAllocs()
	for b.Loop() {
		resemblance.Shipped.Odds(resemblance.Impressions(c))
	}
}
