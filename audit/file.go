package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A FileSource reads files of JSON lines as "caddy lex export" writes them:
// receipts, oldest first, and each policy before the receipts that name it. It knows
// no sessions.
type FileSource struct {
	names    []string
	policies map[string][]byte
}

// NewFileSource returns the source that reads the named files one after the other;
// "-" is standard input.
func NewFileSource(names ...string) *FileSource {
	return &FileSource{names: names, policies: make(map[string][]byte)}
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
		if bytes.HasPrefix(line, []byte(`{"policy":{`)) {
			return s.keepPolicy(n, line)
		}
		return visit(ctx, name+":"+strconv.Itoa(n), store.Receipt{JSON: slices.Clone(line)})
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// keepPolicy keeps the policy on line n.
func (s *FileSource) keepPolicy(n int, line []byte) error {
	p, err := kernel.ParsePolicy([]byte(gjson.GetBytes(line, "policy").Raw))
	if err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	text, err := p.JSON()
	if err == nil {
		s.policies[p.Hash()] = text
	}
	return err
}

// Document returns a policy that was read so far, or the default policy.
func (s *FileSource) Document(_ context.Context, hash string) ([]byte, error) {
	if text, known := s.policies[hash]; known {
		return text, nil
	}
	if p := kernel.DefaultPolicy(); p.Hash() == hash {
		return p.JSON()
	}
	return nil, store.ErrNotFound
}
