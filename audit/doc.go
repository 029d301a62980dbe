// Package audit verifies receipts from any source.
//
// There are two ways to verify receipts. An [Auditor] verifies one receipt against the
// archive that keeps it and against its neighbours there, and returns a [Report] of
// all checks. A [Verifier] goes through all receipts of a [Source], oldest first, and
// reports every fault. Both make the same checks:
//
//   - form: the record is canonical JSON, its id is its hash ([kernel.OpenReceipt]), and
//     its members do not contradict one another ([kernel.Receipt.CheckForm]).
//   - replay: the step gives the recorded numbers, bit by bit ([kernel.Kernel.Replay]).
//   - chain: the step starts from the state that the predecessor left ([kernel.Chain]),
//     and the receipt can be reached backwards from the head of its session, so no later
//     receipts were cut off.
//   - log: the receipt has its place in the log of its store. The places have no gaps, it
//     names the record before it by its hash, and the one after it names it so.
//   - setup: the document that is kept under the hash of the receipt's setup has that hash.
//   - prompt_commitment, output_commitment and arguments_commitment: texts that the caller
//     supplies are those that the receipt committed to ([kernel.Commit]).
//
// A fault of a receipt is a failed check, never an error. An error means that the
// source or the archive did not answer.
package audit
