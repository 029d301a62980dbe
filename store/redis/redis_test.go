package redis_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// patient keeps a busy test machine from looking like a server that is down.
var patient = redis.Options{Timeout: 10 * time.Second}

func TestContract(t *testing.T) {
	url := storetest.StartRedis(t)
	raw := connect(t, url)
	storetest.Run(t, func(t *testing.T) store.Store {
		must(t, raw.FlushAll(t.Context()).Err())
		return open(t, url, patient)
	})
}

// open opens a store that is closed with the test.
func open(t testing.TB, url string, opts redis.Options) *redis.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), []string{url}, opts)
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

// connect returns a client of the tests' own, to look behind the store.
func connect(t testing.TB, url string) *client.Client {
	t.Helper()
	o, err := client.ParseURL(url)
	must(t, err)
	c := client.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// turn returns the next turn of the session.
func turn(s store.Session, id string) store.Change { return turnWithCalls(s, id, 0) }

// turnWithCalls returns the next turn of the session, with tool calls. Each record names
// the one before it.
func turnWithCalls(s store.Session, id string, calls int) store.Change {
	receipt := func(id, kind string) store.Receipt {
		record := fmt.Appendf(nil, `{"prev":%q}`, s.Head)
		s.Head = id
		return store.Receipt{ID: id, Kind: kind, SessionKey: s.Key, Turn: 1, MAfter: 0.25, JSON: record}
	}
	s.Turns++
	change := store.Change{Receipt: receipt(id, store.KindText)}
	for n := range calls {
		change.Calls = append(change.Calls, receipt(fmt.Sprintf("TCR-%s-%d", id, n), store.KindToolCall))
	}
	change.Session = s
	return change
}

func TestReplicasShareEverything(t *testing.T) {
	url := storetest.StartRedis(t)
	a, b := open(t, url, patient), open(t, url, patient)
	must(t, a.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	session, err := b.Session(t.Context(), "k")
	must(t, err)
	must(t, b.Commit(t.Context(), turn(session, "KRN-2")))
	if err := a.Commit(t.Context(), turn(session, "KRN-3")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("both replicas committed on one version: %v", err)
	}
	const limit = 50
	var allowed atomic.Int64
	var group sync.WaitGroup
	for i := range 32 {
		s := []*redis.Store{a, b}[i%2]
		group.Go(func() {
			for range 4 {
				got, err := s.Consume(t.Context(), "subject", "", limit, time.Minute)
				if err != nil {
					t.Errorf("taking: %v", err)
				}
				if got.Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got := allowed.Load(); got != limit {
		t.Errorf("the replicas allowed %d requests, want %d", got, limit)
	}
}

func TestSessionsExpire(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	const month = 30 * 24 * time.Hour
	left := func() time.Duration {
		ttl, err := raw.TTL(t.Context(), "lex:{0}:session:k").Result()
		must(t, err)
		return ttl
	}
	if got := left(); got < month-time.Minute || got > month {
		t.Errorf("a session lives for %v, want %v", got, month)
	}
	must(t, raw.Expire(t.Context(), "lex:{0}:session:k", time.Hour).Err())
	session, err := s.Session(t.Context(), "k")
	must(t, err)
	must(t, s.Commit(t.Context(), turn(session, "KRN-2")))
	if got := left(); got < month-time.Minute {
		t.Errorf("after another turn it lives for %v, want %v", got, month)
	}

	// Nothing that belongs to it lives on: neither its other names nor the set of its family.
	must(t, s.Commit(t.Context(), secondTurn(t, s, raw)))
	names := func() (all []string) {
		for _, pattern := range []string{"lex:{0}:session:*", "lex:{0}:family:*"} {
			found, err := raw.Keys(t.Context(), pattern).Result()
			must(t, err)
			all = append(all, found...)
		}
		return all
	}
	if got := len(names()); got != 3 {
		t.Errorf("the session has the keys %v", names())
	}
	for _, name := range names() {
		if ttl, err := raw.TTL(t.Context(), name).Result(); err != nil || ttl < month-time.Minute || ttl > month {
			t.Errorf("%s lives for %v (%v), want %v", name, ttl, err, month)
		}
	}
	must(t, s.Erase(t.Context(), "k"))
	if got := names(); len(got) > 0 {
		t.Errorf("what was erased leaves %v", got)
	}
}

// A window that began while the server's clock was ahead is left with too long a life.
func TestWindowOfAClockThatWasAhead(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	const window = 2 * time.Hour
	consume := func(want bool) {
		t.Helper()
		a, err := s.Consume(t.Context(), "plan", "", 1, window)
		must(t, err)
		if a.Allowed != want || a.Reset > window || a.Reset < window-time.Minute {
			t.Errorf("%+v, want allowed %v in a window of %v", a, want, window)
		}
	}
	consume(true)
	must(t, raw.Expire(t.Context(), "lex:limit:{plan}", 365*24*time.Hour).Err())
	consume(false)
	if left, err := raw.TTL(t.Context(), "lex:limit:{plan}").Result(); err != nil || left > window || left < window-time.Minute {
		t.Errorf("the window lives for %v (%v), want %v", left, err, window)
	}
}

// A server that was restarted, or told to, has lost its scripts.
func TestCommitsWhileScriptsAreLost(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	const sessions, turnsEach = 32, 5
	var group sync.WaitGroup
	for c := range sessions {
		group.Go(func() {
			session := store.Session{Key: fmt.Sprint("k", c)}
			for i := range turnsEach {
				if c == 0 {
					must(t, raw.ScriptFlush(t.Context()).Err())
				}
				if err := s.Commit(t.Context(), turn(session, fmt.Sprintf("KRN-%d-%d", c, i))); err != nil {
					t.Errorf("committing: %v", err)
					return
				}
				session, _ = s.Session(t.Context(), session.Key)
			}
		})
	}
	group.Wait()
	stats, err := s.Stats(t.Context())
	must(t, err)
	if logged := len(storetest.Log(t, s)); stats.TotalReceipts != sessions*turnsEach || logged != sessions*turnsEach {
		t.Errorf("%d receipts, %d in the log, want %d", stats.TotalReceipts, logged, sessions*turnsEach)
	}
}

// A server that lost its data gets the documents again that receipts name, from each replica
// those that it has put, before the first receipt of that replica is acknowledged.
func TestDocumentsComeBack(t *testing.T) {
	url := storetest.StartRedis(t)
	raw := connect(t, url)
	replicas := map[string]*redis.Store{"a": open(t, url, patient), "b": open(t, url, patient)}
	text := func(name string) string { return `{"of":"` + name + `"}` }
	for name, s := range replicas {
		must(t, s.PutDocument(t.Context(), "policy-"+name, []byte(text(name))))
		must(t, s.PutDocument(t.Context(), "setup", []byte("{}")))
	}
	for _, write := range []string{"commit", "append"} {
		for _, lose := range []func() error{
			func() error { return raw.FlushAll(t.Context()).Err() },
			func() error { return raw.Del(t.Context(), "lex:policy:{policy-a}", "lex:policy:{policy-b}").Err() },
		} {
			must(t, lose())
			for name, s := range replicas {
				id := "KRN-" + name + write
				change := turn(store.Session{Key: id}, id)
				if session, err := s.Session(t.Context(), id); err == nil {
					change = turn(session, id+"-2")
				}
				if write == "append" {
					must(t, s.Append(t.Context(), change.Receipt))
				} else {
					must(t, s.Commit(t.Context(), change))
				}
				for hash, want := range map[string]string{"policy-" + name: text(name), "setup": "{}"} {
					if got, err := s.Document(t.Context(), hash); string(got) != want {
						t.Errorf("%s after %s: %s %v", hash, write, got, err)
					}
				}
			}
		}
	}
}

// A receipt whose documents were lost and cannot be written again is not acknowledged: nobody
// could replay it.
func TestDocumentsThatCannotComeBack(t *testing.T) {
	url := storetest.StartRedis(t)
	raw := connect(t, url)
	s := open(t, limitedUser(t, url, raw), patient)
	must(t, s.PutDocument(t.Context(), "policy", []byte("{}")))
	must(t, raw.Del(t.Context(), "lex:policy:{policy}").Err())
	change := turn(store.Session{Key: "k"}, "KRN-1")
	must(t, raw.Do(t.Context(), "ACL", "SETUSER", "limited", "resetkeys", "~lex:{0}*", "%R~lex:policy*").Err())
	if err := s.Commit(t.Context(), change); !errors.Is(err, store.ErrRefused) {
		t.Errorf("committing without its policy: %v", err)
	}
	must(t, raw.Do(t.Context(), "ACL", "SETUSER", "limited", "~*").Err())
	must(t, s.Commit(t.Context(), change)) // again, as a turn does
	if text, err := s.Document(t.Context(), "policy"); string(text) != "{}" {
		t.Errorf("once it can be written: %q %v", text, err)
	}
}

// A key that was not written whole, and a list of which something cannot be read, are errors: a
// key that seems to be revoked still lets callers in.
func TestListsThatFailHalfWay(t *testing.T) {
	url := storetest.StartRedis(t)
	raw := connect(t, url)
	s := open(t, limitedUser(t, url, raw), patient)
	key := store.Key{ID: "key_1", Hash: "hash", RevokedAt: time.Now()}
	must(t, raw.Do(t.Context(), "ACL", "SETUSER", "limited", "resetkeys", "~lex:keys", "%R~lex:*").Err())
	if err := s.PutKey(t.Context(), key); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a key that is listed and cannot be written: %v", err)
	}
	must(t, raw.Do(t.Context(), "ACL", "SETUSER", "limited", "~*").Err())
	must(t, s.PutKey(t.Context(), key))
	must(t, raw.SAdd(t.Context(), "lex:keys", "another").Err())
	must(t, raw.Set(t.Context(), "lex:key:{another}", "", 0).Err())
	if keys, err := s.Keys(t.Context()); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("with a key of another type: %v %v", keys, err)
	}
	must(t, s.Publish(t.Context(), []store.Benchmark{{}}))
	must(t, raw.XAdd(t.Context(), &client.XAddArgs{Stream: "lex:benchmarks", Values: []string{"json", "{"}}).Err())
	if rows, err := s.Benchmarks(t.Context(), time.Now()); err == nil {
		t.Errorf("with a benchmark that is damaged: %v", rows)
	}
}

// BenchmarkCommit measures turns with so many sessions at once. Every turn is a
// read and a commit.
func BenchmarkCommit(b *testing.B) {
	url := storetest.StartRedis(b)
	for _, committers := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(committers), func(b *testing.B) {
			must(b, connect(b, url).FlushAll(b.Context()).Err())
			s := open(b, url, patient)
			b.ReportAllocs()
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var group sync.WaitGroup
			for c := range committers {
				group.Go(func() {
					session := store.Session{Key: fmt.Sprint("k", c), Secret: make([]byte, 32)}
					for i := 0; left.Add(-1) >= 0; i++ {
						if err := s.Commit(b.Context(), turn(session, fmt.Sprintf("KRN-%d-%d", c, i))); err != nil {
							b.Errorf("committing: %v", err)
							return
						}
						session, _ = s.Session(b.Context(), session.Key)
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
		})
	}
}
