package govern

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

// A Governor governs turns under one policy. Several of them may share a store
// and its locks.
type Governor struct {
	// Kernel decides, under its policy.
	Kernel *kernel.Kernel
	// Detector scores texts and judges answers in this process.
	Detector *detect.Model
	// Embedder measures the threat signal in another embedding space. Nil stands
	// for the detector's own.
	Embedder Embedder
	// Judge reads answers beside the detector's own judge. Nil stands for nobody.
	Judge Judge
	// JudgeRequired refuses an answer on which Judge gave no verdict.
	JudgeRequired bool

	// Store keeps sessions and receipts.
	Store Store
	// Locks are those of everybody in this process who uses Store.
	Locks *Locks

	// RefusalText is what a refused turn answers.
	RefusalText string
	// Constitution is the system text that the identity mode full gives to the
	// model.
	Constitution string
	// Memory is how many turns of a session are remembered, 0 to [MaxMemory].
	Memory int
	// Version names the pipeline and its policy in receipts.
	Version string
}

// A Store is what the pipeline needs of a [store.Store].
type Store interface {
	Session(ctx context.Context, key string) (store.Session, error)
	Receipt(ctx context.Context, id string) (store.Receipt, error)
	Commit(ctx context.Context, t store.Change) error
	Append(ctx context.Context, r store.Receipt) error
}

// An Embedder places a prompt between what assistants are asked every day and
// what attacks them: the contrastive threat signal. Implementations are safe for
// concurrent use, honour the context and return errors that hold no text, key or
// address.
type Embedder interface {
	// Provider names the embedder, as embed_provider shows it.
	Provider() string
	// Threat returns a number in [-2, 2]; positive is nearer to harm. It reads
	// the first [model.MaxEmbedded] bytes. The namespace is the caller's: nothing
	// that one caller asked may show in an answer to another, its time included.
	Threat(ctx context.Context, namespace, text string) (float64, error)
}

// A Judge says whether an answer gave in to its prompt. Implementations are safe
// for concurrent use, honour the context and return errors that hold no text, key
// or address. An answer without a verdict is an error, never an acquittal.
type Judge interface {
	// Model names the judge, as judge_model shows it.
	Model() string
	// Judge reads the first [model.MaxJudged] bytes of the answer. The namespace
	// is the caller's: a caller that asks much waits behind itself.
	Judge(ctx context.Context, namespace, prompt, answer string) (detect.Judgement, error)
}

// A Request is what is known of a turn before its texts are read.
type Request struct {
	Mode kernel.Mode

	// Key names the session in the store, PublicID in public lists. From Open on
	// PublicID is the session's own, the id of its first turn.
	Key, PublicID string
	// Conversation is what an intercepted call resends of its earlier turns; nil
	// where the session alone knows them.
	Conversation *Conversation
	// Unnamed: the caller named no session. Each turn leaves its state under the
	// digest of the conversation up to its answer.
	Unnamed bool
	// Namespace is the caller's; remote models keep callers apart by it.
	Namespace string
	// Label is the caller's own number of the turn; 0 stands for the next one.
	Label int
	// Eval marks a session of a benchmark, which the statistics leave out.
	Eval bool

	// Endpoint, Dialect and Model are as the receipt and the metrics name them.
	Endpoint, Dialect, Model string
	Started                  time.Time

	Reading Reading
}

// Reading says how the texts of a request are read.
type Reading struct {
	// Limit is how much text is read, in bytes; 0 stands for all of it.
	Limit int64
	// RefuseOversize refuses a request with more text than Limit.
	RefuseOversize bool
	// RefuseHistory refuses a request for an attack in its history, instead of
	// taking the attack out.
	RefuseHistory bool
	// Unknown reads the members that the dialect does not know.
	Unknown bool
}

// Opened is a turn whose session is known.
type Opened struct {
	Request

	// TurnID names the turn before its receipt has an id.
	TurnID string
	// Coverage says what of the turn is inspected. All phases write into it.
	Coverage *Coverage

	governor *Governor
	session  store.Session
	memory   memory
}

// Open reads the session, or begins a new one.
func (g *Governor) Open(ctx context.Context, r Request) (*Opened, error) {
	return g.open(ctx, r, rand.Text(), new(Coverage))
}

// open also serves a turn that is opened again because another turn of its
// session was faster: the client may know its id already.
func (g *Governor) open(ctx context.Context, r Request, turnID string, coverage *Coverage) (*Opened, error) {
	s, err := g.Store.Session(ctx, r.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s = store.Session{Key: r.Key, State: g.Kernel.NewSession(), Secret: newSecret()}
	case err != nil:
		return nil, fmt.Errorf("reading the session: %w", err)
	}
	// A session has one public id, which all its receipts show, whichever way its
	// turns come in: the id of its first turn.
	switch {
	case s.PublicID != "":
		r.PublicID = s.PublicID
	case s.Head != "": // stored before sessions kept their public id
		head, err := g.Store.Receipt(ctx, s.Head)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("reading the session's head: %w", err)
		}
		r.PublicID = cmp.Or(head.SessionID, r.PublicID)
	}
	s.PublicID = r.PublicID
	return &Opened{Request: r, TurnID: turnID, Coverage: coverage, governor: g, session: s, memory: openMemory(s.Secret, s.Memory)}, nil
}

// newSecret makes a session's commitment key.
func newSecret() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return key
}

// Remembered returns the turns that the session remembers, oldest first.
func (o *Opened) Remembered() []Remembered { return o.memory.Turns }

// SessionKey is the private name of a session: nobody can read or poison another
// caller's session by knowing its id.
func SessionKey(namespace, id string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// PublicID shows a session in public lists that was not named through /lex/govern.
func PublicID(key string) string { return "s_" + key[:16] }
