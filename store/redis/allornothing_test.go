package redis_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// secondTurn writes the first turn of a session and returns the next, which writes to every
// kind of key.
func secondTurn(t *testing.T, s store.Store, raw *client.Client) store.Change {
	t.Helper()
	must(t, raw.FlushAll(t.Context()).Err())
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	session, err := s.Session(t.Context(), "k")
	must(t, err)
	change := turnWithCalls(session, "KRN-2", 2)
	change.Receipt.TurnID, change.Receipt.Summary = "turn-2", []byte(`{}`)
	change.Calls[0].TurnID = "turn-2"
	change.Aliases = []string{"alias"}
	return change
}

// contents returns every key with what it holds.
func contents(t *testing.T, raw *client.Client) map[string]string {
	t.Helper()
	names, err := raw.Keys(t.Context(), "*").Result()
	must(t, err)
	all := make(map[string]string, len(names))
	for _, name := range names {
		all[name], err = raw.Dump(t.Context(), name).Result()
		must(t, err)
	}
	return all
}

// refusedWhole checks that the second turn is refused as often as it is sent, that no part of
// it is written, and that all of it is once the server is mended.
func refusedWhole(t *testing.T, s store.Store, raw *client.Client, change store.Change, kind error, mend func()) {
	t.Helper()
	before := contents(t, raw)
	for range 2 {
		if err := s.Commit(t.Context(), change); !errors.Is(err, kind) {
			t.Errorf("committing: %v", err)
		}
	}
	if after := contents(t, raw); !maps.Equal(after, before) {
		t.Errorf("a part was written: %v, before %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
	mend()
	must(t, s.Commit(t.Context(), change))
	session, err := s.Session(t.Context(), "alias")
	must(t, err)
	if logged := len(storetest.Log(t, s)); session.Turns != 2 || logged != 4 {
		t.Errorf("once mended: %d turns, %d receipts in the log", session.Turns, logged)
	}
}

// A key that is not what it should be fails the whole turn, however often it is repeated: a
// repetition that found the receipt and not the session's state would be a success.
func TestWrongTypesFailTheWholeTurn(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	must(t, s.Commit(t.Context(), secondTurn(t, s, raw)))
	for key := range contents(t, raw) {
		kind, err := raw.Type(t.Context(), key).Result()
		must(t, err)
		if kind == "string" { // a place, which is there or not
			continue
		}
		t.Run(key, func(t *testing.T) {
			change, aside := secondTurn(t, s, raw), "aside"
			was, err := raw.Exists(t.Context(), key).Result()
			must(t, err)
			if was == 1 {
				must(t, raw.Rename(t.Context(), key, aside).Err())
			}
			must(t, raw.Set(t.Context(), key, "x", 0).Err())
			refusedWhole(t, s, raw, change, store.ErrInvalid, func() {
				must(t, raw.Del(t.Context(), key).Err())
				if was == 1 {
					must(t, raw.Rename(t.Context(), aside, key).Err())
				}
			})
		})
	}
}

// A key that all turns share makes the store unhealthy when it is not what it should be.
func TestCheckFindsWrongTypes(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	for _, key := range []string{"receipts", "summaries", "log", "stats", "head"} {
		must(t, raw.Set(t.Context(), "lex:{0}:"+key, "x", 0).Err())
		if err := s.Check(t.Context()); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
		must(t, raw.FlushAll(t.Context()).Err())
		must(t, s.Check(t.Context()))
	}
}

// scriptCommands returns the commands that the scripts run.
func scriptCommands(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	must(t, err)
	command := regexp.MustCompile(`'([A-Z]{3,})'`)
	var names []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		must(t, err)
		for line := range strings.Lines(string(source)) {
			if !strings.Contains(line, "redis.call") {
				continue
			}
			for _, found := range command.FindAllStringSubmatch(line, -1) {
				if found[1] != "TCR" && found[1] != "COUNT" {
					names = append(names, found[1])
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// limitedUser makes a user who may run every command and returns a URL for it.
func limitedUser(t *testing.T, url string, raw *client.Client) string {
	t.Helper()
	must(t, raw.Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">word", "~*", "&*", "+@all").Err())
	return strings.Replace(url, "://", "://limited:word@", 1)
}

// permit says whether the user may run the command.
func permit(t *testing.T, raw *client.Client, sign, command string) {
	t.Helper()
	must(t, raw.Do(t.Context(), "ACL", "SETUSER", "limited", sign+command).Err())
}

// A turn that fails half-way, because the user lost a right, fails again when it is repeated,
// and is completed once the right is back.
func TestATurnThatFailsHalfWayIsNoSuccess(t *testing.T) {
	url := storetest.StartRedis(t)
	raw := connect(t, url)
	s := open(t, limitedUser(t, url, raw), patient)
	for _, command := range []string{"HINCRBY", "EXPIRE", "SADD", "XADD", "HSET", "SET", "SETNX", "HDEL"} {
		t.Run(command, func(t *testing.T) {
			change := secondTurn(t, s, raw)
			permit(t, raw, "-", command)
			for range 2 {
				if err := s.Commit(t.Context(), change); !errors.Is(err, store.ErrRefused) {
					t.Errorf("committing: %v", err)
				}
			}
			session, err := s.Session(t.Context(), "k")
			must(t, err)
			if session.Turns != 1 {
				t.Errorf("the session has moved to turn %d", session.Turns)
			}
			permit(t, raw, "+", command)
			must(t, s.Commit(t.Context(), change))
			session, err = s.Session(t.Context(), "alias")
			must(t, err)
			if session.Turns != 2 {
				t.Errorf("once mended, the session is at turn %d", session.Turns)
			}
		})
	}
}

// The keys that begin with lex: and the commands of the scripts are all that a user needs.
func TestRightsThatAreEnough(t *testing.T) {
	url := storetest.StartRedis(t)
	raw := connect(t, url)
	limited := limitedUser(t, url, raw)
	user := []any{"ACL", "SETUSER", "limited", "resetkeys", "~lex:*", "-@all", "+eval", "+evalsha"}
	for _, command := range scriptCommands(t, "*.lua") {
		user = append(user, "+"+command)
	}
	must(t, raw.Do(t.Context(), user...).Err())
	storetest.Run(t, func(t *testing.T) store.Store {
		must(t, raw.FlushAll(t.Context()).Err())
		return open(t, limited, patient)
	})
}

// A user who may not run a command that some script or method needs opens no store, and one
// who loses the right makes it unhealthy. The error names the command.
func TestMissingRightsAreFoundOut(t *testing.T) {
	url := storetest.StartRedis(t)
	raw := connect(t, url)
	limited := limitedUser(t, url, raw)
	s := open(t, limited, patient)
	commands := scriptCommands(t, "*.lua")
	if len(commands) < 15 {
		t.Fatalf("the scripts run %v", commands)
	}
	for _, command := range commands {
		permit(t, raw, "-", command)
		_, err := redis.Open(t.Context(), []string{limited}, patient)
		for doing, err := range map[string]error{"opening": err, "checking": s.Check(t.Context())} {
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error()+".", command+": NOPERM.") && !strings.HasSuffix(err.Error(), "NOPERM to "+command) {
				t.Errorf("%s without %s: %v", doing, command, err)
			}
		}
		permit(t, raw, "+", command)
		must(t, s.Check(t.Context()))
	}
	if left := contents(t, raw); len(left) > 0 {
		t.Errorf("checking leaves %v", left)
	}
	permit(t, raw, "-", "EVALSHA") // without which no script runs
	if err := s.Check(t.Context()); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "NOPERM to EVALSHA") {
		t.Errorf("checking without scripts: %v", err)
	}
	permit(t, raw, "+", "EVALSHA")
	for _, keys := range [][]string{
		{"~lex:{0}*", "~lex:policy*"},
		{"~lex:{0}*", "~lex:policy*", "~lex:limit:*", "~lex:run:*", "~lex:key:*", "~lex:keys"},
		{"~lex:{0}*", "~lex:policy*", "~lex:limit:*", "~lex:run:*", "~lex:key:*", "~lex:benchmarks"},
		{"~lex:{0}*", "~lex:policy*", "~lex:limit:*", "~lex:run:*", "~lex:key*", "%R~lex:benchmarks"},
		{"~lex:{0}*", "~lex:policy*", "~lex:limit:*", "~lex:key*", "~lex:benchmarks"},
		{"~lex:{0}*", "~lex:limit:*", "~lex:run:*", "~lex:key*", "~lex:benchmarks"},
	} {
		user := []any{"ACL", "SETUSER", "limited", "resetkeys"}
		for _, key := range keys {
			user = append(user, key)
		}
		must(t, raw.Do(t.Context(), user...).Err())
		_, err := redis.Open(t.Context(), []string{limited}, patient)
		for doing, err := range map[string]error{"opening": err, "checking": s.Check(t.Context())} {
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "NOPERM to a key") {
				t.Errorf("%s with %v: %v", doing, keys, err)
			}
		}
	}
	must(t, raw.Do(t.Context(), "ACL", "SETUSER", "limited", "resetkeys", "~other:*").Err())
	if err := s.Check(t.Context()); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "NOPERM to a key") {
		t.Errorf("checking without the keys: %v", err)
	}
}
