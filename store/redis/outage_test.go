package redis_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// hasty is for servers that do not come back: no test waits as long for them as a request.
var hasty = redis.Options{Timeout: 250 * time.Millisecond}

// outage checks that every kind of call says that the store is unavailable, in
// time, and does not say where it is.
func outage(t *testing.T, s *redis.Store, server string) {
	t.Helper()
	for name, call := range map[string]func() error{
		"Commit":  func() error { return s.Commit(t.Context(), turn(store.Session{Key: "new"}, "KRN-outage")) },
		"Append":  func() error { return s.Append(t.Context(), turn(store.Session{Key: "k"}, "KRN-9").Receipt) },
		"Consume": func() error { _, err := s.Consume(t.Context(), "subject", "", 1, time.Minute); return err },
		"Session": func() error { _, err := s.Session(t.Context(), "k"); return err },
		"Recent":  func() error { _, err := s.Recent(t.Context(), "", 1); return err },
		"Summary": func() error { _, err := s.Summaries(t.Context(), "", 1); return err },
		"Log":     func() error { _, err := s.Log(t.Context(), 0, 1); return err },
		"Stats":   func() error { _, err := s.Stats(t.Context()); return err },
		"Keys":    func() error { _, err := s.Keys(t.Context()); return err },
		"Publish": func() error { return s.Publish(t.Context(), []store.Benchmark{{}}) },
		"Check":   func() error { return s.Check(t.Context()) },
	} {
		begin := time.Now()
		err := call()
		took := time.Since(begin)
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s during an outage: %v", name, err)
		}
		// The rest is for a busy test machine.
		if took > hasty.Timeout+2*time.Second {
			t.Errorf("%s during an outage took %v", name, took)
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
	s := open(t, url, hasty)
	must(t, process.Signal(syscall.SIGSTOP))
	outage(t, s, url)
	must(t, process.Signal(syscall.SIGCONT))
	// The answer was lost, the commit may have happened: once is once. The
	// server may still be busy with what it was sent before.
	again := open(t, url, patient)
	must(t, again.Commit(t.Context(), turn(store.Session{Key: "new"}, "KRN-outage")))
	must(t, again.Append(t.Context(), turn(store.Session{Key: "k"}, "KRN-9").Receipt))
	list, err := again.Recent(t.Context(), "", 10)
	must(t, err)
	if logged := len(storetest.Log(t, again)); len(list) != 2 || logged != 2 {
		t.Errorf("%d receipts, %d in the log, want 2", len(list), logged)
	}
}

// A server that stands still for a moment, as one does that writes to a slow disk or fails
// over, is no outage: what was asked of it meanwhile is answered then.
func TestServerThatPauses(t *testing.T) {
	const pause = 800 * time.Millisecond
	for _, what := range []string{"WRITE", "ALL"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := storetest.StartRedis(t)
			s, raw := open(t, url, redis.Options{}), connect(t, url)
			must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
			session, err := s.Session(t.Context(), "k")
			must(t, err)
			begin := time.Now()
			must(t, raw.Do(t.Context(), "CLIENT", "PAUSE", pause.Milliseconds(), what).Err())
			var group sync.WaitGroup
			for name, call := range map[string]func() error{
				"Session": func() error { _, err := s.Session(t.Context(), "k"); return err },
				"Consume": func() error { _, err := s.Consume(t.Context(), "subject", "", 1, time.Minute); return err },
				"Commit":  func() error { return s.Commit(t.Context(), turn(session, "KRN-2")) },
				"Append":  func() error { return s.Append(t.Context(), turn(store.Session{Key: "l"}, "KRN-3").Receipt) },
			} {
				group.Go(func() {
					if err := call(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			group.Wait()
			if took := time.Since(begin); took < pause/2 {
				t.Errorf("the server did not pause: %v", took)
			}
			if logged := len(storetest.Log(t, s)); logged != 3 {
				t.Errorf("%d receipts in the log, want 3", logged)
			}
		})
	}
}

// Many requests at once are no outage: one that waits for a connection which others use,
// each for a while, gets its turn.
func TestBurst(t *testing.T) {
	const callers, while = 20, 25 * time.Millisecond // together twice as long as a server may take
	server, err := url.Parse(storetest.StartRedis(t))
	must(t, err)
	far := *server
	far.Host, far.RawQuery = slowly(t, server.Host, while), "pool_size=1"
	s := open(t, far.String(), hasty)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			if _, err := s.Session(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// slowly returns the address of a server whose answers are late.
func slowly(t *testing.T, server string, late time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(far, near)
				_ = far.Close()
			}()
			go func() {
				buffer := make([]byte, 4096)
				for {
					n, err := far.Read(buffer)
					time.Sleep(late)
					if _, werr := near.Write(buffer[:n]); err != nil || werr != nil {
						_ = near.Close()
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestServerThatDies(t *testing.T) {
	url, process := storetest.StartRedisProcess(t)
	s := open(t, url, hasty)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	must(t, process.Signal(os.Kill))
	outage(t, s, url)
	_, err := redis.Open(t.Context(), []string{url}, hasty)
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
	err = s.Commit(t.Context(), turnWithCalls(session, "KRN-2", 3))
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
	must(t, s.Commit(t.Context(), turnWithCalls(session, "KRN-2", 3)))
	stats, err := s.Stats(t.Context())
	must(t, err)
	if logged := len(storetest.Log(t, s)); stats.TotalReceipts != 5 || logged != 5 {
		t.Errorf("%d receipts, %d in the log, want 5", stats.TotalReceipts, logged)
	}
}

// A server fills up to where the few bytes of a check still fit and a turn does not. Who has
// seen a turn refused says so until there is room for one again.
func TestServerWithoutRoomForATurn(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	leave := func(room int64) {
		t.Helper()
		must(t, raw.ConfigSet(t.Context(), "maxmemory", strconv.FormatInt(usedMemory(t, raw)+room, 10)).Err())
	}
	const little, enough = 128 << 10, 8 << 20 // a turn of these fits into little
	refuse := func() {
		t.Helper()
		must(t, raw.ConfigSet(t.Context(), "maxmemory", "1").Err())
		if err := s.Commit(t.Context(), turn(store.Session{Key: "l"}, "KRN-2")); !errors.Is(err, store.ErrRefused) {
			t.Fatalf("committing to a full server: %v", err)
		}
	}

	leave(little)
	must(t, s.Check(t.Context())) // no turn has failed
	refuse()
	for range 3 {
		leave(little)
		if err := s.Check(t.Context()); !errors.Is(err, store.ErrRefused) {
			t.Errorf("checking after a turn was refused: %v", err)
		}
	}
	leave(enough)
	must(t, s.Check(t.Context()))
	leave(little)
	must(t, s.Check(t.Context())) // no turn has failed since there was room

	refuse()
	leave(little)
	if err := s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-3")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("committing a turn that came too late: %v", err)
	}
	leave(little)
	if err := s.Check(t.Context()); !errors.Is(err, store.ErrRefused) {
		t.Errorf("checking after a turn that wrote nothing: %v", err)
	}
	leave(little)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "m"}, "KRN-4")))
	leave(little)
	must(t, s.Check(t.Context())) // turns are written
}

func usedMemory(t *testing.T, raw *client.Client) int64 {
	t.Helper()
	info, err := raw.InfoMap(t.Context(), "memory").Result()
	must(t, err)
	used, err := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	must(t, err)
	return used
}

// A server that is killed and started again on its log has every turn that it
// acknowledged, and of each turn the receipt with all of its calls or nothing.
func TestKilledServerTearsNoTurn(t *testing.T) {
	const sessions, calls = 8, 5
	folder := t.TempDir()
	log := []string{"--dir", folder, "--appendonly", "yes", "--appendfsync", "always"}
	url, process := storetest.StartRedisProcess(t, log...)
	s := open(t, url, redis.Options{Timeout: time.Second})
	acknowledged := make([]int, sessions) // turns
	var group sync.WaitGroup
	for c := range sessions {
		group.Go(func() {
			session := store.Session{Key: fmt.Sprint("k", c)}
			for {
				if err := s.Commit(t.Context(), turnWithCalls(session, fmt.Sprintf("KRN-%d-%d", c, session.Turns), calls)); err != nil {
					return
				}
				acknowledged[c]++
				if c == 0 && acknowledged[c] == 40 {
					_ = process.Kill()
				}
				var err error
				if session, err = s.Session(t.Context(), session.Key); err != nil {
					return
				}
			}
		})
	}
	group.Wait()

	url, _ = storetest.StartRedisProcess(t, log...)
	s = open(t, url, patient)
	total := 0
	for c := range sessions {
		session, err := s.Session(t.Context(), fmt.Sprint("k", c))
		if errors.Is(err, store.ErrNotFound) && acknowledged[c] == 0 {
			continue
		}
		must(t, err)
		length := 0
		for id := session.Head; id != ""; length++ {
			r, err := s.Receipt(t.Context(), id)
			must(t, err)
			var record struct {
				Prev string `json:"prev"`
			}
			must(t, json.Unmarshal(r.JSON, &record))
			id = record.Prev
		}
		if length != session.Turns*(1+calls) || session.Turns < acknowledged[c] {
			t.Errorf("session %d has %d turns and %d receipts; %d turns were acknowledged", c, session.Turns, length, acknowledged[c])
		}
		total += length
	}
	stats, err := s.Stats(t.Context())
	must(t, err)
	if logged := len(storetest.Log(t, s)); stats.TotalReceipts != total || logged != total || total < 40*(1+calls) {
		t.Errorf("%d receipts in chains, %d in the statistics, %d in the log", total, stats.TotalReceipts, logged)
	}
}

// Whoever configures a store learns what is wrong, in words that are ours.
func TestOpenSaysWhy(t *testing.T) {
	guarded, _ := storetest.StartRedisProcess(t, "--requirepass", "correct-horse")
	secure := httptest.NewTLSServer(nil) // with a certificate for 127.0.0.1 that nobody trusts
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer secure.Close()
	port := secure.Listener.Addr().(*net.TCPAddr).Port
	shuts := func(answer string) string { // the address of a server that says this and ends the connection
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}()
		return listener.Addr().String()
	}
	for server, want := range map[string]string{
		guarded: "the server answered NOAUTH",
		"redis://:battery-staple@" + strings.TrimPrefix(guarded, "redis://"): "the server answered WRONGPASS",
		"redis://someone:battery-staple@no..host":                            "the host name was not found",
		"redis://127.0.0.1:1": "connection refused",
		fmt.Sprintf("rediss://someone:battery-staple@127.0.0.1:%d", port): "the certificate of the server is from an authority that is not trusted here",
		fmt.Sprintf("rediss://someone:battery-staple@localhost:%d", port): "the certificate of the server is for another host name",
		fmt.Sprintf("redis://someone:battery-staple@127.0.0.1:%d", port):  "does it want TLS (rediss://)?",
		"rediss://" + shuts("-ERR not here\r\n"):                          "the server does not speak TLS",
		"rediss://" + shuts("\x15\x03\x03\x00\x02\x02\x28"):               "the server refused the TLS handshake",
		"rediss://" + shuts(""):                                           "the server closed the connection",
	} {
		_, err := redis.Open(t.Context(), []string{server}, redis.Options{Timeout: 2 * time.Second})
		if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", server, err, want)
		}
		saysNothing(t, err, server)
	}
}

// What a server answers is said as far as it has a fixed form. What stands before a server, such
// as a proxy, may answer with anything, the address of the server included.
func TestErrorsSayNothingOfAnAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		"ERR of 10.1.2.3":     "the server answered ERR",
		"CLUSTERDOWN someone": "the server answered CLUSTERDOWN",
		"Host10 is gone":      "the server answered an error",
		"AT10.1.2.3 gone":     "the server answered an error",
		"USER_someone gone":   "the server answered an error",
		"":                    "the server answered ",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					lines := bufio.NewScanner(conn)
					for lines.Scan() {
						if strings.HasPrefix(lines.Text(), "*") { // as every command begins
							_, _ = io.WriteString(conn, "-"+answer+"\r\n")
						}
					}
				}()
			}
		}()
		_, err = redis.Open(t.Context(), []string{"redis://" + listener.Addr().String()}, patient)
		if !errors.Is(err, store.ErrRefused) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", answer, err, want)
		}
	}
}

