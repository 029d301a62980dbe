// Package bolt keeps a [store.Store] in one file on this machine, with
// go.etcd.io/bbolt: a B+ tree that is changed by copying, so that a process that is
// killed at any instant leaves the last committed state. One process has the file at a time.
//
// A commit of the tree writes every page that changed and waits for the disk twice, which is
// too much for a turn. So one transaction of the tree stays open, for reads and writes alike,
// and what is written in it is first made durable by a journal beside the file: one write in
// order, and one sync (journal.go). When the journal is full, the transaction is committed,
// and with it a hundred turns or two; then both begin anew. A process that opens the file repeats
// what the journal has in it. This is the write-ahead log of ARIES (Mohan et al., 1992) with
// physical redo alone: no page of the tree is written before its commit, so there is nothing
// to undo. When the store is closed the tree has everything and the journal is removed.
//
// All writes go through one group commit. Its batch is one record of the journal and one
// sync; a write that is refused, such as a turn that conflicts, changes
// nothing and does not spoil the batch. A read sees only what is durable. What every turn reads,
// sessions and keys, it reads from the tree as it was last committed, and from a table of what the
// journal has since (recent.go); all other reads wait for the batch that is being written.
//
// A page of the tree is copied whole for each change in it, so a receipt is one entry
// at the end of its bucket: its fields, its summary and its record, compressed with a
// dictionary of what all receipts have in common (encoding.go). For the same reason what is
// written at one time stands together wherever its key allows it: turns are named in the
// order of time, and families and counters stand under the number of a family's first
// receipt. Only the ids of receipts and the keys of sessions are hashes, and cost a page
// each. Every older form of an entry is read on, and written anew only where it says so.
//
// Sessions are forgotten during the turns of others (forget.go).
//
// Limits are counted in memory, which is enough because no other process
// counts. A window of an hour or longer, such as the runs of a plan, is also
// written and survives a restart, and the answer waits for the disk. Shorter
// windows begin anew after a restart.
//
// Erasing a session takes it out of the tree, but the bytes stay in the journal and in free pages
// of the file until these are used again. A secret that must not be found there
// is wrapped by the caller.
package bolt
