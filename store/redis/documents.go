package redis

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

func documentKey(hash string) string { return "lex:policy:{" + hash + "}" }

// documents are those that this process has put, by their keys. The receipts that it goes
// on writing name them, so it puts them again when the server has lost its data.
type documents struct {
	mu    sync.Mutex
	texts map[string][]byte
}

func (d *documents) keep(key string, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.texts == nil {
		d.texts = make(map[string][]byte)
	}
	d.texts[key] = bytes.Clone(text)
}

func (d *documents) all() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.texts)
}

// PutDocument keeps the first text for a hash, for good.
func (s *Store) PutDocument(ctx context.Context, hash string, text []byte) error {
	if hash == "" || len(text) == 0 {
		return fmt.Errorf("%w: document without hash or text", store.ErrInvalid)
	}
	key := documentKey(hash)
	err := s.client.SetNX(ctx, key, text, 0).Err()
	if err == nil {
		s.documents.keep(key, text)
	}
	return failure(ctx, "writing a document", err)
}

// Document looks the hash up.
func (s *Store) Document(ctx context.Context, hash string) ([]byte, error) {
	text, err := s.client.Get(ctx, documentKey(hash)).Bytes()
	return text, failure(ctx, "reading a document", err)
}

// countDocuments asks with a batch how many of the documents are there.
func countDocuments(ctx context.Context, batch client.Pipeliner, kept map[string][]byte) *client.IntCmd {
	if len(kept) == 0 {
		return client.NewIntCmd(ctx)
	}
	return batch.Exists(ctx, slices.Collect(maps.Keys(kept))...)
}

// restoreDocuments puts the documents again, unless so many as there are were found.
func (s *Store) restoreDocuments(ctx context.Context, kept map[string][]byte, found *client.IntCmd) error {
	if n, err := found.Result(); err == nil && n == int64(len(kept)) {
		return nil
	}
	pipeline := s.client.Pipeline()
	for key, text := range kept {
		pipeline.SetNX(ctx, key, text, 0)
	}
	_, err := pipeline.Exec(ctx)
	return failure(context.Background(), "writing documents again", err) //nolint:contextcheck // that the time of the batch is over is the server's failure
}
