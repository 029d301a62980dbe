package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// Files of both forms of lines are read, one after the other, with the documents in them.
func TestFilesOfLines(t *testing.T) {
	changed := kernel.DefaultPolicy()
	changed.Rho /= 2
	policy, err := changed.JSON()
	if err != nil {
		t.Fatal(err)
	}
	setup := []byte(`{"version":"1","models":{"detector":"a <b>"}}`)
	first, second := []byte(`{"id":"KRN-1"}`), []byte(`{"id":"KRN-2","a": 1}`)
	placed := logOf(first, second)
	older := fmt.Sprintf("{\"policy\":%s}\n%s\n\n", policy, first)
	newer := fmt.Sprintf("{\"setup\":%s}\n%s%s", setup, audit.AppendLogLine(nil, placed[0]), audit.AppendLogLine(nil, placed[1]))
	names := []string{filepath.Join(t.TempDir(), "older"), filepath.Join(t.TempDir(), "newer")}
	for i, text := range []string{older, newer} {
		if err := os.WriteFile(names[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := audit.NewFileSource(names...)
	for _, hash := range []string{changed.Hash(), hashOf(setup)} {
		if _, err := source.Document(t.Context(), hash); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s before it was read: %v", hash, err)
		}
	}
	var places []string
	var got []store.Receipt
	err = source.Each(t.Context(), func(_ context.Context, where string, entry store.Receipt) error {
		places, got = append(places, filepath.Base(where)), append(got, entry)
		return nil
	})
	if err != nil || fmt.Sprint(places) != "[older:2 newer:2 newer:3]" {
		t.Fatalf("%v: %v", places, err)
	}
	for i, want := range []store.Receipt{{JSON: first}, placed[0], placed[1]} {
		if fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s is %+v, want %+v", places[i], got[i], want)
		}
	}
	seen, full := 0, errors.New("full")
	err = source.Each(t.Context(), func(context.Context, string, store.Receipt) error { seen++; return full })
	if !errors.Is(err, full) || seen != 1 {
		t.Errorf("a visit that fails: %v after %d receipts", err, seen)
	}
	for hash, want := range map[string][]byte{changed.Hash(): policy, hashOf(setup): setup} {
		if text, err := source.Document(t.Context(), hash); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%s: %s %v", hash, text, err)
		}
	}
}

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// A line that is not one document and nothing else would be read by nobody, so it ends the
// reading: what stands on it could be anything, a whole export too.
func TestLinesThatAreNotOneDocument(t *testing.T) {
	policy, err := kernel.DefaultPolicy().JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		fmt.Sprintf(`{"policy":%s} garbage`, policy), fmt.Sprintf(`{"policy":%s}{"setup":{}}`, policy), fmt.Sprintf(`{"policy":%s,"setup":{}}`, policy),
		fmt.Sprintf(`{"policy":%s`, policy), `{"setup":{"a":1}} {"a":1}`, `{"setup":{}}}`, `{"setup":{"a":1} }`, `{"policy":{"a":1}}`,
		"{\"setup\":{}}\r{\"seq\":1,\"log_prev\":\"\",\"receipt\":null}",
	} {
		name := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(name, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := audit.NewFileSource(name).Each(t.Context(), func(context.Context, string, store.Receipt) error { return nil })
		if !errors.Is(err, kernel.ErrPolicy) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// kept is a source of one receipt and the documents that are kept.
type kept struct {
	visits
	documents map[string][]byte
}

func (k kept) Document(_ context.Context, hash string) ([]byte, error) {
	if text, ok := k.documents[hash]; ok {
		return text, nil
	}
	return nil, store.ErrNotFound
}

// What a receipt's setup says of it is not in the receipt, so the setup is looked at: one that
// was changed is a fault, named once, and one that is gone is counted.
func TestSetupsAreLookedAt(t *testing.T) {
	a := newArchivist(t, 1, false)
	policy, err := a.k.Policy().JSON()
	if err != nil {
		t.Fatal(err)
	}
	setup := []byte(`{"detector":{"model":"a"}}`)
	var entries []store.Receipt
	for range 3 {
		r := a.next()
		r.Setup = hashOf(setup)
		text, err := seal(t, r).JSON()
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, store.Receipt{JSON: text})
	}
	for name, c := range map[string]struct {
		setup          []byte
		faults, absent int
	}{"kept": {setup, 0, 0}, "changed": {[]byte(`{"detector":{"model":"b"}}`), 1, 0}, "gone": {nil, 0, 1}} {
		source := kept{visits{a, func(visit func(store.Receipt) error) error {
			for _, e := range entries {
				if err := visit(e); err != nil {
					return err
				}
			}
			return nil
		}}, map[string][]byte{a.k.PolicyHash(): policy}}
		if c.setup != nil {
			source.documents[hashOf(setup)] = c.setup
		}
		faults := 0
		sum, err := audit.NewVerifier(source, true, func(_ string, check audit.Check) {
			if check.Name == "setup" {
				faults++
			}
		}).Verify(t.Context())
		if err != nil || faults != c.faults || sum.SetupsUnknown != c.absent {
			t.Errorf("%s: %d faults, %d unknown, %v", name, faults, sum.SetupsUnknown, err)
		}
	}
}

// Who has sent an export through a tool that writes JSON anew is told so.
func TestLinesWrittenAnew(t *testing.T) {
	for name, line := range map[string]string{
		"a receipt with spaces":       `{"seq": 1, "log_prev": "", "receipt": {"id": "KRN-1"}}`,
		"a receipt in another order":  `{"log_prev":"","receipt":{"id":"KRN-1"},"seq":1}`,
		"a policy with spaces":        `{"policy": {"rho": 0.3}}`,
		"a setup with a space before": ` {"setup":{"version":"1"}}`,
	} {
		file := filepath.Join(t.TempDir(), "export")
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := audit.NewFileSource(file).Each(t.Context(), func(context.Context, string, store.Receipt) error {
			t.Errorf("%s: read as a receipt", name)
			return nil
		})
		if !errors.Is(err, kernel.ErrReceipt) || !strings.Contains(err.Error(), "line 1 is one of an export that was written anew") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
