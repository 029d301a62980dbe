package bolt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/storetest"
)

func TestContract(t *testing.T) {
	// The receipts of the contract are of any time since 1970, and no session of them is old.
	now := func() time.Time { return time.Now().AddDate(-60, 0, 0) }
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{Now: now})
	})
}

// open opens a store that is closed with the test.
func open(t testing.TB, path string, opts bolt.Options) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(path, opts)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// callsOf is how many tool calls the turns of these tests have, from the first on.
func callsOf(turn int) int { return turn % 3 }

// receiptsOf is how many receipts so many turns have.
func receiptsOf(turns int) (n int) {
	for turn := range turns {
		n += 1 + callsOf(turn+1)
	}
	return n
}

// advance commits the session's next turn with its tool calls and returns the id of the
// turn's receipt.
func advance(ctx context.Context, s *bolt.Store, key string) (string, error) {
	return advanceWith(ctx, s, key, callsOf)
}

func advanceWith(ctx context.Context, s *bolt.Store, key string, calls func(turn int) int) (string, error) {
	session, err := s.Session(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		session, err = store.Session{Key: key, Secret: make([]byte, 32)}, nil
	}
	if err != nil {
		return "", err
	}
	id := fmt.Sprintf("KRN-%s-%d", key, session.Turns+1)
	receipt := func(id, kind string) store.Receipt {
		record := fmt.Sprintf(`{"id":%q,"prev":%q,"padding":%q}`, id, session.Head, strings.Repeat("x", 500))
		session.Head = id
		return store.Receipt{ID: id, Kind: kind, SessionKey: key, Turn: 1, MAfter: 0.25, JSON: []byte(record)}
	}
	session.Turns++
	change := store.Change{Receipt: receipt(id, store.KindText)}
	for n := range calls(session.Turns) {
		change.Calls = append(change.Calls, receipt(fmt.Sprintf("TCR-%s-%d-%d", key, session.Turns, n), store.KindToolCall))
	}
	change.Session = session
	return id, s.Commit(ctx, change)
}

func TestOpenMakesPrivateFiles(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(folder, "lex.db")
	s := open(t, path, bolt.Options{})
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(path); got != 0o600 {
		t.Errorf("the file has mode %o, want 600", got)
	}
	if got := mode(folder); got != 0o700 {
		t.Errorf("the folder has mode %o, want 700", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, path, bolt.Options{})
	if got := mode(path); got != 0o600 {
		t.Errorf("after opening a file that others could read it has mode %o, want 600", got)
	}
}

func TestOpenLockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	first := open(t, path, bolt.Options{})
	begin := time.Now()
	_, err := bolt.Open(path, bolt.Options{})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("opening a locked file: %v", err)
	}
	for _, want := range []string{path, "another process", "stop"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if waited := time.Since(begin); waited > 5*time.Second {
		t.Errorf("opening a locked file took %v", waited)
	}
	opened := make(chan error, 1)
	go func() { // a new process that waits for the old one to end
		s, err := bolt.Open(path, bolt.Options{})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("opening while the other process closes: %v", err)
	}
}

func TestOpenOtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := bolt.Open(path, bolt.Options{})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
		t.Errorf("opening a text file: %v", err)
	}
	_, err = bolt.Open(filepath.Join(path, "lex.db"), bolt.Options{})
	if err == nil {
		t.Error("opening below a file succeeded")
	}
	if _, err := bolt.Open(os.DevNull, bolt.Options{}); err == nil || !strings.Contains(err.Error(), os.DevNull) {
		t.Errorf("opening a device: %v", err)
	}
}

