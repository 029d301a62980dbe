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
		if list[i], err = decodeReceipt(e); err != nil {
			return nil, err
		}
	}
	return list, nil
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
	return s.lookUp(ctx, receiptKey(id))
}

// ReceiptOfTurn looks up the place of the turn's receipt.
func (s *Store) ReceiptOfTurn(ctx context.Context, id string) (store.Receipt, error) {
	return s.lookUp(ctx, turnKey(id))
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
	return decodeReceipt(entries[0])
}

// decodeReceipt reads an entry of the stream.
func decodeReceipt(e client.XMessage) (store.Receipt, error) {
	field := func(name string) string {
		v, _ := e.Values[name].(string)
		return v
	}
	turn, err1 := strconv.Atoi(field("turn"))
	timestamp, err2 := strconv.ParseInt(field("ts"), 10, 64)
	margin, err3 := strconv.ParseFloat(field("m_after"), 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return store.Receipt{}, fmt.Errorf("decoding receipt %s: a field is no number", field("id"))
	}
	return store.Receipt{
		ID: field("id"), Kind: field("kind"), SessionKey: field("session_key"), SessionID: field("session"), TurnID: field("turn_id"),
		Turn: turn, Timestamp: timestamp, Intervened: field("intervened") == "1", MAfter: margin,
		JSON: []byte(field("json")), Cursor: e.ID,
	}, nil
}
