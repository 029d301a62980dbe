// Package bolt keeps a [store.Store] in one file on this machine, with
// go.etcd.io/bbolt: a B+ tree that is changed by copying, so that a reader sees
// one moment of it and never holds up a writer, and a process that is killed at
// any instant leaves the last committed state.
//
// All writes go through one group commit. Its batch is one transaction and one
// fsync; a write that is refused, such as a turn that conflicts, changes
// nothing and does not spoil the batch. One process has the file at a time.
//
// A page of the tree is copied whole for each change in it, so a receipt is one entry
// at the end of its bucket: its fields, its summary and its record, compressed with a
// dictionary of what all receipts have in common (encoding.go). For the same reason what is
// written at one time stands together wherever its key allows it: turns are named in the
// order of time, and families and counters stand under the number of a family's first
// receipt. Only the ids of receipts and the keys of sessions are hashes, and cost a page
// each. Every older form of an entry is read on, and written anew only where it says so.
//
// Limits are counted in memory, which is enough because no other process
// counts. A window of an hour or longer, such as the runs of a plan, is also
// written and survives a restart, and the answer waits for the disk. Shorter
// windows begin anew after a restart.
//
// Erasing a session takes it out of the tree, but the bytes stay in free pages
// of the file until these are used again. A secret that must not be found there
// is wrapped by the caller.
package bolt
