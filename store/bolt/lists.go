package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/store"
)

// PutKey merges the key with the one that is there.
func (s *Store) PutKey(ctx context.Context, k store.Key) error {
	if k.Hash == "" {
		return fmt.Errorf("%w: key without hash", store.ErrInvalid)
	}
	return s.writes.Do(ctx, func(tx *tx) error {
		keys := tx.bucket(keysBucket)
		var old store.Key
		if err := decode(keys.get([]byte(k.Hash)), &old); err != nil {
			return err
		}
		data, err := json.Marshal(k.Merge(old))
		if err != nil {
			return fmt.Errorf("%w: encoding a key: %w", store.ErrInvalid, err)
		}
		return keys.put([]byte(k.Hash), data)
	})
}

// decode reads a stored value; of none it leaves v as it is.
func decode(data []byte, v any) error {
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decoding a stored value: %w", err)
	}
	return nil
}

// Key looks the hash up.
func (s *Store) Key(ctx context.Context, hash string) (store.Key, error) {
	var found store.Key
	err := s.lookAt(ctx, "reading a key", func(from getter) error {
		data := from.get(keysBucket, []byte(hash))
		if data == nil {
			return store.ErrNotFound
		}
		return decode(data, &found)
	})
	return found, err
}

// Keys reads all keys.
func (s *Store) Keys(ctx context.Context) ([]store.Key, error) {
	list, err := values[store.Key](ctx, s, "listing keys", keysBucket)
	store.SortKeys(list)
	return list, err
}

// PutDocument keeps the first text for a hash.
func (s *Store) PutDocument(ctx context.Context, hash string, text []byte) error {
	if hash == "" || len(text) == 0 {
		return fmt.Errorf("%w: document without hash or text", store.ErrInvalid)
	}
	return s.writes.Do(ctx, func(tx *tx) error {
		documents := tx.bucket(documentsBucket)
		if documents.get([]byte(hash)) != nil {
			return nil
		}
		return documents.put([]byte(hash), text)
	})
}

// Document looks the hash up.
func (s *Store) Document(ctx context.Context, hash string) ([]byte, error) {
	var text []byte
	err := s.view(ctx, "reading a document", func(tx *tx) error {
		if text = bytes.Clone(tx.bucket(documentsBucket).get([]byte(hash))); text == nil {
			return store.ErrNotFound
		}
		return nil
	})
	return text, err
}

// Publish adds the rows in one transaction.
func (s *Store) Publish(ctx context.Context, rows []store.Benchmark) error {
	encoded := make([][]byte, len(rows))
	for i, row := range rows {
		row.CreatedAt = row.CreatedAt.UTC()
		data, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("%w: encoding a benchmark: %w", store.ErrInvalid, err)
		}
		encoded[i] = data
	}
	return s.writes.Do(ctx, func(tx *tx) error {
		benchmarks := tx.bucket(benchmarksBucket)
		for _, data := range encoded {
			sequence, err := benchmarks.next()
			if err != nil {
				return err
			}
			if err := benchmarks.put(binary.BigEndian.AppendUint64(nil, sequence), data); err != nil {
				return err
			}
		}
		return nil
	})
}

// Benchmarks reads all rows and keeps the latest.
func (s *Store) Benchmarks(ctx context.Context, now time.Time) ([]store.Benchmark, error) {
	rows, err := values[store.Benchmark](ctx, s, "listing benchmarks", benchmarksBucket)
	return store.LatestBenchmarks(rows, now), err
}

// values decodes all values of a bucket, in the order of their keys.
func values[T any](ctx context.Context, s *Store, doing string, bucket []byte) ([]T, error) {
	var list []T
	err := s.view(ctx, doing, func(tx *tx) error {
		return tx.bucket(bucket).forEach(func(_, data []byte) error {
			var v T
			err := decode(data, &v)
			list = append(list, v)
			return err
		})
	})
	return list, err
}
