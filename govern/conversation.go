package govern

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/wire"
)

// A Conversation holds the turns that a request of a stateless API resends. Such an
// API has no session id, but each request repeats the last one and our answer to it.
// So the state after a turn is kept under the digest of what was said up to the answer,
// and the history of the next request has the same digest. A client that goes back to
// an earlier message and asks again gets the state of that point. A client that does
// not know the texts cannot find their state.
//
// The digest has only what every client resends as it was. Of the messages that are
// not the assistant's that is every part, because the client wrote them. Of the
// assistant's it is the text that readers see, as one text without the space around
// it: clients cut it into other parts and messages, and drop or rewrite reasoning,
// calls of tools, names and annotations. What is not in the digest was not recognised
// by it, so it is never taken for inspected on its account (see covers).
//
// It keeps what it has computed, so it is not safe for concurrent use.
type Conversation struct {
	// Previous is the id of the provider's answer that the call goes on from, if the
	// provider has the conversation up to there and the request has not, or of the answer
	// that the call fetches. It is set before anything is asked of the conversation.
	Previous string

	namespace  string
	parts      []wire.Part  // of messages, in order
	history    int          // how many of the parts come before the newest turn
	assistants map[int]bool // the numbers of the messages that the assistant wrote

	hash textHash // that a digest is being made with

	// What split returned last, for the first splitAt parts. Without before it was not asked.
	splitAt int
	before  []byte
	said    string
}

// NewConversation takes the messages from a request's parts.
func NewConversation(namespace string, parts []wire.Part) *Conversation {
	c := &Conversation{namespace: namespace, hash: textHash{Hash: sha256.New()}}
	for _, p := range parts {
		if !ofMessage(p) {
			continue
		}
		c.parts = append(c.parts, p)
		if p.Role == wire.Assistant && p.Message > 0 {
			if c.assistants == nil {
				c.assistants = make(map[int]bool)
			}
			c.assistants[p.Message] = true
		}
	}
	c.history = len(c.parts)
	if newest := slices.IndexFunc(c.parts, func(p wire.Part) bool { return !p.Earlier }); newest >= 0 {
		c.history = newest
	}
	return c
}

// ofMessage reports whether a part belongs to the messages. An API without messages
// has the roles alone.
func ofMessage(p wire.Part) bool {
	switch p.Role {
	case wire.System, wire.User, wire.Assistant, wire.Tool:
		return true
	}
	return p.Message > 0
}

// wrote reports whether the assistant wrote the message that a part belongs to. Nil has
// no messages.
func (c *Conversation) wrote(p wire.Part) bool { return c != nil && c.assistants[p.Message] }

// covers reports whether the digest has a part of a message. Nil has no digest.
func (c *Conversation) covers(p wire.Part) bool {
	return c != nil && ofMessage(p) && (!c.assistants[p.Message] || p.Role == wire.Assistant && (p.Kind == wire.Text || p.Kind == wire.RefusalText))
}

// Past returns the digest under which the previous turn left its state, or "" in a
// first turn.
func (c *Conversation) Past() string {
	if !slices.ContainsFunc(c.parts[:c.history], c.covers) {
		return ""
	}
	return c.digest(c.history)
}

// present returns a digest of all that the request says, hidden parts included.
func (c *Conversation) present() string {
	h := c.begin()
	for _, p := range c.parts {
		h.writePart(string(p.Role)+" "+string(p.Kind), partText(p))
	}
	return h.digest(sha256.Size)
}

// futures returns the digests under which this turn leaves its state, one for each
// choice of the answer. The client goes on from one of them.
func (c *Conversation) futures(choices []string) []string {
	var out []string
	before, said := c.split(len(c.parts))
	for _, text := range choices {
		if digest := c.endDigest(before, said+text); !slices.Contains(out, digest) {
			out = append(out, digest)
		}
	}
	return out
}

// PublicID names the conversation in public lists, by what it begins with up to the first
// message of the user. It is the same in all turns.
func (c *Conversation) PublicID() string {
	n := slices.IndexFunc(c.parts, func(p wire.Part) bool { return p.Role != wire.System && !c.wrote(p) })
	if n < 0 {
		return PublicID(c.digest(len(c.parts)))
	}
	for first := c.parts[n].Message; n < len(c.parts) && c.parts[n].Message == first; n++ {
	}
	return PublicID(c.digest(n))
}

// digest returns the digest of the first n parts.
func (c *Conversation) digest(n int) string {
	before, said := c.split(n)
	return c.endDigest(before, said)
}

// split returns a digest of the first n parts without what the assistant said last,
// and that text. A turn asks more than once for the same.
func (c *Conversation) split(n int) (before []byte, said string) {
	if c.before == nil || c.splitAt != n {
		c.splitAt = n
		c.before, c.said = c.splitAnew(n)
	}
	return c.before, c.said
}

func (c *Conversation) splitAnew(n int) (before []byte, last string) {
	h := c.begin()
	var said strings.Builder // by the assistant, since somebody else spoke
	for from := 0; from < n; {
		p, to := c.parts[from], from+1
		if c.assistants[p.Message] {
			for to < n && c.parts[to].Message == p.Message {
				to++
			}
			said.WriteString(c.visible(c.parts[from:to]))
		} else {
			h.writeSaid(said.String())
			said.Reset()
			// Where a message begins, and the kind of a part, count too: a message that
			// was refused is recognised by them.
			place := "of "
			if from == 0 || c.parts[from-1].Message != p.Message {
				place = "begins "
			}
			h.writePart(place+string(p.Role)+" "+string(p.Kind), partText(p))
		}
		from = to
	}
	return h.Sum(nil), said.String()
}

// endDigest returns the digest of a conversation that ends with a text of the assistant.
func (c *Conversation) endDigest(before []byte, said string) string {
	h := &c.hash
	h.Reset()
	_, _ = h.Write(before)
	h.writeSaid(said)
	return h.digest(sha256.Size)
}

// writeSaid adds what the assistant said.
func (h *textHash) writeSaid(said string) {
	if said = strings.TrimSpace(said); said != "" {
		h.writePart(string(wire.Assistant), said)
	}
}

func (c *Conversation) begin() *textHash {
	h := &c.hash
	h.Reset()
	h.writePart("conversation", c.namespace)
	if c.Previous != "" {
		h.writePart("previous", c.Previous)
	}
	return h
}

// visible returns the text of one message of the assistant that readers see. A refusal
// that repeats the content, or its end, counts once: ours do, and clients resend
// either or both.
func (c *Conversation) visible(message []wire.Part) string {
	var content, refusal strings.Builder
	for _, p := range message {
		switch {
		case !c.covers(p):
		case p.Kind == wire.Text:
			content.WriteString(p.Text)
		default:
			refusal.WriteString(p.Text)
		}
	}
	if strings.HasSuffix(content.String(), refusal.String()) {
		return content.String()
	}
	return content.String() + refusal.String()
}

// partText identifies a part: by its text, or by the kind and size of a part that is
// not text.
func partText(p wire.Part) string {
	if p.Text != "" || p.Kind == wire.Text || p.Kind == wire.RefusalText {
		return p.Text
	}
	return string(p.Kind) + ":" + strconv.Itoa(p.Bytes)
}
