package caddymodule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

const (
	// benchmarksAge is how long the list may be served from memory.
	benchmarksAge     = 60 * time.Second
	maxBenchmarksBody = 1 << 20
	maxBenchmarkRows  = 1000
	maxBenchmarkName  = 128  // characters
	maxBenchmarkNotes = 2000 // characters
	maxBenchmarkTotal = 1_000_000_000
)

// publishBenchmarks serves POST /admin/benchmarks: one row or an array, all or
// none.
func (a *adminAPI) publishBenchmarks(w http.ResponseWriter, r *http.Request) error {
	rows, err := decodeBenchmarks(w, r, time.Now())
	if err != nil {
		return err
	}
	if err := a.shared.store.Publish(r.Context(), rows); err != nil {
		return storeError(err)
	}
	a.shared.benchmarks.drop()
	return writeJSON(w, http.StatusCreated, map[string]int{"published": len(rows)})
}

func decodeBenchmarks(w http.ResponseWriter, r *http.Request, now time.Time) ([]store.Benchmark, error) {
	body, apiErr := readBody(w, r, maxBenchmarksBody)
	if apiErr != nil {
		return nil, apiErr
	}
	if wire.CheckJSON(body) != nil {
		return nil, errInvalidJSON
	}
	items := []gjson.Result{gjson.ParseBytes(body)}
	if items[0].IsArray() {
		items = items[0].Array()
	}
	if len(items) == 0 || len(items) > maxBenchmarkRows {
		return nil, invalidBenchmark(0, "give 1 to %d rows", maxBenchmarkRows)
	}
	rows := make([]store.Benchmark, len(items))
	for i, item := range items {
		if rows[i], apiErr = decodeBenchmark(i+1, item, now); apiErr != nil {
			return nil, apiErr
		}
	}
	return rows, nil
}

// invalidBenchmark says which row is wrong, the first being 1, and how.
func invalidBenchmark(row int, format string, args ...any) *apiError {
	text := fmt.Sprintf(format, args...)
	if row > 0 {
		text = fmt.Sprintf("row %d: %s", row, text)
	}
	return errInvalidBenchmark.withMessage(text + ".")
}

// benchmarkRow reads the members of one row and keeps the first mistake.
type benchmarkRow struct {
	number  int
	members map[string]gjson.Result
	fault   *apiError
}

func decodeBenchmark(number int, item gjson.Result, now time.Time) (store.Benchmark, *apiError) {
	if !item.IsObject() {
		return store.Benchmark{}, invalidBenchmark(number, "it must be an object")
	}
	m, apiErr := members(item, "benchmark", "metric", "n_total", "bare_pct", "governed_pct", "bare_ci95", "governed_ci95",
		"bare_successes", "governed_successes", "notes", "created_at")
	if apiErr != nil {
		return store.Benchmark{}, apiErr
	}
	r := benchmarkRow{number: number, members: m}
	b := store.Benchmark{
		Benchmark: r.name("benchmark"), Metric: r.name("metric"), NTotal: r.count("n_total", 1, maxBenchmarkTotal),
		Notes: r.notes(), CreatedAt: r.created(now),
	}
	b.BarePct, b.BareCI95 = r.percentage("bare", b.NTotal)
	b.GovernedPct, b.GovernedCI95 = r.percentage("governed", b.NTotal)
	b.DeltaPct = b.GovernedPct - b.BarePct
	return b, r.fault
}

func (r *benchmarkRow) fail(format string, args ...any) {
	if r.fault == nil {
		r.fault = invalidBenchmark(r.number, format, args...)
	}
}

// has reports whether a member is there and not null.
func (r *benchmarkRow) has(member string) bool {
	v := r.members[member]
	return v.Exists() && v.Type != gjson.Null
}

func (r *benchmarkRow) name(member string) string {
	v := r.members[member]
	if v.Type != gjson.String || !validName(v.Str, maxBenchmarkName) {
		r.fail("%s must be a string of 1 to %d characters", member, maxBenchmarkName)
	}
	return v.Str
}