// A process that waits for another one to let go of the file finds it larger than it was.
func TestOpenGrownFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	first := open(t, path, bolt.Options{})
	opened := make(chan error, 1)
	go func() {
		s, err := bolt.Open(path, bolt.Options{})
		for errors.Is(err, store.ErrUnavailable) { // it waits for a second at a time
			s, err = bolt.Open(path, bolt.Options{})
		}
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	text := []byte(`"` + strings.Repeat("x", 4<<20) + `"`)
	for n := range 6 { // the file begins with 16 MB
		if err := first.PutDocument(t.Context(), fmt.Sprint(n), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// A file that was cut off would end the process by a signal when its lost pages are read.
func TestOpenCutFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	for n := range 20 {
		if _, err := advance(t.Context(), s, fmt.Sprint("session", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 100, 4 << 10, 6 << 10, 8 << 10, 12 << 10, 16 << 10, 20 << 10, 24 << 10, 28 << 10, 32 << 10} {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Open(path, bolt.Options{}); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("cut after %d bytes: %v", size, err)
		}
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	for range 3 {
		if _, err := advance(t.Context(), s, "k1"); err != nil {
			t.Fatal(err)
		}
	}
	must(t, s.PutKey(t.Context(), store.Key{ID: "1", Hash: "h"}))
	must(t, s.Publish(t.Context(), []store.Benchmark{{Benchmark: "b"}}))
	wantSession, err := s.Session(t.Context(), "k1")
	must(t, err)
	wantStats, err := s.Stats(t.Context())
	must(t, err)
	must(t, s.Close())

	s = open(t, path, bolt.Options{})
	gotSession, err := s.Session(t.Context(), "k1")
	must(t, err)
	if fmt.Sprint(gotSession) != fmt.Sprint(wantSession) {
		t.Errorf("session:\n got %+v\nwant %+v", gotSession, wantSession)
	}
	gotStats, err := s.Stats(t.Context())
	must(t, err)
	if !reflect.DeepEqual(gotStats, wantStats) || gotStats.TotalReceipts != receiptsOf(3) {
		t.Errorf("statistics: got %+v, want %+v", gotStats, wantStats)
	}
	_, err = s.Key(t.Context(), "h")
	must(t, err)
	rows, err := s.Benchmarks(t.Context(), time.Now())
	must(t, err)
	if len(rows) != 1 {
		t.Errorf("%d benchmarks, want 1", len(rows))
	}
	checkChain(t, s, "k1", 3)
}

// A write that the tree refuses must not take the batch with it.
func TestRefusedWriteDoesNotSpoilTheBatch(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	tooLong := strings.Repeat("k", 40_000)
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			if i%4 == 0 {
				_, err := advance(t.Context(), s, tooLong+fmt.Sprint(i))
				if !errors.Is(err, store.ErrInvalid) {
					t.Errorf("a key of 40000 bytes: %v", err)
				}
				return
			}
			for range 5 {
				if _, err := advance(t.Context(), s, fmt.Sprint("k", i)); err != nil {
					t.Errorf("committing beside it: %v", err)
				}
			}
		})
	}
	group.Wait()
	for i := range 64 {
		if i%4 != 0 {
			checkChain(t, s, fmt.Sprint("k", i), 5)
		}
	}
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != 48*receiptsOf(5) {
		t.Errorf("statistics count %d receipts, want %d", stats.TotalReceipts, 48*receiptsOf(5))
	}
	if got := len(storetest.Log(t, s)); got != 48*receiptsOf(5) {
		t.Errorf("the log has %d receipts, want %d", got, 48*receiptsOf(5))
	}
	must(t, s.Check(t.Context()))
}

// A call that the tree refuses takes its whole turn with it, and nothing else.
func TestRefusedCallLeavesNothingOfItsTurn(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	if _, err := advance(t.Context(), s, "k1"); err != nil {
		t.Fatal(err)
	}
	before, err := s.Session(t.Context(), "k1")
	must(t, err)
	next := before
	next.Head, next.Turns = "TCR-2", 2
	refused := store.Change{Session: next, Receipt: store.Receipt{ID: "KRN-2", Kind: store.KindText, SessionKey: "k1", JSON: []byte("{}")}}
	for _, id := range []string{"TCR-1", strings.Repeat("x", 40_000), "TCR-2"} {
		refused.Calls = append(refused.Calls, store.Receipt{ID: id, Kind: store.KindToolCall, SessionKey: "k1", JSON: []byte("{}")})
	}
	if err := s.Commit(t.Context(), refused); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("committing: %v", err)
	}
	if err := s.Append(t.Context(), refused.Receipts()...); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("appending: %v", err)
	}
	after, err := s.Session(t.Context(), "k1")
	must(t, err)
	stats, err := s.Stats(t.Context())
	must(t, err)
	if fmt.Sprint(after) != fmt.Sprint(before) || stats.TotalReceipts != receiptsOf(1) {
		t.Errorf("%+v, before %+v; %d receipts", after, before, stats.TotalReceipts)
	}
	checkChain(t, s, "k1", 1)
	if got := len(storetest.Log(t, s)); got != receiptsOf(1) {
		t.Errorf("the log has %d receipts, want %d", got, receiptsOf(1))
	}
}

