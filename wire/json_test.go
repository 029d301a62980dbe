package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

func TestCheckJSON(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, good := range []string{`{}`, ` [1, "a", null] `, `"text"`, `0`, `{"a":{"b":[]}}`, `"\ud83d\ude00"`, nested(wire.MaxDepth), `"` + nested(2*wire.MaxDepth) + `"`} {
		if err := wire.CheckJSON([]byte(good)); err != nil {
			t.Errorf("%.40s: %v", good, err)
		}
	}
	for name, bad := range map[string]string{
		"nothing":            "",
		"white space":        " \n",
		"cut":                `{"canary":`,
		"two values":         `{}{}`,
		"trailing text":      `{} canary`,
		"duplicate":          `{"canary":1,"canary":2}`,
		"duplicate, escaped": `{"canary":1,"c\u0061nary":2}`,
		"duplicate, nested":  `{"a":[{"canary":1,"canary":2}]}`,
		"lone surrogate":     `"canary\ud800"`,
		"not UTF-8":          "\"canary\xff\"",
		"byte order mark":    "\uFEFF{}",
		"comment":            `{} // canary`,
		"single quotes":      `{'canary':1}`,
		"NUL":                "\"canary\x00\"",
		"too deep":           nested(wire.MaxDepth + 1),
	} {
		err := wire.CheckJSON([]byte(bad))
		if !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error quotes the body: %v", name, err)
		}
	}
}

func TestEndsEarly(t *testing.T) {
	for body, want := range map[string]bool{
		`{"a":`: true, `[{"a":"b`: true, ` {"a":1`: true, `{`: true, "\n[1,": true,
		``: false, ` `: false, `{}`: false, `{"a":1}x`: false, `{]`: false, `"a`: false, `tru`: false, `{"a":1,"a":`: false, `text {`: false,
	} {
		if got := wire.EndsEarly([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}
