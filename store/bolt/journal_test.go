package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/storetest"
)

const (
	// blockSize is what the journal's records begin at a multiple of.
	blockSize = 4 << 10
	// recordHead is the length of a record's head.
	recordHead = 28
)

// killed returns the path of a copy of the store as a process that is killed now would leave
// it.
func killed(t *testing.T, path string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "lex.db")
	for _, suffix := range []string{"", ".journal"} {
		data, err := os.ReadFile(path + suffix)
		must(t, err)
		must(t, os.WriteFile(copied+suffix, data, 0o600))
	}
	return copied
}

// advanceTimes commits turns of a session, one after the other, and returns their receipts.
func advanceTimes(t *testing.T, s *bolt.Store, key string, turns int) (ids []string) {
	t.Helper()
	for range turns {
		id, err := advance(t.Context(), s, key)
		must(t, err)
		ids = append(ids, id)
	}
	return ids
}

func set(ids []string) map[string]bool {
	all := map[string]bool{}
	for _, id := range ids {
		all[id] = true
	}
	return all
}

// What was acknowledged is there after a kill at any time: when only the journal has it,
// when the tree has taken in several journals, and when a write was taken back between.
func TestJournalKeepsWhatTheTreeLacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	ids := advanceTimes(t, s, "k0", 5)
	checkSurvivors(t, killed(t, path), set(ids))

	if err := s.Append(t.Context(), store.Receipt{ID: strings.Repeat("x", 40_000), Kind: store.KindText, JSON: []byte("{}")}); !errors.Is(err, store.ErrInvalid) {
		t.Fatalf("appending a receipt that the tree refuses: %v", err)
	}
	ids = append(ids, advanceTimes(t, s, "k0", 2)...)
	checkSurvivors(t, killed(t, path), set(ids))

	ids = append(ids, advanceTimes(t, s, "k1", 300)...) // a record is a block or more, and 128 blocks are full
	checkSurvivors(t, killed(t, path), set(ids))
	if info, err := os.Stat(path + ".journal"); err != nil || info.Size() > 512<<10 {
		t.Errorf("the journal is %v, %v", info, err)
	}

	must(t, s.Close())
	if _, err := os.Stat(path + ".journal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a closed store has a journal: %v", err)
	}
	checkSurvivors(t, path, set(ids))
}

func TestJournalKeepsEveryKindOfWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	ctx := t.Context()
	advanceTimes(t, s, "erased", 2)
	advanceTimes(t, s, "k0", 2)
	must(t, s.Erase(ctx, "erased"))
	must(t, s.PutKey(ctx, store.Key{Hash: "h", ID: "id"}))
	must(t, s.PutDocument(ctx, "d", []byte("{}")))
	large := []byte(`"` + strings.Repeat("x", 1<<20) + `"`) // larger than a journal
	must(t, s.PutDocument(ctx, "large", large))
	must(t, s.Publish(ctx, []store.Benchmark{{Benchmark: "b"}}))
	for range 2 {
		_, err := s.Consume(ctx, "subject", "", 9, 24*time.Hour)
		must(t, err)
	}
	want, err := s.Stats(ctx)
	must(t, err)

	s = open(t, killed(t, path), bolt.Options{})
	if _, err := s.Session(ctx, "erased"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the erased session: %v", err)
	}
	_, err = s.Key(ctx, "h")
	must(t, err)
	_, err = s.Document(ctx, "d")
	must(t, err)
	if got, err := s.Document(ctx, "large"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("a document that is larger than a journal: %d bytes, %v", len(got), err)
	}
	rows, err := s.Benchmarks(ctx, time.Now())
	must(t, err)
	used, err := s.Consumed(ctx, "subject")
	must(t, err)
	stats, err := s.Stats(ctx)
	must(t, err)
	if len(rows) != 1 || used != 2 || fmt.Sprint(stats) != fmt.Sprint(want) {
		t.Errorf("%d rows, %d used, statistics %+v; want 1, 2, %+v", len(rows), used, stats, want)
	}
	advanceTimes(t, s, "k0", 2)
	checkChain(t, s, "k0", 4)
	if got, want := len(storetest.Log(t, s)), receiptsOf(2)+receiptsOf(4); got != want {
		t.Errorf("the log has %d receipts, want %d", got, want)
	}
}

