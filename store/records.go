package store

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/caddy-lex/lex/kernel"
)

// The kinds of receipts, which are also the prefixes of their ids.
const (
	KindText     = "KRN" // governed text
	KindToolCall = "TCR" // a decided tool call
)

// Receipt is one entry of the audit trail, as the store keeps it.
type Receipt struct {
	// ID is the receipt's own identifier, a hash of its content. Required.
	ID string
	// Kind is [KindText] or [KindToolCall].
	Kind string
	// SessionKey groups receipts by session. It is private: it never appears in
	// a listing. Empty for a receipt of no session.
	SessionKey string
	// Conversation is the [Session.Family] of a conversation of which each turn leaves a
	// session of its own, in its first turn the receipt's own id: the statistics count such
	// a conversation as one session. Empty means that they count the receipt for its
	// SessionKey alone. Stores do not return it.
	Conversation string
	// SessionID is the session as the public lists show it.
	SessionID string
	// TurnID is the id that the turn had before its receipt: it leads to
	// the receipt ([Store.ReceiptOfTurn]). The tool calls of a turn may have the same.
	// Empty when nobody was told of one.
	TurnID string
	// Turn is the turn's label, >= 0.
	Turn int
	// Timestamp is in Unix milliseconds.
	Timestamp int64
	// Intervened and MAfter are the statistics' inputs. MAfter is a margin: a
	// number from -1 to 1.
	Intervened bool
	MAfter     float64
	// Level is the turn's place in the statistics' histogram. The zero value is none: the
	// receipt of a tool call, and of a turn that nothing was read of.
	Level Level
	// JSON is the canonical record. Stores return the very bytes that they were
	// given: the id is their hash. Required.
	JSON []byte
	// Summary is what [Store.Summaries] lists of the receipt. The caller makes
	// it and the store keeps the bytes. Only Summaries returns it: whoever reads
	// the receipt has the record. Empty when there is none.
	Summary []byte
	// Cursor is the receipt's place in the newest-first listing. The store sets
	// it on reading and ignores it on writing; its form is the store's own.
	Cursor string
	// Seq is the receipt's place in the log, counted from 1 without a gap, and
	// LogPrev the lower-case hex SHA-256 of the record before it there, "" for the
	// first. The store assigns both where commits are serialised, sets them on
	// reading and ignores them on writing. Of receipts that were written before
	// there was a log, LogPrev is "", and Seq may be 0 except in [Store.Log].
	Seq     uint64
	LogPrev string
}

// Summary is a receipt as it is listed without its record.
type Summary struct {
	// ID is the receipt's.
	ID string
	// Cursor is the receipt's place in the listing, the same as [Receipt.Cursor].
	Cursor string
	// JSON is the summary that the receipt was written with, byte for byte. Nil
	// when it was written without one.
	JSON []byte
}

// Validate returns an error that wraps [ErrInvalid] when r breaks a rule of its
// fields.
func (r Receipt) Validate() error {
	switch {
	case r.ID == "" || len(r.JSON) == 0:
		return fmt.Errorf("%w: receipt without id or record", ErrInvalid)
	case r.Kind != KindText && r.Kind != KindToolCall:
		return fmt.Errorf("%w: receipt of unknown kind", ErrInvalid)
	case r.Conversation != "" && r.SessionKey == "":
		return fmt.Errorf("%w: receipt of a conversation without a session", ErrInvalid)
	case r.Turn < 0:
		return fmt.Errorf("%w: receipt with a negative turn", ErrInvalid)
	case math.IsNaN(r.MAfter) || r.MAfter < -1 || r.MAfter > 1:
		return fmt.Errorf("%w: receipt whose margin is not between -1 and 1", ErrInvalid)
	case !r.Level.valid():
		return fmt.Errorf("%w: receipt whose level has no attack type of the kernel, or is not from 0 to 100", ErrInvalid)
	}
	return nil
}

// Session is what is remembered of a session between two turns.
type Session struct {
	// Key is the session's private key. Required.
	Key string
	// Version says which state this is. 0 means not stored yet; otherwise the
	// store sets it on reading. Every commit gives the session a version that
	// it never had before, not even before it was erased.
	Version uint64
	// State is the kernel's state, with finite numbers only.
	State kernel.Session
	// Family names the sessions that go back to one first turn and therefore share
	// its secret, as the states of a conversation that branches do. It is the id of
	// the receipt of that turn: the store sets it when a change with an empty Family
	// begins one. Whoever derives a session from another keeps it.
	Family string
	// PublicID is the session as all its receipts show it, "" in sessions that
	// were stored before it was kept.
	PublicID string
	// Head is the link of the session's last receipt ([kernel.Receipt.Link]), "" at
	// first. Sessions that were stored before links had all digits have its id.
	Head string
	// Secret is the session's commitment key, 32 random bytes. The caller makes
	// it and may wrap it.
	Secret []byte
	// Centre is the running centre of the embeddings of the outputs.
	Centre []float32
	// Memory holds excerpts of the last turns, sealed by the caller.
	Memory []byte
	// Turns counts the accepted turns.
	Turns int
	// HighestTurn is the highest turn label so far.
	HighestTurn int
	// Eval marks a benchmark session, which the statistics leave out.
	Eval bool
}

