package redis_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
func turn(s store.Session, id string) store.Turn {
	s.Head = id
	s.Turns++
	return store.Turn{Session: s, Receipt: store.Receipt{
		ID: id, Kind: store.KindText, SessionKey: s.Key, Turn: 1, MAfter: 0.25, JSON: []byte("{}"),
	}}
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
				got, err := s.Take(t.Context(), "subject", limit, time.Minute)
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
	if stats.TotalReceipts != sessions*turnsEach {
		t.Errorf("%d receipts, want %d", stats.TotalReceipts, sessions*turnsEach)
	}
}

// outage checks that every kind of call says that the store is unavailable, in
// time, and does not say where it is.
func outage(t *testing.T, s *redis.Store, server string) {
	t.Helper()
	_, errTake := s.Take(t.Context(), "subject", 1, time.Minute)
	_, errSession := s.Session(t.Context(), "k")
	_, errRecent := s.Recent(t.Context(), "", 1)
	_, errStats := s.Stats(t.Context())
	_, errKeys := s.Keys(t.Context())
	for name, err := range map[string]error{
		"Commit": s.Commit(t.Context(), turn(store.Session{Key: "new"}, "KRN-outage")),
		"Append": s.Append(t.Context(), turn(store.Session{Key: "k"}, "KRN-9").Receipt),
		"Take":   errTake, "Session": errSession, "Recent": errRecent, "Stats": errStats, "Keys": errKeys,
		"Publish": s.Publish(t.Context(), []store.Benchmark{{}}),
		"Check":   s.Check(t.Context()),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s during an outage: %v", name, err)
		}
		saysNothing(t, err, server)
	}
}

// saysNothing checks that the error holds no part of the URL.
func saysNothing(t *testing.T, err error, server string) {
	t.Helper()
	u, parseErr := url.Parse(server)
	must(t, parseErr)
	secrets := []string{u.Host, u.Hostname(), u.Port()}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password, u.User.Username())
	}
	for _, secret := range secrets {
		if err != nil && secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("the error says %q: %v", secret, err)
		}
	}
}

func TestServerThatStalls(t *testing.T) {
	url, process := storetest.StartRedisProcess(t)
	s := open(t, url, redis.Options{})
	must(t, process.Signal(syscall.SIGSTOP))
	begin := time.Now()
	outage(t, s, url)
	// Nine calls of at most 250 ms each, and some for a busy machine.
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("the calls took %v", took)
	}
	must(t, process.Signal(syscall.SIGCONT))
	// The answer was lost, the commit may have happened: once is once. The
	// server may still be busy with what it was sent before.
	again := open(t, url, patient)
	must(t, again.Commit(t.Context(), turn(store.Session{Key: "new"}, "KRN-outage")))
	must(t, again.Append(t.Context(), turn(store.Session{Key: "k"}, "KRN-9").Receipt))
	list, err := again.Recent(t.Context(), "", 10)
	must(t, err)
	if len(list) != 2 {
		t.Errorf("%d receipts, want 2", len(list))
	}
}

func TestServerThatDies(t *testing.T) {
	url, process := storetest.StartRedisProcess(t)
	s := open(t, url, redis.Options{})
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	must(t, process.Signal(os.Kill))
	outage(t, s, url)
	_, err := redis.Open(t.Context(), []string{url}, redis.Options{})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("opening a dead server: %v", err)
	}
	saysNothing(t, err, url)
}

// A full server refuses the whole commit, not a part of it.
func TestServerThatIsFull(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	session, err := s.Session(t.Context(), "k")
	must(t, err)
	before, err := raw.Keys(t.Context(), "*").Result()
	must(t, err)

	must(t, raw.ConfigSet(t.Context(), "maxmemory", "1").Err())
	err = s.Commit(t.Context(), turn(session, "KRN-2"))
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("committing to a full server: %v", err)
	}
	if err := s.Check(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("checking a full server: %v", err)
	}
	after, err := raw.Keys(t.Context(), "*").Result()
	must(t, err)
	if len(after) != len(before) {
		t.Errorf("keys %v, before %v", after, before)
	}

	must(t, raw.ConfigSet(t.Context(), "maxmemory", "0").Err())
	must(t, s.Check(t.Context()))
	must(t, s.Commit(t.Context(), turn(session, "KRN-2")))
	stats, err := s.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != 2 {
		t.Errorf("%d receipts, want 2", stats.TotalReceipts)
	}
}

func TestOpenRefuses(t *testing.T) {
	guarded, _ := storetest.StartRedisProcess(t, "--requirepass", "correct-horse")
	host := strings.TrimPrefix(guarded, "redis://")
	open(t, "redis://:correct-horse@"+host, patient)
	for name, c := range map[string]struct {
		urls []string
		kind error
	}{
		"no url":         {nil, nil},
		"two urls":       {[]string{guarded, guarded}, nil},
		"no password":    {[]string{guarded}, store.ErrUnavailable},
		"wrong password": {[]string{"redis://:battery-staple@" + host}, store.ErrUnavailable},
		"other scheme":   {[]string{"http://someone:battery-staple@" + host}, nil},
		"not a url":      {[]string{"redis://someone:battery-staple@[" + host + "/%zz"}, nil},
		"not a database": {[]string{"redis://someone:battery-staple@" + host + "/first"}, nil},
	} {
		_, err := redis.Open(t.Context(), c.urls, patient)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, secret := range []string{"battery", "someone", "127.0.0.1"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error says %q: %v", name, secret, err)
			}
		}
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
