package redis_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// However many replicas write at once, and repeat what they wrote, there is one log.
func TestReplicasShareOneLog(t *testing.T) {
	url := storetest.StartRedis(t)
	const replicas, sessions, turnsEach = 3, 12, 8
	stores := make([]*redis.Store, replicas)
	for i := range stores {
		stores[i] = open(t, url, patient)
	}
	var group sync.WaitGroup
	for c := range sessions {
		group.Go(func() {
			session := store.Session{Key: fmt.Sprint("k", c)}
			for i := range turnsEach {
				change := turnWithCalls(session, fmt.Sprintf("KRN-%d-%d", c, i), i%3)
				for _, s := range stores { // the others repeat it
					if err := s.Commit(t.Context(), change); err != nil {
						t.Errorf("committing: %v", err)
						return
					}
				}
				session, _ = stores[c%replicas].Session(t.Context(), session.Key)
			}
		})
	}
	group.Wait()
	want := sessions * (turnsEach + 0 + 1 + 2 + 0 + 1 + 2 + 0 + 1)
	for i, s := range stores {
		if got := len(storetest.Log(t, s)); got != want {
			t.Errorf("replica %d reads a log of %d receipts, want %d", i, got, want)
		}
	}
}

// forgetLog takes away what a version that knew of no log did not write. It leaves the
// first of the receipts in the log if half is set, as a start that was cut off does.
func forgetLog(t *testing.T, url string, half bool) {
	t.Helper()
	raw := connect(t, url)
	entries, err := raw.XRange(t.Context(), "lex:{0}:receipts", "-", "+").Result()
	must(t, err)
	must(t, raw.Del(t.Context(), "lex:{0}:receipts", "lex:{0}:head", "lex:{0}:log").Err())
	for i, e := range entries {
		delete(e.Values, "seq")
		delete(e.Values, "log_prev")
		must(t, raw.Do(t.Context(), addition("lex:{0}:receipts", e.ID, e.Values)...).Err())
		if half && i == 0 {
			must(t, raw.Do(t.Context(), "XADD", "lex:{0}:log", "1-0", "at", e.ID).Err())
		}
	}
}

func addition(key, id string, values map[string]any) []any {
	args := []any{"XADD", key, id}
	for name, value := range values {
		args = append(args, name, value)
	}
	return args
}

// Receipts that were written before there was a log are its first ones, however many
// replicas start at once.
func TestLogBeginsWithOlderReceipts(t *testing.T) {
	const old, replicas = 250, 4
	for _, half := range []bool{false, true} {
		url := storetest.StartRedis(t)
		s := open(t, url, patient)
		for i := range old {
			must(t, s.Append(t.Context(), turn(store.Session{Key: "k"}, fmt.Sprint("KRN-", i+1)).Receipt))
		}
		forgetLog(t, url, half)
		var group sync.WaitGroup
		for i := range replicas {
			group.Go(func() {
				s, err := redis.Open(t.Context(), []string{url}, patient)
				if err != nil {
					t.Errorf("opening: %v", err)
					return
				}
				if err := s.Append(t.Context(), turn(store.Session{Key: "k"}, fmt.Sprint("KRN-new-", i)).Receipt); err != nil {
					t.Errorf("appending: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Errorf("closing: %v", err)
				}
			})
		}
		group.Wait()
		log, err := s.Log(t.Context(), 0, 1000)
		must(t, err)
		if len(log) != old+replicas {
			t.Fatalf("the log has %d receipts, want %d", len(log), old+replicas)
		}
		for i, r := range log {
			inOrder := i < old && r.ID == fmt.Sprint("KRN-", i+1) || i >= old && strings.HasPrefix(r.ID, "KRN-new-")
			if !inOrder || r.Seq != uint64(i+1) || (len(r.LogPrev) == 64) != (i > old) {
				t.Errorf("entry %d is %s with the number %d and the link %q", i, r.ID, r.Seq, r.LogPrev)
			}
		}
		page, err := s.Log(t.Context(), old-2, 4)
		must(t, err)
		if len(page) != 4 || page[0].Seq != old-1 || page[3].Seq != old+2 {
			t.Errorf("across the beginning: %+v", page)
		}
	}
}

// Whoever takes receipts away leaves a gap, however long, and no early end.
func TestLogShowsAGap(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	for i := range 40 {
		must(t, s.Append(t.Context(), turn(store.Session{Key: "k"}, fmt.Sprint("KRN-", i+1)).Receipt))
	}
	entries, err := raw.XRange(t.Context(), "lex:{0}:receipts", "-", "+").Result()
	must(t, err)
	for _, e := range entries[10:30] {
		must(t, raw.XDel(t.Context(), "lex:{0}:receipts", e.ID).Err())
	}
	for _, limit := range []int{1, 7, 100} {
		if log := logInPages(t, s, limit); len(log) != 20 || log[9].Seq != 10 || log[10].Seq != 31 {
			t.Errorf("pages of %d: %v", limit, log)
		}
	}
	if r, err := s.Receipt(t.Context(), "KRN-20"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that is gone: %+v %v", r, err)
	}
}

// logInPages reads the log in pages of at most limit receipts.
func logInPages(t *testing.T, s *redis.Store, limit int) (log []store.Receipt) {
	t.Helper()
	for after := uint64(0); ; {
		page, err := s.Log(t.Context(), after, limit)
		must(t, err)
		if len(page) == 0 {
			return log
		}
		log, after = append(log, page...), page[len(page)-1].Seq
	}
}

// A log that cannot be read is an error and not the end of one.
func TestLogThatCannotBeRead(t *testing.T) {
	for name, damage := range map[string]func(raw *client.Client) error{
		"a size that is no number":    func(raw *client.Client) error { return raw.HSet(t.Context(), "lex:{0}:head", "size", "two").Err() },
		"receipts of another type":    func(raw *client.Client) error { return raw.Set(t.Context(), "lex:{0}:receipts", "", 0).Err() },
		"places in it of another one": func(raw *client.Client) error { return raw.Set(t.Context(), "lex:{0}:log", "", 0).Err() },
	} {
		url := storetest.StartRedis(t)
		s := open(t, url, patient)
		must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
		must(t, damage(connect(t, url)))
		if log, err := s.Log(t.Context(), 0, 10); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v %v", name, log, err)
		}
	}
}

