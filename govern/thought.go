package govern

import (
	"crypto/sha256"
	"slices"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// A model that has read an attack may quote it in its reasoning. When that comes back with
// the conversation, it is what the model itself thought, and not what somebody puts in
// front of it. Providers sign reasoning and refuse a conversation in which it is another
// (https://docs.claude.com/en/docs/build-with-claude/extended-thinking, "Preserving
// thinking blocks"), so replacing it would end the conversation. A session therefore
// remembers a mark of each thought in its answers. A thought that it knows is read as
// before, but neither replaced nor counted against the message that it belongs to. Where
// that message is removed, the thought is listed as not inspected.

// thoughts are what the model thought in an answer, as it comes.
type thoughts struct {
	begun []*thought
}

// A thought is one text of reasoning, which clients put together from its pieces.
type thought struct {
	choice int
	part   string
	hash   textHash
}

// thoughtStays is why a thought is not inspected: a message that is removed is not read again,
// and its thought stays.
const thoughtStays = "the model's own reasoning, in a message that is removed"

// maxThoughts is how many thoughts of one answer are told apart, and how many a session
// remembers.
const maxThoughts = 256

// add adds a piece of reasoning to the thought that it belongs to.
func (t *thoughts) add(d wire.Delta) {
	i := slices.IndexFunc(t.begun, func(b *thought) bool { return b.choice == d.Choice && b.part == d.Part })
	if i < 0 {
		if len(t.begun) == maxThoughts {
			return
		}
		i = len(t.begun)
		t.begun = append(t.begun, &thought{choice: d.Choice, part: d.Part, hash: textHash{Hash: sha256.New()}})
	}
	t.begun[i].hash.write(d.Text)
}

// thoughtMarks are what the session with the secret remembers of what the model thought: of a
// refused turn nothing.
func (j *Judged) thoughtMarks(secret []byte) (marks []string) {
	if j.thoughts == nil || len(j.Turn.Reasons) > 0 {
		return nil
	}
	for _, t := range j.thoughts.begun {
		marks = append(marks, thoughtMark(secret, t.hash.digest(sha256.Size)))
	}
	return marks
}

// thinks remembers the marks of thoughts.
func (m *memory) thinks(marks []string) {
	m.Thoughts = union(m.Thoughts, marks)
	m.Thoughts = m.Thoughts[max(0, len(m.Thoughts)-maxThoughts):]
}

// thoughtMark recognises a thought by its digest. Like the marks of hidden parts, it is made
// with the secret of the session.
func thoughtMark(secret []byte, digest string) string {
	return kernel.Commit(secret, "thought "+digest)[:16]
}

// thought reports whether a part of the history is what the model thought in this session.
func (o *Opened) thought(p wire.Part) bool {
	if p.Kind != wire.Reasoning || p.Role != wire.Assistant || len(o.memory.Thoughts) == 0 {
		return false
	}
	digest := digestOf(sha256.Size, func(h *textHash) { h.write(p.Text) })
	return slices.Contains(o.memory.Thoughts, thoughtMark(o.session.Secret, digest))
}

// withoutThoughts returns what is judged, and may be replaced, of a message.
func (o *Opened) withoutThoughts(m pastMessage) pastMessage {
	return slices.DeleteFunc(slices.Clone(m), o.thought)
}
