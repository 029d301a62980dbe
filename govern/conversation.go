package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"

	"github.com/caddy-lex/lex/wire"
)

// A Conversation is what a request of a stateless API resends of its earlier
// turns. Such an API has no session id; what ties the turns together is that
// each repeats the last, our answer included. So the state after a turn is kept
// under the digest of the messages up to and with the answer, where exactly the
// next turn's history finds it. A client that goes back and asks again finds
// the state of that point, and nobody finds the state of texts they have not
// seen.
type Conversation struct {
	namespace string
	parts     []wire.Part // of messages, in order
	history   int         // how many of them come before the newest turn
}

// NewConversation takes the messages out of a request's parts. A refusal that
// repeats the content of its message, as ours do, is not another text: clients
// resend either or both.
func NewConversation(namespace string, parts []wire.Part) *Conversation {
	c := &Conversation{namespace: namespace}
	for _, p := range parts {
		switch p.Role {
		case wire.System, wire.User, wire.Assistant, wire.Tool:
			if n := len(c.parts); n == 0 || p.Kind != wire.RefusalText || c.parts[n-1].Message != p.Message || c.parts[n-1].Text != p.Text {
				c.parts = append(c.parts, p)
			}
		}
	}
	c.history = len(c.parts)
	if newest := slices.IndexFunc(c.parts, func(p wire.Part) bool { return !p.Earlier }); newest >= 0 {
		c.history = newest
	}
	return c
}

// Past is the digest under which the turn before left its state, or "" in a first
// turn.
func (c *Conversation) Past() string {
	if c.history == 0 {
		return ""
	}
	return hex.EncodeToString(c.digest(c.history).Sum(nil))
}

// present identifies the request by all that it says.
func (c *Conversation) present() string {
	return hex.EncodeToString(c.digest(len(c.parts)).Sum(nil))
}

// future is the digest under which this turn leaves its state.
func (c *Conversation) future(answer string) string {
	h := c.digest(len(c.parts))
	writePart(h, string(wire.Assistant), answer)
	return hex.EncodeToString(h.Sum(nil))
}

// PublicID names the conversation in public lists, the same in all its turns.
func (c *Conversation) PublicID() string {
	return PublicID(hex.EncodeToString(c.digest(min(1, len(c.parts))).Sum(nil)))
}

func (c *Conversation) digest(n int) hash.Hash {
	h := sha256.New()
	writePart(h, "conversation", c.namespace)
	for _, p := range c.parts[:n] {
		writePart(h, string(p.Role), partText(p))
	}
	return h
}

// partText is what identifies a part: its text, whether it came back as
// content or as a refusal, or the kind and size of what is no text.
func partText(p wire.Part) string {
	if p.Text != "" || p.Kind == wire.Text || p.Kind == wire.RefusalText {
		return p.Text
	}
	return string(p.Kind) + ":" + strconv.Itoa(p.Bytes)
}

// writePart writes with lengths, so that no two sequences read the same.
func writePart(h hash.Hash, role, text string) {
	for _, s := range []string{role, text} {
		_, _ = h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) // a hash never fails
	}
}
