package redis_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// A server that has as many clients as it takes says so to a new connection and closes it. The
// operator learns of it in these words, and the connections that there are go on.
func TestServerWithoutRoomForClients(t *testing.T) {
	server := storetest.StartRedis(t)
	s := open(t, server, patient)
	raw := connect(t, server)
	before := clients(t, raw)
	must(t, raw.ConfigSet(t.Context(), "maxclients", fmt.Sprint(len(before))).Err())

	const full = "the server has no room for another client (maxclients)"
	if _, err := redis.Open(t.Context(), []string{server}, patient); !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), full) {
		t.Errorf("opening: %v", err)
	}
	var all sync.WaitGroup
	failures := make(chan error, 64)
	for range cap(failures) { // more than there are connections
		all.Go(func() {
			if _, err := s.Session(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
				failures <- err
			}
		})
	}
	all.Wait()
	close(failures)
	if len(failures) == 0 {
		t.Fatal("no call needed another connection")
	}
	for err := range failures {
		if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), full) {
			t.Errorf("reading: %v", err)
		}
	}
	if _, err := s.Session(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("over the connection that there is: %v", err)
	}
	if after := clients(t, raw); !slices.Equal(before, after) {
		t.Errorf("the connections were %v, and are %v", before, after)
	}
}

// clients are the ids of the connections that a server has.
func clients(t *testing.T, raw *client.Client) (ids []string) {
	t.Helper()
	list, err := raw.ClientList(t.Context()).Result()
	must(t, err)
	for line := range strings.Lines(list) {
		id, _, _ := strings.Cut(line, " ")
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
