package bolt

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// encodedReceipt is a receipt that is about to be written. Its caller encodes
// it, so that the one writer has little to do.
type encodedReceipt struct {
	id           string
	kind         string
	turnID       string
	receipt      []byte
	sum          [sha256.Size]byte // of the record
	sessionKey   string
	family       string // of the session, where its change is what writes the receipt
	conversation string
	counters     store.Counters
	level        store.Level
	timestamp    int64
	excluded     bool
}

// encodeForWriting encodes receipts. The result shares no memory with them. excluded says
// that their session is taken out of the statistics whatever their labels are.
func encodeForWriting(receipts []store.Receipt, excluded bool) ([]encodedReceipt, error) {
	encoded := make([]encodedReceipt, len(receipts))
	for i, r := range receipts {
		receipt, err := encodeReceipt(r)
		if err != nil {
			return nil, err
		}
		encoded[i] = encodedReceipt{
			id: r.ID, kind: r.Kind, turnID: r.TurnID, receipt: receipt, sum: sha256.Sum256(r.JSON), sessionKey: r.SessionKey, conversation: r.Conversation,
			counters: store.NewCounters(r), level: r.Level, timestamp: r.Timestamp, excluded: excluded || r.Excluded(),
		}
	}
	return encoded, nil
}

// Append writes the receipts with the next batch.
func (s *Store) Append(ctx context.Context, receipts ...store.Receipt) error {
	if err := store.ValidateReceipts(receipts); err != nil {
		return err
	}
	encoded, err := encodeForWriting(receipts, false)
	if err != nil || len(encoded) == 0 {
		return err
	}
	return s.writes.Do(ctx, func(tx *tx) error { return writeUnknown(tx, encoded) })
}

// writeUnknown writes those of the receipts that are not there yet.
func writeUnknown(tx *tx, receipts []encodedReceipt) error {
	for _, c := range receipts {
		if c.known(tx) {
			continue
		}
		if _, err := c.write(tx); err != nil {
			return err
		}
	}
	return nil
}

// known reports whether the receipt is already there.
func (c encodedReceipt) known(tx *tx) bool {
	return tx.bucket(idsBucket).get([]byte(c.id)) != nil
}

// write puts the receipt and its share of the statistics into the tree, and returns the
// receipt's sequence number, which is its place in the log. The number is part of the
// transaction: one that is undone leaves no gap.
func (c encodedReceipt) write(tx *tx) (uint64, error) {
	receipts := tx.bucket(receiptsBucket)
	receipts.fill(0.95) // keys only grow: pages need no room for later ones
	sequence, err := receipts.next()
	if err != nil {
		return 0, err
	}
	at := keyOf(sequence)
	before := tx.last.before(receipts, sequence)
	copy(c.receipt[1:], before[:])
	if err := receipts.put(at, c.receipt); err != nil {
		return 0, err
	}
	tx.last = tail{sequence, c.sum}
	if err := tx.bucket(idsBucket).put([]byte(c.id), at); err != nil {
		return 0, err
	}
	if err := c.writeTurn(tx.bucket(turnsBucket), at); err != nil {
		return 0, err
	}
	return sequence, c.count(tx)
}

// writeTurn makes the turn's id lead to the receipt, unless it is that of a tool call and
// the id leads to another: the turn's own comes first.
func (c encodedReceipt) writeTurn(turns bucket, at []byte) error {
	id := []byte(c.turnID)
	if c.turnID == "" || c.kind == store.KindToolCall && turns.get(id) != nil {
		return nil
	}
	turns.fill(0.95) // turns are named in the order of time
	return turns.put(id, at)
}

// tail is the end of the log as a transaction wrote it.
type tail struct {
	sequence uint64
	sum      [sha256.Size]byte // of the record
}

// before returns the hash of the record before the sequence number, zero when there is
// none. A record that is damaged is followed as if it were empty.
func (t *tail) before(receipts bucket, sequence uint64) (sum [sha256.Size]byte) {
	if t.sequence == sequence-1 {
		return t.sum
	}
	data := receipts.get(keyOf(sequence - 1))
	if data == nil {
		return sum
	}
	record, _ := recordOf(data)
	return sha256.Sum256(record)
}

// keyOf is the key of a sequence number.
func keyOf(sequence uint64) []byte { return binary.BigEndian.AppendUint64(nil, sequence) }

// Log walks the sequence numbers upwards. They are the places in the log.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]store.Receipt, error) {
	if after == math.MaxUint64 {
		return nil, nil
	}
	var list []store.Receipt
	err := s.view(ctx, "reading the log", func(tx *tx) error {
		c := tx.bucket(receiptsBucket).cursor()
		for k, v := c.Seek(keyOf(after + 1)); k != nil && len(list) < limit; k, v = c.Next() {
			list = append(list, receiptAt(k, v))
		}
		last := after
		if len(list) > 0 {
			last = list[len(list)-1].Seq
		}
		if size := tx.bucket(receiptsBucket).sequence(); len(list) < limit && last < size { // its end is lost
			list = append(list, store.Receipt{Seq: size})
		}
		return nil
	})
	return list, err
}

