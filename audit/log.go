package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A Log is an archive that numbers its receipts. See [store.Receipt.Seq].
type Log interface {
	// Log returns up to limit receipts with a Seq above after, oldest first.
	Log(ctx context.Context, after uint64, limit int) ([]store.Receipt, error)
}

// log checks that the receipts before and after an entry in the log are those that the
// log says.
func (a Auditor) log(ctx context.Context, entry store.Receipt, _ kernel.Receipt) (Check, error) {
	const name = "log"
	log, numbered := a.archive.(Log)
	if !numbered || entry.Seq == 0 {
		return unknown(name, "it has no place in a log"), nil
	}
	around, err := log.Log(ctx, max(entry.Seq, 2)-2, 3)
	if err != nil {
		return Check{}, err
	}
	var walk logWalk
	walk.begin(max(entry.Seq, 2) - 2)
	for _, e := range around {
		c := walk.next(e.Seq, e.LogPrev, sha256.Sum256(e.JSON))
		switch {
		case e.Seq == entry.Seq && !bytes.Equal(e.JSON, entry.JSON):
			return failed(name, fmt.Sprintf("receipt %d of the log is another", e.Seq)), nil
		case e.Seq == entry.Seq && c.Failed():
			return c, nil
		case e.Seq > entry.Seq && c.Failed():
			return failed(name, fmt.Sprintf("receipt %d follows it in the log: %s", e.Seq, c.Detail)), nil
		}
	}
	if walk.last < entry.Seq {
		return failed(name, fmt.Sprintf("the log has no receipt %d", entry.Seq)), nil
	}
	if entry.LogPrev == "" && entry.Seq > 1 {
		return unknown(name, "it was written before the log named the records before it"), nil
	}
	before, after := "it names the record before it", "the next one names it"
	if entry.Seq == 1 {
		before = "none is before it"
	}
	if walk.last == entry.Seq {
		after = "it is the last one"
	}
	return passed(name, fmt.Sprintf("it is receipt %d of the log; %s, and %s", entry.Seq, before, after)), nil
}

// A logWalk follows a log from record to record. Its zero value begins anywhere.
type logWalk struct {
	last  uint64                // Seq of the record before, 0 if there is none
	hash  [2 * sha256.Size]byte // of the record before, in hex; unless it is not known
	known bool
	begun bool
	named bool // a record named the one before it, so all later ones must
}

// begin says that the next record is the one after the place last. What stood there is
// not known.
func (w *logWalk) begin(last uint64) { w.last, w.begun = last, true }

// lastHash returns the hash of the last record in hex, "" if it is not known.
func (w *logWalk) lastHash() string {
	if !w.known {
		return ""
	}
	return string(w.hash[:])
}

// next checks the next record by its place, the hash that it names and its own.
func (w *logWalk) next(seq uint64, prev string, sum [sha256.Size]byte) Check {
	const name = "log"
	before, begun := w.last, w.begun
	named := !w.known || prev == string(w.hash[:])
	hex.Encode(w.hash[:], sum[:])
	w.last, w.known, w.begun = seq, true, true
	w.named = w.named || prev != ""
	switch {
	case begun && seq <= before:
		return failed(name, fmt.Sprintf("it is receipt %d of the log and stands after receipt %d: it was moved or repeated", seq, before))
	case begun && seq == before+2:
		return failed(name, fmt.Sprintf("receipt %d of the log is missing before it", before+1))
	case begun && seq > before+1:
		return failed(name, fmt.Sprintf("receipts %d to %d of the log are missing before it", before+1, seq-1))
	case seq == 1 && prev != "":
		return failed(name, "it is the first receipt of the log, but names one before it")
	case seq > 1 && prev == "" && w.named:
		return failed(name, "it does not name the record before it in the log, as earlier ones do")
	case prev != "" && !named:
		return failed(name, fmt.Sprintf("the record before it in the log, %d, is another than the one that it names", before))
	case prev == "" && seq > 1:
		return unknown(name, "it was written before the log named the records before it")
	}
	return passed(name, "it follows the record before it")
}
