package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

//go:embed put_key.lua
var putKeySource string

//go:embed publish.lua
var publishSource string

var (
	putKeyScript  = client.NewScript(putKeySource)
	publishScript = client.NewScript(publishSource)
)

const (
	keysKey       = "lex:keys"
	benchmarksKey = "lex:benchmarks"
)

func keyKey(hash string) string { return "lex:key:{" + hash + "}" }

// PutKey lists the hash first: a listed hash without a key is passed over, a
// key that is not listed could not be revoked.
func (s *Store) PutKey(ctx context.Context, k store.Key) error {
	if k.Hash == "" {
		return fmt.Errorf("%w: key without hash", store.ErrInvalid)
	}
	if err := s.client.SAdd(ctx, keysKey, k.Hash).Err(); err != nil {
		return failure(ctx, "writing a key", err)
	}
	err := putKeyScript.Run(ctx, s.client, []string{keyKey(k.Hash)}, k.ID, k.Hash, k.Name, k.Plan,
		millis(k.CreatedAt), millis(k.ExpiresAt), millis(k.LastUsedAt), millis(k.RevokedAt)).Err()
	return failure(ctx, "writing a key", err)
}

// keyFields is the hash of a key. Times are in Unix milliseconds, 0 for never.
type keyFields struct {
	ID         string `redis:"id"`
	Hash       string `redis:"hash"`
	Name       string `redis:"name"`
	Plan       string `redis:"plan"`
	CreatedAt  int64  `redis:"created_at"`
	LastUsedAt int64  `redis:"last_used_at"`
	ExpiresAt  int64  `redis:"expires_at"`
	RevokedAt  int64  `redis:"revoked_at"`
}

func (f keyFields) key() store.Key {
	return store.Key{
		ID: f.ID, Hash: f.Hash, Name: f.Name, Plan: f.Plan,
		CreatedAt: fromMillis(f.CreatedAt), LastUsedAt: fromMillis(f.LastUsedAt),
		ExpiresAt: fromMillis(f.ExpiresAt), RevokedAt: fromMillis(f.RevokedAt),
	}
}

// Key looks the hash up.
func (s *Store) Key(ctx context.Context, hash string) (store.Key, error) {
	var f keyFields
	if err := s.client.HGetAll(ctx, keyKey(hash)).Scan(&f); err != nil {
		return store.Key{}, failure(ctx, "reading a key", err)
	}
	if f.Hash == "" {
		return store.Key{}, fmt.Errorf("reading a key: %w", store.ErrNotFound)
	}
	return f.key(), nil
}

// Keys reads all listed keys in two round trips.
func (s *Store) Keys(ctx context.Context) ([]store.Key, error) {
	hashes, err := s.client.SMembers(ctx, keysKey).Result()
	if err != nil {
		return nil, failure(ctx, "listing keys", err)
	}
	pipeline := s.client.Pipeline()
	found := make([]*client.MapStringStringCmd, len(hashes))
	for i, hash := range hashes {
		found[i] = pipeline.HGetAll(ctx, keyKey(hash))
	}
	_, _ = pipeline.Exec(ctx) // every command has its own error
	list := make([]store.Key, 0, len(hashes))
	for _, cmd := range found {
		var f keyFields
		if err := cmd.Scan(&f); err != nil {
			return nil, failure(ctx, "listing keys", err)
		}
		if f.Hash != "" {
			list = append(list, f.key())
		}
	}
	store.SortKeys(list)
	return list, nil
}

// Publish adds the rows in one step.
func (s *Store) Publish(ctx context.Context, rows []store.Benchmark) error {
	if len(rows) == 0 {
		return nil
	}
	encoded := make([]any, len(rows))
	for i, row := range rows {
		row.CreatedAt = row.CreatedAt.UTC()
		data, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("%w: encoding a benchmark: %w", store.ErrInvalid, err)
		}
		encoded[i] = data
	}
	err := publishScript.Run(ctx, s.client, []string{benchmarksKey}, encoded...).Err()
	return failure(ctx, "publishing benchmarks", err)
}

// Benchmarks reads all rows and keeps the latest.
func (s *Store) Benchmarks(ctx context.Context, now time.Time) ([]store.Benchmark, error) {
	entries, err := s.client.XRange(ctx, benchmarksKey, "-", "+").Result()
	if err != nil {
		return nil, failure(ctx, "listing benchmarks", err)
	}
	rows := make([]store.Benchmark, len(entries))
	for i, e := range entries {
		data, _ := e.Values["json"].(string)
		if err := json.Unmarshal([]byte(data), &rows[i]); err != nil {
			return nil, fmt.Errorf("decoding a benchmark: %w", err)
		}
	}
	return store.LatestBenchmarks(rows, now), nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
