// Package store defines what Lex keeps between requests, and the contract that
// every back-end keeps it under.
//
// The heart of it is one atomic step. [Store.Commit] takes a [Change], that is
// the receipt of a turn, the receipts of the tool calls in its answer and the state
// the session has after them, and makes the receipts, the state and the statistics
// durable together or not at all. It does
// so only if the session still has the version that the caller read; otherwise
// it returns [ErrConflict] and the caller computes the turn again on the state
// that won.
// Nothing is locked between reading and committing, so a slow model holds up
// nobody, and several replicas may work on one session.
//
// A network can lose the answer to a commit that succeeded. So a commit is
// idempotent by the receipt's id, which is a hash of its content: a store looks
// for the id first and only then compares versions. In the other order the
// repeated commit would find its own version and call it a conflict, and the
// caller would write a second receipt for one turn.
//
// The order in which receipts are written is the log. The store numbers them from 1
// without a gap ([Receipt.Seq]) and gives each the hash of the record before it
// ([Receipt.LogPrev]), in the same atomic step: the place where commits are serialised is
// the only one that knows the order. The receipts of a change have numbers in a row. A
// change that is refused or repeated takes none, and neither does a write that fails. So
// [Store.Log], which reads the log oldest first, shows what was taken away, put in or
// changed later. Both stand beside the record and not in it, because the record's hash is
// its id and the caller computes it before the order is known.
//
// Two back-ends keep the contract: store/bolt in one file on one machine,
// store/redis in a server that replicas share. The suite in store/storetest
// holds both to the same clauses.
//
// A session may be found by several keys. The states of a conversation without a
// session id are kept under digests of what was said up to there, one for each
// answer that the client may have chosen, and under the id that the provider gave
// to its answer. The first of these keys is the session's own ([Session.Key]), the
// others are aliases ([Change.Aliases]): references and no copies, written in the
// same step. A named session may have them too.
//
// Each turn of such a conversation leaves a session of its own, because a client may
// go back to any of them. They share the secret of the first turn, so they are one
// family ([Session.Family]), and [Store.Erase] erases the family by any key of any
// member. Otherwise an erased secret would live on in the turn before. A turn that
// was under way meanwhile conflicts and begins a new session.
//
// A record may be large and a list of records larger, so a receipt has a
// summary, some hundred bytes of the caller's, which is written in the same step
// and listed without the record ([Store.Summaries]). It is a copy: only the
// record is what the id is a hash of. Receipts without one, such as those that
// were written before there were summaries, are listed in their places all the
// same, and their record says the rest.
//
// Requests are counted against limits ([Store.Consume]) and published benchmark
// results, API keys, policies and setups are kept as plain records. [GroupCommit] is what
// both back-ends batch their writes with. Start reading at [Store.Commit].
//
// # Every method
//
// All methods of a [Store] are safe for concurrent use. A method whose
// context ends returns early with an error that wraps the context's; a write
// may then have happened or not, and repeating it is safe where the method is
// idempotent. A store that is closed, unreachable or refuses to write returns
// [ErrUnavailable], or [ErrRefused] if its server said so, and a stored value that is not
// what it should be is [ErrInvalid]. No error holds a prompt, a credential or an address.
package store
