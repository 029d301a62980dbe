package redis_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// readOnly is how a verifier opens a store.
var readOnly = redis.Options{Timeout: patient.Timeout, ReadOnly: true}

// Who reads a store needs no right to write to it.
func TestReadOnlyStoreOfAReplica(t *testing.T) {
	url, replica := storetest.StartRedis(t), storetest.StartRedis(t)
	s := open(t, url, patient)
	for n := range 3 {
		must(t, s.Commit(t.Context(), turn(store.Session{Key: fmt.Sprint("k", n)}, fmt.Sprint("KRN-", n))))
	}
	copied := connect(t, replica)
	follow(t, copied, url)
	for start := time.Now(); copied.HGet(t.Context(), "lex:{0}:head", "size").Val() != "3"; {
		if time.Since(start) > time.Minute {
			t.Fatal("the replica does not follow")
		}
	}
	if got := storetest.Log(t, open(t, replica, readOnly)); len(got) != 3 {
		t.Errorf("the replica's log has %d receipts", len(got))
	}
	if _, err := redis.Open(t.Context(), []string{replica}, patient); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a store to write to: %v", err)
	}
}

// What is wrong with a store is said, and not put in order, so that a second reader finds it too.
func TestReadOnlyStoreMendsNothing(t *testing.T) {
	for name, lost := range map[string][]string{"head": {"lex:{0}:head"}, "head and log": {"lex:{0}:head", "lex:{0}:log"}} {
		t.Run(name, func(t *testing.T) {
			url := storetest.StartRedis(t)
			raw := connect(t, url)
			if s := open(t, url, readOnly); len(storetest.Log(t, s)) != 0 || len(dump(t, raw)) != 0 {
				t.Errorf("an empty server holds %v", dump(t, raw))
			}
			must(t, open(t, url, patient).Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
			must(t, raw.Del(t.Context(), lost...).Err())
			before := dump(t, raw)
			_, err := redis.Open(t.Context(), []string{url}, readOnly)
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "the log has lost its head") {
				t.Errorf("opening: %v", err)
			}
			if after := dump(t, raw); !maps.Equal(before, after) {
				t.Errorf("%d keys became %d", len(before), len(after))
			}
		})
	}
}

// dump returns all that a server holds.
func dump(t *testing.T, raw *client.Client) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, key := range raw.Keys(t.Context(), "*").Val() {
		value, err := raw.Dump(t.Context(), key).Result()
		must(t, err)
		all[key] = value
	}
	return all
}
