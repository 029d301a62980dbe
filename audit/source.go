package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A Source gives receipts to verify, from a file, a store, or a running proxy. It
// belongs to one goroutine.
type Source interface {
	// Each visits the receipts in the order of the log. Receipts that are written
	// meanwhile may be left out. An error of visit ends the walk and is returned.
	Each(ctx context.Context, visit Visit) error

	Documents
}

// A Visit takes one receipt of a source. where names the receipt for people. The entry
// has the record, the id if the source stores the record under one, and the place in the
// log (Seq and LogPrev) if the source knows it. Its record is valid until Visit returns.
type Visit func(ctx context.Context, where string, entry store.Receipt) error

// A SessionSource also knows the sessions of its receipts: their heads, and the
// secrets that commitments are made with. A file does not.
type SessionSource interface {
	// Head makes the check chain of the receipt with the id as far as it is about the
	// head of the session: nil if that is not known.
	Head(ctx context.Context, id string) (Check, error)

	// CompareTexts makes the checks that compare texts with a receipt's
	// commitments. A proxy may add other checks that failed. The error wraps
	// [store.ErrNotFound] where there is no such receipt, and [kernel.ErrReceipt] or
	// [kernel.ErrReceiptID] where it is broken.
	CompareTexts(ctx context.Context, t Texts) ([]Check, error)
}

// A StoreSource reads the receipts of a store that this process has opened.
type StoreSource struct{ store store.Store }

// NewStoreSource returns the source of a store, which stays the caller's to close.
func NewStoreSource(s store.Store) StoreSource { return StoreSource{s} }

var (
	_ Source        = StoreSource{}
	_ SessionSource = StoreSource{}
)

// storePage is how many receipts are read at a time. A page holds the whole
// records, so it is small.
const storePage = 16

// Each visits the receipts of the store's log.
func (s StoreSource) Each(ctx context.Context, visit Visit) error {
	for after := uint64(0); ; {
		page, err := s.store.Log(ctx, after, storePage)
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, entry := range page {
			where := cmp.Or(entry.ID, fmt.Sprintf("place %d of the log", entry.Seq))
			if err := visit(ctx, where, entry); err != nil {
				return err
			}
			after = entry.Seq
		}
	}
}

// Document returns a document that the store keeps.
func (s StoreSource) Document(ctx context.Context, hash string) ([]byte, error) {
	return s.store.Document(ctx, hash)
}

// Head looks for the receipt on the way back from its session's head.
func (s StoreSource) Head(ctx context.Context, id string) (Check, error) {
	entry, err := s.store.Receipt(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid):
		return failed("chain", "it is in the log, but the store does not find it by its id"), nil
	case err != nil:
		return Check{}, err
	}
	r, _, broken := openEntry(entry)
	if broken != nil {
		return unknown("chain", "the record is broken"), nil //nolint:nilerr // that is the finding, which form reports as well
	}
	return NewAuditor(s.store).head(ctx, entry, r, maxWalk)
}

// CompareTexts compares texts with a receipt's commitments.
func (s StoreSource) CompareTexts(ctx context.Context, t Texts) ([]Check, error) {
	entry, err := s.store.Receipt(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	r, err := kernel.OpenReceipt(entry.JSON)
	if err != nil {
		return nil, err
	}
	return NewAuditor(s.store).texts(ctx, entry, r, t)
}
