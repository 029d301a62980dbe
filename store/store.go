package store

import (
	"context"
	"time"
)

// SessionLife is how long a store keeps a session after its last turn, and an alias after the turn
// that gave it.
const SessionLife = 30 * 24 * time.Hour

// RunLife is how long after it was counted a request can be refunded, in a window that lasts so
// long.
const RunLife = 6 * time.Hour

// Store is all that a back-end offers. Code that needs a part of it declares an
// interface of its own with the methods that it calls.
type Store interface {
	// Session returns the session with the key, or the one that the key is an alias
	// of; its Key says which. [ErrNotFound] when it is new, erased or forgotten. The
	// result shares no memory with the store.
	Session(ctx context.Context, key string) (Session, error)

	// Commit makes a change durable: the receipt and after it those of the tool calls, the
	// session's next state, its aliases and the statistics, in one atomic step. A nil
	// error means that all of it survives a crash. [ErrConflict] means that nothing was
	// written because the session no longer has the version c.Session.Version, or because the family
	// that it goes back to was erased. A change whose
	// receipt id is already there succeeds, whatever its version, and adds
	// nothing, no call either: repeating a commit whose answer was lost is always right.
	// A call whose id is already there is not written again. Commit keeps no reference
	// to c.
	Commit(ctx context.Context, c Change) error

	// Erase forgets the session that the key leads to and all others of its
	// family, with their secret, memories, centres and aliases: no copy of the
	// secret stays. Their receipts stay, and so does what these added to the
	// statistics. Erasing a session that is not there succeeds. A change that was
	// computed from an erased state conflicts, even if the session has begun anew,
	// and also if it is for a key that was never used.
	Erase(ctx context.Context, key string) error

	// Recent returns up to limit receipts, newest first, that are older than
	// the one whose Cursor is before; "" begins with the newest. A caller that
	// goes on with the Cursor of the last receipt visits every receipt that was
	// there at the start exactly once, whatever is written meanwhile. A limit
	// below 1 returns none. A cursor that is not of this store's form is
	// [ErrNotFound]. A receipt that is damaged hides no other: it has its Cursor, its Seq
	// and, if that cannot be read, an empty JSON.
	Recent(ctx context.Context, before string, limit int) ([]Receipt, error)

	// Summaries lists the same receipts as Recent, in the same order and with the
	// same cursors, so a listing begun with one can go on with the other. It
	// reads the summaries and not the records, so its cost does not depend on
	// the size of the receipts. Only to learn the id of a receipt that was
	// written without a summary may a store read its record, one at a time.
	Summaries(ctx context.Context, before string, limit int) ([]Summary, error)

	// Log returns up to limit receipts of the log, oldest first: those with a Seq
	// above after, which is 0 at first. Every receipt has its Seq there, those too that
	// were written before there was a log. The log has no gaps, so a Seq that is left
	// out was taken away behind the store's back. The last one is never left out: if it was
	// taken away it is there as a damaged one, so that the log does not seem to end before
	// it. A caller that goes on with the Seq of
	// the last receipt, until there are none, visits every receipt that was there at the
	// start. The cost depends on what is returned and not on the size of the log. A limit
	// below 1 returns none. Damaged receipts are as in Recent.
	Log(ctx context.Context, after uint64, limit int) ([]Receipt, error)

	// Receipt returns the receipt with the id, or [ErrNotFound], or [ErrInvalid] if its
	// record is damaged so that it cannot be read, or the id leads to another receipt.
	Receipt(ctx context.Context, id string) (Receipt, error)

	// ReceiptOfTurn returns the receipt whose TurnID is id, or [ErrNotFound]. Of several
	// it is the turn's own, of [KindText] and written last, before those of its tool
	// calls; of calls alone the first. No receipt is found by "".
	ReceiptOfTurn(ctx context.Context, id string) (Receipt, error)

	// Append makes receipts durable in their order without touching a session: all or
	// none, in one atomic step. It is idempotent by each id: a receipt that is already
	// there is not written again. The statistics count each for its conversation, for
	// the session of its SessionKey, or for none. At most 1 + [MaxCalls] receipts; of none it does nothing.
	Append(ctx context.Context, receipts ...Receipt) error

	// Stats returns what a scan of all receipts would give at this moment. Its
	// cost does not depend on how many there are.
	Stats(ctx context.Context) (Stats, error)

	// Consume counts one request of the subject if fewer than limit were counted
	// in its window; a request that is not allowed is not counted. A subject's
	// window begins with its first request and lasts as long as that request
	// said; then the count begins anew. If a later request, allowed or not, gives
	// a length that is shorter than the rest of the window, the window keeps its
	// count and ends after that length: it began under another length, or under a
	// clock that was ahead. Of any number of concurrent calls exactly limit are
	// allowed per window, also when several replicas share the store.
	// run names a request that may be refunded, and no other of the subject; "" is
	// one that is not. A request of a name is counted once, however often it is sent, and
	// not after its refund. After an error the request may have been counted.
	Consume(ctx context.Context, subject, run string, limit int, window time.Duration) (Allowance, error)

	// Refund takes the subject's request named run out of the window that it was counted
	// in, once, however often it is called: also after an error, when it may have been
	// taken out. The end of the window does not move. It does nothing when that window
	// has ended, after [RunLife], or when the request was not counted, which it then is
	// not later either: its call may be on its way yet.
	Refund(ctx context.Context, subject, run string) error

	// Consumed returns how many requests are counted in the subject's window now,
	// >= 0, and counts none. It is told no length, so it shortens no window.
	Consumed(ctx context.Context, subject string) (int, error)

	// PutKey creates or replaces the key with k.Hash. A revocation stays and
	// the last use never moves back, whatever k says: a request that notes the
	// use of a key must not undo a revocation that came between.
	PutKey(ctx context.Context, k Key) error

	// Key returns the key with the hash, or [ErrNotFound]. Revoked and expired
	// keys are found too.
	Key(ctx context.Context, hash string) (Key, error)

	// Keys returns all keys by the time of their creation, oldest first.
	Keys(ctx context.Context) ([]Key, error)

	// PutDocument keeps a JSON document that receipts name by its hash, such as the
	// policy that they are replayed with, so that it can be read when it is no longer
	// in force. A document that is there already stays: a hash has one document.
	PutDocument(ctx context.Context, hash string, text []byte) error

	// Document returns the document with the hash, byte for byte, or [ErrNotFound].
	Document(ctx context.Context, hash string) ([]byte, error)

	// Publish adds the rows of benchmarks, all or none.
	Publish(ctx context.Context, rows []Benchmark) error

	// Benchmarks returns the latest row of every benchmark by CreatedAt, of
	// equally late ones the one published last, sorted by name. A row from after now and
	// [BenchmarkAhead] stands only where no other does.
	Benchmarks(ctx context.Context, now time.Time) ([]Benchmark, error)

	// Check returns nil when the store could serve a read and a write now, and
	// [ErrUnavailable] otherwise.
	Check(ctx context.Context) error

	// Close ends all work and releases what the store holds. Writes that were
	// begun are finished first. Closing twice is allowed.
	Close() error
}
