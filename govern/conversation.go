package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"

	"github.com/caddy-lex/lex/wire"
)

// A Conversation holds the turns that a request of a stateless API resends. Such an
// API has no session id, but each request repeats the last one and our answer to it.
// So the state after a turn is kept under the digest of all messages up to the answer,
// and the history of the next request has the same digest. A client that goes back to
// an earlier message and asks again gets the state of that point. A client that does
// not know the texts cannot find their state.
type Conversation struct {
	namespace string
	parts     []wire.Part // of messages, in order
	history   int         // how many of the parts come before the newest turn
}

// NewConversation takes the messages from a request's parts. A refusal that repeats
// the content of its message, as ours do, counts once, because clients resend either
// or both.
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

// Past returns the digest under which the previous turn left its state, or "" in a
// first turn.
func (c *Conversation) Past() string {
	if c.history == 0 {
		return ""
	}
	return hex.EncodeToString(c.digest(c.history).Sum(nil))
}

// present returns a digest of all that the request says.
func (c *Conversation) present() string {
	return hex.EncodeToString(c.digest(len(c.parts)).Sum(nil))
}

// future returns the digest under which this turn leaves its state.
func (c *Conversation) future(answer string) string {
	h := c.digest(len(c.parts))
	writePart(h, string(wire.Assistant), answer)
	return hex.EncodeToString(h.Sum(nil))
}

// PublicID names the conversation in public lists. It is the same in all turns.
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

// partText identifies a part: by its text, whether that came back as content or as a
// refusal, or by the kind and size of a part that is not text.
func partText(p wire.Part) string {
	if p.Text != "" || p.Kind == wire.Text || p.Kind == wire.RefusalText {
		return p.Text
	}
	return string(p.Kind) + ":" + strconv.Itoa(p.Bytes)
}

// writePart writes the lengths too, so that different sequences never give the same
// bytes.
func writePart(h hash.Hash, role, text string) {
	for _, s := range []string{role, text} {
		_, _ = h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) // a hash never fails
	}
}