// A number that is none is damage, and no session that begins anew and no sum of nothing.
func TestNumbersThatAreNone(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	must(t, raw.HSet(t.Context(), "lex:{0}:session:k", "version", "two").Err())
	if session, err := s.Session(t.Context(), "k"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a version: %+v %v", session, err)
	}
	for field, value := range map[string]string{"receipts": "two", "level:two": "2"} {
		was, err := raw.HGetAll(t.Context(), "lex:{0}:stats").Result()
		must(t, err)
		must(t, raw.HSet(t.Context(), "lex:{0}:stats", field, value).Err())
		if sum, err := s.Stats(t.Context()); err == nil {
			t.Errorf("%s of the statistics: %+v", field, sum)
		}
		must(t, raw.HDel(t.Context(), "lex:{0}:stats", field).Err())
		must(t, raw.HSet(t.Context(), "lex:{0}:stats", was).Err())
	}
}

// However the end of the log is lost, the log does not end early: its last place, which the
// head or the log itself still names, is there as a damaged receipt.
func TestLogShowsALostEnd(t *testing.T) {
	const receipts, log, head = "lex:{0}:receipts", "lex:{0}:log", "lex:{0}:head"
	for name, c := range map[string]struct {
		lose func(raw *client.Client) error
		want []uint64 // the places that are left; of the last one the receipt is gone
	}{
		"the receipts":          {func(raw *client.Client) error { return raw.Del(t.Context(), receipts).Err() }, []uint64{6}},
		"the log":               {func(raw *client.Client) error { return raw.Del(t.Context(), log).Err() }, []uint64{6}},
		"both":                  {func(raw *client.Client) error { return raw.Del(t.Context(), receipts, log).Err() }, []uint64{6}},
		"the receipts and head": {func(raw *client.Client) error { return raw.Del(t.Context(), receipts, head).Err() }, []uint64{6}},
		"the last receipt": {func(raw *client.Client) error {
			last := raw.XRevRangeN(t.Context(), receipts, "+", "-", 1).Val()
			return raw.XDel(t.Context(), receipts, last[0].ID).Err()
		}, []uint64{1, 2, 3, 4, 5, 6}},
		"the last places": {func(raw *client.Client) error {
			return raw.XDel(t.Context(), log, "4-0", "5-0", "6-0").Err()
		}, []uint64{1, 2, 3, 6}},
	} {
		url := storetest.StartRedis(t)
		s, raw := open(t, url, patient), connect(t, url)
		for i := range 6 {
			must(t, s.Append(t.Context(), turn(store.Session{Key: "k"}, fmt.Sprint("KRN-", i+1)).Receipt))
		}
		must(t, c.lose(raw))
		for _, limit := range []int{1, 2, 3, 100} {
			var places []uint64
			for after, ended := uint64(0), false; !ended; {
				page, err := s.Log(t.Context(), after, limit)
				must(t, err)
				for _, r := range page {
					if after = r.Seq; (len(r.JSON) == 0) != (after == 6) {
						t.Errorf("%s: receipt %d is %+v", name, after, r)
					}
					places = append(places, after)
				}
				ended = len(page) == 0
			}
			if !slices.Equal(places, c.want) {
				t.Errorf("%s, in pages of %d: %v, want %v", name, limit, places, c.want)
			}
		}
	}
}