func (r *benchmarkRow) notes() string {
	v := r.members["notes"]
	if r.has("notes") && (v.Type != gjson.String || len([]rune(v.Str)) > maxBenchmarkNotes) {
		r.fail("notes must be a string of at most %d characters", maxBenchmarkNotes)
	}
	return v.Str
}

func (r *benchmarkRow) count(member string, from, to int) int {
	v := r.members[member]
	n, ok := integer(v)
	if !ok || n < from || n > to {
		r.fail("%s must be an integer from %d to %d", member, from, to)
		return from
	}
	return n
}

var inUTC = regexp.MustCompile(`(Z|[+-]00:00)$`)

func (r *benchmarkRow) created(now time.Time) time.Time {
	if !r.has("created_at") {
		return now.UTC().Truncate(time.Millisecond)
	}
	v := r.members["created_at"]
	t, ok := parseTime(v)
	switch {
	case !ok || !inUTC.MatchString(v.Str):
		r.fail("created_at must be a time in UTC, as RFC 3339 writes it")
	case t.After(now.Add(store.BenchmarkAhead)): // it would be the latest row until then
		r.fail("created_at must not be a time to come")
	}
	return t
}

// percentage reads one arm's percentage and interval, or computes them from its
// count of successes.
func (r *benchmarkRow) percentage(arm string, total int) (pct float64, ci [2]float64) {
	counted := r.has(arm + "_successes")
	if counted {
		k := r.count(arm+"_successes", 0, max(0, total))
		pct, ci = evaluation.Percent(k, total), evaluation.Wilson(k, max(1, total))
	}
	if given := r.members[arm+"_pct"]; r.has(arm+"_pct") || !counted {
		if given.Type != gjson.Number || !(given.Num >= 0 && given.Num <= 100) {
			r.fail("%s_pct must be a number from 0 to 100", arm)
		}
		pct = given.Num
	}
	if !counted {
		ci = r.interval(arm + "_ci95")
	}
	if !(ci[0] <= pct && pct <= ci[1]) {
		r.fail("the 95%% interval of %s_pct must contain it", arm)
	}
	return pct, ci
}

func (r *benchmarkRow) interval(member string) (ci [2]float64) {
	bounds := r.members[member].Array()
	if !r.members[member].IsArray() || len(bounds) != 2 || bounds[0].Type != gjson.Number || bounds[1].Type != gjson.Number {
		r.fail("%s must be two numbers, or give the count of successes", member)
		return ci
	}
	ci = [2]float64{bounds[0].Num, bounds[1].Num}
	if !(ci[0] >= 0 && ci[0] <= ci[1] && ci[1] <= 100) {
		r.fail("%s must be ordered and from 0 to 100", member)
	}
	return ci
}

// benchmarkCache keeps the encoded list for as long as clients may.
type benchmarkCache struct {
	mu   sync.Mutex
	body []byte
	etag string
	till time.Time
}

// drop empties the cache, so that the next reader asks the store.
func (c *benchmarkCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.till = time.Time{}
}

// listBenchmarks serves GET /benchmarks.
func (a *readAPI) listBenchmarks(w http.ResponseWriter, r *http.Request) error {
	body, etag, err := a.shared.cachedBenchmarks(r.Context(), time.Now())
	if err != nil {
		return storeError(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.access == readPublic { // a shared cache asks nobody for a key
		h.Set("Cache-Control", "public, max-age=60, s-maxage=60")
	}
	serveTagged(w, r, etag, body)
	return nil
}

func (s *sharedStore) cachedBenchmarks(ctx context.Context, now time.Time) ([]byte, string, error) {
	c := &s.benchmarks
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.till) {
		return c.body, c.etag, nil
	}
	rows, err := s.store.Benchmarks(ctx, now)
	if err != nil {
		return nil, "", err
	}
	if rows == nil {
		rows = []store.Benchmark{}
	}
	body, err := encodeJSON(map[string]any{"results": rows})
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(body)
	body = append(body, '\n')
	c.body, c.etag, c.till = body, `"`+hex.EncodeToString(sum[:8])+`"`, now.Add(benchmarksAge)
	return c.body, c.etag, nil
}
