package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/store"
)

// levelField begins the names of the counters of levels; the place follows.
const levelField = "level:"

// Stats reads the sums.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	fields, err := s.client.HGetAll(ctx, statsKey).Result()
	if err != nil {
		return store.Stats{}, failure(ctx, "reading the statistics", err)
	}
	var sum store.Counters
	sums := map[string]*int64{"receipts": &sum.Receipts, "interventions": &sum.Interventions, "margin": &sum.Margin}
	var levels store.Stats
	sums["levels_since"] = &levels.LevelsSince
	for name, text := range fields {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return store.Stats{}, fmt.Errorf("decoding the statistics: %s is no number", name)
		}
		if to, known := sums[name]; known {
			*to = n
		} else if number, isLevel := strings.CutPrefix(name, levelField); isLevel {
			place, err := strconv.ParseUint(number, 10, 16)
			if err != nil {
				return store.Stats{}, fmt.Errorf("decoding the statistics: %s is no level", name)
			}
			levels.AddLevel(store.LevelOf(uint16(place)), n)
		}
	}
	stats := sum.Stats()
	stats.Levels, stats.LevelsSince = levels.Levels, levels.LevelsSince
	return stats, nil
}
