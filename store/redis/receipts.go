package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

// Recent reads the stream backwards. A cursor is the id of an entry.
func (s *Store) Recent(ctx context.Context, before string, limit int) ([]store.Receipt, error) {
	end, err := olderThan(before)
	if err != nil || limit < 1 {
		return nil, err
	}
	entries, err := s.client.XRevRangeN(ctx, receiptsKey, end, "-", int64(limit)).Result()
	if err != nil {
		return nil, failure(ctx, "listing receipts", err)
	}
	list := make([]store.Receipt, len(entries))
	for i, e := range entries {
		list[i] = decodeReceipt(e)
	}
	return list, nil
}

// Log reads the places of the receipts from the log and then the receipts there. It goes
// on where receipts are gone, so that their gap does not look like the end.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]store.Receipt, error) {
	var list []store.Receipt
	for last := after; len(list) < limit; {
		size, places, err := s.places(ctx, after, limit-len(list))
		if err != nil {
			return nil, err
		}
		if len(places) == 0 {
			if size = max(size, after); last < size { // its end is lost
				list = append(list, store.Receipt{Seq: size})
			}
			break
		}
		page, err := s.receiptsAt(ctx, places)
		if err != nil {
			return nil, err
		}
		if list = append(list, page...); len(list) > 0 {
			last = list[len(list)-1].Seq
		}
		if after, err = seqOf(places[len(places)-1]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// places reads how many receipts the log has by its head, and then the places after one, up
// to a limit. In the other order the log would seem to lack what is written in between.
func (s *Store) places(ctx context.Context, after uint64, limit int) (size uint64, places []client.XMessage, err error) {
	pipeline := s.client.Pipeline()
	head := pipeline.HMGet(ctx, headKey, "size")
	found := pipeline.XRangeN(ctx, logKey, fmt.Sprintf("(%d-0", after), "+", int64(limit))
	if _, err := pipeline.Exec(ctx); err != nil {
		return 0, nil, failure(ctx, "reading the log", err)
	}
	if text, _ := head.Val()[0].(string); text != "" {
		if size, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, nil, fmt.Errorf("reading the log: its size is no number: %w", store.ErrInvalid)
		}
	}
	return size, found.Val(), nil
}

// receiptsAt reads the receipts at places that follow each other in the log.
func (s *Store) receiptsAt(ctx context.Context, places []client.XMessage) ([]store.Receipt, error) {
	at := func(place client.XMessage) string { return field(place, "at") }
	byPlace := make(map[string]client.XMessage, len(places))
	for from, last := at(places[0]), at(places[len(places)-1]); from != ""; { // what is in no log may stand between them
		entries, err := s.client.XRangeN(ctx, receiptsKey, from, last, int64(len(places))).Result()
		if err != nil {
			return nil, failure(ctx, "reading the log", err)
		}
		from = ""
		for _, e := range entries {
			byPlace[e.ID] = e
		}
		if n := len(entries); n == len(places) && entries[n-1].ID != last {
			from = "(" + entries[n-1].ID
		}
	}
	var list []store.Receipt
	for _, place := range places {
		entry, found := byPlace[at(place)]
		if !found {
			continue
		}
		r := decodeReceipt(entry)
		// The log knows it, also of a receipt that was written before there was a log.
		seq, err := seqOf(place)
		if err != nil {
			return nil, err
		}
		r.Seq = seq
		list = append(list, r)
	}
	return list, nil
}

// seqOf is the number of an entry of the log, which is the first part of its id.
func seqOf(place client.XMessage) (uint64, error) {
	number, _, _ := strings.Cut(place.ID, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the log: %q is no place in it", place.ID)
	}
	return seq, nil
}

//go:embed begin_log.lua
var beginLogSource string

var beginLogScript = client.NewScript(beginLogSource)

// oldAtOnce is how many receipts begin_log.lua reads while everybody else waits.
const oldAtOnce = 100

// beginLog puts the receipts that were written before there was a log into it. Replicas
// may do so side by side.
func (s *Store) beginLog(ctx context.Context) error {
	for {
		more, err := beginLogScript.Run(ctx, s.client, []string{receiptsKey, logKey, headKey}, oldAtOnce).Bool()
		if err != nil {
			return failure(ctx, "beginning the log", err)
		}
		if !more {
			return nil
		}
	}
}

// olderThan returns the end of the range of the entries before a cursor.
func olderThan(cursor string) (end string, err error) {
	switch {
	case cursor == "":
		return "+", nil
	case !isEntryID(cursor):
		return "", fmt.Errorf("listing receipts: cursor: %w", store.ErrNotFound)
	}
	return "(" + cursor, nil
}

//go:embed summaries.lua
var summariesSource string

var summariesScript = client.NewScript(summariesSource)

// Summaries asks until the page is full or the script finds nothing more: the
// script stops at each receipt without a summary.
func (s *Store) Summaries(ctx context.Context, before string, limit int) ([]store.Summary, error) {
	end, err := olderThan(before)
	if err != nil || limit < 1 {
		return nil, err
	}
	var list []store.Summary
	for len(list) < limit {
		found, err := summariesScript.Run(ctx, s.client, []string{receiptsKey, summariesKey}, end, limit-len(list)).StringSlice()
		if err != nil {
			return nil, failure(ctx, "listing summaries", err)
		}
		if len(found) == 0 {
			break
		}
		for entry := range slices.Chunk(found, 3) {
			if len(entry) < 3 {
				return nil, errors.New("listing summaries: unexpected answer")
			}
			summary := store.Summary{Cursor: entry[0], ID: entry[1]}
			if entry[2] != "" {
				summary.JSON = []byte(entry[2])
			}
			list, end = append(list, summary), "("+summary.Cursor
		}
	}
	return list, nil
}

// isEntryID reports whether id has the form of a stream's entry, which is two
// numbers, not both 0.
func isEntryID(id string) bool {
	ms, sequence, ok := strings.Cut(id, "-")
	m, err1 := strconv.ParseUint(ms, 10, 64)
	n, err2 := strconv.ParseUint(sequence, 10, 64)
	return ok && err1 == nil && err2 == nil && m+n > 0
}

// Receipt looks up the receipt's place in the stream.
func (s *Store) Receipt(ctx context.Context, id string) (store.Receipt, error) {
	found, err := s.lookUp(ctx, receiptKey(id))
	if err == nil && found.ID != id {
		return store.Receipt{}, fmt.Errorf("the id of a receipt leads to receipt %d of the log, which is another: %w", found.Seq, store.ErrInvalid)
	}
	return found, err
}

// ReceiptOfTurn looks up the place of the turn's receipt.
func (s *Store) ReceiptOfTurn(ctx context.Context, id string) (store.Receipt, error) {
	found, err := s.lookUp(ctx, turnKey(id))
	if err == nil && found.TurnID != id {
		return store.Receipt{}, fmt.Errorf("the id of a turn leads to receipt %d of the log, which is of another: %w", found.Seq, store.ErrInvalid)
	}
	return found, err
}

// lookUp finds a receipt by a key that holds its place in the stream.
func (s *Store) lookUp(ctx context.Context, key string) (store.Receipt, error) {
	at, err := s.client.Get(ctx, key).Result()
	if err != nil {
		return store.Receipt{}, failure(ctx, "reading a receipt", err)
	}
	entries, err := s.client.XRange(ctx, receiptsKey, at, at).Result()
	if err != nil {
		return store.Receipt{}, failure(ctx, "reading a receipt", err)
	}
	if len(entries) == 0 {
		return store.Receipt{}, fmt.Errorf("reading a receipt: %w", store.ErrNotFound)
	}
	found := decodeReceipt(entries[0])
	if len(found.JSON) == 0 {
		return store.Receipt{}, fmt.Errorf("receipt %d of the log is damaged: %w", found.Seq, store.ErrInvalid)
	}
	return found, nil
}

// decodeReceipt reads an entry of the stream. Of one that is damaged it returns what can be
// read.
func decodeReceipt(e client.XMessage) store.Receipt {
	turn, _ := strconv.Atoi(field(e, "turn"))
	timestamp, _ := strconv.ParseInt(field(e, "ts"), 10, 64)
	margin, _ := strconv.ParseFloat(field(e, "m_after"), 64)
	seq, _ := strconv.ParseUint(field(e, "seq"), 10, 64) // older ones have none
	return store.Receipt{
		ID: field(e, "id"), Kind: field(e, "kind"), SessionKey: field(e, "session_key"), SessionID: field(e, "session"), TurnID: field(e, "turn_id"),
		Turn: turn, Timestamp: timestamp, Intervened: field(e, "intervened") == "1", MAfter: margin,
		JSON: []byte(field(e, "json")), Cursor: e.ID, Seq: seq, LogPrev: field(e, "log_prev"),
	}
}

// field is a field of an entry, "" if it has none of the name.
func field(e client.XMessage, name string) string {
	v, _ := e.Values[name].(string)
	return v
}
