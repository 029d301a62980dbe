package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	for hash, want := range map[string][]byte{changed.Hash(): policy, hashOf(setup): setup} {
		if text, err := source.Document(t.Context(), hash); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%s: %s %v", hash, text, err)
		}
	}
}

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
