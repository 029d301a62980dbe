package store

import (
	"context"
	"time"
)

// Sessions keeps the state of sessions, and writes turns.
type Sessions interface {
	// Session returns the session, or [ErrNotFound] when it is new, erased or
	// forgotten. The result shares nothing with the store.
	Session(ctx context.Context, key string) (Session, error)

	// Commit makes a turn durable: the receipt, the session's next state and
	// the statistics, in one atomic step. A nil error means that all of it
	// survives a crash. [ErrConflict] means that the session no longer has the
	// version t.Session.Version and that nothing was written. A turn whose
	// receipt id is already there succeeds, whatever its version, and adds
	// nothing: repeating a commit whose answer was lost is always right. Commit
	// keeps no reference to t.
	Commit(ctx context.Context, t Turn) error

	// Erase forgets the session with its secret, memory and centre. Its
	// receipts stay, and so does what they added to the statistics. Erasing a
	// session that is not there succeeds. A turn that was computed on the
	// erased state conflicts, also when the session has begun anew.
	Erase(ctx context.Context, key string) error
}

// Receipts reads the audit trail, and writes receipts that belong to no turn.
type Receipts interface {
	// Recent returns up to limit receipts, newest first, that are older than
	// the one whose Cursor is before; "" begins with the newest. Going on with
	// the last one's Cursor visits every receipt that was there at the start
	// exactly once, whatever is written meanwhile. A limit below 1 returns
	// none. A cursor that is not of this store's form is [ErrNotFound].
	Recent(ctx context.Context, before string, limit int) ([]Receipt, error)

	// Summaries lists the same receipts as Recent, in the same order and with the
	// same cursors, so that one may go on where the other ended. It reads their
	// summaries and not their records: what it costs does not depend on how large
	// the receipts are. Only to learn the id of one that was written without a
	// summary may a store look into the receipt, one at a time.
	Summaries(ctx context.Context, before string, limit int) ([]Summary, error)

	// Receipt returns the receipt with the id, or [ErrNotFound].
	Receipt(ctx context.Context, id string) (Receipt, error)

	// ReceiptOfTurn returns the receipt whose TurnID is id, or [ErrNotFound]; of
	// several the one written last. No receipt is found by "".
	ReceiptOfTurn(ctx context.Context, id string) (Receipt, error)

	// Append makes a receipt durable without touching a session. It is
	// idempotent by id. For the statistics it belongs to the session of its
	// SessionKey, or to none.
	Append(ctx context.Context, r Receipt) error
}

// Statistics aggregates the receipts.
type Statistics interface {
	// Stats returns what a scan of all receipts would give at this moment. It
	// costs the same however many there are.
	Stats(ctx context.Context) (Stats, error)
}

// Limits counts requests. A subject's window begins with its first request and
// lasts as long as that request said; then the count begins anew.
type Limits interface {
	// Take counts one request of the subject if fewer than limit were counted
	// in its window; a request that is not allowed is not counted. Of any
	// number of concurrent calls exactly limit are allowed per window, also
	// when several replicas share the store. After an error the request may
	// have been counted.
	Take(ctx context.Context, subject string, limit int, window time.Duration) (Allowance, error)

	// GiveBack takes one counted request out of the subject's window. The
	// window's end does not move. It does nothing when nothing is counted.
	GiveBack(ctx context.Context, subject string) error

	// Taken returns how many requests are counted in the subject's window now,
	// >= 0, and counts none.
	Taken(ctx context.Context, subject string) (int, error)
}

// Keys keeps API keys.
type Keys interface {
	// PutKey creates or replaces the key with k.Hash. A revocation stays and
	// the last use never moves back, whatever k says: a request that notes the
	// use of a key must not undo the revocation that came between.
	PutKey(ctx context.Context, k Key) error

	// Key returns the key with the hash, or [ErrNotFound]. Revoked and expired
	// keys are found too.
	Key(ctx context.Context, hash string) (Key, error)

	// Keys returns all keys by the time of their creation, oldest first.
	Keys(ctx context.Context) ([]Key, error)
}

// Policies keeps the policies under which receipts were made, so that a receipt
// can be replayed when its policy is no longer the one in force.
type Policies interface {
	// PutPolicy keeps the JSON of the policy with the hash. What is there already
	// stays: a hash has one policy.
	PutPolicy(ctx context.Context, hash string, text []byte) error

	// Policy returns the JSON of the policy with the hash, byte for byte, or
	// [ErrNotFound].
	Policy(ctx context.Context, hash string) ([]byte, error)
}

// Benchmarks keeps published benchmark results.
type Benchmarks interface {
	// Publish adds the rows, all or none.
	Publish(ctx context.Context, rows []Benchmark) error

	// Benchmarks returns the latest row of every benchmark by CreatedAt, of
	// equally late ones the one published last, sorted by name.
	Benchmarks(ctx context.Context) ([]Benchmark, error)
}

// Checker tells whether the store works.
type Checker interface {
	// Check returns nil when the store could serve a read and a write now, and
	// [ErrUnavailable] otherwise.
	Check(ctx context.Context) error
}

// Store is all that a back-end offers. Code that uses a part asks for that
// part's interface.
type Store interface {
	Sessions
	Receipts
	Statistics
	Limits
	Keys
	Policies
	Benchmarks
	Checker

	// Close ends all work and releases what the store holds. Writes that were
	// begun are finished first. Closing twice is allowed.
	Close() error
}
