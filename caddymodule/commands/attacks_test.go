package commands_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	client "github.com/redis/go-redis/v9"
	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/storetest"
)

// A row is a receipt as somebody finds it who may write the store and goes around Lex.
type row struct {
	seq     uint64
	of      uint64 // how many receipts the store is made to say that there are, 0 to leave it
	prev    string // the link in the log
	id      string
	session string // key
	record  []byte
	fields  map[string]any // what the store keeps beside them
}

// An attacked store is a store that was filled by a proxy and then closed.
type attacked interface {
	place() string // for --store
	restore(t *testing.T)
	rows(t *testing.T) []row
	// write makes these the receipts of the store, in this order.
	write(t *testing.T, rows []row)
	// states changes the states of all sessions.
	states(t *testing.T, change func(state []byte) []byte)
}

func canonicalOf(t *testing.T, receipt kernel.Receipt) []byte {
	t.Helper()
	text, err := receipt.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// mended gives the rows numbers and links as the store would have, which everybody can
// compute, and the log its size.
func mended(rows []row) []row {
	prev := ""
	for i := range rows {
		rows[i].seq, rows[i].of, rows[i].prev = uint64(i+1), uint64(len(rows)), prev
		prev = fmt.Sprintf("%x", sha256.Sum256(rows[i].record))
	}
	return rows
}

// madeUp returns a receipt of a session that there never was, like the first one of another.
func madeUp(t *testing.T, like row) row {
	receipt, err := kernel.ParseReceipt(like.record)
	if err != nil {
		t.Fatal(err)
	}
	receipt.SessionID = "nobody"
	like.session = ""
	return sealed(t, like, receipt)
}

// doubled returns a receipt that follows the same one as another, as a branch of a resent
// conversation would or as no receipt may.
func doubled(t *testing.T, like row, resent bool) row {
	receipt, err := kernel.ParseReceipt(like.record)
	if err != nil {
		t.Fatal(err)
	}
	receipt.Model, receipt.Resent = "another-model", resent
	return sealed(t, like, receipt)
}

// sealed returns the row with another receipt.
func sealed(t *testing.T, r row, receipt kernel.Receipt) row {
	t.Helper()
	_, err := receipt.Seal()
	if err == nil {
		r.record, err = receipt.JSON()
	}
	if err != nil {
		t.Fatal(err)
	}
	r.id = receipt.ID
	return r
}

// forged changes a receipt and seals it anew. The session that names it as its head, by
// its id or its whole hash, can then be made to name the new one.
func forged(t *testing.T, r *row) (rename func(state []byte) []byte) {
	t.Helper()
	receipt, err := kernel.ParseReceipt(r.record)
	if err != nil {
		t.Fatal(err)
	}
	receipt.Model = "another-model"
	before := regexp.MustCompile(r.id + "([0-9A-F]{32})?")
	*r = sealed(t, *r, receipt)
	hash := sha256.Sum256(canonicalOf(t, receipt))
	after := []byte(fmt.Sprintf("%s%X", r.id[:4], hash))
	return func(state []byte) []byte {
		return before.ReplaceAllFunc(state, func(old []byte) []byte { return after[:len(old)] })
	}
}

// The places of the receipts that fill writes: three turns of a, two of b, one of c, and
// one of d that came after the head was signed.
const (
	a1, b1, a2, b2, a3, c1, d1 = 0, 1, 2, 3, 4, 5, 6
)

func without(rows []row, places ...int) []row {
	var left []row
	for i, r := range rows {
		if !slices.Contains(places, i) {
			left = append(left, r)
		}
	}
	return left
}

// What each check shows of what somebody did who may write the store. The checks are the
// record alone (its form and its id), its chain with the heads of the sessions, the log, and a
// signed head that was kept elsewhere.
func TestAttacksBehindTheStore(t *testing.T) {
	attacks := []struct {
		name   string
		attack func(t *testing.T, s attacked, rows []row) []row
		shows  string
	}{
		{"nothing", func(_ *testing.T, _ attacked, rows []row) []row { return rows }, ""},
		{"nothing, and written again", func(_ *testing.T, _ attacked, rows []row) []row { return mended(rows) }, ""},
		{"a record changed", func(_ *testing.T, _ attacked, rows []row) []row {
			rows[b2].record = bytes.Replace(rows[b2].record, []byte(`"version":"`), []byte(`"version":"x`), 1)
			return rows
		}, "record log since"},
		{"a record changed and sealed", func(t *testing.T, _ attacked, rows []row) []row {
			forged(t, &rows[a2])
			return rows
		}, "chain log since"},
		{"a session's last record changed and sealed", func(t *testing.T, _ attacked, rows []row) []row {
			forged(t, &rows[b2])
			return rows
		}, "chain log since"},
		{"and the session's head", func(t *testing.T, s attacked, rows []row) []row {
			s.states(t, forged(t, &rows[b2]))
			return rows
		}, "log since"},
		{"and the links of the log", func(t *testing.T, s attacked, rows []row) []row {
			s.states(t, forged(t, &rows[b2]))
			return mended(rows)
		}, "since"},
		{"the log's last record changed, and the session's head", func(t *testing.T, s attacked, rows []row) []row {
			s.states(t, forged(t, &rows[d1]))
			return rows
		}, ""}, // it came after the signed head
		{"a turn dropped", func(_ *testing.T, _ attacked, rows []row) []row { return without(rows, a2) }, "chain log since"},
		{"a session's last turn dropped", func(_ *testing.T, _ attacked, rows []row) []row { return without(rows, a3) }, "chain log since"},
		{"and the log mended", func(_ *testing.T, _ attacked, rows []row) []row { return mended(without(rows, a3)) }, "chain since"},
		{"a session dropped", func(_ *testing.T, _ attacked, rows []row) []row { return without(rows, b1, b2) }, "log since"},
		{"the first session dropped", func(_ *testing.T, _ attacked, rows []row) []row { return without(rows, a1, a2, a3) }, "log since"},
		{"a session dropped and the log mended", func(_ *testing.T, _ attacked, rows []row) []row { return mended(without(rows, b1, b2)) }, "since"},
		{"a session dropped and all links removed", func(_ *testing.T, _ attacked, rows []row) []row {
			rows = mended(without(rows, b1, b2))
			for i := range rows {
				rows[i].prev = ""
			}
			return rows
		}, "since"},
		{"the tail cut", func(_ *testing.T, _ attacked, rows []row) []row { return without(rows, c1, d1) }, "log since"},
		{"the tail cut and the log mended", func(_ *testing.T, _ attacked, rows []row) []row { return mended(without(rows, c1, d1)) }, "since"},
		{"the tail cut after the head", func(_ *testing.T, _ attacked, rows []row) []row { return without(rows, d1) }, "log"},
		{"the tail cut after the head and the log mended", func(_ *testing.T, _ attacked, rows []row) []row { return mended(without(rows, d1)) }, ""},
		{"everything dropped", func(*testing.T, attacked, []row) []row { return nil }, "log since"},
		{"one put in", func(t *testing.T, _ attacked, rows []row) []row {
			rows = slices.Insert(rows, b2, madeUp(t, rows[d1]))
			for i := range rows {
				rows[i].seq = uint64(i + 1)
			}
			return rows
		}, "log since"},
		{"one put in and the log mended", func(t *testing.T, _ attacked, rows []row) []row {
			return mended(slices.Insert(rows, b2, madeUp(t, rows[d1])))
		}, "since"},
		{"one put in at the end", func(t *testing.T, _ attacked, rows []row) []row {
			return mended(append(rows, madeUp(t, rows[d1])))
		}, ""}, // whoever may write the store may append to it
		{"one twice", func(_ *testing.T, _ attacked, rows []row) []row {
			return mended(slices.Insert(rows, c1, rows[a3]))
		}, "chain since"},
		{"a turn put in beside another, and the log mended", func(t *testing.T, _ attacked, rows []row) []row {
			return mended(slices.Insert(rows, b2, doubled(t, rows[a2], false)))
		}, "chain since"},
		{"a turn put in as a branch, and the log mended", func(t *testing.T, _ attacked, rows []row) []row {
			return mended(slices.Insert(rows, b2, doubled(t, rows[a2], true)))
		}, "chain since"},
		{"two swapped", func(_ *testing.T, _ attacked, rows []row) []row {
			rows[b1], rows[a2] = rows[a2], rows[b1]
			rows[b1].seq, rows[b1].prev, rows[a2].seq, rows[a2].prev = rows[a2].seq, rows[a2].prev, rows[b1].seq, rows[b1].prev
			return rows
		}, "log since"},
		{"two swapped and the log mended", func(_ *testing.T, _ attacked, rows []row) []row {
			rows[b1], rows[a2] = rows[a2], rows[b1]
			return mended(rows)
		}, "since"},
		{"two of a session swapped and the log mended", func(_ *testing.T, _ attacked, rows []row) []row {
			rows[b1], rows[b2] = rows[b2], rows[b1]
			return mended(rows)
		}, "chain since"},
		{"the last one renumbered", func(_ *testing.T, _ attacked, rows []row) []row {
			rows[d1].seq += 2
			return rows
		}, "log"}, // the records are the same
		{"all renumbered", func(_ *testing.T, _ attacked, rows []row) []row {
			for i := range rows {
				rows[i].seq += 3
			}
			return rows
		}, "log"},
	}
	for name, s := range map[string]attacked{"bolt": newAttackedBolt(t), "redis": newAttackedRedis(t)} {
		t.Run(name, func(t *testing.T) {
			key, verifier := headKeys(t)
			s.restore(t)
			s.write(t, mended(without(s.rows(t), d1)))
			since := file(t, must(t, "head", "--store", s.place(), "--sign", key))
			for _, c := range attacks {
				s.restore(t)
				s.write(t, c.attack(t, s, s.rows(t)))
				if shown := whatShows(t, s.place(), since, verifier); shown != c.shows {
					t.Errorf("%s: %q shows it, want %q", c.name, shown, c.shows)
				}
			}
		})
	}
}

// whatShows runs the checks and names those that found something.
func whatShows(t *testing.T, store, since, verifier string) string {
	t.Helper()
	found := make(map[string]bool)
	said, _, failed := lexCommand("", "verify", "--store", store, "--since", since, "--key", verifier)
	for _, fault := range regexp.MustCompile(`(?m)^fault: [^:]*: (.*)`).FindAllStringSubmatch(said, -1) {
		switch what := fault[1]; {
		case strings.Contains(what, "id does not match"):
			found["record"] = true
		case strings.HasPrefix(what, "since: "):
			found["since"] = true
		case strings.HasPrefix(what, "log: "), strings.Contains(what, "record is gone"):
			found["log"] = true
		default:
			found["chain"] = true
		}
	}
	if (failed != nil) != (len(found) > 0) {
		t.Errorf("%v:\n%s", failed, said)
	}
	if _, _, err := lexCommand("", "head", "--store", store); err != nil {
		if !strings.Contains(err.Error(), "the log") && !strings.Contains(err.Error(), "log_prev") {
			t.Error(err)
		}
		found["log"] = true
	}
	if found["record"] {
		delete(found, "chain") // where a record that is broken stands says nothing more
	}
	order := []string{"record", "chain", "log", "since"}
	return strings.Join(slices.DeleteFunc(order, func(name string) bool { return !found[name] }), " ")
}

// After somebody cut the tail, the log shows it, before the next receipt and after it: the
// store remembers how many there were.
func TestACutTailShows(t *testing.T) {
	for name, s := range map[string]attacked{"bolt": newAttackedBolt(t), "redis": newAttackedRedis(t)} {
		s.restore(t)
		s.write(t, without(s.rows(t), c1, d1))
		if out, _, err := lexCommand("", "head", "--store", s.place()); err == nil || !strings.Contains(err.Error(), "place 7 of the log: receipt 6 of the log is missing before it") {
			t.Errorf("%s: before: %v %s", name, err, out)
		}
		fill(t, storeOf(s.place()), "e")
		if out, _, err := lexCommand("", "head", "--store", s.place()); err == nil || !strings.Contains(err.Error(), "receipts 6 to 7 of the log are missing before it") {
			t.Errorf("%s: after: %v %s", name, err, out)
		}
	}
}

// A Redis that lost everything, because it was emptied or has no file, while replicas run: what
// they write from then on verifies.
func TestWhatIsWrittenAfterALossVerifies(t *testing.T) {
	url := storetest.StartRedis(t)
	kept := storeOf(url)
	var replicas []string
	for range 2 {
		replicas = append(replicas, startProxyWith(t, kept, `{}`, answersByID()).URL)
	}
	turns := func(session string) {
		t.Helper()
		for _, replica := range replicas {
			askProxy(t, http.MethodPost, replica+"/lex/tools/check", fmt.Sprintf(`{"session_id":%q,"tool":{"name":"read_file","arguments":{"path":"notes.txt"}}}`, session))
			say(t, replica, session, []sessionCall{{"@", "", `"input":"What is the capital of France?"`}})
		}
	}
	turns("a")
	options, err := client.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	raw := client.NewClient(options)
	t.Cleanup(func() { _ = raw.Close() })
	if err := raw.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	turns("b")
	turns("a")
	for name, from := range map[string][]string{"the proxy": {"--url", replicas[0]}, "the store": {"--store", url}} {
		if out, _, err := lexCommand("", append([]string{"verify"}, from...)...); err != nil || !strings.Contains(out, "8 receipts in ") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	export := must(t, "export", "--url", replicas[0])
	if out, faulty := python(t, file(t, export)); faulty || !strings.Contains(out, "8 receipts, 0 faults, 0 setups that are not here") {
		t.Error(out)
	}
}

// Wherever the log is read from, it does not end early when all of it is lost.
func TestALostLogIsAFault(t *testing.T) {
	s := newAttackedRedis(t).(*attackedRedis)
	running := startProxyOn(t, storeOf(s.url), "Paris.").URL
	for _, lost := range []string{"log", "receipts"} {
		s.restore(t)
		s.pipe(t, func(ctx context.Context, p client.Pipeliner) { p.Del(ctx, "lex:{0}:"+lost) })
		out, _, _ := lexCommand("", "export", "--url", running)
		for _, from := range [][]string{{"--store", s.url}, {"--url", running}, {file(t, out)}} {
			said, _, err := lexCommand("", append([]string{"verify"}, from...)...)
			if err == nil || !strings.Contains(said, "log: receipts 1 to 6 of the log are missing before it") || !strings.Contains(said, "form: its record is gone") {
				t.Errorf("%s, %s: %v\n%s", lost, from[0], err, said)
			}
		}
	}
}

// Whoever changes a setup in the store leaves it under a hash that is not its own, which shows
// wherever the receipts are read from.
func TestAChangedSetupIsAFault(t *testing.T) {
	s := newAttackedRedis(t).(*attackedRedis)
	running := startProxyOn(t, storeOf(s.url), "Paris.").URL
	var receipt struct{ Setup string }
	if err := json.Unmarshal(s.rows(t)[0].record, &receipt); err != nil || receipt.Setup == "" {
		t.Fatal(err, "the receipt names no setup")
	}
	if err := s.c.Append(t.Context(), "lex:policy:{"+receipt.Setup+"}", " ").Err(); err != nil {
		t.Fatal(err)
	}
	for _, from := range [][]string{{"--store", s.url}, {"--url", running}} {
		if said, _, err := lexCommand("", append([]string{"verify"}, from...)...); err == nil || !strings.Contains(said, "setup: the setup kept under "+receipt.Setup+" is another") {
			t.Errorf("%s: %v\n%s", from[0], err, said)
		}
	}
}

func storeOf(place string) map[string]any {
	if strings.HasPrefix(place, "redis://") {
		return map[string]any{"engine": "redis", "urls": []string{place}}
	}
	return map[string]any{"engine": "bolt", "path": place}
}

// fill lets a proxy write turns of sessions into a store.
func fill(t *testing.T, kept map[string]any, sessions ...string) {
	t.Helper()
	t.Run("fill", func(t *testing.T) {
		proxy := startProxyOn(t, kept, "Paris.")
		for i, session := range sessions {
			askProxy(t, http.MethodPost, proxy.URL+"/lex/govern", fmt.Sprintf(`{"session_id":%q,"prompt":"What is the capital of France, %d?","output":"Paris."}`, session, i))
		}
	})
}

var turnsOf = []string{"a", "b", "a", "b", "a", "c", "d"}

// An attackedBolt is a file of the embedded database.
type attackedBolt struct {
	path string
	full []byte
}

func newAttackedBolt(t *testing.T) attacked {
	s := &attackedBolt{path: filepath.Join(t.TempDir(), "lex.db")}
	fill(t, storeOf(s.path), turnsOf...)
	var err error
	if s.full, err = os.ReadFile(s.path); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *attackedBolt) place() string { return s.path }

func (s *attackedBolt) restore(t *testing.T) {
	if err := os.WriteFile(s.path, s.full, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *attackedBolt) update(t *testing.T, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(s.path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
}

func (s *attackedBolt) rows(t *testing.T) (rows []row) {
	t.Helper()
	opened, err := bolt.Open(s.path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	log, err := opened.Log(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range log {
		rows = append(rows, row{
			seq: r.Seq, prev: r.LogPrev, id: r.ID, session: r.SessionKey, record: r.JSON,
			fields: map[string]any{
				"kind": r.Kind, "session_id": r.SessionID, "turn_id": r.TurnID, "turn": r.Turn,
				"timestamp": r.Timestamp, "intervened": r.Intervened, "m_after": r.MAfter,
			},
		})
	}
	return rows
}

// write writes the rows as an older version of Lex did, uncompressed.
func (s *attackedBolt) write(t *testing.T, rows []row) {
	s.update(t, func(tx *bbolt.Tx) error {
		receipts, ids := tx.Bucket([]byte("receipts")), tx.Bucket([]byte("ids"))
		for _, b := range []*bbolt.Bucket{receipts, ids} {
			for c, k := b.Cursor(), []byte{}; k != nil; {
				if k, _ = c.First(); k != nil {
					if err := c.Delete(); err != nil {
						return err
					}
				}
			}
		}
		for _, r := range rows {
			fields := maps.Clone(r.fields)
			fields["id"], fields["session_key"] = r.id, r.session
			header, err := json.Marshal(fields)
			if err != nil {
				return err
			}
			at := binary.BigEndian.AppendUint64(nil, r.seq)
			if err := receipts.Put(at, fmt.Appendf(nil, "%s%s\n%s", r.prev, header, r.record)); err != nil {
				return err
			}
			if err := ids.Put([]byte(r.id), at); err != nil {
				return err
			}
			if r.of > 0 {
				if err := receipts.SetSequence(r.of); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *attackedBolt) states(t *testing.T, change func(state []byte) []byte) {
	s.update(t, func(tx *bbolt.Tx) error {
		sessions, changed := tx.Bucket([]byte("sessions")), make(map[string][]byte)
		err := sessions.ForEach(func(k, v []byte) error {
			changed[string(k)] = change(bytes.Clone(v))
			return nil
		})
		for k, v := range changed {
			if err == nil {
				err = sessions.Put([]byte(k), v)
			}
		}
		return err
	})
}

// An attackedRedis is a server that only this test uses.
type attackedRedis struct {
	url  string
	c    *client.Client
	full map[string]string // key → dump
}

func newAttackedRedis(t *testing.T) attacked {
	s := &attackedRedis{url: storetest.StartRedis(t), full: make(map[string]string)}
	fill(t, storeOf(s.url), turnsOf...)
	options, err := client.ParseURL(s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.c = client.NewClient(options)
	t.Cleanup(func() { _ = s.c.Close() })
	keys, err := s.c.Keys(t.Context(), "*").Result()
	for _, key := range keys {
		if err == nil {
			s.full[key], err = s.c.Dump(t.Context(), key).Result()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *attackedRedis) place() string { return s.url }

func (s *attackedRedis) restore(t *testing.T) {
	s.pipe(t, func(ctx context.Context, p client.Pipeliner) {
		p.FlushAll(ctx)
		for key, dump := range s.full {
			p.Restore(ctx, key, 0, dump)
		}
	})
}

func (s *attackedRedis) pipe(t *testing.T, fill func(context.Context, client.Pipeliner)) {
	t.Helper()
	p := s.c.Pipeline()
	fill(t.Context(), p)
	if _, err := p.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *attackedRedis) rows(t *testing.T) (rows []row) {
	entries, err := s.c.XRange(t.Context(), "lex:{0}:receipts", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		text := func(name string) string { v, _ := e.Values[name].(string); return v }
		rows = append(rows, row{
			seq: uint64(i + 1), prev: text("log_prev"), id: text("id"), session: text("session_key"), record: []byte(text("json")), fields: e.Values,
		})
	}
	return rows
}

func (s *attackedRedis) write(t *testing.T, rows []row) {
	s.pipe(t, func(ctx context.Context, p client.Pipeliner) {
		p.Del(ctx, "lex:{0}:receipts", "lex:{0}:log")
		for key := range s.full {
			if strings.HasPrefix(key, "lex:{0}:receipt:") {
				p.Del(ctx, key)
			}
		}
		for i, r := range rows {
			at := fmt.Sprintf("%d-0", i+1)
			fields := maps.Clone(r.fields)
			fields["seq"], fields["log_prev"], fields["id"], fields["session_key"], fields["json"] = r.seq, r.prev, r.id, r.session, r.record
			p.XAdd(ctx, &client.XAddArgs{Stream: "lex:{0}:receipts", ID: at, Values: fields})
			p.XAdd(ctx, &client.XAddArgs{Stream: "lex:{0}:log", ID: fmt.Sprintf("%d-0", r.seq), Values: []string{"at", at}})
			p.Set(ctx, "lex:{0}:receipt:"+r.id, at, 0)
			if r.of > 0 {
				p.HSet(ctx, "lex:{0}:head", "size", r.of)
			}
		}
	})
}

func (s *attackedRedis) states(t *testing.T, change func(state []byte) []byte) {
	s.pipe(t, func(ctx context.Context, p client.Pipeliner) {
		for key := range s.full {
			if strings.HasPrefix(key, "lex:{0}:session:") {
				state := s.c.HGet(ctx, key, "state").Val()
				p.HSet(ctx, key, "state", change([]byte(state)))
			}
		}
	})
}
