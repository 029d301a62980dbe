package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A FileSource reads files of JSON lines as "caddy lex export" writes them: receipts with
// their places in the log, oldest first, and each policy and setup before the receipts that
// name it. Older exports have bare receipts, which have no places. It knows no sessions.
type FileSource struct {
	names     []string
	documents map[string][]byte
}

// NewFileSource returns the source that reads the named files one after the other;
// "-" is standard input.
func NewFileSource(names ...string) *FileSource {
	return &FileSource{names: names, documents: make(map[string][]byte)}
}

// Each visits the receipts of all files, in the order of their lines.
func (s *FileSource) Each(ctx context.Context, visit Visit) error {
	for _, name := range s.names {
		if err := s.eachOf(ctx, name, visit); err != nil {
			return err
		}
	}
	return nil
}

func (s *FileSource) eachOf(ctx context.Context, name string, visit Visit) error {
	var file io.ReadCloser = os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil { //nolint:gosec // G304: the user of the command names the file
			return fmt.Errorf("reading receipts: %w", err)
		}
	}
	defer file.Close()
	err := EachLine(file, func(n int, line []byte) error {
		switch {
		case bytes.HasPrefix(line, []byte(policyPrefix)):
			return s.keepPolicy(n, line)
		case bytes.HasPrefix(line, []byte(setupPrefix)):
			return s.keepSetup(n, line)
		}
		entry, known := ParseLogLine(line)
		if !known {
			if writtenAnew(line) {
				return fmt.Errorf("%w: line %d is one of an export that was written anew, with other spaces or its members in another order; give the file as export wrote it", kernel.ErrReceipt, n)
			}
			entry.JSON = line
		}
		return visit(ctx, name+":"+strconv.Itoa(n), entry)
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// writtenAnew reports whether a line that is none of an export has the members of one, as if
// a tool for JSON had read it and written it again.
func writtenAnew(line []byte) bool {
	compact := jsontext.Value(bytes.Clone(line))
	if err := compact.Compact(); err != nil || bytes.Equal(compact, line) && bytes.HasPrefix(line, []byte(seqMember)) {
		return false
	}
	v := gjson.ParseBytes(line)
	return v.Get("receipt").IsObject() && v.Get("seq").Exists() || v.Get("policy").IsObject() || v.Get("setup").IsObject()
}

// The lines that hold no receipts begin with these.
const (
	policyPrefix = `{"policy":{`
	setupPrefix  = `{"setup":{`
)

// keepPolicy keeps the policy on line n.
func (s *FileSource) keepPolicy(n int, line []byte) error {
	text, err := s.keep(n, line, policyPrefix)
	if err != nil {
		return err
	}
	if _, err := kernel.ParsePolicy(text); err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	return nil
}

// keepSetup keeps the setup on line n.
func (s *FileSource) keepSetup(n int, line []byte) error {
	_, err := s.keep(n, line, setupPrefix)
	return err
}

// keep keeps the document of a line under the hash of its bytes. One that was changed is
// then not that of any receipt. Nothing may stand behind it, for nobody would read that.
func (s *FileSource) keep(n int, line []byte, prefix string) ([]byte, error) {
	text, whole := bytes.CutSuffix(line[len(prefix)-1:], []byte{'}'})
	if !whole || !bytes.HasSuffix(text, []byte{'}'}) || !jsontext.Value(text).IsValid() {
		return nil, fmt.Errorf("line %d is not one policy or setup: %w", n, kernel.ErrPolicy)
	}
	text = bytes.Clone(text)
	sum := sha256.Sum256(text)
	s.documents[hex.EncodeToString(sum[:])] = text
	return text, nil
}

// Document returns a policy or setup that was read so far, or the default policy.
func (s *FileSource) Document(_ context.Context, hash string) ([]byte, error) {
	if text, known := s.documents[hash]; known {
		return text, nil
	}
	if p := kernel.DefaultPolicy(); p.Hash() == hash {
		return p.JSON()
	}
	return nil, store.ErrNotFound
}