// A record that is torn at the end was not acknowledged. Where others follow one that is
// damaged, what was acknowledged is lost, and that is said.
func TestDamagedJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	ids := advanceTimes(t, open(t, path, bolt.Options{}), "k0", 6) // turns of up to three receipts, each a block
	journal, err := os.ReadFile(path + ".journal")
	must(t, err)
	if len(journal) != 6*blockSize {
		t.Fatalf("the journal has %d bytes, want a block for each turn", len(journal))
	}
	for name, c := range map[string]struct {
		damage func(journal []byte) []byte
		kept   int // turns, or -1 if it must not open
	}{
		"nothing":                        {func(j []byte) []byte { return j }, 6},
		"a byte of the last":             {func(j []byte) []byte { j[5*blockSize+100] ^= 1; return j }, 5},
		"the number of the last":         {func(j []byte) []byte { j[5*blockSize+19] ^= 1; return j }, 5},
		"the length of the last":         {func(j []byte) []byte { j[5*blockSize+20] ^= 0xff; return j }, 5},
		"the last is cut":                {func(j []byte) []byte { return j[:5*blockSize+10] }, 5},
		"all but the first are cut":      {func(j []byte) []byte { return j[:blockSize] }, 1},
		"it is empty":                    {func([]byte) []byte { return nil }, 0},
		"the last are another store's":   {func(j []byte) []byte { j[4*blockSize] ^= 1; j[5*blockSize] ^= 1; return j }, 4},
		"a byte of the third":            {func(j []byte) []byte { j[2*blockSize+100] ^= 1; return j }, -1},
		"the first":                      {func(j []byte) []byte { clear(j[:blockSize]); return j }, -1},
		"a byte of each of the last two": {func(j []byte) []byte { j[4*blockSize+100] ^= 1; j[5*blockSize+100] ^= 1; return j }, -1},
		"a byte of each": {func(j []byte) []byte {
			for at := 100; at < len(j); at += blockSize {
				j[at] ^= 1
			}
			return j
		}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			path := killed(t, path)
			must(t, os.WriteFile(path+".journal", c.damage(append([]byte(nil), journal...)), 0o600))
			if c.kept >= 0 {
				checkSurvivors(t, path, set(ids[:c.kept]))
				s := open(t, path, bolt.Options{})
				advanceTimes(t, s, "k0", 1)
				checkChain(t, s, "k0", c.kept+1)
				return
			}
			s, err := bolt.Open(path, bolt.Options{})
			if err == nil {
				_ = s.Close()
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), "of the journal is damaged") || !strings.Contains(err.Error(), "restore the file from a backup") {
				t.Errorf("it says %v", err)
			}
			if left, err := os.ReadFile(path + ".journal"); err != nil || len(left) != len(journal) {
				t.Errorf("the journal was touched: %d bytes, %v", len(left), err)
			}
		})
	}
}

// A file that nobody closed, and whose journal is gone or is none any more, says so once. One
// that was closed, or whose journal is there without a record yet, lacks nothing.
func TestJournalLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	check := func(name, path string, want bool) {
		t.Helper()
		s, err := bolt.Open(path, bolt.Options{})
		must(t, err)
		if s.JournalLost() != want {
			t.Errorf("%s: lost is %v", name, !want)
		}
		must(t, s.Close())
	}
	check("killed before its first turn", killed(t, path), false)
	advanceTimes(t, s, "k0", 3)
	check("killed", killed(t, path), false)
	for name, damage := range map[string]func(name string) error{
		"removed":             os.Remove,
		"emptied":             func(name string) error { return os.Truncate(name, 0) },
		"cut to a byte":       func(name string) error { return os.Truncate(name, 1) },
		"cut in its head":     func(name string) error { return os.Truncate(name, 20) },
		"cut after its head":  func(name string) error { return os.Truncate(name, 100) },
		"replaced by text":    func(name string) error { return os.WriteFile(name, bytes.Repeat([]byte("hello\n"), 1000), 0o600) },
		"replaced by numbers": func(name string) error { return os.WriteFile(name, bytes.Repeat([]byte{1}, 5*blockSize), 0o600) },
	} {
		path := killed(t, path)
		must(t, damage(path+".journal"))
		check(name, path, true)
		check(name+", opened again", path, false)
	}
	must(t, s.Close())
	check("closed", path, false)
	check("new", filepath.Join(t.TempDir(), "lex.db"), false)
}

