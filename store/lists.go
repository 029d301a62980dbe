package store

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Merge returns the key to keep when k replaces old: k, but with the revocation
// that old has and the later of both last uses, and with its times in UTC and
// whole milliseconds. See [Store.PutKey].
func (k Key) Merge(old Key) Key {
	if !old.RevokedAt.IsZero() {
		k.RevokedAt = old.RevokedAt
	}
	if old.LastUsedAt.After(k.LastUsedAt) {
		k.LastUsedAt = old.LastUsedAt
	}
	for _, t := range []*time.Time{&k.CreatedAt, &k.LastUsedAt, &k.ExpiresAt, &k.RevokedAt} {
		*t = t.UTC().Truncate(time.Millisecond)
	}
	return k
}

// SortKeys sorts keys by creation, then by id.
func SortKeys(keys []Key) {
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// BenchmarkAhead is how far the clock of who publishes a benchmark may be ahead.
const BenchmarkAhead = 5 * time.Minute

// LatestBenchmarks returns the latest row of every benchmark, sorted by name.
// rows are in the order in which they were published; of equally late rows the
// last stands. One from a time to come counts as earlier than all others, because it
// would hide each row that is published until then.
func LatestBenchmarks(rows []Benchmark, now time.Time) []Benchmark {
	at := func(row Benchmark) time.Time { // no row knows a time to come
		if row.CreatedAt.After(now.Add(BenchmarkAhead)) {
			return time.Time{}
		}
		return row.CreatedAt
	}
	latest := make(map[string]Benchmark)
	for _, row := range rows {
		if old, ok := latest[row.Benchmark]; !ok || !at(row).Before(at(old)) {
			latest[row.Benchmark] = row
		}
	}
	return slices.SortedFunc(maps.Values(latest), func(a, b Benchmark) int {
		return cmp.Compare(a.Benchmark, b.Benchmark)
	})
}
