package redis

import (
	"context"

	"github.com/caddy-lex/lex/store"
)

// Stats reads the sum.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	var sum struct {
		Receipts      int64 `redis:"receipts"`
		Interventions int64 `redis:"interventions"`
		Margin        int64 `redis:"margin"`
	}
	err := s.client.HMGet(ctx, statsKey, "receipts", "interventions", "margin").Scan(&sum)
	return store.Counters(sum).Stats(), failure(ctx, "reading the statistics", err)
}