// A journal that the tree has just taken in holds old records alone, and one that is torn at its
// first record nothing at all. Neither is lost.
func TestJournalWithoutARecordOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	advanceTimes(t, s, "k0", 1)
	torn := killed(t, path)
	journal, err := os.ReadFile(torn + ".journal")
	must(t, err)
	journal[recordHead+10] ^= 1
	must(t, os.WriteFile(torn+".journal", journal, 0o600))
	// A document larger than the journal is committed with the tree.
	must(t, s.PutDocument(t.Context(), "large", bytes.Repeat([]byte("x"), 1<<20)))
	for name, path := range map[string]string{"torn": torn, "taken in": killed(t, path)} {
		if s := open(t, path, bolt.Options{}); s.JournalLost() {
			t.Errorf("%s: it is lost", name)
		}
	}
}

// A journal that goes with another file, or with a newer state of this one, may have turns that
// only that one can take in. The file is not opened with it, and it is not touched.
func TestJournalOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	fresh := killed(t, path)
	advanceTimes(t, s, "k0", 3)
	older := killed(t, path) // whose journal has these turns
	must(t, s.Close())
	closed := filepath.Join(t.TempDir(), "lex.db")
	copied(t, path, closed)
	s = open(t, path, bolt.Options{})
	advanceTimes(t, s, "k0", 3)
	newer := killed(t, path)
	other := filepath.Join(t.TempDir(), "lex.db")
	stranger := open(t, other, bolt.Options{})
	advanceTimes(t, stranger, "k0", 3)
	foreign := killed(t, other)
	back := filepath.Join(t.TempDir(), "lex.db") // the closed one, which went on by itself
	copied(t, closed, back)
	advanceTimes(t, open(t, back, bolt.Options{}), "k0", 3)
	back = killed(t, back)
	empty := filepath.Join(t.TempDir(), "lex.db") // a database of nothing
	db, err := bbolt.Open(empty, 0o600, nil)
	must(t, err)
	must(t, db.Close())
	for name, c := range map[string]struct{ file, journal string }{
		"a newer state":                {fresh, newer},
		"a newer state, closed before": {closed, newer},
		"of another file":              {newer, foreign},
		"beside another file":          {foreign, newer},
		"of a copy that went on":       {back, newer},
		"beside a database of nothing": {empty, newer},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lex.db")
			copied(t, c.file, path)
			copied(t, c.journal+".journal", path+".journal")
			if s, err := bolt.Open(path, bolt.Options{}); err == nil || !strings.Contains(err.Error(), "goes with another file") {
				t.Errorf("opened: %v, %v", s, err)
			}
			was, err := os.ReadFile(c.journal + ".journal")
			must(t, err)
			if left, err := os.ReadFile(path + ".journal"); err != nil || !bytes.Equal(left, was) {
				t.Errorf("the journal was touched: %v", err)
			}
			must(t, os.Remove(path+".journal"))
			must(t, open(t, path, bolt.Options{}).Close())
		})
	}
	for name, path := range map[string]string{"the one": newer, "the other": foreign, "the older": older} {
		if got := len(storetest.Log(t, open(t, path, bolt.Options{}))); got < 3 {
			t.Errorf("%s has %d receipts", name, got)
		}
	}
}

// copied copies a file.
func copied(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, data, 0o600))
}