// Receipts that older versions wrote are read on: at first they had no links, and then
// none were compressed and summaries had a bucket of their own. The next one follows them.
func TestOlderReceiptsAreReadOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	appendReceipts(t, s, "KRN-1", "KRN-2", "KRN-3", "KRN-4")
	must(t, s.Close())
	older(t, path, 1, "", "KRN-1", "")
	older(t, path, 2, "", "KRN-2", "")
	older(t, path, 3, "", "KRN-3", "")
	older(t, path, 4, linkAfter("KRN-3"), "KRN-4", "\x05KRN-4{\"of\":4}")

	s = open(t, path, bolt.Options{})
	appendReceipts(t, s, "KRN-5", "KRN-6")
	log, err := s.Log(t.Context(), 0, 10)
	must(t, err)
	if len(log) != 6 {
		t.Fatalf("the log has %d receipts, want 6", len(log))
	}
	for i, r := range log {
		want := ""
		if i >= 3 {
			want = linkAfter(log[i-1].ID)
		}
		if r.ID != fmt.Sprint("KRN-", i+1) || r.Seq != uint64(i+1) || r.LogPrev != want || string(r.JSON) != recordOf(r.ID) {
			t.Errorf("got %+v, want the link %q", r, want)
		}
		found, err := s.Receipt(t.Context(), r.ID)
		must(t, err)
		if fmt.Sprint(found) != fmt.Sprint(r) {
			t.Errorf("found %+v, want %+v", found, r)
		}
	}
	summaries, err := s.Summaries(t.Context(), "", 10)
	must(t, err)
	for i, want := range []string{"", "", `{"of":4}`, "", "", ""} {
		if got := summaries[i]; got.ID != fmt.Sprint("KRN-", 6-i) || string(got.JSON) != want {
			t.Errorf("summary %d: %s %s, want %s", i, got.ID, got.JSON, want)
		}
	}
}

// Statistics that older versions stored, as JSON and then as numbers without levels, are
// counted on.
func TestOlderStatisticsAreCountedOn(t *testing.T) {
	numbers := make([]byte, 25) // 2 receipts, 1 intervention, -0.5 in units of 1e-9
	binary.BigEndian.PutUint64(numbers, 2)
	binary.BigEndian.PutUint64(numbers[8:], 1)
	binary.BigEndian.PutUint64(numbers[16:], 1<<64-500_000_000)
	const text = `{"receipts":2,"interventions":1,"margin":-500000000}`
	for name, c := range map[string]struct{ older, out []byte }{
		"json":    {[]byte(text), []byte(text[:len(text)-1] + `,"out":true}`)},
		"numbers": {numbers, append(slices.Clone(numbers[:24]), 1)},
	} {
		t.Run(name, func(t *testing.T) { olderStatisticsAreCountedOn(t, c.older, c.out) })
	}
}

func olderStatisticsAreCountedOn(t *testing.T, older, out []byte) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	if _, err := advance(t.Context(), s, "k1"); err != nil {
		t.Fatal(err)
	}
	must(t, s.Close())
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		for _, key := range []string{"total", "s/k1"} {
			must(t, tx.Bucket([]byte("tallies")).Put([]byte(key), older))
		}
		return tx.Bucket([]byte("tallies")).Put([]byte("s/k2"), out)
	}))
	must(t, db.Close())

	s = open(t, path, bolt.Options{})
	r := store.Receipt{ID: "KRN-1", Kind: store.KindText, SessionKey: "k1", MAfter: -0.25, Turn: 1, Timestamp: 7, JSON: []byte("{}")}
	r.Level = store.Level{AttackType: kernel.Identity, At: 81}
	must(t, s.Append(t.Context(), r))
	r.ID, r.SessionKey = "KRN-2", "k2" // which is out
	must(t, s.Append(t.Context(), r))
	stats, err := s.Stats(t.Context())
	must(t, err)
	want := store.Stats{TotalReceipts: 3, InterventionRate: 1.0 / 3, StabilityMargin: -0.25, LevelsSince: 7}
	want.AddLevel(r.Level, 1)
	if !reflect.DeepEqual(stats, want) {
		t.Errorf("got %+v, want %+v", stats, want)
	}
	r.ID, r.SessionKey, r.Turn = "KRN-3", "k1", store.MaxCountedTurn+1 // all of the session goes
	must(t, s.Append(t.Context(), r))
	stats, err = s.Stats(t.Context())
	must(t, err)
	if want := (store.Stats{LevelsSince: 7}); !reflect.DeepEqual(stats, want) {
		t.Errorf("got %+v, want %+v", stats, want)
	}
}

