package govern

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

// A Governor governs turns under one policy. Several of them may share a store
// and its locks.
type Governor struct {
	// Kernel decides, under its policy.
	Kernel *kernel.Kernel
	// Detector scores texts and judges answers in this process.
	Detector *detect.Model
	// Embedder measures the threat signal in another embedding space. Nil means the
	// detector's own space.
	Embedder Embedder
	// Judge reads answers in addition to the detector's own judge. Nil means that
	// there is no other judge.
	Judge Judge
	// JudgeRequired refuses an answer if Judge gave no verdict on it.
	JudgeRequired bool
	// Guards are asked about texts that the detector leaves undecided.
	Guards []*Guard
	// Templates are what applications put around their users' words.
	Templates []Template
	// Tools decides on tool calls. Nil knows no rules of an operator.
	Tools *toolcall.Interceptor

	// Store keeps sessions and receipts.
	Store Store
	// Locks are shared by all governors in this process that use Store.
	Locks *Locks

	// RefusalText is the answer of a refused turn.
	RefusalText string
	// Constitution is the system text that the model gets in the identity mode full.
	Constitution string
	// Memory is how many turns of a session are remembered, 0 to [MaxMemory].
	Memory int
	// Version names the pipeline and its policy in receipts.
	Version string
	// Setup is the hash of the governor's [Setup], which receipts name.
	Setup string
}

// A Store has the methods of a [store.Store] that the pipeline needs.
type Store interface {
	Session(ctx context.Context, key string) (store.Session, error)
	Receipt(ctx context.Context, id string) (store.Receipt, error)
	Commit(ctx context.Context, t store.Change) error
	Append(ctx context.Context, receipts ...store.Receipt) error
}

// An Embedder measures the contrastive threat signal: whether a prompt is nearer to
// attacks or to everyday questions. Implementations are safe for concurrent use,
// honour the context and return errors that hold no text, key or address.
type Embedder interface {
	// Provider names the embedder, as embed_provider shows it, and Model the model that
	// it asks.
	Provider() string
	Model() string
	// Threat returns a number in [-2, 2]; a positive number is nearer to attacks. It
	// reads the first [model.MaxEmbedded] bytes. The namespace identifies the caller.
	// Nothing that one caller asked may influence the answer to another, or the time
	// it takes.
	Threat(ctx context.Context, namespace, text string) (float64, error)
}

// A Judge says whether an answer gave in to its prompt. Implementations are safe
// for concurrent use, honour the context and return errors that hold no text, key
// or address. If there is no verdict they return an error, never an acquittal.
type Judge interface {
	// Model names the judge, as judge_model shows it.
	Model() string
	// Judge reads the first [model.MaxJudged] bytes of the answer. The namespace
	// identifies the caller, so that a caller with many requests only delays itself.
	Judge(ctx context.Context, namespace, prompt, answer string) (detect.Judgement, error)
}

// A Request is what is known about a turn before its texts are read.
type Request struct {
	Mode kernel.Mode

	// Key names the session in the store, or is an alias of it; PublicID names it in
	// public lists. From Open on
	// PublicID is the session's own, the id of its first turn.
	Key, PublicID string
	// Conversation holds the earlier turns that an intercepted call resends. It is
	// nil if only the session knows them.
	Conversation *Conversation
	// Unnamed says that the caller named no session. The state after each turn is then
	// stored under the digest of the conversation up to its answer, and under the id of
	// the answer if the provider keeps it. A turn that goes on from an answer of a named
	// session is one of that session.
	Unnamed bool
	// RefusalID returns the id of the answer that refuses the turn with the receipt, if
	// a later call can go on from it, or "". Nil means that there are no such ids.
	RefusalID func(receiptID string) string
	// Kept: the provider keeps the answer under its id.
	Kept bool
	// Fetches is the id of an answer that the provider has and the call asks for, "" if it
	// asks a model. FetchesRest: it asks for the end of it.
	Fetches     string
	FetchesRest bool
	// Answerer is the dialect, if its providers want a result for each call that they
	// remember.
	Answerer wire.CallAnswerer
	// Namespace identifies the caller. Remote models keep callers apart by it.
	Namespace string
	// KeyID is the id of the caller's Lex key, or "". Rules on tool calls can ask for it.
	KeyID string
	// Label is the number that the caller gave the turn; 0 means the next number.
	Label int
	// Watched: the request counts or checks something for the client, and nothing refuses it.
	// The statistics count no level of it.
	Watched bool
	// Eval marks a session of a benchmark. The statistics leave it out.
	Eval bool

	// Endpoint, Dialect and Model are as the receipt and the metrics name them.
	Endpoint, Dialect, Model string
	Started                  time.Time
	// TraceID is the trace that the request belongs to, 32 lower-case hex digits, or "".
	TraceID string

	Reading Reading
}

// Reading says how the texts of a request are read.
type Reading struct {
	// Limit is how much text is read, in bytes; 0 means all of it.
	Limit int64
	// RefuseOversize refuses a request with more text than Limit.
	RefuseOversize bool
	// RefuseHistory refuses a request with an attack in its history, instead of
	// removing the attack.
	RefuseHistory bool
	// Unknown says that members which the dialect does not know are read too.
	Unknown bool
	// ToolResults says what becomes of instructions in what tools return. The zero value is
	// BlockResults.
	ToolResults ToolResults
}

