package redis

import (
	"context"
	_ "embed"
	"errors"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

//go:embed take.lua
var takeSource string

//go:embed give_back.lua
var giveBackSource string

var (
	takeScript     = client.NewScript(takeSource)
	giveBackScript = client.NewScript(giveBackSource)
)

func limitKey(subject string) string { return "lex:limit:{" + subject + "}" }

// Take counts on the server's clock, so that replicas need not agree on theirs.
func (s *Store) Take(ctx context.Context, subject string, limit int, window time.Duration) (store.Allowance, error) {
	length := max(1, window.Milliseconds())
	got, err := takeScript.Run(ctx, s.client, []string{limitKey(subject)}, limit, length).Int64Slice()
	if err == nil && len(got) != 3 {
		err = errors.New("unexpected answer")
	}
	if err != nil {
		return store.Allowance{}, failure(ctx, "counting", err)
	}
	return store.Allowance{
		Allowed:   got[0] == 1,
		Limit:     limit,
		Remaining: int(got[1]),
		Reset:     time.Duration(got[2]) * time.Millisecond,
	}, nil
}

// GiveBack takes one out of the count.
func (s *Store) GiveBack(ctx context.Context, subject string) error {
	return failure(ctx, "giving back", giveBackScript.Run(ctx, s.client, []string{limitKey(subject)}).Err())
}

// Taken reads the count, which is gone with its window.
func (s *Store) Taken(ctx context.Context, subject string) (int, error) {
	n, err := s.client.Get(ctx, limitKey(subject)).Int()
	if errors.Is(err, client.Nil) {
		return 0, nil
	}
	return n, failure(ctx, "counting", err)
}
