package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/redis"
)

// A trail is where the commands read receipts from.
type trail interface {
	// each visits the receipts, oldest first, with a name for each that people
	// find it by. Those that are written meanwhile may be left out.
	each(ctx context.Context, visit func(ctx context.Context, where string, entry store.Receipt) error) error

	policyReader

	// head says whether the receipt is found on the way from its session's head,
	// or [errNoHeads].
	head(ctx context.Context, id string) (verdict, error)

	// compare says whether texts are those that a receipt committed to.
	compare(ctx context.Context, s spoken) ([]verdict, error)

	close() error
}

// errNoHeads: the trail has receipts only.
var errNoHeads = errors.New("this source does not know the heads of the sessions")

// A fileTrail reads files of JSON lines: receipts, and policies before those
// that name them.
type fileTrail struct {
	names    []string
	policies map[string][]byte
}

func (t *fileTrail) each(ctx context.Context, visit func(context.Context, string, store.Receipt) error) error {
	for _, name := range t.names {
		if err := t.eachOf(ctx, name, visit); err != nil {
			return err
		}
	}
	return nil
}

func (t *fileTrail) eachOf(ctx context.Context, name string, visit func(context.Context, string, store.Receipt) error) error {
	var file io.ReadCloser = os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil { //nolint:gosec // G304: whoever runs the command names the file
			return fmt.Errorf("reading receipts: %w", err)
		}
	}
	defer file.Close()
	return eachLine(file, func(n int, line []byte) error {
		if strings.HasPrefix(string(line), `{"policy":{`) {
			return t.keep(name, n, line)
		}
		where := fmt.Sprintf("%s:%d", name, n)
		if id := gjson.GetBytes(line, "id").Str; receiptID.MatchString(id) {
			where += " " + id
		}
		return visit(ctx, where, store.Receipt{JSON: slices.Clone(line)})
	})
}

// keep reads a line with a policy.
func (t *fileTrail) keep(name string, n int, line []byte) error {
	p, err := kernel.ParsePolicy([]byte(gjson.GetBytes(line, "policy").Raw))
	if err != nil {
		return fmt.Errorf("%s:%d: %w", name, n, err)
	}
	text, err := p.JSON()
	if err == nil {
		t.policies[p.Hash()] = text
	}
	return err
}

func (t *fileTrail) Policy(_ context.Context, hash string) ([]byte, error) {
	if text, known := t.policies[hash]; known {
		return text, nil
	}
	if p := kernel.DefaultPolicy(); p.Hash() == hash {
		return p.JSON()
	}
	return nil, store.ErrNotFound
}

func (*fileTrail) head(context.Context, string) (verdict, error) { return verdict{}, errNoHeads }

func (*fileTrail) compare(context.Context, spoken) ([]verdict, error) {
	return nil, errors.New("comparing texts needs the sessions' keys: use --url or --store")
}

func (*fileTrail) close() error { return nil }

// A storeTrail reads a store that nobody else has open, or that many may share.
type storeTrail struct{ store.Store }

func openStoreTrail(ctx context.Context, place string) (trail, error) {
	if strings.HasPrefix(place, "redis://") || strings.HasPrefix(place, "rediss://") {
		s, err := redis.Open(ctx, []string{place}, redis.Options{})
		if err != nil {
			return nil, fmt.Errorf("opening the store: %w", err)
		}
		return storeTrail{s}, nil
	}
	if _, err := os.Stat(place); err != nil { // opening would make it
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s, err := bolt.Open(place, bolt.Options{})
	if err != nil {
		return nil, err
	}
	return storeTrail{s}, nil
}

func (t storeTrail) each(ctx context.Context, visit func(context.Context, string, store.Receipt) error) error {
	var ids []string
	for before := ""; ; {
		page, err := t.Recent(ctx, before, recentChunk)
		if err != nil {
			return fmt.Errorf("listing receipts: %w", err)
		}
		for _, r := range page {
			ids, before = append(ids, r.ID), r.Cursor
		}
		if len(page) < recentChunk {
			break
		}
	}
	for _, id := range slices.Backward(ids) {
		entry, err := t.Receipt(ctx, id)
		if err != nil {
			return fmt.Errorf("reading %s: %w", id, err)
		}
		if err := visit(ctx, id, entry); err != nil {
			return err
		}
	}
	return nil
}

func (t storeTrail) head(ctx context.Context, id string) (verdict, error) {
	entry, err := t.Receipt(ctx, id)
	if err != nil {
		return verdict{}, err
	}
	r, err := kernel.ParseReceipt(entry.JSON)
	if err != nil {
		return faultOf(err), nil
	}
	return auditor{t}.head(ctx, entry, r)
}

func (t storeTrail) compare(ctx context.Context, s spoken) ([]verdict, error) {
	entry, err := t.Receipt(ctx, s.ID)
	if errors.Is(err, store.ErrNotFound) {
		return []verdict{failed("there is no such receipt")}, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := kernel.OpenReceipt(entry.JSON)
	if err != nil {
		return []verdict{faultOf(err)}, nil
	}
	checks, err := auditor{t}.texts(ctx, entry, r, s.Prompt, s.Output)
	var out []verdict
	for _, c := range checks {
		out = append(out, verdict{c.OK, c.Name + ": " + c.Detail})
	}
	return out, err
}

func (t storeTrail) close() error { return t.Close() }
