package address_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/caddy-lex/lex/kernel/address"
)

func sameAddresses(t *testing.T, text string) {
	t.Helper()
	for _, n := range []int{1, 8, 64} {
		if found, matched := address.InWithExpression(text, n); !slices.Equal(found, matched) {
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
	for _, file := range []string{"address.go", "../../README.md", "../../docs/dialects.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sameAddresses(t, string(text))
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
		plain, parsed := address.Plain(text)
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

// Every spelling of an address of the own network is one, and no other is.
func TestInternalAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]address.Address{
		"http://127.0.0.1:8080/a":              {Host: "127.0.0.1", Port: "8080", Path: "/a", Internal: true, Loopback: true},
		"http://2852039166/latest":             {Host: "169.254.169.254", Path: "/latest", Internal: true, Disguised: true},
		"http://0xa9.254.0251.254/":            {Host: "169.254.169.254", Path: "/", Internal: true, Disguised: true},
		"http:\\\\127.1":                       {Host: "127.0.0.1", Path: "/", Internal: true, Loopback: true, Disguised: true},
		"http://[::ffff:10.0.0.1]/":            {Host: "[::ffff:a00:1]", Path: "/", Internal: true, Disguised: true},
		"http://１０.0.0.1/":                     {Host: "10.0.0.1", Path: "/", Internal: true, Disguised: true},
		"http://169.254.169.254.nip.io/":       {Host: "169.254.169.254.nip.io", Path: "/", Internal: true, Disguised: true},
		"http://93.184.216.34.nip.io/":         {Host: "93.184.216.34.nip.io", Path: "/"},
		"https://metadata.google.internal/a?b": {Host: "metadata.google.internal", Path: "/a", Query: "b", Internal: true},
		"http://printer/":                      {Host: "printer", Path: "/", Nearby: true},
		"gopher://127.0.0.1:6379/_FLUSHALL":    {Foreign: true},
		"https://docs.example.com/a":           {Host: "docs.example.com", Path: "/a"},
		"https://anything.webhook.site/x":      {Host: "anything.webhook.site", Path: "/x", Collects: true},
		"https://user:pw@93.184.216.34/":       {Host: "93.184.216.34", Path: "/", Disguised: true},
	} {
		if got, ok := address.Parse(text); !ok || got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"mailto:ann@example.com", "data:text/plain,a", "about:blank"} {
		if got, ok := address.Parse(text); ok && got.Internal {
			t.Errorf("%s is %+v", text, got)
		}
	}
}

// What a redirecting service is asked to go to is found, however it is encoded.
func TestRedirectedAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://a.example/go?to=http://10.0.0.1/b":                 "http://10.0.0.1/b",
		"https://a.example/go?to=http%3A%2F%2F10.0.0.1%2Fb":         "http://10.0.0.1/b",
		"https://a.example/go?to=http%253A%252F%252F10.0.0.1%252Fb": "http://10.0.0.1/b",
		"https://a.example/go?to=//10.0.0.1/b":                      "http://10.0.0.1/b",
		"https://a.example/go?to=aHR0cDovLzEwLjAuMC4xL2I=":          "http://10.0.0.1/b",
		"https://a.example/http://10.0.0.1/b":                       "http://10.0.0.1/b",
	} {
		if got := address.Redirected(text); !slices.Contains(got, want) {
			t.Errorf("%s leads to %q", text, got)
		}
	}
}
