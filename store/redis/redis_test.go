package redis_test

import (
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
		if err := raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatalf("emptying the server: %v", err)
		}
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
	if err != nil {
		t.Fatalf("parsing the url: %v", err)
	}
	c := client.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
