// Package redis keeps a [store.Store] in a Redis server (6.2 or later, or a
// server that speaks its protocol, such as Valkey), where replicas share it.
//
// Everything that must be atomic is a Lua script, which Redis runs alone:
// commit.lua is the whole of a turn. Redis keeps what a script wrote before it fails, so
// that one looks first for what may fail, and check.lua finds out when the store is opened
// and checked whether the user may run every command. The commits that wait go to the server in
// one round trip.
//
//	lex:{0}:receipts       stream  one entry a receipt, with its number and link in the log
//	lex:{0}:log            stream  the place of each receipt, by its number
//	lex:{0}:head           hash    the log's size, and the SHA-256 of its last record
//	lex:{0}:summaries      stream  the summaries of receipts, each at its receipt's place
//	lex:{0}:receipt:<id>   string  the receipt's place in the stream
//	lex:{0}:turn:<id>      string  the same, by the id of its turn; of a turn with tool calls
//	                               the turn's own
//	lex:{0}:session:<key>  hash    version, state, family; lives 30 days after its last turn.
//	                               An alias: alias_of, the session's key; lives 30 days
//	lex:{0}:family:<name>  set     the keys above of a family; lives as long as its youngest
//	lex:{0}:tally:<key>    hash    what the session adds to the statistics, or that it is out;
//	                               of a conversation without a session id, by its family
//	lex:{0}:stats          hash    the statistics, and the counter of versions; level:<n> is how
//	                               many turns have the level with this store.Level.Place
//	lex:{0}:check:…        what check.lua writes to, and deletes
//	lex:limit:{<subject>}  string  a count that expires with its window
//	lex:limit:{…}:first    string  the first request of the window that may be refunded
//	lex:run:{<subject>}:…  string  in which window a request was counted, by its first; "" since
//	                               it was refunded. Lives six hours at most
//	lex:key:{<hash>}       hash    an API key
//	lex:keys               set     the hashes of all API keys
//	lex:benchmarks         stream  published rows
//	lex:policy:{<hash>}    string  a document that receipts name. Who has put one and goes on
//	                               writing receipts puts it again if the server has lost it
//
// Receipts that were written before there was a log are put into it when the first
// store is opened (begin_log.lua). Replicas that know of no log must have stopped by
// then: what they write is in no log.
//
// The {0} makes all keys of a turn fall into one slot.
//
// A commit is as durable as the server: with `appendonly yes` and `appendfsync
// always` it survives a crash of the server's machine, with `everysec` all but
// the last second does.
//
// Errors name the kind of failure and the server's error code, never its
// address, the user, the password or the server's words. Nothing is tried
// again: a request waits no longer than the timeout, and what may be repeated
// is known only to the caller.
package redis
