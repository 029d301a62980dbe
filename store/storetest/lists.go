package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store"
)

var created = time.Date(2026, 11, 21, 10, 30, 0, 123_000_000, time.UTC)

func keysAreReadBack(t *testing.T, s store.Store) {
	_, err := s.Key(t.Context(), "h1")
	wantKind(t, "unknown key", err, store.ErrNotFound)
	none, err := s.Keys(t.Context())
	must(t, err)
	if len(none) != 0 {
		t.Errorf("an empty store lists %d keys", len(none))
	}
	full := store.Key{
		ID: "2", Hash: "h2", Name: "späť\n\"quoted\"", Plan: "pro", CreatedAt: created.Add(time.Hour),
		LastUsedAt: created.Add(2 * time.Hour), ExpiresAt: created.Add(3 * time.Hour), RevokedAt: created.Add(4 * time.Hour),
	}
	bare := store.Key{ID: "1", Hash: "h1", CreatedAt: created}
	tied := store.Key{ID: "3", Hash: "h0", CreatedAt: created.Add(time.Hour)}
	for _, k := range []store.Key{full, tied, bare} {
		must(t, s.PutKey(t.Context(), k))
		got, err := s.Key(t.Context(), k.Hash)
		must(t, err)
		if got != k {
			t.Errorf("key:\n got %+v\nwant %+v", got, k)
		}
	}
	got, err := s.Keys(t.Context())
	must(t, err)
	if want := []store.Key{bare, full, tied}; !reflect.DeepEqual(got, want) {
		t.Errorf("keys:\n got %+v\nwant %+v", got, want)
	}
	local := bare
	local.CreatedAt = created.In(time.FixedZone("east", 3600)).Add(345 * time.Microsecond)
	local.Name = "renamed"
	must(t, s.PutKey(t.Context(), local))
	renamed, err := s.Key(t.Context(), "h1")
	must(t, err)
	if bare.Name = "renamed"; renamed != bare {
		t.Errorf("a time of another zone and finer than a millisecond:\n got %+v\nwant %+v", renamed, bare)
	}
}

// A request reads the key, the administrator revokes it, the request writes
// back that the key was used.
func revocationStays(t *testing.T, s store.Store) {
	k := store.Key{ID: "1", Hash: "h1", CreatedAt: created}
	must(t, s.PutKey(t.Context(), k))
	revoked, used := k, k
	revoked.RevokedAt = created.Add(time.Minute)
	used.LastUsedAt = created.Add(time.Second)
	must(t, s.PutKey(t.Context(), revoked))
	must(t, s.PutKey(t.Context(), used))
	later := revoked
	later.RevokedAt = created.Add(time.Hour)
	must(t, s.PutKey(t.Context(), later))
	got, err := s.Key(t.Context(), "h1")
	must(t, err)
	if !got.RevokedAt.Equal(revoked.RevokedAt) || !got.LastUsedAt.Equal(used.LastUsedAt) {
		t.Errorf("key %+v: want it revoked at %v and last used at %v", got, revoked.RevokedAt, used.LastUsedAt)
	}
}

// A hash has one policy, so whoever writes it again has nothing new to say.
func policiesStayAsTheyWere(t *testing.T, s store.Store) {
	_, err := s.Document(t.Context(), "h1")
	wantKind(t, "unknown policy", err, store.ErrNotFound)
	text := []byte(`{"rho": 0.35, "tau":8e-2, "name":"<é😀>"}`)
	must(t, s.PutDocument(t.Context(), "h1", text))
	must(t, s.PutDocument(t.Context(), "h2", []byte("{}")))
	must(t, s.PutDocument(t.Context(), "h1", []byte("{}")))
	got, err := s.Document(t.Context(), "h1")
	must(t, err)
	if string(got) != string(text) {
		t.Errorf("policy: got %s, want %s", got, text)
	}
	wantKind(t, "document without hash", s.PutDocument(t.Context(), "", text), store.ErrInvalid)
	wantKind(t, "document without text", s.PutDocument(t.Context(), "h3", nil), store.ErrInvalid)
}

func latestBenchmarkStands(t *testing.T, s store.Store) {
	now := created.Add(10 * time.Hour)
	none, err := s.Benchmarks(t.Context(), now)
	must(t, err)
	if len(none) != 0 {
		t.Errorf("an empty store has %d benchmarks", len(none))
	}
	row := func(name, notes string, hours int) store.Benchmark {
		return store.Benchmark{
			Benchmark: name, Metric: "attack success", NTotal: 520, BarePct: 41.3, GovernedPct: 0.1 + 0.2,
			BareCI95: [2]float64{37.1, 45.6}, GovernedCI95: [2]float64{0, 1.5}, DeltaPct: -41, Notes: notes,
			CreatedAt: created.Add(time.Duration(hours)*time.Hour + 789*time.Nanosecond),
		}
	}
	must(t, s.Publish(t.Context(), nil))
	must(t, s.Publish(t.Context(), []store.Benchmark{row("b", "old", 0), row("a", "latest", 5), row("b", "first", 1)}))
	must(t, s.Publish(t.Context(), []store.Benchmark{row("a", "published later, made earlier", 4), row("b", "corrected", 1)}))
	zoned := row("c", "zone", 2)
	zoned.CreatedAt = zoned.CreatedAt.In(time.FixedZone("west", -3600))
	must(t, s.Publish(t.Context(), []store.Benchmark{zoned}))
	ahead := row("f", "a clock that is ahead", 10)
	ahead.CreatedAt = ahead.CreatedAt.Add(time.Minute)
	const centuries = 200 * 365 * 24 // in hours
	must(t, s.Publish(t.Context(), []store.Benchmark{row("d", "a time to come", centuries), row("e", "a time to come", centuries+1)}))
	must(t, s.Publish(t.Context(), []store.Benchmark{row("d", "published behind it", 3), row("e", "the last of those", centuries), ahead, row("f", "made earlier", 9)}))
	got, err := s.Benchmarks(t.Context(), now)
	must(t, err)
	want := []store.Benchmark{
		row("a", "latest", 5), row("b", "corrected", 1), row("c", "zone", 2),
		row("d", "published behind it", 3), row("e", "the last of those", centuries), ahead,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("benchmarks:\n got %v\nwant %v", got, want)
	}
}
