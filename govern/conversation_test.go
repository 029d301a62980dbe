package govern_test

import (
	"strings"
	"testing"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/wire"
)

// Conversations that begin with the same words of the application have names of their own,
// and keep them.
func TestConversationsOfOneApplication(t *testing.T) {
	say := func(texts ...string) string {
		parts := []wire.Part{{Role: wire.System, Kind: wire.Text, Text: "Be brief.", Message: 1, Earlier: true}, {Role: wire.Assistant, Kind: wire.Text, Text: "Hello!", Message: 2, Earlier: true}}
		for i, text := range texts {
			parts = append(parts, wire.Part{Role: []wire.Role{wire.User, wire.Assistant}[i%2], Kind: wire.Text, Text: text, Message: 3 + i, Earlier: i+1 < len(texts)})
		}
		return govern.NewConversation("caller", parts).PublicID()
	}
	cheese := say("What is cheese?")
	if cheese == say("What is a car?") {
		t.Error("two conversations have one name")
	}
	if later := say("What is cheese?", "Milk.", "And butter?"); later != cheese {
		t.Errorf("%s became %s", cheese, later)
	}
}

// Sessions are stored under the digests of their conversations, so these never change.
func TestDigestsOfConversationsStay(t *testing.T) {
	long := strings.Repeat("What does the hotel cost? ", 40)
	messages := []wire.Part{
		{Role: wire.System, Kind: wire.Text, Text: "Be brief.", Message: 1, Earlier: true},
		{Role: wire.User, Kind: wire.Text, Text: long, Message: 2, Earlier: true},
		{Role: wire.User, Kind: wire.Image, Bytes: 4096, Message: 2, Earlier: true},
		{Role: wire.Assistant, Kind: wire.Text, Text: " Ninety, " + long, Message: 3, Earlier: true},
		{Role: wire.Assistant, Kind: wire.RefusalText, Text: long, Message: 3, Earlier: true},
		{Role: wire.Assistant, Kind: wire.Text, Text: "and breakfast.\n", Message: 4, Earlier: true},
		{Role: wire.User, Kind: wire.Text, Message: 5},
	}
	for _, c := range []struct {
		parts          int
		previous       string
		past, publicID string
	}{
		{1, "", "eaa38d3c23b188762fe310131205359f23bbba85aae1c1464896f3223c72d72e", "s_eaa38d3c23b18876"},
		{2, "", "c946756855668abd44aca786240a7310b063a6cc1e064d4235f3ca156a8d4048", "s_c946756855668abd"},
		{7, "", "1691eb6a7602af94b7bcaef3ac903b0009741e9aee3c80f6709e21d40836702e", "s_ff06e219dc47df17"},
		{7, "resp_1", "9be759a689fa4de571a9f4c858964f459f05091228bf75157725cba7bea5c05e", "s_0099d23add07dcd0"},
	} {
		conversation := govern.NewConversation("caller", messages[:c.parts])
		conversation.Previous = c.previous
		if past, id := conversation.Past(), conversation.PublicID(); past != c.past || id != c.publicID {
			t.Errorf("%d parts, %q: {%d, %q, %q, %q},", c.parts, c.previous, c.parts, c.previous, past, id)
		}
	}
}