// ToolResults is what becomes of a result of a tool, or of a document, that carries
// instructions.
type ToolResults string

// The treatments.
const (
	// BlockResults refuses the turn that brings it.
	BlockResults ToolResults = "block"
	// RedactResults replaces it, and the turn goes on.
	RedactResults ToolResults = "redact"
	// AnnotateResults puts a warning in front of it. The model reads it.
	AnnotateResults ToolResults = "annotate"
)

// Opened is a turn whose session is known.
type Opened struct {
	Request

	// TurnID names the turn before its receipt has an id, see [newTurnID].
	TurnID string
	// Coverage records what of the turn is inspected. All phases write into it.
	Coverage *Coverage
	// Timing is how long the phases took so far. It is not for concurrent use.
	Timing Timing

	governor *Governor
	session  store.Session
	memory   memory
	talk     talk
	branches bool                    // each turn leaves its state under a key of its own, from which the client may go on again
	previous providedAnswer          // what the session and others know of the answer that the call goes on from
	asking   memory                  // of the session of the call that asked for the answer that is fetched
	unread   map[string][]unreadText // what of the resent history was not read, by path
	afforded map[*Guard]bool         // whether the budget of a guard lets it be asked in this turn
	reread   *rereading              // what guards said while a conversation is read; nil at other times
}

// Open reads the session, or begins a new one.
func (g *Governor) Open(ctx context.Context, r Request) (*Opened, error) {
	return g.open(ctx, r, newTurnID(r.Started), new(Coverage))
}

// open is also used when a turn is opened again because another turn of its session
// was committed first. The turn keeps its id, because the client may already know it.
func (g *Governor) open(ctx context.Context, r Request, turnID string, coverage *Coverage) (*Opened, error) {
	s, refusal, err := g.sessionOf(ctx, r)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s = store.Session{Key: r.Key, State: g.Kernel.NewSession(), Secret: newSecret()}
	case err != nil:
		return nil, fmt.Errorf("reading the session: %w", err)
	}
	// All receipts of a session show the same public id, that of its first turn,
	// although its turns may come through different endpoints.
	switch {
	case s.PublicID != "":
		r.PublicID = s.PublicID
	case s.Head != "": // stored before sessions kept their public id
		head, err := g.Store.Receipt(ctx, kernel.IDOf(s.Head))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("reading the session's head: %w", err)
		}
		r.PublicID = cmp.Or(head.SessionID, r.PublicID)
	}
	s.PublicID = r.PublicID
	o := &Opened{Request: r, TurnID: turnID, Coverage: coverage, governor: g, session: s, memory: openMemory(s.Secret, s.Memory), previous: refusal}
	o.branches = r.Unnamed && !o.isNamed()
	if err := o.findPrevious(ctx); err != nil {
		return nil, err
	}
	return o, nil
}

// isNamed reports whether an earlier turn named the session. One that nobody named says so,
// and an older one has the digest of its last turn as its key. The receipts of a named session follow one another: if
// one of them could be followed twice, nobody could tell a branch from a receipt that was
// put in.
func (o *Opened) isNamed() bool {
	return o.session.Head != "" && !o.memory.Branches && !slices.Contains(o.memory.Histories, o.session.Key)
}

// newTurnID makes the id of a turn: ten characters of its time in milliseconds and sixteen
// of chance, 80 bits, so that nobody guesses it. Ids in the order of time stand together in
// a store's index. Where they stand anywhere in it, as random ones do, each of them costs a
// page that is read, copied and written.
func newTurnID(began time.Time) string {
	var digits [timeDigits]byte
	for i, ms := timeDigits-1, began.UnixMilli(); i >= 0; i, ms = i-1, ms>>5 {
		digits[i] = idAlphabet[ms&31]
	}
	return string(digits[:]) + rand.Text()[:16]
}

const (
	timeDigits = 10                                 // of five bits
	idAlphabet = "234567ABCDEFGHIJKLMNOPQRSTUVWXYZ" // that of rand.Text, in the order of its bytes
)

// newSecret makes a session's commitment key.
func newSecret() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return key
}

// SessionHash names the session in logs and traces: by the id that receipts show, or by
// another hash where a caller may have chosen that id. All turns of the session have the same.
func (o *Opened) SessionHash() string {
	if o.branches { // nobody named it, and its key changes with each turn
		return o.PublicID
	}
	return PublicID(o.session.Key)
}

// Remembered returns the turns that the session remembers, oldest first, as many as the
// governor lets a call have. A site with a longer memory may share the session.
func (o *Opened) Remembered() []Remembered {
	return o.memory.Turns[max(0, len(o.memory.Turns)-o.governor.Memory):]
}

// SessionKey returns the private name of a session that is named by its id. It depends on
// the caller's namespace, so knowing the id of another caller's session gives no access to
// it. No id leads to the session of an answer ([AnswerKey]): that one may branch, and a
// named one may not.
func SessionKey(namespace, id string) string {
	if strings.HasPrefix(id, answerID) {
		id = "\x00" + id
	}
	return keyOf(namespace, id)
}

func keyOf(namespace, id string) string {
	sum := sha256.Sum256([]byte(namespace + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// PublicID returns the public id of a session that was not named through
// /lex/govern.
func PublicID(key string) string { return "s_" + key[:16] }