// One damaged receipt hides no other: lists and the log have its place, and the others whole.
func TestListsOfADamagedReceipt(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	for i := range 3 {
		must(t, s.Append(t.Context(), store.Receipt{ID: fmt.Sprint("KRN-", i), Kind: store.KindText, JSON: []byte("{}")}))
	}
	entries, err := raw.XRange(t.Context(), "lex:{0}:receipts", "-", "+").Result()
	must(t, err)
	must(t, raw.Del(t.Context(), "lex:{0}:receipts").Err())
	for i, e := range entries {
		if i == 1 {
			e.Values = map[string]any{"id": "KRN-1", "turn": "x", "ts": "", "m_after": "NaN?", "seq": "-"}
		}
		must(t, raw.Do(t.Context(), addition("lex:{0}:receipts", e.ID, e.Values)...).Err())
	}
	recent, err := s.Recent(t.Context(), "", 9)
	must(t, err)
	log, err := s.Log(t.Context(), 0, 9)
	must(t, err)
	if len(recent) != 3 || recent[0].ID != "KRN-2" || recent[1].Cursor == "" || len(recent[1].JSON) != 0 || string(recent[2].JSON) != "{}" {
		t.Errorf("recent: %+v", recent)
	}
	if len(log) != 3 || log[1].Seq != 2 || len(log[1].JSON) != 0 || log[2].ID != "KRN-2" {
		t.Errorf("log: %+v", log)
	}
	if _, err := s.Receipt(t.Context(), "KRN-1"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("reading it alone: %v", err)
	}
}

// An id that leads to another receipt is not answered with it.
func TestIDsThatMislead(t *testing.T) {
	url := storetest.StartRedis(t)
	s := open(t, url, redis.Options{})
	first, second := turn(store.Session{Key: "k"}, "KRN-A"), turn(store.Session{Key: "l"}, "KRN-B")
	first.Receipt.TurnID, second.Receipt.TurnID = "turn-A", "turn-B"
	must(t, s.Commit(t.Context(), first))
	must(t, s.Commit(t.Context(), second))
	db := connect(t, url)
	for _, prefix := range []string{"lex:{0}:receipt:", "lex:{0}:turn:"} {
		keys, err := db.Keys(t.Context(), prefix+"*").Result()
		must(t, err)
		if len(keys) != 2 {
			t.Fatalf("%s: %v", prefix, keys)
		}
		other, err := db.Get(t.Context(), keys[1]).Result()
		must(t, err)
		must(t, db.Set(t.Context(), keys[0], other, 0).Err())
		id := strings.TrimPrefix(keys[0], prefix)
		find := s.Receipt
		if prefix == "lex:{0}:turn:" {
			find = s.ReceiptOfTurn
		}
		if _, err := find(t.Context(), id); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", keys[0], err)
		}
		if _, err := find(t.Context(), strings.TrimPrefix(keys[1], prefix)); err != nil {
			t.Errorf("%s: %v", keys[1], err)
		}
	}
}