// A file that is removed, moved away, replaced, written over or cut while it is open takes no more
// turns, and says so. Its journal stays when the store is closed, so that no new log is begun without a word.
func TestFilesGoneWhileTheyAreOpen(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, path string){
		"removed":                  func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"moved away":               func(t *testing.T, path string) { must(t, os.Rename(path, path+".old")) },
		"replaced":                 func(t *testing.T, path string) { copied(t, path, path+".new"); must(t, os.Rename(path+".new", path)) },
		"the journal":              func(t *testing.T, path string) { must(t, os.Remove(path+".journal")) },
		"written over by a backup": func(t *testing.T, path string) { copied(t, path+".backup", path) },
		"written over by another": func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "other.db")
			s, err := bolt.Open(other, bolt.Options{})
			must(t, err)
			must(t, s.Close())
			copied(t, other, path)
		},
		"emptied": func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"cut":     func(t *testing.T, path string) { must(t, os.Truncate(path, 8192)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lex.db")
			s, err := bolt.Open(path, bolt.Options{})
			must(t, err)
			advanceTimes(t, s, "k0", 3)
			must(t, s.Close())
			copied(t, path, path+".backup")
			s, err = bolt.Open(path, bolt.Options{})
			must(t, err)
			advanceTimes(t, s, "k0", 3)
			must(t, s.Check(t.Context()))
			lose(t, path)
			if _, err := s.Session(t.Context(), "k0"); !errors.Is(err, store.ErrRefused) && (name == "emptied" || name == "cut") {
				t.Errorf("reading: %v", err)
			}
			if _, err := advance(t.Context(), s, "k0"); !errors.Is(err, store.ErrRefused) {
				t.Errorf("a turn: %v", err)
			}
			if err := s.Check(t.Context()); !errors.Is(err, store.ErrRefused) {
				t.Errorf("checking: %v", err)
			}
			if err := s.Close(); !errors.Is(err, store.ErrRefused) {
				t.Errorf("closing: %v", err)
			}
			if _, err := os.Stat(path + ".journal"); (err == nil) == (name == "the journal") {
				t.Errorf("the journal: %v", err)
			}
		})
	}
}

// A file that is gone while its journal is there, such as after a restore on a full disk, is no
// new one: its log would begin again, and nobody would notice.
func TestFileGoneBesideItsJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	ids := advanceTimes(t, open(t, path, bolt.Options{}), "k0", 3)
	for name, damage := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			path := killed(t, path)
			whole, err := os.ReadFile(path)
			must(t, err)
			must(t, damage(path))
			for _, opts := range []bolt.Options{{}, {MustExist: true}} {
				s, err := bolt.Open(path, opts)
				if err == nil {
					_ = s.Close()
					t.Fatal("it opened")
				}
				for _, want := range []string{path + ":", path + ".journal", "put the file back", "move the journal away"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
			}
			must(t, os.WriteFile(path, whole, 0o600)) // as the error says
			checkSurvivors(t, path, set(ids))

			must(t, damage(path))
			open(t, path, bolt.Options{}) // the journal was taken in, and is gone
		})
	}
}

// Whoever only reads makes no file.
func TestOpenMustExist(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	if _, err := bolt.Open(path, bolt.Options{MustExist: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	must(t, os.WriteFile(path, nil, 0o600))
	if _, err := bolt.Open(path, bolt.Options{MustExist: true}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty file: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("it was filled: %v, %v", info, err)
	}
	must(t, open(t, path, bolt.Options{}).Close())
	open(t, path, bolt.Options{MustExist: true})
}

func TestOpenMakesAPrivateJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	must(t, os.WriteFile(path+".journal", nil, 0o644))
	open(t, path, bolt.Options{})
	info, err := os.Stat(path + ".journal")
	must(t, err)
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the journal has mode %o, want 600", got)
	}
}

// Other reads wait for a batch, whose content they may not see before it is durable, but no longer
// than its caller.
func TestReadsWaitNoLongerThanTheirCallers(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	release := bolt.Hold(s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Receipt(ctx, "r0")
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("reading beside a batch that takes for ever: %v", err)
	}
	release()
	if _, err := s.Receipt(t.Context(), "r0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("reading after it: %v", err)
	}
}
