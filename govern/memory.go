package govern

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

const (
	// MaxMemory is the most turns that a session can remember.
	MaxMemory = 50
	// maxExcerpt is how many characters of a text are remembered.
	maxExcerpt = 280
)

// memory is what a session keeps besides its state. It is stored encrypted.
type memory struct {
	// Turns are the last turns of a session whose caller does not resend them, oldest
	// first.
	Turns []Remembered `json:"t,omitempty"`
	// Histories are the digests of the conversation up to the last answer, one for
	// each choice that the client may go on from, for calls that resend it.
	Histories []string `json:"hs,omitempty"`
	// Branches says that nobody named the session: each turn leaves its state under a key of
	// its own.
	Branches bool `json:"y,omitempty"`
	// Seen are the marks of the parts of the resent history that are in none of these
	// digests, but were read (see Opened.markOf), the latest last.
	Seen []string `json:"s,omitempty"`
	// Thoughts are the marks of what the model thought in its answers, the latest last.
	Thoughts []string `json:"i,omitempty"`
	// Unread are the texts of the conversation that were not read whole.
	Unread []unreadText `json:"p,omitempty"`
	// Answers are the answers that a later call may go on from, where the provider
	// keeps the conversation, the latest last.
	Answers []providedAnswer `json:"a,omitempty"`
	// Tainted says that the provider keeps a refused answer in a conversation of its
	// own, from which no call can go back.
	Tainted bool `json:"x,omitempty"`
	// Refused are digests of messages that were refused when they were new or would be
	// refused now, and Treated are those of results of tools that carried instructions, the
	// latest last.
	Refused []string `json:"r,omitempty"`
	Treated []string `json:"z,omitempty"`
	// Kept are the places of messages that say the same as a refused one, but were not
	// refused there (see placesOf), the latest last.
	Kept []string `json:"v,omitempty"`
	// Forgot says that more was refused than Refused or Treated can hold. The history is
	// read in every turn from then on.
	Forgot bool `json:"o,omitempty"`
	// Distrust says that a message of the assistant with text was refused. It may come back cut
	// into other messages or with other hidden parts, which the digests of the
	// conversation do not tell apart, so the assistant's messages are read in every
	// turn from then on.
	Distrust bool `json:"d,omitempty"`
	// Failed identifies the last request if the client got nothing of an answer to
	// it.
	Failed string `json:"f,omitempty"`
	// Asked identifies the last request if its answer has an id.
	Asked string `json:"q,omitempty"`
	// Requested and Read are the end of what the user asked for and of what tools and
	// documents said, for tool calls in APIs whose clients do not resend it.
	Requested string   `json:"u,omitempty"`
	Read      []string `json:"w,omitempty"`
	// Tools are what a server of tools has said of them.
	Tools []hintedTool `json:"g,omitempty"`
	// Blocked are the calls that were blocked, by their ids, the latest last.
	Blocked []wire.BlockedCall `json:"k,omitempty"`
	// Unanswered are calls for whose results the provider waits in a conversation of its
	// own, and AskedCalls the ids of those in its last answer that the client got. They are
	// as in a providedAnswer.
	Unanswered []wire.BlockedCall `json:"n,omitempty"`
	AskedCalls []string           `json:"c,omitempty"`
	// Pending is the last answer of such a conversation, if it was not there yet and was not
	// fetched since.
	Pending string `json:"e,omitempty"`
}

const (
	// maxRefused is how many refused messages a session remembers, and how many treated
	// results and kept places.
	maxRefused = 256
	// maxSeen is how many marks of hidden parts a session remembers. Older parts are
	// read again in every turn.
	maxSeen = 256
	// maxUnread is how many texts a session remembers that were not read whole.
	maxUnread = 1024
	// maxBlocked is how many blocked calls a session remembers.
	maxBlocked = 64
	// maxAnswers is how many answers of the provider a named session remembers.
	maxAnswers = 64
)

// refuses remembers what the turn refused, removed or treated. Later turns replace what
// says the same, wherever it stands, but at the places where the session has let it through.
func (m *memory) refuses(in Input, attack bool) {
	m.Treated = union(m.Treated, in.treated)
	m.Refused = union(m.Refused, in.removed)
	if attack {
		m.Refused = union(m.Refused, in.messages)
		m.Kept = slices.DeleteFunc(slices.Clone(m.Kept), func(place string) bool { return slices.Contains(in.places, place) })
		m.Kept = union(m.Kept, in.equals)
	} else {
		for i, digest := range in.messages {
			if slices.Contains(m.Refused, digest) && !slices.Contains(in.removed, digest) {
				m.Kept = union(m.Kept, in.places[i:i+1])
			}
		}
	}
	m.Forgot = m.Forgot || max(len(m.Treated), len(m.Refused)) > maxRefused
	for _, list := range []*[]string{&m.Treated, &m.Refused, &m.Kept} {
		*list = (*list)[max(0, len(*list)-maxRefused):]
	}
}

// union returns the list with those of more behind it that it does not have.
func union(list, more []string) []string {
	list = slices.Clip(list)
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// Remembered is what a session remembers of one earlier turn: the beginning of
// both texts.
type Remembered struct {
	Prompt string `json:"p"`
	Output string `json:"o"`
	// Gaps are what of the prompt was not read.
	Gaps []unreadText `json:"g,omitempty"`
}

// sealMemory encrypts a session's memory under the session's own key, so that
// destroying the key erases all copies of the text.
func sealMemory(secret []byte, m memory) []byte {
	plain, err := json.Marshal(&m)
	if err != nil {
		return nil // strings always encode
	}
	return memoryCipher(secret).Seal(nil, nil, plain, nil) //nolint:gosec // G407: this cipher makes its own nonces
}

// openMemory decrypts a session's memory. Memory that cannot be decrypted is empty.
func openMemory(secret, sealed []byte) memory {
	if len(sealed) == 0 {
		return memory{}
	}
	plain, err := memoryCipher(secret).Open(nil, nil, sealed, nil)
	if err != nil {
		return memory{}
	}
	var m memory
	if json.Unmarshal(plain, &m) != nil {
		return memory{}
	}
	return m
}

// memoryCipher returns AES-GCM with random nonces. Its key is derived from the
// session's secret (HKDF, RFC 5869), because the secret itself signs commitments.
func memoryCipher(secret []byte) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, secret, nil, "lex session memory", 32)
	if err != nil {
		panic(fmt.Sprintf("deriving 32 bytes: %v", err)) // only longer outputs fail
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(fmt.Sprintf("a 32-byte key: %v", err))
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(fmt.Sprintf("GCM over AES: %v", err))
	}
	return aead
}

// RememberedTurns returns how many turns a stored session remembers.
func RememberedTurns(s store.Session) int { return len(openMemory(s.Secret, s.Memory).Turns) }

// excerpt returns at most the first n characters of a text.
func excerpt(s string, n int) string {
	for i := range s {
		if n == 0 {
			return string([]rune(s[:i])) + "…" // valid UTF-8, as JSON wants it
		}
		n--
	}
	return s
}
