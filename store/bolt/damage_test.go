package bolt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

// pageSize is that of the library, which is that of the system.
var pageSize = os.Getpagesize()

// damagedStore returns the path of a store with many pages that was killed, the bytes of its file,
// and the ids of its receipts.
func damagedStore(t *testing.T) (path string, whole []byte, ids []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "lex.db")
	s := open(t, path, bolt.Options{})
	for n := range 60 {
		ids = append(ids, advanceTimes(t, s, fmt.Sprint("k", n%committers), 1)...)
	}
	must(t, s.PutDocument(t.Context(), "d", []byte("{}")))
	_, err := s.Consume(t.Context(), "subject", "", 9, 24*time.Hour)
	must(t, err)
	must(t, s.Close())
	s = open(t, path, bolt.Options{})
	ids = append(ids, advanceTimes(t, s, "k0", 3)...)
	path = killed(t, path)
	whole, err = os.ReadFile(path)
	must(t, err)
	return path, whole, ids
}

// damages are what a page is after a disk or a copy failed.
var damages = map[string]func(page []byte){
	"zeros":         func(page []byte) { clear(page) },
	"another place": func(page []byte) { page[0] ^= 0x40 },
	"another kind":  func(page []byte) { binary.LittleEndian.PutUint16(page[8:], 0x04) },
	"no kind":       func(page []byte) { binary.LittleEndian.PutUint16(page[8:], 0xff00) },
	"no entries":    func(page []byte) { binary.LittleEndian.PutUint16(page[10:], 0) },
}

// Whichever page is damaged, and however, the file is refused with its name and advice, or each
// method answers, or says that the file is damaged. With the page mended everything is there again.
func TestDamagedPages(t *testing.T) {
	path, whole, ids := damagedStore(t)
	journal, err := os.ReadFile(path + ".journal")
	must(t, err)
	write := func(data []byte) {
		t.Helper()
		must(t, os.WriteFile(path, data, 0o600))
		must(t, os.WriteFile(path+".journal", journal, 0o600))
	}
	refused, failed, spared := 0, 0, 0
	for name, damage := range damages {
		for at := 2 * pageSize; at < len(whole); at += pageSize {
			if bytes.Equal(whole[at:at+pageSize], make([]byte, pageSize)) {
				continue // the file has room that was never used
			}
			data := bytes.Clone(whole)
			damage(data[at : at+pageSize])
			write(data)
			s, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				refused++
				checkRefusal(t, fmt.Sprintf("page %d, %s", at/pageSize, name), path, err)
				continue
			}
			bad := useAll(t, s, ids)
			_ = s.Close() // it may say that it could not take in all
			if bad > 0 {
				failed++
			}
			if bad > 0 && bad < len(ids) {
				spared++
			}
		}
	}
	if refused == 0 || failed == 0 || spared == 0 {
		t.Errorf("%d files were refused, %d failed, %d of them only in part", refused, failed, spared)
	}
	write(whole)
	checkSurvivors(t, path, set(ids))
}

// A page that is gone when it is read, although it was there when the file was looked at, would end
// the process by a signal. So would one that the disk does not give.
func TestPagesThatCannotBeRead(t *testing.T) {
	path, _, ids := damagedStore(t)
	s, err := bolt.Open(path, bolt.Options{})
	must(t, err)
	cut := func() { must(t, os.Truncate(path, 2*int64(pageSize))) }
	if err := bolt.ReadAfter(s, cut); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("reading: %v", err)
	}
	if _, err := s.Receipt(t.Context(), ids[0]); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a receipt: %v", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrRefused) {
		t.Errorf("closing: %v", err)
	}
}

// Only the library's panics are damages of the file.
func TestPanicOfOursGoesOn(t *testing.T) {
	path, _, _ := damagedStore(t)
	defer func() {
		if recover() == nil {
			t.Error("it was taken for a damage")
		}
	}()
	_, err := bolt.Open(path, bolt.Options{Now: func() time.Time { panic("a mistake") }})
	t.Errorf("it says %v", err)
}

func checkRefusal(t *testing.T, name, path string, err error) {
	t.Helper()
	if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
		t.Errorf("%s: %v", name, err)
	}
}

// useAll calls what reads and what writes, and returns how many receipts could not be read.
func useAll(t *testing.T, s *bolt.Store, ids []string) (bad int) {
	t.Helper()
	ctx := t.Context()
	check := func(doing string, err error) {
		t.Helper()
		for _, kind := range []error{store.ErrInvalid, store.ErrNotFound, store.ErrConflict} {
			if errors.Is(err, kind) {
				return
			}
		}
		if err != nil {
			t.Errorf("%s: %v", doing, err)
		}
	}
	for _, id := range ids {
		_, err := s.Receipt(ctx, id)
		check("reading a receipt", err)
		if errors.Is(err, store.ErrInvalid) {
			bad++
		}
	}
	_, err := s.Log(ctx, 0, 1000)
	check("reading the log", err)
	_, err = s.Summaries(ctx, "", 1000)
	check("listing summaries", err)
	_, err = s.Recent(ctx, "", 1000)
	check("listing receipts", err)
	_, err = s.Stats(ctx)
	check("reading the statistics", err)
	_, err = s.Document(ctx, "d")
	check("reading a document", err)
	for n := range committers {
		_, err = advance(ctx, s, fmt.Sprint("k", n))
		check("committing", err)
	}
	check("erasing", s.Erase(ctx, "k1"))
	check("writing a document", s.PutDocument(ctx, "large", []byte(strings.Repeat("x", 1<<20))))
	_, err = s.Consume(ctx, "subject", "", 9, 24*time.Hour)
	check("counting", err)
	return bad
}
