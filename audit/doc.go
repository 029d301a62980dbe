// Package audit verifies receipts, from whatever source they come.
//
// There are two ways to look at receipts. An [Auditor] verifies one receipt
// against the archive that keeps it and the neighbours it has there; its answer is
// a [Report] of every check that was made. A [Verifier] goes through all receipts
// of a [Source], oldest first, and names every fault. Both check the same things:
//
//   - id: the record is the one that the id was made of ([kernel.OpenReceipt]).
//   - replay: the step gives the recorded numbers, bit by bit ([kernel.Kernel.Replay]).
//   - chain: the step starts from what the predecessor left ([kernel.Chain]).
//   - head: the receipt is found on the way back from the head of its session, so
//     no later receipts were cut off.
//   - prompt_commitment and output_commitment: texts that the caller supplies are
//     those that the receipt committed to ([kernel.Commit]).
//
// What is wrong with a receipt is a failed check, never an error. An error says
// that the source or the archive did not answer.
package audit
