// Package console reads a store for the people who run the proxy: what was refused, what
// passed uninspected, what enforce would have done. The page at /lex/console shows it, and
// package caddymodule serves both.
//
// A [Window] holds the last 24 hours in memory: counters by second, what coverage says by
// minute, and the newest notable rows. It follows the store by listing its newest
// receipts once a second. So it sees what every replica writes, and it needs nothing of
// the path on which requests are governed: without a reader there is no window. It begins
// with the first reader and ends five minutes after the last.
//
// A receipt is told as a [Row]. Two functions decide what a row says, and their comments
// have the tables: verdict says what became of the turn (row.go), gapsOf what of it nobody
// inspected (gap.go). [Window.Counts], [Window.Coverage], [Window.Receipts] and
// [Window.Follow] answer from the same rows, so figures and lists agree. [ReadChain] reads
// one session from the store.
//
// Nothing here holds a text of a conversation: receipts have none. Times are Unix
// milliseconds. Everything exported is safe for concurrent use, except a [Follower],
// which belongs to one goroutine.
package console