// Families and counters that older versions stored, under names in no order, are found,
// counted on and erased.
func TestOlderFamiliesAreWrittenOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	turn := func(id, key, family string, aliases ...string) {
		t.Helper()
		receipt := store.Receipt{ID: id, Kind: store.KindText, SessionKey: key, Turn: 1, MAfter: 0.25, JSON: []byte("{}")}
		must(t, s.Commit(t.Context(), store.Change{Receipt: receipt, Session: store.Session{Key: key, Family: family, Secret: []byte("secret")}, Aliases: aliases}))
	}
	turn("KRN-1", "first", "")
	turn("KRN-2", "second", "KRN-1", "a name of it")
	must(t, s.Close())

	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	place := binary.BigEndian.AppendUint64(nil, 1)
	rename := func(b *bbolt.Bucket, from, to []byte) {
		var keys [][]byte
		must(t, b.ForEach(func(k, _ []byte) error { keys = append(keys, bytes.Clone(k)); return nil }))
		for _, k := range keys {
			if rest, ok := bytes.CutPrefix(k, from); ok {
				must(t, b.Put(slices.Concat(to, rest), bytes.Clone(b.Get(k))))
				must(t, b.Delete(k))
			}
		}
	}
	must(t, db.Update(func(tx *bbolt.Tx) error {
		rename(tx.Bucket([]byte("families")), place, []byte("KRN-1\x00"))
		rename(tx.Bucket([]byte("tallies")), slices.Concat([]byte("s/"), place), []byte("s/"))
		return nil
	}))
	must(t, db.Close())

	s = open(t, path, bolt.Options{})
	turn("KRN-3", "third", "KRN-1")
	session, err := s.Session(t.Context(), "second")
	must(t, err)
	must(t, s.Commit(t.Context(), store.Change{
		Receipt: store.Receipt{ID: "KRN-4", Kind: store.KindText, SessionKey: "second", Turn: store.MaxCountedTurn + 1, JSON: []byte("{}")},
		Session: session,
	}))
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != 2 { // all of the second went
		t.Errorf("%d receipts are counted", stats.TotalReceipts)
	}
	must(t, s.Erase(t.Context(), "a name of it"))
	for _, key := range []string{"first", "second", "third", "a name of it"} {
		if _, err := s.Session(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
	must(t, s.Close())
	db, err = bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.View(func(tx *bbolt.Tx) error {
		for _, name := range []string{"families", "sessions", "aliases"} {
			if k, _ := tx.Bucket([]byte(name)).Cursor().First(); k != nil {
				t.Errorf("%s still has %q", name, k)
			}
		}
		return nil
	}))
	must(t, db.Close())
}

// Counters that are damaged are an error and no number.
func TestDamagedStatistics(t *testing.T) {
	for name, damage := range map[string]map[string]string{
		"an empty total":                   {"total": ""},
		"a total that is cut":              {"total": "short"},
		"a level that is cut":              {"total": strings.Repeat("\x00", 25) + "\x00"},
		"a level without a count":          {"total": strings.Repeat("\x00", 25) + "\x00\x01"},
		"a level with a count that is cut": {"total": strings.Repeat("\x00", 25) + "\x00\x01\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lex.db")
			must(t, open(t, path, bolt.Options{}).Close())
			db, err := bbolt.Open(path, 0o600, nil)
			must(t, err)
			must(t, db.Update(func(tx *bbolt.Tx) error {
				for key, value := range damage {
					must(t, tx.Bucket([]byte("tallies")).Put([]byte(key), []byte(value)))
				}
				return nil
			}))
			must(t, db.Close())
			if stats, err := open(t, path, bolt.Options{}).Stats(t.Context()); err == nil {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// older replaces a receipt by what an older version would have written.
func older(t *testing.T, path string, sequence uint64, link, id, summary string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		at := binary.BigEndian.AppendUint64(nil, sequence)
		if summary != "" {
			must(t, tx.Bucket([]byte("summaries")).Put(at, []byte(summary)))
		}
		return tx.Bucket([]byte("receipts")).Put(at, fmt.Appendf(nil, "%s{\"id\":%q,\"kind\":\"KRN\",\"turn\":0,\"timestamp\":0,\"m_after\":0}\n%s", link, id, recordOf(id)))
	}))
	must(t, db.Close())
}

// linkAfter is the link of the receipt after the one with the id.
func linkAfter(id string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(recordOf(id)))) }