// Change is what [Store.Commit] writes in one atomic step: the receipt of a turn, those
// of the tool calls in its answer, and the session as the turn leaves it.
type Change struct {
	// Receipt belongs to the session: its SessionKey is Session.Key.
	Receipt Receipt
	// Session is the session's next state, with the version that was read.
	Session Session
	// Calls are the receipts of the tool calls of the turn, in order, at most [MaxCalls],
	// of the same session and with ids of their own. They follow Receipt in the listing,
	// and the last of them is the session's head.
	Calls []Receipt
	// Aliases are further keys that lead to the session from now on: now to the
	// state that this change leaves, later to the state that it then has. A key under
	// which a session of its own is stored keeps leading to that one; of several
	// aliases of the same name the last one counts. At most [MaxAliases].
	Aliases []string
}

// MaxCalls is how many tool calls one change may have.
const MaxCalls = 256

// MaxAliases is how many aliases one change may have: one for each alternative
// answer that a model API gives to a call (128), and a few ids.
const MaxAliases = 132

// Validate returns an error that wraps [ErrInvalid] when c breaks a rule of its
// fields.
func (c Change) Validate() error {
	if c.Session.Key == "" || c.Receipt.SessionKey != c.Session.Key {
		return fmt.Errorf("%w: change whose receipt and session differ", ErrInvalid)
	}
	if len(c.Aliases) > MaxAliases || slices.Contains(c.Aliases, "") || slices.Contains(c.Aliases, c.Session.Key) {
		return fmt.Errorf("%w: change with too many aliases, or with one that is empty or the key", ErrInvalid)
	}
	if err := c.validateCalls(); err != nil {
		return err
	}
	return ValidateReceipts(c.Receipts())
}

// validateCalls checks what the tool calls have to do with the rest of the change.
func (c Change) validateCalls() error {
	ids := make(map[string]bool, len(c.Calls))
	for _, call := range c.Calls {
		if call.SessionKey != c.Session.Key || call.Kind != KindToolCall {
			return fmt.Errorf("%w: change with a tool call of another session or kind", ErrInvalid)
		}
		if call.ID == c.Receipt.ID || ids[call.ID] {
			return fmt.Errorf("%w: change with two receipts of one id", ErrInvalid)
		}
		ids[call.ID] = true
	}
	return nil
}

// Receipts returns all receipts of the change, in the order in which they are written.
func (c Change) Receipts() []Receipt {
	return append([]Receipt{c.Receipt}, c.Calls...)
}

// ValidateReceipts returns an error that wraps [ErrInvalid] unless the receipts may be
// written in one step: each is valid, and there are no more than a turn and its tool
// calls have.
func ValidateReceipts(receipts []Receipt) error {
	if len(receipts) > 1+MaxCalls {
		return fmt.Errorf("%w: too many receipts at once", ErrInvalid)
	}
	for _, r := range receipts {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Allowance is the answer to one request against a limit.
type Allowance struct {
	// Allowed says that the request was within the limit and was counted.
	Allowed bool
	// Limit is the limit that was asked for.
	Limit int
	// Remaining is how many more requests the window allows, >= 0.
	Remaining int
	// Reset is the time until the window ends, > 0.
	Reset time.Duration
}

// Key is an API key. The key itself is not kept, only its digest. Times are
// kept in UTC and to the millisecond; the zero time means never.
type Key struct {
	ID         string // names the key to its administrator
	Hash       string // hex SHA-256 of the key, by which it is found; required
	Name       string
	Plan       string
	CreatedAt  time.Time
	LastUsedAt time.Time
	ExpiresAt  time.Time
	RevokedAt  time.Time
}

// Benchmark is one published benchmark result. Percentages are from 0 to 100.
type Benchmark struct {
	Benchmark    string     `json:"benchmark"`
	Metric       string     `json:"metric"`
	NTotal       int        `json:"n_total"`
	BarePct      float64    `json:"bare_pct"`     // ungoverned
	GovernedPct  float64    `json:"governed_pct"` // governed
	BareCI95     [2]float64 `json:"bare_ci95"`
	GovernedCI95 [2]float64 `json:"governed_ci95"`
	DeltaPct     float64    `json:"delta_pct"`
	Notes        string     `json:"notes"`
	CreatedAt    time.Time  `json:"created_at"` // kept in UTC
}