// Recent walks the sequence numbers downwards. A cursor is a sequence number.
func (s *Store) Recent(ctx context.Context, before string, limit int) ([]store.Receipt, error) {
	var list []store.Receipt
	err := s.view(ctx, "listing receipts", func(tx *tx) error {
		c := tx.bucket(receiptsBucket).cursor()
		k, v, err := seekOlder(c, before)
		if err != nil {
			return err
		}
		for ; k != nil && len(list) < limit; k, v = c.Prev() {
			list = append(list, receiptAt(k, v))
		}
		return nil
	})
	return list, err
}

// seekOlder puts the cursor on the newest receipt that is older than before.
func seekOlder(c *bbolt.Cursor, before string) (k, v []byte, err error) {
	if before == "" {
		k, v = c.Last()
		return k, v, nil
	}
	sequence, err := sequenceOf(before)
	if err != nil {
		return nil, nil, err
	}
	if k, _ = c.Seek(keyOf(sequence)); k == nil {
		k, v = c.Last() // all are older
		return k, v, nil
	}
	k, v = c.Prev()
	return k, v, nil
}

// sequenceOf reads a cursor.
func sequenceOf(cursor string) (uint64, error) {
	sequence, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cursor: %w", store.ErrNotFound)
	}
	return sequence, nil
}

// Summaries counts the sequence numbers down, which have no gaps, and looks each
// up among the summaries. Where there is none it reads the head of the receipt,
// which has the id.
func (s *Store) Summaries(ctx context.Context, before string, limit int) ([]store.Summary, error) {
	var list []store.Summary
	err := s.view(ctx, "listing summaries", func(tx *tx) error {
		end := tx.bucket(receiptsBucket).sequence() + 1
		if before != "" {
			sequence, err := sequenceOf(before)
			if err != nil {
				return err
			}
			end = min(end, sequence)
		}
		for ; end > 1 && len(list) < limit; end-- {
			list = append(list, summaryAt(tx, end-1))
		}
		return nil
	})
	return list, err
}

// summaryAt reads the summary of the receipt with the sequence number, or its id alone. One
// that is damaged may have neither.
func summaryAt(tx *tx, sequence uint64) (found store.Summary) {
	at := keyOf(sequence)
	data := tx.bucket(receiptsBucket).get(at)
	if older := tx.bucket(summariesBucket).get(at); older != nil && !isCompressed(data) {
		found, _ = decodeSummary(older)
	} else {
		found.ID, found.JSON = headOf(data)
	}
	found.Cursor = strconv.FormatUint(sequence, 10)
	return found
}

// headOf returns the id and the summary of a stored receipt of any form, as far as they can
// be read.
func headOf(data []byte) (id string, summary []byte) {
	var h receiptHeader
	if isCompressed(data) {
		h, summary, _ = decodeHead(data)
	} else {
		h, _ = decodeFields(data)
	}
	return h.ID, summary
}

// receiptAt decodes an entry of the receipts' bucket.
func receiptAt(k, v []byte) store.Receipt {
	r := decodeReceipt(v)
	r.Seq = binary.BigEndian.Uint64(k)
	r.Cursor = strconv.FormatUint(r.Seq, 10)
	return r
}

// Receipt looks the id up.
func (s *Store) Receipt(ctx context.Context, id string) (store.Receipt, error) {
	found, err := s.lookUp(ctx, idsBucket, id)
	if err == nil && found.ID != id {
		return store.Receipt{}, fmt.Errorf("the id of a receipt leads to receipt %d of the log, which is another: %w", found.Seq, store.ErrInvalid)
	}
	return found, err
}

// ReceiptOfTurn looks the turn's id up.
func (s *Store) ReceiptOfTurn(ctx context.Context, id string) (store.Receipt, error) {
	found, err := s.lookUp(ctx, turnsBucket, id)
	if err == nil && found.TurnID != id {
		return store.Receipt{}, fmt.Errorf("the id of a turn leads to receipt %d of the log, which is of another: %w", found.Seq, store.ErrInvalid)
	}
	return found, err
}

// lookUp finds a receipt by a bucket that leads from ids to sequence numbers.
func (s *Store) lookUp(ctx context.Context, ids []byte, id string) (store.Receipt, error) {
	var found store.Receipt
	err := s.view(ctx, "reading a receipt", func(tx *tx) (err error) {
		at := tx.bucket(ids).get([]byte(id))
		if at == nil {
			return store.ErrNotFound
		}
		if found = receiptAt(at, tx.bucket(receiptsBucket).get(at)); len(found.JSON) == 0 {
			return fmt.Errorf("receipt %d of the log is damaged: %w", found.Seq, store.ErrInvalid)
		}
		return nil
	})
	return found, err
}
