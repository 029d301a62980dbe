package redis

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

//go:embed erase.lua
var eraseSource string

var eraseScript = client.NewScript(eraseSource)

// Session returns the session as last committed.
func (s *Store) Session(ctx context.Context, key string) (store.Session, error) {
	fields, err := s.client.HGetAll(ctx, sessionKey(key)).Result()
	if of := fields["alias_of"]; of != "" {
		key = of
		fields, err = s.client.HGetAll(ctx, sessionKey(key)).Result()
	}
	if err != nil {
		return store.Session{}, failure(ctx, "reading a session", err)
	}
	if fields["state"] == "" {
		return store.Session{}, fmt.Errorf("reading a session: %w", store.ErrNotFound)
	}
	version, err := strconv.ParseUint(fields["version"], 10, 64)
	if err != nil {
		return store.Session{}, fmt.Errorf("reading a session: its version is no number: %w", store.ErrInvalid)
	}
	return store.DecodeSession(key, version, []byte(fields["state"]))
}

// Erase deletes the session with its family.
func (s *Store) Erase(ctx context.Context, key string) error {
	return failure(ctx, "erasing a session",
		eraseScript.Run(ctx, s.client, []string{sessionKey(key)}, familyKey(""), sessionKey("")).Err())
}
