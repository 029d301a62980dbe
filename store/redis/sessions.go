package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/caddy-lex/lex/store"
)

// Session returns the session as last committed.
func (s *Store) Session(ctx context.Context, key string) (store.Session, error) {
	fields, err := s.client.HGetAll(ctx, sessionKey(key)).Result()
	if err != nil {
		return store.Session{}, failure(ctx, "reading a session", err)
	}
	if len(fields) == 0 {
		return store.Session{}, fmt.Errorf("reading a session: %w", store.ErrNotFound)
	}
	version, err := strconv.ParseUint(fields["version"], 10, 64)
	if err != nil {
		return store.Session{}, errors.New("reading a session: its version is no number")
	}
	return store.DecodeSession(key, version, []byte(fields["state"]))
}

// Erase deletes the session.
func (s *Store) Erase(ctx context.Context, key string) error {
	return failure(ctx, "erasing a session", s.client.Del(ctx, sessionKey(key)).Err())
}