// Without its head, or with an older one, the log would give numbers a second time. Nothing
// is written then, and whoever asks is told. A start finds a head that is gone, and makes a log that
// is gone with it of the receipts.
func TestALostHeadFailsTheWholeTurn(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	for name, lose := range map[string]func(){
		"gone":  func() { must(t, raw.Del(t.Context(), "lex:{0}:head").Err()) },
		"older": func() { must(t, raw.HSet(t.Context(), "lex:{0}:head", "size", 0, "sha256", "").Err()) },
		"gone with the log": func() {
			must(t, raw.Rename(t.Context(), "lex:{0}:log", "lost").Err())
			must(t, raw.Del(t.Context(), "lex:{0}:head").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := secondTurn(t, s, raw)
			was, err := raw.HGetAll(t.Context(), "lex:{0}:head").Result()
			must(t, err)
			lose()
			if err := s.Check(t.Context()); !errors.Is(err, store.ErrRefused) {
				t.Errorf("checking: %v", err)
			}
			refusedWhole(t, s, raw, change, store.ErrRefused, func() {
				must(t, raw.HSet(t.Context(), "lex:{0}:head", was).Err())
				_ = raw.Rename(t.Context(), "lost", "lex:{0}:log").Err() // there is one if the log was lost
			})
			must(t, s.Check(t.Context()))
		})
	}
	must(t, raw.Del(t.Context(), "lex:{0}:head", "lex:{0}:log").Err())
	again := open(t, url, patient)
	must(t, again.Append(t.Context(), turn(store.Session{Key: "k"}, "KRN-new").Receipt))
	log, err := again.Log(t.Context(), 0, 10)
	must(t, err)
	if len(log) != 5 || log[4].Seq != 5 || log[4].LogPrev != "" {
		t.Errorf("after a start the log is %+v", log)
	}
	// A head that is behind by less than all is found as well, before anything is written.
	must(t, raw.HSet(t.Context(), "lex:{0}:head", "size", 3).Err())
	if err := again.Check(t.Context()); !errors.Is(err, store.ErrRefused) {
		t.Errorf("checking an older head: %v", err)
	}
	before := contents(t, raw)
	if err := again.Append(t.Context(), turn(store.Session{Key: "k"}, "KRN-newer").Receipt); !errors.Is(err, store.ErrRefused) {
		t.Errorf("appending behind an older head: %v", err)
	}
	if after := contents(t, raw); !maps.Equal(after, before) {
		t.Errorf("a part was written: %v", slices.Sorted(maps.Keys(after)))
	}
}

// What stands in the stream of receipts and in no log hides none of those that are in it.
func TestStrayReceiptsHideNone(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	const receipts = 6
	for i := range receipts {
		must(t, s.Append(t.Context(), turn(store.Session{Key: "k"}, fmt.Sprint("KRN-", i)).Receipt))
		for range 2 {
			must(t, raw.Do(t.Context(), "XADD", "lex:{0}:receipts", "*", "id", "KRN-stray").Err())
		}
	}
	for name, s := range map[string]*redis.Store{"opened before": s, "opened after": open(t, url, patient)} {
		for limit := 1; limit <= receipts+1; limit++ {
			var ids []string
			for _, r := range logInPages(t, s, limit) {
				ids = append(ids, r.ID)
			}
			if got := strings.Join(ids, " "); got != "KRN-0 KRN-1 KRN-2 KRN-3 KRN-4 KRN-5" {
				t.Errorf("%s, %d at a time: %s", name, limit, got)
			}
		}
	}
}

// Where a replica has taken over that was behind, a turn that was computed before does not
// overwrite one that came after.
func TestATurnFromBeforeAFailoverConflicts(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	must(t, s.Commit(t.Context(), turn(store.Session{Key: "k"}, "KRN-1")))
	behind := contents(t, raw)
	first, err := s.Session(t.Context(), "k")
	must(t, err)
	must(t, s.Commit(t.Context(), turn(first, "KRN-2")))
	inFlight, err := s.Session(t.Context(), "k")
	must(t, err)

	must(t, raw.FlushAll(t.Context()).Err())
	for name, dump := range behind {
		must(t, raw.Restore(t.Context(), name, 0, dump).Err())
	}
	must(t, s.Commit(t.Context(), turn(first, "KRN-refusal")))
	if err := s.Commit(t.Context(), turn(inFlight, "KRN-3")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the turn from before: %v", err)
	}
}

// Erasing a session erases what is left of it where Redis has lost a part.
func TestErasingWhatIsLeft(t *testing.T) {
	url := storetest.StartRedis(t)
	s, raw := open(t, url, patient), connect(t, url)
	for name, c := range map[string]struct{ lost, erased string }{
		"the set of the family":              {"lex:{0}:family:KRN-1", "k"},
		"the set of the family, by an alias": {"lex:{0}:family:KRN-1", "alias"},
		"what an alias leads to":             {"lex:{0}:session:k", "alias"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, s.Commit(t.Context(), secondTurn(t, s, raw)))
			must(t, raw.Del(t.Context(), c.lost).Err())
			must(t, s.Erase(t.Context(), c.erased))
			for _, key := range []string{"k", c.erased} {
				if _, err := s.Session(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("session %s: %v", key, err)
				}
			}
			left, err := raw.Keys(t.Context(), "lex:{0}:session:"+c.erased).Result()
			must(t, err)
			if len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}
