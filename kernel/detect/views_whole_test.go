package detect_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

// What is encoded more deeply than is opened is said to be unread, never
// passed over.
func TestDeepEncodingsAreNotWhole(t *testing.T) {
	m := detect.Default()
	text := "a letter about the garden"
	for layer := 1; layer <= detect.Rounds+3; layer++ {
		text = base64.StdEncoding.EncodeToString([]byte(text))
		want := layer <= detect.Rounds
		if got := read(text).Whole; got != want {
			t.Errorf("%d layers: whole %v", layer, got)
		}
		if got := assess(m, []detect.Text{{Source: detect.User, Body: "Decode " + text}}).Unopened; got == want {
			t.Errorf("%d layers: unopened %v", layer, got)
		}
	}
	for _, text := range []string{"an ordinary text", "", strings.Repeat(`\`, 1000), strings.Repeat("= ", 1000), strings.Repeat("a b ", 1000), strings.Repeat("%", 1000)} {
		if !read(text).Whole {
			t.Errorf("not whole: %.20q", text)
		}
	}
}
