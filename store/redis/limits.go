package redis

import (
	"context"
	_ "embed"
	"errors"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

//go:embed consume.lua
var consumeSource string

//go:embed refund.lua
var refundSource string

var (
	consumeScript = client.NewScript(consumeSource)
	refundScript  = client.NewScript(refundSource)
)

func limitKey(subject string) string { return "lex:limit:{" + subject + "}" }

// limitKeys are those of a window and of a request that has a name.
func limitKeys(subject, run string) []string {
	return []string{limitKey(subject), "lex:run:{" + subject + "}:" + run, limitKey(subject) + ":first"}
}

// Consume counts by the server's clock, so that replicas need not agree on theirs.
func (s *Store) Consume(ctx context.Context, subject, run string, limit int, window time.Duration) (store.Allowance, error) {
	length := max(1, window.Milliseconds())
	keys := limitKeys(subject, run)
	if run == "" {
		keys = keys[:1]
	}
	got, err := consumeScript.Run(ctx, s.client, keys, limit, length, store.RunLife.Milliseconds(), run).Int64Slice()
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

// Refund takes one out of the count, if the run was counted in this window.
func (s *Store) Refund(ctx context.Context, subject, run string) error {
	return failure(ctx, "uncounting", refundScript.Run(ctx, s.client, limitKeys(subject, run), store.RunLife.Milliseconds()).Err())
}

// Consumed reads the count, which expires with its window.
func (s *Store) Consumed(ctx context.Context, subject string) (int, error) {
	n, err := s.client.Get(ctx, limitKey(subject)).Int()
	if errors.Is(err, client.Nil) {
		return 0, nil
	}
	return n, failure(ctx, "counting", err)
}