// A server that makes room by throwing away what it likes would throw receipts away, and is no
// store for them. One that only forgets what has an end, or is never full, keeps them.
func TestServerThatEvictsReceipts(t *testing.T) {
	for _, c := range []struct {
		memory, policy string
		evicts         bool
	}{
		{"100mb", "allkeys-lru", true},
		{"100mb", "allkeys-random", true},
		{"100mb", "volatile-ttl", false},
		{"100mb", "noeviction", false},
		{"0", "allkeys-lru", false},
	} {
		url := storetest.StartRedis(t)
		raw := connect(t, url)
		must(t, raw.ConfigSet(t.Context(), "maxmemory", c.memory).Err())
		must(t, raw.ConfigSet(t.Context(), "maxmemory-policy", c.policy).Err())
		s, err := redis.Open(t.Context(), []string{url}, patient)
		if refused := errors.Is(err, store.ErrRefused) && strings.HasSuffix(err.Error(), "set its maxmemory-policy to noeviction"); refused != c.evicts || !refused && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			must(t, s.Close())
		}
		reader, err := redis.Open(t.Context(), []string{url}, redis.Options{Timeout: patient.Timeout, ReadOnly: true})
		must(t, err) // whoever only reads may look
		must(t, reader.Close())
		limited := limitedUser(t, url, raw)
		permit(t, raw, "-", "info")
		if s, err = redis.Open(t.Context(), []string{limited}, patient); err != nil {
			t.Errorf("%+v: without the right to ask: %v", c, err)
		} else {
			must(t, s.Close())
		}
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