func appendReceipts(t *testing.T, s *bolt.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must(t, s.Append(t.Context(), store.Receipt{ID: id, Kind: store.KindText, JSON: []byte(recordOf(id))}))
	}
}

// What is stored can be read only with the dictionary that it was written with.
func TestDictionaryStays(t *testing.T) {
	text, err := os.ReadFile("dictionary.txt")
	must(t, err)
	if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != "7636b6e834ac9b10f9cceff516158f3f9a874e26e0ba32c0d18f57a5f3b18447" {
		t.Errorf("the dictionary has changed: its SHA-256 is %s", got)
	}
}

// A receipt that is damaged in any byte is an error or another receipt when it is read alone,
// never a crash.
func TestDamagedReceipts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	r := store.Receipt{ID: "KRN-1", Kind: store.KindText, JSON: []byte(recordOf("KRN-1")), Summary: []byte("{}")}
	must(t, s.Append(t.Context(), r))
	must(t, s.Close())
	at := binary.BigEndian.AppendUint64(nil, 1)
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	var whole []byte
	must(t, db.View(func(tx *bbolt.Tx) error { whole = bytes.Clone(tx.Bucket([]byte("receipts")).Get(at)); return nil }))
	must(t, db.Close())
	damaged := 0
	for i := 0; i < len(whole); i += 3 {
		for _, data := range [][]byte{whole[:i], slices.Replace(slices.Clone(whole), i, i+1, whole[i]^0xff)} {
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
			must(t, err)
			must(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("receipts")).Put(at, data) }))
			must(t, db.Close())
			s := open(t, path, bolt.Options{})
			if _, err := s.Receipt(t.Context(), "KRN-1"); err != nil {
				damaged++
			}
			_, _ = s.Summaries(t.Context(), "", 5)
			appendReceipts(t, s, fmt.Sprint("KRN-2-", i, len(data)))
			must(t, s.Close())
		}
	}
	if damaged < len(whole)/3 {
		t.Errorf("%d damages were noticed, want at least %d", damaged, len(whole)/3)
	}
}

// One damaged receipt hides no other: lists and the log have its place, and the others whole.
func TestListsOfADamagedReceipt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	appendReceipts(t, s, "KRN-1", "KRN-2", "KRN-3")
	must(t, s.Close())
	at := binary.BigEndian.AppendUint64(nil, 2)
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	var whole []byte
	must(t, db.View(func(tx *bbolt.Tx) error { whole = bytes.Clone(tx.Bucket([]byte("receipts")).Get(at)); return nil }))
	must(t, db.Close())
	unread := 0
	for i := 0; i <= len(whole); i += 5 {
		for _, data := range [][]byte{whole[:i], append(bytes.Repeat([]byte{0xff}, i), whole[i:]...), append(slices.Clone(whole[:i]), bytes.Repeat([]byte{0xff}, len(whole)-i)...)} {
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
			must(t, err)
			must(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("receipts")).Put(at, data) }))
			must(t, db.Close())
			s := open(t, path, bolt.Options{})
			recent, err := s.Recent(t.Context(), "", 9)
			must(t, err)
			slices.Reverse(recent)
			log, err := s.Log(t.Context(), 0, 9)
			must(t, err)
			summaries, err := s.Summaries(t.Context(), "", 9)
			must(t, err)
			for _, list := range [][]store.Receipt{recent, log} {
				if len(list) != 3 || list[0].ID != "KRN-1" || list[1].Seq != 2 || list[1].Cursor != "2" || list[2].Seq != 3 || string(list[2].JSON) != recordOf("KRN-3") {
					t.Fatalf("%x: %+v", data, list)
				}
			}
			if len(summaries) != 3 || summaries[0].ID != "KRN-3" || summaries[1].Cursor != "2" {
				t.Fatalf("%x: %+v", data, summaries)
			}
			if len(log[1].JSON) == 0 {
				unread++
				if _, err := s.Receipt(t.Context(), "KRN-2"); !errors.Is(err, store.ErrInvalid) {
					t.Errorf("%x: reading it alone: %v", data, err)
				}
			}
			must(t, s.Close())
		}
	}
	if unread < 20 {
		t.Errorf("only %d damages could not be read", unread)
	}
}

// recordOf has a line break, which a record may have, though a canonical one has none.
func recordOf(id string) string { return fmt.Sprintf("{\"id\":%q,\n\"a\":{}}", id) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}
